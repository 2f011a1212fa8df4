//! Futures that the host lends to a plugin. They are fenced, refused after a cancel, and woken at
//! the context's end.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use jaato_plugin_api::abi::abi_stable::std_types::{ROption, RResult, RVec};
use jaato_types::{Error, Frame};

use super::{HostContext, WAITING_MAX};
use crate::executor::HostCode;
use crate::fence::host_code;
use crate::live::Token;

/// The results of a host future that cannot do its work.
pub trait Refusable {
    /// Returns the result after the context was cancelled or has ended.
    fn refused() -> Self;

    /// Returns the result after the host's own code panicked.
    fn host_bug(error: &Error) -> Self;
}

impl Refusable for () {
    fn refused() -> Self {}
    fn host_bug(_error: &Error) -> Self {}
}

impl Refusable for bool {
    fn refused() -> Self {
        false
    }

    fn host_bug(_error: &Error) -> Self {
        false
    }
}

impl Refusable for RResult<RVec<u8>, RVec<u8>> {
    fn refused() -> Self {
        RResult::RErr(error_answer(&Error::cancelled()))
    }

    fn host_bug(error: &Error) -> Self {
        RResult::RErr(error_answer(error))
    }
}

impl Refusable for RResult<ROption<RVec<u8>>, RVec<u8>> {
    fn refused() -> Self {
        RResult::RErr(error_answer(&Error::cancelled()))
    }

    fn host_bug(error: &Error) -> Self {
        RResult::RErr(error_answer(error))
    }
}

/// The result of a service or a stream for a plugin in a worker.
pub enum Crossed {
    /// A frame.
    Frame(Vec<u8>),
    /// A frame whose object holds the handle of a stream.
    Stream(Vec<u8>),
    /// The end of a stream.
    End,
}

/// A result, or the frame of an error.
pub struct Crossing(pub Result<Crossed, Vec<u8>>);

impl Crossing {
    /// Creates the result from an error.
    pub fn error(error: &Error) -> Self {
        Self(Err(error_answer(error).into()))
    }
}

impl Refusable for Crossing {
    fn refused() -> Self {
        Self::error(&Error::cancelled())
    }

    fn host_bug(error: &Error) -> Self {
        Self::error(error)
    }
}

/// Writes an error as a frame. Replaces an error that does not fit with a short one of the same
/// kind.
pub(super) fn error_answer(error: &Error) -> RVec<u8> {
    let short = || Frame::write(&Error::new(error.kind, "the error's text is too large"));
    Frame::write(error).or_else(|_| short()).unwrap_or_else(|_| Frame::empty()).into()
}

/// A future of the host that is lent to a plugin.
pub struct Lent<W: Future + Send + Unpin>
where
    W::Output: Refusable,
{
    core: Arc<HostContext>,
    work: Option<W>,
    waiter: Option<u64>,
    _live: Token,
}

impl<W: Future + Send + Unpin> Lent<W>
where
    W::Output: Refusable,
{
    /// Creates the future. Without work, its first poll is refused.
    pub fn new(core: &Arc<HostContext>, work: Option<W>) -> Self {
        let live = core.executor.live_counters().futures.token();
        Self { core: Arc::clone(core), work, waiter: None, _live: live }
    }

    fn give_up_work(&mut self) {
        let work = self.work.take();
        if let Err(error) = host_code(|| drop(work)) {
            self.core.trouble(&error.message);
        }
    }

    fn finish(&mut self, output: W::Output) -> Poll<W::Output> {
        self.give_up_work();
        self.core.forget_waiter(&mut self.waiter);
        Poll::Ready(output)
    }
}

impl<W: Future + Send + Unpin> Future for Lent<W>
where
    W::Output: Refusable,
{
    type Output = W::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<W::Output> {
        let _host = HostCode::enter();
        let this = &mut *self;
        let polled = if this.core.is_live() {
            let Some(work) = &mut this.work else { return this.finish(W::Output::refused()) };
            let executor = &this.core.executor;
            executor.enter(|| host_code(|| Pin::new(work).poll(cx)))
        } else {
            // The context was cancelled: the poller is about to be dropped, or is woken at the
            // context's end.
            Ok(Poll::Pending)
        };
        match polled {
            // A result that arrives after the cancel is discarded, because it could look like
            // success.
            Ok(Poll::Ready(output)) if this.core.is_live() => return this.finish(output),
            Ok(Poll::Ready(_)) => this.give_up_work(),
            Ok(Poll::Pending) => {}
            Err(error) => {
                this.core.trouble(&error.message);
                return this.finish(W::Output::host_bug(&error));
            }
        }
        if this.core.keep_waiter(&mut this.waiter, cx.waker()) {
            Poll::Pending
        } else {
            this.finish(W::Output::refused())
        }
    }
}

impl<W: Future + Send + Unpin> Drop for Lent<W>
where
    W::Output: Refusable,
{
    fn drop(&mut self) {
        let _host = HostCode::enter();
        self.give_up_work();
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
        !self.has_ended() && held.waiters.keep(number, waker, WAITING_MAX)
    }

    fn forget_waiter(&self, number: &mut Option<u64>) {
        let waker = self.held.lock().waiters.forget(number);
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
    use crate::live::Live;
    use crate::runtime::{Runtime, Work};
    use crate::services::{CallerKind, NoServices};
    use crate::watch::{Report, Watch};

    struct Deaf;

    impl Runtime for Deaf {
        fn sleep(&self, _time: Duration) -> Work<()> {
            Box::pin(std::future::pending())
        }

        fn later(&self, _time: Duration, _work: Box<dyn FnOnce() + Send>) {}
    }

    impl Watch for Deaf {
        fn log(&self, _plugin: &PluginName, _level: u8, _text: &str) {}
        fn misbehaved(&self, _report: &Report) {}
        fn trouble(&self, _text: &str) {}
    }

    #[derive(Default)]
    struct Wakes(AtomicUsize);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    struct House {
        executor: Executor,
        core: Arc<HostContext>,
        wakes: Arc<Wakes>,
    }

    impl House {
        fn new() -> Self {
            let executor = Executor::new(1, Arc::new(Deaf), Arc::new(Deaf));
            let guest = executor.guest(PluginName::from("tool-test"));
            let core = HostContext::new(CallerKind::Call, &executor, &guest, Arc::new(NoServices));
            Self { executor, core, wakes: Arc::default() }
        }

        fn poll<W: Future + Send + Unpin>(&self, lent: &mut Lent<W>) -> Poll<W::Output>
        where
            W::Output: Refusable,
        {
            let waker = Waker::from(Arc::clone(&self.wakes));
            Pin::new(lent).poll(&mut Context::from_waker(&waker))
        }

        fn wakes(&self) -> usize {
            self.wakes.0.load(Ordering::SeqCst)
        }
    }

    #[test]
    fn a_cancel_wakes_nothing_and_the_end_wakes_with_a_refusal() {
        let house = House::new();
        let mut lent = Lent::new(&house.core, Some(std::future::pending::<bool>()));
        assert_eq!(house.poll(&mut lent), Poll::Pending);
        house.core.cancel();
        assert_eq!(house.wakes(), 0);
        assert_eq!(house.poll(&mut lent), Poll::Pending);
        house.core.end();
        assert_eq!(house.wakes(), 1);
        assert_eq!(house.poll(&mut lent), Poll::Ready(false));
        let House { executor, core, .. } = &house;
        assert_eq!(executor.live().futures, 1);
        drop(lent);
        assert_eq!(executor.live(), Live { contexts: 1, ..Live::default() });
        assert!(!core.is_live());
    }

    #[test]
    fn a_result_that_comes_with_the_cancel_is_not_given_out() {
        let house = House::new();
        let (sender, receiver) = oneshot::channel::<bool>();
        let work = Box::pin(async move { receiver.await.unwrap_or(false) });
        let mut lent = Lent::new(&house.core, Some(work));
        assert_eq!(house.poll(&mut lent), Poll::Pending);
        house.core.cancel();
        sender.send(true).unwrap();
        assert_eq!(house.poll(&mut lent), Poll::Pending);
        house.core.end();
        assert_eq!(house.poll(&mut lent), Poll::Ready(false));
    }

    #[test]
    fn a_future_that_is_dropped_leaves_its_place_to_the_next() {
        let house = House::new();
        for _ in 0..WAITING_MAX + 1 {
            let mut lent = Lent::new(&house.core, Some(std::future::pending::<bool>()));
            assert_eq!(house.poll(&mut lent), Poll::Pending);
        }
    }
}
