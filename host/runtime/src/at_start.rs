//! Plugins that are opened when a session begins, as they have tools to set.

use std::sync::Arc;
use std::time::Duration;

use jaato_instances::Tell;
use jaato_registry::{PluginEntry, Status};
use jaato_types::tools_set::ToolsAwaited;
use jaato_types::{PluginName, SessionId};
use tokio::task::JoinSet;

use crate::host::Host;

/// How long the first turn waits for them, as for a plugin that is opened with its first call.
/// Tools that are not there by then come with a later step.
const WAIT: Duration = Duration::from_secs(5);

/// How long the first turn waits for tools that a plugin sets later, in milliseconds.
const TOOLS_MS: u64 = 500;

/// The plugins that are being opened for a session.
#[derive(Default)]
pub struct Openings(tokio::sync::Mutex<JoinSet<()>>);

impl Openings {
    /// Begins to open them. What keeps one from being opened is told with its first call. For a
    /// session with a model they also begin to get the tools that they set later, and are given a
    /// moment for it.
    pub fn begin(host: &Arc<Host>, session: &SessionId, has_model: bool) -> Self {
        let registry = host.registry();
        let is_due = |entry: &&PluginEntry| {
            entry.status == Status::Active
                && entry.description().is_some_and(|it| it.at_start)
                && host.services.has_work(entry)
        };
        let only = host.setup.tools_only.clone();
        let later =
            if has_model { host.setting_later(only.as_deref().unwrap_or(&[])) } else { Vec::new() };
        let mut opening = JoinSet::new();
        // Who starts a session outside of a runtime opens plugins with their first call.
        if tokio::runtime::Handle::try_current().is_ok() {
            for entry in registry.plugins().iter().filter(is_due) {
                let (host, session) = (Arc::clone(host), session.clone());
                let plugin = entry.candidate.manifest.name.clone();
                let awaited = later
                    .contains(&plugin)
                    .then(|| ToolsAwaited::new(only.clone().unwrap_or_default(), TOOLS_MS));
                opening.spawn(open(host, plugin, session, awaited));
            }
        }
        Self(tokio::sync::Mutex::new(opening))
    }

    /// Waits until they are open, for a moment; at once from the second time on.
    pub async fn wait(&self) {
        let mut opening = self.0.lock().await;
        let all = async { while opening.join_next().await.is_some() {} };
        // What is too late goes on, and is not waited for again.
        let _ = tokio::time::timeout(WAIT, all).await;
        opening.detach_all();
    }
}

async fn open(
    host: Arc<Host>,
    plugin: PluginName,
    session: SessionId,
    awaited: Option<ToolsAwaited>,
) {
    let quiet: Tell = Arc::new(|_| {});
    let site = host.environments.site(&session);
    if let Err(error) = host.plugins.instance(plugin.as_str(), site, &quiet).await {
        host.log.line(2, "host", &format!("opening `{plugin}` with its session: {error}"));
        return;
    }
    if let Some(awaited) = awaited {
        let site = host.environments.site(&session).reading();
        // What is missing is told by who waits for it.
        let _ = host.ask_for_tools(&plugin, site, &awaited).await;
    }
}
