//! Futures that the host lends to a plugin. They are fenced, refused after a cancel, and woken at
//! the context's end.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use jaato_plugin_api::abi::abi_stable::std_types::{ROption, RResult, RVec};
use jaato_types::{Error, Frame};

use super::{HostContext, WAITING_MAX};
use crate::executor::HostCodeGuard;
use crate::fence::run_host_code;
use crate::live::LiveToken;

/// The results of a host future that cannot do its work.
pub trait HostFutureOutput {
    /// Returns the result after the context was cancelled or has ended.
    fn refused_output() -> Self;

    /// Returns the result after the host's own code panicked.
    fn host_error_output(error: &Error) -> Self;
}

impl HostFutureOutput for () {
    fn refused_output() -> Self {}
    fn host_error_output(_error: &Error) -> Self {}
}

impl HostFutureOutput for bool {
    fn refused_output() -> Self {
        false
    }

    fn host_error_output(_error: &Error) -> Self {
        false
    }
}

impl HostFutureOutput for RResult<RVec<u8>, RVec<u8>> {
    fn refused_output() -> Self {
        RResult::RErr(error_frame(&Error::cancelled()))
    }

    fn host_error_output(error: &Error) -> Self {
        RResult::RErr(error_frame(error))
    }
}

impl HostFutureOutput for RResult<ROption<RVec<u8>>, RVec<u8>> {
    fn refused_output() -> Self {
        RResult::RErr(error_frame(&Error::cancelled()))
    }

    fn host_error_output(error: &Error) -> Self {
        RResult::RErr(error_frame(error))
    }
}

/// The result of a service or a stream for a plugin in a worker.
pub enum ServiceReply {
    /// A frame.
    Frame(Vec<u8>),
    /// A frame whose object holds the handle of a stream.
    Stream(Vec<u8>),
    /// The end of a stream.
    End,
}

/// A result, or the frame of an error.
pub struct ServiceReplyResult(pub Result<ServiceReply, Vec<u8>>);

impl ServiceReplyResult {
    /// Creates the result from an error.
    pub fn error(error: &Error) -> Self {
        Self(Err(error_frame(error).into()))
    }
}

impl HostFutureOutput for ServiceReplyResult {
    fn refused_output() -> Self {
        Self::error(&Error::cancelled())
    }

    fn host_error_output(error: &Error) -> Self {
        Self::error(error)
    }
}

/// Writes an error as a frame. Replaces an error that does not fit with a short one of the same
/// kind.
pub(super) fn error_frame(error: &Error) -> RVec<u8> {
    let short = || Frame::write(&Error::new(error.kind, "the error's text is too large"));
    Frame::write(error).or_else(|_| short()).unwrap_or_else(|_| Frame::empty()).into()
}

/// A future of the host that is lent to a plugin.
pub struct HostFuture<W: Future + Send + Unpin>
where
    W::Output: HostFutureOutput,
{
    core: Arc<HostContext>,
    work: Option<W>,
    waiter: Option<u64>,
    _live: LiveToken,
}

impl<W: Future + Send + Unpin> HostFuture<W>
where
    W::Output: HostFutureOutput,
{
    /// Creates the future. Without work, its first poll is refused.
    pub fn new(core: &Arc<HostContext>, work: Option<W>) -> Self {
        let live = core.executor.live_counters().futures.new_token();
        Self { core: Arc::clone(core), work, waiter: None, _live: live }
    }

    fn drop_work(&mut self) {
        let work = self.work.take();
        if let Err(error) = run_host_code(|| drop(work)) {
            self.core.report_trouble(&error.message);
        }
    }

    fn finish(&mut self, output: W::Output) -> Poll<W::Output> {
        self.drop_work();
        self.core.forget_waiter(&mut self.waiter);
        Poll::Ready(output)
    }
}

impl<W: Future + Send + Unpin> Future for HostFuture<W>
where
    W::Output: HostFutureOutput,
{
    type Output = W::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<W::Output> {
        let _host = HostCodeGuard::enter();
        let this = &mut *self;
        let polled = if this.core.is_live() {
            let Some(work) = &mut this.work else {
                return this.finish(W::Output::refused_output());
            };
            let executor = &this.core.executor;
            executor.enter(|| run_host_code(|| Pin::new(work).poll(cx)))
        } else {
            // The context was cancelled: the poller is about to be dropped, or is woken at the
            // context's end.
            Ok(Poll::Pending)
        };
        match polled {
            // A result that arrives after the cancel is discarded, because it could look like
            // success.
            Ok(Poll::Ready(output)) if this.core.is_live() => return this.finish(output),
            Ok(Poll::Ready(_)) => this.drop_work(),
            Ok(Poll::Pending) => {}
            Err(error) => {
                this.core.report_trouble(&error.message);
                return this.finish(W::Output::host_error_output(&error));
            }
        }
        if this.core.keep_waiter(&mut this.waiter, cx.waker()) {
            Poll::Pending
        } else {
            this.finish(W::Output::refused_output())
        }
    }
}

impl<W: Future + Send + Unpin> Drop for HostFuture<W>
where
    W::Output: HostFutureOutput,
{
    fn drop(&mut self) {
        let _host = HostCodeGuard::enter();
        self.drop_work();
        self.core.forget_waiter(&mut self.waiter);
    }
}

impl HostContext {
    /// Keeps the waker of a waiting future, which is woken at the context's end or earlier. Returns
    /// false if the context has ended or too many futures wait.
    fn keep_waiter(&self, number: &mut Option<u64>, waker: &Waker) -> bool {
        let mut held = self.held.lock();
        // `end` sets the phase before it takes the lock, so it wakes every waker that was kept
        // before.
        !self.has_ended() && held.waiters.store_waker(number, waker, WAITING_MAX)
    }

    fn forget_waiter(&self, number: &mut Option<u64>) {
        let waker = self.held.lock().waiters.remove_waker(number);
        drop(waker);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use std::time::Duration;

    use futures_channel::oneshot;
    use jaato_types::PluginName;

    use super::*;
    use crate::executor::Executor;
    use crate::live::LiveObjectCounts;
    use crate::runtime::{BoxHostFuture, PluginRuntime};
    use crate::services::{CallerKind, NoServices};
    use crate::watch::{EngineObserver, MisbehaviorReport};

    struct SilentRuntime;

    impl PluginRuntime for SilentRuntime {
        fn sleep(&self, _time: Duration) -> BoxHostFuture<()> {
            Box::pin(std::future::pending())
        }

        fn run_later(&self, _time: Duration, _work: Box<dyn FnOnce() + Send>) {}
    }

    impl EngineObserver for SilentRuntime {
        fn log(&self, _plugin: &PluginName, _level: u8, _text: &str) {}
        fn report_misbehavior(&self, _report: &MisbehaviorReport) {}
        fn log_trouble(&self, _text: &str) {}
    }

    #[derive(Default)]
    struct WakeCounter(AtomicUsize);

    impl Wake for WakeCounter {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    struct HostFutureFixture {
        executor: Executor,
        core: Arc<HostContext>,
        wakes: Arc<WakeCounter>,
    }

    impl HostFutureFixture {
        fn new() -> Self {
            let executor = Executor::new(1, Arc::new(SilentRuntime), Arc::new(SilentRuntime));
            let guest = executor.add_guest(PluginName::from("tool-test"));
            let core = HostContext::new(CallerKind::Call, &executor, &guest, Arc::new(NoServices));
            Self { executor, core, wakes: Arc::default() }
        }

        fn poll<W: Future + Send + Unpin>(&self, lent: &mut HostFuture<W>) -> Poll<W::Output>
        where
            W::Output: HostFutureOutput,
        {
            let waker = Waker::from(Arc::clone(&self.wakes));
            Pin::new(lent).poll(&mut Context::from_waker(&waker))
        }

        fn wake_count(&self) -> usize {
            self.wakes.0.load(Ordering::SeqCst)
        }
    }

    #[test]
    fn cancel_does_not_wake_host_futures_but_the_context_end_does() {
        let fixture = HostFutureFixture::new();
        let mut lent = HostFuture::new(&fixture.core, Some(std::future::pending::<bool>()));
        assert_eq!(fixture.poll(&mut lent), Poll::Pending);
        fixture.core.cancel();
        assert_eq!(fixture.wake_count(), 0);
        assert_eq!(fixture.poll(&mut lent), Poll::Pending);
        fixture.core.end();
        assert_eq!(fixture.wake_count(), 1);
        assert_eq!(fixture.poll(&mut lent), Poll::Ready(false));
        let HostFutureFixture { executor, core, .. } = &fixture;
        assert_eq!(executor.live().futures, 1);
        drop(lent);
        assert_eq!(
            executor.live(),
            LiveObjectCounts { contexts: 1, ..LiveObjectCounts::default() }
        );
        assert!(!core.is_live());
    }

    #[test]
    fn result_that_arrives_after_the_cancel_is_not_returned() {
        let fixture = HostFutureFixture::new();
        let (sender, receiver) = oneshot::channel::<bool>();
        let work = Box::pin(async move { receiver.await.unwrap_or(false) });
        let mut lent = HostFuture::new(&fixture.core, Some(work));
        assert_eq!(fixture.poll(&mut lent), Poll::Pending);
        fixture.core.cancel();
        sender.send(true).unwrap();
        assert_eq!(fixture.poll(&mut lent), Poll::Pending);
        fixture.core.end();
        assert_eq!(fixture.poll(&mut lent), Poll::Ready(false));
    }

    #[test]
    fn dropped_host_future_frees_its_slot() {
        let fixture = HostFutureFixture::new();
        for _ in 0..WAITING_MAX + 1 {
            let mut lent = HostFuture::new(&fixture.core, Some(std::future::pending::<bool>()));
            assert_eq!(fixture.poll(&mut lent), Poll::Pending);
        }
    }
}
