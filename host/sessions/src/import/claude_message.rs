//! Reads the messages in the records of Claude Code, which have the form of Anthropic's API.

use jaato_types::{Message, Part, ToolCall};
use serde_json::Value;

use super::assemble::{ConversationPiece, text_content};
use super::content::{attachment_text, content_text};
use super::json_line::{JsonObject, is_true_field, text_field};
use super::notes::{ImportLoss, ImportNotes};

/// How a text begins with which Claude Code records that the user stopped it.
const INTERRUPTED: &str = "[Request interrupted by user";

/// How the record of a command begins that the user typed, such as `/compact`.
pub const COMMAND: &str = "<command-";

/// How the output of a command begins that the model does not see.
pub const COMMAND_OUTPUT: &str = "<local-command-";

/// Turns a prompt that Claude Code wrote into a summary.
pub fn into_summary(piece: ConversationPiece) -> ConversationPiece {
    match piece {
        ConversationPiece::Prompt(parts) => {
            ConversationPiece::Summary(Message { parts, ..Message::default() }.text())
        }
        other => other,
    }
}

/// Returns a prompt as the user typed it. `None` for a text that only Claude Code wrote.
pub fn shown_prompt(text: &str) -> Option<String> {
    let text = text.trim_start();
    if text.starts_with(COMMAND_OUTPUT) {
        return None;
    }
    Some(if text.starts_with(COMMAND) { command_line(text) } else { text.to_owned() })
}

/// Returns a command as the user typed it.
pub fn command_line(text: &str) -> String {
    let field = |name: &str| {
        let (_, rest) = text.split_once(&format!("<{name}>"))?;
        Some(rest.split_once(&format!("</{name}>"))?.0.trim())
    };
    let words = [field("command-name"), field("command-args")];
    let words: Vec<&str> = words.into_iter().flatten().filter(|it| !it.is_empty()).collect();
    if words.is_empty() { text.to_owned() } else { words.join(" ") }
}

/// Reads a user message: results, and a prompt or news.
pub fn user_pieces(message: &JsonObject, notes: &mut ImportNotes) -> Vec<ConversationPiece> {
    let content = message.get("content").unwrap_or(&Value::Null);
    let (parts, mut pieces) = user_parts(content, notes);
    let is_interruption = parts
        .iter()
        .any(|part| matches!(part, Part::Text { text, .. } if text.starts_with(INTERRUPTED)));
    if !parts.is_empty() {
        let is_news = !pieces.is_empty() || is_interruption;
        let piece = if is_news { ConversationPiece::News } else { ConversationPiece::Prompt };
        pieces.push(piece(parts));
    }
    pieces
}

/// Reads the content of a user message: its texts, and its results.
pub fn user_parts(content: &Value, notes: &mut ImportNotes) -> (Vec<Part>, Vec<ConversationPiece>) {
    let (mut parts, mut results) = (Vec::new(), Vec::new());
    if let Value::String(text) = content {
        parts.push(Part::text(text));
    }
    for block in content.as_array().into_iter().flatten().filter_map(Value::as_object) {
        match text_field(block, "type") {
            "text" => parts.push(Part::text(text_field(block, "text"))),
            "tool_result" => results.push(ConversationPiece::Result {
                call_id: text_field(block, "tool_use_id").to_owned(),
                content: text_content(content_text(block.get("content"), notes)),
                is_error: is_true_field(block, "is_error"),
            }),
            "image" | "document" => parts.push(Part::text(attachment_text(block, notes))),
            other => notes.count_unknown(other),
        }
    }
    (parts, results)
}

/// Reads a record of an answer.
pub fn answer_piece(
    message: &JsonObject,
    response: Option<String>,
    notes: &mut ImportNotes,
) -> ConversationPiece {
    let model = Some(text_field(message, "model")).filter(|it| !it.is_empty());
    let model = model.map(|it| format!("anthropic/{it}"));
    let mut parts = Vec::new();
    if let Some(Value::String(text)) = message.get("content") {
        parts.push(Part::text(text));
    }
    let blocks = message.get("content").and_then(Value::as_array).into_iter().flatten();
    for block in blocks.filter_map(Value::as_object) {
        match text_field(block, "type") {
            "text" => parts.push(Part::text(text_field(block, "text"))),
            "thinking" => {
                notes.count_losses(
                    ImportLoss::Signature,
                    u64::from(!text_field(block, "signature").is_empty()),
                );
                parts.push(Part::thought(text_field(block, "thinking")));
            }
            "redacted_thinking" => notes.count_loss(ImportLoss::EncryptedReasoning),
            "tool_use" => {
                let input = block.get("input").cloned().unwrap_or_default();
                let (id, name) = (text_field(block, "id"), text_field(block, "name"));
                parts.push(Part::ToolCall(ToolCall::new(id, name, input)));
            }
            "server_tool_use" => notes.count_loss(ImportLoss::ProviderCall),
            // The result of a call that the provider ran.
            kind if kind.ends_with("_tool_result") => {}
            other => notes.count_unknown(other),
        }
    }
    ConversationPiece::Answer { parts, model, response }
}
