//! Writes a request as JSON for Responses.
//!
//! Pure and stable: constant content comes first, and the items last and in order. Successive
//! requests in a session therefore share a prefix byte for byte, and servers' caches hit.

use std::collections::BTreeSet;

use jaato_plugin_sdk::serde::Serialize;
use jaato_plugin_sdk::serde_json::{Map, Value};
use jaato_plugin_sdk::types::CompletionRequest;
use jaato_plugin_sdk::types::http::HTTP_BODY_BYTES_MAX;
use jaato_plugin_sdk::{Error, ErrorKind, Result};
use jaato_plugin_sdk_provider::exchange;
use jaato_plugin_sdk_provider::shown::BlobContents;

use super::input::write_input;
use super::items;
use super::request_style::ResponsesRequestStyle;
use super::settings::{list_unsupported_options, request_settings, write_tool};

/// The field that asks for reasoning in a form that can go back.
const ENCRYPTED: &str = "reasoning.encrypted_content";

/// The settings for writing a request.
#[derive(Debug, Clone, Copy)]
pub struct ResponsesRequestSettings<'a> {
    /// The role of the system text.
    pub system_role: &'a str,
    /// The name of the model's highest effort.
    pub max_effort: &'static str,
    /// Whether the server supports a cache key.
    pub has_session_key: bool,
    /// The model's requirements.
    pub habits: &'a ResponsesRequestStyle,
}

/// Writes the body of a request. `blobs` contains the bytes of the data parts that the model sees.
/// The request describes the other data parts in text.
///
/// # Errors
/// `configuration` for an option that the protocol does not support, `context_overflow` if the body
/// is larger than the host sends, `unknown_operation` if a message has an unknown role.
pub fn write_request_body(
    request: &CompletionRequest,
    asking: &ResponsesRequestSettings<'_>,
    blobs: &BlobContents,
) -> Result<Vec<u8>> {
    if let Some(option) = list_unsupported_options(request).first() {
        let text = format!("Responses does not support the option `{option}`");
        return Err(Error::new(ErrorKind::Configuration, text)
            .with_hint("leave it out, or set `api = \"chat\"` under `[plugins.provider-openai]`"));
    }
    let body = ResponsesRequestBody {
        model: &request.model,
        stream: request.options.stream != Some(false),
        store: false,
        include: asking.habits.has_encrypted.then_some([ENCRYPTED]),
        settings: request_settings(request, asking),
        tools: request.tools.iter().map(write_tool).collect(),
        input: write_input(request, asking, blobs)?,
    };
    exchange::serialize_body(&body, &request.options, HTTP_BODY_BYTES_MAX)
}

/// Lists the hashes of the reasoning items in a request.
pub fn reasoning_marks(request: &CompletionRequest) -> BTreeSet<u64> {
    request.messages.iter().flat_map(|message| items::reasoning_hashes(&message.parts)).collect()
}

/// The body. The field order is the order in the JSON.
#[derive(Serialize)]
#[serde(crate = "jaato_plugin_sdk::serde")]
struct ResponsesRequestBody<'a> {
    model: &'a str,
    stream: bool,
    store: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    include: Option<[&'a str; 1]>,
    #[serde(flatten)]
    settings: Map<String, Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Value>,
    input: Vec<Value>,
}
