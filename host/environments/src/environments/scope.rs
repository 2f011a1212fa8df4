//! The lifecycle of one execution environment, and the calls of its plugin.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use jaato_instances::{
    CallSite, DeltaCallback, EnvironmentAccess, InstanceLease, blame_plugin, drive_call,
    invalid_answer_error,
};
use jaato_loader::EngineServices;
use jaato_registry::PluginEntry;
use jaato_session::Cancel;
use jaato_types::execution::{
    DESCRIBE, EnvironmentFacts, EnvironmentPart, EnvironmentSetup, SETUP, STREAM_CLOSE,
    StreamClose, TEARDOWN,
};
use jaato_types::process::{PREPARE, Spawn};
use jaato_types::{Delta, Error, ErrorKind, Frame, FrameError, PluginName, SessionId};
use parking_lot::Mutex as SyncMutex;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tokio::sync::Mutex;

use super::resources::EnvironmentResources;
use super::{Environments, SessionEnvironment};
use crate::processes::CallProcesses;

/// How long taking down an environment may take.
const TEARDOWN_MAX: std::time::Duration = std::time::Duration::from_secs(10);

/// The chosen environment and its options.
#[derive(Debug, Clone)]
pub struct EnvironmentChoice {
    /// Its name.
    pub name: String,
    /// Its plugin.
    pub plugin: PluginName,
    /// The user's options, which override its configuration.
    pub options: Map<String, Value>,
    /// Its working directory. `None` for the runtime's.
    pub directory: Option<PathBuf>,
}

/// An execution environment.
pub struct EnvironmentScope {
    choice: EnvironmentChoice,
    /// Takes the place of a session id, because the environment's instance belongs to no session.
    id: SessionId,
    /// Locked during setup and teardown.
    life: Mutex<EnvironmentLifecycle>,
    /// Used by calls after setup.
    ready: SyncMutex<Option<Arc<ReadyEnvironment>>>,
    members: SyncMutex<usize>,
    pub(super) resources: Arc<EnvironmentResources>,
    /// Programs that the host runs for the environment's sessions, as the environment prepared
    /// them.
    programs: OnceLock<CallProcesses>,
}

/// The stage of its lifecycle.
#[derive(Default)]
struct EnvironmentLifecycle {
    /// Whether it was set up before.
    was_ready: bool,
}

/// An environment that is set up.
pub(super) struct ReadyEnvironment {
    lease: InstanceLease,
    services: Arc<dyn EngineServices>,
    /// Set once the plugin reports that it does not know [`PREPARE`]. It then runs its programs
    /// itself, and the host asks no more.
    runs_programs: AtomicBool,
}

impl EnvironmentScope {
    /// Creates an environment without setting it up.
    pub(crate) fn new(choice: EnvironmentChoice) -> Self {
        static NUMBERS: AtomicU64 = AtomicU64::new(1);
        let number = NUMBERS.fetch_add(1, Relaxed);
        let id = format!("environment-{}-{number}", std::process::id());
        Self {
            choice,
            id: SessionId::from(id.as_str()),
            life: Mutex::default(),
            ready: SyncMutex::default(),
            members: SyncMutex::new(0),
            resources: Arc::default(),
            programs: OnceLock::new(),
        }
    }

    /// Returns the name of its plugin.
    pub(super) fn plugin(&self) -> &str {
        self.choice.plugin.as_str()
    }

    /// Returns the resources that plugins keep open in it.
    pub(crate) fn resources(&self) -> &Arc<EnvironmentResources> {
        &self.resources
    }

    /// Returns its name.
    pub fn name(&self) -> &str {
        &self.choice.name
    }

    /// Returns true if its plugin declares this part, even if the environment is not set up.
    pub(crate) fn has_part(&self, host: &Environments, part: EnvironmentPart) -> bool {
        let registry = host.plugins.registry();
        let described =
            registry.plugin(self.choice.plugin.as_str()).and_then(PluginEntry::description);
        part != EnvironmentPart::Unknown
            && described.is_some_and(|described| !described.environment_lacks.contains(&part))
    }

    pub(super) fn add_session(&self) {
        *self.members.lock() += 1;
    }

    /// Removes a session. The last one takes the environment down.
    pub(super) async fn remove_session(&self, host: &Arc<Environments>) {
        let is_last = {
            let mut members = self.members.lock();
            *members -= 1;
            *members == 0
        };
        if is_last {
            self.close(host).await;
        }
    }

    /// Begins an operation.
    ///
    /// # Errors
    /// If the environment is not ready or the call fails.
    pub(super) async fn call(
        &self,
        host: &Arc<Environments>,
        operation: &str,
        frame: Vec<u8>,
        tell: &DeltaCallback,
    ) -> Result<(Vec<u8>, Arc<ReadyEnvironment>), Error> {
        let ready = self.ensure_ready(host, tell).await?;
        let answer = ready.call(operation, frame, tell).await?;
        Ok((answer, ready))
    }

    /// Returns the programs that the host runs for it. They count as the environment's own.
    pub(super) fn programs(&self, host: &Environments) -> &CallProcesses {
        self.programs.get_or_init(|| {
            CallProcesses::new(Arc::clone(&host.processes), self.id.clone()).for_instance()
        })
    }

    /// Asks how the host should run a program. Returns `None` if the environment runs it itself.
    ///
    /// # Errors
    /// If the environment is not ready or refuses the program.
    pub(super) async fn prepare_spawn(
        &self,
        host: &Arc<Environments>,
        request: Vec<u8>,
        tell: &DeltaCallback,
    ) -> Result<Option<Spawn>, Error> {
        let ready = self.ensure_ready(host, tell).await?;
        if ready.runs_programs.load(Relaxed) {
            return Ok(None);
        }
        match ready.call(PREPARE, request, tell).await {
            Ok(prepared) => parse_answer(self.plugin(), &prepared).map(Some),
            Err(error) if error.kind == ErrorKind::UnknownOperation => {
                ready.runs_programs.store(true, Relaxed);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Runs an operation if the environment is set up, and ignores the result.
    pub(super) async fn end_program_if_ready(&self, operation: &str, frame: Vec<u8>) {
        let Some(ready) = self.ready_environment() else { return };
        let quiet: DeltaCallback = Arc::new(|_| {});
        drop(ready.call(operation, frame, &quiet).await);
    }

    /// Returns the environment's facts.
    ///
    /// # Errors
    /// As [`EnvironmentScope::call`].
    pub(super) async fn environment_facts(
        &self,
        host: &Arc<Environments>,
        tell: &DeltaCallback,
    ) -> Result<EnvironmentFacts, Error> {
        let (answer, _) = self.call(host, DESCRIBE, Frame::empty(), tell).await?;
        parse_answer(self.plugin(), &answer)
    }

    /// Returns the running environment. Sets it up if that has not happened yet or its worker died.
    async fn ensure_ready(
        &self,
        host: &Arc<Environments>,
        tell: &DeltaCallback,
    ) -> Result<Arc<ReadyEnvironment>, Error> {
        if let Some(ready) = self.ready_environment() {
            return Ok(ready);
        }
        let mut life = self.life.lock().await;
        if let Some(ready) = self.ready_environment() {
            return Ok(ready);
        }
        if self.replace_ready(None).is_some() {
            self.programs(host).end_all().await;
        }
        let own = SessionEnvironment::for_own_plugin(host, &self.resources);
        let site = CallSite {
            environment: Some(Arc::new(own) as Arc<dyn EnvironmentAccess>),
            ..CallSite::for_session(self.id.clone())
        };
        let (lease, services) = host.plugins.acquire_instance(self.plugin(), site, tell).await?;
        let ready =
            Arc::new(ReadyEnvironment { lease, services, runs_programs: AtomicBool::new(false) });
        if life.was_ready {
            let name = self.name();
            tell(Delta::notice(format!(
                "the execution environment `{name}` was lost and starts again: its programs have ended"
            )));
        }
        let mut setup = EnvironmentSetup::default();
        setup.id = self.id.to_string();
        let workspace = &host.plugins.setup.workspace;
        let directory = self.choice.directory.as_deref();
        let directory = directory.unwrap_or_else(|| workspace.working_directory());
        setup.workspace = directory.display().to_string();
        setup.root = workspace.root().display().to_string();
        setup.options = self.choice.options.clone();
        let made = ready.call(SETUP, serialize_request(&setup)?, tell).await;
        if let Err(error) = made {
            // Remove what a failed setup left behind.
            host.plugins.instances.close(Some(&self.id)).await;
            return Err(error);
        }
        life.was_ready = true;
        self.replace_ready(Some(Arc::clone(&ready)));
        Ok(ready)
    }

    fn ready_environment(&self) -> Option<Arc<ReadyEnvironment>> {
        let ready = self.ready.lock();
        ready.as_ref().filter(|ready| ready.lease.end_error().is_none()).cloned()
    }

    fn replace_ready(&self, ready: Option<Arc<ReadyEnvironment>>) -> Option<Arc<ReadyEnvironment>> {
        std::mem::replace(&mut *self.ready.lock(), ready)
    }

    /// Takes the environment down after closing its resources. The user sees errors when the host
    /// ends.
    async fn close(&self, host: &Arc<Environments>) {
        let mut life = self.life.lock().await;
        host.record_problems(self.resources.close().await);
        self.programs(host).end_all().await;
        if let Some(ready) = self.replace_ready(None) {
            let quiet: DeltaCallback = Arc::new(|_| {});
            let ended = ready.call(TEARDOWN, Frame::empty(), &quiet);
            let ended = tokio::time::timeout(TEARDOWN_MAX, ended).await.unwrap_or_else(|_| {
                let text =
                    format!("the shutdown did not finish within {} s", TEARDOWN_MAX.as_secs());
                Err(Error::new(ErrorKind::Timeout, text))
            });
            if let Err(error) = ended {
                let name = self.name();
                let text =
                    format!("the execution environment `{name}` could not be shut down: {error}");
                host.record_problems(vec![text]);
            }
        }
        host.plugins.instances.close(Some(&self.id)).await;
        life.was_ready = false;
    }
}

impl ReadyEnvironment {
    /// Runs one operation and waits for its answer.
    pub(super) async fn call(
        &self,
        operation: &str,
        frame: Vec<u8>,
        tell: &DeltaCallback,
    ) -> Result<Vec<u8>, Error> {
        let running = self.begin_operation(operation, frame)?;
        let answer = drive_call(running, &Cancel::new(), |delta| tell(delta)).await;
        answer.map_err(|error| blame_plugin(self.lease.plugin().as_str(), error))
    }

    /// Starts an operation.
    pub(super) fn begin_operation(
        &self,
        operation: &str,
        frame: Vec<u8>,
    ) -> Result<jaato_loader::RunningCall, Error> {
        self.lease.begin_environment_call(operation, frame, Arc::clone(&self.services))
    }

    /// Closes a stream and ends what it represents.
    pub(super) async fn close_stream(&self, stream: u64) {
        let Ok(frame) = serialize_request(&StreamClose { stream }) else { return };
        let Ok(running) = self.begin_operation(STREAM_CLOSE, frame) else { return };
        // A stream that cannot be closed has ended with its instance.
        let _ = running.answer().await;
    }
}

/// Serializes one of the host's own requests.
pub(super) fn serialize_request(value: &impl Serialize) -> Result<Vec<u8>, Error> {
    Frame::write(value).map_err(host_bug_error)
}

/// Returns the error for an invalid frame of the host's own.
pub(super) fn host_bug_error(error: FrameError) -> Error {
    Error::new(ErrorKind::HostBug, error.to_string())
}

/// Parses an answer of a plugin.
///
/// # Errors
/// If it is wrong. The error names the plugin.
pub(super) fn parse_answer<T: DeserializeOwned>(plugin: &str, answer: &[u8]) -> Result<T, Error> {
    Frame::read(answer).map_err(invalid_answer_error(plugin))
}
