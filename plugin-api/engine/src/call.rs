//! One call of a plugin: the future that runs it, and the outlet for its results.

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

/// Receives the results of a call directly on the thread that produces them, without waking another
/// thread that would only pass them on.
///
/// The plugin executor calls it, so it must not block. All emitted frames arrive before the answer.
pub trait Outlet: Send + Sync + 'static {
    /// Takes an emitted frame, in the order of emission. Returns false if there is no room for it,
    /// which the call's answer then reports. The context is locked, so this method must not access
    /// the call.
    fn emitted(&self, frame: &[u8]) -> bool;

    /// Takes the answer, which arrives once and is a checked frame. If the plugin is disabled
    /// during a poll, the answer arrives only after the poll: see
    /// [`Instance::disabled`](crate::Instance::disabled).
    fn answered(&self, answer: Result<Bytes, Error>);
}

/// Gives an outlet its answer, even if the call's future is dropped before it has one.
struct Answering {
    outlet: Option<Arc<dyn Outlet>>,
    guest: Arc<Guest>,
}

impl Answering {
    fn answer(&mut self, answer: Result<Bytes, Error>) {
        let _host = HostCode::enter();
        let Some(outlet) = self.outlet.take() else { return };
        // The executor's fence does not report which plugin is at fault, and the waiting caller
        // would wait forever.
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

/// Runs a call and sends its answer to an outlet.
fn pass_on(
    call: impl Future<Output = Result<Bytes, Error>> + Send,
    guest: Arc<Guest>,
    outlet: Arc<dyn Outlet>,
) -> impl Future<Output = ()> + Send {
    let mut answering = Answering { outlet: Some(outlet), guest };
    // The call releases everything before its answer is sent.
    async move {
        let answer = call.await;
        answering.answer(answer);
    }
}

impl HostContext {
    /// Runs a body without a plugin in this context. For tests of a host.
    pub fn run_into(
        self: &Arc<Self>,
        body: impl FnOnce(ContextBox) -> Answer + Send + 'static,
        outlet: Arc<dyn Outlet>,
    ) {
        run_into(CallFuture::new(|context| Some(body(context)), Arc::clone(self), ()), outlet);
    }
}

/// Runs a call on the executor, and sends its emissions and answer to an outlet.
pub(crate) fn run_into(
    call: CallFuture<impl Begin + Send + 'static, impl Send + 'static>,
    outlet: Arc<dyn Outlet>,
) {
    let context = Arc::clone(&call.core.0);
    let guest = &context.guest;
    context.pass_on_to(Arc::clone(&outlet));
    context.executor.spawn(guest, pass_on(call, Arc::clone(guest), outlet)).detach();
}

/// Starts a call in the plugin. Returns `None` if the plugin does not offer it.
pub(crate) trait Begin: FnOnce(ContextBox) -> Option<Answer> {}

impl<F: FnOnce(ContextBox) -> Option<Answer>> Begin for F {}

/// A call, polled by the executor, or in place by a benchmark. Its end, or dropping it, ends its
/// context.
pub(crate) struct CallFuture<B, K> {
    // The drop order: the plugin's future, the context, and the rest.
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

    /// Drops the plugin's future and ends the context. If the emissions had a fault, that is the
    /// answer.
    fn finish(&mut self, answer: Result<Bytes, Error>) -> Poll<Result<Bytes, Error>> {
        self.stage = Stage::Over;
        let fault = self.core.0.take_fault();
        self.core.0.end();
        Poll::Ready(fault.map_or(answer, Err))
    }
}

// The stage moves only before the plugin's future exists, and that future is a pointer.
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

/// Checks a plugin's answer, which stays in the plugin's memory.
fn read_answer(guest: &Guest, answer: RResult<RVec<u8>, RVec<u8>>) -> Result<Bytes, Error> {
    match answer {
        RResult::ROk(frame) => checked(guest, frame),
        RResult::RErr(error) => Err(read_error(guest, &error)),
    }
}

pub(crate) fn checked(guest: &Guest, frame: RVec<u8>) -> Result<Bytes, Error> {
    match Frame::parse(&frame) {
        Ok(parsed) => check_json(guest.name(), parsed.json).map(|()| Bytes(frame)),
        Err(error) => {
            Err(guest.misbehaved(format_args!("its answer is not a valid frame: {error}")))
        }
    }
}

pub(crate) fn read_error(guest: &Guest, frame: &RVec<u8>) -> Error {
    let refused = |error| guest.misbehaved(format_args!("its error cannot be read: {error}"));
    Frame::read(frame).unwrap_or_else(refused)
}

/// Returns the error of a panic that passed the plugin's own fence.
pub(crate) fn panicked(guest: &Guest, text: &str) -> Error {
    let text = format!("the plugin `{}` panicked: {text}", guest.name());
    Error::new(jaato_types::ErrorKind::PluginPanicked, text)
}
