//! The futures that the fake host lends: sleeps, jobs, service answers, pieces of streams.
//!
//! What a context that has ended resolves to is never success. Between the flag of a cancel and the
//! end, everything waits, whatever wakes it, so that a call that is about to be dropped goes no
//! further.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::task::{Context as TaskContext, Poll, Waker};

use jaato_plugin_api::abi::JobBox;
use jaato_plugin_api::abi::abi_stable::std_types::{ROption, RResult, RVec};
use jaato_types::service::{OUTPUT, StreamAnswer};
use jaato_types::{Error, ErrorKind, Frame, Result};
use parking_lot::Mutex;
use serde_json::Value;

use super::context::{Context, Phase};
use super::executor::Alarm;
use super::live::Token;
use super::log;
use super::services::Reply;

type Bytes = RResult<RVec<u8>, RVec<u8>>;
type MaybeBytes = RResult<ROption<RVec<u8>>, RVec<u8>>;

/// Looks whether what is waited for is there, and sees to it that the waker is woken when it is.
type Look<T> = Box<dyn FnMut(&Arc<Context>, &Waker) -> Poll<T> + Send>;

/// A future of the host.
pub(super) struct HostFuture<T> {
    context: Arc<Context>,
    refusal: fn() -> T,
    look: Look<T>,
    slot: Option<u64>,
    token: Option<Token>,
}

impl<T> HostFuture<T> {
    fn new(
        context: &Arc<Context>,
        refusal: fn() -> T,
        look: impl FnMut(&Arc<Context>, &Waker) -> Poll<T> + Send + 'static,
    ) -> Self {
        Self {
            refusal,
            look: Box::new(look),
            slot: None,
            token: Some(context.host.counters.futures.token()),
            context: Arc::clone(context),
        }
    }
}

impl<T> Future for HostFuture<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<T> {
        let this = &mut *self;
        // Kept before the look at the phase, so that an end in between is not missed.
        this.context.keep_waker(&mut this.slot, cx.waker());
        let polled = match this.context.phase() {
            Phase::Open => (this.look)(&this.context, cx.waker()),
            Phase::Cancelling => Poll::Pending,
            Phase::Ended => Poll::Ready((this.refusal)()),
        };
        if polled.is_ready() {
            this.token = None;
        }
        polled
    }
}

impl<T> Drop for HostFuture<T> {
    fn drop(&mut self) {
        if let Some(slot) = self.slot {
            self.context.forget_waker(slot);
        }
    }
}

pub(super) fn cancelled(context: &Arc<Context>) -> HostFuture<()> {
    HostFuture::new(context, || (), |_, _| Poll::Pending)
}

pub(super) fn sleep(context: &Arc<Context>, milliseconds: u64) -> HostFuture<bool> {
    let mut alarm = Due::in_ms(context, milliseconds);
    HostFuture::new(context, || false, move |_, waker| alarm.poll(waker).map(|()| true))
}

/// A point in the host's time.
struct Due {
    context: Arc<Context>,
    due_ms: u64,
    alarm: Option<Alarm>,
}

impl Due {
    fn in_ms(context: &Arc<Context>, milliseconds: u64) -> Self {
        let due_ms = context.host.executor.now_ms().saturating_add(milliseconds);
        Self { context: Arc::clone(context), due_ms, alarm: None }
    }

    fn poll(&mut self, waker: &Waker) -> Poll<()> {
        let executor = &self.context.host.executor;
        if executor.now_ms() >= self.due_ms {
            return Poll::Ready(());
        }
        self.alarm = Some(executor.set_alarm(self.due_ms, self.alarm, waker.clone()));
        // Again, because a test may have moved the clock in between.
        if executor.now_ms() >= self.due_ms { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Drop for Due {
    fn drop(&mut self) {
        if let Some(alarm) = self.alarm {
            self.context.host.executor.clear_alarm(alarm);
        }
    }
}

/// What a job and the one who waits for it share.
#[derive(Default)]
struct Finish {
    is_done: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

pub(super) fn blocking(context: &Arc<Context>, job: JobBox) -> HostFuture<bool> {
    let finish = Arc::new(Finish::default());
    if context.phase() == Phase::Open {
        run_job(context, job, Arc::clone(&finish));
    }
    HostFuture::new(
        context,
        || false,
        move |_, waker| {
            let slot = finish.waker.lock().replace(waker.clone());
            drop(slot);
            if finish.is_done.load(SeqCst) { Poll::Ready(true) } else { Poll::Pending }
        },
    )
}

/// Runs and drops a job on a thread of its own. Without a thread nothing ever becomes of it, which
/// the deadline of whoever waits tells.
fn run_job(context: &Arc<Context>, mut job: JobBox, finish: Arc<Finish>) {
    let host = Arc::clone(&context.host);
    let (token, busy) = (host.counters.jobs.token(), host.executor.begin_job());
    let work = move || {
        log::enter(&host.log);
        job.run();
        drop(job);
        drop(token);
        finish.is_done.store(true, SeqCst);
        let waker = finish.waker.lock().take();
        if let Some(waker) = waker {
            waker.wake();
        }
        // After the wake, so that time does not skip before the answer is seen.
        drop(busy);
    };
    let name = super::POOL_THREAD.to_owned();
    if let Err(error) = std::thread::Builder::new().name(name).spawn(work) {
        context.host.log.write(1, &format!("the blocking pool has no thread: {error}"));
    }
}

pub(super) fn service(context: &Arc<Context>, operation: &str, frame: &[u8]) -> HostFuture<Bytes> {
    let mut reply = if context.phase() == Phase::Open {
        let answered = context.host.services.answer(context.id, operation, frame);
        if operation == OUTPUT && answered.is_ok() {
            context.show_output(frame);
        }
        Pending::of(context, answered)
    } else {
        Pending::Never
    };
    let refusal = || RResult::RErr(error_frame(&Error::cancelled()));
    HostFuture::new(context, refusal, move |context, waker| reply.poll(context, waker))
}

/// A reply on its way.
enum Pending {
    Ready(Option<Result<Reply>>),
    Later(Due, Option<Reply>),
    Never,
}

impl Pending {
    fn of(context: &Arc<Context>, reply: Result<Reply>) -> Self {
        match reply {
            Ok(Reply::Never) => Self::Never,
            Ok(Reply::Later(milliseconds, reply)) => {
                Self::Later(Due::in_ms(context, milliseconds), Some(*reply))
            }
            ready => Self::Ready(Some(ready)),
        }
    }

    fn poll(&mut self, context: &Arc<Context>, waker: &Waker) -> Poll<Bytes> {
        loop {
            match self {
                Self::Never | Self::Ready(None) | Self::Later(_, None) => return Poll::Pending,
                Self::Ready(reply) => {
                    let Some(reply) = reply.take() else { return Poll::Pending };
                    return Poll::Ready(write(context, reply));
                }
                Self::Later(due, reply) => {
                    if due.poll(waker).is_pending() {
                        return Poll::Pending;
                    }
                    let Some(reply) = reply.take() else { return Poll::Pending };
                    *self = Self::of(context, Ok(reply));
                }
            }
        }
    }
}

fn write(context: &Context, reply: Result<Reply>) -> Bytes {
    let host_bug =
        |error: jaato_types::FrameError| Error::new(ErrorKind::HostBug, error.to_string());
    let frame = reply.and_then(|reply| match reply {
        Reply::Json(Value::Null) => Ok(Frame::empty()),
        Reply::Json(json) => Frame::write(&json).map_err(host_bug),
        Reply::Bytes(json, bytes) => Frame::write_with_bytes(&json, &bytes).map_err(host_bug),
        Reply::Stream(stream) => {
            let handle = context.add_stream(stream);
            Frame::write(&StreamAnswer { handle, ..StreamAnswer::default() }).map_err(host_bug)
        }
        Reply::StreamWith(mut head, stream) => {
            let Some(fields) = head.as_object_mut() else {
                let text = "the head of a stream's answer is no object";
                return Err(Error::new(ErrorKind::HostBug, text));
            };
            fields.insert("handle".to_owned(), context.add_stream(stream).into());
            Frame::write(&head).map_err(host_bug)
        }
        Reply::Later(..) | Reply::Never => {
            Err(Error::new(ErrorKind::HostBug, "a reply that is still to come cannot be written"))
        }
    });
    match frame {
        Ok(frame) => RResult::ROk(frame.into()),
        Err(error) => RResult::RErr(error_frame(&error)),
    }
}

pub(super) fn next(context: &Arc<Context>, handle: u64) -> HostFuture<MaybeBytes> {
    let refusal = || RResult::RErr(error_frame(&Error::cancelled()));
    HostFuture::new(context, refusal, move |context, waker| {
        let Some(stream) = context.stream(handle) else {
            let text = format!("there is no open stream `{handle}`");
            let error = Error::new(ErrorKind::NotFound, text);
            return Poll::Ready(RResult::RErr(error_frame(&error)));
        };
        stream.poll_next(waker).map(|frame| match frame {
            Ok(frame) => RResult::ROk(frame.map(RVec::from).into()),
            Err(error) => RResult::RErr(error_frame(&error)),
        })
    })
}

pub(crate) fn error_frame(error: &Error) -> RVec<u8> {
    Frame::write(error).unwrap_or_else(|_| Frame::empty()).into()
}
