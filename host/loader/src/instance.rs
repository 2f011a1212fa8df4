//! A living instance of a plugin, in this process or in a worker: its calls, its saved state, its
//! end.

use std::future::Future;
use std::sync::Arc;

use jaato_plugin_engine::{
    CallResultSink, EngineServices, Facet, FacetSet, FrameBytes, PluginInstance as Local,
};
use jaato_types::{Error, Frame, PluginName};

use crate::call::{CallCanceller, RunningCall};
use crate::executor::Executor;
use crate::remote::{self, RemoteInstance};

/// An instance of a plugin, shared in an `Arc`. Close it to let it save its state. Dropping it does
/// not save.
pub struct Instance(InstanceBackend);

/// Where the instance lives.
enum InstanceBackend {
    Local(Local),
    Worker(RemoteInstance),
}

impl Instance {
    pub(crate) fn from_local(local: Local) -> Self {
        Self(InstanceBackend::Local(local))
    }

    /// Returns the instance in this process, or `None` for an instance in a worker.
    fn local_instance(&self) -> Option<&Local> {
        match &self.0 {
            InstanceBackend::Local(local) => Some(local),
            InstanceBackend::Worker(_) => None,
        }
    }

    fn remote_instance(&self) -> Option<&RemoteInstance> {
        match &self.0 {
            InstanceBackend::Local(_) => None,
            InstanceBackend::Worker(worker) => Some(worker),
        }
    }

    /// Creates an instance in a freshly started worker. Dropping the future ends the worker.
    ///
    /// # Errors
    /// The error of the worker or the plugin: for example, the file cannot be opened, the plugin
    /// refuses, or creating takes too long. If the plugin only refuses the saved state, creates a
    /// fresh instance: see [`PluginInstance::refusal`].
    pub async fn start_in_worker(
        executor: &Executor,
        start: remote::WorkerStart,
    ) -> Result<Self, Error> {
        Ok(Self(InstanceBackend::Worker(RemoteInstance::start(executor, start).await?)))
    }

    /// Returns the plugin's name.
    pub fn plugin(&self) -> &PluginName {
        match &self.0 {
            InstanceBackend::Local(local) => local.plugin(),
            InstanceBackend::Worker(worker) => worker.plugin(),
        }
    }

    /// Returns true if the instance lives in a worker.
    pub fn is_in_worker(&self) -> bool {
        self.remote_instance().is_some()
    }

    /// Returns the plugin's error if it refused the saved state and started fresh in a worker. Keep
    /// the saved bytes, and report the error.
    pub fn refusal(&self) -> Option<&Error> {
        self.remote_instance()?.refusal()
    }

    /// Returns why every further call fails if the worker is gone, or `None` while it runs.
    pub fn end_error(&self) -> Option<Error> {
        self.remote_instance()?.end_error()
    }

    /// Returns the number of calls in flight, including cancelled calls that the plugin has not
    /// released.
    pub fn calls_in_flight(&self) -> usize {
        match &self.0 {
            InstanceBackend::Local(local) => local.in_flight(),
            InstanceBackend::Worker(worker) => worker.calls_in_flight(),
        }
    }

    /// Returns the instance's facets.
    pub fn facets(&self) -> FacetSet {
        match &self.0 {
            InstanceBackend::Local(local) => local.facets(),
            InstanceBackend::Worker(worker) => worker.facets(),
        }
    }

    /// Begins a tool call. The frame's JSON holds the arguments, already checked against the tool's
    /// schema.
    ///
    /// # Errors
    /// `plugin_disabled`, `plugin_crashed`, or `cancelled` if the instance is closed.
    pub fn call_tool(
        &self,
        name: &str,
        frame: Vec<u8>,
        services: Arc<dyn EngineServices>,
    ) -> Result<RunningCall, Error> {
        self.begin_call(Facet::Tool, name, frame, services)
    }

    /// Runs a tool call on the calling thread. Only for benchmarks: a plugin that blocks also
    /// blocks the caller, and no watchdog sees it. Returns `None` for an instance in a worker.
    #[doc(hidden)]
    pub fn call_tool_in_place(
        &self,
        name: &str,
        frame: Vec<u8>,
        services: Arc<dyn EngineServices>,
    ) -> Option<Result<impl Future<Output = Result<Vec<u8>, Error>> + use<'_>, Error>> {
        self.local_instance().map(|local| {
            let context = local.new_call_context(services);
            let answer = local.call_in_place(&context, Facet::Tool, name, frame)?;
            Ok(async move { answer.await.map(FrameBytes::into_vec) })
        })
    }

    /// Begins a call of the gc, from a `GcRequest` to a `GcPlan`.
    ///
    /// # Errors
    /// As [`PluginInstance::call_tool`].
    pub fn begin_plan(
        &self,
        frame: Vec<u8>,
        services: Arc<dyn EngineServices>,
    ) -> Result<RunningCall, Error> {
        self.begin_call(Facet::Gc, "", frame, services)
    }

    /// Begins a call of the provider, from a `Request` to a `Completion`. The call emits `Delta`s.
    ///
    /// # Errors
    /// As [`PluginInstance::call_tool`].
    pub fn begin_completion(
        &self,
        frame: Vec<u8>,
        services: Arc<dyn EngineServices>,
    ) -> Result<RunningCall, Error> {
        self.begin_call(Facet::Complete, "", frame, services)
    }

    /// Asks the provider for its models. The answer is a `[ModelInfo]`.
    ///
    /// # Errors
    /// As [`PluginInstance::call_tool`].
    pub fn begin_model_list(
        &self,
        services: Arc<dyn EngineServices>,
    ) -> Result<RunningCall, Error> {
        self.begin_call(Facet::Models, "", Frame::empty(), services)
    }

    /// Begins an operation of the execution environment, by name.
    ///
    /// # Errors
    /// As [`PluginInstance::call_tool`].
    pub fn begin_environment_call(
        &self,
        operation: &str,
        frame: Vec<u8>,
        services: Arc<dyn EngineServices>,
    ) -> Result<RunningCall, Error> {
        self.begin_call(Facet::Environment, operation, frame, services)
    }

    /// Begins an operation by name (`command`).
    ///
    /// # Errors
    /// As [`PluginInstance::call_tool`].
    pub fn begin_operation(
        &self,
        name: &str,
        frame: Vec<u8>,
        services: Arc<dyn EngineServices>,
    ) -> Result<RunningCall, Error> {
        self.begin_call(Facet::Operation, name, frame, services)
    }

    /// Begins a call of a facet. A facet without names takes an empty one.
    ///
    /// # Errors
    /// As [`PluginInstance::call_tool`].
    pub fn begin_call(
        &self,
        facet: Facet,
        name: &str,
        frame: Vec<u8>,
        services: Arc<dyn EngineServices>,
    ) -> Result<RunningCall, Error> {
        let local = match &self.0 {
            InstanceBackend::Local(local) => local,
            InstanceBackend::Worker(worker) => {
                return worker.begin_call(facet, name, frame, services);
            }
        };
        let context = local.new_call_context(services);
        let task = local.call(&context, facet, name, frame)?;
        Ok(RunningCall::new(context, task))
    }

    /// Begins a call of a facet whose emissions and answer go to an outlet, and returns its
    /// canceller. Used inside workers. Returns `None` for an instance in a worker.
    ///
    /// # Errors
    /// As [`PluginInstance::call_tool`].
    #[doc(hidden)]
    pub fn begin_call_into(
        &self,
        facet: Facet,
        name: &str,
        frame: Vec<u8>,
        services: Arc<dyn EngineServices>,
        outlet: Arc<dyn CallResultSink>,
    ) -> Option<Result<CallCanceller, Error>> {
        self.local_instance().map(|local| {
            let context = local.new_call_context(services);
            local.call_into(&context, facet, name, frame, outlet)?;
            Ok(CallCanceller::for_local_call(context))
        })
    }

    /// Waits until the plugin is disabled, usually forever, and returns the error for all its calls
    /// in flight. Returns `None` for an instance in a worker.
    #[doc(hidden)]
    pub fn wait_until_disabled(&self) -> Option<impl Future<Output = Error> + Send + use<>> {
        self.local_instance().map(Local::wait_until_disabled)
    }

    /// Returns the state to pass to the next instance, or `None` if there is nothing to keep. Call
    /// it after each call that is not read-only.
    ///
    /// # Errors
    /// The plugin's error, or `plugin_misbehaved` for an invalid answer. The host keeps its
    /// previous state.
    pub async fn save(&self) -> Result<Option<Vec<u8>>, Error> {
        match &self.0 {
            InstanceBackend::Local(local) => local.save().await,
            InstanceBackend::Worker(worker) => worker.save().await,
        }
    }

    /// Closes the instance. It takes no new calls, cancels and awaits those in flight, saves, stops
    /// its background work, loses its context, and is dropped. Each step takes at most
    /// [`CLOSE_STEP_MAX`](jaato_plugin_engine::CLOSE_STEP_MAX). A worker ends with its instance.
    ///
    /// # Errors
    /// The error of its last `save`. The instance is closed even then. `cancelled` if it was closed
    /// before.
    pub async fn close(&self) -> Result<Option<Vec<u8>>, Error> {
        match &self.0 {
            InstanceBackend::Local(local) => local.close().await,
            InstanceBackend::Worker(worker) => worker.close().await,
        }
    }
}
