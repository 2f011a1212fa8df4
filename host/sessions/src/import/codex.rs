//! Reads the sessions of Codex: `~/.codex/sessions/YYYY/MM/DD/rollout-….jsonl`.
//!
//! Each line has a `type` and a `payload`. Two logs are interleaved: `response_item` holds the
//! items that the model exchanges, and `event_msg` what the user sees. The first log decides. The
//! second one only gives the result of a command whose output is missing in the first. Older files
//! hold items without an envelope.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use jaato_types::{Message, Part, SessionId, ToolCall};
use serde_json::{Value, json};

use super::assemble::{ConversationPiece, TimedPiece, text_content};
use super::content::attachment_text;
use super::error::ImportError;
use super::json_line::{JsonLines, JsonObject, SourceLine, object_field, parse_time, text_field};
use super::notes::{ImportLoss, ImportNotes};
use super::{ForeignSession, ImportSource};
use crate::export::Transcript;

/// Records that hold no part of the conversation.
const BOOKKEEPING: &[&str] = &["ghost_snapshot", "token_usage_record", "world_state", "state"];

/// Items that only Codex itself understands, or that belong to calls which the provider runs.
const PROVIDER_CALLS: &[&str] =
    &["web_search_call", "image_generation_call", "tool_search_call", "file_search_call"];

/// How texts begin that Codex adds in the user's name, in files that do not say who wrote them.
const ADDED_STARTS: &[&str] = &[
    "<environment_context>",
    "<user_instructions>",
    "<permissions instructions>",
    "# AGENTS.md instructions",
    "<turn_aborted>",
    "<collaboration_mode>",
    "<skills_instructions>",
    "<subagent_notification>",
];

/// The state while a file is read.
#[derive(Default)]
struct CodexFile {
    transcript: Transcript,
    provider: String,
    model: Option<String>,
    pieces: Vec<TimedPiece>,
    /// Results of the display log.
    shown_results: HashMap<String, ConversationPiece>,
    has_records: bool,
}

/// Reads a session.
pub fn read_codex_session(
    path: &Path,
    notes: &mut ImportNotes,
) -> Result<ForeignSession, ImportError> {
    let mut lines = JsonLines::open(path)?;
    let mut file = CodexFile::default();
    while let Some((number, line)) = lines.next_line()? {
        match line {
            SourceLine::Object(record) => file.add_record(&record, notes),
            SourceLine::Damaged => notes.note_damaged_line(number),
        }
    }
    if !file.has_records {
        return Err(ImportError::not_a_session(path, ImportSource::Codex));
    }
    let pieces = file.complete_pieces();
    Ok(ForeignSession { transcript: file.transcript, pieces })
}

impl CodexFile {
    fn add_record(&mut self, record: &JsonObject, notes: &mut ImportNotes) {
        let at_ms = parse_time(record.get("timestamp")).unwrap_or(self.transcript.begun_ms);
        let Some(payload) = object_field(record, "payload") else {
            self.add_older_record(at_ms, record, notes);
            return;
        };
        self.has_records = true;
        match text_field(record, "type") {
            "session_meta" => self.add_facts(payload),
            "turn_context" => self.model = Some(text_field(payload, "model").to_owned()),
            "response_item" => self.add_item(at_ms, payload, notes),
            "event_msg" => self.add_event(at_ms, payload, notes),
            "compacted" => self.add_compaction(at_ms, &compaction_summary(payload, notes)),
            kind if BOOKKEEPING.contains(&kind) => {}
            other => notes.count_unknown(other),
        }
    }

    /// Adds a line of an older file.
    fn add_older_record(&mut self, at_ms: i64, record: &JsonObject, notes: &mut ImportNotes) {
        let is_header = !record.contains_key("type") && record.contains_key("timestamp");
        if is_header && record.contains_key("id") {
            self.has_records = true;
            self.add_facts(record);
        } else if record.contains_key("record_type") {
        } else if self.has_records {
            self.add_item(at_ms, record, notes);
        } else {
            notes.count_unknown(text_field(record, "type"));
        }
    }

    fn add_facts(&mut self, facts: &JsonObject) {
        // A session that continues another one holds that one's facts, too. The first are its own.
        if !self.transcript.id.as_str().is_empty() {
            return;
        }
        self.transcript.id = SessionId::from(text_field(facts, "id"));
        self.transcript.workspace = text_field(facts, "cwd").to_owned();
        self.transcript.begun_ms = parse_time(facts.get("timestamp")).unwrap_or_default();
        self.provider = text_field(facts, "model_provider").to_owned();
    }

    fn add_item(&mut self, at_ms: i64, item: &JsonObject, notes: &mut ImportNotes) {
        let piece = match text_field(item, "type") {
            "message" => message_piece(item, notes),
            "reasoning" => Some(self.answer_piece(vec![reasoning_part(item, notes)])),
            "function_call" | "custom_tool_call" | "local_shell_call" => {
                Some(self.answer_piece(vec![Part::ToolCall(tool_call(item))]))
            }
            "function_call_output" | "custom_tool_call_output" | "local_shell_call_output" => {
                Some(result_piece(item, notes))
            }
            "compaction" | "context_compaction" => {
                notes.count_loss(ImportLoss::EncryptedReasoning);
                None
            }
            kind if PROVIDER_CALLS.contains(&kind) => {
                notes.count_loss(ImportLoss::ProviderCall);
                None
            }
            kind if BOOKKEEPING.contains(&kind) => None,
            other => {
                notes.count_unknown(other);
                None
            }
        };
        let piece = piece.map(|piece| match piece {
            ConversationPiece::Answer { parts, .. } => self.answer_piece(parts),
            other => other,
        });
        self.pieces.extend(piece.map(|piece| (at_ms, piece)));
    }

    fn answer_piece(&self, parts: Vec<Part>) -> ConversationPiece {
        let provider = if self.provider.is_empty() { "openai" } else { &self.provider };
        let model = self.model.as_deref().filter(|it| !it.is_empty());
        let model = model.map(|model| format!("{provider}/{model}"));
        ConversationPiece::Answer { parts, model, response: None }
    }

    /// Adds an event of the display log. Most repeat an item.
    fn add_event(&mut self, at_ms: i64, event: &JsonObject, notes: &mut ImportNotes) {
        let item = object_field(event, "item");
        match text_field(event, "type") {
            "exec_command_end" => self.add_shown_result(text_field(event, "call_id"), event),
            "item_completed" => {
                if let Some(item) = item.filter(|it| text_field(it, "type") == "CommandExecution") {
                    self.add_shown_result(text_field(item, "id"), item);
                }
            }
            "thread_rolled_back" => {
                let turns = event.get("num_turns").and_then(Value::as_u64).unwrap_or_default();
                self.roll_back(turns, notes);
            }
            "thread_name_updated" => {
                let name = ["thread_name", "name"].map(|name| text_field(event, name));
                let name = name.into_iter().find(|it| !it.is_empty()).unwrap_or_default();
                self.transcript.name = jaato_types::text::one_line(name);
            }
            "context_compacted" if !self.ends_with_compaction() => self.add_compaction(at_ms, ""),
            _ => {}
        }
    }

    fn add_shown_result(&mut self, call_id: &str, event: &JsonObject) {
        let exit_code = event.get("exit_code").and_then(Value::as_i64).unwrap_or_default();
        let mut content = text_content(text_field(event, "aggregated_output"));
        content.insert("exit_code".to_owned(), json!(exit_code));
        let call_id = call_id.to_owned();
        let piece =
            ConversationPiece::Result { call_id: call_id.clone(), content, is_error: false };
        self.shown_results.insert(call_id, piece);
    }

    /// Removes the last turns, which the user took back.
    fn roll_back(&mut self, turns: u64, notes: &mut ImportNotes) {
        for _ in 0..turns {
            let is_prompt = |it: &TimedPiece| matches!(it.1, ConversationPiece::Prompt(_));
            let Some(at) = self.pieces.iter().rposition(is_prompt) else { return };
            notes.count_losses(ImportLoss::OtherBranch, (self.pieces.len() - at) as u64);
            self.pieces.truncate(at);
        }
    }

    fn add_compaction(&mut self, at_ms: i64, summary: &str) {
        self.pieces.push((at_ms, ConversationPiece::Compacted));
        if !summary.is_empty() {
            self.pieces.push((at_ms, ConversationPiece::Summary(summary.to_owned())));
        }
    }

    /// Returns true if the last pieces are a compaction, which both logs record.
    fn ends_with_compaction(&self) -> bool {
        let last = self.pieces.iter().rev().take(2);
        last.into_iter().any(|it| matches!(it.1, ConversationPiece::Compacted))
    }

    /// Returns the pieces, and after each call without an output the shown one.
    fn complete_pieces(&mut self) -> Vec<TimedPiece> {
        let answered: HashSet<String> = self
            .pieces
            .iter()
            .filter_map(|it| match &it.1 {
                ConversationPiece::Result { call_id, .. } => Some(call_id.clone()),
                _ => None,
            })
            .collect();
        self.shown_results.retain(|id, _| !answered.contains(id));
        let mut pieces = Vec::new();
        for (at_ms, piece) in std::mem::take(&mut self.pieces) {
            let ids: Vec<String> = match &piece {
                ConversationPiece::Answer { parts, .. } => parts
                    .iter()
                    .filter_map(Part::as_tool_call)
                    .map(|call| call.id.as_str().to_owned())
                    .collect(),
                _ => Vec::new(),
            };
            pieces.push((at_ms, piece));
            let shown = ids.iter().filter_map(|id| self.shown_results.remove(id));
            pieces.extend(shown.map(|result| (at_ms, result)));
        }
        pieces
    }
}

/// Returns the summary of a compaction. Newer versions record the messages that replace the older
/// ones instead.
fn compaction_summary(compaction: &JsonObject, notes: &mut ImportNotes) -> String {
    let summary = text_field(compaction, "message");
    let Some(replacement) = compaction.get("replacement_history").filter(|_| summary.is_empty())
    else {
        return summary.to_owned();
    };
    let prompts = content_blocks(replacement).filter(|item| text_field(item, "role") == "user");
    let mut texts = Vec::new();
    for item in prompts {
        let content = item.get("content").unwrap_or(&Value::Null);
        let parts = user_parts(item, content, notes);
        texts.push(Message { parts, ..Message::default() }.text());
    }
    texts.retain(|text| !text.is_empty());
    texts.join("\n\n")
}

fn message_piece(item: &JsonObject, notes: &mut ImportNotes) -> Option<ConversationPiece> {
    let content = item.get("content").unwrap_or(&Value::Null);
    match text_field(item, "role") {
        "user" => {
            let parts = user_parts(item, content, notes);
            (!parts.is_empty()).then_some(ConversationPiece::Prompt(parts))
        }
        "assistant" => {
            let parts = content_blocks(content).map(|block| block_part(block, notes)).collect();
            Some(ConversationPiece::Answer { parts, model: None, response: None })
        }
        "system" | "developer" => {
            notes.count_loss(ImportLoss::SystemPrompt);
            None
        }
        other => {
            notes.count_unknown(other);
            None
        }
    }
}

/// Reads the parts of a user message that the user wrote. Newer files name the writer of each.
fn user_parts(item: &JsonObject, content: &Value, notes: &mut ImportNotes) -> Vec<Part> {
    let metadata = object_field(item, "internal_chat_message_metadata_passthrough");
    let writers = metadata.and_then(|it| it.get("content_item_metadata")).and_then(Value::as_array);
    let writer = |at: usize| writers?.get(at)?.pointer("/provenance/type")?.as_str();
    let mut parts = Vec::new();
    for (at, block) in content_blocks(content).enumerate() {
        let text = text_field(block, "text").trim_start();
        let is_added = match writer(at) {
            Some(writer) => writer != "user",
            None => ADDED_STARTS.iter().any(|start| text.starts_with(start)),
        };
        if is_added {
            notes.count_loss(ImportLoss::AddedContext);
        } else {
            parts.push(block_part(block, notes));
        }
    }
    parts
}

fn content_blocks(content: &Value) -> impl Iterator<Item = &JsonObject> {
    content.as_array().into_iter().flatten().filter_map(Value::as_object)
}

fn block_part(block: &JsonObject, notes: &mut ImportNotes) -> Part {
    match text_field(block, "type") {
        "input_text" | "output_text" | "text" => Part::text(text_field(block, "text")),
        "refusal" => Part::text(text_field(block, "refusal")),
        "input_image" | "input_file" => Part::text(attachment_text(block, notes)),
        other => {
            notes.count_unknown(other);
            Part::text("")
        }
    }
}

fn reasoning_part(item: &JsonObject, notes: &mut ImportNotes) -> Part {
    if !text_field(item, "encrypted_content").is_empty() {
        notes.count_loss(ImportLoss::EncryptedReasoning);
    }
    let blocks = |name: &str| item.get(name).map(content_blocks).into_iter().flatten();
    let texts = blocks("summary").chain(blocks("content")).map(|block| text_field(block, "text"));
    Part::thought(texts.collect::<Vec<_>>().join("\n\n"))
}

fn tool_call(item: &JsonObject) -> ToolCall {
    let id = call_id(item);
    match text_field(item, "type") {
        "custom_tool_call" => {
            let input = json!({ "input": text_field(item, "input") });
            ToolCall::new(id, text_field(item, "name"), input)
        }
        "local_shell_call" => {
            let action = item.get("action").cloned().unwrap_or_default();
            ToolCall::new(id, "local_shell", action)
        }
        _ => {
            let text = text_field(item, "arguments");
            let arguments =
                serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()));
            ToolCall::new(id, text_field(item, "name"), arguments)
        }
    }
}

/// Returns the id that pairs a call with its output.
fn call_id(item: &JsonObject) -> &str {
    match text_field(item, "call_id") {
        "" => text_field(item, "id"),
        id => id,
    }
}

fn result_piece(item: &JsonObject, notes: &mut ImportNotes) -> ConversationPiece {
    let output = item.get("output").unwrap_or(&Value::Null);
    let (text, is_error) = match output {
        Value::String(text) => (text.clone(), false),
        Value::Object(fields) => {
            let failed = fields.get("success").and_then(Value::as_bool) == Some(false);
            (text_field(fields, "content").to_owned(), failed)
        }
        blocks => {
            let parts = content_blocks(blocks).map(|block| block_part(block, notes));
            let texts = parts.filter_map(|part| match part {
                Part::Text { text, .. } => Some(text),
                _ => None,
            });
            (texts.collect::<Vec<_>>().join("\n"), false)
        }
    };
    let content = text_content(text);
    ConversationPiece::Result { call_id: call_id(item).to_owned(), content, is_error }
}
