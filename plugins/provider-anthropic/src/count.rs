//! Writes requests for `/v1/messages/count_tokens` and reads the answers. Pure.

use jaato_plugin_sdk::serde_json::{self, Map, Value};
use jaato_plugin_sdk::types::CompletionRequest;
use jaato_plugin_sdk::{Error, ErrorKind, Result};
use jaato_plugin_sdk_provider::shown::BlobContents;

use crate::request::{self, AnthropicRequest};

/// The request fields that the endpoint accepts. It refuses fields that are not part of the prompt.
const COUNTED: [&str; 6] = ["messages", "model", "system", "thinking", "tool_choice", "tools"];

/// Writes a request for counting, with the same prompt as the real request.
///
/// # Errors
/// The errors of [`request::write_request`].
pub fn write_count_request(
    request: &CompletionRequest,
    blobs: &BlobContents,
) -> Result<AnthropicRequest> {
    let AnthropicRequest { body, betas } = request::write_request(request, blobs)?;
    let bug =
        |error: serde_json::Error| Error::failed(format!("the request is not valid JSON: {error}"));
    let mut body: Map<String, Value> = serde_json::from_slice(&body).map_err(bug)?;
    body.retain(|key, _| COUNTED.contains(&key.as_str()));
    Ok(AnthropicRequest { body: serde_json::to_vec(&body).map_err(bug)?, betas })
}

/// Reads a count.
///
/// # Errors
/// `provider` if the answer contains no count.
pub fn parse_token_count(url: &str, body: &[u8]) -> Result<u64> {
    let count = serde_json::from_slice::<Value>(body).ok();
    let count = count.and_then(|count| count.get("input_tokens")?.as_u64());
    count.ok_or_else(|| {
        let text = format!("`{url}` answered without `input_tokens`");
        Error::new(ErrorKind::Provider, text)
    })
}
