//! One call of a plugin: the future that runs it, and who takes what it gives.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use jaato_plugin_api::abi::abi_stable::std_types::{RResult, RVec};
use jaato_plugin_api::abi::async_ffi::FfiFuture;
use jaato_plugin_api::abi::{Answer, ContextBox};
use jaato_types::{Error, Frame};

use crate::bounds::check_json;
use crate::bytes::Bytes;
use crate::context::{EndOnDrop, HostContext};
use crate::executor::{Guest, HostCode};
use crate::fence::{host_code, plugin_code};

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

    /// Takes the answer, once: a checked frame. That of a plugin which is disabled in the middle of
    /// a poll does not come before the poll ends: see
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
fn pass_on(
    call: impl Future<Output = Result<Bytes, Error>> + Send,
    guest: Arc<Guest>,
    outlet: Arc<dyn Outlet>,
) -> impl Future<Output = ()> + Send {
    let mut answering = Answering { outlet: Some(outlet), guest };
    // The call has let go of everything when its answer leaves.
    async move {
        let answer = call.await;
        answering.answer(answer);
    }
}

impl HostContext {
    /// Runs in this context what no plugin gives out: for checks of a host.
    pub fn run_into(
        self: &Arc<Self>,
        body: impl FnOnce(ContextBox) -> Answer + Send + 'static,
        outlet: Arc<dyn Outlet>,
    ) {
        run_into(CallFuture::new(|context| Some(body(context)), Arc::clone(self), ()), outlet);
    }
}

/// Has the executor run a call whose emissions and answer go to an outlet.
pub(crate) fn run_into(
    call: CallFuture<impl Begin + Send + 'static, impl Send + 'static>,
    outlet: Arc<dyn Outlet>,
) {
    let context = Arc::clone(&call.core.0);
    let guest = &context.guest;
    context.pass_on_to(Arc::clone(&outlet));
    context.executor.spawn(guest, pass_on(call, Arc::clone(guest), outlet)).detach();
}

/// Begins a call in the plugin; none when the plugin does not offer what is called.
pub(crate) trait Begin: FnOnce(ContextBox) -> Option<Answer> {}

impl<F: FnOnce(ContextBox) -> Option<Answer>> Begin for F {}

/// A call, polled by the executor (or in place, by a benchmark). Ready or dropped, it ends its
/// context.
pub(crate) struct CallFuture<B, K> {
    // In this order on a drop: the plugin's future, the context, what was kept for the call.
    stage: Stage<B>,
    core: EndOnDrop,
    _kept: K,
}

enum Stage<B> {
    Waiting(B),
    Running(FfiFuture<RResult<RVec<u8>, RVec<u8>>>),
    Over,
}

impl<B, K> CallFuture<B, K> {
    pub(crate) fn new(begin: B, core: Arc<HostContext>, kept: K) -> Self {
        Self { stage: Stage::Waiting(begin), core: EndOnDrop(core), _kept: kept }
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
impl<B, K> Unpin for CallFuture<B, K> {}

impl<B: Begin, K> Future for CallFuture<B, K> {
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
            match plugin_code(|| begin(core.lend())) {
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
