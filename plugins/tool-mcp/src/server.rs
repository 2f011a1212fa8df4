//! One server of a person's: started, asked what it has, watched, and started again when it ends.
//!
//! Invariant: whatever a server does costs its own calls alone. Each has a task of its own, and
//! nobody waits for one without a bound.

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

use crate::cache::Cache;
use crate::client::Client;
use crate::config::{Reach, ServerEntry, StdioReach};
use crate::connection::{self, Connection, Era, Opened};
use crate::described::{self, Described};
use crate::log::{Lines, ServerLog};
use crate::oauth::Login;
use crate::oauth::kept::HostTokens;
use crate::runner::{INSTALL_TIME, Installing, Installs, may_install};
use crate::runtime::Spawner;
use crate::transport::http::{self, Authorize, HostHttp};
use crate::transport::wire::{LineTransport, Wire};

/// How long a server may take to say which era it speaks.
const PROBE_TIME: Duration = Duration::from_secs(5);
/// How long a server may take to start, if its entry says nothing.
const START_TIME: Duration = Duration::from_secs(30);
/// What a user can do about a server that needs longer.
pub const MORE_TIME: &str = "`startupTimeout` in its entry gives it more time, in milliseconds";
/// The first wait before a server that ended is started again; it doubles each time.
const BACK_OFF_MIN: Duration = Duration::from_secs(1);
/// The longest wait.
const BACK_OFF_MAX: Duration = Duration::from_secs(300);
/// A server that was up for so long begins with the first wait again.
const STABLE: Duration = Duration::from_secs(60);
/// How long a connection may take to end.
const CLOSE_TIME: Duration = Duration::from_secs(3);
/// How often a server is asked again for lists that it says have changed.
const ASK_AGAIN: Duration = Duration::from_secs(2);

/// What all servers share.
pub struct Around {
    /// Starts programs.
    pub launch: Arc<dyn Launch>,
    /// The instance, for requests over the network; nothing outside of a host.
    pub home: Option<Home>,
    /// Where the protocol runs.
    pub spawner: Spawner,
    /// What servers print.
    pub lines: Arc<Lines>,
    /// Package runners that may be installing servers.
    pub installs: Arc<Installs>,
    /// What they said when they were last up.
    pub cache: Cache,
    /// Folders that they may know of.
    pub roots: Vec<String>,
    /// Notified when a server's state or lists change.
    pub changed: Notify,
}

/// Starts the programs of servers.
pub trait Launch: Send + Sync + 'static {
    /// Starts one.
    ///
    /// # Errors
    /// Why it cannot be started.
    fn launch(
        &self,
        reach: &StdioReach,
        log: &ServerLog,
        install: Option<Installing>,
    ) -> BoxFuture<'static, Result<Wire>>;
}

/// The connection state of a server.
#[derive(Clone)]
pub enum Status {
    /// It is being started.
    Starting,
    /// It answers.
    Up(Arc<Connection>),
    /// It is down. Unless that cannot help, it is started again by itself; it stays in this state
    /// until it is up.
    Down {
        /// The reason, without secrets of the entry.
        why: Error,
    },
    /// A person has disconnected it.
    Stopped,
    /// Its entry says so.
    Disabled,
}

/// A server.
pub struct Server {
    /// How it is set up.
    pub entry: ServerEntry,
    /// What it is known by over processes.
    pub fingerprint: String,
    around: Arc<Around>,
    log: ServerLog,
    status: watch::Sender<Status>,
    described: Mutex<Option<Arc<Described>>>,
    /// When it was to be started first; nothing before that.
    begun: Mutex<Option<Instant>>,
    /// Whether an earlier process waited for it in vain.
    was_late: bool,
    /// Whether earlier processes knew what it has.
    was_known: bool,
    /// Whether it told this process something that was not known.
    is_fresh: AtomicBool,
    /// Whether a connection is made, or is coming to its end.
    open: watch::Sender<bool>,
    /// For one of the network that names no key of its own.
    login: Option<Arc<Login>>,
    /// Whether it is to be up.
    wanted: watch::Sender<bool>,
    /// Has it tried again at once.
    poke: Notify,
}

/// How a connection came to its end.
struct Ended {
    why: Error,
    was_stable: bool,
}

impl Server {
    /// Makes one that is down, and knows what the cache knows.
    pub fn new(entry: ServerEntry, fingerprint: String, around: &Arc<Around>) -> Arc<Self> {
        let record = around.cache.get(&fingerprint);
        let was_late = record.as_ref().is_some_and(|record| record.described.is_none());
        let known = record.and_then(|record| record.described);
        let status = if entry.disabled { Status::Disabled } else { Status::Starting };
        Arc::new(Self {
            log: around.lines.of(&entry.name).hiding(entry.secrets()),
            around: Arc::clone(around),
            status: watch::Sender::new(status),
            begun: Mutex::default(),
            was_late,
            was_known: known.is_some(),
            described: Mutex::new(known.map(Arc::new)),
            is_fresh: AtomicBool::new(false),
            open: watch::Sender::new(false),
            login: login_of(&entry, around),
            wanted: watch::Sender::new(!entry.disabled),
            poke: Notify::new(),
            fingerprint,
            entry,
        })
    }

    /// Returns its name.
    pub fn name(&self) -> &str {
        &self.entry.name
    }

    /// Returns its log.
    pub fn log(&self) -> &ServerLog {
        &self.log
    }

    /// Returns its connection state.
    pub fn status(&self) -> Status {
        self.status.borrow().clone()
    }

    /// Returns what it has, as far as that is known.
    pub fn described(&self) -> Option<Arc<Described>> {
        self.described.lock().clone()
    }

    /// Returns the login to it, where it can have one.
    pub fn login(&self) -> Option<&Arc<Login>> {
        self.login.as_ref()
    }

    /// Returns what runs work where the protocol runs.
    pub fn spawner(&self) -> &Spawner {
        &self.around.spawner
    }

    /// Waits until it is down, once nobody wants it up.
    pub async fn ended(&self) {
        let mut open = self.open.subscribe();
        // The sender is this server's own.
        let _ = open.wait_for(|is_open| !is_open).await;
    }

    /// Returns how long it may take to start.
    pub fn start_time(&self) -> Duration {
        let usual = if may_install(&self.entry.reach) { INSTALL_TIME } else { START_TIME };
        self.entry.startup_timeout.unwrap_or(usual)
    }

    /// Returns how long ago it was to be started first; nothing for one that nobody needed yet.
    pub fn begun(&self) -> Option<Duration> {
        self.begun.lock().map(|at| at.elapsed())
    }

    /// Returns true if an earlier process waited in vain until it would say what it has.
    pub fn was_late(&self) -> bool {
        self.was_late
    }

    /// Returns true if earlier processes knew what it has.
    pub fn was_known(&self) -> bool {
        self.was_known
    }

    /// Says what a user can do about a server that is down.
    pub fn hint(&self, why: &Error) -> String {
        let name = self.name();
        let logs = || format!("`jaato mcp logs {name}` shows what it printed");
        why.hint.clone().unwrap_or_else(logs)
    }

    /// Returns true if it told this process something that was not known.
    pub fn is_fresh(&self) -> bool {
        self.is_fresh.load(Ordering::Relaxed)
    }

    /// Begins to start it and to keep it up, once.
    pub fn begin(self: &Arc<Self>) {
        {
            let mut begun = self.begun.lock();
            if begun.is_some() {
                return;
            }
            *begun = Some(Instant::now());
        }
        let this = Arc::clone(self);
        self.around.spawner.spawn(async move { this.keep_up().await });
    }

    /// Connects one that was disconnected, or tries again at once.
    pub fn connect(self: &Arc<Self>) {
        self.begin();
        // Whoever waits from now on waits for this attempt.
        self.status.send_if_modified(|status| {
            let is_down = matches!(status, Status::Down { .. } | Status::Stopped);
            if is_down {
                *status = Status::Starting;
            }
            is_down
        });
        self.wanted.send_replace(true);
        self.poke.notify_one();
    }

    /// Disconnects it until somebody connects it again.
    pub fn disconnect(&self) {
        self.wanted.send_replace(false);
        if !self.entry.disabled {
            self.set(Status::Stopped);
        }
    }

    /// Waits until it is up; for one that waits to be started again, has it tried at once.
    ///
    /// # Errors
    /// Why it is not up.
    pub async fn up(self: &Arc<Self>) -> Result<Arc<Connection>> {
        self.begin();
        if let Status::Up(connection) = &*self.status.borrow()
            && !connection.is_closed()
        {
            return Ok(Arc::clone(connection));
        }
        self.poke.notify_one();
        let mut status = self.status.subscribe();
        let name = self.entry.name.clone();
        let was_down = matches!(&*status.borrow_and_update(), Status::Down { .. });
        let waiting = async move {
            if was_down && status.changed().await.is_err() {
                return Err(crate::runtime::gone());
            }
            let is_settled = |status: &Status| !matches!(status, Status::Starting);
            let settled = status.wait_for(is_settled).await;
            match settled.map_err(|_| crate::runtime::gone())?.clone() {
                Status::Up(connection) => Ok(connection),
                Status::Down { why } => {
                    let text = format!("the MCP server `{name}` is down: {}", why.message);
                    Err(Error { message: text, ..why })
                }
                Status::Stopped | Status::Starting => {
                    let text = format!("the MCP server `{name}` is disconnected");
                    let hint = format!("the user connects it by `jaato mcp connect {name}`");
                    Err(Error::new(ErrorKind::Unavailable, text).with_hint(hint))
                }
                Status::Disabled => {
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
        self.around.spawner.run(bounded).await?.unwrap_or_else(|_| Err(late()))
    }

    /// Waits until it was asked what it has, or could not be.
    pub async fn settled(self: &Arc<Self>) {
        self.begin();
        let mut status = self.status.subscribe();
        let is_settled = |status: &Status| !matches!(status, Status::Starting);
        // The sender is this server's own.
        let _ = status.wait_for(is_settled).await;
    }

    fn set(&self, status: Status) {
        self.status.send_replace(status);
        self.around.changed.notify_one();
    }

    /// Starts it and keeps it up, until the runtime ends.
    async fn keep_up(self: Arc<Self>) {
        let mut wanted = self.wanted.subscribe();
        let mut failures = 0;
        loop {
            if !*wanted.borrow_and_update() {
                if !self.entry.disabled {
                    self.set(Status::Stopped);
                }
                failures = 0;
                if wanted.changed().await.is_err() {
                    return;
                }
                continue;
            }
            // A server that is started again by itself stays down until it is up. Otherwise a look
            // at the wrong moment would miss why it failed.
            if !matches!(*self.status.borrow(), Status::Down { .. }) {
                self.set(Status::Starting);
            }
            let Some(ended) = self.run(&mut wanted).await else { continue };
            failures = if ended.was_stable { 1 } else { failures + 1 };
            let is_final = matches!(
                ended.why.kind,
                ErrorKind::NotFound | ErrorKind::PermissionDenied | ErrorKind::Configuration
            );
            let why = self.log.scrubbed_error(ended.why);
            self.log.line(&why.message);
            if why.kind == ErrorKind::Timeout {
                // The next process does not wait so long for it.
                self.keep(None).await;
            }
            self.set(Status::Down { why });
            let pause = async {
                match is_final {
                    true => std::future::pending().await,
                    false => tokio::time::sleep(back_off(failures)).await,
                }
            };
            tokio::select! {
                () = pause => {}
                () = self.poke.notified() => {}
                _ = wanted.changed() => {}
            }
        }
    }

    /// Connects and goes on until the connection ends, or nobody wants it any more.
    async fn run(self: &Arc<Self>, wanted: &mut watch::Receiver<bool>) -> Option<Ended> {
        let client = Client::new(self.log.clone(), self.around.roots.clone());
        let opened = tokio::select! {
            opened = self.open(&client) => opened,
            _ = wanted.changed() => return None,
        };
        let opened = match opened {
            Ok(opened) => opened,
            Err(why) => return Some(Ended { why, was_stable: false }),
        };
        let since = Instant::now();
        let Opened { connection, running } = opened;
        self.open.send_replace(true);
        let close = running.cancellation_token();
        let waiting = running.waiting();
        tokio::pin!(waiting);
        let watched = async {
            self.describe(&connection).await?;
            self.log.line(&format!("connected by {}", connection.info.protocol_version));
            self.set(Status::Up(Arc::clone(&connection)));
            self.listen(&connection).await
        };
        let why = tokio::select! {
            _ = &mut waiting => Some(
                Error::new(ErrorKind::Unavailable, self.log.last_words("it closed the connection"))
                    .temporary(),
            ),
            failed = watched => Some(match failed {
                Ok(()) => Error::new(ErrorKind::Unavailable, "it is to be started again"),
                Err(error) => error,
            }),
            _ = wanted.changed() => None,
        };
        if why.is_none() {
            // It may say farewell: a session of HTTP is ended by a request.
            close.cancel();
            let _ = tokio::time::timeout(CLOSE_TIME, waiting).await;
        }
        self.open.send_replace(false);
        why.map(|why| Ended { why, was_stable: since.elapsed() >= STABLE })
    }

    /// Connects. A server that ends when it is asked for its era is started once more, and spoken
    /// to as all were before 2026.
    async fn open(&self, client: &Client) -> Result<Opened> {
        let known = self.described().map_or(Era::Unknown, |described| described.era);
        let first = self.attempt(client, known).await;
        let second = match (&first, known) {
            (Err(Failure::Spoken(_)), Era::Unknown) => Era::Legacy,
            // It is another one than it was.
            (Err(Failure::Spoken(_)), Era::Legacy | Era::Modern) => Era::Unknown,
            (Ok(_) | Err(Failure::Started(_)), _) => {
                return first.map_err(|failure| self.error_of(failure));
            }
        };
        let second = match self.attempt(client, second).await {
            Err(Failure::Spoken(_)) if second == Era::Unknown => {
                self.attempt(client, Era::Legacy).await
            }
            second => second,
        };
        second.map_err(|failure| self.error_of(failure))
    }

    async fn attempt(&self, client: &Client, era: Era) -> std::result::Result<Opened, Failure> {
        let (around, client) = (&self.around, client.clone());
        let attempt = async {
            match &self.entry.reach {
                Reach::Stdio(reach) => {
                    self.log.begin();
                    let is_known = self.described().is_some();
                    let install = || around.installs.begin(self.name(), is_known);
                    let install = may_install(&self.entry.reach).then(install);
                    let wire = around.launch.launch(reach, &self.log, install).await;
                    let wire = wire.map_err(Failure::Started)?;
                    let transport = LineTransport::new(wire, PROBE_TIME, self.log.clone());
                    connection::open(transport, client, era, around.spawner.clone())
                        .await
                        .map_err(|error| Failure::Spoken(Box::new(error)))
                }
                Reach::Http(reach) => {
                    let Some(home) = &around.home else {
                        let text = "there is no host that could send requests";
                        return Err(Failure::Started(Error::new(ErrorKind::Unavailable, text)));
                    };
                    let backend = Arc::new(HostHttp(home.clone()));
                    let login = self.login.clone().map(|login| login as Arc<dyn Authorize>);
                    let transport = http::transport(reach, backend, login);
                    let transport = transport.map_err(Failure::Started)?;
                    connection::open(transport, client, era, around.spawner.clone())
                        .await
                        .map_err(Failure::of_http)
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
                Err(Failure::Started(error))
            }
        }
    }

    fn error_of(&self, failure: Failure) -> Error {
        match failure {
            Failure::Started(error) => error,
            Failure::Spoken(error) => {
                let text = match *error {
                    ClientInitializeError::ConnectionClosed(_) => {
                        self.log.last_words("it ended before it answered")
                    }
                    error => return connection::not_opened(&error),
                };
                Error::new(ErrorKind::Unavailable, text).temporary()
            }
        }
    }

    /// Asks what it has, and keeps that.
    async fn describe(&self, connection: &Arc<Connection>) -> Result<()> {
        let described = described::ask(connection).await?;
        let is_news = self.described().is_none_or(|known| *known != described);
        if is_news {
            for line in &described.lines {
                self.log.line(line);
            }
            *self.described.lock() = Some(Arc::new(described.clone()));
            self.is_fresh.store(true, Ordering::Relaxed);
            self.keep(Some(described)).await;
            self.around.changed.notify_one();
        }
        Ok(())
    }

    /// Keeps what it said for the next process, or that it was tried.
    pub async fn keep(&self, described: Option<Described>) {
        let (around, fingerprint) = (Arc::clone(&self.around), self.fingerprint.clone());
        let keep = move || around.cache.keep(&fingerprint, described);
        // A cache that is not written costs a question at the next start.
        let _ = tokio::task::spawn_blocking(keep).await;
    }

    /// Asks again whenever the server says that a list has changed.
    async fn listen(&self, connection: &Arc<Connection>) -> Result<()> {
        let subscribed = subscribe(connection);
        tokio::pin!(subscribed);
        loop {
            tokio::select! {
                () = connection.client().changed() => {}
                // It does not end: what is left of it waits for ever.
                () = &mut subscribed => {}
            }
            tokio::time::sleep(ASK_AGAIN).await;
            self.describe(connection).await?;
        }
    }
}

/// Why no connection came about.
enum Failure {
    /// There is none to speak to.
    Started(Error),
    /// The two did not understand each other.
    Spoken(Box<ClientInitializeError>),
}

impl Failure {
    /// Tells whether another way to begin could help with a server of the network.
    fn of_http(error: ClientInitializeError) -> Self {
        let why = connection::not_opened(&error);
        match why.kind {
            ErrorKind::PermissionDenied | ErrorKind::Configuration => Self::Started(why),
            _ => Self::Spoken(Box::new(error)),
        }
    }
}

/// Makes the login to a server of the network, unless its entry says by which key it is let in.
fn login_of(entry: &ServerEntry, around: &Around) -> Option<Arc<Login>> {
    let (Reach::Http(reach), Some(home)) = (&entry.reach, &around.home) else { return None };
    if http::has_authorization(reach) {
        return None;
    }
    let store = HostTokens::new(home.clone(), &entry.name, &reach.url);
    let backend = Arc::new(HostHttp(home.clone()));
    Some(Login::new(&entry.name, reach, backend, Arc::new(store), None))
}

/// Has a server of the modern era tell of changed lists; the others do so unasked.
async fn subscribe(connection: &Arc<Connection>) {
    let capabilities = &connection.info.capabilities;
    let tools = capabilities.tools.as_ref().and_then(|it| it.list_changed) == Some(true);
    let prompts = capabilities.prompts.as_ref().and_then(|it| it.list_changed) == Some(true);
    if connection.era != Era::Modern || !(tools || prompts) {
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
        // Ended by the server: what has changed since is asked for.
        tokio::time::sleep(BACK_OFF_MAX).await;
        connection.client().set_changed();
    }
}

/// The wait before the next attempt.
fn back_off(failures: u32) -> Duration {
    let doubled = BACK_OFF_MIN.saturating_mul(1 << failures.saturating_sub(1).min(16));
    doubled.min(BACK_OFF_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_bound() {
        let waits: Vec<u64> = [1, 2, 3, 9, 10, 1000].map(|it| back_off(it).as_secs()).to_vec();
        assert_eq!(waits, [1, 2, 4, 256, 300, 300]);
    }
}
