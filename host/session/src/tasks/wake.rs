//! Waits for events that wake an idle session: the end of a task, or a plugin's notification.

use std::sync::Arc;

use crate::Inbox;
use crate::tasks::Board;

/// Waits for events that wake a session, without borrowing the session.
#[derive(Clone)]
pub struct Wake {
    pub(crate) inbox: Inbox,
    pub(crate) tasks: Arc<Board>,
}

impl Wake {
    /// Becomes ready when the session has something to tell its model.
    /// [`Session::turn_woken`](crate::Session::turn_woken) does so.
    pub async fn woken(&self) {
        tokio::select! {
            () = self.inbox.arrived() => {}
            () = self.tasks.has_ended() => {}
        }
    }
}
