//! Sends a request, reads its answer whatever the form, and says what a refusal means.
//!
//! No vendor's protocol: what an event says is the [`Reader`]'s, and what to do about a refusal the
//! provider's.

use std::collections::BTreeMap;
use std::time::Duration;

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::serde::Serialize;
use jaato_plugin_sdk::serde_json::Map;
use jaato_plugin_sdk::types::RequestOptions;
use jaato_plugin_sdk::{HttpRequestBuilder, HttpResponse, serde_json};

use crate::stream::{self, Ended, unmarked, within};
use crate::{Reader, WholeCharacters, failure, limits};

/// Wait for an answer to begin or go on: more than a session's own patience, which is what decides.
const WAIT: Duration = Duration::from_secs(60 * 60);

/// Wait for what a server says about a refusal, whose status is known.
const REFUSAL_WAIT: Duration = Duration::from_secs(2);

/// Most blank bytes before an answer that are kept: enough to know a byte order mark.
const BLANKS_MAX: usize = 1024;

/// What is accepted of a server that is to stream, and of one that is not; either may come.
const ACCEPT_STREAM: &str = "text/event-stream, application/json";
const ACCEPT_WHOLE: &str = "application/json, text/event-stream";

/// Largest list of models and largest answer that does not come as a stream.
pub const WHOLE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// The names of the options that are honoured here alone: a provider that writes its requests with
/// [`written`] and sends them with [`post`] lists them.
pub const EXTRA_OPTIONS: [&str; 2] = ["extra_body", "extra_headers"];

/// How an answer is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    streams: bool,
    headers: BTreeMap<String, String>,
}

impl Wanted {
    /// Tells it by a request's options.
    pub fn of(request: &Request) -> Self {
        let RequestOptions { stream, extra_headers, .. } = &request.options;
        Self { streams: *stream != Some(false), headers: extra_headers.clone() }
    }

    /// Tells whether it is to come piece by piece.
    pub fn streams(&self) -> bool {
        self.streams
    }

    /// Adds the headers that a person wants.
    pub fn add_headers(&self, request: HttpRequestBuilder) -> HttpRequestBuilder {
        self.headers.iter().fold(request, |request, (name, value)| request.header(name, value))
    }
}

/// Begins the request for a completion.
pub fn post(host: &Reporter, url: &str, wanted: &Wanted) -> HttpRequestBuilder {
    let accept = if wanted.streams { ACCEPT_STREAM } else { ACCEPT_WHOLE };
    post_accepting(host, url, wanted, accept)
}

/// Begins the request for a completion of a server that wants its own forms accepted.
pub fn post_accepting(
    host: &Reporter,
    url: &str,
    wanted: &Wanted,
    accept: &str,
) -> HttpRequestBuilder {
    let request = host.http("POST", url).timeout(WAIT);
    wanted.add_headers(request.header("content-type", "application/json").header("accept", accept))
}

/// Writes the body of a request, at most so many bytes, with what the options lay over it.
///
/// # Errors
/// `context_overflow` when it is larger: less of the conversation is sent then.
pub fn written(body: &impl Serialize, options: &RequestOptions, bytes_max: u64) -> Result<Vec<u8>> {
    let bytes = if options.extra_body.is_empty() {
        serde_json::to_vec(body)
    } else {
        serde_json::to_value(body).and_then(|mut body| {
            lay_over(&mut body, &options.extra_body);
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

/// Lays values over those of an object, within inner objects too; `null` takes one out.
fn lay_over(body: &mut Value, extra: &Map<String, Value>) {
    let Some(body) = body.as_object_mut() else { return };
    for (key, value) in extra {
        match (value, body.get_mut(key)) {
            (Value::Null, _) => {
                body.remove(key);
            }
            (Value::Object(inner), Some(known)) if known.is_object() => lay_over(known, inner),
            (value, _) => {
                body.insert(key.clone(), value.clone());
            }
        }
    }
}

/// Tells whether a status is a success.
pub fn is_success(response: &HttpResponse) -> bool {
    (200..300).contains(&response.status())
}

/// Reads an answer of the form that its first bytes tell: servers and gateways name it wrongly.
/// Emits what comes, as it comes.
///
/// # Errors
/// What the reader makes of it; what broke the exchange before the model had said all.
pub async fn receive<R: Reader>(
    host: &Reporter,
    url: &str,
    mut response: HttpResponse,
    mut reader: R,
) -> Result<Completion> {
    let head = Head::of(&response);
    let mut characters = WholeCharacters::default();
    let mut first = Vec::new();
    let form = loop {
        if let Some(form) = Form::of(&first) {
            break form;
        }
        match response.next().await.map_err(failure::of_exchange)? {
            Some(piece) => {
                if first.len() > BLANKS_MAX {
                    first.clear();
                }
                first.extend(piece);
                // Blanks before an answer are how some servers show that they work on it.
                if Form::of(&first).is_none() {
                    host.emit(&Delta::Alive);
                }
            }
            None => return end(host, reader, &head, characters),
        }
    };
    let content_type = head.get("content-type").map(str::to_owned);
    match form {
        Form::Stream => {
            let ended =
                stream::follow(host, url, first, response, &mut reader, &mut characters).await?;
            match ended {
                Ended::AsStream => end(host, reader, &head, characters),
                Ended::AsSomethingElse => Err(wrong_form::<R>(url, content_type.as_deref())),
            }
        }
        Form::Json => {
            let rest = response.bytes(WHOLE_BYTES_MAX).await.map_err(failure::of_exchange)?;
            let body = [first, rest].concat();
            let body = unmarked(&body);
            // What is no text is no JSON either, and the reader says so.
            let repaired = std::str::from_utf8(body).map(|text| characters.repair(text));
            let body = repaired.as_ref().map_or(body, |text| text.as_bytes());
            stream::emit(host, reader.whole(url, body)?, &mut characters);
            end(host, reader, &head, characters)
        }
        Form::Compressed => Err(compressed(url)),
        Form::Page => Err(wrong_form::<R>(url, content_type.as_deref())),
    }
}

/// What an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Stream,
    Json,
    Page,
    Compressed,
}

impl Form {
    /// Tells it by the first byte that is no blank; none as long as there is none.
    fn of(bytes: &[u8]) -> Option<Self> {
        if failure::is_compressed(bytes) {
            return Some(Self::Compressed);
        }
        Some(match unmarked(bytes).iter().find(|byte| !byte.is_ascii_whitespace())? {
            b'{' | b'[' => Self::Json,
            b'<' => Self::Page,
            // Its second byte tells.
            0x1f if bytes.len() == 1 => return None,
            _ => Self::Stream,
        })
    }
}

/// The headers of an answer.
struct Head(Vec<(String, String)>);

impl Head {
    fn of(response: &HttpResponse) -> Self {
        Self(response.headers().to_vec())
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

fn end<R: Reader>(
    host: &Reporter,
    reader: R,
    head: &Head,
    mut characters: WholeCharacters,
) -> Result<Completion> {
    let (deltas, mut completion) = reader.finish()?;
    stream::emit(host, deltas, &mut characters);
    characters.join_completion(&mut completion);
    let usage = &completion.usage;
    completion.next_after_ms = limits::next_after_ms(|name| head.get(name), usage);
    Ok(completion)
}

/// Makes the error of an answer that is none of this protocol.
pub fn wrong_form<R: Reader>(url: &str, content_type: Option<&str>) -> Error {
    let form = content_type.map_or_else(String::new, |it| format!(" (`{it}`)"));
    let url = failure::shown_url(url);
    let text = format!("`{url}` answered with what is no completion{form}");
    Error::new(ErrorKind::Provider, text).with_hint(R::CHECK_URL)
}

/// Makes the error of an answer that is compressed.
pub fn compressed(url: &str) -> Error {
    let url = failure::shown_url(url);
    let text = format!("`{url}` answered compressed (gzip), which it was not asked to");
    Error::new(ErrorKind::Provider, text)
        .with_hint("a proxy or gateway in between compresses: switch that off for this server")
}

/// An answer that is no success.
#[derive(Debug)]
#[non_exhaustive]
pub struct Refusal {
    /// Its status.
    pub status: u16,
    /// What the server says of it, as far as it came.
    pub body: Vec<u8>,
    /// Whether the credential went with the request.
    pub had_key: bool,
    /// What it means.
    pub error: Error,
}

/// Reads what a server says about an answer that is no success. What does not come soon is left
/// out: the status says enough.
pub async fn refusal(host: &Reporter, url: &str, mut response: HttpResponse) -> Refusal {
    let mut limit = Some(Box::pin(host.sleep(REFUSAL_WAIT)));
    let mut body = Vec::new();
    while let Some(Ok(Some(piece))) = within(limit.as_mut(), response.next()).await {
        body.extend(piece);
        if body.len() >= failure::BODY_BYTES_MAX {
            break;
        }
    }
    let status = response.status();
    let error = failure::of_answer(url, status, |name| response.header(name), &body);
    Refusal { status, body, had_key: response.with_credential(), error }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_person_says_in_the_vendors_words_is_laid_over_the_body() {
        let body = json!({ "model": "m", "a": { "b": 1, "c": 2 }, "stop": ["x"] });
        let mut options = RequestOptions::default();
        assert_eq!(written(&body, &options, 100).unwrap(), body.to_string().into_bytes());
        let extra =
            json!({ "a": { "b": 3, "d": {} }, "stop": null, "model": { "n": 1 }, "new": [1] });
        let Value::Object(extra) = extra else { unreachable!("it is an object") };
        options.extra_body = extra;
        let expected = r#"{"model":{"n":1},"a":{"b":3,"c":2,"d":{}},"new":[1]}"#;
        let found = String::from_utf8(written(&body, &options, 100).unwrap()).unwrap();
        assert_eq!(found, expected);
        let error = written(&body, &options, 10).unwrap_err();
        assert_eq!(error.kind, ErrorKind::ContextOverflow);
    }
}
