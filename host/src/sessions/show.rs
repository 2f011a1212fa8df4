//! `jaato session show`: the conversation as text.

use jaato_runtime::session_loop::HistoryEntry;
use jaato_runtime::sessions::{OwnerState, ReadProblem, SessionReader};
use jaato_runtime::types::{Part, Role};
use jaato_runtime::visible;
use serde_json::{Value, json};

use super::conversation::{NumberedEntry, SavedConversation, entry_note, entry_to_json};
use super::time::{format_age, format_utc};
use super::{SavedSessions, store_failure};
use crate::args::{GlobalArgs, OutputForm};
use crate::exit::{CommandFailure, CommandResult, Exit};
use crate::report;
use crate::terminal::{self, Channel};

/// The columns of a tool call that is not shown on a terminal.
const CALL_COLUMNS_MAX: usize = 200;

/// Prints the conversation of a session.
pub fn show_session(global: GlobalArgs, text: &str, output: OutputForm) -> CommandResult {
    let sessions = SavedSessions::for_user(global)?;
    let id = sessions.find(text)?;
    let mut reader = sessions.store.read_session(&id).map_err(store_failure)?;
    let conversation = SavedConversation::from_records(reader.read_rest().map_err(store_failure)?);
    report::print_problems(&session_problems(&reader, &conversation));
    let is_open = sessions.store.owner_state(&id).map_err(store_failure)? != OwnerState::Free;
    if output == OutputForm::Json {
        return report::print_exact_json(&json!({
            "id": id,
            "name": conversation.name(),
            "workspace": reader.header().workspace,
            "begun": format_utc(reader.begun_ms()),
            "is_open": is_open,
            "forked_from": reader.header().forked_from.as_ref().map(|(id, _)| id),
            "messages": conversation.entries.iter().map(entry_to_json).collect::<Value>(),
        }));
    }
    let name = conversation.name();
    let name = if name.is_empty() { "without a name" } else { &visible::visible_name(&name) };
    report::print_line(&format!("session {id}: {name}"))?;
    let workspace = visible::visible_name(&reader.header().workspace).into_owned();
    let open = if is_open { ", open now" } else { "" };
    report::print_line(&format!("in {workspace}, begun {}{open}", format_age(reader.begun_ms())))?;
    if let Some((from, _)) = &reader.header().forked_from {
        report::print_line(&format!("forked from {}", visible::visible_name(from)))?;
    }
    conversation.entries.iter().try_for_each(print_entry)?;
    Ok(Exit::Done)
}

/// Describes the parts of a file that could not be read.
pub(super) fn session_problems(reader: &SessionReader, read: &SavedConversation) -> Vec<String> {
    let damage = |problem: &ReadProblem| match problem {
        ReadProblem::TornEnd { bytes } => {
            format!("the last write of the session did not finish: {bytes} bytes were skipped")
        }
        ReadProblem::Damaged { line, bytes } => {
            format!("the session is damaged: {bytes} bytes from line {line} on were skipped")
        }
    };
    let mut problems: Vec<String> = reader.problems().iter().map(damage).collect();
    if read.damaged > 0 {
        let records = if read.damaged == 1 { "record does" } else { "records do" };
        problems.push(format!("{} {records} not fit and were left out", read.damaged));
    }
    problems
}

/// Prints a message after an empty line. Prints nothing for a message without anything to show.
pub(super) fn print_entry(entry: &NumberedEntry) -> Result<(), CommandFailure> {
    let lines = entry_lines(&entry.entry);
    if lines.is_empty() {
        return Ok(());
    }
    report::print_line(&format!("\n{}", entry_heading(entry)))?;
    // The indent shows that a line is part of the message.
    lines.iter().try_for_each(|line| report::print_line(format!("  {line}").trim_end()))
}

/// Names the sender of a message.
fn entry_heading(entry: &NumberedEntry) -> String {
    let note = entry_note(&entry.entry).map(|note| format!(" ({note})")).unwrap_or_default();
    let sender = match (entry.entry.message.role, entry.number, &entry.entry.made_by) {
        (Role::User, Some(number), _) => format!("[{number}] you"),
        (Role::User | Role::Tool | Role::Unknown, ..) => "jaato".to_owned(),
        (Role::Model, _, Some(model)) => visible::visible_name(model.as_str()).into_owned(),
        (Role::Model, _, None) => "model".to_owned(),
    };
    format!("{sender}{note}:")
}

/// Returns the content of a message: its texts, and a line for each other part.
pub(super) fn entry_lines(entry: &HistoryEntry) -> Vec<String> {
    let mut lines = Vec::new();
    for part in &entry.message.parts {
        match part {
            Part::Text { text, .. } => lines.extend(text.trim().lines().map(str::to_owned)),
            Part::ToolCall(call) => {
                lines.push(one_line(&format!("→ {} {}", call.name, call.arguments)));
            }
            Part::ToolResult(result) => {
                let failed = if result.is_error { " failed" } else { "" };
                let content = Value::Object(result.content.clone());
                lines.push(one_line(&format!("← {}{failed}: {content}", result.name)));
            }
            Part::Data(data) => {
                let name = data.name.as_deref().map(|name| format!(" {name}")).unwrap_or_default();
                lines.push(one_line(&format!("[{}{name}]", data.mime_type)));
            }
            // Thoughts are the model's own, and the others are for programs.
            Part::Thought { .. } | Part::Opaque(_) | Part::ToolsChanged(_) | Part::Unknown(_) => {}
        }
    }
    lines
}

fn one_line(text: &str) -> String {
    let columns = match terminal::output_is_terminal() {
        // The indent, and the column that stays free.
        true => terminal::size_of(Channel::Output).1.saturating_sub(3),
        false => CALL_COLUMNS_MAX,
    };
    terminal::exact_line(text, columns)
}
