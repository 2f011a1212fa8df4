//! Recovers changes that were interrupted by a kill, a lost container or a full disk. A completely
//! applied change is recorded as done, and any other change is rolled back.

use std::collections::HashSet;

use jaato_plugin_sdk::files::{FileDelete, FileFacts, FileKind, FolderList, is_draft_name};
use jaato_plugin_sdk::prelude::*;

use crate::editor::{Editor, EditorContext, history_error};
use crate::files::{self, ExistingTargetPolicy, FileWriteMode, read_facts};
use crate::history::{
    ChangeOutcome, ContentId, CurrentContent, FileTransition, PendingChange, RecoveryPlan,
    plan_recovery,
};

/// Recovers interrupted changes. Returns one line for each, and one if the history itself is
/// damaged.
///
/// # Errors
/// An error if the history cannot be read. A change that cannot be recovered at this moment gets a
/// line, and the next call tries again.
pub async fn recover_unfinished_changes(cx: &Cx<Editor>) -> Result<Vec<String>> {
    let history = cx.state().history()?.clone();
    let look =
        move |_: &Reporter| Ok((history.take_unfinished_changes()?, history.take_damaged_count()?));
    let (left, damaged) = cx.blocking(look).await?.map_err(history_error)?;
    let mut told = Vec::new();
    if damaged > 0 {
        let line = format!(
            "the history of changes is damaged: {damaged} of its entries cannot be read or undone"
        );
        cx.notice(&line);
        told.push(line);
    }
    if left.is_empty() {
        return Ok(told);
    }
    let place = cx.state().editor_context(cx).await?;
    for pending in left {
        let tool = pending.change().tool.clone();
        let files: Vec<&str> =
            pending.change().files.iter().map(|step| step.path.as_str()).collect();
        let files = format_paths(&files);
        let line = match settle_pending_change(cx, place, pending, RecoveryGoal::AsItIs).await {
            Ok(None) => continue,
            Ok(Some(RecoveryResult { is_done: true, .. })) => {
                format!("an interrupted {tool} of {files} was complete")
            }
            Ok(Some(RecoveryResult { left_alone, .. })) if left_alone.is_empty() => {
                format!("an interrupted {tool} of {files} was rolled back")
            }
            Ok(Some(RecoveryResult { left_alone, .. })) => format!(
                "an interrupted {tool} of {files} was rolled back, except for files that others \
                 have changed since: {}",
                left_alone.join(", ")
            ),
            Err(error) => {
                format!("an interrupted {tool} of {files} cannot be rolled back now: {error}")
            }
        };
        cx.notice(&line);
        told.push(line);
    }
    Ok(told)
}

/// Rolls back a change. Returns the files that others have changed since.
///
/// # Errors
/// If the change cannot be rolled back. The next call tries again.
pub async fn roll_back_pending(
    cx: &Cx<Editor>,
    place: &EditorContext,
    pending: PendingChange,
) -> Result<Vec<String>> {
    let settled = settle_pending_change(cx, place, pending, RecoveryGoal::Before).await?;
    Ok(settled.map(|settled| settled.left_alone).unwrap_or_default())
}

/// How to settle a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RecoveryGoal {
    /// Keeps the change if it is complete, otherwise rolls it back.
    AsItIs,
    /// Rolls the change back.
    Before,
}

struct RecoveryResult {
    is_done: bool,
    left_alone: Vec<String>,
}

/// The current state of a change's path.
struct CurrentFileState {
    found: CurrentContent,
    facts: Option<FileFacts>,
}

impl CurrentFileState {
    fn file_version(&self) -> Option<&str> {
        self.facts.as_ref()?.version.as_deref()
    }
}

async fn settle_pending_change(
    cx: &Cx<Editor>,
    place: &EditorContext,
    pending: PendingChange,
    wanted: RecoveryGoal,
) -> Result<Option<RecoveryResult>> {
    let change = pending.change().clone();
    let mut there = Vec::new();
    for step in &change.files {
        there.push(find_current_state(cx, place, step).await?);
    }
    let found: Vec<CurrentContent> = there.iter().map(|there| there.found.clone()).collect();
    let mut recovery = plan_recovery(&change, &found, &place.environment);
    if recovery.is_elsewhere {
        if pending.is_stale() {
            cx.blocking(move |_| pending.finish(ChangeOutcome::RolledBack))
                .await?
                .map_err(history_error)?;
        }
        return Ok(None);
    }
    if recovery.is_done && wanted == RecoveryGoal::Before {
        // The last step was applied, although it reported an error.
        let all = (0..change.files.len()).rev();
        let restore = all.filter(|number| !recovery.left_alone.contains(number)).collect();
        recovery = RecoveryPlan { is_done: false, restore, ..recovery };
    }
    restore_files(cx, place, &change.files, &there, &recovery.restore).await?;
    remove_drafts(cx, &change.files).await;
    let outcome = if recovery.is_done { ChangeOutcome::Done } else { ChangeOutcome::RolledBack };
    cx.blocking(move |_| pending.finish(outcome)).await?.map_err(history_error)?;
    let path = |number: &usize| change.files[*number].path.to_string();
    let left_alone = recovery.left_alone.iter().map(path).collect();
    Ok(Some(RecoveryResult { is_done: recovery.is_done, left_alone }))
}

async fn find_current_state(
    cx: &Cx<Editor>,
    place: &EditorContext,
    step: &FileTransition,
) -> Result<CurrentFileState> {
    let other = |facts| CurrentFileState { found: CurrentContent::Other, facts };
    if !step.path.is_in_environment(&place.environment) {
        return Ok(other(None));
    }
    let path = step.path.as_str();
    let facts = match read_facts(cx, path).await {
        Ok(Some(facts)) if facts.kind == FileKind::File => facts,
        Ok(Some(facts)) => return Ok(other(Some(facts))),
        Ok(None) => return Ok(CurrentFileState { found: CurrentContent::Nothing, facts: None }),
        Err(error) if error.kind == ErrorKind::PermissionDenied => return Ok(other(None)),
        Err(error) => return Err(error),
    };
    match files::fetch_contents(cx, path, facts).await {
        Ok(snapshot) => {
            let files::FileSnapshot { facts, bytes } = snapshot;
            let content = cx.blocking(move |_| bytes.digest().clone()).await?;
            let is_either = [&step.before, &step.after]
                .into_iter()
                .flatten()
                .any(|kept| kept.content == content);
            let found = match is_either || !is_write_interrupted(cx, step).await? {
                true => CurrentContent::Content(content),
                false => CurrentContent::Torn,
            };
            Ok(CurrentFileState { found, facts: Some(facts) })
        }
        Err(error) if error.kind == ErrorKind::LimitReached => Ok(other(None)),
        Err(error) if error.kind == ErrorKind::NotFound => {
            Ok(CurrentFileState { found: CurrentContent::Nothing, facts: None })
        }
        Err(error) => Err(error),
    }
}

/// Returns true if writing the new content into an existing file was interrupted. A draft with that
/// content is then next to the file.
async fn is_write_interrupted(cx: &Cx<Editor>, step: &FileTransition) -> Result<bool> {
    let Some(after) = &step.after else { return Ok(false) };
    for draft in find_drafts_of(cx, step.path.as_str()).await {
        let Some(snapshot) = files::read_snapshot(cx, &draft).await.ok().flatten() else {
            continue;
        };
        let digest = cx.blocking(move |_| snapshot.bytes.digest().clone()).await?;
        if digest == after.content {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Removes the drafts that an interrupted change left next to its files.
async fn remove_drafts(cx: &Cx<Editor>, steps: &[FileTransition]) {
    let mut folders = HashSet::new();
    for step in steps {
        let path = step.path.as_str();
        if !folders.insert(parent_folder(path)) {
            continue;
        }
        for path in find_drafts_of(cx, path).await {
            // If a process is writing the draft, the environment refuses to delete it.
            let _ = cx.files().delete(FileDelete { path, ..FileDelete::default() }).await;
        }
    }
}

/// Lists the drafts in the folder of a file.
async fn find_drafts_of(cx: &Cx<Editor>, path: &str) -> Vec<String> {
    let folder = parent_folder(path);
    let list = FolderList { path: folder.to_owned(), ..FolderList::default() };
    let Ok(listed) = cx.files().list(list).await else { return Vec::new() };
    let names = listed.entries.into_iter().map(|entry| entry.name);
    let names = names.filter(|name| is_draft_name(name));
    names.map(|name| if folder.is_empty() { name } else { format!("{folder}/{name}") }).collect()
}

fn parent_folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// Restores files: moves are reversed first, then replaced content is restored, and created files
/// are deleted last.
async fn restore_files(
    cx: &Cx<Editor>,
    place: &EditorContext,
    steps: &[FileTransition],
    there: &[CurrentFileState],
    numbers: &[usize],
) -> Result<()> {
    let mut left: Vec<usize> = numbers.to_vec();
    for &number in numbers {
        let step = &steps[number];
        let from = step.moved_from.as_ref();
        let source = from.and_then(|from| steps.iter().position(|other| other.path == *from));
        let Some(source) = source.filter(|source| left.contains(source)) else { continue };
        let is_pure = step.after.as_ref().map(|it| &it.content)
            == steps[source].before.as_ref().map(|it| &it.content);
        if is_pure && steps[source].after.is_none() {
            let paths = (step.path.as_str(), steps[source].path.as_str());
            let version = there[number].file_version();
            files::rename_file(cx, paths, version, ExistingTargetPolicy::Refused).await?;
            left.retain(|other| *other != source && (*other != number || step.before.is_some()));
            if let Some(before) = &step.before {
                let bytes = read_stored_content(cx, &before.content).await?;
                files::write_file(
                    cx,
                    step.path.as_str(),
                    &bytes,
                    FileWriteMode::New,
                    Some(before.mode),
                )
                .await?;
                left.retain(|other| *other != number);
            }
        }
    }
    for &number in &left {
        let Some(before) = &steps[number].before else { continue };
        // A step before may have restored the file under another name.
        let now = find_current_state(cx, place, &steps[number]).await?;
        if now.found == CurrentContent::Content(before.content.clone()) {
            continue;
        }
        let bytes = read_stored_content(cx, &before.content).await?;
        let how = match there[number].found {
            CurrentContent::Nothing => FileWriteMode::New,
            CurrentContent::Content(_) | CurrentContent::Other | CurrentContent::Torn => {
                FileWriteMode::Over(there[number].file_version())
            }
        };
        let mode = (is_new_file_mode(how)).then_some(before.mode);
        files::write_file(cx, steps[number].path.as_str(), &bytes, how, mode).await?;
    }
    for &number in left.iter().filter(|number| steps[**number].before.is_none()) {
        let path = steps[number].path.as_str();
        if read_facts(cx, path).await?.is_some() {
            files::delete_file(cx, path, there[number].file_version()).await?;
        }
    }
    Ok(())
}

fn is_new_file_mode(how: FileWriteMode<'_>) -> bool {
    matches!(how, FileWriteMode::New)
}

/// Reads a stored content.
///
/// # Errors
/// An error if the content is missing or damaged.
pub async fn read_stored_content(cx: &Cx<Editor>, id: &ContentId) -> Result<Vec<u8>> {
    let (history, id) = (cx.state().history()?.clone(), id.clone());
    cx.blocking(move |_| history.read_content(&id)).await?.map_err(history_error)
}

/// Names the first of several files.
fn format_paths(files: &[&str]) -> String {
    const NAMED_MAX: usize = 3;
    let mut text = files.iter().take(NAMED_MAX).copied().collect::<Vec<_>>().join(", ");
    if files.len() > NAMED_MAX {
        text = format!("{text} and {} more", files.len() - NAMED_MAX);
    }
    text
}
