//! A living instance of a plugin, in this process or in a worker: its calls, what it saves, its
//! end.

use std::future::Future;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use jaato_plugin_engine::{Bytes, Facet, Facets, Instance as Local, Outlet, Services};
use jaato_types::{Error, Frame, PluginName};

use crate::call::{Canceller, RunningCall};
use crate::executor::Executor;
use crate::remote::{self, Worker};

/// An instance of a plugin. Share it behind an `Arc`; close it, or drop it without asking it to
/// save.
pub struct Instance(Box<dyn Backend>);

/// What runs an instance: this process or a worker. Its methods are those of [`Instance`].
pub(crate) trait Backend: Send + Sync + 'static {
    fn plugin(&self) -> &PluginName;
    fn facets(&self) -> Facets;
    fn in_flight(&self) -> usize;

    fn call(
        &self,
        facet: Facet,
        name: &str,
        frame: Vec<u8>,
        services: Arc<dyn Services>,
    ) -> Result<RunningCall, Error>;

    fn save(&self) -> BoxFuture<'_, Result<Option<Vec<u8>>, Error>>;
    fn close(&self) -> BoxFuture<'_, Result<Option<Vec<u8>>, Error>>;

    /// Returns the instance in this process, or `None` for one in a worker.
    fn local(&self) -> Option<&Local>;

    fn refusal(&self) -> Option<&Error> {
        None
    }

    fn ended(&self) -> Option<Error> {
        None
    }
}

impl Backend for Local {
    fn plugin(&self) -> &PluginName {
        self.plugin()
    }

    fn facets(&self) -> Facets {
        self.facets()
    }

    fn in_flight(&self) -> usize {
        self.in_flight()
    }

    fn call(
        &self,
        facet: Facet,
        name: &str,
        frame: Vec<u8>,
        services: Arc<dyn Services>,
    ) -> Result<RunningCall, Error> {
        let context = self.context(services);
        let task = self.call(&context, facet, name, frame)?;
        Ok(RunningCall::new(context, task))
    }

    fn save(&self) -> BoxFuture<'_, Result<Option<Vec<u8>>, Error>> {
        Box::pin(self.save())
    }

    fn close(&self) -> BoxFuture<'_, Result<Option<Vec<u8>>, Error>> {
        Box::pin(self.close())
    }

    fn local(&self) -> Option<&Local> {
        Some(self)
    }
}

impl Instance {
    pub(crate) fn local(local: Local) -> Self {
        Self(Box::new(local))
    }

    /// Makes an instance in a worker that was just started. Dropping the future ends the worker.
    ///
    /// # Errors
    /// What the worker or the plugin answers: it cannot be opened, refuses to be made, takes too
    /// long, or is gone. Where it refuses what was saved, a fresh instance is made: see
    /// [`Instance::refusal`].
    pub async fn in_worker(executor: &Executor, start: remote::Start) -> Result<Self, Error> {
        Ok(Self(Box::new(Worker::start(executor, start).await?)))
    }

    /// Returns the plugin's name.
    pub fn plugin(&self) -> &PluginName {
        self.0.plugin()
    }

    /// Tells whether it lives in a worker.
    pub fn is_in_worker(&self) -> bool {
        self.0.local().is_none()
    }

    /// Returns what the plugin in a worker said to what an earlier instance had saved, where it
    /// refused that and begins afresh. Keep the bytes, and say so.
    pub fn refusal(&self) -> Option<&Error> {
        self.0.refusal()
    }

    /// Returns why every call fails from here on: its worker is gone. None while it lives.
    pub fn ended(&self) -> Option<Error> {
        self.0.ended()
    }

    /// Counts the calls in flight, with those that were cancelled and not yet let go of.
    pub fn in_flight(&self) -> usize {
        self.0.in_flight()
    }

    /// Returns what it has.
    pub fn facets(&self) -> Facets {
        self.0.facets()
    }

    /// Begins a call of a tool. The frame's JSON are its arguments, checked against its schema.
    ///
    /// # Errors
    /// `plugin_disabled`, `plugin_crashed`, and `cancelled` when the instance is closed.
    pub fn call_tool(
        &self,
        name: &str,
        frame: Vec<u8>,
        services: Arc<dyn Services>,
    ) -> Result<RunningCall, Error> {
        self.call(Facet::Tool, name, frame, services)
    }

    /// Runs a call of a tool on the calling thread. For benchmarks alone: a plugin that blocks
    /// blocks the caller, and no watchdog sees it. None for an instance in a worker.
    #[doc(hidden)]
    pub fn call_tool_in_place(
        &self,
        name: &str,
        frame: Vec<u8>,
        services: Arc<dyn Services>,
    ) -> Option<Result<impl Future<Output = Result<Vec<u8>, Error>> + use<'_>, Error>> {
        self.0.local().map(|local| {
            let context = local.context(services);
            let answer = local.call_in_place(&context, Facet::Tool, name, frame)?;
            Ok(async move { answer.await.map(Bytes::into_vec) })
        })
    }

    /// Begins a call of the gc: `GcRequest` in, `GcPlan` out.
    ///
    /// # Errors
    /// As [`Instance::call_tool`].
    pub fn plan(&self, frame: Vec<u8>, services: Arc<dyn Services>) -> Result<RunningCall, Error> {
        self.call(Facet::Gc, "", frame, services)
    }

    /// Begins a call of the provider: `Request` in, `Delta`s emitted, `Completion` out.
    ///
    /// # Errors
    /// As [`Instance::call_tool`].
    pub fn complete(
        &self,
        frame: Vec<u8>,
        services: Arc<dyn Services>,
    ) -> Result<RunningCall, Error> {
        self.call(Facet::Complete, "", frame, services)
    }

    /// Asks the provider for its models: `[ModelInfo]` out.
    ///
    /// # Errors
    /// As [`Instance::call_tool`].
    pub fn models(&self, services: Arc<dyn Services>) -> Result<RunningCall, Error> {
        self.call(Facet::Models, "", Frame::empty(), services)
    }

    /// Begins an operation of the execution environment, by name.
    ///
    /// # Errors
    /// As [`Instance::call_tool`].
    pub fn environment(
        &self,
        operation: &str,
        frame: Vec<u8>,
        services: Arc<dyn Services>,
    ) -> Result<RunningCall, Error> {
        self.call(Facet::Environment, operation, frame, services)
    }

    /// Begins an operation by name (`command`).
    ///
    /// # Errors
    /// As [`Instance::call_tool`].
    pub fn operation(
        &self,
        name: &str,
        frame: Vec<u8>,
        services: Arc<dyn Services>,
    ) -> Result<RunningCall, Error> {
        self.call(Facet::Operation, name, frame, services)
    }

    /// Begins a call of a facet; a facet without names takes an empty one.
    ///
    /// # Errors
    /// As [`Instance::call_tool`].
    pub fn call(
        &self,
        facet: Facet,
        name: &str,
        frame: Vec<u8>,
        services: Arc<dyn Services>,
    ) -> Result<RunningCall, Error> {
        self.0.call(facet, name, frame, services)
    }

    /// Begins a call of a facet whose emissions and answer go to an outlet, and returns what
    /// cancels it: for a worker. None for an instance in a worker.
    ///
    /// # Errors
    /// As [`Instance::call_tool`].
    #[doc(hidden)]
    pub fn call_into(
        &self,
        facet: Facet,
        name: &str,
        frame: Vec<u8>,
        services: Arc<dyn Services>,
        outlet: Arc<dyn Outlet>,
    ) -> Option<Result<Canceller, Error>> {
        self.0.local().map(|local| {
            let context = local.context(services);
            local.call_into(&context, facet, name, frame, outlet)?;
            Ok(Canceller::local(context))
        })
    }

    /// Waits until the plugin is disabled, and gives the error of every call that it has in flight;
    /// usually for ever. None for an instance in a worker.
    #[doc(hidden)]
    pub fn disabled(&self) -> Option<impl Future<Output = Error> + Send + use<>> {
        self.0.local().map(Local::disabled)
    }

    /// Asks for what the next instance is to be given; none when there is nothing to keep. Ask
    /// after each call that is not read-only.
    ///
    /// # Errors
    /// What the plugin answers, `plugin_misbehaved` for what is no answer. The host keeps what it
    /// had.
    pub async fn save(&self) -> Result<Option<Vec<u8>>, Error> {
        self.0.save().await
    }

    /// Closes the instance: no new calls, those in flight are cancelled and awaited, it saves, ends
    /// what it has going on, loses its context, and is dropped. Each step takes at most
    /// [`CLOSE_STEP_MAX`](jaato_plugin_engine::CLOSE_STEP_MAX). A worker ends with its instance.
    ///
    /// # Errors
    /// What was wrong with its last `save`; it is closed all the same. `cancelled` when it was
    /// closed before.
    pub async fn close(&self) -> Result<Option<Vec<u8>>, Error> {
        self.0.close().await
    }
}
