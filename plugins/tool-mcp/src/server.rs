//! One configured server: starts it, requests its description, watches it, and restarts it when it
//! ends.
//!
//! Invariant: a misbehaving server affects only its own calls. Each server has its own task, and
//! every wait for a server is limited.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use jaato_plugin_sdk::{Error, ErrorKind, Home, Result};
use parking_lot::Mutex;
use rmcp::model::SubscriptionFilter;
use rmcp::service::ClientInitializeError;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::cache::McpServerCache;
use crate::client::McpClient;
use crate::config::{McpServerAddress, ServerEntry, StdioServerAddress};
use crate::connection::{self, McpConnection, OpenConnection, ProtocolEra};
use crate::log::{ServerLog, ServerLogStore};
use crate::oauth::OAuthLogin;
use crate::oauth::login_store::HostTokenStore;
use crate::runner::{
    INSTALL_TIME, PackageInstallRegistration, PackageInstalls, can_install_packages,
};
use crate::runtime::McpSpawner;
use crate::server_description::{self, ServerDescription};
use crate::transport::http::{self, Authorize, HostHttp};
use crate::transport::wire::{LineTransport, StdioWire};

/// The maximum time for the probe of a server's era.
const PROBE_TIME: Duration = Duration::from_secs(5);
/// The maximum time for a server's start, if its entry sets no limit.
const START_TIME: Duration = Duration::from_secs(30);
/// The hint for a server that needs more time.
pub const MORE_TIME: &str = "`startupTimeout` in its entry gives it more time, in milliseconds";
/// The first wait before a server that ended is restarted. The wait doubles each time.
const BACK_OFF_MIN: Duration = Duration::from_secs(1);
/// The longest wait before a restart.
const BACK_OFF_MAX: Duration = Duration::from_secs(300);
/// The uptime after which a server counts as stable: the wait before its next restart is
/// [`BACK_OFF_MIN`] again.
const STABLE_UPTIME: Duration = Duration::from_secs(60);
/// The maximum time for closing a connection.
const CLOSE_TIME: Duration = Duration::from_secs(3);
/// The minimum time between two requests for changed lists.
const ASK_AGAIN: Duration = Duration::from_secs(2);

/// The state that all servers share.
pub struct SharedServerContext {
    /// Starts programs.
    pub launch: Arc<dyn ProgramLauncher>,
    /// The instance, for network requests. `None` outside of a host.
    pub home: Option<Home>,
    /// The spawner of the protocol's runtime.
    pub spawner: McpSpawner,
    /// The log of all servers.
    pub lines: Arc<ServerLogStore>,
    /// Package runners that may be installing servers.
    pub installs: Arc<PackageInstalls>,
    /// The cached descriptions.
    pub cache: McpServerCache,
    /// The folders that the servers may know.
    pub roots: Vec<String>,
    /// Notified when a server's state or lists change.
    pub changed: Notify,
}

/// Starts the programs of servers.
pub trait ProgramLauncher: Send + Sync + 'static {
    /// Starts a program.
    ///
    /// # Errors
    /// If it cannot be started.
    fn launch_program(
        &self,
        reach: &StdioServerAddress,
        log: &ServerLog,
        install: Option<PackageInstallRegistration>,
    ) -> BoxFuture<'static, Result<StdioWire>>;
}

/// The connection state of a server.
#[derive(Clone)]
pub enum McpConnectionStatus {
    /// The server is starting.
    Starting,
    /// The server answers.
    Up(Arc<McpConnection>),
    /// The server is down. It is restarted automatically unless that cannot help, and stays in this
    /// state until it is up.
    Down {
        /// The reason, without the entry's secrets.
        why: Error,
    },
    /// The user has disconnected the server.
    Stopped,
    /// The server is disabled in its entry.
    Disabled,
}

/// A configured server.
pub struct McpServer {
    /// The configuration of the server.
    pub entry: ServerEntry,
    /// The cache key of the server.
    pub fingerprint: String,
    around: Arc<SharedServerContext>,
    log: ServerLog,
    status: watch::Sender<McpConnectionStatus>,
    described: Mutex<Option<Arc<ServerDescription>>>,
    /// The time of the first start, or `None` before it.
    begun: Mutex<Option<Instant>>,
    /// Whether an earlier process waited for the server without success.
    was_late: bool,
    /// Whether earlier processes knew its description.
    was_known: bool,
    /// Whether it sent a description that the cache did not have.
    is_fresh: AtomicBool,
    /// Whether a connection is open, opening or closing.
    open: watch::Sender<bool>,
    /// The login of an HTTP server whose entry sets no key.
    login: Option<Arc<OAuthLogin>>,
    /// Whether the server should be up.
    wanted: watch::Sender<bool>,
    /// Triggers a restart without further wait.
    poke: Notify,
}

/// The end of a connection.
struct ConnectionEnd {
    why: Error,
    was_stable: bool,
}

impl McpServer {
    /// Creates a server that is down, with its cached description.
    pub fn new(
        entry: ServerEntry,
        fingerprint: String,
        around: &Arc<SharedServerContext>,
    ) -> Arc<Self> {
        let record = around.cache.get(&fingerprint);
        let was_late = record.as_ref().is_some_and(|record| record.described.is_none());
        let known = record.and_then(|record| record.described);
        let status = if entry.disabled {
            McpConnectionStatus::Disabled
        } else {
            McpConnectionStatus::Starting
        };
        Arc::new(Self {
            log: around.lines.server_log(&entry.name).with_secrets(entry.secrets()),
            around: Arc::clone(around),
            status: watch::Sender::new(status),
            begun: Mutex::default(),
            was_late,
            was_known: known.is_some(),
            described: Mutex::new(known.map(Arc::new)),
            is_fresh: AtomicBool::new(false),
            open: watch::Sender::new(false),
            login: create_login(&entry, around),
            wanted: watch::Sender::new(!entry.disabled),
            poke: Notify::new(),
            fingerprint,
            entry,
        })
    }

    /// Returns the server's name.
    pub fn name(&self) -> &str {
        &self.entry.name
    }

    /// Returns the server's log.
    pub fn log(&self) -> &ServerLog {
        &self.log
    }

    /// Returns the connection state.
    pub fn status(&self) -> McpConnectionStatus {
        self.status.borrow().clone()
    }

    /// Returns the server's description, if it is known.
    pub fn known_description(&self) -> Option<Arc<ServerDescription>> {
        self.described.lock().clone()
    }

    /// Returns the login, if the server supports one.
    pub fn login(&self) -> Option<&Arc<OAuthLogin>> {
        self.login.as_ref()
    }

    /// Returns the spawner of the protocol's runtime.
    pub fn spawner(&self) -> &McpSpawner {
        &self.around.spawner
    }

    /// Waits until the connection is closed after [`McpServer::stop_connection`].
    pub async fn wait_until_ended(&self) {
        let mut open = self.open.subscribe();
        // The wait cannot fail, because this server owns the sender.
        let _ = open.wait_for(|is_open| !is_open).await;
    }

    /// Returns the time limit of the server's start.
    pub fn start_time(&self) -> Duration {
        let usual = if can_install_packages(&self.entry.reach) { INSTALL_TIME } else { START_TIME };
        self.entry.startup_timeout.unwrap_or(usual)
    }

    /// Returns the time since the first start, or `None` if the server was not needed yet.
    pub fn time_since_start(&self) -> Option<Duration> {
        self.begun.lock().map(|at| at.elapsed())
    }

    /// Returns true if an earlier process waited for the description without success.
    pub fn has_been_slow(&self) -> bool {
        self.was_late
    }

    /// Returns true if earlier processes knew the description.
    pub fn has_been_known(&self) -> bool {
        self.was_known
    }

    /// Returns a hint for the user about a server that is down.
    pub fn down_hint(&self, why: &Error) -> String {
        let name = self.name();
        let logs = || format!("`jaato mcp logs {name}` shows what it printed");
        why.hint.clone().unwrap_or_else(logs)
    }

    /// Returns true if the server sent a description that the cache did not have.
    pub fn has_new_description(&self) -> bool {
        self.is_fresh.load(Ordering::Relaxed)
    }

    /// Starts the server and keeps it up. Later calls have no effect.
    pub fn start_server(self: &Arc<Self>) {
        {
            let mut begun = self.begun.lock();
            if begun.is_some() {
                return;
            }
            *begun = Some(Instant::now());
        }
        let this = Arc::clone(self);
        self.around.spawner.spawn(async move { this.maintain_connection().await });
    }

    /// Connects a disconnected server, or retries immediately.
    pub fn reconnect_now(self: &Arc<Self>) {
        self.start_server();
        // A caller that waits after this point waits for this attempt.
        self.status.send_if_modified(|status| {
            let is_down =
                matches!(status, McpConnectionStatus::Down { .. } | McpConnectionStatus::Stopped);
            if is_down {
                *status = McpConnectionStatus::Starting;
            }
            is_down
        });
        self.wanted.send_replace(true);
        self.poke.notify_one();
    }

    /// Disconnects the server until [`McpServer::reconnect_now`] is called.
    pub fn stop_connection(&self) {
        self.wanted.send_replace(false);
        if !self.entry.disabled {
            self.set_status(McpConnectionStatus::Stopped);
        }
    }

    /// Waits until the server is up. If a restart is pending, triggers it immediately.
    ///
    /// # Errors
    /// If the server is not up.
    pub async fn wait_until_connected(self: &Arc<Self>) -> Result<Arc<McpConnection>> {
        self.start_server();
        if let McpConnectionStatus::Up(connection) = &*self.status.borrow()
            && !connection.is_closed()
        {
            return Ok(Arc::clone(connection));
        }
        self.poke.notify_one();
        let mut status = self.status.subscribe();
        let name = self.entry.name.clone();
        let was_down = matches!(&*status.borrow_and_update(), McpConnectionStatus::Down { .. });
        let waiting = async move {
            if was_down && status.changed().await.is_err() {
                return Err(crate::runtime::runtime_gone_error());
            }
            let is_settled =
                |status: &McpConnectionStatus| !matches!(status, McpConnectionStatus::Starting);
            let settled = status.wait_for(is_settled).await;
            match settled.map_err(|_| crate::runtime::runtime_gone_error())?.clone() {
                McpConnectionStatus::Up(connection) => Ok(connection),
                McpConnectionStatus::Down { why } => {
                    let text = format!("the MCP server `{name}` is down: {}", why.message);
                    Err(Error { message: text, ..why })
                }
                McpConnectionStatus::Stopped | McpConnectionStatus::Starting => {
                    let text = format!("the MCP server `{name}` is disconnected");
                    let hint = format!("the user can connect it with `jaato mcp connect {name}`");
                    Err(Error::new(ErrorKind::Unavailable, text).with_hint(hint))
                }
                McpConnectionStatus::Disabled => {
                    let text = format!("the MCP server `{name}` is disabled");
                    Err(Error::new(ErrorKind::Unavailable, text))
                }
            }
        };
        let time = self.start_time();
        let bounded = async move { tokio::time::timeout(time, waiting).await };
        let late = || {
            let seconds = time.as_secs_f32();
            let name = &self.entry.name;
            let text = format!("the MCP server `{name}` did not start within {seconds} s");
            Error::new(ErrorKind::Timeout, text).temporary().with_hint(MORE_TIME)
        };
        self.around.spawner.run_on_runtime(bounded).await?.unwrap_or_else(|_| Err(late()))
    }

    /// Waits until the server has been asked for its description, or cannot be asked.
    pub async fn wait_until_settled(self: &Arc<Self>) {
        self.start_server();
        let mut status = self.status.subscribe();
        let is_settled =
            |status: &McpConnectionStatus| !matches!(status, McpConnectionStatus::Starting);
        // The wait cannot fail, because this server owns the sender.
        let _ = status.wait_for(is_settled).await;
    }

    fn set_status(&self, status: McpConnectionStatus) {
        self.status.send_replace(status);
        self.around.changed.notify_one();
    }

    /// Starts the server and keeps it up until the runtime ends.
    async fn maintain_connection(self: Arc<Self>) {
        let mut wanted = self.wanted.subscribe();
        let mut failures = 0;
        loop {
            if !*wanted.borrow_and_update() {
                if !self.entry.disabled {
                    self.set_status(McpConnectionStatus::Stopped);
                }
                failures = 0;
                if wanted.changed().await.is_err() {
                    return;
                }
                continue;
            }
            // During an automatic restart, the server stays down until it is up. Otherwise a caller
            // could miss the reason of the failure.
            if !matches!(*self.status.borrow(), McpConnectionStatus::Down { .. }) {
                self.set_status(McpConnectionStatus::Starting);
            }
            let Some(ended) = self.run_connection(&mut wanted).await else { continue };
            failures = if ended.was_stable { 1 } else { failures + 1 };
            let is_final = matches!(
                ended.why.kind,
                ErrorKind::NotFound | ErrorKind::PermissionDenied | ErrorKind::Configuration
            );
            let why = self.log.scrubbed_error(ended.why);
            self.log.add_line(&why.message);
            if why.kind == ErrorKind::Timeout {
                // The next process waits less for this server.
                self.store_description(None).await;
            }
            self.set_status(McpConnectionStatus::Down { why });
            let pause = async {
                match is_final {
                    true => std::future::pending().await,
                    false => tokio::time::sleep(backoff_delay(failures)).await,
                }
            };
            tokio::select! {
                () = pause => {}
                () = self.poke.notified() => {}
                _ = wanted.changed() => {}
            }
        }
    }

    /// Connects and runs until the connection ends or the server is disconnected.
    async fn run_connection(
        self: &Arc<Self>,
        wanted: &mut watch::Receiver<bool>,
    ) -> Option<ConnectionEnd> {
        let client = McpClient::new(self.log.clone(), self.around.roots.clone());
        let opened = tokio::select! {
            opened = self.open_with_probe(&client) => opened,
            _ = wanted.changed() => return None,
        };
        let opened = match opened {
            Ok(opened) => opened,
            Err(why) => return Some(ConnectionEnd { why, was_stable: false }),
        };
        let since = Instant::now();
        let OpenConnection { connection, running } = opened;
        self.open.send_replace(true);
        let close = running.cancellation_token();
        let waiting = running.waiting();
        tokio::pin!(waiting);
        let watched = async {
            self.update_description(&connection).await?;
            self.log.add_line(&format!("connected by {}", connection.info.protocol_version));
            self.set_status(McpConnectionStatus::Up(Arc::clone(&connection)));
            self.watch_list_changes(&connection).await
        };
        let why = tokio::select! {
            _ = &mut waiting => Some(
                Error::new(ErrorKind::Unavailable, self.log.exit_reason("it closed the connection"))
                    .temporary(),
            ),
            failed = watched => Some(match failed {
                Ok(()) => Error::new(ErrorKind::Unavailable, "it is being started again"),
                Err(error) => error,
            }),
            _ = wanted.changed() => None,
        };
        if why.is_none() {
            // Lets the connection shut down. For example, a request ends an HTTP session.
            close.cancel();
            let _ = tokio::time::timeout(CLOSE_TIME, waiting).await;
        }
        self.open.send_replace(false);
        why.map(|why| ConnectionEnd { why, was_stable: since.elapsed() >= STABLE_UPTIME })
    }

    /// Connects. A server that ends during the probe of its era is started again and treated as one
    /// of the legacy era.
    async fn open_with_probe(&self, client: &McpClient) -> Result<OpenConnection> {
        let known =
            self.known_description().map_or(ProtocolEra::Unknown, |described| described.era);
        let first = self.connect_once(client, known).await;
        let second = match (&first, known) {
            (Err(ConnectFailure::Spoken(_)), ProtocolEra::Unknown) => ProtocolEra::Legacy,
            // The server may have changed its era.
            (Err(ConnectFailure::Spoken(_)), ProtocolEra::Legacy | ProtocolEra::Modern) => {
                ProtocolEra::Unknown
            }
            (Ok(_) | Err(ConnectFailure::Started(_)), _) => {
                return first.map_err(|failure| self.connect_error(failure));
            }
        };
        let second = match self.connect_once(client, second).await {
            Err(ConnectFailure::Spoken(_)) if second == ProtocolEra::Unknown => {
                self.connect_once(client, ProtocolEra::Legacy).await
            }
            second => second,
        };
        second.map_err(|failure| self.connect_error(failure))
    }

    async fn connect_once(
        &self,
        client: &McpClient,
        era: ProtocolEra,
    ) -> std::result::Result<OpenConnection, ConnectFailure> {
        let (around, client) = (&self.around, client.clone());
        let attempt = async {
            match &self.entry.reach {
                McpServerAddress::Stdio(reach) => {
                    self.log.forget_last_line();
                    let is_known = self.known_description().is_some();
                    let install = || around.installs.register_runner(self.name(), is_known);
                    let install = can_install_packages(&self.entry.reach).then(install);
                    let wire = around.launch.launch_program(reach, &self.log, install).await;
                    let wire = wire.map_err(ConnectFailure::Started)?;
                    let transport = LineTransport::new(wire, PROBE_TIME, self.log.clone());
                    connection::open_connection(transport, client, era, around.spawner.clone())
                        .await
                        .map_err(|error| ConnectFailure::Spoken(Box::new(error)))
                }
                McpServerAddress::Http(reach) => {
                    let Some(home) = &around.home else {
                        let text = "requests over HTTP need a host";
                        return Err(ConnectFailure::Started(Error::new(
                            ErrorKind::Unavailable,
                            text,
                        )));
                    };
                    let backend = Arc::new(HostHttp(home.clone()));
                    let login = self.login.clone().map(|login| login as Arc<dyn Authorize>);
                    let transport = http::create_http_transport(reach, backend, login);
                    let transport = transport.map_err(ConnectFailure::Started)?;
                    connection::open_connection(transport, client, era, around.spawner.clone())
                        .await
                        .map_err(ConnectFailure::from_http_error)
                }
            }
        };
        let time = self.start_time();
        match tokio::time::timeout(time, attempt).await {
            Ok(outcome) => outcome,
            Err(_) => {
                let what = format!("it did not answer within {} s", time.as_secs_f32());
                let printed = self.log.last_printed().map(|it| format!(": {it}"));
                let text = what + &printed.unwrap_or_default();
                let error = Error::new(ErrorKind::Timeout, text).temporary().with_hint(MORE_TIME);
                Err(ConnectFailure::Started(error))
            }
        }
    }

    fn connect_error(&self, failure: ConnectFailure) -> Error {
        match failure {
            ConnectFailure::Started(error) => error,
            ConnectFailure::Spoken(error) => {
                let text = match *error {
                    ClientInitializeError::ConnectionClosed(_) => {
                        self.log.exit_reason("it ended before it answered")
                    }
                    error => return connection::explain_open_error(&error),
                };
                Error::new(ErrorKind::Unavailable, text).temporary()
            }
        }
    }

    /// Requests the description and stores it.
    async fn update_description(&self, connection: &Arc<McpConnection>) -> Result<()> {
        let described = server_description::request_description(connection).await?;
        let is_news = self.known_description().is_none_or(|known| *known != described);
        if is_news {
            for line in &described.lines {
                self.log.add_line(line);
            }
            *self.described.lock() = Some(Arc::new(described.clone()));
            self.is_fresh.store(true, Ordering::Relaxed);
            self.store_description(Some(described)).await;
            self.around.changed.notify_one();
        }
        Ok(())
    }

    /// Stores the description for the next process, or that the server was started without one.
    pub async fn store_description(&self, described: Option<ServerDescription>) {
        let (around, fingerprint) = (Arc::clone(&self.around), self.fingerprint.clone());
        let keep = move || around.cache.store_description(&fingerprint, described);
        // If the cache is not written, the next process asks the server again.
        let _ = tokio::task::spawn_blocking(keep).await;
    }

    /// Requests the description again whenever the server reports a changed list.
    async fn watch_list_changes(&self, connection: &Arc<McpConnection>) -> Result<()> {
        let subscribed = subscribe_to_lists(connection);
        tokio::pin!(subscribed);
        loop {
            tokio::select! {
                () = connection.client().wait_for_change() => {}
                // This cannot happen, because the subscription never ends.
                () = &mut subscribed => {}
            }
            tokio::time::sleep(ASK_AGAIN).await;
            self.update_description(connection).await?;
        }
    }
}

/// The reason why no connection was set up.
enum ConnectFailure {
    /// The server could not be reached.
    Started(Error),
    /// The server was reached, but the handshake failed.
    Spoken(Box<ClientInitializeError>),
}

impl ConnectFailure {
    /// Decides whether an HTTP server may accept another handshake.
    fn from_http_error(error: ClientInitializeError) -> Self {
        let why = connection::explain_open_error(&error);
        match why.kind {
            ErrorKind::PermissionDenied | ErrorKind::Configuration => Self::Started(why),
            _ => Self::Spoken(Box::new(error)),
        }
    }
}

/// Creates the login to an HTTP server, unless its entry sets a key.
fn create_login(entry: &ServerEntry, around: &SharedServerContext) -> Option<Arc<OAuthLogin>> {
    let (McpServerAddress::Http(reach), Some(home)) = (&entry.reach, &around.home) else {
        return None;
    };
    if http::has_authorization(reach) {
        return None;
    }
    let store = HostTokenStore::new(home.clone(), &entry.name, &reach.url);
    let backend = Arc::new(HostHttp(home.clone()));
    Some(OAuthLogin::new(&entry.name, reach, backend, Arc::new(store), None))
}

/// Subscribes to changed lists on a server of the modern era. Other servers report changes without
/// a subscription.
async fn subscribe_to_lists(connection: &Arc<McpConnection>) {
    let capabilities = &connection.info.capabilities;
    let tools = capabilities.tools.as_ref().and_then(|it| it.list_changed) == Some(true);
    let prompts = capabilities.prompts.as_ref().and_then(|it| it.list_changed) == Some(true);
    if connection.era != ProtocolEra::Modern || !(tools || prompts) {
        return std::future::pending().await;
    }
    loop {
        let mut filter = SubscriptionFilter::new();
        filter.tools_list_changed = tools.then_some(true);
        filter.prompts_list_changed = prompts.then_some(true);
        if let Ok(mut subscription) = connection.peer().listen(filter).await {
            while let Ok(Some(_)) = subscription.next().await {
                connection.client().set_changed();
            }
        }
        // The server ended the subscription. Requests the changes since then.
        tokio::time::sleep(BACK_OFF_MAX).await;
        connection.client().set_changed();
    }
}

/// Returns the wait before the next attempt.
fn backoff_delay(failures: u32) -> Duration {
    let doubled = BACK_OFF_MIN.saturating_mul(1 << failures.saturating_sub(1).min(16));
    doubled.min(BACK_OFF_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn restart_delay_doubles_up_to_a_maximum() {
        let waits: Vec<u64> = [1, 2, 3, 9, 10, 1000].map(|it| backoff_delay(it).as_secs()).to_vec();
        assert_eq!(waits, [1, 2, 4, 256, 300, 300]);
    }
}
