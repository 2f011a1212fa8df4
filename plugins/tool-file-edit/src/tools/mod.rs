//! The tools, one per file, and their shared functions.

mod apply_patch;
mod find_and_replace;
mod list_backups;
mod move_file;
mod multi_file_edit;
mod read_file;
mod remove_file;
mod restore_file;
mod undo_file_change;
mod update_file;
mod write_new_file;

use std::sync::Arc;

use jaato_plugin_sdk::hooks::Preview;
use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::serde_json::Map;
use jaato_plugin_sdk::types::file_change::FileChange;

use crate::apply::AppliedChange;
use crate::diff::{self, FileTexts};
use crate::edit::{EditFailure, MatchFailure, quote_start};
use crate::editor::Editor;
use crate::files::{FileSnapshot, check_is_no_link, not_text_error};
use crate::plan::EditPlan;
use crate::seen_files::{SeenFile, text_to_remember};
use crate::text::decode_bytes;

/// Returns an error if an argument is empty.
fn require_argument<'a>(name: &str, value: &'a str) -> Result<&'a str> {
    if value.trim().is_empty() {
        return Err(Error::new(ErrorKind::InvalidArguments, format!("{name} is required")));
    }
    Ok(value)
}

/// Opens a file that must exist.
async fn require_existing_file(cx: &Cx<Editor>, plan: &mut EditPlan, path: &str) -> Result<usize> {
    let number = plan.open_file(cx, path).await?;
    match plan.planned_bytes(number) {
        Some(_) => Ok(number),
        None => plan.open_existing(cx, path).await,
    }
}

/// Returns an error if the path is a link.
async fn check_is_own_path(cx: &Cx<Editor>, plan: &EditPlan, number: usize) -> Result<()> {
    let file = &plan.files[number];
    match file.before {
        Some(_) => check_is_no_link(cx, &file.path).await,
        None => Ok(()),
    }
}

/// Explains why an edit of a file failed.
fn edit_error(path: &str, bytes: &[u8], old: &str, failed: EditFailure) -> Error {
    let error = |kind, text: String| Error::new(kind, format!("Targeted edit failed: {text}"));
    let places = |lines: &[usize]| {
        let lines: Vec<String> = lines.iter().map(usize::to_string).collect();
        format!("found in line {}", lines.join(", "))
    };
    match failed {
        EditFailure::NotText => not_text_error(path, bytes, bytes.len() as u64),
        EditFailure::Lacks(lacking, name) => {
            let text = format!("{path} is encoded as {name}, which has no '{lacking}'");
            Error::new(ErrorKind::InvalidArguments, text)
        }
        EditFailure::Chunk(text, hint) => {
            let text = format!("{path} cannot be patched: {text}");
            let hint = hint.unwrap_or_else(|| "read the file again and copy exactly".to_owned());
            Error::new(ErrorKind::NotFound, text).with_hint(hint)
        }
        EditFailure::Missed(MatchFailure::Empty, _) => {
            let text = "'old' is empty and the file is not".to_owned();
            error(ErrorKind::InvalidArguments, text)
                .with_hint("give the text to replace, or a prologue or epilogue to insert")
        }
        EditFailure::Missed(MatchFailure::NotFound, near) => {
            let text = format!("Search text not found: {}", quote_start(old));
            let hint = near.unwrap_or_else(|| "read the file again and copy exactly".to_owned());
            error(ErrorKind::NotFound, text).with_hint(hint)
        }
        EditFailure::Missed(MatchFailure::NotBetween(lines), _) => {
            let text = format!(
                "Search text found, but not between prologue and epilogue: {}",
                quote_start(old)
            );
            error(ErrorKind::NotFound, text).with_hint(places(&lines))
        }
        EditFailure::Missed(MatchFailure::Ambiguous { count, lines }, _) => {
            let text = format!(
                "Search text matched {count} times. Use prologue/epilogue to disambiguate: {}",
                quote_start(old)
            );
            let hint = format!("{}; `replace_all` replaces each", places(&lines));
            error(ErrorKind::Conflict, text).with_hint(hint)
        }
        EditFailure::Missed(MatchFailure::Alike { count, lines }, near) => {
            let text = format!(
                "Search text not found, but {count} places differ from it only in blanks, quotes, \
                 dashes or composed letters: {}",
                quote_start(old)
            );
            let near = near.map(|near| format!("; {near}")).unwrap_or_default();
            error(ErrorKind::Conflict, text).with_hint(format!("{}{near}", places(&lines)))
        }
    }
}

/// Tells the model that the file writes the text differently.
fn tolerance_note(differences: &str) -> String {
    format!("this text differs in the file ({differences}); text that you did not change is kept")
}

/// Returns an error, once, if the file has changed since the model saw it, and shows the changes.
///
/// # Errors
/// `conflict`. The changes shown in the error count as seen.
async fn check_unchanged_since_seen(cx: &Cx<Editor>, plan: &EditPlan, number: usize) -> Result<()> {
    let file = &plan.files[number];
    let Some(snapshot) = &file.before else { return Ok(()) };
    let Some(seen) = cx.state().last_seen_file(&file.target) else { return Ok(()) };
    let version = snapshot.facts.version.as_deref();
    if seen.version.is_some() && seen.version.as_deref() == version {
        return Ok(());
    }
    let (path, target) = (file.path.clone(), file.target.clone());
    let (snapshot, state) = (Arc::clone(snapshot), cx.shared_state());
    let refused = move |_: &Reporter| {
        let sight = fully_seen_file(&snapshot);
        let is_same = seen.is_same_file(None, || snapshot.bytes.digest().clone());
        let diff = match is_same {
            true => None,
            false => Some(describe_changes_since(&state, &path, &seen, &snapshot)),
        };
        state.remember_seen_file(&target, sight);
        (path, diff)
    };
    let (path, diff) = cx.blocking(refused).await?;
    let Some(diff) = diff else { return Ok(()) };
    let text = format!("{path} has changed since you read it, so nothing was done");
    let hint = format!("{diff}this counts as a read: call again if the change is still right");
    Err(Error::new(ErrorKind::Conflict, text).with_hint(hint))
}

/// Shows the changes since a file was seen.
fn describe_changes_since(
    editor: &Editor,
    path: &str,
    seen: &SeenFile,
    snapshot: &FileSnapshot,
) -> String {
    // A text that is not remembered may be in the history.
    let kept = || {
        let bytes = editor.history().ok()?.read_content(seen.digest.as_ref()?).ok()?;
        Some(decode_bytes(&bytes).ok()?.text.into_owned())
    };
    let old = seen.text.as_ref().map(|text| text.to_string()).or_else(kept);
    let new = decode_bytes(&snapshot.bytes).ok().map(|decoded| decoded.text);
    let (Some(old), Some(new)) = (old, new) else { return "read it again; ".to_owned() };
    let texts = FileTexts { old: Some(&old), new: Some(&new) };
    let change = diff::file_change(
        path,
        jaato_plugin_sdk::types::file_change::FileChangeKind::Changed,
        texts,
    );
    format!("what changed:\n{}\n", diff::format_short_diff(&[change]))
}

/// Returns the sight of a file that the model has seen completely.
fn fully_seen_file(snapshot: &FileSnapshot) -> SeenFile {
    let (version, digest) = (snapshot.facts.version.clone(), snapshot.bytes.digest().clone());
    SeenFile { version, digest: Some(digest), text: text_to_remember(&snapshot.bytes) }
}

/// Creates the preview of a plan, or of the reason why there is none.
///
/// # Errors
/// Errors that do not concern the call itself.
async fn preview_plan(
    cx: &Cx<Editor>,
    planned: Result<EditPlan>,
    said: impl FnOnce(&[FileChange]) -> String,
) -> Result<Preview> {
    let plan = match planned.and_then(|plan| plan.check_names().map(|_| plan)) {
        Ok(plan) => plan,
        Err(error) => return refusal_preview(error),
    };
    let files = plan.changed_numbers().map(|number| plan.files[number].path.clone()).collect();
    let state = cx.shared_state();
    let plan_changes = move |_: &Reporter| {
        // A file that changes after the user has seen the preview must not be overwritten.
        for file in &plan.files {
            if let Some(snapshot) = &file.before
                && state.last_seen_file(&file.target).is_none()
            {
                state.remember_seen_file(&file.target, fully_seen_file(snapshot));
            }
        }
        plan.file_changes()
    };
    let changes = cx.blocking(plan_changes).await?;
    Ok(Preview { files, ..Preview { changes: changes.clone(), ..Preview::text(said(&changes)) } })
}

/// Returns the preview of a call that would fail even if it were allowed.
fn refusal_preview(error: Error) -> Result<Preview> {
    match error.kind {
        ErrorKind::InvalidArguments
        | ErrorKind::NotFound
        | ErrorKind::Conflict
        | ErrorKind::PermissionDenied
        | ErrorKind::LimitReached => Ok(Preview::refused(error)),
        _ => Err(error),
    }
}

/// Adds the changes as a short diff, and the recovered changes, to a result.
fn change_output(
    mut result: Map<String, Value>,
    changes: &[FileChange],
    mended: Vec<String>,
) -> Output {
    let diff = diff::format_short_diff(changes);
    if !diff.is_empty() {
        result.insert("diff".to_owned(), diff.into());
    }
    if !mended.is_empty() {
        result.insert("mended".to_owned(), mended.into());
    }
    Output::json(Value::Object(result))
}

/// Adds the changes of an applied plan to a result, with a note about lost mode bits.
fn applied_change_output(
    mut result: Map<String, Value>,
    applied: &AppliedChange,
    mended: Vec<String>,
) -> Output {
    if !applied.lost_bits.is_empty() {
        let text = format!(
            "the set-user-ID and set-group-ID bits were removed from: {}",
            applied.lost_bits.join(", ")
        );
        result.insert("mode_note".to_owned(), text.into());
    }
    change_output(result, &applied.changes, mended)
}

/// Returns the backup ID of a file before a change.
fn backup_id_of(applied: &AppliedChange, number: usize) -> Option<String> {
    let step = applied.plan.changed_numbers().position(|other| other == number)?;
    let change = applied.change.as_ref()?;
    change.backup_id_of(&change.files.get(step)?.path).map(|id| id.to_string())
}

/// Counts the added and removed lines.
fn format_line_counts(changes: &[FileChange]) -> String {
    let added: u64 = changes.iter().map(|change| change.lines_added).sum();
    let removed: u64 = changes.iter().map(|change| change.lines_removed).sum();
    format!("(+{added}, -{removed} lines)")
}
