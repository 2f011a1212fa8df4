//! Writes a request as the JSON of `/api/chat`.
//!
//! Pure, and stable: requests of a session share their beginning, so that the server's cache hits.

use std::borrow::Cow;
use std::collections::BTreeMap;

use jaato_plugin_sdk::Result;
use jaato_plugin_sdk::serde::Serialize;
use jaato_plugin_sdk::serde_json::{Value, json};
use jaato_plugin_sdk::types::{Data, Request};
use jaato_plugin_sdk_provider::exchange;
use jaato_plugin_sdk_provider::shown::{Blobs, data_of};

use crate::facts::{Facts, IMAGES};
use crate::{history, thinking, tools};

/// What this provider honours of a request's options, by their names there. The server has no word
/// for a choice of tools.
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

/// Largest image: larger than a photo of a phone, and a model sees a smaller copy anyway.
pub const IMAGE_BYTES_MAX: usize = 10 * 1024 * 1024;

/// Largest body: far more than any context has room for, but for images.
pub const BODY_BYTES_MAX: u64 = 128 * 1024 * 1024;

/// Asks for an answer of a form where the server does not hold the model to it.
const IN_WORDS: &str =
    "Answer with one JSON value that matches this JSON Schema, and nothing else:";

/// A request as it is sent.
#[derive(Debug)]
pub struct Written {
    /// The body.
    pub body: Vec<u8>,
    /// Bytes of the body that are no images: what tokens are made of.
    pub word_bytes: usize,
}

/// What a request is written with, beside itself.
#[derive(Debug)]
pub struct With<'a> {
    /// What is known of the model.
    pub facts: &'a Facts,
    /// Size of the context in tokens.
    pub context_tokens: u64,
    /// How long the server keeps the model; empty where the server decides.
    pub keep_alive: &'a str,
    /// The bytes of those data parts that are to be seen; the others are told of in words.
    pub blobs: &'a Blobs,
}

/// The body; the order of the fields is what is sent.
#[derive(Serialize)]
#[serde(crate = "jaato_plugin_sdk::serde")]
struct Body<'a> {
    model: &'a str,
    stream: bool,
    /// The server is never to leave a message out without a word.
    truncate: bool,
    /// Nor to forget the beginning while it answers.
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

/// Names the blobs whose bytes go into a request, and the most bytes of each. None for a model
/// that is known to see nothing.
pub fn wanted<'a>(request: &'a Request, facts: &Facts) -> BTreeMap<&'a str, usize> {
    if facts.can("vision") == Some(false) {
        return BTreeMap::new();
    }
    let is_image = |data: &&Data| IMAGES.contains(&data.mime_type.as_str());
    let images = data_of(request).filter(is_image).filter_map(Data::blob_id);
    images.map(|id| (id, IMAGE_BYTES_MAX)).collect()
}

/// Writes a request.
///
/// # Errors
/// `configuration` for an option that the model does not take; `context_overflow` where the body is
/// too large to be sent; `unknown_operation` for a message of a role from the future.
pub fn write(request: &Request, with: &With<'_>) -> Result<Written> {
    let asked = &request.options;
    let (system, format) = form(request);
    let messages = history::messages(request, &system, with.blobs)?;
    let images = messages.iter().filter_map(|message| message["images"].as_array()).flatten();
    let image_bytes: usize = images.filter_map(Value::as_str).map(str::len).sum();
    let body = Body {
        model: &request.model,
        stream: asked.stream != Some(false),
        truncate: false,
        shift: false,
        keep_alive: keep_alive(with.keep_alive),
        options: options(request, with.context_tokens),
        think: thinking::think(request, with.facts)?,
        format,
        tools: tools::list(&request.tools),
        messages,
    };
    let body = exchange::written(&body, asked, BODY_BYTES_MAX)?;
    let word_bytes = body.len().saturating_sub(image_bytes);
    Ok(Written { body, word_bytes })
}

/// Returns the system text, and the schema to which the server holds the answer. Beside tools the
/// schema goes into words: a model that is held to one can call nothing.
fn form(request: &Request) -> (Cow<'_, str>, Option<&Value>) {
    let system = request.system.as_str();
    match &request.options.output_schema {
        Some(schema) if !request.tools.is_empty() => {
            let gap = if system.is_empty() { "" } else { "\n\n" };
            (Cow::Owned(format!("{system}{gap}{IN_WORDS}\n{schema}")), None)
        }
        schema => (Cow::Borrowed(system), schema.as_ref()),
    }
}

fn options(request: &Request, context_tokens: u64) -> Value {
    let asked = &request.options;
    let mut options = json!({ "num_ctx": context_tokens });
    if let Some(most) = asked.max_output_tokens {
        options["num_predict"] = json!(most);
    }
    if let Some(temperature) = asked.temperature {
        options["temperature"] = json!(temperature);
    }
    if let Some(seed) = asked.seed {
        // The server keeps a signed number of 32 bits.
        options["seed"] = json!(seed & u64::from(u32::MAX >> 1));
    }
    let stop: Vec<&String> = asked.stop.iter().filter(|text| !text.is_empty()).collect();
    if !stop.is_empty() {
        options["stop"] = json!(stop);
    }
    options
}

/// Writes how long a model stays: the server takes a number for seconds, a text with a unit else.
fn keep_alive(text: &str) -> Option<Value> {
    let text = text.trim();
    let number = || text.parse::<i64>().map_or_else(|_| json!(text), |seconds| json!(seconds));
    (!text.is_empty()).then(number)
}
