//! Writes a request as the JSON of chat completions.
//!
//! Pure and stable: constant parts come first, and the messages last and in order. Successive
//! requests of a session therefore share their beginning byte by byte, and the caches of servers
//! hit.

use jaato_plugin_sdk::Result;
use jaato_plugin_sdk::serde::Serialize;
use jaato_plugin_sdk::serde_json::{Map, Value, json};
use jaato_plugin_sdk::types::http::HTTP_BODY_BYTES_MAX;
use jaato_plugin_sdk::types::{CompletionRequest, ToolSpec};

use super::messages::write_messages;
use super::quirks::ChatServerQuirks;
use super::request_style::{ChatRequestStyle, ChatSchemaStyle};
use super::schema::without_type_lists;
use super::settings::request_settings;
use crate::exchange;
use crate::shown::BlobContents;

/// Writes the body of a request. `blobs` holds the bytes of the data parts to show. Other data is
/// replaced with a text description.
///
/// # Errors
/// `context_overflow` if the body is larger than the host allows, `unknown_operation` for a message
/// with an unknown role.
pub fn request_body(
    request: &CompletionRequest,
    quirks: &ChatServerQuirks,
    habits: ChatRequestStyle,
    blobs: &BlobContents,
) -> Result<Vec<u8>> {
    let streams = request.options.stream != Some(false);
    let asks_for_usage = streams && quirks.asks_for_usage;
    let body = ChatRequestBody {
        model: &request.model,
        stream: streams,
        stream_options: asks_for_usage.then_some(StreamOptions { include_usage: true }),
        settings: request_settings(request, quirks),
        tools: request.tools.iter().map(|spec| write_tool(spec, habits.schemas)).collect(),
        messages: write_messages(request, quirks, habits, blobs)?,
    };
    exchange::serialize_body(&body, &request.options, HTTP_BODY_BYTES_MAX)
}

/// The body. Its fields are sent in this order.
#[derive(Serialize)]
#[serde(crate = "jaato_plugin_sdk::serde")]
struct ChatRequestBody<'a> {
    model: &'a str,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
    #[serde(flatten)]
    settings: Map<String, Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Value>,
    messages: Vec<Value>,
}

#[derive(Serialize)]
#[serde(crate = "jaato_plugin_sdk::serde")]
struct StreamOptions {
    include_usage: bool,
}

fn write_tool(spec: &ToolSpec, schemas: ChatSchemaStyle) -> Value {
    let parameters = match schemas {
        ChatSchemaStyle::AsTheyAre => spec.parameters.clone(),
        ChatSchemaStyle::SingleTyped => without_type_lists(&spec.parameters),
    };
    json!({
        "type": "function",
        "function": {
            "name": spec.name,
            "description": spec.description,
            "parameters": parameters,
        },
    })
}
