//! Writes a request as JSON for `/api/chat`.
//!
//! Pure and stable: the requests of a session share a prefix, so that the server's cache hits.

use std::borrow::Cow;
use std::collections::BTreeMap;

use jaato_plugin_sdk::Result;
use jaato_plugin_sdk::serde::Serialize;
use jaato_plugin_sdk::serde_json::{Value, json};
use jaato_plugin_sdk::types::{CompletionRequest, DataPart};
use jaato_plugin_sdk_provider::exchange;
use jaato_plugin_sdk_provider::shown::{BlobContents, visible_data};

use crate::facts::{IMAGES, OllamaModelFacts};
use crate::{history, thinking, tools};

/// The request options that this provider supports. The server has no option for a tool choice.
pub const NAMES: [&str; 8] = [
    "max_output_tokens",
    "temperature",
    "stream",
    "effort",
    "output_schema",
    "stop",
    "seed",
    "extra_body",
];

/// The largest image. It is larger than a phone's photo, and a model sees a smaller copy anyway.
pub const IMAGE_BYTES_MAX: usize = 10 * 1024 * 1024;

/// The largest body. Without images, it is far more than any context can hold.
pub const BODY_BYTES_MAX: u64 = 128 * 1024 * 1024;

/// Introduces a schema that the server does not enforce.
const IN_WORDS: &str =
    "Answer with one JSON value that matches this JSON Schema, and nothing else:";

/// A request ready to send.
#[derive(Debug)]
pub struct OllamaRequest {
    /// The body.
    pub body: Vec<u8>,
    /// Bytes of the body without images, which is the text that becomes tokens.
    pub word_bytes: usize,
}

/// The inputs of a request's body in addition to the request.
#[derive(Debug)]
pub struct RequestBodyInputs<'a> {
    /// The facts about the model.
    pub facts: &'a OllamaModelFacts,
    /// The context size in tokens.
    pub context_tokens: u64,
    /// How long the server keeps the model loaded. Empty for the server's default.
    pub keep_alive: &'a str,
    /// The bytes of the data parts that the model sees. The request describes the other data parts
    /// in text.
    pub blobs: &'a BlobContents,
}

/// The body. The field order is the order in the JSON.
#[derive(Serialize)]
#[serde(crate = "jaato_plugin_sdk::serde")]
struct OllamaRequestBody<'a> {
    model: &'a str,
    stream: bool,
    /// Always false: the server must not silently drop messages.
    truncate: bool,
    /// Always false: the server must not drop the start of the context while it answers.
    shift: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    keep_alive: Option<Value>,
    options: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    think: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<&'a Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Value>,
    messages: Vec<Value>,
}

/// Returns the blobs whose bytes a request contains, with the size limit of each. Empty for a model
/// that is known to have no vision.
pub fn wanted_blobs<'a>(
    request: &'a CompletionRequest,
    facts: &OllamaModelFacts,
) -> BTreeMap<&'a str, usize> {
    if facts.has_capability("vision") == Some(false) {
        return BTreeMap::new();
    }
    let is_image = |data: &&DataPart| IMAGES.contains(&data.mime_type.as_str());
    let images = visible_data(request).filter(is_image).filter_map(DataPart::blob_id);
    images.map(|id| (id, IMAGE_BYTES_MAX)).collect()
}

/// Writes a request.
///
/// # Errors
/// `configuration` for an option that the model does not support, `context_overflow` if the body is
/// too large to send, `unknown_operation` if a message has an unknown role.
pub fn write_request(
    request: &CompletionRequest,
    with: &RequestBodyInputs<'_>,
) -> Result<OllamaRequest> {
    let asked = &request.options;
    let (system, format) = system_and_schema(request);
    let messages = history::write_messages(request, &system, with.blobs)?;
    let images = messages.iter().filter_map(|message| message["images"].as_array()).flatten();
    let image_bytes: usize = images.filter_map(Value::as_str).map(str::len).sum();
    let body = OllamaRequestBody {
        model: &request.model,
        stream: asked.stream != Some(false),
        truncate: false,
        shift: false,
        keep_alive: keep_alive_json(with.keep_alive),
        options: request_options(request, with.context_tokens),
        think: thinking::think_field(request, with.facts)?,
        format,
        tools: tools::write_tools(&request.tools),
        messages,
    };
    let body = exchange::serialize_body(&body, asked, BODY_BYTES_MAX)?;
    let word_bytes = body.len().saturating_sub(image_bytes);
    Ok(OllamaRequest { body, word_bytes })
}

/// Returns the system text, and the schema that the server enforces. If there are tools, the system
/// text contains the schema, because a model with an enforced schema cannot call tools.
fn system_and_schema(request: &CompletionRequest) -> (Cow<'_, str>, Option<&Value>) {
    let system = request.system.as_str();
    match &request.options.output_schema {
        Some(schema) if !request.tools.is_empty() => {
            let gap = if system.is_empty() { "" } else { "\n\n" };
            (Cow::Owned(format!("{system}{gap}{IN_WORDS}\n{schema}")), None)
        }
        schema => (Cow::Borrowed(system), schema.as_ref()),
    }
}

fn request_options(request: &CompletionRequest, context_tokens: u64) -> Value {
    let asked = &request.options;
    let mut options = json!({ "num_ctx": context_tokens });
    if let Some(most) = asked.max_output_tokens {
        options["num_predict"] = json!(most);
    }
    if let Some(temperature) = asked.temperature {
        options["temperature"] = json!(temperature);
    }
    if let Some(seed) = asked.seed {
        // The server stores a signed 32-bit number.
        options["seed"] = json!(seed & u64::from(u32::MAX >> 1));
    }
    let stop: Vec<&String> = asked.stop.iter().filter(|text| !text.is_empty()).collect();
    if !stop.is_empty() {
        options["stop"] = json!(stop);
    }
    options
}

/// Writes how long a model stays loaded. The server reads a number as seconds, and a text as a
/// duration with a unit.
fn keep_alive_json(text: &str) -> Option<Value> {
    let text = text.trim();
    let number = || text.parse::<i64>().map_or_else(|_| json!(text), |seconds| json!(seconds));
    (!text.is_empty()).then(number)
}
