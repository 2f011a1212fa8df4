//! Writes the history in the vendor's format. Pure.
//!
//! Invariants: user and model messages alternate, starting with the user. All results for an answer
//! come first, in one message. No message is empty. No model message ends with a thought. The
//! written form of a message does not depend on later messages, except that trailing whitespace is
//! removed from an answer that the model must continue.

use jaato_plugin_sdk::Result;
use jaato_plugin_sdk::serde_json::{Value, json};
use jaato_plugin_sdk::types::{CompletionRequest, Message, Part, Role};
use jaato_plugin_sdk_provider::shown::BlobContents;

use crate::content;
use crate::tools::AnnouncedTools;

/// The text of a message that must exist but has no content.
const NOTHING: &str = "(nothing)";

/// A message in the vendor's order.
#[derive(Debug)]
pub(crate) enum AnthropicMessage {
    /// A user message: tool results, then other content, then changes to the tools.
    User { results: Vec<Value>, said: Vec<Value>, changes: Vec<Value> },
    /// A model message.
    Model(Vec<Value>),
}

impl AnthropicMessage {
    fn empty_user_message() -> Self {
        Self::User { results: Vec::new(), said: Vec::new(), changes: Vec::new() }
    }
}

/// Groups the messages of a request into turns.
///
/// # Errors
/// `unknown_operation` if a message has an unknown role.
pub(crate) fn group_into_turns<'a>(
    request: &'a CompletionRequest,
    told: &mut AnnouncedTools<'a>,
    blobs: &BlobContents,
) -> Result<Vec<AnthropicMessage>> {
    let mut turns = vec![AnthropicMessage::empty_user_message()];
    for message in &request.messages {
        match message.role {
            Role::User | Role::Tool => add_user_message(&mut turns, message, told, blobs),
            Role::Model => add_model_message(&mut turns, message, &request.model),
            Role::Unknown => return Err(Role::unknown_role_error()),
        }
    }
    let count = turns.len();
    for (number, turn) in turns.iter_mut().enumerate() {
        match turn {
            AnthropicMessage::User { results, said, .. }
                if results.is_empty() && said.is_empty() =>
            {
                said.extend(content::text_block(NOTHING));
            }
            // The vendor refuses trailing whitespace in an answer that the model must continue.
            AnthropicMessage::Model(blocks) if number + 1 == count => trim_last_text(blocks),
            AnthropicMessage::User { .. } | AnthropicMessage::Model(_) => {}
        }
    }
    Ok(turns)
}

fn add_user_message<'a>(
    turns: &mut Vec<AnthropicMessage>,
    message: &'a Message,
    told: &mut AnnouncedTools<'a>,
    blobs: &BlobContents,
) {
    if !matches!(turns.last(), Some(AnthropicMessage::User { .. })) {
        turns.push(AnthropicMessage::empty_user_message());
    }
    let Some(AnthropicMessage::User { results, said, changes }) = turns.last_mut() else { return };
    for part in &message.parts {
        match part {
            Part::Text { text, .. } => said.extend(content::text_block(text)),
            Part::Data(data) => said.extend(content::data_block(data, blobs)),
            Part::ToolResult(result) => results.push(content::tool_result_block(result, blobs)),
            Part::ToolsChanged(changed) => changes.extend(told.announce_change(changed)),
            _ => {}
        }
    }
}

/// Adds a model message. An empty one is left out, so that its neighbours become one message.
fn add_model_message(turns: &mut Vec<AnthropicMessage>, message: &Message, model: &str) {
    let mut blocks: Vec<Value> =
        message.parts.iter().filter_map(|part| content::model_part_block(part, model)).collect();
    // The answer was cut off inside its thoughts. The vendor refuses thoughts that nothing follows.
    while blocks.last().is_some_and(is_thought_block) {
        blocks.pop();
    }
    if blocks.is_empty() {
        return;
    }
    match turns.last_mut() {
        Some(AnthropicMessage::Model(known)) => known.extend(blocks),
        Some(AnthropicMessage::User { .. }) | None => turns.push(AnthropicMessage::Model(blocks)),
    }
}

fn is_thought_block(block: &Value) -> bool {
    matches!(block["type"].as_str(), Some("thinking" | "redacted_thinking"))
}

/// Returns true if the open step began without a thought, because it comes from another provider or
/// a cut removed its thoughts. Models with a thinking budget then cannot think in this step.
pub(crate) fn has_begun_without_thought(turns: &[AnthropicMessage]) -> bool {
    let mut first = None;
    for turn in turns.iter().rev() {
        match turn {
            AnthropicMessage::User { results, .. } if results.is_empty() => break,
            AnthropicMessage::User { .. } => {}
            AnthropicMessage::Model(blocks) => first = blocks.first(),
        }
    }
    first.is_some_and(|block| !is_thought_block(block))
}

fn trim_last_text(blocks: &mut [Value]) {
    let Some(last) = blocks.last_mut() else { return };
    if let Some(text) = last["text"].as_str().map(|text| text.trim_end().to_owned()) {
        last["text"] = json!(text);
    }
}

/// Writes the turns as messages.
pub(crate) fn write_messages(turns: Vec<AnthropicMessage>) -> Vec<Value> {
    let mut messages = Vec::new();
    for turn in turns {
        match turn {
            AnthropicMessage::Model(blocks) => {
                messages.push(json!({ "role": "assistant", "content": blocks }))
            }
            AnthropicMessage::User { mut results, said, changes } => {
                results.extend(said);
                messages.push(json!({ "role": "user", "content": results }));
                if !changes.is_empty() {
                    messages.push(json!({ "role": "system", "content": changes }));
                }
            }
        }
    }
    messages
}
