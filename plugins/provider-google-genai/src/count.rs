//! Writes requests for `countTokens` and reads the answers. Pure.

use jaato_plugin_sdk::serde_json::{self, Map, Value, json};
use jaato_plugin_sdk::types::CompletionRequest;
use jaato_plugin_sdk::{Error, ErrorKind, Result};
use jaato_plugin_sdk_provider::shown::BlobContents;

use crate::endpoint::GoogleEndpoint;
use crate::request::{self, GoogleRequestStyle};

/// The request fields that Vertex AI accepts for a count.
const COUNTED: [&str; 4] = ["contents", "generationConfig", "systemInstruction", "tools"];

/// Writes a request for counting, with the same prompt as the real request. AI Studio accepts the
/// whole request, wrapped in another body.
///
/// # Errors
/// The errors of [`request::write_request_body`].
pub fn count_request_body(
    request: &CompletionRequest,
    endpoint: &GoogleEndpoint,
    habits: GoogleRequestStyle,
    blobs: &BlobContents,
) -> Result<Vec<u8>> {
    let body = request::write_request_body(request, endpoint, habits, blobs)?;
    let bug =
        |error: serde_json::Error| Error::failed(format!("the request is not valid JSON: {error}"));
    let mut body: Map<String, Value> = serde_json::from_slice(&body).map_err(bug)?;
    let body = if endpoint.is_vertex() {
        body.retain(|key, _| COUNTED.contains(&key.as_str()));
        Value::Object(body)
    } else {
        let model = request.model.trim_matches('/');
        let model = if model.contains('/') { model.to_owned() } else { format!("models/{model}") };
        body.insert("model".to_owned(), json!(model));
        json!({ "generateContentRequest": body })
    };
    serde_json::to_vec(&body).map_err(bug)
}

/// Reads a count.
///
/// # Errors
/// `provider` if the answer contains no count.
pub fn parse_token_count(url: &str, body: &[u8]) -> Result<u64> {
    let count = serde_json::from_slice::<Value>(body).ok();
    let count = count.and_then(|count| count.get("totalTokens")?.as_u64());
    count.ok_or_else(|| {
        let text = format!("`{url}` answered without `totalTokens`");
        Error::new(ErrorKind::Provider, text)
    })
}
