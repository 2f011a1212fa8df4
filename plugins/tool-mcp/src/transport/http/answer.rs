//! What an answer to a message is: a message, a stream of them, nothing, or an error.

use jaato_plugin_sdk::serde_json;
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ErrorData, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::{
    HttpStatusError, StreamableHttpError, StreamableHttpPostResponse, StreamableHttpResponseLimits,
};
use tokio::sync::OwnedSemaphorePermit;

use super::backend::Reply;
use super::events;
use super::failure::HttpFailure;

/// The media type of messages.
pub const JSON: &str = "application/json";
/// The media type of streams.
pub const EVENTS: &str = "text/event-stream";
/// The header that names a session.
pub const SESSION_ID: &str = "mcp-session-id";
/// Bodies of this size and more are read on another thread.
const LARGE_BYTES: usize = 256 * 1024;
/// Characters of a body that is no message which an error shows.
const SHOWN_CHARS_MAX: usize = 200;

/// What `rmcp` is told of an answer.
pub type Answered = Result<StreamableHttpPostResponse, StreamableHttpError<HttpFailure>>;

/// What is known of the message that was sent.
pub struct Sent<'a> {
    /// The message.
    pub message: &'a ClientJsonRpcMessage,
    /// Whether it named a session.
    pub has_session: bool,
    /// How large answers may be.
    pub limits: StreamableHttpResponseLimits,
    /// Its place among the requests of the server.
    pub place: Option<OwnedSemaphorePermit>,
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
    if status == 404 && sent.has_session {
        return Err(StreamableHttpError::SessionExpired);
    }
    let session = reply.header(SESSION_ID).map(str::to_owned);
    if !(200..300).contains(&status) {
        return failed(reply, &sent, session).await;
    }
    // Notifications and answers wait for nothing: what comes back is not looked at.
    if !matches!(sent.message, ClientJsonRpcMessage::Request(_)) {
        return Ok(StreamableHttpPostResponse::Accepted);
    }
    if reply.is_of(EVENTS) {
        let stream = events::of(reply.body, sent.limits.max_sse_event_size, sent.place);
        return Ok(StreamableHttpPostResponse::Sse(stream, session));
    }
    if !reply.is_of(JSON) {
        let kind = reply.header("content-type").map(shown);
        return Err(StreamableHttpError::UnexpectedContentType(kind));
    }
    let body = read(reply, sent.limits.max_json_response_size).await?;
    match parse(body).await {
        Ok(message) => Ok(StreamableHttpPostResponse::Json(message, session)),
        Err(why) => Err(StreamableHttpError::UnexpectedServerResponse(why.into())),
    }
}

/// Takes an answer with the status of a failure. It may hold an error of the protocol.
async fn failed(reply: Reply, sent: &Sent<'_>, session: Option<String>) -> Answered {
    let status = reply.status;
    let after = reply.header("retry-after").map(str::to_owned);
    let is_json = reply.is_of(JSON);
    let (error, text) = match is_json {
        true => {
            let body = read(reply, sent.limits.max_json_response_size).await?;
            let text = shown(&String::from_utf8_lossy(&body));
            (parse(body).await.ok(), text)
        }
        false => (None, shown(&reply.beginning(sent.limits.max_error_response_size).await)),
    };
    let error = match error {
        Some(ServerJsonRpcMessage::Error(error)) => Some(error),
        _ => None,
    };
    let refuses = (400..500).contains(&status) && ![401, 403, 429].contains(&status);
    if let (ClientJsonRpcMessage::Request(request), true) = (sent.message, refuses) {
        let is_probe = matches!(request.request, ClientRequest::DiscoverRequest(_));
        let text = format!("the probe was refused with status {status}");
        let unknown = || ErrorData::invalid_request(text, None);
        // A server that knows no probe may answer with any identifier, or with a page.
        if is_probe && !sent.has_session {
            let error = error.map_or_else(unknown, |error| error.error);
            let answer = ServerJsonRpcMessage::error(error, Some(request.id.clone()));
            return Ok(StreamableHttpPostResponse::Json(answer, None));
        }
    }
    match error {
        Some(error) if status != 401 && status != 403 => {
            Ok(StreamableHttpPostResponse::Json(ServerJsonRpcMessage::Error(error), session))
        }
        _ if status == 429 || status >= 500 => Err(HttpStatusError::new(status, after).into()),
        _ => {
            let text = format!("status {status}: {text}");
            Err(StreamableHttpError::UnexpectedServerResponse(text.into()))
        }
    }
}

async fn read(reply: Reply, bytes_max: usize) -> Result<Vec<u8>, StreamableHttpError<HttpFailure>> {
    reply.bytes(bytes_max).await.map_err(|error| StreamableHttpError::Client(error.into()))
}

/// Reads a message. A large one would keep all other servers waiting, and is read elsewhere.
async fn parse(body: Vec<u8>) -> Result<ServerJsonRpcMessage, String> {
    let read = |body: &[u8]| -> Result<ServerJsonRpcMessage, String> {
        serde_json::from_slice(body).map_err(|_| {
            format!("no message of the protocol: {}", shown(&String::from_utf8_lossy(body)))
        })
    };
    match body.len() < LARGE_BYTES {
        true => read(&body),
        false => tokio::task::spawn_blocking(move || read(&body))
            .await
            .unwrap_or_else(|_| Err("a message was lost".to_owned())),
    }
}

/// Makes what a stranger wrote fit to be shown.
fn shown(text: &str) -> String {
    let short: String = text.chars().take(SHOWN_CHARS_MAX).collect();
    crate::log::safe(&short)
}
