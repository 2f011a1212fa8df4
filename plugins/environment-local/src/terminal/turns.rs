//! Orders the callers that write to a terminal: first come, first served.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::task::{Poll, Waker};

use parking_lot::{Mutex, MutexGuard};

/// A queue of turns.
#[derive(Default)]
pub(super) struct WriterQueue(Mutex<WriterQueueState>);

#[derive(Default)]
struct WriterQueueState {
    last: u64,
    waiting: VecDeque<(u64, Option<Waker>)>,
}

/// A place in the queue. Dropping it gives the turn to the next caller.
pub(super) struct WriterQueuePosition<'a> {
    turns: &'a WriterQueue,
    number: u64,
}

impl WriterQueue {
    /// Joins the end of the queue.
    pub(super) fn join_queue(&self) -> WriterQueuePosition<'_> {
        let mut queue = self.lock_queue();
        queue.last += 1;
        let number = queue.last;
        queue.waiting.push_back((number, None));
        WriterQueuePosition { turns: self, number }
    }

    fn lock_queue(&self) -> MutexGuard<'_, WriterQueueState> {
        self.0.lock()
    }
}

impl WriterQueuePosition<'_> {
    /// Waits for this turn.
    pub(super) async fn wait_for_turn(&self) {
        poll_fn(|cx| {
            let mut queue = self.turns.lock_queue();
            match queue.waiting.iter_mut().position(|place| place.0 == self.number) {
                Some(0) | None => Poll::Ready(()),
                Some(at) => {
                    queue.waiting[at].1 = Some(cx.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await;
    }
}

impl Drop for WriterQueuePosition<'_> {
    fn drop(&mut self) {
        let next = {
            let mut queue = self.turns.lock_queue();
            queue.waiting.retain(|place| place.0 != self.number);
            queue.waiting.front_mut().and_then(|next| next.1.take())
        };
        if let Some(next) = next {
            next.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::Context;

    use super::*;

    #[test]
    fn writers_take_turns_in_order_and_dropped_writers_are_skipped() {
        let turns = WriterQueue::default();
        let (first, second, third) = (turns.join_queue(), turns.join_queue(), turns.join_queue());
        let comes = |turn: &WriterQueuePosition<'_>| {
            pin!(turn.wait_for_turn()).poll(&mut Context::from_waker(Waker::noop())).is_ready()
        };
        assert_eq!([comes(&first), comes(&second), comes(&third)], [true, false, false]);
        drop(second);
        assert!(!comes(&third));
        drop(first);
        assert!(comes(&third));
    }
}
