//! Waits for tools that plugins have not set yet, and for work that plugins must finish before the
//! host ends.
//!
//! A plugin that sets its tools later declares the prefixes of their names. The host asks it
//! repeatedly while something is pending, so that a status line can show the progress.

use std::sync::Arc;
use std::time::{Duration, Instant};

use jaato_instances::{
    CallSite, DeltaCallback, FacetRequest, invalid_answer_error, misbehaved_error,
};
use jaato_registry::{PluginEntry, PluginStatus};
use jaato_session::{Cancel, WantedTools};
use jaato_types::tools_set::{ToolSource, ToolsAwaited, ToolsMissing};
use jaato_types::{Error, ErrorKind, Frame, PluginName, SessionId};

use crate::host::RuntimeHost;
use crate::runtime::Runtime;

/// The wait before the first status line.
const QUIET: Duration = Duration::from_millis(300);
/// The minimum time between two status lines.
const TELL_PAUSE: Duration = Duration::from_secs(10);
/// How long a plugin may take to answer, in addition to the requested wait.
const ANSWER_TIME: Duration = Duration::from_secs(10);
/// The same when the host ends.
const ENDING_TIME: Duration = Duration::from_secs(2);
/// The longest total wait, in case a plugin reports pending tools forever.
const WAIT_MAX: Duration = Duration::from_secs(30 * 60);
/// Number of sources that a status line names. The others are counted.
const SOURCES_SHOWN_MAX: usize = 3;

impl RuntimeHost {
    /// Lists the active plugins that may set tools with these names later. Without names, lists
    /// every plugin that may set tools.
    pub(crate) fn plugins_setting_tools_later(&self, names: &[String]) -> Vec<PluginName> {
        let awaited = ToolsAwaited::new(names.to_vec(), 0);
        let registry = self.registry();
        let is_due = |entry: &&PluginEntry| {
            let is_due = entry.status == PluginStatus::Active
                && (!names.is_empty() || self.services.has_work(entry));
            let description = entry.description().filter(|_| is_due);
            description
                .is_some_and(|it| it.tool_prefixes.iter().any(|it| awaited.is_awaiting_prefix(it)))
        };
        let plugins = registry.plugins().iter().filter(is_due);
        plugins.map(|entry| entry.candidate.manifest.name.clone()).collect()
    }

    /// Asks a plugin once for tools that it has not set yet.
    pub(crate) async fn ask_for_tools(
        &self,
        plugin: &PluginName,
        site: CallSite,
        awaited: &ToolsAwaited,
    ) -> ToolsMissing {
        let quiet: DeltaCallback = Arc::new(|_| {});
        let asked = async {
            let frame = Frame::write(awaited).map_err(misbehaved_error)?;
            let (name, facet, cancel) = (plugin.as_str(), FacetRequest::AwaitTools, Cancel::new());
            let answer =
                self.plugins.call_plugin(name, facet, site, frame, &quiet, &cancel).await?;
            Frame::read::<ToolsMissing>(&answer).map_err(invalid_answer_error(name))
        };
        let time = if awaited.is_ending { ENDING_TIME } else { ANSWER_TIME };
        let bound = Duration::from_millis(awaited.wait_ms) + time;
        let late = |_| Err(Error::new(ErrorKind::Timeout, "it does not answer"));
        match tokio::time::timeout(bound, asked).await.unwrap_or_else(late) {
            Ok(missing) => missing,
            // The plugin lacks this operation, so there is nothing to wait for.
            Err(error) if error.kind == ErrorKind::UnknownOperation => ToolsMissing::default(),
            Err(error) => {
                self.log.write_line(
                    2,
                    plugin.as_str(),
                    &format!("cannot wait for its tools: {error}"),
                );
                ToolsMissing::default()
            }
        }
    }

    /// Waits for tools of a session. Returns the sources whose tools failed.
    pub(crate) async fn await_tools(
        self: &Arc<Self>,
        session: &SessionId,
        wanted: &WantedTools,
        tell: &(dyn Fn(String) + Send + Sync),
    ) -> Vec<ToolSource> {
        let mut wait = ShutdownWait::begin();
        let mut failed = Vec::new();
        for plugin in self.plugins_setting_tools_later(&wanted.names) {
            loop {
                let awaited = ToolsAwaited::new(wanted.names.clone(), wait.next_wait_ms());
                let site = self.environments.call_site(session).read_only();
                let missing = self.ask_for_tools(&plugin, site, &awaited).await;
                if missing.pending.is_empty() || wait.is_over() {
                    failed.extend(missing.failed);
                    break;
                }
                wait.report_pending("waiting for ", &missing.pending, tell);
            }
        }
        failed
    }
}

impl Runtime {
    /// Returns true if a plugin may set a tool or a command with this name while it runs: one that
    /// declares a prefix of the name, or one that is opened with each session.
    pub fn can_be_set_later(&self, name: &str) -> bool {
        let host = self.host();
        host.registry().plugins().iter().any(|entry| host.opens_at_start(entry))
            || !host.plugins_setting_tools_later(&[name.to_owned()]).is_empty()
    }

    /// Waits until plugins have finished work that must not be interrupted, such as an
    /// installation. `report_pending` receives lines for the user.
    pub async fn finish_plugin_work(&self, tell: &(dyn Fn(String) + Send + Sync)) {
        let host = self.host();
        let mut wait = ShutdownWait::begin();
        for plugin in host.plugins_setting_tools_later(&[]) {
            let nobody = CallSite::without_session();
            while host.plugins.instances.is_live(&plugin, &nobody.session) && !wait.is_over() {
                let awaited = ToolsAwaited::before_exit(wait.next_wait_ms());
                let site = CallSite::without_session().read_only();
                let missing = host.ask_for_tools(&plugin, site, &awaited).await;
                if missing.pending.is_empty() {
                    break;
                }
                wait.report_pending("before jaato ends, waiting for ", &missing.pending, tell);
            }
        }
    }
}

/// A wait, and the last line that it showed the user.
struct ShutdownWait {
    began: Instant,
    told: Option<(Instant, String)>,
}

impl ShutdownWait {
    fn begin() -> Self {
        Self { began: Instant::now(), told: None }
    }

    fn is_over(&self) -> bool {
        self.began.elapsed() >= WAIT_MAX
    }

    /// Returns how long the next answer may take.
    fn next_wait_ms(&self) -> u64 {
        let step = if self.told.is_none() { QUIET } else { TELL_PAUSE / 5 };
        let left = WAIT_MAX.saturating_sub(self.began.elapsed());
        u64::try_from(step.min(left).as_millis()).unwrap_or_default()
    }

    fn report_pending(
        &mut self,
        what: &str,
        pending: &[ToolSource],
        tell: &(dyn Fn(String) + Send + Sync),
    ) {
        let line = format!("{what}{}…", format_pending(pending));
        let is_due = |(at, told): &(Instant, String)| at.elapsed() >= TELL_PAUSE && *told != line;
        if self.told.as_ref().is_none_or(is_due) {
            tell(line.clone());
            self.told = Some((Instant::now(), line));
        }
    }
}

fn format_pending(pending: &[ToolSource]) -> String {
    let shown = pending.iter().take(SOURCES_SHOWN_MAX);
    let shown = shown.map(|source| format!("{} ({})", source.label, source.note));
    let shown = shown.collect::<Vec<_>>().join(", ");
    match pending.len().saturating_sub(SOURCES_SHOWN_MAX) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
