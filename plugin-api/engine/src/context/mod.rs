//! The host's side of a context: the services that a call or an instance may use, and its end.
//!
//! A cancel has two phases. First, a flag makes the context refuse every effect (`emit`, `service`,
//! `next`), without waking anything. After the executor has dropped the plugin's future, the
//! context ends: it wakes the host futures that the plugin still holds, and closes the streams.
//! Those futures never return success.
//!
//! Invariants: after its end, a context holds nothing and refuses everything. It never holds the
//! instance.

mod abi;
mod emissions;
mod lent_futures;
mod streams;

use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::task::{Context as TaskContext, Poll, Waker};

use jaato_plugin_api::abi::ContextBox;
use jaato_plugin_api::abi::abi_stable::sabi_trait::TD_Opaque;
use jaato_types::{Error, PluginName};
use parking_lot::Mutex;

use crate::bounds::ResourceCounter;
use crate::call::CallResultSink;
use crate::executor::{Executor, GuestPlugin, JobState, PluginTask};
use crate::fence::{run_host_code, run_plugin_code};
use crate::live::LiveToken;
use crate::services::{CallerKind, EngineServices, ServiceCaller};
use crate::waiters::{Waiters, WakeSignal};
pub use emissions::EMITTED_BYTES_MAX;
use emissions::Emissions;
pub use lent_futures::{HostFuture, HostFutureOutput, ServiceReply, ServiceReplyResult};
use streams::OpenStreams;
pub use streams::{PIECE_BYTES_MAX, STREAMS_MAX};

/// The maximum number of background tasks of one instance.
pub const TASKS_MAX: usize = 256;

/// The maximum number of waiting host futures of one context.
pub const WAITING_MAX: usize = 4096;

const LIVE: u8 = 0;
const CANCELLED: u8 = 1;
const ENDED: u8 = 2;

static LAST_NUMBER: AtomicU64 = AtomicU64::new(0);

/// A context. The plugin accesses it through a `ContextBox`, and the host ends it.
pub struct HostContext {
    number: u64,
    kind: CallerKind,
    /// The plugin.
    pub guest: Arc<GuestPlugin>,
    /// The executor that polls the plugin.
    pub executor: Executor,
    phase: AtomicU8,
    held: Mutex<ContextResources>,
    /// Notified when the reader has processed everything that the call emitted.
    told: WakeSignal,
    /// Service requests without an answer.
    questions: ResourceCounter,
    _live: LiveToken,
}

/// The resources of a context, until its end.
struct ContextResources {
    services: Option<Arc<dyn EngineServices>>,
    emissions: Emissions,
    streams: OpenStreams,
    /// The wakers to wake at the end, of host futures that the plugin holds.
    waiters: Waiters,
    /// The instance's background tasks, by number.
    tasks: BTreeMap<u64, PluginTask<()>>,
    /// Blocking work that was submitted and may run.
    jobs: Vec<Arc<JobState>>,
    /// The waker of the host's task that polls the call.
    call: Option<Waker>,
}

impl HostContext {
    /// Creates the context of a call or an instance.
    pub fn new(
        kind: CallerKind,
        executor: &Executor,
        guest: &Arc<GuestPlugin>,
        services: Arc<dyn EngineServices>,
    ) -> Arc<Self> {
        let held = ContextResources {
            services: Some(services),
            emissions: Emissions::new(kind == CallerKind::Call),
            streams: OpenStreams::default(),
            waiters: Waiters::default(),
            tasks: BTreeMap::new(),
            jobs: Vec::new(),
            call: None,
        };
        Arc::new(Self {
            number: next_context_number(),
            kind,
            guest: Arc::clone(guest),
            executor: executor.clone(),
            phase: AtomicU8::new(LIVE),
            held: Mutex::new(held),
            told: WakeSignal::default(),
            questions: ResourceCounter::default(),
            _live: executor.live_counters().contexts.new_token(),
        })
    }

    /// Sends the call's emissions to an outlet. Must be called before the plugin gets the context.
    pub(crate) fn set_outlet(&self, outlet: Arc<dyn CallResultSink>) {
        self.held.lock().emissions.set_outlet(outlet);
    }

    /// Returns the object for the plugin.
    pub fn lend_context_box(self: &Arc<Self>) -> ContextBox {
        ContextBox::from_value(abi::LentContext::new(Arc::clone(self)), TD_Opaque)
    }

    /// Returns true if the context was neither cancelled nor ended.
    pub fn is_live(&self) -> bool {
        self.phase.load(SeqCst) == LIVE
    }

    fn has_ended(&self) -> bool {
        self.phase.load(SeqCst) == ENDED
    }

    /// Returns the context's number, which is unique within the process.
    pub fn number(&self) -> u64 {
        self.number
    }

    fn service_caller(&self) -> ServiceCaller {
        let plugin: PluginName = self.guest.name().clone();
        ServiceCaller { plugin, context: self.number, kind: self.kind }
    }

    /// Starts the first phase of a cancel: everything is refused, and nothing is woken.
    pub fn cancel(&self) {
        let _ = self.phase.compare_exchange(LIVE, CANCELLED, SeqCst, SeqCst);
    }

    /// Wakes the host's task that polls the call, which then drops the plugin's future.
    pub fn wake_call(&self) {
        let call = self.held.lock().call.take();
        if let Some(call) = call {
            call.wake();
        }
    }

    /// Keeps the waker of the host's task that polls the call. The caller must check for a cancel
    /// afterwards.
    pub(crate) fn keep_call_waker(&self, waker: &Waker) {
        let mut held = self.held.lock();
        match &mut held.call {
            Some(kept) => kept.clone_from(waker),
            None => held.call = Some(waker.clone()),
        }
    }

    /// Starts the last phase, when the plugin's code no longer runs for this context. Wakes the
    /// waiting futures and closes the streams.
    pub fn end(&self) {
        if self.phase.swap(ENDED, SeqCst) == ENDED {
            return;
        }
        let mut held = self.held.lock();
        let services = held.services.take();
        let (reader, outlet) = held.emissions.close();
        let streams = std::mem::take(&mut held.streams);
        let waiters = held.waiters.take_wakers();
        let tasks = std::mem::take(&mut held.tasks);
        let mut jobs = std::mem::take(&mut held.jobs);
        held.call = None;
        drop(held);
        jobs.retain(|job| !job.is_finished());
        if !jobs.is_empty() {
            self.executor.give_up(&self.guest, jobs);
        }
        drop(outlet);
        // Dropping a task closes it, so that the following wakes do not poll it.
        drop(tasks);
        // A waker may belong to the plugin's own runtime, whose code runs here on the executor.
        let woken = run_plugin_code(|| waiters.for_each(Waker::wake));
        let dropped = run_host_code(move || {
            drop(streams);
            drop(services);
        });
        if let Some(reader) = reader {
            reader.wake();
        }
        self.told.notify();
        if let Err(text) = woken {
            self.report_trouble(&format!("a waker of the plugin panicked: {text}"));
        }
        if let Err(error) = dropped {
            self.report_trouble(&error.message);
        }
    }

    /// Removes and returns the background tasks, so that their end can be awaited.
    pub(crate) fn take_tasks(&self) -> BTreeMap<u64, PluginTask<()>> {
        std::mem::take(&mut self.held.lock().tasks)
    }

    /// Waits for the next frame that the call emits, in order. Returns `None` after the last frame,
    /// or if the plugin is disabled.
    pub async fn next_emission(&self) -> Option<Vec<u8>> {
        let mut disabled = self.guest.wait_until_disabled();
        poll_fn(|cx| match self.poll_emission(cx) {
            Poll::Pending => Pin::new(&mut disabled).poll(cx).map(|()| None),
            emission => emission,
        })
        .await
    }

    fn poll_emission(&self, cx: &mut TaskContext<'_>) -> Poll<Option<Vec<u8>>> {
        let (next, is_told) = {
            let emissions = &mut self.held.lock().emissions;
            (emissions.poll_next(cx), emissions.is_processed())
        };
        if is_told {
            self.told.notify();
        }
        next
    }

    /// Returns true if everything that the call emitted so far was processed.
    pub(crate) fn has_processed_emissions(&self) -> bool {
        self.held.lock().emissions.is_processed()
    }

    /// Waits until everything that the call emitted so far was processed, so that the events of a
    /// service come after it.
    pub(crate) async fn wait_for_emissions(&self) {
        self.told.wait_until(|| self.has_processed_emissions()).await;
    }

    /// Takes the fault of the emissions, which the call's answer must report.
    pub fn take_fault(&self) -> Option<Error> {
        self.held.lock().emissions.take_fault()
    }

    fn services(&self) -> Option<Arc<dyn EngineServices>> {
        self.held.lock().services.clone()
    }

    fn report_trouble(&self, text: &str) {
        let plugin = self.guest.name();
        self.executor.observer().log_trouble(&format!("{text} (plugin `{plugin}`)"));
    }
}

fn next_context_number() -> u64 {
    LAST_NUMBER.fetch_add(1, Relaxed) + 1
}

/// Ends a context when it is dropped.
pub(crate) struct ContextEndGuard(pub(crate) Arc<HostContext>);

impl Drop for ContextEndGuard {
    fn drop(&mut self) {
        self.0.cancel();
        self.0.end();
    }
}
