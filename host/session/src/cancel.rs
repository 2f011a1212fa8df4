//! A flag that says "stop" and wakes the tasks that wait for it.
//!
//! Setting it is idempotent and cannot be undone, and each turn has its own token. A child is
//! cancelled together with its parents. Cancelling a child does not affect them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::future::{FutureExt, select_all};
use jaato_types::Error;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// A token that is cancelled at most once. Clones share it.
#[derive(Debug, Clone)]
pub struct Cancel {
    /// The token's own flag first, then those of its ancestors. Never empty.
    flags: Vec<Arc<CancelTokenFlag>>,
}

/// Not a `watch` channel, because that wakes its waiters in a random order, and a run must be
/// exactly repeatable.
#[derive(Debug, Default)]
struct CancelTokenFlag {
    set: AtomicBool,
    waiting: Notify,
    /// Why, if it was not the user's wish.
    reason: OnceLock<Error>,
}

impl CancelTokenFlag {
    fn is_set(&self) -> bool {
        self.set.load(Ordering::SeqCst)
    }

    async fn wait_until_set(&self) {
        let notified = self.waiting.notified();
        tokio::pin!(notified);
        // Registers before it checks, so that it does not miss a flag that is set between the two.
        notified.as_mut().enable();
        if !self.is_set() {
            notified.await;
        }
    }
}

impl Cancel {
    /// Creates a token that is not cancelled.
    pub fn new() -> Self {
        Self { flags: vec![Arc::default()] }
    }

    /// Creates a token that is cancelled together with this one, and can be cancelled alone.
    #[must_use]
    pub fn child_token(&self) -> Self {
        let mut flags = Vec::with_capacity(self.flags.len() + 1);
        flags.push(Arc::default());
        flags.extend(self.flags.iter().cloned());
        Self { flags }
    }

    /// Cancels it. May be called from any thread, any number of times.
    pub fn cancel(&self) {
        if let Some(own) = self.flags.first() {
            own.set.store(true, Ordering::SeqCst);
            own.waiting.notify_waiters();
        }
    }

    /// Cancels it because of a limit, for example a deadline. A turn that this ends has reached a
    /// limit and has this error. Does nothing if it is already cancelled.
    pub fn cancel_at_limit(&self, reason: Error) {
        if let Some(own) = self.flags.first()
            && !self.is_cancelled()
        {
            // Another thread may have been faster with another limit.
            let _ = own.reason.set(reason);
            self.cancel();
        }
    }

    /// Cancels it after a time, like [`Cancel::cancel_at_limit`]. Call it on a tokio runtime.
    pub fn cancel_after(&self, time: Duration, reason: Error) -> Deadline {
        let token = self.clone();
        Deadline(tokio::spawn(async move {
            tokio::time::sleep(time).await;
            token.cancel_at_limit(reason);
        }))
    }

    /// Returns the limit that cancelled it or an ancestor, if it was a limit.
    pub fn limit_error(&self) -> Option<&Error> {
        self.flags.iter().find_map(|flag| flag.reason.get())
    }

    /// Returns true if it or an ancestor is cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.flags.iter().any(|flag| flag.is_set())
    }

    /// Waits until it or an ancestor is cancelled. Ready at once if that is already so.
    pub async fn cancelled(&self) {
        let waits = self.flags.iter().map(|flag| flag.wait_until_set().boxed());
        select_all(waits).await;
    }
}

/// The time after which a token is cancelled. Dropping it removes the deadline.
#[derive(Debug)]
#[must_use = "dropping it removes the deadline"]
pub struct Deadline(JoinHandle<()>);

impl Drop for Deadline {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Default for Cancel {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cancelling_a_child_reaches_its_descendants_but_not_its_parent() {
        let parent = Cancel::new();
        let child = parent.child_token();
        let grandchild = child.child_token();
        child.cancel();
        assert_eq!([&parent, &child, &grandchild].map(Cancel::is_cancelled), [false, true, true]);
    }

    #[test]
    fn first_cancellation_decides_whether_it_was_a_limit() {
        let limit = || Error::new(jaato_types::ErrorKind::LimitReached, "too late");
        let parent = Cancel::new();
        let [first, second] = [parent.child_token(), parent.child_token()];
        first.cancel_at_limit(limit());
        parent.cancel();
        second.cancel_at_limit(limit());
        assert_eq!([&first, &second].map(Cancel::limit_error), [Some(&limit()), None]);
    }

    #[tokio::test]
    async fn waiting_ends_when_an_ancestor_is_cancelled() {
        let parent = Cancel::new();
        let child = parent.child_token();
        let wait = child.cancelled();
        tokio::pin!(wait);
        assert!(wait.as_mut().now_or_never().is_none());
        parent.cancel();
        wait.await;
        child.cancelled().await;
    }
}
