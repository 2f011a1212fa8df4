//! Checks whether a plugin file works. A runtime with only that file runs it in a worker, even if
//! the user trusts it, with the shipped execution environment for programs that its tools run. Also
//! runs the conformance suite.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jaato_catalog::{ChildTask, Discovery, Setup, discover_plugins, file_sha256, supervisor};
use jaato_config::DEFAULT_ENVIRONMENT;
use jaato_environments::parse_settings;
use jaato_instances::{CallSite, DeltaCallback, WORKER_MEMORY_BYTES, WORKER_OPEN_FILES};
use jaato_process::Supervisor;
use jaato_registry::{PluginCandidate, PluginEntry, PluginFileTrust, Registry, RegistryRules};
use jaato_session::{Cancel, DeadlineHold, Gc as _, Session};
use jaato_types::{
    Description, Error, ErrorKind, GcPlan, GcReason, GcRequest, Manifest, Message, Part,
};
pub use jaato_worker::conformance_checks;
use jaato_worker::{CONFORM_ARGUMENTS, SETTINGS_ARGUMENT};

use serde_json::Value;
use tempfile::TempDir;

use crate::gc::PluginGc;
use crate::program::ProgramParts;
use crate::runtime::Runtime;

/// The option with which a user sets a setting for a check.
const SETTING_OPTION: &str = "--setting";

/// The file with the plugin's settings, in the folder of the checks.
const SETTINGS_FILE: &str = "settings.json";

/// How long one check may take: many calls, each with a short wait.
const CONFORM_DEADLINE: Duration = Duration::from_secs(60);

/// Finds the execution environment that comes with jaato.
async fn shipped_environment(setup: &Setup, supervisor: &Supervisor) -> Option<PluginCandidate> {
    let registry = discover_plugins(setup, supervisor).await.registry;
    let entry = registry.environment(DEFAULT_ENVIRONMENT)?;
    (entry.candidate.trust == PluginFileTrust::Shipped).then(|| entry.candidate.clone())
}

/// Number of turns in the history for a gc check.
const TURNS: usize = 6;

impl Runtime {
    /// Starts a runtime with only this plugin. The plugin counts as untrusted, so it runs in a
    /// worker and gets no key. It has the user's settings, and those given as `KEY=VALUE`. The
    /// ledger does not record its calls.
    ///
    /// # Errors
    /// If the file cannot be read, its names are not allowed, or a setting is given twice.
    pub async fn start_for_check(
        mut setup: Setup,
        file: &Path,
        manifest: Manifest,
        description: Description,
        settings: &[(String, String)],
    ) -> Result<Self, Error> {
        if !settings.is_empty() {
            let own = setup.config.plugin_settings.entry(manifest.name.to_string()).or_default();
            for (key, value) in parse_settings(&description, settings)? {
                own.set_by_option(SETTING_OPTION, &key, value);
            }
        }
        let digest = file_sha256(file).map_err(|error| {
            Error::new(ErrorKind::Io, format!("cannot read `{}`: {error}", file.display()))
        })?;
        setup.config.ledger.enabled = false;
        setup.config.tools_disabled.clear();
        setup.config.gc.plugin = manifest.name.to_string();
        setup.config.environment = DEFAULT_ENVIRONMENT.to_owned();
        let supervisor = supervisor(&setup);
        let environment = shipped_environment(&setup, &supervisor).await;
        let candidate = PluginCandidate {
            path: file.to_owned(),
            place: "checked",
            trust: PluginFileTrust::No(digest),
            manifest,
            description: Some(Ok(description)),
        };
        let candidates = [candidate].into_iter().chain(environment);
        let registry = Registry::build(candidates, &RegistryRules::default());
        if let Some((why, hint)) = registry.plugins().first().and_then(PluginEntry::unusable_reason)
        {
            let error = Error::new(ErrorKind::PluginMisbehaved, why);
            return Err(hint.into_iter().fold(error, Error::with_hint));
        }
        let discovery = Discovery { registry, ..Discovery::default() };
        Ok(Self::assemble(setup, supervisor, discovery, ProgramParts::default()))
    }

    /// Returns the settings of the plugin, as it sees them.
    ///
    /// # Errors
    /// `configuration`, with the place of the first value that the plugin's schema rejects.
    pub fn checked_settings(&self, plugin: &PluginEntry) -> Result<Arc<Value>, Error> {
        let name = plugin.candidate.manifest.name.as_str();
        let edition = self.host().plugins.plugins.current().edition(name).number;
        let services = &self.host().services;
        services.credential_access(plugin, None, edition)?;
        Ok(services.plugin_settings(plugin, None, edition).unwrap_or_default())
    }

    /// Creates the plugin's instance for a session.
    ///
    /// # Errors
    /// If the plugin creates no instance or crashes.
    pub async fn make_instance(
        &self,
        plugin: &PluginEntry,
        session: &Session,
    ) -> Result<(), Error> {
        let site = CallSite::for_session(session.id().clone());
        let (name, quiet): (_, DeltaCallback) = (&plugin.candidate.manifest.name, Arc::new(|_| {}));
        self.host().plugins.acquire_instance(name.as_str(), site, &quiet).await.map(drop)
    }

    /// Asks the configured gc about a short history that has filled its context. Returns how many
    /// messages it would drop, and out of how many.
    ///
    /// # Errors
    /// If the gc fails or would drop messages that do not exist.
    pub async fn try_gc(&self, session: &Session, cancel: Cancel) -> Result<(usize, usize), Error> {
        let gc = PluginGc::new(
            Arc::clone(self.host()),
            session.id().clone(),
            &self.setup().config.gc.plugin,
        );
        let turn = |number: usize| {
            let prompt = Message::user(format!("question {number}"));
            [prompt, Message::model(vec![Part::text(format!("answer {number}"))])]
        };
        let mut request = GcRequest::new(GcReason::Threshold, (0..TURNS).flat_map(turn).collect());
        request.context_limit = 1000;
        request.total_tokens = 950;
        request.settings = serde_json::json!({});
        let GcPlan { drop, .. } = gc.create_plan(&request, cancel, DeadlineHold::default()).await?;
        let count = request.messages.len();
        match drop.iter().find(|&&at| at >= count) {
            None => Ok((drop.len(), count)),
            Some(at) => {
                let text = format!("its plan drops message {at} of {count}");
                Err(Error::new(ErrorKind::PluginMisbehaved, text))
            }
        }
    }
}

/// The conformance suite for a plugin file. Each check is a separate process, whose host services
/// can access only a folder for temporary files. They have the plugin's settings.
pub struct ConformanceSuite<'a> {
    runtime: &'a Runtime,
    file: &'a Path,
    folder: TempDir,
}

impl<'a> ConformanceSuite<'a> {
    /// Creates the folder, with the plugin's settings.
    ///
    /// # Errors
    /// If the folder cannot be created or written.
    pub fn new(runtime: &'a Runtime, file: &'a Path, settings: &Value) -> Result<Self, Error> {
        let folder = TempDir::with_prefix("jaato-check-").map_err(|error| {
            let text = format!("cannot create a folder for temporary files: {error}");
            Error::new(ErrorKind::Io, text)
        })?;
        let path = folder.path().join(SETTINGS_FILE);
        std::fs::write(&path, settings.to_string()).map_err(|error| {
            let text = format!("cannot write `{}`: {error}", path.display());
            Error::new(ErrorKind::Io, text)
        })?;
        Ok(Self { runtime, file, folder })
    }

    /// Runs one of [`conformance_checks`]. Returns the violation, if there is one.
    ///
    /// # Errors
    /// If the check did not finish, for example because the plugin hung or crashed.
    /// `configuration` if the plugin needs a setting that is missing.
    pub async fn run(&self, check: &str) -> Result<Option<String>, Error> {
        let [worker, conform] = CONFORM_ARGUMENTS;
        let errand = ChildTask {
            what: "the check",
            // Relative to its working directory.
            arguments: &[worker, conform, check, SETTINGS_ARGUMENT, SETTINGS_FILE],
            folder: self.folder.path(),
            deadline: CONFORM_DEADLINE,
            memory_bytes: WORKER_MEMORY_BYTES,
            open_files: WORKER_OPEN_FILES,
        };
        let (supervisor, executable) = self.runtime.child_starter();
        errand.run(supervisor, executable, self.file).await
    }
}
