//! A living instance of a plugin: its calls, its saved state, and its end.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use jaato_plugin_api::abi::abi_stable::std_types::{ROption, RResult, RStr, RVec};
use jaato_plugin_api::abi::{
    Answer, ContextBox, EnvironmentBox, GcBox, InstanceBox, ProviderBox, ToolBox,
};
use jaato_types::{Error, ErrorKind, PluginName};
use parking_lot::Mutex;

use crate::bytes::FrameBytes;
use crate::call::{
    CallFuture, CallResultSink, CallStarter, check_frame, panic_error, read_error, run_call_into,
};
use crate::context::{ContextEndGuard, HostContext};
use crate::executor::{ExecutorOwned, PluginTask};
use crate::facet::{Facet, FacetSet};
use crate::fence::run_plugin_code;
use crate::services::{CallerKind, EngineServices};
use crate::waiters::WakeSignal;

/// The longest wait for each step of a close: calls in flight, `save`, `close`, background tasks,
/// and the drop.
pub const CLOSE_STEP_MAX: Duration = Duration::from_secs(2);

/// An instance's objects, wrapped so that only the executor drops them.
pub(crate) type OwnedInstanceObjects = ExecutorOwned<InstanceObjects>;

/// The objects of an instance. The drop order is: revoke the context, then the facets, then the
/// instance.
pub(crate) struct InstanceObjects {
    _end: ContextEndGuard,
    tools: Option<ToolBox>,
    gc: Option<GcBox>,
    provider: Option<ProviderBox>,
    environment: Option<EnvironmentBox>,
    instance: InstanceBox,
}

impl InstanceObjects {
    /// Gets the facets of an instance.
    pub(crate) fn from_instance(instance: InstanceBox, end: ContextEndGuard) -> Self {
        let tools = instance.tools().into_option();
        let (gc, provider) = (instance.gc().into_option(), instance.provider().into_option());
        let environment = instance.environment().into_option();
        Self { _end: end, tools, gc, provider, environment, instance }
    }
}

/// An instance of a plugin. Share it in an `Arc`. Close it, or drop it if it does not have to save.
pub struct PluginInstance {
    core: Arc<HostContext>,
    calls: Arc<InstanceCalls>,
    facets: FacetSet,
}

/// The calls in flight, and the instance's objects until it is closed.
struct InstanceCalls {
    state: Mutex<InstanceCallsState>,
    empty: WakeSignal,
}

struct InstanceCallsState {
    living: Option<Arc<OwnedInstanceObjects>>,
    open: Vec<Option<Arc<HostContext>>>,
    count: usize,
}

/// A call's place in the list. Dropping it frees the place.
struct CallSlot {
    calls: Arc<InstanceCalls>,
    index: usize,
}

impl Drop for CallSlot {
    fn drop(&mut self) {
        self.calls.remove_call(self.index);
    }
}

impl InstanceCalls {
    fn add_call(
        self: &Arc<Self>,
        core: &Arc<HostContext>,
    ) -> Option<(CallSlot, Arc<OwnedInstanceObjects>)> {
        let mut state = self.state.lock();
        let living = Arc::clone(state.living.as_ref()?);
        state.count += 1;
        let index = match state.open.iter().position(Option::is_none) {
            Some(index) => index,
            None => {
                state.open.push(None);
                state.open.len() - 1
            }
        };
        state.open[index] = Some(Arc::clone(core));
        Some((CallSlot { calls: Arc::clone(self), index }, living))
    }

    fn remove_call(&self, index: usize) {
        let mut state = self.state.lock();
        let core = state.open[index].take();
        state.count -= 1;
        let empty = state.count == 0;
        drop(state);
        drop(core);
        if empty {
            self.empty.notify();
        }
    }

    /// Takes the instance's objects, so that no further call can start, and cancels the calls in
    /// flight.
    fn close(&self) -> Option<Arc<OwnedInstanceObjects>> {
        let mut state = self.state.lock();
        let living = state.living.take();
        let open: Vec<_> = state.open.iter().flatten().cloned().collect();
        drop(state);
        for core in &open {
            core.cancel();
        }
        for core in &open {
            core.wake_call();
        }
        living
    }

    fn living_objects(&self) -> Option<Arc<OwnedInstanceObjects>> {
        self.state.lock().living.clone()
    }

    async fn wait_until_empty(&self) {
        self.empty.wait_until(|| self.state.lock().count == 0).await;
    }
}

impl PluginInstance {
    pub(crate) fn new(core: Arc<HostContext>, living: OwnedInstanceObjects) -> Self {
        let rooms = living.get();
        let has_provider = rooms.provider.is_some();
        let facets = FacetSet::default()
            .with_facet(Facet::Tool, rooms.tools.is_some())
            .with_facet(Facet::Gc, rooms.gc.is_some())
            .with_facet(Facet::Complete, has_provider)
            .with_facet(Facet::Models, has_provider)
            .with_facet(Facet::Operation, true)
            .with_facet(Facet::Environment, rooms.environment.is_some());
        let state =
            InstanceCallsState { living: Some(Arc::new(living)), open: Vec::new(), count: 0 };
        let calls = InstanceCalls { state: Mutex::new(state), empty: WakeSignal::default() };
        Self { core, calls: Arc::new(calls), facets }
    }

    /// Returns the plugin's name.
    pub fn plugin(&self) -> &PluginName {
        self.core.guest.name()
    }

    /// Returns the instance's facets.
    pub fn facets(&self) -> FacetSet {
        self.facets
    }

    /// Returns the number of calls in flight, including cancelled calls that have not ended yet.
    pub fn in_flight(&self) -> usize {
        self.calls.state.lock().count
    }

    /// Creates the context of a call.
    pub fn new_call_context(&self, services: Arc<dyn EngineServices>) -> Arc<HostContext> {
        HostContext::new(CallerKind::Call, &self.core.executor, &self.core.guest, services)
    }

    /// Starts a call of a facet in a context that was created for it. A facet without names takes
    /// an empty name.
    ///
    /// # Errors
    /// `plugin_disabled`, or `cancelled` if the instance is closed.
    pub fn call(
        &self,
        context: &Arc<HostContext>,
        facet: Facet,
        name: &str,
        frame: Vec<u8>,
    ) -> Result<PluginTask<Result<FrameBytes, Error>>, Error> {
        let future = self.prepare_call(context, facet, name, frame)?;
        Ok(context.executor.spawn(&context.guest, future))
    }

    /// Starts a call like [`PluginInstance::call`], and sends its emissions and answer to an
    /// outlet.
    ///
    /// # Errors
    /// As [`PluginInstance::call`].
    pub fn call_into(
        &self,
        context: &Arc<HostContext>,
        facet: Facet,
        name: &str,
        frame: Vec<u8>,
        outlet: Arc<dyn CallResultSink>,
    ) -> Result<(), Error> {
        run_call_into(self.prepare_call(context, facet, name, frame)?, outlet);
        Ok(())
    }

    /// Runs a call on the calling thread. Only for benchmarks: a plugin that blocks blocks the
    /// caller, and no watchdog notices it.
    ///
    /// # Errors
    /// As [`PluginInstance::call`].
    #[doc(hidden)]
    pub fn call_in_place(
        &self,
        context: &Arc<HostContext>,
        facet: Facet,
        name: &str,
        frame: Vec<u8>,
    ) -> Result<impl Future<Output = Result<FrameBytes, Error>> + use<>, Error> {
        self.prepare_call(context, facet, name, frame)
    }

    /// Waits until the plugin is disabled, which usually never happens. Returns the error of its
    /// calls.
    pub fn wait_until_disabled(&self) -> impl Future<Output = Error> + Send + use<> {
        let guest = Arc::clone(&self.core.guest);
        async move {
            guest.wait_until_disabled().await;
            guest.disabled_error()
        }
    }

    /// Returns the state to pass to the next instance, or `None` if there is nothing to save.
    ///
    /// # Errors
    /// The plugin's error, `plugin_misbehaved` for an invalid answer, or `cancelled` if the
    /// instance is closed.
    pub async fn save(&self) -> Result<Option<Vec<u8>>, Error> {
        let living = self.calls.living_objects().ok_or_else(Error::cancelled)?;
        self.save_instance(living).await
    }

    /// Closes the instance. No new calls start, and the calls in flight are cancelled and awaited.
    /// Then the instance saves, ends its background tasks, loses its context, and is dropped. Each
    /// step takes at most [`CLOSE_STEP_MAX`].
    ///
    /// # Errors
    /// The error of its last `save`, after which it is closed all the same, or `cancelled` if it
    /// was already closed.
    pub async fn close(&self) -> Result<Option<Vec<u8>>, Error> {
        let living = self.end_calls().await?;
        let saved = self.run_within_limit(self.save_instance(Arc::clone(&living))).await;
        self.end_instance(living).await;
        saved.unwrap_or_else(|| {
            let text = format!("the plugin `{}` did not save in time", self.plugin());
            Err(Error::new(ErrorKind::Timeout, text))
        })
    }

    /// Closes the instance like [`PluginInstance::close`], but without saving.
    ///
    /// # Errors
    /// `cancelled` if it was already closed.
    pub async fn close_unsaved(&self) -> Result<(), Error> {
        let living = self.end_calls().await?;
        self.end_instance(living).await;
        Ok(())
    }

    async fn end_calls(&self) -> Result<Arc<OwnedInstanceObjects>, Error> {
        let living = self.calls.close().ok_or_else(Error::cancelled)?;
        self.run_within_limit(self.calls.wait_until_empty()).await;
        Ok(living)
    }

    async fn end_instance(&self, living: Arc<OwnedInstanceObjects>) {
        self.run_within_limit(self.close_instance(&living)).await;
        self.core.cancel();
        for (_, task) in self.core.take_tasks() {
            self.run_within_limit(task.cancel()).await;
        }
        self.core.end();
        // A call that did not end in time still holds the instance, and drops it at its end.
        if let Ok(living) = Arc::try_unwrap(living) {
            self.run_within_limit(living.dispose()).await;
        }
    }

    async fn save_instance(
        &self,
        living: Arc<OwnedInstanceObjects>,
    ) -> Result<Option<Vec<u8>>, Error> {
        let guest = Arc::clone(&self.core.guest);
        let task = self.core.executor.spawn(&self.core.guest, async move {
            let future = run_plugin_code(|| living.get().instance.save());
            let saved = poll_fenced(future).await.map_err(|text| panic_error(&guest, &text))?;
            match saved {
                RResult::ROk(ROption::RSome(frame)) => {
                    check_frame(&guest, frame).map(|frame| Some(frame.into_vec()))
                }
                RResult::ROk(ROption::RNone) => Ok(None),
                RResult::RErr(error) => Err(read_error(&guest, &error)),
            }
        });
        task.await.unwrap_or_else(|| Err(self.core.guest.lost_error()))
    }

    async fn close_instance(&self, living: &Arc<OwnedInstanceObjects>) {
        let living = Arc::clone(living);
        let task = self.core.executor.spawn(&self.core.guest, async move {
            // A panic that passed the plugin's own fence does not prevent the close.
            let _ = poll_fenced(run_plugin_code(|| living.get().instance.close())).await;
        });
        task.await;
    }

    /// Waits for a step of the close, up to the limit. The watchdog handles a plugin that hangs.
    async fn run_within_limit<T>(&self, step: impl Future<Output = T>) -> Option<T> {
        let runtime = self.core.executor.runtime();
        if runtime.is_patient() {
            return Some(step.await);
        }
        let mut step = pin!(step);
        let mut limit = runtime.sleep(CLOSE_STEP_MAX);
        poll_fn(|cx| match step.as_mut().poll(cx) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending => limit.as_mut().poll(cx).map(|()| None),
        })
        .await
    }

    fn prepare_call(
        &self,
        core: &Arc<HostContext>,
        facet: Facet,
        name: &str,
        frame: Vec<u8>,
    ) -> Result<
        CallFuture<impl CallStarter + Send + use<>, (Arc<OwnedInstanceObjects>, CallSlot)>,
        Error,
    > {
        let guest = &self.core.guest;
        if guest.is_disabled() {
            return Err(guest.disabled_error());
        }
        let (place, living) = self.calls.add_call(core).ok_or_else(|| {
            let text = format!("the plugin `{}` is closed", self.core.guest.name());
            Error::new(ErrorKind::Cancelled, text)
        })?;
        let begin = call_starter(Arc::clone(&living), facet, name.to_owned(), frame);
        // The instance must be dropped before the place: when the list is empty, everything else
        // must be gone.
        Ok(CallFuture::new(begin, Arc::clone(core), (living, place)))
    }
}

impl Drop for PluginInstance {
    fn drop(&mut self) {
        // Calls in flight are cancelled. The last call to end releases the objects, and the
        // executor drops them together with the context.
        self.core.cancel();
        drop(self.calls.close());
    }
}

fn call_starter(
    living: Arc<OwnedInstanceObjects>,
    facet: Facet,
    name: String,
    frame: Vec<u8>,
) -> impl CallStarter + Send + 'static {
    move |context: ContextBox| -> Option<Answer> {
        let (rooms, name, frame) = (living.get(), RStr::from_str(&name), RVec::from(frame));
        Some(match facet {
            Facet::Tool => rooms.tools.as_ref()?.call(name, context, frame),
            Facet::Gc => rooms.gc.as_ref()?.plan(context, frame),
            Facet::Complete => rooms.provider.as_ref()?.complete(context, frame),
            Facet::Models => rooms.provider.as_ref()?.models(context, frame),
            Facet::Environment => rooms.environment.as_ref()?.call(name, context, frame),
            Facet::Operation => rooms.instance.operation(name, context, frame),
        })
    }
}

/// Polls a plugin's future inside the host's fence. The error is the message of a panic that passed
/// the plugin's own fence.
pub(crate) async fn poll_fenced<F: Future>(begun: Result<F, String>) -> Result<F::Output, String> {
    let mut future = pin!(begun?);
    poll_fn(|cx| match run_plugin_code(|| future.as_mut().poll(cx)) {
        Ok(Poll::Pending) => Poll::Pending,
        Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
        Err(text) => Poll::Ready(Err(text)),
    })
    .await
}
