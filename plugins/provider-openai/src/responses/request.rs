//! Writes a request down as the JSON of Responses.
//!
//! Pure, and stable: what does not change from request to request comes first, the items last and
//! in order, so that successive requests of a session share their beginning byte by byte and the
//! caches of servers hit.

use std::collections::BTreeSet;

use jaato_plugin_sdk::serde::Serialize;
use jaato_plugin_sdk::serde_json::{Map, Value};
use jaato_plugin_sdk::types::Request;
use jaato_plugin_sdk::types::http::HTTP_BODY_BYTES_MAX;
use jaato_plugin_sdk::{Error, ErrorKind, Result};
use jaato_plugin_sdk_provider::exchange;
use jaato_plugin_sdk_provider::shown::Blobs;

use super::habits::Habits;
use super::input::input;
use super::items;
use super::settings::{not_taken, settings, tool};

/// The field that brings reasoning which can go back.
const ENCRYPTED: &str = "reasoning.encrypted_content";

/// How a server is asked.
#[derive(Debug, Clone, Copy)]
pub struct Asking<'a> {
    /// The role of the system's text.
    pub system_role: &'a str,
    /// The word for as much thinking as the model can do.
    pub max_effort: &'static str,
    /// Whether a key by which the cache is found is understood.
    pub has_session_key: bool,
    /// How the model wants it.
    pub habits: &'a Habits,
}

/// Writes the body of a request. `blobs` are the bytes of those data parts that are to be seen;
/// the others are told of in words.
///
/// # Errors
/// `configuration` for an option that the protocol has no words for; `context_overflow` when the
/// body is larger than any that the host sends; `unknown_operation` for a message of a role from
/// the future.
pub fn body(request: &Request, asking: &Asking<'_>, blobs: &Blobs) -> Result<Vec<u8>> {
    if let Some(option) = not_taken(request).first() {
        let text = format!("Responses has no words for the option `{option}`");
        return Err(Error::new(ErrorKind::Configuration, text)
            .with_hint("leave it out, or set `api = \"chat\"` under `[plugins.provider-openai]`"));
    }
    let body = Body {
        model: &request.model,
        stream: request.options.stream != Some(false),
        store: false,
        include: asking.habits.has_encrypted.then_some([ENCRYPTED]),
        settings: settings(request, asking),
        tools: request.tools.iter().map(tool).collect(),
        input: input(request, asking, blobs)?,
    };
    exchange::written(&body, &request.options, HTTP_BODY_BYTES_MAX)
}

/// Lists the marks of the reasoning that a request holds.
pub fn reasoning_marks(request: &Request) -> BTreeSet<u64> {
    request.messages.iter().flat_map(|message| items::marks(&message.parts)).collect()
}

/// The body; the order of the fields is what is sent.
#[derive(Serialize)]
#[serde(crate = "jaato_plugin_sdk::serde")]
struct Body<'a> {
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
