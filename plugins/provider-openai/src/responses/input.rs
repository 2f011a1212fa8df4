//! Writes the history as the items of a request. Pure.
//!
//! The written form of a message does not depend on later messages, so that successive requests
//! share a prefix.

use jaato_plugin_sdk::Result;
use jaato_plugin_sdk::serde_json::{Value, json};
use jaato_plugin_sdk::types::{CompletionRequest, Message, Role, ToolResult};
use jaato_plugin_sdk_provider::shown::BlobContents;

use super::content::ResponsesContent;
use super::items::{self, CALL_IDS};
use super::request::ResponsesRequestSettings;

/// Writes the items.
///
/// # Errors
/// `unknown_operation` if a message has an unknown role.
pub(super) fn write_input(
    request: &CompletionRequest,
    asking: &ResponsesRequestSettings<'_>,
    blobs: &BlobContents,
) -> Result<Vec<Value>> {
    let mut written = Vec::new();
    if !request.system.is_empty() {
        written.push(write_message(asking.system_role, json!(request.system)));
    }
    for one in &request.messages {
        match one.role {
            Role::User => written.push(write_user_message(one, blobs)),
            Role::Model => {
                let is_sent = |mark| !asking.habits.refused.contains(&mark);
                written.extend(items::write_items(&one.parts, &request.model, is_sent));
            }
            Role::Tool => {
                written.extend(one.tool_results().map(|result| write_output(result, blobs)));
                let mut behind = ResponsesContent::default();
                behind.add_parts(&one.parts, blobs);
                let behind = behind.into_json();
                if behind != "" {
                    written.push(write_message("user", behind));
                }
            }
            Role::Unknown => return Err(Role::unknown_role_error()),
        }
    }
    Ok(written)
}

fn write_message(role: &str, content: Value) -> Value {
    json!({ "type": "message", "role": role, "content": content })
}

fn write_user_message(one: &Message, blobs: &BlobContents) -> Value {
    let mut content = ResponsesContent::default();
    content.add_parts(&one.parts, blobs);
    write_message("user", content.into_json())
}

/// Returns the output of a tool result, including the tool's attachments.
fn write_output(result: &ToolResult, blobs: &BlobContents) -> Value {
    let mut content = ResponsesContent::default();
    content.push_text(&Value::Object(result.content.clone()).to_string());
    for data in &result.attachments {
        content.add_data(data, blobs);
    }
    json!({
        "type": "function_call_output",
        "call_id": CALL_IDS.format_id(result.call_id.as_str()),
        "output": content.into_json(),
    })
}
