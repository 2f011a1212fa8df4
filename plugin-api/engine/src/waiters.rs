//! Wakers of tasks that wait for an event, by number.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;

/// Wakers by the number of the waiting task.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    last: u64,
    wakers: BTreeMap<u64, Waker>,
}

impl Waiters {
    /// Keeps the waker for a number, or for a new number. Returns false if `max` wakers are kept
    /// already.
    pub(crate) fn store_waker(
        &mut self,
        number: &mut Option<u64>,
        waker: &Waker,
        max: usize,
    ) -> bool {
        if number.is_none() && self.wakers.len() >= max {
            return false;
        }
        self.last += 1;
        let number = *number.get_or_insert(self.last);
        self.wakers
            .entry(number)
            .and_modify(|kept| kept.clone_from(waker))
            .or_insert_with(|| waker.clone());
        true
    }

    /// Removes and returns a waker, which must be dropped without a lock.
    pub(crate) fn remove_waker(&mut self, number: &mut Option<u64>) -> Option<Waker> {
        self.wakers.remove(&number.take()?)
    }

    /// Removes and returns all wakers, which must be woken without a lock.
    pub(crate) fn take_wakers(&mut self) -> impl Iterator<Item = Waker> + use<> {
        std::mem::take(&mut self.wakers).into_values()
    }
}

/// An event that tasks can wait for.
#[derive(Debug, Default)]
pub(crate) struct WakeSignal(Mutex<Waiters>);

impl WakeSignal {
    /// Wakes all waiting tasks to check again.
    pub(crate) fn notify(&self) {
        let woken = self.0.lock().take_wakers();
        woken.for_each(Waker::wake);
    }

    /// Waits until `is_so` returns true. Every change of the checked state must call
    /// [`WakeSignal::notify`].
    pub(crate) fn wait_until<F: Fn() -> bool>(&self, is_so: F) -> SignalFuture<'_, F> {
        SignalFuture { signal: self, is_so, number: None }
    }
}

/// Waits for a [`WakeSignal`].
pub(crate) struct SignalFuture<'a, F> {
    signal: &'a WakeSignal,
    is_so: F,
    number: Option<u64>,
}

impl<F: Fn() -> bool + Unpin> Future for SignalFuture<'_, F> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        // Registered before the check, so that a concurrent change is not missed.
        this.signal.0.lock().store_waker(&mut this.number, cx.waker(), usize::MAX);
        if (this.is_so)() { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl<F> Drop for SignalFuture<'_, F> {
    fn drop(&mut self) {
        let waker = self.signal.0.lock().remove_waker(&mut self.number);
        drop(waker);
    }
}
