//! Deadlines of calls and questions, and what pauses them: waiting for a model, for the user or in
//! a queue.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use jaato_types::{Error, ErrorKind, Result};

use crate::clock::sleep_while_unheld;
use crate::{Cancel, SessionClock};

/// Pauses a call's deadline while anything holds it. Clones pause the same deadline.
#[derive(Debug, Clone, Default)]
pub struct DeadlineHold(Arc<DeadlineHoldInner>);

#[derive(Debug, Default)]
struct DeadlineHoldInner {
    held: AtomicUsize,
    /// The deadline of the call that waits for this one.
    outer: Option<DeadlineHold>,
}

/// A guard that pauses the deadline until it is dropped.
#[derive(Debug)]
#[must_use]
pub struct DeadlinePause(DeadlineHold);

impl DeadlineHold {
    /// Creates one for a call that another call waits for. Holding it holds that one too.
    pub fn nested_in(outer: &Self) -> Self {
        Self(Arc::new(DeadlineHoldInner {
            outer: Some(outer.clone()),
            ..DeadlineHoldInner::default()
        }))
    }

    /// Pauses the deadline, and that of each call that waits for this one.
    pub fn pause(&self) -> DeadlinePause {
        self.add_hold();
        DeadlinePause(self.clone())
    }

    /// Returns true while anything holds it.
    pub(crate) fn is_held(&self) -> bool {
        self.0.held.load(Relaxed) > 0
    }

    fn add_hold(&self) {
        self.0.held.fetch_add(1, Relaxed);
        if let Some(outer) = &self.0.outer {
            outer.add_hold();
        }
    }

    fn release_hold(&self) {
        self.0.held.fetch_sub(1, Relaxed);
        if let Some(outer) = &self.0.outer {
            outer.release_hold();
        }
    }
}

/// The deadline of an answer. Every question to a plugin has one.
pub struct AnswerDeadline<'a> {
    /// The clock that counts it.
    pub clock: Arc<dyn SessionClock>,
    /// Ends the wait.
    pub cancel: &'a Cancel,
    /// The longest wait in milliseconds, without the time in which the deadline is paused.
    pub ms: u64,
    /// The error text at the deadline.
    pub late: String,
}

impl AnswerDeadline<'_> {
    /// Waits for the answer. The flag that `ask` gets is set when no answer is wanted, and its hold
    /// pauses the deadline.
    ///
    /// # Errors
    /// The error of the answer, `cancelled`, or `timeout` at the deadline.
    pub async fn wait_for_answer<T, F>(
        self,
        ask: impl FnOnce(Cancel, DeadlineHold) -> F,
    ) -> Result<T>
    where
        F: Future<Output = Result<T>>,
    {
        let Self { clock, cancel, ms, late } = self;
        let (stop, hold) = (cancel.child_token(), DeadlineHold::default());
        let answer = tokio::select! {
            biased;
            answer = ask(stop.clone(), hold.clone()) => answer,
            () = cancel.cancelled() => Err(Error::cancelled()),
            () = sleep_while_unheld(clock, ms, hold) => Err(Error::new(ErrorKind::Timeout, late)),
        };
        stop.cancel();
        answer
    }
}

impl Drop for DeadlinePause {
    fn drop(&mut self) {
        self.0.release_hold();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pausing_an_inner_call_pauses_the_outer_call() {
        let outer = DeadlineHold::default();
        let inner = DeadlineHold::nested_in(&outer);
        let (first, second) = (inner.pause(), inner.pause());
        assert!(inner.is_held() && outer.is_held());
        drop(first);
        assert!(inner.is_held() && outer.is_held());
        drop(second);
        assert!(!inner.is_held() && !outer.is_held());
        let _held = outer.pause();
        assert!(!inner.is_held(), "a waiting call does not stop other calls");
    }
}
