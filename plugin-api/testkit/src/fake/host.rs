//! The fake host: a plugin linked into its test, with services that the test answers.

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use jaato_objects::ObjectEnvironment;
use jaato_plugin_api::abi::abi_stable::sabi_trait::TD_Opaque;
use jaato_plugin_api::abi::{Answer, ContextBox, LogBox};
use jaato_plugin_engine::{Executor, Guest, Live, Plugin};
use jaato_types::ask::{Form, FormAnswer};
use jaato_types::child::{ChildOpen, ChildTurn};
use jaato_types::model::ModelComplete;
use jaato_types::service::{AssetAnswer, SessionFacts};
use jaato_types::tools_set::ToolsSet;
use jaato_types::{
    Completion, Description, Error, ErrorKind, FrameError, Manifest, Message, Output, Request,
    Result,
};
use parking_lot::Mutex;
use serde_json::Value;

use super::call::{Call, Finished};
use super::clock::{Clock, Time, hung};
use super::grants::Grants;
use super::instance::FakeInstance;
use super::log::{LogBook, LogLine, ProcessLog};
use super::services::{Reply, ServiceRequest, Services};
use super::subject::Subject;

/// How long a plugin may keep a test waiting, in real time: only a plugin that hangs ever takes it.
const PATIENCE: Duration = Duration::from_secs(20);

/// A host in memory.
///
/// It keeps the loader's promises: everything of the plugin is polled and dropped on one thread of
/// its own, arguments are checked before the plugin sees them, a cancel has two phases, and after
/// the end of a call or an instance its context refuses everything. Configure it with the `with_…`
/// methods, then call.
pub struct FakeHost {
    /// The instance of calls that name none. Dropped before the rest.
    instance: OnceLock<Result<FakeInstance>>,
    plugin: Result<Plugin>,
    shared: Arc<Shared>,
    subject: Subject,
    description: Result<Arc<Description>>,
}

/// What everything in one fake host shares.
pub(crate) struct Shared {
    pub(crate) executor: Executor,
    /// The plugin, as the executor counts it.
    pub(crate) guest: Arc<Guest>,
    pub(crate) time: Time,
    pub(crate) services: Services,
    pub(crate) log: Arc<LogBook>,
    patience: Mutex<Duration>,
}

impl Shared {
    pub(crate) fn patience(&self) -> Duration {
        *self.patience.lock()
    }

    /// Waits on the test's thread, while the host's time may skip.
    pub(crate) fn wait_for<F: Future>(&self, future: F) -> Result<F::Output> {
        self.time.wait_for(self.patience(), future)
    }

    /// Runs something on the executor's thread and waits for it.
    fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
        let done = self.wait_for(self.executor.spawn(&self.guest, async move { work() }))?;
        done.ok_or_else(|| hung(self.patience()))
    }
}

impl FakeHost {
    /// Makes a host of a plugin: `FakeHost::new(my_plugin::__jaato::MODULE)`.
    ///
    /// A plugin that cannot be described or has no factory fails at the first use.
    pub fn new(subject: impl Into<Subject>) -> Self {
        let subject = subject.into();
        let log = Arc::new(LogBook::default());
        let time = Time::new(Arc::clone(&log));
        let executor = Executor::new(1, Arc::new(time.clone()), Arc::clone(&log) as _);
        let name = subject.manifest().map_or_else(|_| "unnamed".into(), |manifest| manifest.name);
        let guest = executor.guest(name);
        let services = Services::default();
        services.set_time(time.clone());
        let patience = Mutex::new(PATIENCE);
        let shared = Arc::new(Shared { executor, guest, time, services, log, patience });
        let description = describe(&shared, &subject).map(Arc::new);
        if let (Ok(manifest), Ok(description)) = (subject.manifest(), &description) {
            let grants = Grants::of(manifest.name, description);
            shared.services.grants(|of_host| *of_host = grants);
        }
        let maker = subject.clone();
        let factory = move || maker.factory(LogBox::from_value(ProcessLog, TD_Opaque));
        let plugin = shared
            .run(factory)
            .and_then(|factory| Ok(Plugin::of(&shared.executor, factory?, subject.manifest()?)));
        Self { instance: OnceLock::new(), plugin, shared, subject, description }
    }

    /// Sets the facts of the session; without them the service `session` is `unavailable`.
    #[must_use]
    pub fn with_session(self, facts: SessionFacts) -> Self {
        self.shared.services.set_session(Some(facts));
        self
    }

    /// Sets the plugin's configuration, `[plugins.NAME]`; without it there is an empty one.
    #[must_use]
    pub fn with_config(self, config: Value) -> Self {
        self.shared.services.set_config(config);
        self
    }

    /// Gives the plugin an asset that it declares. The digest is the declared one; the file is not
    /// checked.
    #[must_use]
    pub fn with_asset(self, id: &str, path: &Path) -> Self {
        let description = self.description.as_ref().ok();
        let asset = description.and_then(|all| all.assets.iter().find(|asset| asset.id == id));
        let sha256 = asset.map(|asset| asset.sha256.clone()).unwrap_or_default();
        let path = path.to_string_lossy().into_owned();
        self.shared.services.add_asset(id.to_owned(), AssetAnswer::new(path, sha256));
        self
    }

    /// Answers a service; comes before a built-in service of that name.
    #[must_use]
    pub fn with_service(
        self,
        operation: &str,
        answer: impl Fn(&ServiceRequest) -> Result<Reply> + Send + Sync + 'static,
    ) -> Self {
        self.shared.services.add_script(operation.to_owned(), Arc::new(answer));
        self
    }

    /// Adds another tool of the session, for `tools.call` and `tasks.start`. A task has ended
    /// before the call that starts it goes on.
    #[must_use]
    pub fn with_tool(
        self,
        name: &str,
        tool: impl Fn(Value) -> Result<Output> + Send + Sync + 'static,
    ) -> Self {
        self.shared.services.lent(|lent| lent.add_tool(name, Arc::new(tool)));
        self
    }

    /// Lets a model answer `model.complete`: the text of the answer for a request.
    #[must_use]
    pub fn with_model(
        self,
        model: impl Fn(&ModelComplete) -> Result<String> + Send + Sync + 'static,
    ) -> Self {
        self.shared.services.lent(|lent| lent.set_model(Arc::new(model)));
        self
    }

    /// Lets a person answer forms. Without one, nobody is there.
    #[must_use]
    pub fn with_person(self, person: impl Fn(&Form) -> FormAnswer + Send + Sync + 'static) -> Self {
        self.shared.services.lent(|lent| lent.set_person(Arc::new(person)));
        self
    }

    /// Lets child sessions be opened: how a turn ends for what one is like and what is said to it.
    #[must_use]
    pub fn with_child(
        self,
        child: impl Fn(&ChildOpen, &str) -> ChildTurn + Send + Sync + 'static,
    ) -> Self {
        self.shared.services.lent(|lent| lent.set_child(Arc::new(child)));
        self
    }

    /// Sets the conversation that `session.history` reads.
    #[must_use]
    pub fn with_history(self, messages: Vec<Message>) -> Self {
        self.shared.services.lent(|lent| lent.set_history(messages));
        self
    }

    /// Lists what the plugin has notified.
    pub fn notified(&self) -> Vec<String> {
        self.shared.services.lent(|lent| lent.notified())
    }

    /// Returns what the plugin has set last by `tools.set`. Its tools are called as declared ones
    /// are.
    pub fn tools_set(&self) -> Option<ToolsSet> {
        self.shared.services.lent(|lent| lent.tools_set())
    }

    /// Denies the plugin a grant that it lists (`ask`), as a person who has not given it. Without
    /// this it has all that it lists in [`Description::services`]; what it does not list is refused
    /// in any case.
    #[must_use]
    pub fn with_denied(self, grant: &str) -> Self {
        self.deny(grant);
        self
    }

    /// Takes a grant back, while calls go on.
    pub fn deny(&self, grant: &str) {
        self.shared.services.grants(|grants| grants.deny(grant));
    }

    /// Gives back a grant that was denied.
    pub fn grant(&self, grant: &str) {
        self.shared.services.grants(|grants| grants.give(grant));
    }

    /// Sets how the host's time passes.
    #[must_use]
    pub fn with_clock(self, clock: Clock) -> Self {
        self.shared.time.set_clock(clock);
        self
    }

    /// Sets how long, in real time, a plugin may keep the test waiting before it counts as hung.
    #[must_use]
    pub fn with_patience(self, patience: Duration) -> Self {
        *self.shared.patience.lock() = patience;
        self
    }

    /// Reads the embedded manifest.
    ///
    /// # Errors
    /// `plugin_misbehaved` when it is none.
    pub fn manifest(&self) -> Result<Manifest> {
        self.subject.manifest()
    }

    /// Returns the plugin's description.
    ///
    /// # Errors
    /// What describing failed with.
    pub fn description(&self) -> Result<&Description> {
        self.description.as_deref().map_err(Clone::clone)
    }

    /// Describes the plugin anew.
    ///
    /// # Errors
    /// What describing failed with.
    pub fn describe(&self) -> Result<Description> {
        describe(&self.shared, &self.subject)
    }

    /// Returns the instance of calls that name none; made when it is first needed.
    ///
    /// # Errors
    /// What making it failed with.
    pub fn instance(&self) -> Result<&FakeInstance> {
        self.instance.get_or_init(|| self.create(None)).as_ref().map_err(Clone::clone)
    }

    /// Makes an instance, fresh or from what an earlier one saved.
    ///
    /// # Errors
    /// What the plugin fails with.
    pub fn create(&self, saved: Option<&Value>) -> Result<FakeInstance> {
        let too_large = |error: FrameError| Error::new(ErrorKind::LimitReached, error.to_string());
        let saved = saved.map(jaato_types::Frame::write).transpose().map_err(too_large)?;
        self.create_from_frame(saved)
    }

    /// Makes an instance from a frame that nobody has checked.
    ///
    /// # Errors
    /// What the plugin fails with.
    pub fn create_from_frame(&self, saved: Option<Vec<u8>>) -> Result<FakeInstance> {
        let plugin = self.plugin.as_ref().map_err(Clone::clone)?;
        let description = Arc::clone(self.description.as_ref().map_err(Clone::clone)?);
        FakeInstance::create(&self.shared, plugin, description, saved)
    }

    /// Calls a tool of the host's own instance; as [`FakeInstance::call`].
    ///
    /// # Errors
    /// As [`FakeInstance::call`].
    pub fn call(&self, tool: &str, arguments: Value) -> Result<Output> {
        self.instance()?.call(tool, arguments)
    }

    /// Starts a tool call of the host's own instance; as [`FakeInstance::start`].
    ///
    /// # Errors
    /// As [`FakeInstance::start`].
    pub fn start(&self, tool: &str, arguments: Value) -> Result<Call<Output>> {
        self.instance()?.start(tool, arguments)
    }

    /// Asks the provider of the host's own instance; as [`FakeInstance::complete`].
    pub fn complete(&self, request: &Request) -> Finished<Completion> {
        match self.instance() {
            Ok(instance) => instance.complete(request),
            Err(error) => Finished { result: Err(error), deltas: Vec::new(), output: Vec::new() },
        }
    }

    /// Moves the host's time. Before it, what can happen happens, so that whoever is about to sleep
    /// sleeps; after it, whoever has slept long enough goes on.
    ///
    /// # Errors
    /// `timeout` when the plugin keeps the executor busy.
    pub fn advance(&self, time: Duration) -> Result<()> {
        self.settle()?;
        self.shared.time.advance(u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        self.settle()
    }

    /// Returns how much of the host's time has passed.
    pub fn elapsed(&self) -> Duration {
        Duration::from_millis(self.shared.time.now_ms())
    }

    /// Waits until nothing can happen any more without the test, the clock or a plugin's own
    /// thread.
    ///
    /// # Errors
    /// `timeout` when the plugin keeps the executor busy.
    pub fn settle(&self) -> Result<()> {
        self.shared.time.settle(self.shared.patience())
    }

    /// Returns what the plugin logged, its panics included.
    pub fn log(&self) -> Vec<LogLine> {
        self.shared.log.lines()
    }

    /// Returns what tools have put in front of the model, and what they keep hidden.
    pub fn objects(&self) -> ObjectEnvironment {
        self.shared.services.objects()
    }

    /// Returns what the plugin asked of services, in order.
    pub fn asked(&self) -> Vec<ServiceRequest> {
        self.shared.services.asked()
    }

    /// Returns what the plugin holds of the host at this time.
    pub fn live(&self) -> Live {
        self.shared.executor.live()
    }

    /// Starts a call that runs `body` in place of a plugin's code: for checks of this host.
    #[doc(hidden)]
    pub fn start_body(
        &self,
        body: impl FnOnce(ContextBox) -> Answer + Send + 'static,
    ) -> Call<Vec<u8>> {
        let read = |frame: &[u8]| Ok(frame.to_vec());
        Call::start(&self.shared, read, |context, outlet| {
            context.run_into(body, outlet);
            Ok(())
        })
    }

    /// Takes it that the plugin lists every grant: for checks of this host.
    #[doc(hidden)]
    #[must_use]
    pub fn with_all_grants(self) -> Self {
        self.shared.services.grants(Grants::list_all);
        self
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }
}

impl Drop for FakeHost {
    fn drop(&mut self) {
        drop(self.instance.take());
        self.plugin = Err(Error::new(ErrorKind::Unavailable, "the host has ended"));
        self.shared.time.end(self.shared.patience());
        self.shared.services.end_programs();
    }
}

fn describe(shared: &Shared, subject: &Subject) -> Result<Description> {
    let subject = subject.clone();
    shared.run(move || subject.describe())?
}
