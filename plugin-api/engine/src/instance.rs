//! A living instance of a plugin: its calls, what it saves, its end.

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

use crate::bytes::Bytes;
use crate::call::{Begin, CallFuture, Outlet, checked, panicked, read_error, run_into};
use crate::context::{EndOnDrop, HostContext};
use crate::executor::{OnExecutor, PluginTask};
use crate::facet::{Facet, Facets};
use crate::fence::plugin_code;
use crate::services::{CallerKind, Services};
use crate::waiters::Signal;

/// How long a close waits for each of its steps: calls in flight, `save`, `close`, background
/// tasks, the drop.
pub const CLOSE_STEP_MAX: Duration = Duration::from_secs(2);

/// An instance's objects, kept so that the executor alone drops them.
pub(crate) type Living = OnExecutor<Rooms>;

/// What an instance gave out. Dropped in this order: its context is revoked, its facets, itself.
pub(crate) struct Rooms {
    _end: EndOnDrop,
    tools: Option<ToolBox>,
    gc: Option<GcBox>,
    provider: Option<ProviderBox>,
    environment: Option<EnvironmentBox>,
    instance: InstanceBox,
}

impl Rooms {
    /// Asks an instance for its facets.
    pub(crate) fn of(instance: InstanceBox, end: EndOnDrop) -> Self {
        let tools = instance.tools().into_option();
        let (gc, provider) = (instance.gc().into_option(), instance.provider().into_option());
        let environment = instance.environment().into_option();
        Self { _end: end, tools, gc, provider, environment, instance }
    }
}

/// An instance of a plugin. Share it behind an `Arc`; close it, or drop it without asking it to
/// save.
pub struct Instance {
    core: Arc<HostContext>,
    calls: Arc<Calls>,
    facets: Facets,
}

/// The calls of an instance that are in flight, and the instance's objects until it is closed.
struct Calls {
    state: Mutex<CallsState>,
    empty: Signal,
}

struct CallsState {
    living: Option<Arc<Living>>,
    open: Vec<Option<Arc<HostContext>>>,
    count: usize,
}

/// A call's place in the list, given back when it is dropped.
struct Place {
    calls: Arc<Calls>,
    index: usize,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.calls.remove(self.index);
    }
}

impl Calls {
    fn add(self: &Arc<Self>, core: &Arc<HostContext>) -> Option<(Place, Arc<Living>)> {
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
        Some((Place { calls: Arc::clone(self), index }, living))
    }

    fn remove(&self, index: usize) {
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

    /// Takes the instance's objects away, so that no call begins any more, and cancels those in
    /// flight.
    fn close(&self) -> Option<Arc<Living>> {
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

    fn living(&self) -> Option<Arc<Living>> {
        self.state.lock().living.clone()
    }

    async fn wait_until_empty(&self) {
        self.empty.until(|| self.state.lock().count == 0).await;
    }
}

impl Instance {
    pub(crate) fn new(core: Arc<HostContext>, living: Living) -> Self {
        let rooms = living.get();
        let has_provider = rooms.provider.is_some();
        let facets = Facets::default()
            .with(Facet::Tool, rooms.tools.is_some())
            .with(Facet::Gc, rooms.gc.is_some())
            .with(Facet::Complete, has_provider)
            .with(Facet::Models, has_provider)
            .with(Facet::Operation, true)
            .with(Facet::Environment, rooms.environment.is_some());
        let state = CallsState { living: Some(Arc::new(living)), open: Vec::new(), count: 0 };
        let calls = Calls { state: Mutex::new(state), empty: Signal::default() };
        Self { core, calls: Arc::new(calls), facets }
    }

    /// Returns the plugin's name.
    pub fn plugin(&self) -> &PluginName {
        self.core.guest.name()
    }

    /// Returns what it has.
    pub fn facets(&self) -> Facets {
        self.facets
    }

    /// Counts the calls in flight, with those that were cancelled and not yet let go of.
    pub fn in_flight(&self) -> usize {
        self.calls.state.lock().count
    }

    /// Makes a call's context.
    pub fn context(&self, services: Arc<dyn Services>) -> Arc<HostContext> {
        HostContext::new(CallerKind::Call, &self.core.executor, &self.core.guest, services)
    }

    /// Begins a call of a facet in a context that was made for it; a facet without names takes an
    /// empty one.
    ///
    /// # Errors
    /// `plugin_disabled`, and `cancelled` when the instance is closed.
    pub fn call(
        &self,
        context: &Arc<HostContext>,
        facet: Facet,
        name: &str,
        frame: Vec<u8>,
    ) -> Result<PluginTask<Result<Bytes, Error>>, Error> {
        let future = self.prepare(context, facet, name, frame)?;
        Ok(context.executor.spawn(&context.guest, future))
    }

    /// Begins a call as [`Instance::call`], whose emissions and answer go to an outlet.
    ///
    /// # Errors
    /// As [`Instance::call`].
    pub fn call_into(
        &self,
        context: &Arc<HostContext>,
        facet: Facet,
        name: &str,
        frame: Vec<u8>,
        outlet: Arc<dyn Outlet>,
    ) -> Result<(), Error> {
        run_into(self.prepare(context, facet, name, frame)?, outlet);
        Ok(())
    }

    /// Runs a call on the calling thread. For benchmarks alone: a plugin that blocks blocks the
    /// caller, and no watchdog sees it.
    ///
    /// # Errors
    /// As [`Instance::call`].
    #[doc(hidden)]
    pub fn call_in_place(
        &self,
        context: &Arc<HostContext>,
        facet: Facet,
        name: &str,
        frame: Vec<u8>,
    ) -> Result<impl Future<Output = Result<Bytes, Error>> + use<>, Error> {
        self.prepare(context, facet, name, frame)
    }

    /// Waits until the plugin is disabled, and makes the error of its calls; usually for ever.
    pub fn disabled(&self) -> impl Future<Output = Error> + Send + use<> {
        let guest = Arc::clone(&self.core.guest);
        async move {
            guest.disabled().await;
            guest.disabled_error()
        }
    }

    /// Asks for what the next instance is to be given; none when there is nothing to keep.
    ///
    /// # Errors
    /// What the plugin answers, `plugin_misbehaved` for what is no answer, `cancelled` when the
    /// instance is closed.
    pub async fn save(&self) -> Result<Option<Vec<u8>>, Error> {
        let living = self.calls.living().ok_or_else(Error::cancelled)?;
        self.save_of(living).await
    }

    /// Closes the instance: no new calls, those in flight are cancelled and awaited, it saves, ends
    /// what it has going on, loses its context, and is dropped. Each step takes at most
    /// [`CLOSE_STEP_MAX`].
    ///
    /// # Errors
    /// What was wrong with its last `save`; it is closed all the same. `cancelled` when it was
    /// closed before.
    pub async fn close(&self) -> Result<Option<Vec<u8>>, Error> {
        let living = self.end_calls().await?;
        let saved = self.within(self.save_of(Arc::clone(&living))).await;
        self.end(living).await;
        saved.unwrap_or_else(|| {
            let text = format!("the plugin `{}` did not save in time", self.plugin());
            Err(Error::new(ErrorKind::Timeout, text))
        })
    }

    /// Closes the instance as [`Instance::close`], and does not ask it to save.
    ///
    /// # Errors
    /// `cancelled` when it was closed before.
    pub async fn close_unsaved(&self) -> Result<(), Error> {
        let living = self.end_calls().await?;
        self.end(living).await;
        Ok(())
    }

    async fn end_calls(&self) -> Result<Arc<Living>, Error> {
        let living = self.calls.close().ok_or_else(Error::cancelled)?;
        self.within(self.calls.wait_until_empty()).await;
        Ok(living)
    }

    async fn end(&self, living: Arc<Living>) {
        self.within(self.close_of(&living)).await;
        self.core.cancel();
        for (_, task) in self.core.take_tasks() {
            self.within(task.cancel()).await;
        }
        self.core.end();
        // A call that did not end in time holds the instance; it goes with the call.
        if let Ok(living) = Arc::try_unwrap(living) {
            self.within(living.dispose()).await;
        }
    }

    async fn save_of(&self, living: Arc<Living>) -> Result<Option<Vec<u8>>, Error> {
        let guest = Arc::clone(&self.core.guest);
        let task = self.core.executor.spawn(&self.core.guest, async move {
            let future = plugin_code(|| living.get().instance.save());
            let saved = fenced(future).await.map_err(|text| panicked(&guest, &text))?;
            match saved {
                RResult::ROk(ROption::RSome(frame)) => {
                    checked(&guest, frame).map(|frame| Some(frame.into_vec()))
                }
                RResult::ROk(ROption::RNone) => Ok(None),
                RResult::RErr(error) => Err(read_error(&guest, &error)),
            }
        });
        task.await.unwrap_or_else(|| Err(self.core.guest.lost_error()))
    }

    async fn close_of(&self, living: &Arc<Living>) {
        let living = Arc::clone(living);
        let task = self.core.executor.spawn(&self.core.guest, async move {
            // A panic that the plugin's own fence let through: it ends in any case.
            let _ = fenced(plugin_code(|| living.get().instance.close())).await;
        });
        task.await;
    }

    /// Waits for a step of the close, but not too long; a plugin that hangs in it is left to the
    /// watchdog.
    async fn within<T>(&self, step: impl Future<Output = T>) -> Option<T> {
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

    fn prepare(
        &self,
        core: &Arc<HostContext>,
        facet: Facet,
        name: &str,
        frame: Vec<u8>,
    ) -> Result<CallFuture<impl Begin + Send + use<>, (Arc<Living>, Place)>, Error> {
        let guest = &self.core.guest;
        if guest.is_disabled() {
            return Err(guest.disabled_error());
        }
        let (place, living) = self.calls.add(core).ok_or_else(|| {
            let text = format!("the plugin `{}` is closed", self.core.guest.name());
            Error::new(ErrorKind::Cancelled, text)
        })?;
        let begin = begin(Arc::clone(&living), facet, name.to_owned(), frame);
        // The instance before the place in the list: who waits for the list to be empty finds all
        // the rest gone.
        Ok(CallFuture::new(begin, Arc::clone(core), (living, place)))
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // What is in flight is cancelled; the last call to end lets go of the objects, which the
        // executor drops together with the context.
        self.core.cancel();
        drop(self.calls.close());
    }
}

fn begin(
    living: Arc<Living>,
    facet: Facet,
    name: String,
    frame: Vec<u8>,
) -> impl Begin + Send + 'static {
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

/// Polls a plugin's future inside the host's fence; the text is a panic's that the plugin's own let
/// through.
pub(crate) async fn fenced<F: Future>(begun: Result<F, String>) -> Result<F::Output, String> {
    let mut future = pin!(begun?);
    poll_fn(|cx| match plugin_code(|| future.as_mut().poll(cx)) {
        Ok(Poll::Pending) => Poll::Pending,
        Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
        Err(text) => Poll::Ready(Err(text)),
    })
    .await
}
