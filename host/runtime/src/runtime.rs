//! The runtime: the discovered plugins, and the parts that run them.

use std::path::Path;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use jaato_catalog::{
    Discovery, Plugins, Setup, StartState, discover_plugins, missing_shipped_hint, supervisor,
};
use jaato_config::ConfigEntry;
use jaato_environments::{
    EndedProcess, Environments, OutputFolder, ProgramRegistry, declared_secrets,
};
use jaato_instances::{
    CallSite, Instances, PluginCaller, ServiceFactory, Workers, isolation_reason,
};
use jaato_loader::{EngineObserver, Executor, LONG_BLOCK, Misbehavior, MisbehaviorReport};
use jaato_log::Log;
use jaato_policy::{CallPaths, PolicyCall, ResolvedCallPaths};
use jaato_process::{Orphan, Supervisor};
use jaato_registry::{PluginEntry, PluginStatus, Registry};
use jaato_services::{
    Assets, HostServices, SharedServices, list_setting_problems, variable_entries,
};
use jaato_terminals::{SharedTerminals, SocketFolders, own_temporary_folder};
use jaato_types::{Asset, Error, ErrorKind, ModelId, ModelInfo, PluginName, SessionId};
use parking_lot::Mutex;
use serde_json::Map;

use crate::gate::{call_place, expand_pattern_in, is_repository_plain};
use crate::gc;
use crate::host::RuntimeHost;
use crate::ledger::create_ledger;
use crate::maker::HostSessionMaker;
use crate::model_queries;
use crate::program::ProgramParts;
use crate::prompt::notes_on_files;

/// Maximum number of lines per plugin about invalid parts of its description.
const LEFT_OUT_TOLD_MAX: usize = 3;

/// A host: the discovered plugins, and the parts that run them. A process creates it once, and
/// sessions run on it.
pub struct Runtime {
    host: Arc<RuntimeHost>,
    supervisor: Supervisor,
    problems: Vec<String>,
    setting_problems: Vec<String>,
    has_broken_settings: bool,
    described: usize,
}

/// What to tell the user after everything has ended.
#[derive(Debug, Default)]
pub struct ShutdownReport {
    /// The processes that commands had left running.
    pub processes: Vec<EndedProcess>,
    /// The processes of commands that had ended their keeper and the guardian.
    pub orphans: Vec<Orphan>,
    /// Errors from closing the plugins' resources, one line each.
    pub resources: Vec<String>,
    /// Errors of the ledger, one line each.
    pub ledger: Vec<String>,
}

/// A model that can be used, or could be.
#[derive(Debug, Clone)]
pub struct ListedModel {
    /// `provider/model`.
    pub id: ModelId,
    /// The facts that the provider reports about it.
    pub info: ModelInfo,
    /// Whether its weights are on this machine.
    pub state: ModelState,
}

/// The location of a model's weights.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelState {
    /// The model needs no weights on this machine.
    Remote,
    /// The weights are on this machine.
    Here,
    /// `jaato model pull` downloads them, or the first use does if `local.download` is set.
    Missing {
        /// Their size.
        bytes: u64,
    },
}

impl Runtime {
    /// Finds the plugins without opening them. Describes new ones, each in its own child process.
    pub async fn start(setup: Setup) -> Self {
        let supervisor = supervisor(&setup);
        let discovery = discover_plugins(&setup, &supervisor).await;
        Self::assemble(setup, supervisor, discovery, ProgramParts::default())
    }

    /// Starts a runtime with parts of the embedding program next to the plugins.
    ///
    /// # Errors
    /// If a key or a base URL is for a provider that no plugin offers.
    pub async fn start_with(mut setup: Setup, mut program: ProgramParts) -> Result<Self, Error> {
        let supervisor = supervisor(&setup);
        let discovery = discover_plugins(&setup, &supervisor).await;
        program.set_variables(&mut setup, &discovery.registry)?;
        Ok(Self::assemble(setup, supervisor, discovery, program))
    }

    /// Assembles the runtime from the discovered plugins.
    pub(crate) fn assemble(
        mut setup: Setup,
        supervisor: Supervisor,
        discovery: Discovery,
        program: ProgramParts,
    ) -> Self {
        let log = Log::in_folder(setup.folders.cache_folder().ok());
        let Discovery { registry, mut problems, described, stamps, trust } = discovery;
        if let Some(option) = &setup.environment_option {
            let chosen = registry.environment_with_option(option);
            setup.config.environment = chosen.map_or_else(|| format!("--{option}"), str::to_owned);
        }
        let of_settings = list_setting_problems(&registry, &setup.config, &setup.variables);
        let has_broken_settings = of_settings.iter().any(|problem| problem.breaks_plugin);
        let setting_problems: Vec<String> =
            of_settings.into_iter().map(|problem| problem.text).collect();
        problems.extend(setting_problems.iter().cloned());
        let is_unknown = |name: &String| registry.plugin(name).is_none();
        if setup.config.plugin_settings.keys().any(is_unknown) {
            problems.extend(missing_shipped_hint(&setup, &registry));
        }
        problems.extend(describe_left_out(&registry));
        problems.extend(gc::gc_setting_problem(&registry, &setup.config));
        problems.extend(notes_on_files(&setup));
        problems.extend(setup.config.warnings.iter().map(|warning| warning.text.clone()));
        let cache = setup.folders.cache_folder().ok();
        let outputs = match cache.filter(|cache| jaato_places::make_own_folder(cache).is_ok()) {
            Some(cache) => OutputFolder::in_folder(cache),
            None => OutputFolder::in_folder(&own_temporary_folder(&std::env::temp_dir())),
        };
        outputs.remove_abandoned_folders();
        let (setup, outputs) = (Arc::new(setup), Arc::new(outputs));
        let processes = Arc::new(ProgramRegistry::new(
            supervisor.clone(),
            &setup.variables,
            &declared_secrets(&registry),
            &setup.config.tools_cli_pass,
            setup.workspace.working_directory().to_owned(),
        ));
        let (kept, programs) = (Arc::clone(&outputs), Arc::clone(&processes));
        let shared = SharedServices::new(&setup, &supervisor, kept, programs);
        let services = Arc::new(HostServices::new(Arc::clone(&setup), shared));
        let watch = Arc::new(PluginObserver { log: log.clone(), plugins: OnceLock::new() });
        let executor = Executor::new(tokio::runtime::Handle::current(), Arc::clone(&watch) as _);
        let workers = Workers::new(supervisor.clone(), setup.executable.clone(), log.clone());
        let start = StartState { stamps, trust, problems: problems.clone() };
        let plugins = Arc::new(PluginCaller {
            setup: Arc::clone(&setup),
            plugins: Plugins::new(registry, start, log.clone()),
            instances: Instances::new(executor, workers),
            log: log.clone(),
            supervisor: supervisor.clone(),
            services: Arc::clone(&services) as Arc<dyn ServiceFactory>,
        });
        let _ = watch.plugins.set(Arc::downgrade(&plugins));
        let ledger = create_ledger(&setup, &log);
        let door = setup.config.terminals.join.then(|| SocketFolders::from_folders(&setup.folders));
        let terminals = SharedTerminals::new(tokio::runtime::Handle::current(), door, log.clone());
        let (callers, board) = (Arc::clone(&plugins), Arc::clone(&terminals));
        let environments = Environments::new(callers, board, outputs, processes);
        let host = Arc::new(RuntimeHost {
            taps: Mutex::default(),
            saved_in: Mutex::default(),
            program,
            setup,
            place: OnceLock::new(),
            plugins,
            services,
            environments,
            terminals,
            log,
            ledger,
        });
        let maker = HostSessionMaker(Arc::downgrade(&host));
        host.services.shared_services().sessions().set_maker(Box::new(maker));
        Self { host, supervisor, problems, setting_problems, has_broken_settings, described }
    }

    /// Returns the supervisor that starts children, and the executable to start.
    pub(crate) fn child_starter(&self) -> (&Supervisor, &Path) {
        (&self.supervisor, &self.host.setup.executable)
    }

    /// Asks the configured environment where the paths of a call lead, as a session's rules see
    /// them. Returns `None` if no environment can tell.
    pub async fn resolve_paths(&self, call: &PolicyCall<'_>) -> Option<ResolvedCallPaths> {
        let place = call_place(self.setup());
        let paths = CallPaths::from_call(call, |pattern| expand_pattern_in(&place, pattern));
        let environments = &self.host.environments;
        let session = SessionId::from("paths-of-a-call");
        environments.enter_environment(&session, None, Map::new(), None).ok()?;
        let resolved = environments.resolve_paths(&session, &paths.all).await;
        environments.leave_environment(&session).await;
        Some(paths.with_targets(resolved?))
    }

    /// Returns true if a call runs `git` and the repository configures nothing that a read-only
    /// command runs.
    pub fn repository_is_plain(&self, call: &PolicyCall<'_>) -> bool {
        call.runs_program("git") && is_repository_plain(&call_place(self.setup()))
    }

    /// Returns the setup of the host.
    pub fn setup(&self) -> &Setup {
        &self.host.setup
    }

    /// Returns the current registry of names. If plugins are watched, it may change at any time.
    pub fn registry(&self) -> Arc<Registry> {
        self.host.registry()
    }

    /// Returns the problems found at the start, each with its hint on a second line.
    pub fn problems(&self) -> &[String] {
        &self.problems
    }

    /// Returns the problems with plugin settings, to be shown to the user before anything runs.
    pub fn setting_problems(&self) -> &[String] {
        &self.setting_problems
    }

    /// Returns true if a plugin's settings make it unusable.
    pub fn has_broken_settings(&self) -> bool {
        self.has_broken_settings
    }

    /// Lists the plugin settings that variables set, for display.
    pub fn given_settings(&self) -> Vec<ConfigEntry> {
        let setup = self.setup();
        variable_entries(&self.registry(), &setup.config, &setup.variables)
    }

    /// Returns the number of plugins that had to be described at this start.
    pub fn described_count(&self) -> usize {
        self.described
    }

    /// Returns the number of plugins opened so far.
    pub async fn opened_count(&self) -> usize {
        self.host.plugins.instances.opened_plugin_count().await
    }

    /// Returns why a plugin runs in a worker, or `None` if it runs inside this process.
    pub fn worker_reason(&self, entry: &PluginEntry) -> Option<&'static str> {
        isolation_reason(&self.host.setup, entry)
    }

    /// Returns the log.
    pub fn log(&self) -> &Log {
        &self.host.log
    }

    /// Returns the supervisor that starts child processes.
    pub fn supervisor(&self) -> &Supervisor {
        &self.supervisor
    }

    /// Returns the assets, if the system reports a home directory.
    pub fn assets(&self) -> Option<&Assets> {
        self.host.services.shared_services().assets()
    }

    /// Lists the assets that usable plugins declare.
    pub fn declared_assets(&self) -> Vec<Asset> {
        let registry = self.registry();
        let active = registry.plugins().iter().filter(|entry| entry.status == PluginStatus::Active);
        active
            .filter_map(PluginEntry::description)
            .flat_map(|it| it.assets.iter().cloned())
            .collect()
    }

    /// Lists the models of all providers, also of those that must ask a server.
    ///
    /// The second list names the providers that could not be asked, and why. It leaves out
    /// providers that are unused and not set up.
    pub async fn list_models(&self) -> (Vec<ListedModel>, Vec<String>) {
        self.list_models_within(Duration::MAX).await
    }

    /// Like [`Runtime::list_models`], but gives each provider only this much time. Asks one
    /// after the other.
    ///
    /// As [`Runtime::list_models`].
    pub async fn list_models_within(&self, wait: Duration) -> (Vec<ListedModel>, Vec<String>) {
        let (mut models, mut problems) = (Vec::new(), Vec::new());
        let (registry, configured_model) = (self.registry(), self.model());
        for name in self.host.provider_names(&registry) {
            let (entry, configured) = match self.host.provider_plugin(&registry, &name, None) {
                Ok(found) => found,
                Err(error) => {
                    problems.push(error.to_string());
                    continue;
                }
            };
            if entry.status != PluginStatus::Active {
                continue;
            }
            let is_configured =
                configured_model.split().is_some_and(|(provider, _)| provider == name);
            if !is_configured && self.provider(&name).is_ok_and(|info| info.is_unused) {
                continue;
            }
            match self.plugin_models(entry, configured, wait).await {
                Ok(infos) => {
                    models.extend(infos.into_iter().map(|info| self.listed_model(&name, info)))
                }
                Err(error) if error.kind == ErrorKind::NotFound && !is_configured => {}
                Err(error) => problems.push(format!("provider `{name}`: {error}")),
            }
        }
        (models, problems)
    }

    /// Returns a guard that keeps the plugin threads from ending until it is dropped. A program
    /// that is only a host may leak it.
    pub fn hold_plugin_threads(&self) -> impl Send + use<> {
        self.host.plugins.instances.executor()
    }

    /// Asks the configured model's provider whether a session could use the model, and waits at
    /// most this long.
    ///
    /// # Errors
    /// If no plugin offers the provider, the provider does not answer in time or does not offer the
    /// model, or the model's weights are neither on this machine nor allowed to be downloaded.
    pub async fn check_model(&self, wait: Duration) -> Result<ListedModel, Error> {
        let id = self.model_by_name(self.setup().config.model.as_str())?.model;
        let provider = self.host.resolve_provider(&id)?.name;
        let registry = self.registry();
        let (entry, configured) = self.host.provider_plugin(&registry, &provider, Some(&id))?;
        let infos = self.plugin_models(entry, configured, wait).await?;
        let Some(info) = model_queries::find_model_info(&infos, &id) else {
            return Err(model_queries::model_not_offered_error(&id));
        };
        let model = ListedModel { id, ..self.listed_model(&provider, info.clone()) };
        let may_fetch = self.setup().config.local_download && !self.setup().config.offline;
        if matches!(model.state, ModelState::Missing { .. }) && !may_fetch {
            let text = format!("the weights of `{}` are not downloaded", model.id);
            return Err(Error::new(ErrorKind::Configuration, text).with_hint(
                "`jaato model pull` downloads them, `jaato model import FILE` takes a file; \
                 `--model` and the key `model` name another model",
            ));
        }
        Ok(model)
    }

    /// Ends everything that runs: instances, then child processes, then the ledger. Returns what to
    /// tell the user.
    pub async fn close(&self) -> ShutdownReport {
        // Taps of sessions that were never closed hold the host.
        let taps: Vec<_> = self.host.taps.lock().drain().collect();
        for (_, tap) in taps {
            tap.end().await;
        }
        self.host.environments.close().await;
        let resources = self.host.environments.take_problems();
        self.host.plugins.instances.close(None).await;
        self.host.terminals.close().await;
        let processes = self.host.services.shared_services().processes().list_living().await;
        if let Err(error) = self.supervisor.end_all().await {
            self.host.log.write_line(1, "host", &format!("cannot end child processes: {error}"));
        }
        let orphans = self.supervisor.take_orphans();
        let Some(ledger) = self.host.ledger.clone() else {
            return ShutdownReport { processes, orphans, resources, ledger: Vec::new() };
        };
        // The wait is short, but it must not block this thread's other work.
        let finished = tokio::task::spawn_blocking(move || ledger.finish());
        ShutdownReport { processes, orphans, resources, ledger: finished.await.unwrap_or_default() }
    }

    /// Ends the instances of a session.
    pub async fn close_session(&self, session: &SessionId) {
        self.host.close_session(session).await;
    }

    pub(crate) fn host(&self) -> &Arc<RuntimeHost> {
        &self.host
    }

    pub(crate) async fn plugin_models(
        &self,
        entry: &PluginEntry,
        provider: Option<Arc<str>>,
        wait: Duration,
    ) -> Result<Vec<ModelInfo>, Error> {
        let plugin = entry.candidate.manifest.name.as_str();
        let site = CallSite { provider, ..CallSite::without_session() };
        let asked = model_queries::ask_for_models(&self.host, plugin, site);
        tokio::time::timeout(wait, asked).await.unwrap_or_else(|_| {
            let text = format!("it did not list its models within {} s", wait.as_secs());
            Err(Error::new(ErrorKind::Provider, text)
                .with_hint("is the server of the configured base url running?"))
        })
    }

    /// Checks whether a model's weights are on this machine.
    pub fn weights_state(&self, asset: &Asset) -> ModelState {
        let listed = self.assets().and_then(|assets| assets.list(std::slice::from_ref(asset)).ok());
        let is_here = listed.is_some_and(|entries| {
            entries.iter().any(|entry| {
                entry.name == asset.id
                    && matches!(entry.state, jaato_assets::AssetFileState::Verified { .. })
            })
        });
        if is_here { ModelState::Here } else { ModelState::Missing { bytes: asset.bytes } }
    }

    fn listed_model(&self, provider: &str, info: ModelInfo) -> ListedModel {
        let declared = self.declared_assets();
        let asset =
            info.asset.as_ref().and_then(|id| declared.iter().find(|asset| asset.id == *id));
        let state = asset.map_or(ModelState::Remote, |asset| self.weights_state(asset));
        ListedModel { id: ModelId::new(format!("{provider}/{}", info.name)), info, state }
    }
}

/// Returns lines about the parts of descriptions that cannot be offered.
fn describe_left_out(registry: &Registry) -> Vec<String> {
    let mut lines = Vec::new();
    for entry in registry.plugins().iter().filter(|entry| entry.status == PluginStatus::Active) {
        let name = &entry.candidate.manifest.name;
        let told = entry.left_out.iter().take(LEFT_OUT_TOLD_MAX);
        lines.extend(told.map(|left_out| format!("plugin `{name}`: {left_out}")));
        let more = entry.left_out.len().saturating_sub(LEFT_OUT_TOLD_MAX);
        if more > 0 {
            lines.push(format!(
                "plugin `{name}`: {more} more are left out\nhint: `jaato plugin show {name}` lists them"
            ));
        }
    }
    lines
}

/// Writes plugins' messages and misbehaviour to the log, and tells sessions about calls that hang.
struct PluginObserver {
    log: Log,
    plugins: OnceLock<Weak<PluginCaller>>,
}

impl EngineObserver for PluginObserver {
    fn log(&self, plugin: &PluginName, level: u8, text: &str) {
        self.log.write_line(level, plugin.as_str(), text);
    }

    fn report_misbehavior(&self, report: &MisbehaviorReport) {
        let plugins = self.plugins.get().and_then(Weak::upgrade);
        match (report.misdeed, plugins) {
            // The calls of a disabled plugin have ended with an error.
            (Misbehavior::StillBlocked { .. }, Some(plugins)) if !report.disabled => {
                let (plugin, seconds) = (&report.plugin, LONG_BLOCK.as_secs());
                let text = format!(
                    "plugin `{plugin}` has blocked a thread for more than {seconds} s; its author \
                     should run such work with `blocking`"
                );
                plugins.plugins.report_misdeed(plugin, text);
            }
            (_, _) => self.log.write_line(1, "host", &report.to_string()),
        }
    }

    fn log_trouble(&self, text: &str) {
        self.log.write_line(1, "host", text);
    }
}
