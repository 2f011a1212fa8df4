//! Sends `rmcp`'s messages through an [`HttpBackend`], with the token of the login.
//!
//! Invariants: the token goes only to the server's own URL. The number of a server's concurrent
//! requests is limited, so that other servers get their share.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{BoxStream, StreamExt as _};
use http::{HeaderName, HeaderValue};
use jaato_plugin_sdk::serde_json;
use jaato_plugin_sdk::{Error, ErrorKind};
use parking_lot::Mutex;
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorCode, ErrorData, ServerJsonRpcMessage,
};
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
    StreamableHttpResponseLimits,
};
use sse_stream::Sse;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::Instant;

use super::answer::{self, EVENTS, HttpPostResult, JSON, SESSION_ID, SentMessage};
use super::authorize::Authorize;
use super::backend::{HttpBackend, McpHttpRequest, McpHttpResponse};
use super::challenge::AuthChallenge;
use super::events;
use super::failure::HttpFailure;
use super::sessions::HttpSessions;

/// The maximum number of a server's concurrent requests. The host allows a plugin 64.
pub const REQUESTS_MAX: usize = 12;
/// The maximum silence of a stream, which is the host's limit. A server may have nothing to send.
const SILENCE_MAX: Duration = Duration::from_secs(60 * 60);
/// The maximum time for the probe of a server's era.
const PROBE_TIME: Duration = Duration::from_secs(5);
/// The minimum time between two streams.
const STREAM_PAUSE: Duration = Duration::from_millis(100);
/// The maximum time that a call waits for the server's answer to the request for the session's
/// stream. It waits only once, because some servers answer with their first event.
const STREAM_WAIT: Duration = Duration::from_secs(1);
/// The maximum number of attempts to send a request with another token.
const ATTEMPTS_MAX: usize = 3;
/// The maximum time for a server to show that it uses the older transport.
const OLDER_TIME: Duration = Duration::from_secs(3);
/// The maximum number of bytes read from the older transport's stream.
const OLDER_BYTES_MAX: usize = 4 * 1024;
/// The maximum size of an event if `rmcp` sets no limit.
const EVENT_BYTES_MAX: usize = 16 * 1024 * 1024;

type HttpClientError = StreamableHttpError<HttpFailure>;

/// The HTTP client of one server.
#[derive(Clone)]
pub struct HttpClient {
    backend: Arc<dyn HttpBackend>,
    /// `None` if the entry sets its own `Authorization`.
    login: Option<Arc<dyn Authorize>>,
    places: Arc<Semaphore>,
    /// The time of the last request for a stream.
    streamed: Arc<Mutex<Option<Instant>>>,
    /// The last session for whose stream the server has answered.
    stream_answered: watch::Sender<Option<Arc<str>>>,
    sessions: Arc<HttpSessions>,
}

impl HttpClient {
    /// Creates a client.
    pub fn new(backend: Arc<dyn HttpBackend>, login: Option<Arc<dyn Authorize>>) -> Self {
        Self {
            backend,
            login,
            places: Arc::new(Semaphore::new(REQUESTS_MAX)),
            streamed: Arc::default(),
            stream_answered: watch::Sender::default(),
            sessions: Arc::default(),
        }
    }

    /// Sends a request with the current token. If the server refuses the token, sends the request
    /// again with a better one, if available.
    async fn send_authorized(
        &self,
        exchange: McpHttpRequest,
    ) -> Result<McpHttpResponse, HttpClientError> {
        let client = |failure: HttpFailure| StreamableHttpError::Client(failure);
        let mut token = match &self.login {
            Some(login) => login.access_token().await.map_err(client)?,
            None => None,
        };
        for attempt in 1.. {
            let exchange = match &token {
                Some(token) => {
                    exchange.clone().with_header("authorization", &format!("Bearer {token}"))
                }
                None => exchange.clone(),
            };
            let reply =
                self.backend.send_http_request(exchange).await.map_err(|it| client(it.into()))?;
            let challenge = AuthChallenge::from_reply(&reply);
            let is_refused = reply.status == 401;
            let wants_more = reply.status == 403 && challenge.is_scope_missing();
            if !is_refused && !wants_more {
                return Ok(reply);
            }
            // The rest of the body is not needed.
            drop(reply);
            let Some(login) = self.login.as_ref().filter(|_| attempt < ATTEMPTS_MAX) else {
                return Err(client(refusal_failure(self.login.is_some(), wants_more)));
            };
            let sent = token.take();
            token = Some(match is_refused {
                true => login
                    .replace_refused_token(sent.as_deref(), &challenge)
                    .await
                    .map_err(client)?,
                false => login.request_wider_token(&challenge).await.map_err(client)?,
            });
        }
        Err(client(refusal_failure(true, false)))
    }

    /// Waits if a stream was requested a moment ago. A server that closes each stream immediately,
    /// and asks to resume it without a wait, must not set the pace.
    async fn limit_stream_rate(&self) {
        let wait = {
            let mut streamed = self.streamed.lock();
            let now = Instant::now();
            let next = streamed.map_or(now, |last| (last + STREAM_PAUSE).max(now));
            *streamed = Some(next);
            next
        };
        tokio::time::sleep_until(wait).await;
    }

    /// Waits until the server has answered the request for the session's stream, which `rmcp` sends
    /// at the same time as the first call. Many servers drop questions of a call if the client has
    /// no stream yet, and the call then never ends.
    async fn wait_for_stream(&self, session: &Arc<str>) {
        let mut answered = self.stream_answered.subscribe();
        let is_answered = answered.wait_for(|of| of.as_ref() == Some(session));
        if tokio::time::timeout(STREAM_WAIT, is_answered).await.is_err() {
            self.stream_answered.send_replace(Some(Arc::clone(session)));
        }
    }

    /// Sends a message and interprets the response.
    async fn post_and_interpret(
        &self,
        exchange: McpHttpRequest,
        sent: SentMessage<'_>,
    ) -> HttpPostResult {
        let is_probe = matches!(
            sent.message,
            ClientJsonRpcMessage::Request(request)
                if matches!(request.request, ClientRequest::DiscoverRequest(_))
        );
        let message = sent.message;
        let answered = async {
            let reply = self.send_authorized(exchange.clone()).await?;
            if is_initialize(message) && matches!(reply.status, 400 | 404..=406 | 415) {
                self.reject_older_transport(exchange).await?;
            }
            answer::interpret_reply(reply, sent).await
        };
        if !is_probe {
            return answered.await;
        }
        match (tokio::time::timeout(PROBE_TIME, answered).await, message) {
            (Ok(answered), _) => answered,
            (Err(_), ClientJsonRpcMessage::Request(request)) => {
                // The server does not know the modern era or does not work. `initialize` shows
                // which.
                let text = "no answer to the probe";
                let error = ErrorData::new(ErrorCode::METHOD_NOT_FOUND, text, None);
                let answer = ServerJsonRpcMessage::error(error, Some(request.id.clone()));
                Ok(StreamableHttpPostResponse::Json(answer, None))
            }
            (Err(_), _) => Err(StreamableHttpError::UnexpectedEndOfStream),
        }
    }

    /// Checks whether a server that refuses messages at its URL uses the older transport, whose
    /// stream begins with the URL for messages.
    async fn reject_older_transport(&self, refused: McpHttpRequest) -> Result<(), HttpClientError> {
        let mut exchange = McpHttpRequest::new("GET", &refused.url, OLDER_TIME);
        let is_own = |name: &str| ["accept", "content-type"].contains(&name);
        exchange.headers = refused.headers.into_iter().filter(|(name, _)| !is_own(name)).collect();
        let look = async {
            let mut reply =
                self.send_authorized(exchange.with_header("accept", EVENTS)).await.ok()?;
            let mut begun = Vec::new();
            while reply.has_media_type(EVENTS) && begun.len() < OLDER_BYTES_MAX {
                begun.extend(reply.body.next().await?.ok()?);
                if String::from_utf8_lossy(&begun).contains("event: endpoint") {
                    return Some(());
                }
            }
            None
        };
        match tokio::time::timeout(OLDER_TIME, look).await {
            Ok(Some(())) => {
                let text = "the server uses the old HTTP+SSE transport (2024-11-05), which jaato \
                            does not support";
                let hint = "set `url` to the server's Streamable HTTP address, which often ends \
                            with `/mcp`";
                let error = Error::new(ErrorKind::Configuration, text).with_hint(hint);
                Err(StreamableHttpError::Client(error.into()))
            }
            Ok(None) | Err(_) => Ok(()),
        }
    }

    /// Takes a permit for a request. Answers and notifications need no permit, because they may
    /// belong to a call that already has one.
    async fn request_permit(&self, message: &ClientJsonRpcMessage) -> Option<OwnedSemaphorePermit> {
        match message {
            ClientJsonRpcMessage::Request(_) => {
                // The semaphore is never closed.
                Arc::clone(&self.places).acquire_owned().await.ok()
            }
            _ => None,
        }
    }
}

fn is_initialize(message: &ClientJsonRpcMessage) -> bool {
    matches!(
        message,
        ClientJsonRpcMessage::Request(request)
            if matches!(request.request, ClientRequest::InitializeRequest(_))
    )
}

fn is_tool_call(message: &ClientJsonRpcMessage) -> bool {
    matches!(
        message,
        ClientJsonRpcMessage::Request(request)
            if matches!(request.request, ClientRequest::CallToolRequest(_))
    )
}

/// Returns the error after the last attempt.
fn refusal_failure(has_login: bool, wants_more: bool) -> HttpFailure {
    let text = match (has_login, wants_more) {
        (false, _) => "the server refuses the `Authorization` header of its entry",
        (true, true) => "the server requires rights that it has already granted",
        (true, false) => "the server refuses a token that it has just issued",
    };
    HttpFailure { error: Error::new(ErrorKind::PermissionDenied, text), wants_login: true }
}

/// Adds the session and the headers from `rmcp`.
fn add_session_headers(
    mut exchange: McpHttpRequest,
    session: Option<&str>,
    headers: HashMap<HeaderName, HeaderValue>,
) -> McpHttpRequest {
    if let Some(session) = session {
        exchange = exchange.with_header(SESSION_ID, session);
    }
    for (name, value) in headers {
        exchange.headers.push((
            name.as_str().to_owned(),
            String::from_utf8_lossy(value.as_bytes()).into_owned(),
        ));
    }
    exchange
}

impl StreamableHttpClient for HttpClient {
    type Error = HttpFailure;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, HttpClientError> {
        let limits = StreamableHttpResponseLimits::default();
        self.post_message_with_response_limits(
            uri,
            message,
            session_id,
            auth_header,
            custom_headers,
            limits,
        )
        .await
    }

    async fn post_message_with_response_limits(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
        limits: StreamableHttpResponseLimits,
    ) -> HttpPostResult {
        let place = self.request_permit(&message).await;
        let exchange = McpHttpRequest::new("POST", &uri, SILENCE_MAX)
            .with_header("accept", &format!("{JSON}, {EVENTS}"))
            .with_header("content-type", JSON);
        let mut exchange = add_session_headers(exchange, session_id.as_deref(), custom_headers);
        exchange.body = serde_json::to_vec(&message)?;
        if let Some(session) = session_id.as_ref().filter(|_| is_tool_call(&message)) {
            self.wait_for_stream(session).await;
        }
        let session = session_id.as_deref();
        let is_request = matches!(message, ClientJsonRpcMessage::Request(_));
        if is_request && session.is_some_and(|session| self.sessions.is_known_lost(session)) {
            return Err(StreamableHttpError::SessionExpired);
        }
        let sent =
            SentMessage { message: &message, session, sessions: &self.sessions, limits, place };
        self.post_and_interpret(exchange, sent).await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), HttpClientError> {
        let exchange = McpHttpRequest::new("DELETE", &uri, SILENCE_MAX);
        let reply = self
            .send_authorized(add_session_headers(exchange, Some(&session_id), custom_headers))
            .await?;
        match reply.status {
            // 404 and 405: the server does not keep sessions, or has forgotten this one.
            200..300 | 404 | 405 => Ok(()),
            status => {
                let text = format!("status {status} at the end of the session");
                Err(StreamableHttpError::UnexpectedServerResponse(text.into()))
            }
        }
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, HttpClientError> {
        self.get_stream_with_max_sse_event_size(
            uri,
            session_id,
            last_event_id,
            auth_header,
            custom_headers,
            EVENT_BYTES_MAX,
        )
        .await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
        max_sse_event_size: usize,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, HttpClientError> {
        self.limit_stream_rate().await;
        let mut exchange =
            McpHttpRequest::new("GET", &uri, SILENCE_MAX).with_header("accept", EVENTS);
        if let Some(last) = &last_event_id {
            exchange = exchange.with_header("last-event-id", last);
        }
        let exchange = add_session_headers(exchange, session_id.as_deref(), custom_headers);
        let reply = self.send_authorized(exchange).await;
        self.stream_answered.send_replace(session_id.clone());
        let reply = reply?;
        match reply.status {
            200..300 if reply.has_media_type(EVENTS) => {
                Ok(events::decode_events(reply.body, max_sse_event_size, None, None))
            }
            200..300 => {
                let kind =
                    crate::log::sanitize_line(reply.header("content-type").unwrap_or_default());
                let text = format!("its event stream has the content type `{kind}`");
                Err(StreamableHttpError::UnexpectedServerResponse(text.into()))
            }
            404 if session_id.is_some() => Err(StreamableHttpError::SessionExpired),
            405 => Err(StreamableHttpError::ServerDoesNotSupportSse),
            status => {
                let text = format!("status {status} for its stream");
                Err(StreamableHttpError::UnexpectedServerResponse(text.into()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::future::{BoxFuture, FutureExt as _};
    use jaato_plugin_sdk::Result;
    use rmcp::model::{
        CallToolRequest, CallToolRequestParams, DiscoverRequest, DiscoverRequestParams, RequestId,
    };

    use super::*;

    /// A server that never answers.
    struct SilentBackend;

    impl HttpBackend for SilentBackend {
        fn send_http_request(
            &self,
            _exchange: McpHttpRequest,
        ) -> BoxFuture<'static, Result<McpHttpResponse>> {
            std::future::pending().boxed()
        }
    }

    /// A server that answers the request for a stream after a time, and never a call. Records when
    /// a call arrives.
    struct SlowStreamBackend(Duration, Arc<Mutex<Option<Instant>>>);

    impl HttpBackend for SlowStreamBackend {
        fn send_http_request(
            &self,
            exchange: McpHttpRequest,
        ) -> BoxFuture<'static, Result<McpHttpResponse>> {
            let (delay, called) = (self.0, Arc::clone(&self.1));
            async move {
                if exchange.method == "GET" {
                    tokio::time::sleep(delay).await;
                    let body = futures_util::stream::pending().boxed();
                    return Ok(McpHttpResponse { status: 405, headers: Vec::new(), body });
                }
                called.lock().get_or_insert(Instant::now());
                std::future::pending().await
            }
            .boxed()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn call_waits_for_the_stream_of_its_session_for_a_limited_time() {
        let check = async |delay: Duration, expected: Duration| {
            let called = Arc::default();
            let client =
                HttpClient::new(Arc::new(SlowStreamBackend(delay, Arc::clone(&called))), None);
            let call = || {
                let request = CallToolRequest::new(CallToolRequestParams::new("moon"));
                let request = ClientRequest::CallToolRequest(request);
                let message = ClientJsonRpcMessage::request(request, RequestId::Number(1));
                let session = Some("s".into());
                client.post_message("http://x".into(), message, session, None, <_>::default())
            };
            let stream =
                client.get_stream("http://x".into(), Some("s".into()), None, None, <_>::default());
            let begin = Instant::now();
            let both = async { tokio::join!(stream, call()) };
            assert!(tokio::time::timeout(2 * STREAM_WAIT, both).await.is_err());
            assert_eq!(called.lock().take().map(|at| at - begin), Some(expected));
            let begin = Instant::now();
            assert!(tokio::time::timeout(STREAM_WAIT, call()).await.is_err());
            assert_eq!(called.lock().take().map(|at| at - begin), Some(Duration::ZERO));
        };
        check(STREAM_WAIT / 2, STREAM_WAIT / 2).await;
        check(10 * STREAM_WAIT, STREAM_WAIT).await;
    }

    #[tokio::test(start_paused = true)]
    async fn server_that_ignores_the_probe_is_treated_as_legacy() {
        let client = HttpClient::new(Arc::new(SilentBackend), None);
        let request = DiscoverRequest::new(DiscoverRequestParams {});
        let request = ClientRequest::DiscoverRequest(request);
        let message = ClientJsonRpcMessage::request(request, RequestId::Number(7));
        let answer = client.post_message("http://x".into(), message, None, None, <_>::default());
        let StreamableHttpPostResponse::Json(answer, None) = answer.await.unwrap() else {
            panic!()
        };
        let (error, id) = answer.into_error().unwrap();
        assert_eq!((error.code, id), (ErrorCode::METHOD_NOT_FOUND, Some(RequestId::Number(7))));
    }

    #[tokio::test(start_paused = true)]
    async fn streams_are_reopened_at_a_limited_rate() {
        let client = HttpClient::new(Arc::new(SilentBackend), None);
        let begin = Instant::now();
        for _ in 0..11 {
            client.limit_stream_rate().await;
        }
        assert_eq!(begin.elapsed(), 10 * STREAM_PAUSE);
    }

    #[tokio::test(start_paused = true)]
    async fn requests_per_server_are_limited_but_responses_are_not() {
        let client = HttpClient::new(Arc::new(SilentBackend), None);
        let request = || {
            let request = DiscoverRequest::new(DiscoverRequestParams {});
            ClientJsonRpcMessage::request(
                ClientRequest::DiscoverRequest(request),
                RequestId::Number(1),
            )
        };
        let mut held = Vec::new();
        for _ in 0..REQUESTS_MAX {
            held.push(client.request_permit(&request()).await);
        }
        let one_more = request();
        assert!(client.request_permit(&one_more).now_or_never().is_none());
        let error = ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "", None);
        let answer = ClientJsonRpcMessage::error(error, Some(RequestId::Number(2)));
        assert!(client.request_permit(&answer).now_or_never().is_some());
        held.pop();
        assert!(client.request_permit(&one_more).now_or_never().is_some());
    }
}
