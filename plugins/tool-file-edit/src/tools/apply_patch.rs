//! The tool `apply_patch`.

use std::sync::Arc;

use jaato_plugin_sdk::hooks::Preview;
use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::serde_json::Map;
use jaato_plugin_sdk::types::file_change::{FileChange, FileChangeKind};

use super::{
    applied_change_output, check_is_own_path, check_unchanged_since_seen, edit_error,
    format_line_counts, preview_plan, require_argument, require_existing_file, tolerance_note,
};
use crate::apply::{ChangeOrigin, apply_plan};
use crate::edit::patch::{
    FilePatch, PatchAction, PatchChunk, apply_patch_chunks as patched, parse_patch,
};
use crate::edit::{EditFailure, encode_new_text};
use crate::editor::Editor;
use crate::plan::EditPlan;
use crate::recover_changes::recover_unfinished_changes;

/// The maximum number of files in a patch.
const FILES_MAX: usize = 500;

/// Edit files with a patch. If one part fails, nothing is applied. Format:
/// `*** Begin Patch`, a header and lines for each file, `*** End Patch`. Headers:
/// `*** Add File: PATH`, then each line with `+`;
/// `*** Delete File: PATH`;
/// `*** Update File: PATH`, optionally `*** Move to: PATH`, then chunks in file order. A chunk is
/// `@@` or `@@ LINE` (a line before it, such as a class or function), then lines that begin with
/// ` ` (context, 3 around a change), `-` or `+`.
#[derive(Clone, ToolInput)]
#[tool(
    name = "apply_patch",
    core,
    category = "filesystem",
    destructive,
    open_world = false,
    previews,
    traits("file_writer", "edits_by_patch"),
    available_if(
        environment_has = "files",
        reason = "in a session whose execution environment has files"
    )
)]
struct ApplyPatch {
    /// The patch.
    #[schemars(extend("x-jaato-touches" = "patch"))]
    input: String,
}

impl Tool for ApplyPatch {
    type State = Editor;

    async fn call(self, cx: &Cx<Editor>) -> Result<Output> {
        let mended = recover_unfinished_changes(cx).await?;
        let (_, plan, notes) = self.plan_patch(cx).await?;
        let applied =
            apply_plan(cx, ChangeOrigin { tool: "apply_patch", undoes: None }, plan).await?;
        let mut result = changed_paths(&applied.changes);
        if !notes.is_empty() {
            result.insert("notes".to_owned(), notes.into());
        }
        Ok(applied_change_output(result, &applied, mended))
    }

    async fn preview(self, cx: &Cx<Editor>) -> Result<Preview> {
        let planned = self.plan_patch(cx).await;
        let count = planned.as_ref().map_or(0, |(files, ..)| files.len());
        let said = |changes: &[FileChange]| {
            let files = if count == 1 { "1 file" } else { &format!("{count} files") };
            format!("Patch {files} {}", format_line_counts(changes))
        };
        preview_plan(cx, planned.map(|(_, plan, _)| plan), said).await
    }
}

tool!(ApplyPatch);

/// Lists the changed paths by the kind of their change.
fn changed_paths(changes: &[FileChange]) -> Map<String, Value> {
    let mut lists: [(&str, Vec<Value>); 4] =
        ["added", "modified", "deleted", "moved"].map(|key| (key, Vec::new()));
    let [added, modified, deleted, moved] = &mut lists;
    for change in changes {
        let path = change.path.as_str();
        match (change.kind, &change.moved_from) {
            (FileChangeKind::Created, _) => added.1.push(path.into()),
            (FileChangeKind::Deleted, _) => deleted.1.push(path.into()),
            (FileChangeKind::Moved, Some(from)) => {
                moved.1.push(json!({ "from": from, "to": path }));
                if change.lines_added + change.lines_removed > 0 {
                    modified.1.push(from.as_str().into());
                }
            }
            (FileChangeKind::Changed | FileChangeKind::Moved | FileChangeKind::Unknown, _) => {
                modified.1.push(path.into());
            }
        }
    }
    let mut result = json_object!({ "success": true });
    for (key, paths) in lists {
        if !paths.is_empty() {
            result.insert(key.to_owned(), paths.into());
        }
    }
    if changes.is_empty() {
        result.insert("unchanged".to_owned(), true.into());
    }
    result
}

impl ApplyPatch {
    /// Plans the whole patch. Also returns where files write the lines differently.
    async fn plan_patch(&self, cx: &Cx<Editor>) -> Result<(Vec<FilePatch>, EditPlan, Vec<String>)> {
        let wrong = |text: String| Error::new(ErrorKind::InvalidArguments, text);
        require_argument("input", &self.input)?;
        let files =
            parse_patch(&self.input).map_err(|text| wrong(format!("invalid patch: {text}")))?;
        if files.len() > FILES_MAX {
            return Err(wrong(format!("a patch changes at most {FILES_MAX} files")));
        }
        let mut plan = EditPlan::new(&cx.state().editor_context(cx).await?.folder);
        let mut notes = Vec::new();
        for file in &files {
            plan = match &file.action {
                PatchAction::Add(text) => plan_added_file(cx, plan, &file.path, text).await?,
                PatchAction::Delete => plan_deletion(cx, plan, &file.path).await?,
                PatchAction::Update { move_to, chunks } => {
                    plan = plan_update(cx, plan, &file.path, chunks, &mut notes).await?;
                    match move_to {
                        Some(to) => plan_rename(cx, plan, &file.path, to).await?,
                        None => plan,
                    }
                }
            };
        }
        Ok((files, plan, notes))
    }
}

/// Writes a whole file. An existing file keeps its encoding and line ends.
async fn plan_added_file(
    cx: &Cx<Editor>,
    mut plan: EditPlan,
    path: &str,
    text: &str,
) -> Result<EditPlan> {
    let number = plan.open_file(cx, path).await?;
    check_unchanged_since_seen(cx, &plan, number).await?;
    let made = match plan.planned_bytes(number) {
        Some(before) => encode_new_text(before, text),
        None => Ok(text.as_bytes().to_vec()),
    };
    let made = made.map_err(|failed| edit_error(path, &[], "", failed))?;
    plan.plan_write(number, made)?;
    Ok(plan)
}

async fn plan_deletion(cx: &Cx<Editor>, mut plan: EditPlan, path: &str) -> Result<EditPlan> {
    let number = require_existing_file(cx, &mut plan, path).await?;
    check_is_own_path(cx, &plan, number).await?;
    check_unchanged_since_seen(cx, &plan, number).await?;
    plan.plan_delete(number);
    Ok(plan)
}

async fn plan_update(
    cx: &Cx<Editor>,
    mut plan: EditPlan,
    path: &str,
    chunks: &[PatchChunk],
    notes: &mut Vec<String>,
) -> Result<EditPlan> {
    let number =
        require_existing_file(cx, &mut plan, path).await.map_err(|error| match error.kind {
            ErrorKind::NotFound => error.with_hint("`*** Add File: PATH` writes a new file"),
            _ => error,
        })?;
    check_unchanged_since_seen(cx, &plan, number).await?;
    let (chunks, plan_there) = (chunks.to_vec(), Arc::new(plan));
    let (path_there, plan) = (path.to_owned(), Arc::clone(&plan_there));
    let work = move |_: &Reporter| {
        let bytes = plan.planned_bytes(number).unwrap_or_default();
        patched(bytes, &chunks)
            .map_err(|failed: EditFailure| edit_error(&path_there, bytes, "", failed))
    };
    let edited = cx.blocking(work).await??;
    let mut plan = Arc::unwrap_or_clone(plan_there);
    plan.plan_write(number, edited.bytes)?;
    let forgiven = edited.forgiven.map(|differences| tolerance_note(&differences));
    notes.extend(forgiven.into_iter().chain(edited.ambiguous).map(|it| format!("{path}: {it}")));
    Ok(plan)
}

async fn plan_rename(
    cx: &Cx<Editor>,
    mut plan: EditPlan,
    from: &str,
    to: &str,
) -> Result<EditPlan> {
    let (source, target) = (plan.open_file(cx, from).await?, plan.open_file(cx, to).await?);
    if source == target {
        return Ok(plan);
    }
    if plan.planned_bytes(target).is_some() {
        let error = Error::new(ErrorKind::Conflict, format!("Destination already exists: {to}"));
        return Err(error.with_hint("to replace it, delete it earlier in the same patch"));
    }
    check_is_own_path(cx, &plan, source).await?;
    plan.plan_rename(source, target);
    Ok(plan)
}
