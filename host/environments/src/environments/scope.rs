//! One execution environment: its life, and the calls of its plugin.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use jaato_instances::{CallSite, EnvironmentAccess, Lease, Tell, drive, misbehaved};
use jaato_loader::Services;
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

use super::resources::Resources;
use super::{Environments, SessionEnvironment};
use crate::processes::CallProcesses;

/// How long an environment may take to be taken down.
const TEARDOWN_MAX: std::time::Duration = std::time::Duration::from_secs(10);

/// Which environment, and how.
#[derive(Debug, Clone)]
pub struct Choice {
    /// Its name.
    pub name: String,
    /// The plugin that is it.
    pub plugin: PluginName,
    /// What the person said of it, over its configuration.
    pub options: Map<String, Value>,
}

/// An execution environment.
pub struct Scope {
    choice: Choice,
    /// Stands in for a session: its instance is nobody else's.
    id: SessionId,
    /// Locked while it is set up or taken down.
    life: Mutex<Life>,
    /// What calls use once it is set up.
    ready: SyncMutex<Option<Arc<Ready>>>,
    members: SyncMutex<usize>,
    pub(super) resources: Arc<Resources>,
    /// Programs that the host runs for the environment's sessions, as the environment prepared
    /// them.
    programs: OnceLock<CallProcesses>,
}

/// How far its life has come.
#[derive(Default)]
struct Life {
    /// Whether it was set up before.
    was_ready: bool,
}

/// An environment that is set up.
pub(super) struct Ready {
    lease: Lease,
    services: Arc<dyn Services>,
    /// Set once it does not know [`PREPARE`]: it runs its programs itself, and is asked no more.
    runs_programs: AtomicBool,
}

impl Scope {
    /// Makes one; nothing is set up.
    pub(crate) fn new(choice: Choice) -> Self {
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

    /// Returns what plugins keep open in it.
    pub(crate) fn resources(&self) -> &Arc<Resources> {
        &self.resources
    }

    /// Returns its name.
    pub fn name(&self) -> &str {
        &self.choice.name
    }

    /// Tells whether its plugin says that it has something; it need not be set up for that.
    pub(crate) fn has(&self, host: &Environments, part: EnvironmentPart) -> bool {
        let registry = host.plugins.registry();
        let described =
            registry.plugin(self.choice.plugin.as_str()).and_then(PluginEntry::description);
        part != EnvironmentPart::Unknown
            && described.is_some_and(|described| !described.environment_lacks.contains(&part))
    }

    pub(super) fn enter(&self) {
        *self.members.lock() += 1;
    }

    /// Lets a session go; the last one takes the environment down.
    pub(super) async fn leave(&self, host: &Arc<Environments>) {
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
    /// What keeps it from being ready, and what the call comes to.
    pub(super) async fn call(
        &self,
        host: &Arc<Environments>,
        operation: &str,
        frame: Vec<u8>,
        tell: &Tell,
    ) -> Result<(Vec<u8>, Arc<Ready>), Error> {
        let ready = self.ready(host, tell).await?;
        let answer = ready.call(operation, frame, tell).await?;
        Ok((answer, ready))
    }

    /// Returns the programs that the host runs for it; they count as the environment's own.
    pub(super) fn programs(&self, host: &Environments) -> &CallProcesses {
        self.programs.get_or_init(|| {
            CallProcesses::new(Arc::clone(&host.processes), self.id.clone()).for_instance()
        })
    }

    /// Asks how the host shall run a program; `None` where the environment runs it itself.
    ///
    /// # Errors
    /// What keeps it from being ready, and why the program is not run.
    pub(super) async fn prepare(
        &self,
        host: &Arc<Environments>,
        request: Vec<u8>,
        tell: &Tell,
    ) -> Result<Option<Spawn>, Error> {
        let ready = self.ready(host, tell).await?;
        if ready.runs_programs.load(Relaxed) {
            return Ok(None);
        }
        match ready.call(PREPARE, request, tell).await {
            Ok(prepared) => read(&prepared).map(Some),
            Err(error) if error.kind == ErrorKind::UnknownOperation => {
                ready.runs_programs.store(true, Relaxed);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Runs an operation where the environment is set up; what it comes to is nobody's concern any
    /// more.
    pub(super) async fn end_if_ready(&self, operation: &str, frame: Vec<u8>) {
        let Some(ready) = self.living() else { return };
        let quiet: Tell = Arc::new(|_| {});
        drop(ready.call(operation, frame, &quiet).await);
    }

    /// Tells what it is.
    ///
    /// # Errors
    /// As [`Scope::call`].
    pub(super) async fn facts(
        &self,
        host: &Arc<Environments>,
        tell: &Tell,
    ) -> Result<EnvironmentFacts, Error> {
        let (answer, _) = self.call(host, DESCRIBE, Frame::empty(), tell).await?;
        Frame::read(&answer).map_err(misbehaved)
    }

    /// Returns it set up; sets it up where that was not done, or where its worker died.
    async fn ready(&self, host: &Arc<Environments>, tell: &Tell) -> Result<Arc<Ready>, Error> {
        if let Some(ready) = self.living() {
            return Ok(ready);
        }
        let mut life = self.life.lock().await;
        if let Some(ready) = self.living() {
            return Ok(ready);
        }
        if self.put(None).is_some() {
            self.programs(host).end_all().await;
        }
        let own = SessionEnvironment::own(host, &self.resources);
        let site = CallSite {
            environment: Some(Arc::new(own) as Arc<dyn EnvironmentAccess>),
            ..CallSite::of(self.id.clone())
        };
        let plugin = self.choice.plugin.as_str();
        let (lease, services) = host.plugins.instance(plugin, site, tell).await?;
        let ready = Arc::new(Ready { lease, services, runs_programs: AtomicBool::new(false) });
        if life.was_ready {
            let name = self.name();
            tell(Delta::notice(format!(
                "the execution environment `{name}` was lost and begins anew: what ran in it has ended"
            )));
        }
        let mut setup = EnvironmentSetup::default();
        setup.id = self.id.to_string();
        let workspace = &host.plugins.setup.workspace;
        setup.workspace = workspace.working_directory().display().to_string();
        setup.root = workspace.root().display().to_string();
        setup.options = self.choice.options.clone();
        let made = ready.call(SETUP, write(&setup)?, tell).await;
        if let Err(error) = made {
            // Nothing of a half-made one stays.
            host.plugins.instances.close(Some(&self.id)).await;
            return Err(error);
        }
        life.was_ready = true;
        self.put(Some(Arc::clone(&ready)));
        Ok(ready)
    }

    fn living(&self) -> Option<Arc<Ready>> {
        let ready = self.ready.lock();
        ready.as_ref().filter(|ready| ready.lease.ended().is_none()).cloned()
    }

    fn put(&self, ready: Option<Arc<Ready>>) -> Option<Arc<Ready>> {
        std::mem::replace(&mut *self.ready.lock(), ready)
    }

    /// Takes it down: resources first, then the environment. What goes wrong is told to a person at
    /// the end.
    async fn close(&self, host: &Arc<Environments>) {
        let mut life = self.life.lock().await;
        host.record(self.resources.close().await);
        self.programs(host).end_all().await;
        if let Some(ready) = self.put(None) {
            let quiet: Tell = Arc::new(|_| {});
            let ended = ready.call(TEARDOWN, Frame::empty(), &quiet);
            let ended = tokio::time::timeout(TEARDOWN_MAX, ended).await.unwrap_or_else(|_| {
                let text = format!("not taken down within {} s", TEARDOWN_MAX.as_secs());
                Err(Error::new(ErrorKind::Timeout, text))
            });
            if let Err(error) = ended {
                let name = self.name();
                let text =
                    format!("the execution environment `{name}` was not taken down: {error}");
                host.record(vec![text]);
            }
        }
        host.plugins.instances.close(Some(&self.id)).await;
        life.was_ready = false;
    }
}

impl Ready {
    /// Runs one operation to its answer.
    pub(super) async fn call(
        &self,
        operation: &str,
        frame: Vec<u8>,
        tell: &Tell,
    ) -> Result<Vec<u8>, Error> {
        let running = self.begin(operation, frame)?;
        drive(running, &Cancel::new(), |delta| tell(delta)).await
    }

    /// Begins an operation: it runs from here on.
    pub(super) fn begin(
        &self,
        operation: &str,
        frame: Vec<u8>,
    ) -> Result<jaato_loader::RunningCall, Error> {
        self.lease.environment(operation, frame, Arc::clone(&self.services))
    }

    /// Ends a stream, and what it stands for.
    pub(super) async fn close_stream(&self, stream: u64) {
        let Ok(frame) = write(&StreamClose { stream }) else { return };
        let Ok(running) = self.begin(STREAM_CLOSE, frame) else { return };
        // What cannot be closed ended with its instance.
        let _ = running.answer().await;
    }
}

/// Writes a request of the host's own.
pub(super) fn write(value: &impl Serialize) -> Result<Vec<u8>, Error> {
    Frame::write(value).map_err(host_bug)
}

/// Makes the error of a frame of the host's own that is none.
pub(super) fn host_bug(error: FrameError) -> Error {
    Error::new(ErrorKind::HostBug, error.to_string())
}

/// Reads what an environment answered.
pub(super) fn read<T: DeserializeOwned>(answer: &[u8]) -> Result<T, Error> {
    Frame::read(answer).map_err(misbehaved)
}
