//! The commands `undo` and `changes`, with which the user undoes changes.

use jaato_plugin_sdk::form::{FormOutcome, form};
use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::serde_json;
use jaato_plugin_sdk::types::CommandSpec;
use jaato_plugin_sdk::types::ask::{FORM_TEXT_BYTES_MAX, FieldKind, FieldOption, FormField};
use jaato_plugin_sdk::types::file_change::FileChange;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::apply::{ChangeOrigin, apply_plan};
use crate::diff;
use crate::editor::{Editor, history_error};
use crate::history::{ChangeId, FilePath, ListedChange, SessionPeriod, UndoStep};
use crate::recover_changes::recover_unfinished_changes;
use crate::undo_change::{plan_undo, undo_change};

/// The maximum number of listed changes.
const CHANGES_MAX: usize = 30;

/// The maximum number of files that are named of a change.
const FILES_NAMED_MAX: usize = 3;

/// The answers in the form.
const DO_IT: &str = "take it back";
const LEAVE_IT: &str = "leave it";

/// The arguments of `undo`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct UndoArguments {
    change: Option<String>,
    yes: bool,
}

/// The arguments of `undo_since`.
#[derive(Debug, Deserialize)]
struct UndoSinceArguments {
    sessions: Vec<SessionPeriod>,
    at_ms: i64,
}

/// Describes the commands.
pub fn command_specs() -> Vec<CommandSpec> {
    let undo = CommandSpec {
        name: "undo".to_owned(),
        description:
            "Takes back what the file tools changed: the last change, or one by its number"
                .to_owned(),
        parameters: json!({
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "change": { "type": "string", "description": "Its number, as `changes` lists it." },
                "yes": { "type": "boolean", "description": "Do not ask." },
            },
        }),
        // The model must know that its edit was undone.
        share_with_model: true,
        ..CommandSpec::default()
    };
    let changes = CommandSpec {
        name: "changes".to_owned(),
        description: "Lists what the file tools changed in this workspace, for `undo`".to_owned(),
        ..CommandSpec::default()
    };
    let undo_since = CommandSpec {
        name: "undo_since".to_owned(),
        description: "Takes back what the file tools changed in sessions since a time, as \
                      `/rewind NUMBER files` does"
            .to_owned(),
        // Only the host knows the sessions and the time.
        unlisted: true,
        parameters: json!({
            "type": "object",
            "additionalProperties": false,
            "required": ["sessions", "at_ms"],
            "properties": {
                "sessions": {
                    "type": "array",
                    "description": "The session, and those of which it is a copy.",
                    "items": {
                        "type": "object",
                        "additionalProperties": false,
                        "required": ["session", "until_ms"],
                        "properties": {
                            "session": { "type": "string", "description": "Its id." },
                            "until_ms": {
                                "type": "integer",
                                "description": "The last time that counts.",
                            },
                        },
                    },
                },
                "at_ms": {
                    "type": "integer",
                    "description": "The time in milliseconds since 1970.",
                },
            },
        }),
        ..CommandSpec::default()
    };
    vec![undo, undo_since, changes]
}

/// Runs a command.
///
/// # Errors
/// If the command failed.
pub async fn run_command(cx: &Cx<Editor>, name: &str, arguments: Value) -> Result<Output> {
    match name {
        "undo" => undo_single_change(cx, parse_arguments(arguments)?).await,
        "undo_since" => undo_changes_since(cx, parse_arguments(arguments)?).await,
        "changes" => list_changes(cx).await,
        _ => {
            let text = format!("unknown command `{name}`");
            Err(Error::new(ErrorKind::UnknownOperation, text))
        }
    }
}

fn parse_arguments<T: DeserializeOwned>(arguments: Value) -> Result<T> {
    serde_json::from_value(arguments)
        .map_err(|error| Error::new(ErrorKind::InvalidArguments, error.to_string()))
}

async fn list_changes(cx: &Cx<Editor>) -> Result<Output> {
    let history = cx.state().history()?.clone();
    let listed =
        cx.blocking(move |_| history.list_changes(CHANGES_MAX)).await?.map_err(history_error)?;
    if listed.is_empty() {
        return Ok(Output::text("The file tools have changed nothing in this workspace."));
    }
    let lines: Vec<String> = listed.iter().map(format_change_line).collect();
    Ok(Output::text(lines.join("\n")))
}

fn format_change_line(change: &ListedChange) -> String {
    let state = match (change.undoes, change.is_taken_back) {
        (Some(undoes), true) => format!("  (undid {undoes})"),
        (Some(undoes), false) => format!("  (redid {undoes})"),
        (None, true) => "  (undone)".to_owned(),
        (None, false) => String::new(),
    };
    let at = diff::format_timestamp(change.at_ms);
    let (id, tool, files) = (change.id, &change.tool, format_file_names(&change.files));
    format!("{id:>5}  {at}  {tool:<15} {files}{state}")
}

fn format_file_names(files: &[FilePath]) -> String {
    let mut names: Vec<&str> = files.iter().take(FILES_NAMED_MAX).map(FilePath::as_str).collect();
    let more = format!("and {} more", files.len().saturating_sub(FILES_NAMED_MAX));
    if files.len() > FILES_NAMED_MAX {
        names.push(&more);
    }
    names.join(", ")
}

async fn undo_single_change(cx: &Cx<Editor>, asked: UndoArguments) -> Result<Output> {
    recover_unfinished_changes(cx).await?;
    let step = choose_undo_step(cx, asked.change.as_deref()).await?;
    let plan = plan_undo(cx, &step).await?;
    let told = plan.clone();
    let shown = cx.blocking(move |_| told.file_changes()).await?;
    let files: Vec<FilePath> = step.files.iter().map(|file| file.path.clone()).collect();
    let (id, tool, files) = (step.change, &step.tool, format_file_names(&files));
    if !asked.yes && !ask_for_approval(cx, &step, &shown).await? {
        return Ok(Output::text(format!("Change {id} was not undone.")));
    }
    let applied = apply_plan(cx, ChangeOrigin { tool: "undo", undoes: Some(id) }, plan).await?;
    let again = applied.change.map(|change| format!(" `undo {}` redoes it.", change.id));
    let again = again.unwrap_or_default();
    Ok(Output::text(format!("Change {id} ({tool}: {files}) was undone.{again}")))
}

/// Undoes the changes of sessions since a time, the newest first. A change that cannot be undone
/// is named, and the others are undone.
async fn undo_changes_since(cx: &Cx<Editor>, asked: UndoSinceArguments) -> Result<Output> {
    recover_unfinished_changes(cx).await?;
    let history = cx.state().history()?.clone();
    let UndoSinceArguments { sessions, at_ms } = asked;
    let found = cx.blocking(move |_| history.changes_since(&sessions, at_ms));
    let (mut undone, mut kept) = (Vec::new(), Vec::new());
    for id in found.await?.map_err(history_error)? {
        let history = cx.state().history()?.clone();
        let step = match cx.blocking(move |_| history.undo_step_of_change(id)).await? {
            Ok(step) => step,
            Err(error) => {
                kept.push(history_error(error).message);
                continue;
            }
        };
        match undo_change(cx, "undo", &step).await {
            Ok(_) => undone.extend(step.files.iter().map(|file| file.path.as_str().to_owned())),
            Err(error) => kept.push(error.message),
        }
    }
    undone.sort();
    undone.dedup();
    Ok(Output::json(json!({ "undone": undone, "kept": kept })))
}

/// Finds the requested change. Without a number, this is the last change of the session, or else of
/// the workspace.
async fn choose_undo_step(cx: &Cx<Editor>, named: Option<&str>) -> Result<UndoStep> {
    let named = named.map(str::trim).filter(|text| !text.is_empty());
    let id = named.map(|text| {
        text.parse::<ChangeId>().map_err(|()| {
            let text = format!("`{text}` is not the number of a change");
            Error::new(ErrorKind::InvalidArguments, text).with_hint("`changes` lists them")
        })
    });
    let (id, session) = (id.transpose()?, cx.state().editor_context(cx).await?.session.clone());
    let history = cx.state().history()?.clone();
    let find = move |_: &Reporter| {
        let latest = || match history.latest_change(Some(&session))? {
            Some(id) => Ok(Some(id)),
            None => history.latest_change(None),
        };
        let id = match id {
            Some(id) => Some(id),
            None => latest().map_err(history_error)?,
        };
        let nothing = || Error::new(ErrorKind::NotFound, "no change to undo");
        history.undo_step_of_change(id.ok_or_else(nothing)?).map_err(history_error)
    };
    cx.blocking(find).await?
}

/// Shows the planned changes and asks the user.
async fn ask_for_approval(
    cx: &Cx<Editor>,
    step: &UndoStep,
    changes: &[FileChange],
) -> Result<bool> {
    let (id, tool, at) = (step.change, &step.tool, diff::format_timestamp(step.at_ms));
    let mut text = diff::format_short_diff(changes);
    if text.is_empty() {
        text = changes.iter().map(|change| change.path.clone()).collect::<Vec<_>>().join("\n");
    }
    text.truncate(text.floor_char_boundary(FORM_TEXT_BYTES_MAX - 1));
    let option = |value: &str| FieldOption { value: value.to_owned(), ..FieldOption::default() };
    let field = FormField {
        name: "undo".to_owned(),
        text,
        kind: FieldKind::Choice,
        options: [DO_IT, LEAVE_IT].map(option).to_vec(),
        ..FormField::default()
    };
    let title = format!("Undo change {id} ({tool}, {at})?");
    let answer = cx.ask(&form(title).field(field)).await?;
    if answer.outcome == FormOutcome::Nobody {
        let text = format!("change {id} was not undone: no user can confirm it");
        let hint = format!("`jaato undo {id} --yes` undoes it without asking");
        return Err(Error::new(ErrorKind::PermissionDenied, text).with_hint(hint));
    }
    Ok(answer.values.get("undo").and_then(Value::as_str) == Some(DO_IT))
}
