//! Sends a request and reads the answer, whatever its form.

use std::time::Duration;

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::{HttpResponse, serde_json};
use jaato_plugin_sdk_provider::failure;

use crate::content::{self, Blobs};
use crate::refusal::{self, CHECK_URL, Wish};
use crate::reply::Reply;
use crate::state::{KEY, OpenAi};
use crate::stream::{self, Ended, unmarked, within};

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
pub(crate) const WHOLE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Fetches the bytes of what a request shows. What the session does not have, or does not give, or
/// what is too large to be sent, is told of in words instead.
pub(crate) async fn fetch(cx: &Cx<OpenAi>, request: &Request) -> Result<Blobs> {
    let mut blobs = Blobs::new();
    for id in content::wanted(request) {
        match cx.blobs().get(id, content::BLOB_BYTES_MAX).await {
            Ok(bytes) => {
                blobs.insert(id.to_owned(), bytes);
            }
            Err(error) if is_left_out(error.kind) => {
                let text = format!("the blob `{id}` is not shown to the model: {error}");
                cx.log(Level::Warn, text);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(blobs)
}

fn is_left_out(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::NotFound
            | ErrorKind::LimitReached
            | ErrorKind::PermissionDenied
            | ErrorKind::Unavailable
            | ErrorKind::UnknownOperation
    )
}

/// Sends a body; `is_whole` says that it asks for an answer that is not streamed.
pub(crate) async fn send(
    cx: &Cx<OpenAi>,
    url: &str,
    is_whole: bool,
    body: Vec<u8>,
) -> Result<HttpResponse> {
    let accept = if is_whole { ACCEPT_WHOLE } else { ACCEPT_STREAM };
    let request = cx
        .http("POST", url)
        .header("content-type", "application/json")
        .header("accept", accept)
        .credential(KEY)
        .timeout(WAIT)
        .body(body);
    request.send().await.map_err(failure::of_exchange)
}

pub(crate) fn is_success(response: &HttpResponse) -> bool {
    (200..300).contains(&response.status())
}

/// Reads an answer of the form that its first bytes tell: servers and gateways name it wrongly.
pub(crate) async fn receive(
    cx: &Cx<OpenAi>,
    url: &str,
    mut response: HttpResponse,
) -> Result<Completion> {
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
                    cx.emit(&Delta::Alive);
                }
            }
            None => return Reply::new(url).finish().map(|(_, completion)| completion),
        }
    };
    match form {
        Form::Stream => match stream::follow(cx, url, first, response).await? {
            Ended::With(reply) => end(cx, reply),
            Ended::NoStream(response) => Err(wrong_form(url, response.header("content-type"))),
        },
        Form::Json => {
            let rest = response.bytes(WHOLE_BYTES_MAX).await.map_err(failure::of_exchange)?;
            whole(cx, url, &[first, rest].concat())
        }
        Form::Compressed => Err(compressed(url)),
        Form::Page => Err(wrong_form(url, response.header("content-type"))),
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

/// Reads an answer of a server that does not stream.
fn whole(cx: &Cx<OpenAi>, url: &str, body: &[u8]) -> Result<Completion> {
    let shown = failure::shown_url(url);
    let values = serde_json::Deserializer::from_slice(unmarked(body)).into_iter::<Value>();
    // Google's servers report an error in a list of one.
    let unlisted = |value| match value {
        Value::Array(mut list) if list.len() == 1 => list.remove(0),
        value => value,
    };
    let values = values.map(|value| value.map(unlisted)).collect::<Result<Vec<_>, _>>();
    let values = values.map_err(|error| {
        let text = format!("the answer of `{shown}` is no JSON: {error}");
        Error::new(ErrorKind::Provider, text).temporary()
    })?;
    if values.iter().any(is_of_ollamas_own) {
        let text = format!("`{shown}` answered in the form of Ollama's own api");
        return Err(Error::new(ErrorKind::Provider, text)
            .with_hint("the base url of an Ollama ends in `/v1`: `http://localhost:11434/v1`"));
    }
    let mut reply = Reply::new(url);
    for delta in reply.whole(&values)? {
        cx.emit(&delta);
    }
    if !values.iter().any(|value| value["choices"].as_array().is_some_and(|it| !it.is_empty())) {
        return Err(wrong_form(url, Some("application/json")));
    }
    end(cx, reply)
}

/// Tells whether a value is of `/api/chat` or `/api/generate`, which answer a line of JSON for each
/// piece.
fn is_of_ollamas_own(value: &Value) -> bool {
    value["done"].is_boolean() && (value["message"].is_object() || value["response"].is_string())
}

fn end(cx: &Cx<OpenAi>, reply: Reply) -> Result<Completion> {
    let (deltas, completion) = reply.finish()?;
    for delta in deltas {
        cx.emit(&delta);
    }
    Ok(completion)
}

fn wrong_form(url: &str, content_type: Option<&str>) -> Error {
    let form = content_type.map_or_else(String::new, |it| format!(" (`{it}`)"));
    let url = failure::shown_url(url);
    let text = format!("`{url}` answered with what is no completion{form}");
    Error::new(ErrorKind::Provider, text).with_hint(CHECK_URL)
}

fn compressed(url: &str) -> Error {
    let url = failure::shown_url(url);
    let text = format!("`{url}` answered compressed (gzip), which it was not asked to");
    Error::new(ErrorKind::Provider, text)
        .with_hint("a proxy or gateway in between compresses: switch that off for this server")
}

/// An answer that is no success.
pub(crate) struct Refused {
    pub(crate) error: Error,
    /// What the server wants differently.
    pub(crate) wish: Option<Wish>,
}

/// Reads what a server says about an answer that is no success. What does not come soon is left
/// out: the status says enough.
pub(crate) async fn refused(cx: &Cx<OpenAi>, url: &str, mut response: HttpResponse) -> Refused {
    let mut limit = Some(Box::pin(cx.sleep(REFUSAL_WAIT)));
    let mut body = Vec::new();
    while let Some(Ok(Some(piece))) = within(limit.as_mut(), response.next()).await {
        body.extend(piece);
        if body.len() >= failure::BODY_BYTES_MAX {
            break;
        }
    }
    let status = response.status();
    let error = failure::of_answer(url, status, |name| response.header(name), &body);
    let error = match refusal::hint(status, &body, response.with_credential(), KEY) {
        Some(hint) => error.with_hint(hint),
        None => error,
    };
    Refused { error, wish: refusal::wish(status, &body) }
}
