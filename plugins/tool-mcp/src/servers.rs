//! All servers of a person, and what is offered of them.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use jaato_plugin_sdk::dynamic::ToolsSet;
use jaato_plugin_sdk::{Error, ErrorKind, Home, Level, Result};
use parking_lot::Mutex;

use crate::cache::fingerprint;
use crate::config::{Configured, Places, Reach};
use crate::offer::Offer;
use crate::server::{Around, Server};

/// How long the first request waits for servers that never said what they have.
const FIRST_WAIT: Duration = Duration::from_millis(500);
/// How long a list waits for servers that are being started.
const SETTLE_WAIT: Duration = Duration::from_secs(2);
/// How long the end of the plugin waits for servers of the network.
const CLOSE_WAIT: Duration = Duration::from_secs(1);
/// How often the host takes another set of tools.
const PUBLISH_PAUSE: Duration = Duration::from_millis(1100);
/// Sets that the host refuses in a row; then the next change tries again.
const ATTEMPTS_MAX: usize = 5;

/// All servers.
pub struct Servers {
    /// What they share.
    pub around: Arc<Around>,
    /// Where their entries stand.
    pub places: Places,
    all: Mutex<Vec<Arc<Server>>>,
    offer: Mutex<Arc<Offer>>,
    /// What is wrong with the files, a line each.
    lines: Mutex<Vec<String>>,
    /// What the host was told last.
    published: Mutex<Option<ToolsSet>>,
}

/// What a reload did.
pub struct Reloaded {
    /// The servers that are there.
    pub servers: Vec<Arc<Server>>,
    /// Tools that were not there before.
    pub added: Vec<String>,
    /// Tools that are gone.
    pub removed: Vec<String>,
}

impl Servers {
    /// Makes a set without servers.
    pub fn new(around: Arc<Around>, places: Places) -> Arc<Self> {
        Arc::new(Self {
            around,
            places,
            all: Mutex::default(),
            offer: Mutex::default(),
            lines: Mutex::default(),
            published: Mutex::default(),
        })
    }

    /// Lists the servers by name.
    pub fn list(&self) -> Vec<Arc<Server>> {
        self.all.lock().clone()
    }

    /// Finds a server.
    ///
    /// # Errors
    /// `not_found`, with those that there are.
    pub fn find(&self, name: &str) -> Result<Arc<Server>> {
        let all = self.list();
        if let Some(server) = all.iter().find(|it| it.name() == name) {
            return Ok(Arc::clone(server));
        }
        let error = Error::new(ErrorKind::NotFound, format!("Server '{name}' not found."));
        let names: Vec<&str> = all.iter().map(|it| it.name()).collect();
        Err(match names.is_empty() {
            true => error.with_hint("no MCP server is configured: `mcp add NAME COMMAND`"),
            false => error.with_hint(format!("there are: {}", names.join(", "))),
        })
    }

    /// Returns what is offered.
    pub fn offer(&self) -> Arc<Offer> {
        Arc::clone(&self.offer.lock())
    }

    /// Returns what is wrong with the files.
    pub fn lines(&self) -> Vec<String> {
        self.lines.lock().clone()
    }

    /// Takes what the files say: servers whose entries are as they were go on, all others begin.
    /// `prints` are the entries' fingerprints, in order.
    pub fn take(&self, configured: Configured, prints: Vec<String>) {
        *self.lines.lock() = configured.lines;
        let before = self.list();
        let entries = configured.servers.into_values();
        let mut all = Vec::new();
        for (entry, print) in entries.zip(prints) {
            let same = before.iter().find(|it| it.entry == entry && it.fingerprint == print);
            all.push(match same {
                Some(server) => Arc::clone(server),
                None => {
                    let server = Server::new(entry, print, &self.around);
                    server.begin();
                    server
                }
            });
        }
        for server in before.iter().filter(|old| !all.iter().any(|it| Arc::ptr_eq(it, old))) {
            server.disconnect();
        }
        *self.all.lock() = all;
        self.around.changed.notify_one();
    }

    /// Waits a moment for servers of which nothing is known.
    pub async fn wait_for_unknown(self: &Arc<Self>) {
        let is_unknown = |server: &&Arc<Server>| {
            !server.entry.disabled && self.around.cache.get(&server.fingerprint).is_none()
        };
        let unknown: Vec<Arc<Server>> = self.list().iter().filter(is_unknown).cloned().collect();
        if unknown.is_empty() {
            return;
        }
        let settled = async move {
            let all = join_all(unknown.iter().map(|server| server.settled()));
            // Those that take longer are there with the next turn, and are not waited for again.
            if tokio::time::timeout(FIRST_WAIT, all).await.is_err() {
                for server in &unknown {
                    server.keep(None).await;
                }
            }
        };
        let _ = self.around.spawner.run(settled).await;
    }

    /// Waits for servers that are being started, for a moment: whoever looks at them in a process
    /// that has just begun wants to know whether they work.
    pub async fn settle(&self) {
        let all = self.list();
        let settled = async move {
            let all = join_all(all.iter().map(|server| server.settled()));
            let _ = tokio::time::timeout(SETTLE_WAIT, all).await;
        };
        let _ = self.around.spawner.run(settled).await;
    }

    /// Ends the sessions of servers of the network, for a moment: the others end with this process.
    pub async fn close(&self) {
        let all = self.list();
        let open: Vec<Arc<Server>> = all
            .iter()
            .filter(|server| matches!(server.entry.reach, Reach::Http(_)))
            .cloned()
            .collect();
        if open.is_empty() {
            return;
        }
        open.iter().for_each(|server| server.disconnect());
        let ended = async move {
            let all = join_all(open.iter().map(|server| server.ended()));
            let _ = tokio::time::timeout(CLOSE_WAIT, all).await;
        };
        let _ = self.around.spawner.run(ended).await;
    }

    /// Puts together what is offered; tells the host where that has changed.
    ///
    /// # Errors
    /// `limit_reached` where that is too soon after the last time.
    pub async fn publish(&self, home: &Home) -> Result<()> {
        let offer = Offer::of(&self.list());
        let set = offer.set.clone();
        *self.offer.lock() = Arc::new(offer);
        let is_known = match &*self.published.lock() {
            Some(published) => *published == set,
            None => set == ToolsSet::default(),
        };
        if is_known {
            return Ok(());
        }
        let answer = home.set_tools(&set).await?;
        for refused in &answer.refused {
            let line = format!("`{}` is left out: {}", refused.name, refused.why);
            home.log(Level::Warn, &line);
            self.around.lines.of("jaato").line(&line);
        }
        *self.published.lock() = Some(set);
        Ok(())
    }

    /// Tells the host of changes, as long as the runtime lives.
    pub fn keep_published(self: &Arc<Self>, home: &Home) {
        let (this, home) = (Arc::downgrade(self), home.clone());
        let around = Arc::clone(&self.around);
        self.around.spawner.spawn(async move {
            loop {
                around.changed.notified().await;
                for _ in 0..ATTEMPTS_MAX {
                    let Some(servers) = this.upgrade() else { return };
                    let published = servers.publish(&home).await;
                    drop(servers);
                    tokio::time::sleep(PUBLISH_PAUSE).await;
                    match published {
                        Ok(()) => break,
                        Err(error) => home.log(Level::Debug, &error.message),
                    }
                }
            }
        });
    }
}

/// Reads the files, and looks at those that would be started. Blocks.
pub fn read(places: &Places) -> (Configured, Vec<String>) {
    let configured = places.read(&|name| std::env::var(name).ok());
    let prints = configured.servers.values().map(fingerprint).collect();
    (configured, prints)
}
