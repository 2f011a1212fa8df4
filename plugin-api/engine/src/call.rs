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
use crate::bytes::FrameBytes;
use crate::context::{ContextEndGuard, HostContext};
use crate::executor::{GuestPlugin, HostCodeGuard};
use crate::fence::{run_host_code, run_plugin_code};

/// Receives the results of a call directly on the thread that produces them, without waking another
/// thread that would only pass them on.
///
/// The plugin executor calls it, so it must not block. All emitted frames arrive before the answer.
pub trait CallResultSink: Send + Sync + 'static {
    /// Takes an emitted frame, in the order of emission. Returns false if the frame does not fit,
    /// which the call's answer then reports. The context is locked, so this method must not access
    /// the call.
    fn on_emission(&self, frame: &[u8]) -> bool;

    /// Takes the answer, which arrives once and is a checked frame. If the plugin is disabled
    /// during a poll, the answer arrives only after the poll: see
    /// [`PluginInstance::wait_until_disabled`](crate::PluginInstance::wait_until_disabled).
    fn on_answer(&self, answer: Result<FrameBytes, Error>);
}

/// Gives an outlet its answer, even if the call's future is dropped before it has one.
struct AnswerGuard {
    outlet: Option<Arc<dyn CallResultSink>>,
    guest: Arc<GuestPlugin>,
}

impl AnswerGuard {
    fn send_answer(&mut self, answer: Result<FrameBytes, Error>) {
        let _host = HostCodeGuard::enter();
        let Some(outlet) = self.outlet.take() else { return };
        // The executor's fence does not report which plugin is at fault, and the waiting caller
        // would wait forever.
        if run_host_code(|| outlet.on_answer(answer)).is_err() {
            drop(run_host_code(|| outlet.on_answer(Err(self.guest.lost_error()))));
        }
    }
}

impl Drop for AnswerGuard {
    fn drop(&mut self) {
        self.send_answer(Err(self.guest.lost_error()));
    }
}

/// Runs a call and sends its answer to an outlet.
fn forward_answer(
    call: impl Future<Output = Result<FrameBytes, Error>> + Send,
    guest: Arc<GuestPlugin>,
    outlet: Arc<dyn CallResultSink>,
) -> impl Future<Output = ()> + Send {
    let mut answering = AnswerGuard { outlet: Some(outlet), guest };
    // The call releases everything before its answer is sent.
    async move {
        let answer = call.await;
        answering.send_answer(answer);
    }
}

impl HostContext {
    /// Runs a body without a plugin in this context. For tests of a host.
    pub fn run_body_into(
        self: &Arc<Self>,
        body: impl FnOnce(ContextBox) -> Answer + Send + 'static,
        outlet: Arc<dyn CallResultSink>,
    ) {
        run_call_into(CallFuture::new(|context| Some(body(context)), Arc::clone(self), ()), outlet);
    }
}

/// Runs a call on the executor, and sends its emissions and answer to an outlet.
pub(crate) fn run_call_into(
    call: CallFuture<impl CallStarter + Send + 'static, impl Send + 'static>,
    outlet: Arc<dyn CallResultSink>,
) {
    let context = Arc::clone(&call.core.0);
    let guest = &context.guest;
    context.set_outlet(Arc::clone(&outlet));
    context.executor.spawn(guest, forward_answer(call, Arc::clone(guest), outlet)).detach();
}

/// Starts a call in the plugin. Returns `None` if the plugin does not offer it.
pub(crate) trait CallStarter: FnOnce(ContextBox) -> Option<Answer> {}

impl<F: FnOnce(ContextBox) -> Option<Answer>> CallStarter for F {}

/// A call, polled by the executor, or in place by a benchmark. Its end, or dropping it, ends its
/// context.
pub(crate) struct CallFuture<B, K> {
    // The drop order: the plugin's future, the context, and the rest.
    stage: CallStage<B>,
    core: ContextEndGuard,
    _kept: K,
}

enum CallStage<B> {
    Waiting(B),
    Running(FfiFuture<RResult<RVec<u8>, RVec<u8>>>),
    Over,
}

impl<B, K> CallFuture<B, K> {
    pub(crate) fn new(begin: B, core: Arc<HostContext>, kept: K) -> Self {
        Self { stage: CallStage::Waiting(begin), core: ContextEndGuard(core), _kept: kept }
    }

    /// Drops the plugin's future and ends the context. If the emissions had a fault, that is the
    /// answer.
    fn finish(&mut self, answer: Result<FrameBytes, Error>) -> Poll<Result<FrameBytes, Error>> {
        self.stage = CallStage::Over;
        let fault = self.core.0.take_fault();
        self.core.0.end();
        Poll::Ready(fault.map_or(answer, Err))
    }
}

// The stage moves only before the plugin's future exists, and that future is a pointer.
impl<B, K> Unpin for CallFuture<B, K> {}

impl<B: CallStarter, K> Future for CallFuture<B, K> {
    type Output = Result<FrameBytes, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let core = Arc::clone(&this.core.0);
        if !core.is_live() {
            return this.finish(Err(Error::cancelled()));
        }
        if let CallStage::Waiting(_) = &this.stage {
            let CallStage::Waiting(begin) = std::mem::replace(&mut this.stage, CallStage::Over)
            else {
                unreachable!("looked at right above")
            };
            match run_plugin_code(|| begin(core.lend_context_box())) {
                Ok(Some(future)) => this.stage = CallStage::Running(future),
                Ok(None) => {
                    let error =
                        core.guest.misbehavior_error("it does not offer the called operation");
                    return this.finish(Err(error));
                }
                Err(text) => return this.finish(Err(panic_error(&core.guest, &text))),
            }
        }
        let CallStage::Running(future) = &mut this.stage else {
            unreachable!("a finished call is not polled again")
        };
        match run_plugin_code(|| Pin::new(future).poll(cx)) {
            Ok(Poll::Ready(answer)) => this.finish(read_answer(&core.guest, answer)),
            Err(text) => this.finish(Err(panic_error(&core.guest, &text))),
            Ok(Poll::Pending) => {
                core.keep_call_waker(cx.waker());
                if core.is_live() { Poll::Pending } else { this.finish(Err(Error::cancelled())) }
            }
        }
    }
}

/// Checks a plugin's answer, which stays in the plugin's memory.
fn read_answer(
    guest: &GuestPlugin,
    answer: RResult<RVec<u8>, RVec<u8>>,
) -> Result<FrameBytes, Error> {
    match answer {
        RResult::ROk(frame) => check_frame(guest, frame),
        RResult::RErr(error) => Err(read_error(guest, &error)),
    }
}

pub(crate) fn check_frame(guest: &GuestPlugin, frame: RVec<u8>) -> Result<FrameBytes, Error> {
    match Frame::parse(&frame) {
        Ok(parsed) => check_json(guest.name(), parsed.json).map(|()| FrameBytes(frame)),
        Err(error) => {
            Err(guest.misbehavior_error(format_args!("its answer is not a valid frame: {error}")))
        }
    }
}

pub(crate) fn read_error(guest: &GuestPlugin, frame: &RVec<u8>) -> Error {
    let refused =
        |error| guest.misbehavior_error(format_args!("its error cannot be read: {error}"));
    Frame::read(frame).unwrap_or_else(refused)
}

/// Returns the error of a panic that passed the plugin's own fence.
pub(crate) fn panic_error(guest: &GuestPlugin, text: &str) -> Error {
    let text = format!("the plugin `{}` panicked: {text}", guest.name());
    Error::new(jaato_types::ErrorKind::PluginPanicked, text)
}
