//! Sends a request, reads its answer in any form, and interprets refusals.
//!
//! Independent of vendors: the [`AnswerReader`] interprets events, and the provider adds hints to
//! refusals.

use std::collections::BTreeMap;
use std::time::Duration;

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::serde::Serialize;
use jaato_plugin_sdk::serde_json::Map;
use jaato_plugin_sdk::types::RequestOptions;
use jaato_plugin_sdk::{HttpRequestBuilder, HttpResponse, serde_json};

use crate::stream::{self, ProviderStreamEnd, strip_byte_order_mark, with_time_limit};
use crate::{AnswerReader, SurrogateRepair, failure, limits};

/// The longest wait for an answer to start or continue. It exceeds the session's own timeout, which
/// decides.
const WAIT: Duration = Duration::from_secs(60 * 60);

/// The longest wait for the body of a refusal, whose status is already known.
const REFUSAL_WAIT: Duration = Duration::from_secs(2);

/// The maximum number of blank bytes before an answer that are kept: enough to detect a byte order
/// mark.
const BLANKS_MAX: usize = 1024;

/// The `Accept` headers for streamed and whole answers. The server may send either form.
const ACCEPT_STREAM: &str = "text/event-stream, application/json";
const ACCEPT_WHOLE: &str = "application/json, text/event-stream";

/// The largest list of models, and the largest answer that is not streamed.
pub const WHOLE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// The options that this module handles. A provider that uses [`serialize_body`] and
/// [`start_completion_request`] adds them to its list of options.
pub const EXTRA_OPTIONS: [&str; 2] = ["extra_body", "extra_headers"];

/// The requested form of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpectedResponse {
    streams: bool,
    headers: BTreeMap<String, String>,
}

impl ExpectedResponse {
    /// Reads the form from a request's options.
    pub fn from_request(request: &CompletionRequest) -> Self {
        let RequestOptions { stream, extra_headers, .. } = &request.options;
        Self { streams: *stream != Some(false), headers: extra_headers.clone() }
    }

    /// Returns true if the answer is to be streamed.
    pub fn streams(&self) -> bool {
        self.streams
    }

    /// Adds the user's extra headers.
    pub fn add_headers(&self, request: HttpRequestBuilder) -> HttpRequestBuilder {
        self.headers.iter().fold(request, |request, (name, value)| request.header(name, value))
    }
}

/// Starts the request for a completion.
pub fn start_completion_request(
    host: &Reporter,
    url: &str,
    wanted: &ExpectedResponse,
) -> HttpRequestBuilder {
    let accept = if wanted.streams { ACCEPT_STREAM } else { ACCEPT_WHOLE };
    post_accepting(host, url, wanted, accept)
}

/// Starts the request for a completion, with the given `Accept` header.
pub fn post_accepting(
    host: &Reporter,
    url: &str,
    wanted: &ExpectedResponse,
    accept: &str,
) -> HttpRequestBuilder {
    let request = host.http("POST", url).timeout(WAIT);
    wanted.add_headers(request.header("content-type", "application/json").header("accept", accept))
}

/// Writes the body of a request, with the option `extra_body` merged in.
///
/// # Errors
/// `context_overflow` if the body has more than `bytes_max` bytes, so that the session sends less
/// of the conversation.
pub fn serialize_body(
    body: &impl Serialize,
    options: &RequestOptions,
    bytes_max: u64,
) -> Result<Vec<u8>> {
    let bytes = if options.extra_body.is_empty() {
        serde_json::to_vec(body)
    } else {
        serde_json::to_value(body).and_then(|mut body| {
            merge_into_object(&mut body, &options.extra_body);
            serde_json::to_vec(&body)
        })
    };
    let bytes = bytes.map_err(|error| {
        Error::new(ErrorKind::HostBug, format!("the request cannot be written: {error}"))
    })?;
    if bytes.len() as u64 > bytes_max {
        let text =
            format!("the request has {} bytes: at most {bytes_max} can be sent", bytes.len());
        return Err(Error::new(ErrorKind::ContextOverflow, text));
    }
    Ok(bytes)
}

/// Merges values into an object recursively. `null` removes a key.
fn merge_into_object(body: &mut Value, extra: &Map<String, Value>) {
    let Some(body) = body.as_object_mut() else { return };
    for (key, value) in extra {
        match (value, body.get_mut(key)) {
            (Value::Null, _) => {
                body.remove(key);
            }
            (Value::Object(inner), Some(known)) if known.is_object() => {
                merge_into_object(known, inner)
            }
            (value, _) => {
                body.insert(key.clone(), value.clone());
            }
        }
    }
}

/// Returns true if the status is a success.
pub fn is_success(response: &HttpResponse) -> bool {
    (200..300).contains(&response.status())
}

/// Reads an answer and emits its deltas as they arrive. The first bytes decide the form, because
/// servers and gateways often send a wrong content type.
///
/// # Errors
/// The reader's error, or the error that broke the exchange before the model had finished.
pub async fn receive_answer<R: AnswerReader>(
    host: &Reporter,
    url: &str,
    mut response: HttpResponse,
    mut reader: R,
) -> Result<Completion> {
    let head = ResponseHead::from_response(&response);
    let mut characters = SurrogateRepair::default();
    let mut first = Vec::new();
    let form = loop {
        if let Some(form) = ResponseFormat::from_first_byte(&first) {
            break form;
        }
        match response.next().await.map_err(failure::exchange_error)? {
            Some(piece) => {
                if first.len() > BLANKS_MAX {
                    first.clear();
                }
                first.extend(piece);
                // Some servers send blanks before an answer to show that they are working on it.
                if ResponseFormat::from_first_byte(&first).is_none() {
                    host.emit(&Delta::Alive);
                }
            }
            None => return finish_answer(host, reader, &head, characters),
        }
    };
    let content_type = head.get("content-type").map(str::to_owned);
    match form {
        ResponseFormat::Stream => {
            let ended = stream::read_answer_events(
                host,
                url,
                first,
                response,
                &mut reader,
                &mut characters,
            )
            .await?;
            match ended {
                ProviderStreamEnd::AsStream => finish_answer(host, reader, &head, characters),
                ProviderStreamEnd::AsSomethingElse => {
                    Err(wrong_form_error::<R>(url, content_type.as_deref()))
                }
            }
        }
        ResponseFormat::Json => {
            let rest = response.bytes(WHOLE_BYTES_MAX).await.map_err(failure::exchange_error)?;
            let body = [first, rest].concat();
            let body = strip_byte_order_mark(&body);
            // If the body is not text, it is not JSON either, and the reader reports that.
            let repaired = std::str::from_utf8(body).map(|text| characters.repair_json(text));
            let body = repaired.as_ref().map_or(body, |text| text.as_bytes());
            stream::emit_deltas(host, reader.handle_whole_body(url, body)?, &mut characters);
            finish_answer(host, reader, &head, characters)
        }
        ResponseFormat::Compressed => Err(compressed_answer_error(url)),
        ResponseFormat::Page => Err(wrong_form_error::<R>(url, content_type.as_deref())),
    }
}

/// The form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ResponseFormat {
    Stream,
    Json,
    Page,
    Compressed,
}

impl ResponseFormat {
    /// Returns the form by the first byte that is not blank, or `None` if that byte has not arrived
    /// yet.
    fn from_first_byte(bytes: &[u8]) -> Option<Self> {
        if failure::is_compressed(bytes) {
            return Some(Self::Compressed);
        }
        Some(
            match strip_byte_order_mark(bytes).iter().find(|byte| !byte.is_ascii_whitespace())? {
                b'{' | b'[' => Self::Json,
                b'<' => Self::Page,
                // The second byte decides.
                0x1f if bytes.len() == 1 => return None,
                _ => Self::Stream,
            },
        )
    }
}

/// The headers of an answer.
struct ResponseHead(Vec<(String, String)>);

impl ResponseHead {
    fn from_response(response: &HttpResponse) -> Self {
        Self(response.headers().to_vec())
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

fn finish_answer<R: AnswerReader>(
    host: &Reporter,
    reader: R,
    head: &ResponseHead,
    mut characters: SurrogateRepair,
) -> Result<Completion> {
    let (deltas, mut completion) = reader.finish()?;
    stream::emit_deltas(host, deltas, &mut characters);
    characters.join_completion(&mut completion);
    let usage = &completion.usage;
    completion.next_after_ms = limits::next_request_delay_ms(|name| head.get(name), usage);
    Ok(completion)
}

/// Returns the error of an answer that does not belong to the protocol.
pub fn wrong_form_error<R: AnswerReader>(url: &str, content_type: Option<&str>) -> Error {
    let form = content_type.map_or_else(String::new, |it| format!(" (`{it}`)"));
    let url = failure::url_for_errors(url);
    let text = format!("`{url}` did not answer with a completion{form}");
    Error::new(ErrorKind::Provider, text).with_hint(R::CHECK_URL)
}

/// Returns the error of a compressed answer.
pub fn compressed_answer_error(url: &str) -> Error {
    let url = failure::url_for_errors(url);
    let text = format!("`{url}` sent a compressed answer (gzip) without being asked to");
    Error::new(ErrorKind::Provider, text)
        .with_hint("a proxy or gateway compresses answers: disable that for this server")
}

/// An answer whose status is not a success.
#[derive(Debug)]
#[non_exhaustive]
pub struct ErrorResponse {
    /// The status.
    pub status: u16,
    /// The server's description, as far as it arrived.
    pub body: Vec<u8>,
    /// Whether the request contained the credential.
    pub had_key: bool,
    /// The interpretation.
    pub error: Error,
}

/// Reads the description in a refusal. Does not wait long for the body, because the status is
/// enough.
pub async fn read_refusal(host: &Reporter, url: &str, mut response: HttpResponse) -> ErrorResponse {
    let mut limit = Some(Box::pin(host.sleep(REFUSAL_WAIT)));
    let mut body = Vec::new();
    while let Some(Ok(Some(piece))) = with_time_limit(limit.as_mut(), response.next()).await {
        body.extend(piece);
        if body.len() >= failure::BODY_BYTES_MAX {
            break;
        }
    }
    let status = response.status();
    let error = failure::answer_error(url, status, |name| response.header(name), &body);
    ErrorResponse { status, body, had_key: response.has_credential(), error }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extra_body_fields_override_the_request_body() {
        let body = json!({ "model": "m", "a": { "b": 1, "c": 2 }, "stop": ["x"] });
        let mut options = RequestOptions::default();
        assert_eq!(serialize_body(&body, &options, 100).unwrap(), body.to_string().into_bytes());
        let extra =
            json!({ "a": { "b": 3, "d": {} }, "stop": null, "model": { "n": 1 }, "new": [1] });
        let Value::Object(extra) = extra else { unreachable!("it is an object") };
        options.extra_body = extra;
        let expected = r#"{"model":{"n":1},"a":{"b":3,"c":2,"d":{}},"new":[1]}"#;
        let found = String::from_utf8(serialize_body(&body, &options, 100).unwrap()).unwrap();
        assert_eq!(found, expected);
        let error = serialize_body(&body, &options, 10).unwrap_err();
        assert_eq!(error.kind, ErrorKind::ContextOverflow);
    }
}
