//! Opens plugins at the start of a session if they set tools while they run.

use std::sync::Arc;
use std::time::Duration;

use jaato_instances::DeltaCallback;
use jaato_registry::{PluginEntry, PluginStatus};
use jaato_types::tools_set::ToolsAwaited;
use jaato_types::{PluginName, SessionId};
use tokio::task::JoinSet;

use crate::host::RuntimeHost;

/// How long the first turn waits for these plugins, the same as for a plugin that is opened by its
/// first call. Tools that arrive later join a later step.
const WAIT: Duration = Duration::from_secs(5);

/// How long the first turn waits for tools that a plugin sets later, in milliseconds.
const TOOLS_MS: u64 = 500;

/// The plugins that are being opened for a session.
#[derive(Default)]
pub struct PluginOpenings(tokio::sync::Mutex<JoinSet<()>>);

impl PluginOpenings {
    /// Starts opening the plugins. If one cannot be opened, its first call reports why. In a
    /// session with a model, the plugins also start to load the tools that they set later, and get
    /// a moment for it.
    pub fn begin(host: &Arc<RuntimeHost>, session: &SessionId, has_model: bool) -> Self {
        let registry = host.registry();
        let only = host.setup.tools_only.clone();
        let later = if has_model {
            host.plugins_setting_tools_later(only.as_deref().unwrap_or(&[]))
        } else {
            Vec::new()
        };
        let mut opening = JoinSet::new();
        // Outside of a tokio runtime, each plugin is opened by its first call.
        if tokio::runtime::Handle::try_current().is_ok() {
            for entry in registry.plugins().iter().filter(|it| host.opens_at_start(it)) {
                let (host, session) = (Arc::clone(host), session.clone());
                let plugin = entry.candidate.manifest.name.clone();
                let awaited = later
                    .contains(&plugin)
                    .then(|| ToolsAwaited::new(only.clone().unwrap_or_default(), TOOLS_MS));
                opening.spawn(open_plugin(host, plugin, session, awaited));
            }
        }
        Self(tokio::sync::Mutex::new(opening))
    }

    /// Waits a limited time until the plugins are open. Later calls return immediately.
    pub async fn wait(&self) {
        let mut opening = self.0.lock().await;
        let all = async { while opening.join_next().await.is_some() {} };
        // Late plugins continue to open, but no call waits for them again.
        let _ = tokio::time::timeout(WAIT, all).await;
        opening.detach_all();
    }
}

impl RuntimeHost {
    /// Returns true if a plugin is opened at the start of each session.
    pub(crate) fn opens_at_start(&self, entry: &PluginEntry) -> bool {
        entry.status == PluginStatus::Active
            && entry.description().is_some_and(|it| it.at_start)
            && self.services.has_work(entry)
    }
}

async fn open_plugin(
    host: Arc<RuntimeHost>,
    plugin: PluginName,
    session: SessionId,
    awaited: Option<ToolsAwaited>,
) {
    let quiet: DeltaCallback = Arc::new(|_| {});
    let site = host.environments.call_site(&session);
    if let Err(error) = host.plugins.acquire_instance(plugin.as_str(), site, &quiet).await {
        host.log.write_line(
            2,
            "host",
            &format!("cannot open `{plugin}` with its session: {error}"),
        );
        return;
    }
    if let Some(awaited) = awaited {
        let site = host.environments.call_site(&session).read_only();
        // The call that waits for a missing tool reports it.
        let _ = host.ask_for_tools(&plugin, site, &awaited).await;
    }
}
