//! A context as the fake host lends it: two lives, two phases of cancel, an empty shell after its
//! end.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::SeqCst};
use std::task::Waker;
use std::time::Duration;

use jaato_plugin_api::abi::abi_stable::sabi_trait::TD_Opaque;
use jaato_plugin_api::abi::abi_stable::std_types::{RStr, RVec};
use jaato_plugin_api::abi::async_ffi::{FfiFuture, FutureExt};
use jaato_plugin_api::abi::{Answer, ContextAbi, ContextBox, JobBox, Maybe};
use jaato_types::service::OutputWrite;
use jaato_types::{Delta, Error, ErrorKind, Frame};
use parking_lot::{Condvar, Mutex, MutexGuard};

use super::executor::Executor;
use super::held::WaitToken;
use super::live::{Counters, Token};
use super::log::LogBook;
use super::services::Services;
use super::stream::FakeStream;
use super::waiting;

/// What everything in one fake host shares.
pub(crate) struct Shared {
    pub(crate) executor: Executor,
    pub(crate) services: Services,
    pub(crate) log: Arc<LogBook>,
    pub(crate) counters: Counters,
    pub(crate) patience: Mutex<Duration>,
    ids: AtomicU64,
}

impl Shared {
    pub(crate) fn new(executor: Executor, log: Arc<LogBook>, patience: Duration) -> Self {
        let services = Services::default();
        services.set_time(executor.time());
        Self {
            executor,
            services,
            log,
            counters: Counters::default(),
            patience: Mutex::new(patience),
            ids: AtomicU64::new(1),
        }
    }

    pub(crate) fn patience(&self) -> Duration {
        *self.patience.lock()
    }

    pub(crate) fn next_id(&self) -> u64 {
        self.ids.fetch_add(1, SeqCst)
    }
}

/// Whose context it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    Call,
    Instance,
}

/// How far a context is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Phase {
    Open = 0,
    /// The flag is set: nothing is taken or answered any more, and nothing is woken.
    Cancelling = 1,
    Ended = 2,
}

/// The host's side of a context.
pub(crate) struct Context {
    pub(crate) host: Arc<Shared>,
    pub(crate) id: u64,
    owner: Owner,
    phase: AtomicU8,
    waiting: Mutex<Waiting>,
    emitted: Mutex<Vec<Vec<u8>>>,
    /// The first thing that was emitted and is no frame: the call's answer tells.
    fault: Mutex<Option<Error>>,
    /// A test waits for the next frame.
    wanted: Mutex<Option<WaitToken>>,
    /// A frame was emitted, or the context has ended.
    pub(crate) changed: Condvar,
    streams: Mutex<BTreeMap<u64, OpenStream>>,
    tasks: Mutex<Vec<u64>>,
}

/// A stream that a plugin has open.
struct OpenStream {
    stream: FakeStream,
    _token: Token,
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.stream.close();
    }
}

#[derive(Default)]
struct Waiting {
    number: u64,
    wakers: BTreeMap<u64, Waker>,
}

impl Context {
    pub(crate) fn new(host: &Arc<Shared>, owner: Owner) -> Arc<Self> {
        Arc::new(Self {
            host: Arc::clone(host),
            id: host.next_id(),
            owner,
            phase: AtomicU8::new(Phase::Open as u8),
            waiting: Mutex::default(),
            emitted: Mutex::default(),
            fault: Mutex::default(),
            wanted: Mutex::default(),
            changed: Condvar::new(),
            streams: Mutex::default(),
            tasks: Mutex::default(),
        })
    }

    /// Makes the object that the plugin is given.
    pub(crate) fn lend(self: &Arc<Self>) -> ContextBox {
        let token = self.host.counters.contexts.token();
        ContextBox::from_value(Lent { context: Arc::clone(self), _token: token }, TD_Opaque)
    }

    pub(crate) fn phase(&self) -> Phase {
        match self.phase.load(SeqCst) {
            0 => Phase::Open,
            1 => Phase::Cancelling,
            _ => Phase::Ended,
        }
    }

    /// First phase of a cancel.
    pub(crate) fn begin_cancel(&self) {
        self.phase.fetch_max(Phase::Cancelling as u8, SeqCst);
    }

    /// Ends the context: everything is refused, what waits is woken to a refusal, streams are
    /// closed.
    pub(crate) fn end(&self) {
        // Under the lock of `emitted`, so that no frame slips in behind the end.
        let emitted = self.emitted.lock();
        self.phase.store(Phase::Ended as u8, SeqCst);
        drop(emitted);
        for task in std::mem::take(&mut *self.tasks.lock()) {
            self.host.executor.cancel(task);
        }
        drop(std::mem::take(&mut *self.streams.lock()));
        self.host.services.forget(self.id);
        let wakers = std::mem::take(&mut self.waiting.lock().wakers);
        wakers.into_values().for_each(Waker::wake);
        self.satisfy();
    }

    /// Lets time skip until a frame is emitted or the context ends. Called with the lock of
    /// `emitted` held.
    pub(crate) fn want(&self, token: WaitToken) {
        *self.wanted.lock() = Some(token);
    }

    fn satisfy(&self) {
        drop(self.wanted.lock().take());
        self.changed.notify_all();
    }

    /// The frames that were emitted so far.
    pub(crate) fn emitted(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.emitted.lock()
    }

    /// Keeps a waker for the context's end; `slot` is where it was kept before.
    pub(crate) fn keep_waker(&self, slot: &mut Option<u64>, waker: &Waker) {
        let mut waiting = self.waiting.lock();
        waiting.number += 1;
        let number = *slot.get_or_insert(waiting.number);
        let earlier = waiting.wakers.insert(number, waker.clone());
        drop(waiting);
        drop(earlier);
    }

    pub(crate) fn forget_waker(&self, slot: u64) {
        let waker = self.waiting.lock().wakers.remove(&slot);
        drop(waker);
    }

    pub(crate) fn add_stream(&self, stream: FakeStream) -> u64 {
        let handle = self.host.next_id();
        let open = OpenStream { stream, _token: self.host.counters.streams.token() };
        self.streams.lock().insert(handle, open);
        handle
    }

    pub(crate) fn stream(&self, handle: u64) -> Option<FakeStream> {
        self.streams.lock().get(&handle).map(|open| open.stream.clone())
    }

    fn close_stream(&self, handle: u64) {
        let stream = self.streams.lock().remove(&handle);
        drop(stream);
        // A `next` that waits on another thread sees the end.
        let wakers: Vec<Waker> = self.waiting.lock().wakers.values().cloned().collect();
        wakers.into_iter().for_each(Waker::wake);
    }

    /// What was wrong with what was emitted.
    pub(crate) fn take_fault(&self) -> Option<Error> {
        self.fault.lock().take()
    }

    /// Shows what a call streams, where it asks for that.
    pub(crate) fn show_output(&self, frame: &[u8]) {
        let Ok(parsed) = Frame::parse(frame) else { return };
        if parsed.json::<OutputWrite>().is_ok_and(|write| write.live) {
            let text = String::from_utf8_lossy(parsed.bytes).into_owned();
            // No delta of text is too large for a frame.
            self.emit(Frame::write(&Delta::output(text)).unwrap_or_default());
        }
    }

    fn emit(&self, frame: Vec<u8>) -> bool {
        let mut emitted = self.emitted.lock();
        let mut fault = self.fault.lock();
        if self.owner != Owner::Call || self.phase() != Phase::Open || fault.is_some() {
            return false;
        }
        if let Err(error) = Frame::parse(&frame) {
            let text = format!("the plugin emitted what is no frame: {error}");
            *fault = Some(Error::new(ErrorKind::PluginMisbehaved, text));
            return false;
        }
        emitted.push(frame);
        self.satisfy();
        true
    }
}

/// The plugin's side of a context.
struct Lent {
    context: Arc<Context>,
    _token: Token,
}

impl ContextAbi for Lent {
    fn id(&self) -> u64 {
        self.context.id
    }

    fn is_cancelled(&self) -> bool {
        self.context.phase() != Phase::Open
    }

    fn cancelled(&self) -> FfiFuture<()> {
        waiting::cancelled(&self.context).into_ffi()
    }

    fn log(&self, level: u8, text: RStr<'_>) {
        if self.context.phase() != Phase::Ended {
            self.context.host.log.write(level, text.as_str());
        }
    }

    fn emit(&self, frame: RVec<u8>) -> bool {
        self.context.emit(frame.into())
    }

    fn sleep_ms(&self, milliseconds: u64) -> FfiFuture<bool> {
        waiting::sleep(&self.context, milliseconds).into_ffi()
    }

    fn spawn_blocking(&self, job: JobBox) -> FfiFuture<bool> {
        waiting::blocking(&self.context, job).into_ffi()
    }

    fn spawn(&self, task: FfiFuture<()>) -> bool {
        let context = &self.context;
        let mut tasks = context.tasks.lock();
        let is_taken = context.owner == Owner::Instance && context.phase() == Phase::Open;
        if is_taken {
            tasks.push(context.host.executor.spawn(Box::pin(task)));
        }
        is_taken
    }

    fn service(&self, operation: RStr<'_>, frame: RVec<u8>) -> Answer {
        waiting::service(&self.context, operation.as_str(), &frame).into_ffi()
    }

    fn next(&self, handle: u64) -> Maybe {
        waiting::next(&self.context, handle).into_ffi()
    }

    fn close(&self, handle: u64) {
        self.context.close_stream(handle);
    }
}
