//! Waits for events that wake an idle session: the end of a task, or a plugin's notification.

use std::sync::Arc;

use crate::Inbox;
use crate::tasks::TaskBoard;

/// Waits for events that wake a session, without borrowing the session.
#[derive(Clone)]
pub struct WakeWaiter {
    pub(crate) inbox: Inbox,
    pub(crate) tasks: Arc<TaskBoard>,
}

impl WakeWaiter {
    /// Becomes ready when the session has something to tell its model.
    /// [`Session::run_woken_turn`](crate::Session::run_woken_turn) does so.
    pub async fn wait_for_wake(&self) {
        tokio::select! {
            () = self.inbox.wait_for_message() => {}
            () = self.tasks.wait_for_due_outcome() => {}
        }
    }
}
