//! What keeps the host's time from skipping, and what lets it: jobs, programs, tests that wait.

use std::sync::Arc;

use super::executor::Inbox;

/// A blocking job that runs.
pub(crate) struct JobToken(pub(super) Arc<Inbox>);

impl Drop for JobToken {
    fn drop(&mut self) {
        self.0.lock().jobs -= 1;
        self.0.changed.notify_all();
    }
}

/// The host's time.
#[derive(Clone)]
pub(crate) struct Time(pub(super) Arc<Inbox>);

impl Time {
    /// Counts a program: while one runs, time does not skip.
    pub(crate) fn hold(&self) -> TimeHeld {
        self.0.lock().programs += 1;
        TimeHeld(Arc::clone(&self.0))
    }
}

/// A program that runs.
pub(crate) struct TimeHeld(Arc<Inbox>);

impl Drop for TimeHeld {
    fn drop(&mut self) {
        self.0.lock().programs -= 1;
        self.0.changed.notify_all();
    }
}

/// A test that waits for an answer.
pub(crate) struct WaitToken(pub(super) Arc<Inbox>);

impl Drop for WaitToken {
    fn drop(&mut self) {
        self.0.lock().waits -= 1;
    }
}
