//! The order and form in which both documents show a conversation: results next to their calls,
//! and JSON with long texts as blocks of their own.

use std::collections::{HashMap, HashSet};

use jaato_types::{CallId, DataContent, DataPart, Part, Role, ToolResult, ToolsChanged};
use serde_json::{Map, Value};

use super::transcript::{Transcript, TranscriptMessage};
use super::visible::visible_text;

/// A text to show as it is.
#[derive(Debug, PartialEq)]
pub struct TextBlock {
    /// The name of the field that holds the text, if there are several.
    pub label: Option<String>,
    /// The language for highlighting: `text` or `json`.
    pub language: &'static str,
    /// The text, without control characters.
    pub text: String,
}

/// The results of a transcript by their calls.
pub struct PairedResults<'a> {
    results: HashMap<&'a CallId, &'a ToolResult>,
    calls: HashSet<&'a CallId>,
}

impl<'a> PairedResults<'a> {
    /// Finds the results of all calls.
    pub fn from_transcript(transcript: &'a Transcript) -> Self {
        let messages = || transcript.messages.iter().map(|it| &it.message);
        let results = messages().flat_map(|it| it.tool_results());
        let calls = messages().flat_map(|it| it.tool_calls()).map(|call| &call.id);
        Self { results: results.map(|it| (&it.call_id, it)).collect(), calls: calls.collect() }
    }

    /// Returns the result to show with a call.
    pub fn result_of_call(&self, call: &CallId) -> Option<&'a ToolResult> {
        self.results.get(call).copied()
    }

    /// Returns true if a part is shown where it is: it is not a result that its call shows, and it
    /// is not opaque.
    pub fn shows_part(&self, part: &Part) -> bool {
        match part {
            Part::ToolResult(result) => !self.calls.contains(&result.call_id),
            Part::Opaque(_) => false,
            _ => true,
        }
    }
}

/// Splits a JSON value into blocks: each text with several lines is one, and so is the rest.
pub fn value_blocks(value: &Value) -> Vec<TextBlock> {
    match value {
        Value::Object(fields) => object_blocks(fields),
        Value::String(text) => vec![text_block(None, text)],
        other => vec![json_block(other)],
    }
}

/// Splits a JSON object into blocks. An object with a single text is only that text.
pub fn object_blocks(fields: &Map<String, Value>) -> Vec<TextBlock> {
    if let (1, Some(Value::String(text))) = (fields.len(), fields.values().next()) {
        return vec![text_block(None, text)];
    }
    let mut rest = Map::new();
    let mut texts = Vec::new();
    for (name, value) in fields {
        match value {
            Value::String(text) if text.contains('\n') => {
                texts.push(text_block(Some(visible_text(name)), text));
            }
            other => {
                rest.insert(name.clone(), other.clone());
            }
        }
    }
    let rest = (!rest.is_empty()).then(|| json_block(&Value::Object(rest)));
    rest.into_iter().chain(texts).collect()
}

/// Formats a JSON value as a block.
pub fn json_block(value: &Value) -> TextBlock {
    // Maps have text keys, and numbers are finite, so this cannot fail.
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    TextBlock { label: None, language: "json", text: visible_text(&text) }
}

fn text_block(label: Option<String>, text: &str) -> TextBlock {
    TextBlock { label, language: "text", text: visible_text(text) }
}

/// Describes the sender of a message for users.
pub fn describe_sender(message: &TranscriptMessage) -> &'static str {
    match message.message.role {
        Role::User => "User",
        Role::Model => "Model",
        Role::Tool => "Tool results",
        Role::Unknown => "Unknown sender",
    }
}

/// Describes an attachment in a line: its media type and its name.
pub fn attachment_line(data: &DataPart) -> String {
    let name = data.name.as_deref().or(data.blob_id()).unwrap_or("without a name");
    visible_text(&format!("Attachment: {name} ({})", data.mime_type)).replace('\n', " ")
}

/// Returns the JSON of a data part that is not an attachment.
pub fn data_value(data: &DataPart) -> Option<Value> {
    match &data.content {
        DataContent::Json { json, .. } => Some(json.clone()),
        DataContent::Unknown(fields) => Some(Value::Object(fields.clone())),
        DataContent::Blob { .. } => None,
    }
}

/// Describes a change of the tools in a line.
pub fn tools_line(changed: &ToolsChanged) -> String {
    let added = changed.added.iter().map(|tool| format!("+{}", tool.name));
    let removed = changed.removed.iter().map(|name| format!("-{name}"));
    let names: Vec<String> = added.chain(removed).collect();
    visible_text(&format!("Tools changed: {}", names.join(", "))).replace('\n', " ")
}

/// Describes a part of an unknown type in a line.
pub fn unknown_line(part: &Map<String, Value>) -> String {
    let name = part.get("type").and_then(Value::as_str).unwrap_or("unknown");
    visible_text(&format!("A part of type {name} is not shown")).replace('\n', " ")
}
