//! Manages all servers of a user and what they offer.
//!
//! No server starts automatically. A session with a model starts all of them, and a call starts
//! only those that it needs.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use jaato_plugin_sdk::dynamic::{ToolSource, ToolsAwaited, ToolsMissing, ToolsSet};
use jaato_plugin_sdk::{Error, ErrorKind, Home, LogLevel, Reporter, Result};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::cache::fingerprint;
use crate::config::{LoadedMcpConfig, McpConfigLocations, McpServerAddress};
use crate::log::sanitize_line;
use crate::names::{PREFIX, server_prefix, tool_name};
use crate::offer::McpOffer;
use crate::resources;
use crate::server::{MORE_TIME, McpConnectionStatus, McpServer, SharedServerContext};

/// The maximum time that a request waits for a server for which an earlier process waited without
/// success.
const LATE_WAIT: Duration = Duration::from_secs(2);
/// The maximum time that the plugin's end waits for HTTP servers.
const CLOSE_WAIT: Duration = Duration::from_secs(1);
/// The minimum time between two reports of changes to the host.
const PUBLISH_PAUSE: Duration = Duration::from_millis(250);
/// The pause after the host refused a set of tools.
const REFUSED_PAUSE: Duration = Duration::from_millis(1100);
/// The maximum number of consecutive refusals. After that, the next change triggers a new attempt.
const ATTEMPTS_MAX: usize = 5;
/// The interval at which a wait for servers checks them.
const SETTLE_STEP: Duration = Duration::from_millis(500);
/// The number of intervals after which the progress line is repeated.
const SETTLE_STEPS_TOLD: u32 = 20;
/// The interval at which other waits check the servers.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// All servers.
pub struct McpServers {
    /// The state that the servers share.
    pub around: Arc<SharedServerContext>,
    /// The locations of the configuration.
    pub places: McpConfigLocations,
    all: Mutex<Vec<Arc<McpServer>>>,
    offer: Mutex<Arc<McpOffer>>,
    /// Problems of the files, one per line.
    lines: Mutex<Vec<String>>,
    /// The workspace's file that is ignored, because the workspace is not trusted.
    untrusted: Mutex<Option<PathBuf>>,
    /// Whether a session needs all servers.
    are_all_needed: AtomicBool,
    /// The set that the host received last. Locked during an update.
    published: tokio::sync::Mutex<Option<ToolsSet>>,
}

/// The result of a reload.
pub struct McpReloadResult {
    /// The configured servers.
    pub servers: Vec<Arc<McpServer>>,
    /// The added tools.
    pub added: Vec<String>,
    /// The removed tools.
    pub removed: Vec<String>,
}

impl McpServers {
    /// Creates a set without servers.
    pub fn new(around: Arc<SharedServerContext>, places: McpConfigLocations) -> Arc<Self> {
        Arc::new(Self {
            around,
            places,
            all: Mutex::default(),
            offer: Mutex::default(),
            lines: Mutex::default(),
            untrusted: Mutex::default(),
            are_all_needed: AtomicBool::new(false),
            published: tokio::sync::Mutex::default(),
        })
    }

    /// Lists the servers by name.
    pub fn list_servers(&self) -> Vec<Arc<McpServer>> {
        self.all.lock().clone()
    }

    /// Finds a server.
    ///
    /// # Errors
    /// `not_found`, which lists the configured servers.
    pub fn find_server(&self, name: &str) -> Result<Arc<McpServer>> {
        let all = self.list_servers();
        if let Some(server) = all.iter().find(|it| it.name() == name) {
            return Ok(Arc::clone(server));
        }
        let error = Error::new(ErrorKind::NotFound, format!("Server '{name}' not found."));
        Err(error.with_hint(self.describe_configured_servers()))
    }

    /// Describes which servers are configured.
    fn describe_configured_servers(&self) -> String {
        let all = self.list_servers();
        let names: Vec<&str> = all.iter().map(|it| it.name()).collect();
        if let Some(untrusted) = self.untrusted_file_notice() {
            return untrusted;
        }
        match names.is_empty() {
            true => "no MCP server is configured: `jaato mcp add NAME COMMAND` adds one".to_owned(),
            false => format!("the configured MCP servers are {}", names.join(", ")),
        }
    }

    /// Returns a line about the workspace's file that is ignored, if there is one.
    pub fn untrusted_file_notice(&self) -> Option<String> {
        let path = self.untrusted.lock().clone()?;
        let path = path.display();
        Some(format!(
            "`{path}` is not used: the workspace is not trusted; `jaato trust` reviews it"
        ))
    }

    /// Returns the current offer.
    pub fn current_offer(&self) -> Arc<McpOffer> {
        Arc::clone(&self.offer.lock())
    }

    /// Returns the problems of the files.
    pub fn config_problems(&self) -> Vec<String> {
        self.lines.lock().clone()
    }

    /// Applies a configuration. Servers with unchanged entries keep running. The others start if a
    /// session needs them. `prints` are the fingerprints of the entries, in order.
    pub fn apply_config(&self, configured: LoadedMcpConfig, prints: Vec<String>) {
        *self.lines.lock() = configured.lines;
        *self.untrusted.lock() = configured.untrusted;
        let before = self.list_servers();
        let entries = configured.servers.into_values();
        let mut all = Vec::new();
        for (entry, print) in entries.zip(prints) {
            let same = before.iter().find(|it| it.entry == entry && it.fingerprint == print);
            all.push(match same {
                Some(server) => Arc::clone(server),
                None => {
                    let server = McpServer::new(entry, print, &self.around);
                    if self.are_all_needed.load(Ordering::Relaxed) {
                        server.start_server();
                    }
                    server
                }
            });
        }
        for server in before.iter().filter(|old| !all.iter().any(|it| Arc::ptr_eq(it, old))) {
            server.stop_connection();
        }
        *self.all.lock() = all;
        self.around.changed.notify_one();
    }

    /// Waits for missing tools: starts the servers that have them, and waits for those whose
    /// description is unknown. Publishes the descriptions to the host before it returns.
    pub async fn await_tools(self: &Arc<Self>, awaited: &ToolsAwaited) -> ToolsMissing {
        if awaited.is_ending {
            return self.wait_for_installs(awaited).await;
        }
        let needed = self.needed_servers(&awaited.names);
        if awaited.names.is_empty() {
            self.are_all_needed.store(true, Ordering::Relaxed);
        }
        needed.iter().for_each(|server| server.start_server());
        let until = Instant::now() + Duration::from_millis(awaited.wait_ms);
        let waits = needed.iter().filter_map(|server| {
            let left = remaining_wait(server, &awaited.names)?;
            let server = Arc::clone(server);
            Some(async move { tokio::time::timeout(left, server.wait_until_settled()).await })
        });
        let waits = join_all(waits.collect::<Vec<_>>());
        let settled = async move {
            let _ = tokio::time::timeout_at(until, waits).await;
        };
        let _ = self.around.spawner.run_on_runtime(settled).await;
        let mut missing = ToolsMissing::default();
        for server in needed {
            if remaining_wait(&server, &awaited.names).is_some() {
                missing.pending.push(tool_source(&server, describe_start(&server)));
            } else if let Some((note, hint)) = explain_missing_tools(&server, &awaited.names) {
                missing.failed.push(ToolSource { hint, ..tool_source(&server, note) });
            }
        }
        missing.failed.extend(self.unknown_servers(&awaited.names));
        let is_published = match &self.around.home {
            Some(home) => self.publish_offer(home).await.is_ok(),
            None => true,
        };
        if !is_published {
            // The last update was too recent, so the host asks again.
            let (label, prefix) = ("MCP servers".to_owned(), PREFIX.to_owned());
            let note = "listing their tools".to_owned();
            missing.pending.push(ToolSource { label, prefix, note, hint: None });
        }
        missing
    }

    /// Lists the servers that have, or may have, tools with these names.
    fn needed_servers(&self, names: &[String]) -> Vec<Arc<McpServer>> {
        let is_resource =
            |name: &String| [resources::LIST, resources::READ].contains(&name.as_str());
        let are_all = names.is_empty() || names.iter().any(is_resource);
        let awaited = ToolsAwaited::new(names.to_vec(), 0);
        let mut servers = self.list_servers();
        servers
            .retain(|server| are_all || awaited.is_awaiting_prefix(&server_prefix(server.name())));
        servers
    }

    /// Lists the names of servers that are not configured.
    fn unknown_servers(&self, names: &[String]) -> Vec<ToolSource> {
        let all = self.list_servers();
        let mut unknown = Vec::new();
        for name in names {
            let beginning = name.trim_end_matches('*');
            let Some(server) = beginning.strip_prefix(PREFIX).filter(|it| !it.is_empty()) else {
                continue;
            };
            let awaited = ToolsAwaited::new(vec![name.clone()], 0);
            if all.iter().any(|server| awaited.is_awaiting_prefix(&server_prefix(server.name()))) {
                continue;
            }
            let server = server.split_once("__").map_or(server, |(server, _)| server);
            let lines = self.config_problems();
            let about = lines.iter().find(|line| line.contains(&format!("`{server}`")));
            let (note, hint) = match about {
                Some(line) => (format!("cannot be used: {}", sanitize_line(line)), None),
                None => ("is not configured".to_owned(), Some(self.describe_configured_servers())),
            };
            let (label, prefix) = (format!("MCP server `{server}`"), beginning.to_owned());
            unknown.push(ToolSource { label, prefix, note, hint });
        }
        unknown
    }

    /// Waits for package runners that may be installing.
    async fn wait_for_installs(&self, awaited: &ToolsAwaited) -> ToolsMissing {
        let installs = Arc::clone(&self.around.installs);
        let until = Instant::now() + Duration::from_millis(awaited.wait_ms);
        let waiting = async move {
            while !installs.installing_servers().is_empty() && Instant::now() < until {
                tokio::time::sleep(LOOK_AGAIN).await;
            }
            installs.installing_servers()
        };
        let names = self.around.spawner.run_on_runtime(waiting).await.unwrap_or_default();
        let sources = names.into_iter().map(|name| {
            let all = self.list_servers();
            let server = all.iter().find(|server| server.name() == name);
            let printed = server.and_then(|server| server.log().last_printed());
            let printed = printed.map(|it| format!(": {it}")).unwrap_or_default();
            let note = format!("its package runner is installing{printed}");
            let (label, prefix) = (format!("MCP server `{name}`"), server_prefix(&name));
            ToolSource { label, prefix, note, hint: None }
        });
        ToolsMissing::new(sources.collect(), Vec::new())
    }

    /// Starts servers and waits until each is up or down, each for a limited time. A line shows the
    /// user which servers are still starting.
    pub async fn start_and_wait(
        &self,
        servers: &[Arc<McpServer>],
        most: impl Fn(&McpServer) -> Duration,
        host: &Reporter,
    ) {
        servers.iter().filter(|it| !it.entry.disabled).for_each(|server| server.start_server());
        let began = Instant::now();
        for step in 0_u32.. {
            let is_starting = |server: &&Arc<McpServer>| {
                matches!(server.status(), McpConnectionStatus::Starting)
                    && began.elapsed() < most(server)
            };
            let waiting: Vec<Arc<McpServer>> =
                servers.iter().filter(is_starting).cloned().collect();
            if waiting.is_empty() {
                return;
            }
            if step % SETTLE_STEPS_TOLD == 1 {
                let named = waiting
                    .iter()
                    .map(|server| format!("`{}` ({})", server.name(), describe_start(server)));
                let named: Vec<String> = named.collect();
                host.notice(format!("waiting for MCP server {}…", named.join(", ")));
            }
            let settled = async move {
                let all = join_all(waiting.iter().map(|server| server.wait_until_settled()));
                let _ = tokio::time::timeout(SETTLE_STEP, all).await;
            };
            if self.around.spawner.run_on_runtime(settled).await.is_err() {
                return;
            }
        }
    }

    /// Ends the sessions of HTTP servers, within a short time limit. Other servers end with this
    /// process.
    pub async fn close_connections(&self) {
        let all = self.list_servers();
        let open: Vec<Arc<McpServer>> = all
            .iter()
            .filter(|server| matches!(server.entry.reach, McpServerAddress::Http(_)))
            .cloned()
            .collect();
        if open.is_empty() {
            return;
        }
        open.iter().for_each(|server| server.stop_connection());
        let ended = async move {
            let all = join_all(open.iter().map(|server| server.wait_until_ended()));
            let _ = tokio::time::timeout(CLOSE_WAIT, all).await;
        };
        let _ = self.around.spawner.run_on_runtime(ended).await;
    }

    /// Updates the offer and sends it to the host if it has changed.
    ///
    /// # Errors
    /// `limit_reached` if the last update was too recent.
    pub async fn publish_offer(&self, home: &Home) -> Result<()> {
        let mut published = self.published.lock().await;
        let mut offer = McpOffer::from_servers(&self.list_servers());
        if self.are_all_needed.load(Ordering::Relaxed) {
            offer = offer.with_problems(self.config_problems(), self.untrusted_file_notice());
        }
        let set = offer.set.clone();
        *self.offer.lock() = Arc::new(offer);
        let is_known = match &*published {
            Some(published) => *published == set,
            None => set == ToolsSet::default(),
        };
        if is_known {
            return Ok(());
        }
        let answer = home.set_tools(&set).await?;
        for refused in &answer.refused {
            let line = format!("`{}` is left out: {}", refused.name, refused.why);
            home.log(LogLevel::Warn, &line);
            self.around.lines.server_log("jaato").add_line(&line);
        }
        *published = Some(set);
        Ok(())
    }

    /// Publishes changes to the host for as long as the runtime lives.
    pub fn publish_changes(self: &Arc<Self>, home: &Home) {
        let (this, home) = (Arc::downgrade(self), home.clone());
        let around = Arc::clone(&self.around);
        self.around.spawner.spawn(async move {
            loop {
                around.changed.notified().await;
                for _ in 0..ATTEMPTS_MAX {
                    let Some(servers) = this.upgrade() else { return };
                    let published = servers.publish_offer(&home).await;
                    drop(servers);
                    match published {
                        Ok(()) => {
                            tokio::time::sleep(PUBLISH_PAUSE).await;
                            break;
                        }
                        Err(error) => home.log(LogLevel::Debug, &error.message),
                    }
                    tokio::time::sleep(REFUSED_PAUSE).await;
                }
            }
        });
    }
}

/// Returns how much longer a request for these tools waits for a server, or `None` if it does not
/// wait.
fn remaining_wait(server: &McpServer, names: &[String]) -> Option<Duration> {
    let most = match names.is_empty() && server.has_been_slow() {
        true => LATE_WAIT,
        // The server itself reports first that it is late.
        false => server.start_time() + SETTLE_STEP,
    };
    let is_starting = matches!(server.status(), McpConnectionStatus::Starting);
    let left = most.checked_sub(server.time_since_start()?)?;
    (is_starting && !left.is_zero() && !is_description_known(server, names)).then_some(left)
}

/// Returns true if it is known which of these tools a server has.
fn is_description_known(server: &McpServer, names: &[String]) -> bool {
    let Some(described) = server.known_description() else { return false };
    let prefix = server_prefix(server.name());
    let own = names.iter().filter(|name| !name.ends_with('*') && name.starts_with(&prefix));
    let is_there = |name: &String| {
        let mut tools = described.tools.iter().map(|tool| tool.name.as_str()).chain(["sampling"]);
        tools.any(|tool| tool_name(server.name(), tool) == *name)
    };
    own.into_iter().all(is_there)
}

/// Explains why tools with these names are missing, with a hint.
fn explain_missing_tools(server: &McpServer, names: &[String]) -> Option<(String, Option<String>)> {
    if !names.is_empty() && is_description_known(server, names) {
        return None;
    }
    match server.status() {
        McpConnectionStatus::Down { why } => {
            Some((format!("is down: {}", why.message), Some(server.down_hint(&why))))
        }
        McpConnectionStatus::Stopped => {
            let hint = format!("`jaato mcp connect {}` connects it", server.name());
            Some(("is disconnected".to_owned(), Some(hint)))
        }
        McpConnectionStatus::Disabled => Some(("is disabled by its entry".to_owned(), None)),
        McpConnectionStatus::Starting
            if names.is_empty() && server.known_description().is_some() =>
        {
            None
        }
        McpConnectionStatus::Starting => {
            let hint = Some(MORE_TIME.to_owned());
            Some((format!("is still starting{}", last_printed_suffix(server)), hint))
        }
        McpConnectionStatus::Up(_) => None,
    }
}

/// Describes the progress of a starting server.
fn describe_start(server: &McpServer) -> String {
    format!("starting{}", last_printed_suffix(server))
}

fn last_printed_suffix(server: &McpServer) -> String {
    server.log().last_printed().map(|it| format!(": {it}")).unwrap_or_default()
}

fn tool_source(server: &McpServer, note: String) -> ToolSource {
    let label = format!("MCP server `{}`", server.name());
    ToolSource { label, prefix: server_prefix(server.name()), note, hint: None }
}

/// Reads the files and the programs that they name. Blocks.
pub fn read_config_files(places: &McpConfigLocations) -> (LoadedMcpConfig, Vec<String>) {
    let configured = places.read_all_files(&|name| std::env::var(name).ok());
    let prints = configured.servers.values().map(fingerprint).collect();
    (configured, prints)
}
