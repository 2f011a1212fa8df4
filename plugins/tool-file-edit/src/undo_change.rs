//! Undoes a change in all its files, or in none of them.

use jaato_plugin_sdk::prelude::*;

use crate::apply::{AppliedChange, ChangeOrigin, apply_plan};
use crate::editor::{Editor, EditorContext, history_error};
use crate::files::read_snapshot;
use crate::history::{FileTransition, HistoryError, UndoStep};
use crate::plan::{EditPlan, absolute_path};
use crate::recover_changes::read_stored_content;

/// Undoes a change.
///
/// # Errors
/// `conflict`, with the reasons. Nothing is changed then.
pub async fn undo_change(cx: &Cx<Editor>, tool: &str, step: &UndoStep) -> Result<AppliedChange> {
    let plan = plan_undo(cx, step).await?;
    apply_plan(cx, ChangeOrigin { tool, undoes: Some(step.change) }, plan).await
}

/// Plans to restore the files of a change, provided that each still has the state that the change
/// produced.
///
/// # Errors
/// The errors of [`undo_change`].
pub async fn plan_undo(cx: &Cx<Editor>, step: &UndoStep) -> Result<EditPlan> {
    let place = cx.state().editor_context(cx).await?;
    let mut plan = EditPlan::new(&place.folder);
    let mut hindrances = Vec::new();
    for file in &step.files {
        match add_restored_file(cx, place, &mut plan, file).await {
            Ok(None) => {}
            Ok(Some(hindrance)) => hindrances.push(hindrance),
            Err(error) if error.kind == ErrorKind::Conflict => hindrances.push(error.message),
            Err(error) => return Err(error),
        }
    }
    if !hindrances.is_empty() {
        let hint = "listBackups and restoreFile bring back any earlier state of a file";
        let error = history_error(HistoryError::Hindered { change: step.change, hindrances });
        return Err(error.with_hint(hint));
    }
    // Moved files are moved back.
    for (number, file) in step.files.iter().enumerate() {
        let from = file.moved_from.as_ref();
        let source = from.and_then(|from| step.files.iter().position(|other| other.path == *from));
        let Some(source) = source else { continue };
        let is_pure = file.after.as_ref().map(|it| &it.content)
            == step.files[source].before.as_ref().map(|it| &it.content);
        if is_pure && step.files[source].after.is_none() && file.before.is_none() {
            plan.plan_rename(number, source);
        }
    }
    for (number, file) in step.files.iter().enumerate() {
        let Some(before) = &file.before else {
            if plan.planned_bytes(number).is_some() {
                plan.plan_delete(number);
            }
            continue;
        };
        if plan.is_pure_move(number) {
            continue;
        }
        let bytes = read_stored_content(cx, &before.content).await?;
        plan.plan_write(number, bytes)?;
        plan.files[number].permissions = Some(before.mode);
    }
    Ok(plan)
}

/// Adds a file to the plan. Returns the reason if it cannot be restored.
async fn add_restored_file(
    cx: &Cx<Editor>,
    place: &EditorContext,
    plan: &mut EditPlan,
    file: &FileTransition,
) -> Result<Option<String>> {
    let path = file.path.as_str();
    if !file.path.is_in_environment(&place.environment) {
        return Ok(Some(format!("{path} is in another environment")));
    }
    let before = read_snapshot(cx, path).await?;
    let digest = move |_: &Reporter| {
        let found = before.as_ref().map(|before| before.bytes.digest().clone());
        (before, found)
    };
    let (before, found) = cx.blocking(digest).await?;
    if found.as_ref() == file.after.as_ref().map(|after| &after.content) {
        // The paths of the history are without links.
        plan.add_file(path, absolute_path(&place.folder, path), before)?;
        return Ok(None);
    }
    let now = if found.is_some() { "has changed since" } else { "no longer exists" };
    Ok(Some(format!("{path} {now}")))
}
