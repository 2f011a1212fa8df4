//! Reads the sessions of pi: `~/.pi/agent/sessions/FOLDER/TIME_ID.jsonl`.
//!
//! The first line is a header. The other lines are entries of a tree through `parentId`, and the
//! current branch ends with the last one. In files of version 1, entries have no ids and follow
//! each other.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use jaato_types::{Part, SessionId, ToolCall};
use serde_json::Value;

use super::assemble::{ConversationPiece, TimedPiece, text_content};
use super::content::{attachment_text, content_text};
use super::error::ImportError;
use super::json_line::{JsonLines, JsonObject, SourceLine, is_true_field, parse_time, text_field};
use super::notes::{ImportLoss, ImportNotes};
use super::{ForeignSession, ImportSource};
use crate::export::Transcript;

/// The newest version whose entries this reader knows.
const KNOWN_VERSION: u64 = 3;

/// Entries that hold no part of the conversation.
const BOOKKEEPING: &[&str] =
    &["custom", "label", "model_change", "session_info", "thinking_level_change", "usage"];

/// Reads a session.
pub fn read_pi_session(
    path: &Path,
    notes: &mut ImportNotes,
) -> Result<ForeignSession, ImportError> {
    let mut lines = JsonLines::open(path)?;
    let first = lines.next_line()?;
    let Some((_, SourceLine::Object(header))) = first else {
        return Err(ImportError::not_a_session(path, ImportSource::Pi));
    };
    if text_field(&header, "type") != "session" {
        return Err(ImportError::not_a_session(path, ImportSource::Pi));
    }
    let version = header.get("version").and_then(Value::as_u64).unwrap_or(1);
    if version > KNOWN_VERSION {
        notes.add_sentence(format!(
            "The file has format {version}, and this jaato knows formats up to {KNOWN_VERSION}, so \
             parts of the conversation may be missing."
        ));
    }
    let mut entries = Vec::new();
    while let Some((number, line)) = lines.next_line()? {
        match line {
            SourceLine::Object(entry) => entries.push(entry),
            SourceLine::Damaged => notes.note_damaged_line(number),
        }
    }
    let mut transcript = Transcript {
        id: SessionId::from(text_field(&header, "id")),
        workspace: text_field(&header, "cwd").to_owned(),
        begun_ms: parse_time(header.get("timestamp")).unwrap_or_default(),
        ..Transcript::default()
    };
    if let Some(named) = entries.iter().rfind(|it| text_field(it, "type") == "session_info") {
        transcript.name = jaato_types::text::one_line(text_field(named, "name"));
    }
    let branch = current_branch(entries, notes);
    Ok(ForeignSession { transcript, pieces: branch_pieces(&branch, notes) })
}

/// Returns the entries on the path to the last one.
fn current_branch(entries: Vec<JsonObject>, notes: &mut ImportNotes) -> Vec<JsonObject> {
    let ids: HashMap<&str, usize> =
        entries.iter().enumerate().map(|(at, it)| (text_field(it, "id"), at)).collect();
    let mut path = HashSet::new();
    let mut next = entries.len().checked_sub(1);
    while let Some(at) = next.filter(|at| path.insert(*at)) {
        let entry = &entries[at];
        let has_tree = entry.contains_key("parentId");
        next = match text_field(entry, "parentId") {
            "" if has_tree => None,
            // A file of version 1, or an entry that names a missing one.
            "" => at.checked_sub(1),
            parent => ids.get(parent).copied().or_else(|| at.checked_sub(1)),
        };
    }
    let is_message = |it: &JsonObject| text_field(it, "type") == "message";
    let others = entries.iter().enumerate().filter(|(at, it)| !path.contains(at) && is_message(it));
    notes.count_losses(ImportLoss::OtherBranch, others.count() as u64);
    let on_path = entries.into_iter().enumerate().filter(|(at, _)| path.contains(at));
    on_path.map(|(_, entry)| entry).collect()
}

fn branch_pieces(branch: &[JsonObject], notes: &mut ImportNotes) -> Vec<TimedPiece> {
    let compaction = branch.iter().rfind(|it| text_field(it, "type") == "compaction");
    let first_kept = compaction.map(|it| text_field(it, "firstKeptEntryId"));
    let has_first_kept = branch.iter().any(|it| Some(text_field(it, "id")) == first_kept);
    let mut pieces = Vec::new();
    for entry in branch {
        let at_ms = parse_time(entry.get("timestamp")).unwrap_or_default();
        let is_compaction = text_field(entry, "type") == "compaction";
        // The summary precedes the entries that were kept, although it was written after them.
        let is_cut = match first_kept {
            Some(id) if has_first_kept => text_field(entry, "id") == id,
            Some(_) => compaction.is_some_and(|it| std::ptr::eq(it, entry)),
            None => false,
        };
        if let Some(compaction) = compaction.filter(|_| is_cut) {
            pieces.push((at_ms, ConversationPiece::Compacted));
            let summary = text_field(compaction, "summary").to_owned();
            pieces.push((at_ms, ConversationPiece::Summary(summary)));
        }
        if !is_compaction {
            pieces.extend(entry_piece(entry, notes).map(|piece| (at_ms, piece)));
        }
    }
    pieces
}

fn entry_piece(entry: &JsonObject, notes: &mut ImportNotes) -> Option<ConversationPiece> {
    match text_field(entry, "type") {
        "message" => message_piece(entry.get("message")?.as_object()?, notes),
        "branch_summary" => {
            Some(ConversationPiece::Summary(text_field(entry, "summary").to_owned()))
        }
        "custom_message" => Some(ConversationPiece::News(user_parts(entry, notes))),
        kind if BOOKKEEPING.contains(&kind) => None,
        other => {
            notes.count_unknown(other);
            None
        }
    }
}

fn message_piece(message: &JsonObject, notes: &mut ImportNotes) -> Option<ConversationPiece> {
    match text_field(message, "role") {
        "user" => Some(ConversationPiece::Prompt(user_parts(message, notes))),
        "assistant" => Some(answer_piece(message, notes)),
        "toolResult" => Some(ConversationPiece::Result {
            call_id: text_field(message, "toolCallId").to_owned(),
            content: text_content(content_text(message.get("content"), notes)),
            is_error: is_true_field(message, "isError"),
        }),
        "custom" | "hookMessage" => Some(ConversationPiece::News(user_parts(message, notes))),
        "bashExecution" if is_true_field(message, "excludeFromContext") => {
            notes.count_loss(ImportLoss::KeptFromModel);
            None
        }
        "bashExecution" => {
            let (command, output) = (text_field(message, "command"), text_field(message, "output"));
            let text = format!("The user ran `{command}`:\n\n{output}");
            Some(ConversationPiece::News(vec![Part::text(text)]))
        }
        "system" => {
            notes.count_loss(ImportLoss::SystemPrompt);
            None
        }
        other => {
            notes.count_unknown(&format!("message of role {other}"));
            None
        }
    }
}

fn user_parts(message: &JsonObject, notes: &mut ImportNotes) -> Vec<Part> {
    let content = message.get("content");
    if let Some(Value::String(text)) = content {
        return vec![Part::text(text)];
    }
    let blocks = content.and_then(Value::as_array).into_iter().flatten();
    let part = |block: &JsonObject| match text_field(block, "type") {
        "text" => Part::text(text_field(block, "text")),
        "image" => Part::text(attachment_text(block, notes)),
        other => {
            notes.count_unknown(other);
            Part::text("")
        }
    };
    blocks.filter_map(Value::as_object).map(part).collect()
}

fn answer_piece(message: &JsonObject, notes: &mut ImportNotes) -> ConversationPiece {
    let (provider, model) = (text_field(message, "provider"), text_field(message, "model"));
    let is_named = !provider.is_empty() && !model.is_empty();
    let model = is_named.then(|| format!("{provider}/{model}"));
    let mut parts = Vec::new();
    let blocks = message.get("content").and_then(Value::as_array).into_iter().flatten();
    for block in blocks.filter_map(Value::as_object) {
        let signatures = ["textSignature", "thinkingSignature", "thoughtSignature"];
        let signed = signatures.iter().filter(|name| !text_field(block, name).is_empty()).count();
        notes.count_losses(ImportLoss::Signature, signed as u64);
        match text_field(block, "type") {
            "text" => parts.push(Part::text(text_field(block, "text"))),
            "thinking" if is_true_field(block, "redacted") => {
                notes.count_loss(ImportLoss::EncryptedReasoning)
            }
            "thinking" => parts.push(Part::thought(text_field(block, "thinking"))),
            "toolCall" => {
                let arguments = block.get("arguments").cloned().unwrap_or_default();
                let (id, name) = (text_field(block, "id"), text_field(block, "name"));
                parts.push(Part::ToolCall(ToolCall::new(id, name, arguments)));
            }
            other => notes.count_unknown(other),
        }
    }
    ConversationPiece::Answer { parts, model, response: None }
}
