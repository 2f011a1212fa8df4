//! Converts the history to messages of chat completions. Pure.

use jaato_plugin_sdk::Result;
use jaato_plugin_sdk::serde_json::{Value, json};
use jaato_plugin_sdk::types::{CompletionRequest, Message, Part, Role, ToolCall, ToolResult};

use super::chunk::signature_fields;
use super::content::{ChatContent, join_text};
use super::details::{self, DETAILS};
use super::ids::to_valid_name;
use super::quirks::ChatServerQuirks;
use super::reply::REASONING;
use super::request_style::{
    ChatRequestStyle, OutcomePlacement, ReasoningReplay, has_content_after_results,
};
use crate::shown::{BlobContents, describe_data};

/// Replaces arguments that were not a JSON object. Servers parse the arguments of earlier calls
/// again, and reject every later request of the conversation if they cannot.
pub const INVALID_ARGUMENTS: &str = "invalid_arguments";

pub(super) fn write_messages(
    request: &CompletionRequest,
    quirks: &ChatServerQuirks,
    habits: ChatRequestStyle,
    blobs: &BlobContents,
) -> Result<Vec<Value>> {
    let mut written = Vec::new();
    if !request.system.is_empty() {
        let role = quirks.system_role(&request.model);
        written.push(json!({ "role": role, "content": request.system }));
    }
    let reasoning = match habits.reasoning {
        ReasoningReplay::EverywhereBesideTools if request.tools.is_empty() => {
            ReasoningReplay::AsItCame
        }
        ReasoningReplay::EverywhereBesideTools => ReasoningReplay::Everywhere,
        said => said,
    };
    for message in &request.messages {
        match message.role {
            Role::User => written.push(write_user_message(&message.parts, blobs)),
            Role::Model => written.push(write_model_message(message, quirks, reasoning)),
            Role::Tool => write_results(message, quirks, habits.outcomes, blobs, &mut written),
            Role::Unknown => return Err(Role::unknown_role_error()),
        }
    }
    Ok(written)
}

/// Writes a user message, or the content that follows tool results: attachments first, then text.
fn write_user_message(parts: &[Part], blobs: &BlobContents) -> Value {
    let mut content = ChatContent::default();
    for result in parts.iter().filter_map(Part::as_tool_result) {
        for (number, data) in result.attachments.iter().enumerate() {
            if number == 0 {
                content.push_text(&attachment_heading(result));
            }
            content.add_data(data, blobs);
        }
    }
    content.add_parts(parts, blobs);
    json!({ "role": "user", "content": content.into_json() })
}

/// Returns a line that names the result to which the following attachments belong.
pub fn attachment_heading(result: &ToolResult) -> String {
    format!("[attached to the result of {}, {}]", result.name, result.call_id)
}

/// Writes a model's message. The protocol cannot express the order of text and calls, or images
/// that a model created.
fn write_model_message(
    message: &Message,
    quirks: &ChatServerQuirks,
    sent: ReasoningReplay,
) -> Value {
    let calls: Vec<Value> = message.tool_calls().map(|one| encode_call(one, quirks)).collect();
    let text = join_text(&message.parts);
    // Null instead of an empty text, which some servers reject next to calls.
    let has_none = text.is_empty() && !calls.is_empty();
    let content = if has_none { Value::Null } else { Value::String(text) };
    let mut written = json!({ "role": "assistant", "content": content });
    let reasoning = join_reasoning(&message.parts);
    let is_sent = match sent {
        ReasoningReplay::AsItCame | ReasoningReplay::EverywhereBesideTools => !reasoning.is_empty(),
        ReasoningReplay::Everywhere => true,
        ReasoningReplay::Nowhere => false,
    };
    if is_sent {
        written[REASONING] = reasoning.into();
    }
    let details = details::details_of_parts(&message.parts);
    if !details.is_empty() {
        written[DETAILS] = details.into();
    }
    if !calls.is_empty() {
        written["tool_calls"] = calls.into();
    }
    written
}

/// Joins the thoughts that came in the field in which their server needs them back.
fn join_reasoning(parts: &[Part]) -> String {
    let thoughts = parts.iter().filter_map(|part| match part {
        Part::Thought { text, signature, .. } if signature.as_deref() == Some(REASONING) => {
            Some(text.as_str())
        }
        _ => None,
    });
    thoughts.collect()
}

fn encode_call(call: &ToolCall, quirks: &ChatServerQuirks) -> Value {
    let arguments = match &call.arguments {
        object @ Value::Object(_) => object.to_string(),
        other => json!({ INVALID_ARGUMENTS: other }).to_string(),
    };
    let mut written = json!({
        "id": quirks.call_ids.format_id(call.id.as_str()),
        "type": "function",
        "function": { "name": to_valid_name(call.name.as_str()), "arguments": arguments },
    });
    for (key, value) in signature_fields(call) {
        written[key] = value;
    }
    written
}

/// Writes a message of tool results: one message per result, then the other content.
fn write_results(
    message: &Message,
    quirks: &ChatServerQuirks,
    outcomes: OutcomePlacement,
    blobs: &BlobContents,
    written: &mut Vec<Value>,
) {
    let count = message.tool_results().count();
    for (number, ToolResult { call_id, content, .. }) in message.tool_results().enumerate() {
        let mut content = Value::Object(content.clone()).to_string();
        if outcomes == OutcomePlacement::InLastResult && number + 1 == count {
            let said = content_after_results(message);
            if !said.is_empty() {
                content = format!("{content}\n\n{said}");
            }
        }
        let id = quirks.call_ids.format_id(call_id.as_str());
        written.push(json!({ "role": "tool", "tool_call_id": id, "content": content }));
    }
    if has_content_after_results(message) && (outcomes == OutcomePlacement::AsUser || count == 0) {
        written.push(write_user_message(&message.parts, blobs));
    }
}

/// Returns the content that follows tool results, as text only.
fn content_after_results(message: &Message) -> String {
    let attached = message.tool_results().flat_map(|result| {
        let words = result.attachments.iter().map(describe_data);
        (!result.attachments.is_empty())
            .then(|| attachment_heading(result))
            .into_iter()
            .chain(words)
    });
    let lines = attached.chain([join_text(&message.parts)]).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join("\n")
}
