//! One connection to a server: a client of `rmcp` over a transport.

use std::sync::Arc;
use std::time::Duration;

use jaato_plugin_sdk::serde::{Deserialize, Serialize};
use jaato_plugin_sdk::{Error, ErrorKind};
use rmcp::model::{
    CancelledNotification, CancelledNotificationParam, ClientRequest, ProtocolVersion, RequestId,
    ServerPeerInfo, ServerResult,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, ClientServiceExt as _, Peer, PeerRequestOptions,
    RoleClient, RunningService, ServiceError,
};
use rmcp::transport::Transport;
use rmcp::transport::streamable_http_client::StreamableHttpError;

use crate::client::{Client, Enrolled};
use crate::log::safe;
use crate::runtime::Spawner;
use crate::site::CallSite;
use crate::transport::http::{HttpFailure, failure};

/// Which of the protocol's two eras a server speaks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(crate = "jaato_plugin_sdk::serde", rename_all = "snake_case")]
pub enum Era {
    /// `initialize`, up to 2025-11-25.
    Legacy,
    /// Stateless, from 2026-07-28 on.
    Modern,
    /// Nobody has asked it.
    #[default]
    #[serde(other)]
    Unknown,
}

/// The protocol's number for headers that are not those of the body (2026-07-28).
const HEADER_MISMATCH: i32 = -32020;

/// A connection that is made. Dropping it closes the connection.
pub struct Opened {
    /// What calls use.
    pub connection: Arc<Connection>,
    /// The loop behind it.
    pub running: RunningService<RoleClient, Client>,
}

/// What requests are sent by.
pub struct Connection {
    peer: Peer<RoleClient>,
    client: Client,
    spawner: Spawner,
    /// What the server says of itself.
    pub info: Arc<ServerPeerInfo>,
    /// Its era.
    pub era: Era,
}

/// Why a request was not answered.
pub struct Refused {
    /// The headers that we sent are not those of the tool: the server has another description of it
    /// by now.
    pub has_other_headers: bool,
    /// It, in words for a model.
    pub error: Error,
}

impl Refused {
    fn of(error: &ServiceError) -> Self {
        let has_other_headers =
            matches!(error, ServiceError::McpError(error) if error.code.0 == HEADER_MISMATCH);
        Self { has_other_headers, error: in_words(error) }
    }
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        Self { has_other_headers: false, error }
    }
}

/// Tells the server of a request that nobody waits for any more.
struct Abandoned {
    peer: Peer<RoleClient>,
    spawner: Spawner,
    id: Option<RequestId>,
}

impl Drop for Abandoned {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else { return };
        let peer = self.peer.clone();
        self.spawner.spawn(async move { cancel(&peer, id, "nobody waits for it").await });
    }
}

async fn cancel(peer: &Peer<RoleClient>, id: RequestId, why: &str) {
    let params = CancelledNotificationParam::new(Some(id), Some(why.to_owned()));
    let _ = peer.send_notification(CancelledNotification::new(params).into()).await;
}

/// Makes a connection, on the runtime. An era that is known is not asked for.
///
/// # Errors
/// Why the server and we do not understand each other.
pub async fn open<T>(
    transport: T,
    client: Client,
    era: Era,
    spawner: Spawner,
) -> Result<Opened, ClientInitializeError>
where
    T: Transport<RoleClient> + 'static,
{
    let preferred_versions = vec![ProtocolVersion::LATEST];
    let mode = match era {
        Era::Legacy => ClientLifecycleMode::Initialize,
        Era::Modern => ClientLifecycleMode::Discover { preferred_versions },
        Era::Unknown => ClientLifecycleMode::Auto {
            preferred_versions,
            legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
        },
    };
    let running = client.clone().serve_with_lifecycle(transport, mode).await?;
    let peer = running.peer().clone();
    // Set by each of the ways to begin.
    let unknown = || Arc::new(ServerPeerInfo::new(ProtocolVersion::default(), <_>::default()));
    let info = peer.peer_info().unwrap_or_else(unknown);
    let era = match info.protocol_version.has_initialize() {
        true => Era::Legacy,
        false => Era::Modern,
    };
    let connection = Arc::new(Connection { peer, client, spawner, info, era });
    Ok(Opened { connection, running })
}

impl Connection {
    /// Sends a request and waits for its answer, on any executor. Dropping the wait tells the
    /// server that nobody wants it any more.
    ///
    /// # Errors
    /// What the server answers, in words for a model; `timeout`; `unavailable` when the server is
    /// gone.
    pub async fn request(
        self: &Arc<Self>,
        request: ClientRequest,
        time: Duration,
        site: Option<Arc<dyn CallSite>>,
    ) -> Result<ServerResult, Error> {
        let this = Arc::clone(self);
        let work = async move { this.exchange(request, time, site).await };
        self.spawner.run(work).await?
    }

    /// As [`Connection::request`], on the runtime.
    pub async fn exchange(
        &self,
        request: ClientRequest,
        time: Duration,
        site: Option<Arc<dyn CallSite>>,
    ) -> Result<ServerResult, Error> {
        self.send(request, time, site).await.map_err(|refused| refused.error)
    }

    /// As [`Connection::exchange`], with the server's number for what went wrong.
    pub async fn send(
        &self,
        request: ClientRequest,
        time: Duration,
        site: Option<Arc<dyn CallSite>>,
    ) -> Result<ServerResult, Refused> {
        let mut enrolled: Option<Enrolled> = site.map(|site| self.client.enroll(site));
        let options = PeerRequestOptions::no_options();
        let sent = self.peer.send_request_with_option(request, options);
        let late = || {
            let text = format!("the server did not answer within {} s", time.as_secs_f32());
            Error::new(ErrorKind::Timeout, text).temporary()
        };
        let mut handle = match tokio::time::timeout(time, sent).await {
            Ok(sent) => sent.map_err(|error| Refused::of(&error))?,
            Err(_) => return Err(late().into()),
        };
        if let Some(enrolled) = &mut enrolled {
            enrolled.watch(handle.progress_token.clone());
        }
        let (peer, spawner) = (self.peer.clone(), self.spawner.clone());
        let mut abandoned = Abandoned { peer, spawner, id: Some(handle.id.clone()) };
        // While the person is asked, the call's time stands still.
        let answer = loop {
            let waited = tokio::time::timeout(time, &mut handle.rx).await;
            let is_asking = || self.client.is_asking();
            match waited {
                Ok(answer) => break answer,
                Err(_) if enrolled.is_some() && is_asking() => {}
                Err(_) => return Err(late().into()),
            }
        };
        abandoned.id = None;
        match answer {
            // A stream of HTTP ends without the connection.
            Ok(Err(ServiceError::TransportClosed)) | Err(_) if !self.is_closed() => {
                let text = "the server ended its answer before it was there";
                Err(Error::new(ErrorKind::Unavailable, text).temporary().into())
            }
            Ok(answer) => answer.map_err(|error| Refused::of(&error)),
            Err(_) => Err(gone().into()),
        }
    }

    /// Returns true once the server is gone.
    pub fn is_closed(&self) -> bool {
        self.peer.is_transport_closed()
    }

    /// Returns what runs work on the runtime.
    pub fn spawner(&self) -> &Spawner {
        &self.spawner
    }

    /// Returns our side of it.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Returns what subscriptions are made by.
    pub fn peer(&self) -> &Peer<RoleClient> {
        &self.peer
    }
}

/// Says what went wrong in words for a model.
pub fn in_words(error: &ServiceError) -> Error {
    match error {
        ServiceError::McpError(error) => {
            let kind = match error.code.0 {
                -32602 => ErrorKind::InvalidArguments,
                -32601 => ErrorKind::UnknownOperation,
                -32002 => ErrorKind::NotFound,
                _ => ErrorKind::Failed,
            };
            Error::new(kind, safe(&error.message))
        }
        ServiceError::TransportClosed => gone(),
        // What HTTP says of it; a pipe says nothing.
        ServiceError::TransportSend(error) => sent_in_vain(&*error.error).unwrap_or_else(gone),
        other => Error::failed(safe(&other.to_string())),
    }
}

/// Says why no connection came about.
pub fn not_opened(error: &ClientInitializeError) -> Error {
    let mut next = Some(error);
    while let Some(error) = next {
        match error {
            ClientInitializeError::TransportError { error, .. } => {
                if let Some(error) = sent_in_vain(&*error.error) {
                    return error;
                }
                next = None;
            }
            ClientInitializeError::LegacyFallbackFailed { fallback, .. } => next = Some(fallback),
            _ => next = None,
        }
    }
    Error::new(ErrorKind::Unavailable, safe(&error.to_string())).temporary()
}

fn gone() -> Error {
    Error::new(ErrorKind::Unavailable, "the server is gone").temporary()
}

/// Says why a request over HTTP came to nothing.
pub fn sent_in_vain(error: &(dyn std::error::Error + 'static)) -> Option<Error> {
    if let Some(error) = failure::inside(error) {
        return Some(error);
    }
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(known) = error.downcast_ref::<StreamableHttpError<HttpFailure>>() {
            let text = safe(&known.to_string());
            return Some(Error::new(ErrorKind::Unavailable, text).temporary());
        }
        next = error.source();
    }
    None
}
