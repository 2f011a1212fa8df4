//! What an answer to a message is: a message, a stream of them, nothing, or an error.

use std::sync::Arc;

use jaato_plugin_sdk::types::text::{cut, one_line};
use jaato_plugin_sdk::{Error, ErrorKind};
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorData, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::streamable_http_client::{
    StreamableHttpError, StreamableHttpPostResponse, StreamableHttpResponseLimits,
};
use tokio::sync::OwnedSemaphorePermit;

use super::backend::Reply;
use super::events::{self, Answering};
use super::failure::HttpFailure;
use super::sessions::{self, Sessions};
use crate::log::safe;
use crate::transport::repair;

/// The media type of messages.
pub const JSON: &str = "application/json";
/// The media type of streams.
pub const EVENTS: &str = "text/event-stream";
/// The header that names a session.
pub const SESSION_ID: &str = "mcp-session-id";
/// Bodies of this size and more are read on another thread.
const LARGE_BYTES: usize = 256 * 1024;
/// Characters of a body that is no message which an error shows.
const SHOWN_CHARS_MAX: usize = 300;

/// What `rmcp` is told of an answer.
pub type Answered = Result<StreamableHttpPostResponse, StreamableHttpError<HttpFailure>>;

/// What is known of the message that was sent.
pub struct Sent<'a> {
    /// The message.
    pub message: &'a ClientJsonRpcMessage,
    /// The session that it named.
    pub session: Option<&'a str>,
    /// The sessions of the server.
    pub sessions: &'a Arc<Sessions>,
    /// How large answers may be.
    pub limits: StreamableHttpResponseLimits,
    /// Its place among the requests of the server.
    pub place: Option<OwnedSemaphorePermit>,
}

impl Sent<'_> {
    /// The request that an answer belongs to.
    fn id(&self) -> Option<&RequestId> {
        match self.message {
            ClientJsonRpcMessage::Request(request) => Some(&request.id),
            _ => None,
        }
    }

    /// Returns true if another session is to be begun, and the request sent again.
    fn renews(&self) -> bool {
        self.session.is_some() && self.id().is_some_and(|id| self.sessions.renew_for(id))
    }
}

/// Takes the answer to a message. A refused login is none of this module's business.
///
/// # Errors
/// A session that is over, a status or a body that is no answer.
pub async fn of(reply: Reply, sent: Sent<'_>) -> Answered {
    let status = reply.status;
    if status == 202 || status == 204 {
        return Ok(StreamableHttpPostResponse::Accepted);
    }
    let session = reply.header(SESSION_ID).map(str::to_owned);
    if !(200..300).contains(&status) {
        return failed(reply, &sent, session).await;
    }
    // Notifications and answers wait for nothing: what comes back is not looked at.
    let Some(id) = sent.id().cloned() else { return Ok(StreamableHttpPostResponse::Accepted) };
    if reply.is_of(EVENTS) {
        let (known, sessions) = (sent.session.map(str::to_owned), Arc::clone(sent.sessions));
        let answering = Answering { id, session: known, sessions };
        let limit = sent.limits.max_sse_event_size;
        let stream = events::of(reply.body, limit, sent.place, Some(answering));
        return Ok(StreamableHttpPostResponse::Sse(stream, session));
    }
    if !reply.is_of(JSON) {
        let kind = reply.header("content-type").map_or_else(
            || "without a content type".to_owned(),
            |kind| format!("with `{}` instead of JSON", safe(&cut(kind, 80))),
        );
        let body = shown(&reply.beginning(sent.limits.max_error_response_size).await);
        let text = format!("the server answered {kind}: {body}");
        return Err(unavailable(text));
    }
    let body = read(reply, sent.limits.max_json_response_size).await?;
    match answer_in(body, &id).await {
        Ok(JsonRpcMessage::Error(error)) if sessions::is_over(&error.error) && sent.renews() => {
            Err(StreamableHttpError::SessionExpired)
        }
        Ok(message) => Ok(StreamableHttpPostResponse::Json(message, session)),
        Err(why) => Err(unavailable(why)),
    }
}

/// Takes an answer with the status of a failure. It may hold an error of the protocol.
async fn failed(reply: Reply, sent: &Sent<'_>, session: Option<String>) -> Answered {
    let status = reply.status;
    let wait = reply.header("retry-after").map(|wait| match wait.trim().parse::<u64>() {
        Ok(seconds) => format!("; try again after {seconds} s"),
        Err(_) => format!("; try again after {}", safe(&cut(wait, 40))),
    });
    let body = match reply.is_of(JSON) {
        true => read(reply, sent.limits.max_json_response_size).await?,
        false => reply.beginning(sent.limits.max_error_response_size).await.into_bytes(),
    };
    let text = shown(&String::from_utf8_lossy(&body));
    let is_message = text_has(&body, "\"jsonrpc\"");
    let error = match sent.id().filter(|_| is_message) {
        Some(id) => match answer_in(body, id).await {
            Ok(JsonRpcMessage::Error(error)) => Some(error.error),
            _ => None,
        },
        None => None,
    };
    if sessions::may_be_over(status, &text, error.as_ref(), wait.is_some()) && sent.renews() {
        return Err(StreamableHttpError::SessionExpired);
    }
    let refuses = (400..500).contains(&status) && ![401, 403, 429].contains(&status);
    if let (ClientJsonRpcMessage::Request(request), true) = (sent.message, refuses) {
        let is_probe = matches!(request.request, ClientRequest::DiscoverRequest(_));
        let text = format!("the probe was refused with status {status}");
        let unknown = || ErrorData::invalid_request(text, None);
        // A server that knows no probe may answer with any identifier, or with a page.
        if is_probe && sent.session.is_none() {
            let error = error.unwrap_or_else(unknown);
            let answer = ServerJsonRpcMessage::error(error, Some(request.id.clone()));
            return Ok(StreamableHttpPostResponse::Json(answer, None));
        }
    }
    let wait = wait.unwrap_or_default();
    match error {
        Some(mut error) if status != 401 && status != 403 => {
            error.message = format!("{}{wait}", error.message).into();
            let answer = ServerJsonRpcMessage::error(error, sent.id().cloned());
            Ok(StreamableHttpPostResponse::Json(answer, session))
        }
        _ => {
            let colon = if text.is_empty() { "" } else { ": " };
            Err(unavailable(format!("the server answered status {status}{colon}{text}{wait}")))
        }
    }
}

fn text_has(body: &[u8], word: &str) -> bool {
    body.windows(word.len()).any(|piece| piece == word.as_bytes())
}

fn unavailable(text: String) -> StreamableHttpError<HttpFailure> {
    let error = Error::new(ErrorKind::Unavailable, text).temporary();
    StreamableHttpError::Client(error.into())
}

async fn read(reply: Reply, bytes_max: usize) -> Result<Vec<u8>, StreamableHttpError<HttpFailure>> {
    reply.bytes(bytes_max).await.map_err(|error| StreamableHttpError::Client(error.into()))
}

/// Reads the answer to a request, whatever identifier the server gives it. A large answer would
/// make all other servers wait, so another thread reads it.
async fn answer_in(body: Vec<u8>, id: &RequestId) -> Result<ServerJsonRpcMessage, String> {
    let (id, is_small) = (id.clone(), body.len() < LARGE_BYTES);
    let read = move || {
        let heard = repair::read_answer(&body, &id);
        heard.ok_or_else(|| {
            format!("not an MCP message: {}", shown(&String::from_utf8_lossy(&body)))
        })
    };
    match is_small {
        true => read(),
        false => tokio::task::spawn_blocking(read)
            .await
            .unwrap_or_else(|_| Err("a message was lost".to_owned())),
    }
}

/// Makes what a stranger wrote fit to be shown. Of a page its words are.
pub fn shown(text: &str) -> String {
    let mut words = text.trim().to_owned();
    if words.starts_with('<') {
        let pieces = words.split('<').filter_map(|piece| piece.split_once('>'));
        words = pieces.map(|(_, text)| text.trim()).collect::<Vec<_>>().join(" ");
        words = one_line(&words);
    }
    safe(&cut(&words, SHOWN_CHARS_MAX))
}
