//! A connection to a server: an `rmcp` client over a transport.

use std::sync::Arc;
use std::time::Duration;

use jaato_plugin_sdk::serde::{Deserialize, Serialize};
use jaato_plugin_sdk::serde_json::{self, Value};
use jaato_plugin_sdk::types::text::truncate_bytes;
use jaato_plugin_sdk::{Error, ErrorKind};
use rmcp::model::{
    CancelledNotification, CancelledNotificationParam, ClientRequest, ErrorData, ProtocolVersion,
    RequestId, ServerPeerInfo, ServerResult,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, ClientServiceExt as _, Peer, PeerRequestOptions,
    RoleClient, RunningService, ServiceError,
};
use rmcp::transport::Transport;
use rmcp::transport::streamable_http_client::StreamableHttpError;

use crate::call_context::McpCallContext;
use crate::client::{CallRegistration, McpClient};
use crate::log::sanitize_line;
use crate::runtime::McpSpawner;
use crate::server_description::plain_text;
use crate::transport::http::{HttpFailure, failure, sessions};

/// The protocol era of a server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(crate = "jaato_plugin_sdk::serde", rename_all = "snake_case")]
pub enum ProtocolEra {
    /// `initialize`, up to 2025-11-25.
    Legacy,
    /// Stateless, from 2026-07-28 on.
    Modern,
    /// The server has not been asked.
    #[default]
    #[serde(other)]
    Unknown,
}

/// The protocol's error code for headers that do not match the body (2026-07-28).
const HEADER_MISMATCH: i32 = -32020;
/// The protocol's error code for a page that the user must open first (2025-11-25).
const URL_REQUIRED: i32 = -32042;
/// The maximum number of pages shown from one error, and the maximum length of a URL.
const PAGES_MAX: usize = 4;
const URL_BYTES_MAX: usize = 2000;
/// The beginning of a hint that lists pages. Their URLs are never masked.
pub const OPEN_PAGE: &str = "open this page, then call again: ";
/// The maximum number of bytes shown of an error's data.
const DATA_BYTES_MAX: usize = 1000;

/// An open connection. Dropping it closes the connection.
pub struct OpenConnection {
    /// The connection that calls use.
    pub connection: Arc<McpConnection>,
    /// The service loop of the connection.
    pub running: RunningService<RoleClient, McpClient>,
}

/// Sends requests to a server.
pub struct McpConnection {
    peer: Peer<RoleClient>,
    client: McpClient,
    spawner: McpSpawner,
    /// The server's information about itself.
    pub info: Arc<ServerPeerInfo>,
    /// The server's era.
    pub era: ProtocolEra,
}

/// The reason why a request failed.
pub struct McpRequestFailure {
    /// The headers do not match the tool, because the server has changed the tool's description.
    pub has_other_headers: bool,
    /// Pages that the user must open first: requests of the mode `url`.
    pub pages: Vec<Value>,
    /// The error as text for the model.
    pub error: Error,
}

/// The reason why one attempt failed.
enum RequestAttemptFailure {
    Refused(ServiceError),
    Lost(Error),
}

impl McpRequestFailure {
    fn from_service_error(error: &ServiceError) -> Self {
        let code = match error {
            ServiceError::McpError(error) => Some(error.code.0),
            _ => None,
        };
        let pages = match error {
            ServiceError::McpError(error) if code == Some(URL_REQUIRED) => pages_to_open(error),
            _ => Vec::new(),
        };
        let mut error = describe_service_error(error);
        let urls: Vec<&str> = pages.iter().filter_map(|page| page["url"].as_str()).collect();
        if !urls.is_empty() {
            error.hint = Some(format!("{OPEN_PAGE}{}", urls.join(" ")));
        }
        Self { has_other_headers: code == Some(HEADER_MISMATCH), pages, error }
    }
}

/// Lists the pages that an error asks the user to open.
fn pages_to_open(error: &ErrorData) -> Vec<Value> {
    let listed = error.data.as_ref().and_then(|data| data["elicitations"].as_array());
    let is_page = |page: &&Value| {
        page["url"].as_str().is_some_and(|url| url.len() <= URL_BYTES_MAX && is_safe_url(url))
    };
    listed.into_iter().flatten().filter(is_page).take(PAGES_MAX).cloned().collect()
}

/// Returns true if a URL is an HTTP URL of printable ASCII characters.
fn is_safe_url(url: &str) -> bool {
    let is_page = url.starts_with("https://") || url.starts_with("http://");
    is_page && url.bytes().all(|byte| byte.is_ascii_graphic())
}

impl From<Error> for McpRequestFailure {
    fn from(error: Error) -> Self {
        Self { has_other_headers: false, pages: Vec::new(), error }
    }
}

/// Cancels a request on the server when its caller stops waiting.
struct CancelRequestOnDrop {
    peer: Peer<RoleClient>,
    spawner: McpSpawner,
    id: Option<RequestId>,
}

impl Drop for CancelRequestOnDrop {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else { return };
        let peer = self.peer.clone();
        self.spawner
            .spawn(async move { cancel_request(&peer, id, "the caller stopped waiting").await });
    }
}

async fn cancel_request(peer: &Peer<RoleClient>, id: RequestId, why: &str) {
    let params = CancelledNotificationParam::new(Some(id), Some(why.to_owned()));
    let _ = peer.send_notification(CancelledNotification::new(params).into()).await;
}

/// Opens a connection. Must run on the runtime. If the era is known, the server is not probed for
/// it.
///
/// # Errors
/// If no connection could be set up.
pub async fn open_connection<T>(
    transport: T,
    client: McpClient,
    era: ProtocolEra,
    spawner: McpSpawner,
) -> Result<OpenConnection, ClientInitializeError>
where
    T: Transport<RoleClient> + 'static,
{
    let preferred_versions = vec![ProtocolVersion::LATEST];
    let mode = match era {
        ProtocolEra::Legacy => ClientLifecycleMode::Initialize,
        ProtocolEra::Modern => ClientLifecycleMode::Discover { preferred_versions },
        ProtocolEra::Unknown => ClientLifecycleMode::Auto {
            preferred_versions,
            legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
        },
    };
    let running = client.clone().serve_with_lifecycle(transport, mode).await?;
    let peer = running.peer().clone();
    // Each way to connect sets this.
    let unknown = || Arc::new(ServerPeerInfo::new(ProtocolVersion::default(), <_>::default()));
    let info = peer.peer_info().unwrap_or_else(unknown);
    let era = match info.protocol_version.has_initialize() {
        true => ProtocolEra::Legacy,
        false => ProtocolEra::Modern,
    };
    let connection = Arc::new(McpConnection { peer, client, spawner, info, era });
    Ok(OpenConnection { connection, running })
}

impl McpConnection {
    /// Sends a request and waits for its response. Runs on any executor. Dropping the future
    /// cancels the request on the server.
    ///
    /// # Errors
    /// The server's error as text for the model, `timeout`, or `unavailable` if the server has
    /// ended.
    pub async fn request(
        self: &Arc<Self>,
        request: ClientRequest,
        time: Duration,
        site: Option<Arc<dyn McpCallContext>>,
    ) -> Result<ServerResult, Error> {
        let this = Arc::clone(self);
        let work = async move { this.request_on_runtime(request, time, site).await };
        self.spawner.run_on_runtime(work).await?
    }

    /// Like [`McpConnection::request`], but must run on the runtime.
    pub async fn request_on_runtime(
        &self,
        request: ClientRequest,
        time: Duration,
        site: Option<Arc<dyn McpCallContext>>,
    ) -> Result<ServerResult, Error> {
        self.request_with_demands(request, time, site).await.map_err(|refused| refused.error)
    }

    /// Like [`McpConnection::request_on_runtime`], but returns the pages to open and other demands
    /// of the server as [`McpRequestFailure`]. A request whose session is lost is sent again once.
    ///
    /// # Errors
    /// The errors of [`McpConnection::request`].
    pub async fn request_with_demands(
        &self,
        request: ClientRequest,
        time: Duration,
        site: Option<Arc<dyn McpCallContext>>,
    ) -> Result<ServerResult, McpRequestFailure> {
        let first = self.send_once(request.clone(), time, site.clone()).await;
        let answer = match first {
            Err(RequestAttemptFailure::Refused(ServiceError::McpError(error)))
                if sessions::is_session_lost(&error) =>
            {
                self.send_once(request, time, site).await
            }
            first => first,
        };
        answer.map_err(|why| match why {
            RequestAttemptFailure::Refused(error) => McpRequestFailure::from_service_error(&error),
            RequestAttemptFailure::Lost(error) => error.into(),
        })
    }

    async fn send_once(
        &self,
        request: ClientRequest,
        time: Duration,
        site: Option<Arc<dyn McpCallContext>>,
    ) -> Result<ServerResult, RequestAttemptFailure> {
        let mut enrolled: Option<CallRegistration> =
            site.map(|site| self.client.register_call(site));
        let options = PeerRequestOptions::no_options();
        let sent = self.peer.send_request_with_option(request, options);
        let late = || {
            let text = format!("the server did not answer within {} s", time.as_secs_f32());
            Error::new(ErrorKind::Timeout, text).temporary()
        };
        let mut handle = match tokio::time::timeout(time, sent).await {
            Ok(sent) => sent.map_err(RequestAttemptFailure::Refused)?,
            Err(_) => return Err(RequestAttemptFailure::Lost(late())),
        };
        if let Some(enrolled) = &mut enrolled {
            enrolled.set_progress_token(handle.progress_token.clone());
        }
        let (peer, spawner) = (self.peer.clone(), self.spawner.clone());
        let mut abandoned = CancelRequestOnDrop { peer, spawner, id: Some(handle.id.clone()) };
        // The time limit is paused while the user is being asked.
        let answer = loop {
            let waited = tokio::time::timeout(time, &mut handle.rx).await;
            let is_asking = || self.client.has_open_request();
            match waited {
                Ok(answer) => break answer,
                Err(_) if enrolled.is_some() && is_asking() => {}
                Err(_) => return Err(RequestAttemptFailure::Lost(late())),
            }
        };
        abandoned.id = None;
        match answer {
            // An HTTP stream can end without closing the connection.
            Ok(Err(ServiceError::TransportClosed)) | Err(_) if !self.is_closed() => {
                let text = "the server's answer ended before it was complete";
                Err(RequestAttemptFailure::Lost(
                    Error::new(ErrorKind::Unavailable, text).temporary(),
                ))
            }
            Ok(answer) => answer.map_err(RequestAttemptFailure::Refused),
            Err(_) => Err(RequestAttemptFailure::Lost(connection_gone_error())),
        }
    }

    /// Returns true once the server has ended.
    pub fn is_closed(&self) -> bool {
        self.peer.is_transport_closed()
    }

    /// Returns the spawner of the runtime.
    pub fn spawner(&self) -> &McpSpawner {
        &self.spawner
    }

    /// Returns the client side of the connection.
    pub fn client(&self) -> &McpClient {
        &self.client
    }

    /// Returns the peer that creates subscriptions.
    pub fn peer(&self) -> &Peer<RoleClient> {
        &self.peer
    }
}

/// Converts an error to text for the model.
pub fn describe_service_error(error: &ServiceError) -> Error {
    match error {
        ServiceError::McpError(error) => {
            let kind = match error.code.0 {
                -32602 => ErrorKind::InvalidArguments,
                -32601 => ErrorKind::UnknownOperation,
                -32002 => ErrorKind::NotFound,
                _ => ErrorKind::Failed,
            };
            Error::new(kind, describe_error_data(error))
        }
        ServiceError::TransportClosed => connection_gone_error(),
        // HTTP errors carry a reason, but pipe errors do not.
        ServiceError::TransportSend(error) => {
            explain_http_failure(&*error.error).unwrap_or_else(connection_gone_error)
        }
        other => Error::failed(sanitize_line(&other.to_string())),
    }
}

/// Formats a protocol error with its data, which often explains more.
fn describe_error_data(error: &ErrorData) -> String {
    let message = sanitize_line(&error.message);
    let data = match &error.data {
        None | Some(Value::Null) => return message,
        Some(_) if sessions::is_session_lost(error) => return message,
        Some(Value::String(text)) => plain_text(text),
        Some(data) => plain_text(&data.to_string()),
    };
    let data = data.trim();
    match message.is_empty() || data.is_empty() || message.contains(data) {
        true => message + data,
        false => format!("{message} ({})", truncate_bytes(data, DATA_BYTES_MAX)),
    }
}

/// Explains why no connection was set up.
pub fn explain_open_error(error: &ClientInitializeError) -> Error {
    let text = match error {
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => {
            return explain_open_error(fallback);
        }
        ClientInitializeError::TransportError { error, .. } => {
            match explain_http_failure(&*error.error) {
                Some(error) => return error,
                None => "it cannot be reached".to_owned(),
            }
        }
        ClientInitializeError::JsonRpcError(error) => describe_error_data(error),
        ClientInitializeError::ExpectedInitResponse(answer) => describe_odd_answer(answer),
        ClientInitializeError::ExpectedInitResult(answer) => describe_odd_answer(answer),
        ClientInitializeError::NoCompatibleProtocolVersion { server_supported, .. } => {
            let versions: Vec<String> = server_supported.iter().map(ToString::to_string).collect();
            format!(
                "jaato and the server share no protocol version; the server supports {}",
                versions.join(", ")
            )
        }
        other => other.to_string(),
    };
    Error::new(ErrorKind::Unavailable, sanitize_line(&text)).temporary()
}

/// Describes what the server sent instead of a response to the first request.
fn describe_odd_answer<T: Serialize>(answer: &Option<T>) -> String {
    let answer = answer.as_ref().and_then(|answer| serde_json::to_string(answer).ok());
    match answer {
        Some(answer) => {
            format!("its first answer is not valid: {answer}")
        }
        None => "it did not answer the first request".to_owned(),
    }
}

fn connection_gone_error() -> Error {
    Error::new(ErrorKind::Unavailable, "the server closed the connection").temporary()
}

/// Explains why an HTTP request failed.
pub fn explain_http_failure(error: &(dyn std::error::Error + 'static)) -> Option<Error> {
    if let Some(error) = failure::find_own_error(error) {
        return Some(error);
    }
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(known) = error.downcast_ref::<StreamableHttpError<HttpFailure>>() {
            let text = sanitize_line(&known.to_string());
            return Some(Error::new(ErrorKind::Unavailable, text).temporary());
        }
        next = error.source();
    }
    None
}
