//! Interprets the HTTP response to a message: a message, a stream of messages, nothing, or an
//! error.

use std::sync::Arc;

use jaato_plugin_sdk::types::text::{one_line, truncate_chars};
use jaato_plugin_sdk::{Error, ErrorKind};
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorData, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::streamable_http_client::{
    StreamableHttpError, StreamableHttpPostResponse, StreamableHttpResponseLimits,
};
use tokio::sync::OwnedSemaphorePermit;

use super::backend::McpHttpResponse;
use super::events::{self, StreamedRequest};
use super::failure::HttpFailure;
use super::sessions::{self, HttpSessions};
use crate::log::sanitize_line;
use crate::transport::repair;

/// The media type of messages.
pub const JSON: &str = "application/json";
/// The media type of streams.
pub const EVENTS: &str = "text/event-stream";
/// The header that names a session.
pub const SESSION_ID: &str = "mcp-session-id";
/// Bodies of at least this size are parsed on another thread.
const LARGE_BYTES: usize = 256 * 1024;
/// The maximum number of characters that an error shows of an invalid body.
const SHOWN_CHARS_MAX: usize = 300;

/// The result for `rmcp`.
pub type HttpPostResult = Result<StreamableHttpPostResponse, StreamableHttpError<HttpFailure>>;

/// The message that was sent, and its context.
pub struct SentMessage<'a> {
    /// The message.
    pub message: &'a ClientJsonRpcMessage,
    /// The session that the message named.
    pub session: Option<&'a str>,
    /// The sessions of the server.
    pub sessions: &'a Arc<HttpSessions>,
    /// The size limits of responses.
    pub limits: StreamableHttpResponseLimits,
    /// The message's permit among the server's concurrent requests.
    pub place: Option<OwnedSemaphorePermit>,
}

impl SentMessage<'_> {
    /// The ID of the request that a response belongs to.
    fn request_id(&self) -> Option<&RequestId> {
        match self.message {
            ClientJsonRpcMessage::Request(request) => Some(&request.id),
            _ => None,
        }
    }

    /// Returns true if the request should be sent again in a new session.
    fn should_renew_session(&self) -> bool {
        self.session.is_some()
            && self.request_id().is_some_and(|id| self.sessions.should_renew_for(id))
    }
}

/// Interprets the response to a message. The caller handles refused logins.
///
/// # Errors
/// An error if the session has expired, or the status or body is not valid.
pub async fn interpret_reply(reply: McpHttpResponse, sent: SentMessage<'_>) -> HttpPostResult {
    let status = reply.status;
    if status == 202 || status == 204 {
        return Ok(StreamableHttpPostResponse::Accepted);
    }
    let session = reply.header(SESSION_ID).map(str::to_owned);
    if !(200..300).contains(&status) {
        return interpret_failure(reply, &sent, session).await;
    }
    // Notifications and responses expect no response, so the body is ignored.
    let Some(id) = sent.request_id().cloned() else {
        return Ok(StreamableHttpPostResponse::Accepted);
    };
    if reply.has_media_type(EVENTS) {
        let (known, sessions) = (sent.session.map(str::to_owned), Arc::clone(sent.sessions));
        let answering = StreamedRequest { id, session: known, sessions };
        let limit = sent.limits.max_sse_event_size;
        let stream = events::decode_events(reply.body, limit, sent.place, Some(answering));
        return Ok(StreamableHttpPostResponse::Sse(stream, session));
    }
    if !reply.has_media_type(JSON) {
        let kind = reply.header("content-type").map_or_else(
            || "without a content type".to_owned(),
            |kind| format!("with `{}` instead of JSON", sanitize_line(&truncate_chars(kind, 80))),
        );
        let body = printable_text(&reply.read_beginning(sent.limits.max_error_response_size).await);
        let text = format!("the server answered {kind}: {body}");
        return Err(unavailable_error(text));
    }
    let body = read_reply_body(reply, sent.limits.max_json_response_size).await?;
    match parse_response_body(body, &id).await {
        Ok(JsonRpcMessage::Error(error))
            if sessions::is_expired_error(&error.error) && sent.should_renew_session() =>
        {
            Err(StreamableHttpError::SessionExpired)
        }
        Ok(message) => Ok(StreamableHttpPostResponse::Json(message, session)),
        Err(why) => Err(unavailable_error(why)),
    }
}

/// Interprets a response with an error status. Its body may hold a protocol error.
async fn interpret_failure(
    reply: McpHttpResponse,
    sent: &SentMessage<'_>,
    session: Option<String>,
) -> HttpPostResult {
    let status = reply.status;
    let wait = reply.header("retry-after").map(|wait| match wait.trim().parse::<u64>() {
        Ok(seconds) => format!("; try again after {seconds} s"),
        Err(_) => format!("; try again after {}", sanitize_line(&truncate_chars(wait, 40))),
    });
    let body = match reply.has_media_type(JSON) {
        true => read_reply_body(reply, sent.limits.max_json_response_size).await?,
        false => reply.read_beginning(sent.limits.max_error_response_size).await.into_bytes(),
    };
    let text = printable_text(&String::from_utf8_lossy(&body));
    let is_message = has_word(&body, "\"jsonrpc\"");
    let error = match sent.request_id().filter(|_| is_message) {
        Some(id) => match parse_response_body(body, id).await {
            Ok(JsonRpcMessage::Error(error)) => Some(error.error),
            _ => None,
        },
        None => None,
    };
    if sessions::can_mean_expired(status, &text, error.as_ref(), wait.is_some())
        && sent.should_renew_session()
    {
        return Err(StreamableHttpError::SessionExpired);
    }
    let refuses = (400..500).contains(&status) && ![401, 403, 429].contains(&status);
    if let (ClientJsonRpcMessage::Request(request), true) = (sent.message, refuses) {
        let is_probe = matches!(request.request, ClientRequest::DiscoverRequest(_));
        let text = format!("the probe was refused with status {status}");
        let unknown = || ErrorData::invalid_request(text, None);
        // A server that does not know the probe may answer with any ID, or with a page.
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
            let answer = ServerJsonRpcMessage::error(error, sent.request_id().cloned());
            Ok(StreamableHttpPostResponse::Json(answer, session))
        }
        _ => {
            let colon = if text.is_empty() { "" } else { ": " };
            Err(unavailable_error(format!(
                "the server answered status {status}{colon}{text}{wait}"
            )))
        }
    }
}

fn has_word(body: &[u8], word: &str) -> bool {
    body.windows(word.len()).any(|piece| piece == word.as_bytes())
}

fn unavailable_error(text: String) -> StreamableHttpError<HttpFailure> {
    let error = Error::new(ErrorKind::Unavailable, text).temporary();
    StreamableHttpError::Client(error.into())
}

async fn read_reply_body(
    reply: McpHttpResponse,
    bytes_max: usize,
) -> Result<Vec<u8>, StreamableHttpError<HttpFailure>> {
    reply.read_body(bytes_max).await.map_err(|error| StreamableHttpError::Client(error.into()))
}

/// Parses the response to a request, regardless of its ID. A large response is parsed on another
/// thread, because it would block all other servers.
async fn parse_response_body(
    body: Vec<u8>,
    id: &RequestId,
) -> Result<ServerJsonRpcMessage, String> {
    let (id, is_small) = (id.clone(), body.len() < LARGE_BYTES);
    let read = move || {
        let heard = repair::parse_response_to(&body, &id);
        heard.ok_or_else(|| {
            format!("not an MCP message: {}", printable_text(&String::from_utf8_lossy(&body)))
        })
    };
    match is_small {
        true => read(),
        false => tokio::task::spawn_blocking(read)
            .await
            .unwrap_or_else(|_| Err("a message was lost".to_owned())),
    }
}

/// Makes untrusted text printable. A page is reduced to its text.
pub fn printable_text(text: &str) -> String {
    let mut words = text.trim().to_owned();
    if words.starts_with('<') {
        let pieces = words.split('<').filter_map(|piece| piece.split_once('>'));
        words = pieces.map(|(_, text)| text.trim()).collect::<Vec<_>>().join(" ");
        words = one_line(&words);
    }
    sanitize_line(&truncate_chars(&words, SHOWN_CHARS_MAX))
}
