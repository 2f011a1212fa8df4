//! The host's side of a context: what a call or an instance may use, and its end.
//!
//! Cancel has two phases. First a flag: what would change something (`emit`, `service`, `next`) is
//! refused, and nothing is woken. Then, when the executor has dropped the plugin's future, the
//! context ends: futures of the host that the plugin still holds are woken, streams are closed.
//! What they resolve to is never success.
//!
//! Invariants: after its end a context holds nothing and refuses everything; it never holds the
//! instance.

mod abi;
mod emissions;
mod lent;
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

use crate::bounds::Tally;
use crate::call::Outlet;
use crate::executor::{Executor, Guest, JobState, PluginTask};
use crate::fence::{host_code, plugin_code};
use crate::live::Token;
use crate::services::{Caller, CallerKind, Services};
use crate::waiters::{Signal, Waiters};
pub use emissions::EMITTED_BYTES_MAX;
use emissions::Emissions;
pub use lent::{Crossed, Crossing, Lent, Refusable};
use streams::Streams;
pub use streams::{PIECE_BYTES_MAX, STREAMS_MAX};

/// Background tasks that one instance may have going on.
pub const TASKS_MAX: usize = 256;

/// Futures of the host that one context may have waiting.
pub const WAITING_MAX: usize = 4096;

const LIVE: u8 = 0;
const CANCELLED: u8 = 1;
const ENDED: u8 = 2;

static LAST_NUMBER: AtomicU64 = AtomicU64::new(0);

/// A context. The plugin has it behind a `ContextBox`; the host ends it.
pub struct HostContext {
    number: u64,
    kind: CallerKind,
    /// The plugin.
    pub guest: Arc<Guest>,
    /// Where the plugin is polled.
    pub executor: Executor,
    phase: AtomicU8,
    held: Mutex<Held>,
    /// Notified when the reader has told everything that the call emitted.
    told: Signal,
    /// Questions to services that have no answer yet.
    questions: Tally,
    _live: Token,
}

/// What a context holds until its end.
struct Held {
    services: Option<Arc<dyn Services>>,
    emissions: Emissions,
    streams: Streams,
    /// Who is to be woken at the end: host futures in the plugin's hands.
    waiters: Waiters,
    /// Background tasks of the instance, by number.
    tasks: BTreeMap<u64, PluginTask<()>>,
    /// Blocking work that was handed over and may run.
    jobs: Vec<Arc<JobState>>,
    /// The host's own task that polls the call.
    call: Option<Waker>,
}

impl HostContext {
    /// Makes one, of a call or of an instance.
    pub fn new(
        kind: CallerKind,
        executor: &Executor,
        guest: &Arc<Guest>,
        services: Arc<dyn Services>,
    ) -> Arc<Self> {
        let held = Held {
            services: Some(services),
            emissions: Emissions::new(kind == CallerKind::Call),
            streams: Streams::default(),
            waiters: Waiters::default(),
            tasks: BTreeMap::new(),
            jobs: Vec::new(),
            call: None,
        };
        Arc::new(Self {
            number: next_number(),
            kind,
            guest: Arc::clone(guest),
            executor: executor.clone(),
            phase: AtomicU8::new(LIVE),
            held: Mutex::new(held),
            told: Signal::default(),
            questions: Tally::default(),
            _live: executor.live_counters().contexts.token(),
        })
    }

    /// Has what the call emits go to an outlet. Before the plugin has the context.
    pub(crate) fn pass_on_to(&self, outlet: Arc<dyn Outlet>) {
        self.held.lock().emissions.pass_on_to(outlet);
    }

    /// Makes the object that the plugin gets.
    pub fn lend(self: &Arc<Self>) -> ContextBox {
        ContextBox::from_value(abi::LentContext::new(Arc::clone(self)), TD_Opaque)
    }

    /// Tells whether it was neither cancelled nor ended.
    pub fn is_live(&self) -> bool {
        self.phase.load(SeqCst) == LIVE
    }

    fn has_ended(&self) -> bool {
        self.phase.load(SeqCst) == ENDED
    }

    /// Returns its number, which no other has within the process.
    pub fn number(&self) -> u64 {
        self.number
    }

    fn caller(&self) -> Caller {
        let plugin: PluginName = self.guest.name().clone();
        Caller { plugin, context: self.number, kind: self.kind }
    }

    /// The first phase of a cancel: from here on everything is refused. Wakes nothing.
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

    /// Keeps the waker of the host's task that polls the call. The caller looks for a cancel
    /// afterwards.
    pub(crate) fn keep_call(&self, waker: &Waker) {
        let mut held = self.held.lock();
        match &mut held.call {
            Some(kept) => kept.clone_from(waker),
            None => held.call = Some(waker.clone()),
        }
    }

    /// The last phase: nothing of the plugin runs for this context any more. Wakes and closes the
    /// rest.
    pub fn end(&self) {
        if self.phase.swap(ENDED, SeqCst) == ENDED {
            return;
        }
        let mut held = self.held.lock();
        let services = held.services.take();
        let (reader, outlet) = held.emissions.close();
        let streams = std::mem::take(&mut held.streams);
        let waiters = held.waiters.take_all();
        let tasks = std::mem::take(&mut held.tasks);
        let mut jobs = std::mem::take(&mut held.jobs);
        held.call = None;
        drop(held);
        jobs.retain(|job| !job.is_over());
        if !jobs.is_empty() {
            self.executor.give_up(&self.guest, jobs);
        }
        drop(outlet);
        // Dropping a task closes it, so that the wakes below do not poll it.
        drop(tasks);
        // The plugin's waker may be of its own runtime: its code runs here, on the executor.
        let woken = plugin_code(|| waiters.for_each(Waker::wake));
        let dropped = host_code(move || {
            drop(streams);
            drop(services);
        });
        if let Some(reader) = reader {
            reader.wake();
        }
        self.told.notify();
        if let Err(text) = woken {
            self.trouble(&format!("a waker of the plugin panicked: {text}"));
        }
        if let Err(error) = dropped {
            self.trouble(&error.message);
        }
    }

    /// Takes the background tasks out, so that their end can be awaited.
    pub(crate) fn take_tasks(&self) -> BTreeMap<u64, PluginTask<()>> {
        std::mem::take(&mut self.held.lock().tasks)
    }

    /// Waits for the next frame that the call emits, in order; none when it has ended and all is
    /// read, or its plugin is disabled.
    pub async fn next_emission(&self) -> Option<Vec<u8>> {
        let mut disabled = self.guest.disabled();
        poll_fn(|cx| match self.poll_emission(cx) {
            Poll::Pending => Pin::new(&mut disabled).poll(cx).map(|()| None),
            emission => emission,
        })
        .await
    }

    fn poll_emission(&self, cx: &mut TaskContext<'_>) -> Poll<Option<Vec<u8>>> {
        let (next, is_told) = {
            let emissions = &mut self.held.lock().emissions;
            (emissions.poll_next(cx), emissions.is_told())
        };
        if is_told {
            self.told.notify();
        }
        next
    }

    /// Tells whether everything that the call emitted so far was told.
    pub(crate) fn is_all_told(&self) -> bool {
        self.held.lock().emissions.is_told()
    }

    /// Waits until everything that the call emitted so far was told, so that events of a service
    /// come behind it.
    pub(crate) async fn all_told(&self) {
        self.told.until(|| self.is_all_told()).await;
    }

    /// Takes what was wrong with the emissions, which the call's answer must tell.
    pub fn take_fault(&self) -> Option<Error> {
        self.held.lock().emissions.take_fault()
    }

    fn services(&self) -> Option<Arc<dyn Services>> {
        self.held.lock().services.clone()
    }

    fn trouble(&self, text: &str) {
        let plugin = self.guest.name();
        self.executor.watch().trouble(&format!("{text} (plugin `{plugin}`)"));
    }
}

fn next_number() -> u64 {
    LAST_NUMBER.fetch_add(1, Relaxed) + 1
}

/// Ends a context when it is dropped.
pub(crate) struct EndOnDrop(pub(crate) Arc<HostContext>);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
        self.0.end();
    }
}
