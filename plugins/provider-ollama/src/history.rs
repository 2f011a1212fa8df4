//! Writes the history in the server's format. Pure.
//!
//! The written form of a message does not depend on later messages, so that the server does not
//! have to process the same prefix again.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use jaato_plugin_sdk::Result;
use jaato_plugin_sdk::serde_json::{Value, json};
use jaato_plugin_sdk::types::{
    CompletionRequest, DataPart, Message, Part, Role, ToolCall, ToolResult,
};
use jaato_plugin_sdk_provider::shown::{BlobContents, describe_data};

use crate::facts::IMAGES;

/// The signature of thoughts. The server signs nothing, but the host returns a signed thought only
/// to the model that made it, which is what this server needs.
pub(crate) const THOUGHT_MARK: &str = "ollama";

/// Replaces arguments that are not a JSON object, because the server cannot read them.
const INVALID_ARGUMENTS: &str = "invalid_arguments";

/// Writes the messages of a request after a system text.
///
/// # Errors
/// `unknown_operation` if a message has an unknown role.
pub(crate) fn write_messages(
    request: &CompletionRequest,
    system: &str,
    blobs: &BlobContents,
) -> Result<Vec<Value>> {
    let mut written = Vec::new();
    if !system.is_empty() {
        written.push(json!({ "role": "system", "content": system }));
    }
    for message in &request.messages {
        match message.role {
            Role::User => written.extend(encode_user_message(message, blobs)),
            Role::Model => written.extend(encode_model_message(message)),
            Role::Tool => {
                written.extend(message.tool_results().map(write_result));
                // The tools' attachments, and text that follows the results.
                written.extend(encode_user_message(message, blobs));
            }
            Role::Unknown => return Err(Role::unknown_role_error()),
        }
    }
    Ok(written)
}

/// Writes a user message: its text, and the images whose bytes are available. Returns `None` if
/// both are empty.
fn encode_user_message(message: &Message, blobs: &BlobContents) -> Option<Value> {
    let (mut words, mut images) = (Vec::new(), Vec::new());
    let mut show = |data: &DataPart| match write_image(data, blobs) {
        Some(image) => images.push(image),
        None => words.push(describe_data(data)),
    };
    let mut texts = Vec::new();
    for part in &message.parts {
        match part {
            Part::Text { text, .. } => texts.push(text.clone()),
            Part::Data(data) => show(data),
            Part::ToolResult(result) => result.attachments.iter().for_each(&mut show),
            _ => {}
        }
    }
    let words: Vec<String> = words.into_iter().chain(texts).filter(|it| !it.is_empty()).collect();
    if words.is_empty() && images.is_empty() {
        return None;
    }
    let mut said = json!({ "role": "user", "content": words.join("\n") });
    if !images.is_empty() {
        said["images"] = images.into();
    }
    Some(said)
}

fn write_image(data: &DataPart, blobs: &BlobContents) -> Option<String> {
    let is_image = IMAGES.contains(&data.mime_type.as_str());
    let bytes = blobs.get(data.blob_id().filter(|_| is_image)?)?;
    Some(BASE64_STANDARD.encode(bytes))
}

/// Writes a model message. Returns `None` if it has no part that can be sent.
fn encode_model_message(message: &Message) -> Option<Value> {
    let (mut content, mut thinking, mut calls) = (String::new(), String::new(), Vec::new());
    for part in &message.parts {
        match part {
            Part::Text { text, .. } => content.push_str(text),
            Part::Thought { text, signature: Some(_), .. } => thinking.push_str(text),
            Part::ToolCall(one) => calls.push(call_to_json(one)),
            Part::Data(data) => content.push_str(&describe_data(data)),
            _ => {}
        }
    }
    if content.is_empty() && thinking.is_empty() && calls.is_empty() {
        return None;
    }
    let mut answer = json!({ "role": "assistant", "content": content });
    if !thinking.is_empty() {
        answer["thinking"] = thinking.into();
    }
    if !calls.is_empty() {
        answer["tool_calls"] = calls.into();
    }
    Some(answer)
}

fn call_to_json(call: &ToolCall) -> Value {
    let arguments = match &call.arguments {
        object @ Value::Object(_) => object.clone(),
        other => json!({ INVALID_ARGUMENTS: other }),
    };
    json!({ "id": call.id, "function": { "name": call.name, "arguments": arguments } })
}

/// Writes a tool result. The server has no error flag, so the content must show the failure.
fn write_result(result: &ToolResult) -> Value {
    let mut content = Value::Object(result.content.clone()).to_string();
    if result.is_error {
        content.insert_str(0, "error: ");
    }
    let (id, name) = (&result.call_id, &result.name);
    json!({ "role": "tool", "content": content, "tool_name": name, "tool_call_id": id })
}
