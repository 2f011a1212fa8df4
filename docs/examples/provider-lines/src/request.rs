//! Writes a request for the server's `/api/chat`. Pure.

use std::collections::BTreeMap;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::serde_json;
use jaato_plugin_sdk::types::{DataContent, DataPart, Effort};

/// The request options that are supported, by their names in the request. The server has no tool
/// choice.
pub const OPTIONS: [&str; 7] =
    ["max_output_tokens", "temperature", "stream", "effort", "output_schema", "stop", "seed"];

/// The media types of the images that the server accepts.
pub const IMAGES: [&str; 2] = ["image/png", "image/jpeg"];

/// The bytes of images, by blob id.
pub type Blobs = BTreeMap<String, Vec<u8>>;

/// Writes the body of a request. Parts that change come last, so that the server's cache of earlier
/// requests hits.
///
/// # Errors
/// `unknown_operation` for a message with an unknown role.
pub fn write_body(
    request: &CompletionRequest,
    context_tokens: u32,
    blobs: &Blobs,
) -> Result<Vec<u8>> {
    let asked = &request.options;
    let mut options = json!({ "num_ctx": context_tokens });
    if let Some(most) = asked.max_output_tokens {
        options["num_predict"] = json!(most);
    }
    if let Some(temperature) = asked.temperature {
        options["temperature"] = json!(temperature);
    }
    if let Some(seed) = asked.seed {
        // The server stores a signed number.
        options["seed"] = json!(seed & (u64::MAX >> 1));
    }
    if !asked.stop.is_empty() {
        options["stop"] = json!(asked.stop);
    }
    let mut body = json!({
        "model": request.model,
        "stream": asked.stream != Some(false),
        "options": options,
    });
    if let Some(schema) = &asked.output_schema {
        body["format"] = schema.clone();
    }
    if let Some(think) = asked.effort.and_then(think_option) {
        body["think"] = think;
    }
    body["tools"] = request.tools.iter().map(tool_json).collect();
    body["messages"] = message_list(request, blobs)?.into();
    Ok(body.to_string().into_bytes())
}

fn think_option(effort: Effort) -> Option<Value> {
    Some(match effort {
        Effort::None => json!(false),
        Effort::Minimal | Effort::Low => json!("low"),
        Effort::Medium => json!("medium"),
        Effort::High => json!("high"),
        Effort::Max => json!("max"),
        Effort::Unknown => return None,
    })
}

fn tool_json(spec: &ToolSpec) -> Value {
    json!({
        "type": "function",
        "function": {
            "name": spec.name,
            "description": spec.description,
            "parameters": spec.parameters,
        },
    })
}

fn message_list(request: &CompletionRequest, blobs: &Blobs) -> Result<Vec<Value>> {
    let mut written = Vec::new();
    if !request.system.is_empty() {
        written.push(json!({ "role": "system", "content": request.system }));
    }
    for message in &request.messages {
        match message.role {
            Role::User => written.push(user_message(message, blobs)),
            Role::Model => written.push(model_message(message)),
            Role::Tool => {
                written.extend(message.tool_results().map(|result| {
                    let content = Value::Object(result.content.clone()).to_string();
                    json!({ "role": "tool", "tool_name": result.name, "content": content })
                }));
                // The attachments of tools, and the content after their results.
                let behind = user_message(message, blobs);
                if behind["content"] != "" || !behind["images"].is_null() {
                    written.push(behind);
                }
            }
            Role::Unknown => return Err(Role::unknown_role_error()),
        }
    }
    Ok(written)
}

/// Writes a user message: its text, and the images whose bytes are available.
fn user_message(message: &Message, blobs: &Blobs) -> Value {
    let mut said = json!({ "role": "user", "content": message_text(message) });
    let images: Vec<_> = data_parts(message).filter_map(|data| encode_image(data, blobs)).collect();
    if !images.is_empty() {
        said["images"] = images.into();
    }
    said
}

/// Returns the ids of the images whose bytes go into a request.
pub fn wanted_image_ids(request: &CompletionRequest) -> impl Iterator<Item = &str> {
    let seen = request.messages.iter().filter(|it| matches!(it.role, Role::User | Role::Tool));
    seen.flat_map(data_parts).filter(|data| is_image(data)).filter_map(DataPart::blob_id)
}

fn data_parts(message: &Message) -> impl Iterator<Item = &DataPart> {
    message.parts.iter().flat_map(|part| match part {
        Part::Data(data) => std::slice::from_ref(data),
        Part::ToolResult(result) => result.attachments.as_slice(),
        _ => &[],
    })
}

fn is_image(data: &DataPart) -> bool {
    IMAGES.contains(&data.mime_type.as_str())
}

fn encode_image(data: &DataPart, blobs: &Blobs) -> Option<String> {
    let bytes = blobs.get(data.blob_id().filter(|_| is_image(data))?)?;
    Some(BASE64_STANDARD.encode(bytes))
}

fn model_message(message: &Message) -> Value {
    let mut answer = json!({ "role": "assistant", "content": message_text(message) });
    let calls: Vec<Value> = message.tool_calls().map(tool_call_json).collect();
    if !calls.is_empty() {
        answer["tool_calls"] = calls.into();
    }
    answer
}

/// Writes a call. The server accepts only objects as arguments, but a model may send anything.
fn tool_call_json(call: &ToolCall) -> Value {
    let arguments = match &call.arguments {
        object @ Value::Object(_) => object.clone(),
        other => json!({ "invalid_arguments": other }),
    };
    json!({ "function": { "name": call.name, "arguments": arguments } })
}

/// Returns all text of a message, including data that the host sends to the model. Leaves out
/// thoughts.
fn message_text(message: &Message) -> String {
    let text = |part: &Part| match part {
        Part::Text { text, .. } => Some(text.clone()),
        Part::Data(DataPart { content: DataContent::Json { json, .. }, .. }) => {
            serde_json::to_string(json).ok()
        }
        _ => None,
    };
    message.parts.iter().filter_map(text).collect::<Vec<_>>().join("\n")
}
