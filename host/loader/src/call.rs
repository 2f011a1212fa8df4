//! One call of a plugin: the future that runs it, and what its session holds.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use abi_stable::std_types::{RResult, RVec};
use async_ffi::FfiFuture;
use jaato_plugin_api::abi::{Answer, ContextBox};
use jaato_types::{Error, Frame};

use crate::bounds::check_json;
use crate::bytes::Bytes;
use crate::context::{Core, EndOnDrop};
use crate::executor::{Guest, HostCode, PluginTask};
use crate::fence::{host_code, plugin_code};
use crate::local::{Living, Place};
use crate::remote::{RemoteCall, RemoteCanceller};

/// A call that runs, on the plugin executor or in a worker. Dropping it cancels the call.
///
/// Read [`RunningCall::next_emission`] to its end first, then take [`RunningCall::answer`]:
/// everything that the call emitted is there before the answer is.
#[must_use = "dropping it cancels the call"]
pub struct RunningCall {
    // Before the task: the flag is set first, so that what the plugin does meanwhile is refused.
    core: CancelOnDrop,
    work: Work,
}

enum Work {
    Local(PluginTask<Result<Bytes, Error>>),
    Remote(RemoteCall),
}

struct CancelOnDrop(Arc<Core>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

impl RunningCall {
    pub(crate) fn new(core: Arc<Core>, task: PluginTask<Result<Bytes, Error>>) -> Self {
        Self { core: CancelOnDrop(core), work: Work::Local(task) }
    }

    pub(crate) fn remote(core: Arc<Core>, call: RemoteCall) -> Self {
        Self { core: CancelOnDrop(core), work: Work::Remote(call) }
    }

    /// Waits for the next frame that the call emits; none when the call has ended and all is read.
    pub async fn next_emission(&mut self) -> Option<Vec<u8>> {
        let core = &self.core.0;
        let next = async {
            tokio::select! {
                biased;
                emission = std::future::poll_fn(|cx| core.poll_emission(cx)) => emission,
                () = core.guest.disabled() => None,
            }
        };
        match &self.work {
            Work::Local(_) => next.await,
            Work::Remote(call) => call.look_after(next).await,
        }
    }

    /// Cancels the call and keeps it, so that the rest of its emissions can be read; its answer is
    /// `cancelled`.
    pub fn cancel(&self) {
        self.core.0.cancel();
        match &self.work {
            Work::Local(_) => self.core.0.wake_call(),
            Work::Remote(call) => call.cancel(),
        }
    }

    /// Returns what cancels the call while somebody else waits for it.
    pub fn canceller(&self) -> Canceller {
        let remote = match &self.work {
            Work::Local(_) => None,
            Work::Remote(call) => Some(call.canceller()),
        };
        Canceller { core: Arc::clone(&self.core.0), remote }
    }

    /// Waits for the answer: a checked frame.
    ///
    /// # Errors
    /// What the plugin answers; `plugin_misbehaved` for what is no answer, `plugin_disabled`,
    /// `cancelled`.
    pub async fn answer(self) -> Result<Vec<u8>, Error> {
        self.answer_bytes().await.map(Bytes::into_vec)
    }

    /// Waits for the answer, in the memory in which it came.
    ///
    /// # Errors
    /// As [`RunningCall::answer`].
    pub async fn answer_bytes(mut self) -> Result<Bytes, Error> {
        let guest = Arc::clone(&self.core.0.guest);
        let task = match &mut self.work {
            Work::Local(task) => task,
            Work::Remote(call) => return call.answer().await.map(Bytes::from),
        };
        tokio::select! {
            biased;
            answer = task => answer.unwrap_or_else(|| Err(guest.lost_error())),
            () = guest.disabled() => Err(guest.disabled_error()),
        }
    }
}

/// Takes what a call gives from the thread that makes it, which wakes nobody who would only pass it
/// on.
///
/// Called on the plugin executor: it must not block. All that the call emits comes before its
/// answer.
pub trait Outlet: Send + Sync + 'static {
    /// Takes a frame that the call emits, in the order of emission; false where there is no room
    /// for it, which the call's answer then tells. Called with the context locked: it must not come
    /// back to the call.
    fn emitted(&self, frame: &[u8]) -> bool;

    /// Takes the answer, once: what [`RunningCall::answer_bytes`] gives. That of a plugin which is
    /// disabled in the middle of a poll does not come before the poll ends: see
    /// [`Instance::disabled`](crate::Instance::disabled).
    fn answered(&self, answer: Result<Bytes, Error>);
}

/// Gives an outlet its answer, also where the call's future is dropped before there is one.
struct Answering {
    outlet: Option<Arc<dyn Outlet>>,
    guest: Arc<Guest>,
}

impl Answering {
    fn answer(&mut self, answer: Result<Bytes, Error>) {
        let _host = HostCode::enter();
        let Some(outlet) = self.outlet.take() else { return };
        // The executor's own fence tells of it, without saying whose fault it is; whoever waits
        // would wait for ever.
        if host_code(|| outlet.answered(answer)).is_err() {
            drop(host_code(|| outlet.answered(Err(self.guest.lost_error()))));
        }
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.answer(Err(self.guest.lost_error()));
    }
}

/// Runs a call whose answer goes to an outlet.
pub(crate) fn pass_on(
    call: CallFuture<impl Begin>,
    guest: Arc<Guest>,
    outlet: Arc<dyn Outlet>,
) -> impl Future<Output = ()> {
    let mut answering = Answering { outlet: Some(outlet), guest };
    // The call has let go of everything when its answer leaves.
    async move {
        let answer = call.await;
        answering.answer(answer);
    }
}

/// Cancels a call, from anywhere.
pub struct Canceller {
    core: Arc<Core>,
    remote: Option<RemoteCanceller>,
}

impl Canceller {
    /// Makes what cancels a call on the plugin executor.
    pub(crate) fn local(core: Arc<Core>) -> Self {
        Self { core, remote: None }
    }

    /// Cancels the call: from here on nothing that it waits for is given to it.
    pub fn cancel(&self) {
        self.core.cancel();
        match &self.remote {
            None => self.core.wake_call(),
            Some(remote) => remote.cancel(),
        }
    }
}

/// Begins a call in the plugin: which facet, which name.
pub(crate) trait Begin: FnOnce(&Living, ContextBox) -> Option<Answer> {}

impl<F: FnOnce(&Living, ContextBox) -> Option<Answer>> Begin for F {}

/// A call, polled by the executor (or in place, by a benchmark). Ready or dropped, it ends its
/// context.
pub(crate) struct CallFuture<B> {
    // In this order on a drop: the plugin's future, the context, the instance, the place in the
    // list: who waits for the list to be empty finds all the rest gone.
    stage: Stage<B>,
    core: EndOnDrop,
    living: Arc<Living>,
    _place: Place,
}

enum Stage<B> {
    Waiting(B),
    Running(FfiFuture<RResult<RVec<u8>, RVec<u8>>>),
    Over,
}

impl<B> CallFuture<B> {
    pub(crate) fn new(begin: B, core: Arc<Core>, living: Arc<Living>, place: Place) -> Self {
        Self { stage: Stage::Waiting(begin), core: EndOnDrop(core), living, _place: place }
    }

    /// Drops the plugin's future and ends the context; what the emissions did wrong is the answer
    /// then.
    fn finish(&mut self, answer: Result<Bytes, Error>) -> Poll<Result<Bytes, Error>> {
        self.stage = Stage::Over;
        let fault = self.core.0.take_fault();
        self.core.0.end();
        Poll::Ready(fault.map_or(answer, Err))
    }
}

// The stage is moved only before the plugin's future is there, and that future is a pointer.
impl<B> Unpin for CallFuture<B> {}

impl<B: Begin> Future for CallFuture<B> {
    type Output = Result<Bytes, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let core = Arc::clone(&this.core.0);
        if !core.is_live() {
            return this.finish(Err(Error::cancelled()));
        }
        if let Stage::Waiting(_) = &this.stage {
            let Stage::Waiting(begin) = std::mem::replace(&mut this.stage, Stage::Over) else {
                unreachable!("looked at right above")
            };
            match plugin_code(|| begin(&this.living, core.lend())) {
                Ok(Some(future)) => this.stage = Stage::Running(future),
                Ok(None) => {
                    let error = core.guest.misbehaved("it does not offer what was called");
                    return this.finish(Err(error));
                }
                Err(text) => return this.finish(Err(panicked(&core.guest, &text))),
            }
        }
        let Stage::Running(future) = &mut this.stage else {
            unreachable!("a finished call is not polled again")
        };
        match plugin_code(|| Pin::new(future).poll(cx)) {
            Ok(Poll::Ready(answer)) => this.finish(read_answer(&core.guest, answer)),
            Err(text) => this.finish(Err(panicked(&core.guest, &text))),
            Ok(Poll::Pending) => {
                core.keep_call(cx.waker());
                if core.is_live() { Poll::Pending } else { this.finish(Err(Error::cancelled())) }
            }
        }
    }
}

/// Checks what a plugin answered. It stays in the plugin's memory.
fn read_answer(guest: &Guest, answer: RResult<RVec<u8>, RVec<u8>>) -> Result<Bytes, Error> {
    match answer {
        RResult::ROk(frame) => checked(guest, frame),
        RResult::RErr(error) => Err(read_error(guest, &error)),
    }
}

pub(crate) fn checked(guest: &Guest, frame: RVec<u8>) -> Result<Bytes, Error> {
    match Frame::parse(&frame) {
        Ok(parsed) => check_json(guest.name(), parsed.json).map(|()| Bytes(frame)),
        Err(error) => Err(guest.misbehaved(format_args!("its answer is no frame: {error}"))),
    }
}

pub(crate) fn read_error(guest: &Guest, frame: &RVec<u8>) -> Error {
    let refused = |error| guest.misbehaved(format_args!("its error cannot be read: {error}"));
    Frame::read(frame).unwrap_or_else(refused)
}

/// Makes the error of a panic that the plugin's own fence let through.
pub(crate) fn panicked(guest: &Guest, text: &str) -> Error {
    let text = format!("the plugin `{}` panicked: {text}", guest.name());
    Error::new(jaato_types::ErrorKind::PluginPanicked, text)
}
