//! Applies a plan completely, or not at all.
//!
//! The history stores all replaced content before the first file changes. At the same time, large
//! files are written to drafts next to their targets, and the drafts replace the targets
//! afterwards. A change that fails halfway is rolled back immediately. A change that a kill
//! interrupts is rolled back by the next call in the workspace (see [`crate::mend`]).

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use futures_util::future::{join, join3};
use jaato_plugin_sdk::files::{FileFacts, FileUpload};
use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::types::file_change::FileChange;

use crate::editor::{Editor, EditorContext, history_error};
use crate::files::{self, ExistingTargetPolicy, FileSnapshot, FileWriteMode};
use crate::history::{
    ChangeId, ChangeOutcome, FileTransition, History, HistoryError, NewChange, PendingChange,
    RecordedChange, StoredFileState,
};
use crate::plan::{EditPlan, PlannedContent};
use crate::recover_changes;
use crate::seen_files::{SeenFile, text_to_remember};

/// The maximum number of drafts of large files that are open while the replaced content is stored.
const DRAFTS_MAX: usize = 4;

/// The drafts of files, by the number of the file.
type FileDrafts = HashMap<usize, FileUpload>;

/// The origin of a change.
#[derive(Debug, Clone, Copy)]
pub struct ChangeOrigin<'a> {
    /// The tool.
    pub tool: &'a str,
    /// The change that it undoes.
    pub undoes: Option<ChangeId>,
}

/// An applied change.
#[derive(Debug)]
pub struct AppliedChange {
    /// The change as the history stores it. `None` if no file changed.
    pub change: Option<RecordedChange>,
    /// The applied plan.
    pub plan: Arc<EditPlan>,
    /// The changes of the files.
    pub changes: Vec<FileChange>,
    /// Files that lost their set-user-ID or set-group-ID bit.
    pub lost_bits: Vec<String>,
}

/// Applies a plan and reports the changes to front ends.
///
/// # Errors
/// If the plan was not applied. Nothing has changed then, unless the error says
/// otherwise.
pub async fn apply_plan(
    cx: &Cx<Editor>,
    maker: ChangeOrigin<'_>,
    plan: EditPlan,
) -> Result<AppliedChange> {
    let further = plan.check_names()?;
    if plan.changed_numbers().next().is_none() {
        let (plan, changes, lost_bits) = (Arc::new(plan), Vec::new(), Vec::new());
        return Ok(AppliedChange { change: None, plan, changes, lost_bits });
    }
    let (history, place) = (cx.state().history()?.clone(), cx.state().editor_context(cx).await?);
    let plan = Arc::new(plan);
    let new = NewChange {
        session: place.session.clone(),
        tool: maker.tool.to_owned(),
        call: cx.id().to_string(),
        environment: place.environment.clone(),
        undoes: maker.undoes,
        files: Vec::new(),
    };
    let begun = {
        let (plan, history, place) = (Arc::clone(&plan), history.clone(), place.clone());
        cx.blocking(move |_| begin_change(&history, new, &plan, &place))
    };
    let (begun, _, drafts) =
        join3(begun, digest_large_files(cx, &plan), write_drafts(cx, &plan, &further)).await;
    let pending = begun?.map_err(history_error)?;
    let change = pending.change().clone();
    let told = {
        let plan = Arc::clone(&plan);
        cx.blocking(move |_| plan.file_changes())
    };
    let carried_out = async { execute_planned_changes(cx, &plan, &further, drafts?).await };
    let (carried_out, told) = join(carried_out, told).await;
    let facts = match carried_out {
        Ok(facts) => facts,
        Err(error) => return Err(error_after_rollback(cx, place, pending, error).await),
    };
    let bounds = cx.state().bounds.clone();
    let finish = move |_: &Reporter| {
        // If this fails, the next call finds the finished change and records it.
        pending.finish(ChangeOutcome::Done)?;
        history.prune_history(&bounds)
    };
    if let Err(error) = cx.blocking(finish).await? {
        cx.log(LogLevel::Warn, format_args!("the history of changes: {error}"));
    }
    let told = told?;
    remember_written_files(cx.state(), &plan, &change, &facts);
    for change in &told {
        cx.file_changed(change.clone());
    }
    let lost_bits = files_with_lost_mode_bits(&plan, &facts);
    Ok(AppliedChange { change: Some(change), plan, changes: told, lost_bits })
}

/// Digests the new content of large files while the old content is being stored. Other threads that
/// need such a digest wait for it.
async fn digest_large_files(cx: &Cx<Editor>, plan: &Arc<EditPlan>) -> Result<()> {
    let is_large =
        |number: &usize| plan.planned_bytes(*number).is_some_and(files::should_write_as_draft);
    let large: Vec<usize> = plan.changed_numbers().filter(is_large).collect();
    if large.is_empty() {
        return Ok(());
    }
    let plan = Arc::clone(plan);
    let work = move |_: &Reporter| {
        for number in large {
            match (&plan.files[number].before, plan.planned_content(number)) {
                (Some(before), Some(content)) => content.digest_reusing_prefix(&before.bytes),
                (None, Some(content)) => content.digest(),
                (_, None) => continue,
            };
        }
    };
    cx.blocking(work).await
}

/// Writes large files to drafts.
async fn write_drafts(
    cx: &Reporter,
    plan: &EditPlan,
    further: &BTreeSet<usize>,
) -> Result<FileDrafts> {
    let mut drafts = FileDrafts::new();
    let written = |number: &usize| !plan.is_pure_move(*number) && !further.contains(number);
    for number in plan.changed_numbers().filter(written) {
        // For new files, the folders are created later, when their turn comes.
        let (Some(before), Some(bytes)) = (&plan.files[number].before, plan.planned_bytes(number))
        else {
            continue;
        };
        if files::should_write_as_draft(bytes) && drafts.len() < DRAFTS_MAX {
            let (path, how) =
                (&plan.files[number].path, FileWriteMode::Over(before.facts.version.as_deref()));
            let permissions = plan.files[number].permissions;
            let draft = files::write_draft(cx, path, bytes, how, permissions).await;
            drafts.insert(number, draft.map_err(|error| add_mode_to_error(error, before))?);
        }
    }
    Ok(drafts)
}

/// Stores the content that will be replaced, and records the change.
fn begin_change(
    history: &History,
    mut new: NewChange,
    plan: &EditPlan,
    place: &EditorContext,
) -> std::result::Result<PendingChange, HistoryError> {
    // A prune may remove old content at this moment. The second attempt stores it again.
    for attempt in 0.. {
        new.files = file_transitions(history, plan, place)?;
        match history.begin_change(new.clone()) {
            Err(HistoryError::NotKept(_)) if attempt == 0 => {}
            begun => return begun,
        }
    }
    unreachable!("the second attempt returns")
}

fn file_transitions(
    history: &History,
    plan: &EditPlan,
    place: &EditorContext,
) -> std::result::Result<Vec<FileTransition>, HistoryError> {
    let mut steps = Vec::new();
    for number in plan.changed_numbers() {
        let file = &plan.files[number];
        let mode = |permissions: Option<u32>| permissions.unwrap_or_default();
        let before = match &file.before {
            Some(before) => {
                let (bytes, mode) = (&before.bytes, before.facts.mode);
                history.store_content_as(bytes.digest(), bytes)?;
                let (content, size) = (bytes.digest().clone(), bytes.len() as u64);
                Some(StoredFileState { content, size, mode })
            }
            None => None,
        };
        let after = plan.planned_content(number).map(|content| StoredFileState {
            content: content.digest().clone(),
            size: content.len() as u64,
            mode: before.as_ref().map_or(mode(file.permissions), |before| before.mode),
        });
        let moved_from = file.moved_from.map(|from| place.file_name(&plan.files[from].target));
        steps.push(FileTransition {
            path: place.file_name(&file.target),
            before,
            after,
            moved_from,
        });
    }
    Ok(steps)
}

/// Changes the files. Moves come first and deletions last, so that all content exists at any time.
async fn execute_planned_changes(
    cx: &Reporter,
    plan: &EditPlan,
    further: &BTreeSet<usize>,
    mut drafts: FileDrafts,
) -> Result<Vec<(usize, Option<FileFacts>)>> {
    let mut done = Vec::new();
    let version = |number: usize| {
        plan.files[number].before.as_ref().and_then(|before| before.facts.version.as_deref())
    };
    let changed: Vec<usize> = plan.changed_numbers().collect();
    for &number in changed.iter().filter(|number| plan.is_pure_move(**number)) {
        let file = &plan.files[number];
        let Some(from) = file.moved_from else { continue };
        let taken = if file.before.is_some() {
            ExistingTargetPolicy::Replaced
        } else {
            ExistingTargetPolicy::Refused
        };
        let paths = (&*plan.files[from].path, &*file.path);
        files::rename_file(cx, paths, version(from), taken).await?;
        done.push((number, files::read_facts(cx, &file.path).await.unwrap_or_default()));
    }
    for &number in &changed {
        let file = &plan.files[number];
        let bytes = match (&file.after, plan.planned_bytes(number)) {
            (PlannedContent::Bytes(_) | PlannedContent::From(_), Some(bytes))
                if !plan.is_pure_move(number) =>
            {
                bytes
            }
            _ => continue,
        };
        let how = if file.before.is_some() {
            FileWriteMode::Over(version(number))
        } else {
            FileWriteMode::New
        };
        let facts =
            match (already_written_facts(cx, plan, number, further).await?, drafts.remove(&number))
            {
                (Some(facts), _) => Ok(facts),
                (None, Some(draft)) => draft.finish().await,
                (None, None) => {
                    files::write_file(cx, &file.path, bytes, how, file.permissions).await
                }
            };
        let explain = |error| match &file.before {
            Some(before) => add_mode_to_error(error, before),
            None => error,
        };
        done.push((number, Some(facts.map_err(explain)?)));
    }
    for &number in &changed {
        let is_taken = |other: &usize| {
            plan.is_pure_move(*other) && plan.files[*other].moved_from == Some(number)
        };
        if plan.files[number].after == PlannedContent::Gone && !changed.iter().any(is_taken) {
            files::delete_file(cx, &plan.files[number].path, version(number)).await?;
        }
        if plan.files[number].after == PlannedContent::Gone {
            done.push((number, None));
        }
    }
    Ok(done)
}

/// Returns the metadata of a file that already has its new content, because an earlier step wrote
/// it under another name.
async fn already_written_facts(
    cx: &Reporter,
    plan: &EditPlan,
    number: usize,
    further: &BTreeSet<usize>,
) -> Result<Option<FileFacts>> {
    if !further.contains(&number) {
        return Ok(None);
    }
    let there = files::read_snapshot(cx, &plan.files[number].path).await?;
    let is_written = |there: &FileSnapshot| Some(&*there.bytes) == plan.planned_bytes(number);
    Ok(there.filter(is_written).map(|there| there.facts))
}

/// Adds a file's mode to the error of a write that the system does not permit.
fn add_mode_to_error(error: Error, before: &FileSnapshot) -> Error {
    if error.hint.is_some() || !error.message.ends_with("permission denied") {
        return error;
    }
    error.with_hint(format!("its mode is {:04o}", before.facts.mode & 0o7777))
}

/// Rolls back an incomplete change and adds the result to the error.
async fn error_after_rollback(
    cx: &Cx<Editor>,
    place: &EditorContext,
    pending: PendingChange,
    error: Error,
) -> Error {
    let is_alone = pending.change().files.len() == 1;
    match recover_changes::roll_back_pending(cx, place, pending).await {
        // A single file is written completely or not at all.
        Ok(left) if left.is_empty() && is_alone => error,
        Ok(left) if left.is_empty() => {
            let text = format!("{}; nothing was changed", error.message);
            Error { message: text, ..error }
        }
        Ok(left) => {
            let text = format!(
                "{}; earlier steps were rolled back, except for files that others have changed \
                 since: {}",
                error.message,
                left.join(", ")
            );
            Error { message: text, ..error }
        }
        Err(again) => {
            let text = format!(
                "{}; earlier steps could not be rolled back ({}), so the next call tries again",
                error.message, again.message
            );
            Error { message: text, ..error }
        }
    }
}

/// Finds files that lost the bits that run a program with its owner's or group's rights. Systems
/// clear these bits when the content changes.
fn files_with_lost_mode_bits(plan: &EditPlan, done: &[(usize, Option<FileFacts>)]) -> Vec<String> {
    const LENDS_RIGHTS: u32 = 0o6000;
    let lost = done.iter().filter(|(number, facts)| {
        let before = plan.files[*number].before.as_ref().map_or(0, |before| before.facts.mode);
        let after = facts.as_ref().map_or(before, |facts| facts.mode);
        before & !after & LENDS_RIGHTS != 0
    });
    lost.map(|(number, _)| plan.files[*number].path.clone()).collect()
}

/// Records the written files as seen, because the model knows its own content.
fn remember_written_files(
    editor: &Editor,
    plan: &EditPlan,
    change: &RecordedChange,
    done: &[(usize, Option<FileFacts>)],
) {
    let changed: Vec<usize> = plan.changed_numbers().collect();
    for (number, facts) in done {
        let file = &plan.files[*number];
        let Some(facts) = facts else {
            editor.forget_file(&file.target);
            continue;
        };
        let step = changed.iter().position(|other| other == number);
        let after = step.and_then(|step| change.files.get(step)?.after.as_ref());
        let sight = SeenFile {
            version: facts.version.clone(),
            digest: after.map(|kept| kept.content.clone()),
            text: plan.planned_bytes(*number).and_then(text_to_remember),
        };
        editor.remember_seen_file(&file.target, sight);
    }
}
