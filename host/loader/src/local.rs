//! An instance that lives in this process: its calls, what it saves, its end.

use std::future::Future;
use std::sync::Arc;
use std::task::Poll;

use abi_stable::std_types::{ROption, RResult, RStr, RVec};
use futures_util::future::BoxFuture;
use jaato_plugin_api::abi::{
    Answer, ContextBox, EnvironmentBox, GcBox, InstanceBox, ProviderBox, ToolBox,
};
use jaato_types::{Error, ErrorKind, PluginName};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::bytes::Bytes;
use crate::call::{
    Begin, CallFuture, Canceller, Outlet, RunningCall, checked, panicked, pass_on, read_error,
};
use crate::context::{Core, EndOnDrop};
use crate::executor::OnExecutor;
use crate::facet::{Facet, Facets};
use crate::fence::plugin_code;
use crate::instance::{Backend, CLOSE_STEP_MAX};
use crate::services::{CallerKind, Services};

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

/// An instance in this process.
pub(crate) struct Local {
    core: Arc<Core>,
    calls: Arc<Calls>,
    facets: Facets,
}

/// The calls of an instance that are in flight, and the instance's objects until it is closed.
struct Calls {
    state: Mutex<CallsState>,
    empty: Notify,
}

struct CallsState {
    living: Option<Arc<Living>>,
    open: Vec<Option<Arc<Core>>>,
    count: usize,
}

/// A call's place in the list, given back when it is dropped.
pub(crate) struct Place {
    calls: Arc<Calls>,
    index: usize,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.calls.remove(self.index);
    }
}

impl Calls {
    fn add(self: &Arc<Self>, core: &Arc<Core>) -> Option<(Place, Arc<Living>)> {
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
            self.empty.notify_waiters();
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
        let mut notified = std::pin::pin!(self.empty.notified());
        // Registered before the look, so that a call that ends in between is not missed.
        notified.as_mut().enable();
        if self.state.lock().count > 0 {
            notified.await;
        }
    }
}

impl Local {
    pub(crate) fn new(core: Arc<Core>, living: Living) -> Self {
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
        let calls = Calls { state: Mutex::new(state), empty: Notify::new() };
        Self { core, calls: Arc::new(calls), facets }
    }

    /// Begins a call of a facet whose emissions and answer go to an outlet.
    pub(crate) fn call_into(
        &self,
        facet: Facet,
        name: &str,
        frame: Vec<u8>,
        services: Arc<dyn Services>,
        outlet: Arc<dyn Outlet>,
    ) -> Result<Canceller, Error> {
        let core = self.context(services);
        core.pass_on_to(Arc::clone(&outlet));
        let future = self.prepare(&core, begin(facet, name.to_owned(), frame))?;
        let guest = Arc::clone(&core.guest);
        core.executor.spawn(&core.guest, pass_on(future, guest, outlet)).detach();
        Ok(Canceller::local(core))
    }

    /// Waits until the plugin is disabled, and makes the error of its calls; usually for ever.
    pub(crate) fn disabled(&self) -> impl Future<Output = Error> + Send + use<> {
        let guest = Arc::clone(&self.core.guest);
        async move {
            guest.disabled().await;
            guest.disabled_error()
        }
    }

    /// Runs a call of a tool on the calling thread. For benchmarks alone: a plugin that blocks
    /// blocks the caller, and no watchdog sees it.
    pub(crate) fn call_tool_in_place(
        &self,
        name: &str,
        frame: Vec<u8>,
        services: Arc<dyn Services>,
    ) -> Result<impl Future<Output = Result<Vec<u8>, Error>> + use<'_>, Error> {
        let core = self.context(services);
        let future = self.prepare(&core, begin(Facet::Tool, name.to_owned(), frame))?;
        Ok(async move { future.await.map(Bytes::into_vec) })
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
        let timeout = {
            let _entered = self.core.executor.runtime().enter();
            tokio::time::timeout(CLOSE_STEP_MAX, step)
        };
        timeout.await.ok()
    }

    /// Makes a call's context.
    fn context(&self, services: Arc<dyn Services>) -> Arc<Core> {
        Core::new(CallerKind::Call, &self.core.executor, &self.core.guest, services)
    }

    fn prepare<B: Begin>(&self, core: &Arc<Core>, begin: B) -> Result<CallFuture<B>, Error> {
        let guest = &self.core.guest;
        if guest.is_disabled() {
            return Err(guest.disabled_error());
        }
        let (place, living) = self.calls.add(core).ok_or_else(|| {
            let text = format!("the plugin `{}` is closed", self.core.guest.name());
            Error::new(ErrorKind::Cancelled, text)
        })?;
        Ok(CallFuture::new(begin, Arc::clone(core), living, place))
    }
}

impl Backend for Local {
    fn plugin(&self) -> &PluginName {
        self.core.guest.name()
    }

    fn facets(&self) -> Facets {
        self.facets
    }

    fn in_flight(&self) -> usize {
        self.calls.state.lock().count
    }

    fn call(
        &self,
        facet: Facet,
        name: &str,
        frame: Vec<u8>,
        services: Arc<dyn Services>,
    ) -> Result<RunningCall, Error> {
        let core = self.context(services);
        let future = self.prepare(&core, begin(facet, name.to_owned(), frame))?;
        let task = core.executor.spawn(&core.guest, future);
        Ok(RunningCall::new(core, task))
    }

    fn save(&self) -> BoxFuture<'_, Result<Option<Vec<u8>>, Error>> {
        Box::pin(async {
            let living = self.calls.living().ok_or_else(Error::cancelled)?;
            self.save_of(living).await
        })
    }

    fn close(&self) -> BoxFuture<'_, Result<Option<Vec<u8>>, Error>> {
        Box::pin(async {
            let living = self.calls.close().ok_or_else(Error::cancelled)?;
            self.within(self.calls.wait_until_empty()).await;
            let saved = self.within(self.save_of(Arc::clone(&living))).await;
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
            saved.unwrap_or_else(|| {
                let text = format!("the plugin `{}` did not save in time", self.plugin());
                Err(Error::new(ErrorKind::Timeout, text))
            })
        })
    }

    fn local(&self) -> Option<&Local> {
        Some(self)
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        // What is in flight is cancelled; the last call to end lets go of the objects, which the
        // executor drops together with the context.
        self.core.cancel();
        drop(self.calls.close());
    }
}

fn begin(facet: Facet, name: String, frame: Vec<u8>) -> impl Begin + Send + 'static {
    move |living: &Living, context: ContextBox| -> Option<Answer> {
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
async fn fenced<F: Future + Unpin>(begun: Result<F, String>) -> Result<F::Output, String> {
    let mut future = begun?;
    std::future::poll_fn(|cx| match plugin_code(|| std::pin::Pin::new(&mut future).poll(cx)) {
        Ok(Poll::Pending) => Poll::Pending,
        Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
        Err(text) => Poll::Ready(Err(text)),
    })
    .await
}
