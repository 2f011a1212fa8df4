//! A living instance of a plugin, in this process or in a worker: its calls, what it saves, its
//! end.

use std::future::Future;
use std::sync::Arc;

use jaato_plugin_engine::{Bytes, Facet, Facets, Instance as Local, Outlet, Services};
use jaato_types::{Error, Frame, PluginName};

use crate::call::{Canceller, RunningCall};
use crate::executor::Executor;
use crate::remote::{self, Worker};

/// An instance of a plugin. Share it behind an `Arc`; close it, or drop it without asking it to
/// save.
pub struct Instance(Backend);

/// Where it lives.
enum Backend {
    Local(Local),
    Worker(Worker),
}

impl Instance {
    pub(crate) fn local(local: Local) -> Self {
        Self(Backend::Local(local))
    }

    /// Returns the instance in this process, or `None` for one in a worker.
    fn here(&self) -> Option<&Local> {
        match &self.0 {
            Backend::Local(local) => Some(local),
            Backend::Worker(_) => None,
        }
    }

    fn worker(&self) -> Option<&Worker> {
        match &self.0 {
            Backend::Local(_) => None,
            Backend::Worker(worker) => Some(worker),
        }
    }

    /// Makes an instance in a worker that was just started. Dropping the future ends the worker.
    ///
    /// # Errors
    /// What the worker or the plugin answers: it cannot be opened, refuses to be made, takes too
    /// long, or is gone. Where it refuses what was saved, a fresh instance is made: see
    /// [`Instance::refusal`].
    pub async fn in_worker(executor: &Executor, start: remote::Start) -> Result<Self, Error> {
        Ok(Self(Backend::Worker(Worker::start(executor, start).await?)))
    }

    /// Returns the plugin's name.
    pub fn plugin(&self) -> &PluginName {
        match &self.0 {
            Backend::Local(local) => local.plugin(),
            Backend::Worker(worker) => worker.plugin(),
        }
    }

    /// Tells whether it lives in a worker.
    pub fn is_in_worker(&self) -> bool {
        self.worker().is_some()
    }

    /// Returns what the plugin in a worker said to what an earlier instance had saved, where it
    /// refused that and begins afresh. Keep the bytes, and say so.
    pub fn refusal(&self) -> Option<&Error> {
        self.worker()?.refusal()
    }

    /// Returns why every call fails from here on: its worker is gone. None while it lives.
    pub fn ended(&self) -> Option<Error> {
        self.worker()?.ended()
    }

    /// Counts the calls in flight, with those that were cancelled and not yet let go of.
    pub fn in_flight(&self) -> usize {
        match &self.0 {
            Backend::Local(local) => local.in_flight(),
            Backend::Worker(worker) => worker.in_flight(),
        }
    }

    /// Returns what it has.
    pub fn facets(&self) -> Facets {
        match &self.0 {
            Backend::Local(local) => local.facets(),
            Backend::Worker(worker) => worker.facets(),
        }
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
        self.here().map(|local| {
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
        let local = match &self.0 {
            Backend::Local(local) => local,
            Backend::Worker(worker) => return worker.call(facet, name, frame, services),
        };
        let context = local.context(services);
        let task = local.call(&context, facet, name, frame)?;
        Ok(RunningCall::new(context, task))
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
        self.here().map(|local| {
            let context = local.context(services);
            local.call_into(&context, facet, name, frame, outlet)?;
            Ok(Canceller::local(context))
        })
    }

    /// Waits until the plugin is disabled, and gives the error of every call that it has in flight;
    /// usually for ever. None for an instance in a worker.
    #[doc(hidden)]
    pub fn disabled(&self) -> Option<impl Future<Output = Error> + Send + use<>> {
        self.here().map(Local::disabled)
    }

    /// Asks for what the next instance is to be given; none when there is nothing to keep. Ask
    /// after each call that is not read-only.
    ///
    /// # Errors
    /// What the plugin answers, `plugin_misbehaved` for what is no answer. The host keeps what it
    /// had.
    pub async fn save(&self) -> Result<Option<Vec<u8>>, Error> {
        match &self.0 {
            Backend::Local(local) => local.save().await,
            Backend::Worker(worker) => worker.save().await,
        }
    }

    /// Closes the instance: no new calls, those in flight are cancelled and awaited, it saves, ends
    /// what it has going on, loses its context, and is dropped. Each step takes at most
    /// [`CLOSE_STEP_MAX`](jaato_plugin_engine::CLOSE_STEP_MAX). A worker ends with its instance.
    ///
    /// # Errors
    /// What was wrong with its last `save`; it is closed all the same. `cancelled` when it was
    /// closed before.
    pub async fn close(&self) -> Result<Option<Vec<u8>>, Error> {
        match &self.0 {
            Backend::Local(local) => local.close().await,
            Backend::Worker(worker) => worker.close().await,
        }
    }
}
