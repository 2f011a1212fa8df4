//! The fake host: runs a plugin that is linked into its test, with services that the test answers.

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use jaato_objects::ObjectEnvironment;
use jaato_plugin_api::abi::abi_stable::sabi_trait::TD_Opaque;
use jaato_plugin_api::abi::{Answer, ContextBox, LogBox};
use jaato_plugin_engine::{EnginePlugin, Executor, GuestPlugin, LiveObjectCounts};
use jaato_types::ask::{Form, FormAnswer};
use jaato_types::child::{ChildOpen, ChildTurn};
use jaato_types::history::HistoryMessage;
use jaato_types::model::ModelComplete;
use jaato_types::service::{AssetAnswer, SessionFacts};
use jaato_types::tools_set::ToolsSet;
use jaato_types::{
    Completion, CompletionRequest, Description, Error, ErrorKind, FrameError, Manifest, Message,
    Output, Result,
};
use parking_lot::Mutex;
use serde_json::Value;

use super::call::{FakeRunningCall, FinishedCall};
use super::clock::{FakeClockMode, FakeTime, hung_plugin_error};
use super::grants::FakeGrants;
use super::instance::FakeInstance;
use super::log::{FakeLog, LogLine, ProcessLog};
use super::plugin_under_test::PluginUnderTest;
use super::services::{FakeServiceReply, FakeServices, ServiceRequest};

/// How long a plugin may delay a test, in real time. Only a plugin that hangs reaches this limit.
const PATIENCE: Duration = Duration::from_secs(20);

/// A host in memory.
///
/// It gives the guarantees of the loader: it polls and drops everything of the plugin on one
/// separate thread, checks arguments before the plugin sees them, cancels in two phases, and
/// refuses everything in a context after the end of its call or instance. Configure it with the
/// `with_…` methods, then make calls.
pub struct FakeHost {
    /// The default instance for calls. Dropped before the other fields.
    instance: OnceLock<Result<FakeInstance>>,
    plugin: Result<EnginePlugin>,
    shared: Arc<FakeHostShared>,
    subject: PluginUnderTest,
    description: Result<Arc<Description>>,
}

/// The state that everything in one fake host shares.
pub(crate) struct FakeHostShared {
    pub(crate) executor: Executor,
    /// The executor's record of the plugin.
    pub(crate) guest: Arc<GuestPlugin>,
    pub(crate) time: FakeTime,
    pub(crate) services: FakeServices,
    pub(crate) log: Arc<FakeLog>,
    patience: Mutex<Duration>,
}

impl FakeHostShared {
    pub(crate) fn patience(&self) -> Duration {
        *self.patience.lock()
    }

    /// Waits on the test's thread, during which the host's time may skip.
    pub(crate) fn wait_for<F: Future>(&self, future: F) -> Result<F::Output> {
        self.time.wait_for(self.patience(), future)
    }

    /// Runs work on the executor's thread and waits for it.
    fn run_on_executor<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T> {
        let done = self.wait_for(self.executor.spawn(&self.guest, async move { work() }))?;
        done.ok_or_else(|| hung_plugin_error(self.patience()))
    }
}

impl FakeHost {
    /// Creates a host for a plugin: `FakeHost::new(my_plugin::__jaato::MODULE)`.
    ///
    /// A plugin that cannot be described or has no factory fails at the first use.
    pub fn new(subject: impl Into<PluginUnderTest>) -> Self {
        let subject = subject.into();
        let log = Arc::new(FakeLog::default());
        let time = FakeTime::new(Arc::clone(&log));
        let executor = Executor::new(1, Arc::new(time.clone()), Arc::clone(&log) as _);
        let name = subject.manifest().map_or_else(|_| "unnamed".into(), |manifest| manifest.name);
        let guest = executor.add_guest(name);
        let services = FakeServices::default();
        services.set_time(time.clone());
        let patience = Mutex::new(PATIENCE);
        let shared = Arc::new(FakeHostShared { executor, guest, time, services, log, patience });
        let description = describe_subject(&shared, &subject).map(Arc::new);
        if let (Ok(manifest), Ok(description)) = (subject.manifest(), &description) {
            let grants = FakeGrants::from_description(manifest.name, description);
            shared.services.change_grants(|of_host| *of_host = grants);
        }
        let maker = subject.clone();
        let factory = move || maker.factory(LogBox::from_value(ProcessLog, TD_Opaque));
        let plugin = shared.run_on_executor(factory).and_then(|factory| {
            Ok(EnginePlugin::from_factory(&shared.executor, factory?, subject.manifest()?))
        });
        Self { instance: OnceLock::new(), plugin, shared, subject, description }
    }

    /// Sets the facts of the session. Without them, the service `session` is `unavailable`.
    #[must_use]
    pub fn with_session(self, facts: SessionFacts) -> Self {
        self.shared.services.set_session(Some(facts));
        self
    }

    /// Sets the plugin's configuration, `[plugins.NAME]`. Without it, the configuration is empty.
    #[must_use]
    pub fn with_config(self, config: Value) -> Self {
        self.shared.services.set_config(config);
        self
    }

    /// Provides an asset that the plugin declares. Uses the declared digest and does not check the
    /// file.
    #[must_use]
    pub fn with_asset(self, id: &str, path: &Path) -> Self {
        let description = self.description.as_ref().ok();
        let asset = description.and_then(|all| all.assets.iter().find(|asset| asset.id == id));
        let sha256 = asset.map(|asset| asset.sha256.clone()).unwrap_or_default();
        let path = path.to_string_lossy().into_owned();
        self.shared.services.add_asset(id.to_owned(), AssetAnswer::new(path, sha256));
        self
    }

    /// Answers a service, instead of a built-in service with that name.
    #[must_use]
    pub fn with_service(
        self,
        operation: &str,
        answer: impl Fn(&ServiceRequest) -> Result<FakeServiceReply> + Send + Sync + 'static,
    ) -> Self {
        self.shared.services.add_script(operation.to_owned(), Arc::new(answer));
        self
    }

    /// Adds another tool of the session, for `tools.call` and `tasks.start`. A task ends before the
    /// call that starts it continues.
    #[must_use]
    pub fn with_tool(
        self,
        name: &str,
        tool: impl Fn(Value) -> Result<Output> + Send + Sync + 'static,
    ) -> Self {
        self.shared.services.with_session_parts(|lent| lent.add_tool(name, Arc::new(tool)));
        self
    }

    /// Sets the model that answers `model.complete`: returns the answer's text for a request.
    #[must_use]
    pub fn with_model(
        self,
        model: impl Fn(&ModelComplete) -> Result<String> + Send + Sync + 'static,
    ) -> Self {
        self.shared.services.with_session_parts(|lent| lent.set_model(Arc::new(model)));
        self
    }

    /// Sets the user who answers forms. Without it, no user can answer.
    #[must_use]
    pub fn with_person(self, person: impl Fn(&Form) -> FormAnswer + Send + Sync + 'static) -> Self {
        self.shared.services.with_session_parts(|lent| lent.set_user(Arc::new(person)));
        self
    }

    /// Allows child sessions. `child` returns how a turn ends, given the child's settings and
    /// message.
    #[must_use]
    pub fn with_child(
        self,
        child: impl Fn(&ChildOpen, &str) -> ChildTurn + Send + Sync + 'static,
    ) -> Self {
        self.shared.services.with_session_parts(|lent| lent.set_child_handler(Arc::new(child)));
        self
    }

    /// Sets the conversation that `session.history` reads.
    #[must_use]
    pub fn with_history(self, messages: Vec<Message>) -> Self {
        self.with_collected_history(messages, 0)
    }

    /// Sets the conversation that `session.history` reads. A gc has left out this many of its first
    /// messages.
    #[must_use]
    pub fn with_collected_history(self, messages: Vec<Message>, collected: usize) -> Self {
        let mut turn = 0;
        let record = (0..).zip(messages).map(|(number, message)| {
            turn += u64::from(message.is_prompt());
            let mut entry = HistoryMessage::new(number, message);
            entry.turn = turn;
            entry.is_collected = number < collected as u64;
            entry
        });
        let record = record.collect();
        self.shared.services.with_session_parts(|lent| lent.set_history(record));
        self
    }

    /// Lists the notifications that the plugin sent.
    pub fn notifications(&self) -> Vec<String> {
        self.shared.services.with_session_parts(|lent| lent.notifications())
    }

    /// Returns the last tools that the plugin set with `tools.set`. They are called like declared
    /// tools.
    pub fn tools_set(&self) -> Option<ToolsSet> {
        self.shared.services.with_session_parts(|lent| lent.tools_set())
    }

    /// Denies the plugin a grant that it lists (`ask`), like a user who has not given it. Otherwise
    /// the plugin has all grants that it lists in [`Description::services`]. Grants that it does
    /// not list are always refused.
    #[must_use]
    pub fn with_denied(self, grant: &str) -> Self {
        self.deny(grant);
        self
    }

    /// Revokes a grant while calls are running.
    pub fn deny(&self, grant: &str) {
        self.shared.services.change_grants(|grants| grants.deny_grant(grant));
    }

    /// Restores a grant that was denied.
    pub fn grant(&self, grant: &str) {
        self.shared.services.change_grants(|grants| grants.restore_grant(grant));
    }

    /// Sets how the host's time passes.
    #[must_use]
    pub fn with_clock(self, clock: FakeClockMode) -> Self {
        self.shared.time.set_clock(clock);
        self
    }

    /// Sets how long, in real time, a plugin may delay the test before it counts as hung.
    #[must_use]
    pub fn with_patience(self, patience: Duration) -> Self {
        *self.shared.patience.lock() = patience;
        self
    }

    /// Reads the embedded manifest.
    ///
    /// # Errors
    /// `plugin_misbehaved` if it is malformed.
    pub fn manifest(&self) -> Result<Manifest> {
        self.subject.manifest()
    }

    /// Returns the plugin's description.
    ///
    /// # Errors
    /// The error of describing the plugin.
    pub fn description(&self) -> Result<&Description> {
        self.description.as_deref().map_err(Clone::clone)
    }

    /// Describes the plugin again.
    ///
    /// # Errors
    /// The error of describing the plugin.
    pub fn describe(&self) -> Result<Description> {
        describe_subject(&self.shared, &self.subject)
    }

    /// Returns the default instance for calls. Creates it when it is first needed.
    ///
    /// # Errors
    /// The error of creating it.
    pub fn instance(&self) -> Result<&FakeInstance> {
        self.instance.get_or_init(|| self.create(None)).as_ref().map_err(Clone::clone)
    }

    /// Creates an instance, either fresh or from saved state.
    ///
    /// # Errors
    /// The plugin's error.
    pub fn create(&self, saved: Option<&Value>) -> Result<FakeInstance> {
        let too_large = |error: FrameError| Error::new(ErrorKind::LimitReached, error.to_string());
        let saved = saved.map(jaato_types::Frame::write).transpose().map_err(too_large)?;
        self.create_from_frame(saved)
    }

    /// Creates an instance from an unchecked frame.
    ///
    /// # Errors
    /// The plugin's error.
    pub fn create_from_frame(&self, saved: Option<Vec<u8>>) -> Result<FakeInstance> {
        let plugin = self.plugin.as_ref().map_err(Clone::clone)?;
        let description = Arc::clone(self.description.as_ref().map_err(Clone::clone)?);
        FakeInstance::create(&self.shared, plugin, description, saved)
    }

    /// Calls a tool of the host's own instance, like [`FakeInstance::call`].
    ///
    /// # Errors
    /// As [`FakeInstance::call`].
    pub fn call(&self, tool: &str, arguments: Value) -> Result<Output> {
        self.instance()?.call(tool, arguments)
    }

    /// Starts a tool call of the host's own instance, like [`FakeInstance::start`].
    ///
    /// # Errors
    /// As [`FakeInstance::start`].
    pub fn start(&self, tool: &str, arguments: Value) -> Result<FakeRunningCall<Output>> {
        self.instance()?.start(tool, arguments)
    }

    /// Requests a completion from the host's own instance, like [`FakeInstance::complete`].
    pub fn complete(&self, request: &CompletionRequest) -> FinishedCall<Completion> {
        match self.instance() {
            Ok(instance) => instance.complete(request),
            Err(error) => {
                FinishedCall { result: Err(error), deltas: Vec::new(), output: Vec::new() }
            }
        }
    }

    /// Moves the host's time. Waits for all activity before it, so that tasks that are about to
    /// sleep do so, and after it, so that tasks whose sleep has ended continue.
    ///
    /// # Errors
    /// `timeout` if the plugin keeps the executor busy.
    pub fn advance(&self, time: Duration) -> Result<()> {
        self.settle()?;
        self.shared.time.advance(u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        self.settle()
    }

    /// Returns how much of the host's time has passed.
    pub fn elapsed(&self) -> Duration {
        Duration::from_millis(self.shared.time.now_ms())
    }

    /// Waits until nothing can happen without the test, the clock or a plugin's own thread.
    ///
    /// # Errors
    /// `timeout` if the plugin keeps the executor busy.
    pub fn settle(&self) -> Result<()> {
        self.shared.time.settle(self.shared.patience())
    }

    /// Returns the plugin's log lines, including its panics.
    pub fn log(&self) -> Vec<LogLine> {
        self.shared.log.lines()
    }

    /// Returns the objects that tools show to the model, and those that they hide.
    pub fn objects(&self) -> ObjectEnvironment {
        self.shared.services.objects()
    }

    /// Returns the plugin's requests to services, in order.
    pub fn service_requests(&self) -> Vec<ServiceRequest> {
        self.shared.services.service_requests()
    }

    /// Returns the counts of host objects that the plugin holds at this time.
    pub fn live(&self) -> LiveObjectCounts {
        self.shared.executor.live()
    }

    /// Starts a call that runs `body` instead of a plugin's code. For checks of this host.
    #[doc(hidden)]
    pub fn start_body(
        &self,
        body: impl FnOnce(ContextBox) -> Answer + Send + 'static,
    ) -> FakeRunningCall<Vec<u8>> {
        let read = |frame: &[u8]| Ok(frame.to_vec());
        FakeRunningCall::start(&self.shared, read, |context, outlet| {
            context.run_body_into(body, outlet);
            Ok(())
        })
    }

    /// Acts as if the plugin listed every grant. For checks of this host.
    #[doc(hidden)]
    #[must_use]
    pub fn with_all_grants(self) -> Self {
        self.shared.services.change_grants(FakeGrants::list_all_grants);
        self
    }

    pub(crate) fn shared_state(&self) -> &Arc<FakeHostShared> {
        &self.shared
    }
}

impl Drop for FakeHost {
    fn drop(&mut self) {
        drop(self.instance.take());
        self.plugin = Err(Error::new(ErrorKind::Unavailable, "the host has ended"));
        self.shared.time.end_clock(self.shared.patience());
        self.shared.services.end_programs();
    }
}

fn describe_subject(shared: &FakeHostShared, subject: &PluginUnderTest) -> Result<Description> {
    let subject = subject.clone();
    shared.run_on_executor(move || subject.describe())?
}
