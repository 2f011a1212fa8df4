//! Holds the user's messages during a turn until they join the next request.

use std::collections::VecDeque;
use std::sync::Arc;

use jaato_types::{Error, ErrorKind, Result};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

/// The maximum number of waiting messages. A user does not reach it. A program that floods gets an
/// error.
pub const WAITING_MESSAGES_MAX: usize = 64;

/// A message that waits for the next request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum InboxMessage {
    /// A message of the user.
    Said(String),
    /// A plugin's message for the model.
    Notified {
        /// The plugin.
        from: String,
        /// The message.
        text: String,
    },
}

/// Takes messages for a session, from any thread, while a turn runs. Clones share the inbox.
///
/// A message joins the turn's next request, after the results of the tools that run at that moment.
/// If the model has given its final answer by then, the turn continues with the message. A message
/// between turns joins the next prompt.
#[derive(Clone, Default)]
pub struct Inbox(Arc<InboxInner>);

#[derive(Default)]
struct InboxInner {
    messages: Mutex<InboxMessages>,
    /// Wakes a turn that waits for tasks, and code that waits between turns.
    arrived: Notify,
}

#[derive(Default)]
struct InboxMessages {
    waiting: VecDeque<InboxMessage>,
    /// The number of messages that have a place and are being announced.
    promised: usize,
}

impl Inbox {
    /// Takes a user's message.
    ///
    /// # Errors
    /// When it is empty, or [`WAITING_MESSAGES_MAX`] messages are already waiting.
    pub fn send_message(&self, text: impl Into<String>) -> Result<()> {
        let text = text.into();
        if text.trim().is_empty() {
            return Err(Error::new(ErrorKind::InvalidArguments, "the message is empty"));
        }
        self.add_message(InboxMessage::Said(text), || ())
    }

    /// Takes a plugin's message for the model, which wakes an idle session. `announce` runs first,
    /// once there is a place for the message, so that an unannounced message wakes nothing.
    ///
    /// # Errors
    /// As [`Inbox::send_message`].
    pub(crate) fn add_notification(
        &self,
        from: &str,
        text: String,
        announce: impl FnOnce(),
    ) -> Result<()> {
        self.add_message(InboxMessage::Notified { from: from.to_owned(), text }, announce)
    }

    fn add_message(&self, message: InboxMessage, announce: impl FnOnce()) -> Result<()> {
        let mut messages = self.lock_messages();
        if messages.waiting.len() + messages.promised >= WAITING_MESSAGES_MAX {
            let text = format!("{WAITING_MESSAGES_MAX} messages are already waiting for the model");
            return Err(Error::new(ErrorKind::LimitReached, text)
                .with_hint("wait until the model has read them"));
        }
        messages.promised += 1;
        // Unlock first, because the announcement's receiver may look into this inbox.
        drop(messages);
        announce();
        let mut messages = self.lock_messages();
        messages.promised -= 1;
        messages.waiting.push_back(message);
        drop(messages);
        self.0.arrived.notify_waiters();
        Ok(())
    }

    /// Counts the waiting messages.
    pub fn waiting_count(&self) -> usize {
        self.lock_messages().waiting.len()
    }

    /// Takes back the user's messages that no request has taken, in order.
    pub fn take_back_messages(&self) -> Vec<String> {
        let mut messages = self.lock_messages();
        let (said, others): (VecDeque<InboxMessage>, VecDeque<InboxMessage>) =
            std::mem::take(&mut messages.waiting)
                .into_iter()
                .partition(|message| matches!(message, InboxMessage::Said(_)));
        messages.waiting = others;
        let text = |message: InboxMessage| match message {
            InboxMessage::Said(text) => Some(text),
            InboxMessage::Notified { .. } => None,
        };
        said.into_iter().filter_map(text).collect()
    }

    pub(crate) fn take_messages(&self) -> Vec<InboxMessage> {
        self.lock_messages().waiting.drain(..).collect()
    }

    /// Lists the plugins that have messages for the model.
    pub(crate) fn notifying_plugins(&self) -> Vec<String> {
        let from = |message: &InboxMessage| match message {
            InboxMessage::Said(_) => None,
            InboxMessage::Notified { from, .. } => Some(from.clone()),
        };
        self.lock_messages().waiting.iter().filter_map(from).collect()
    }

    /// Becomes ready when a message waits.
    pub(crate) async fn wait_for_message(&self) {
        loop {
            let arrived = self.0.arrived.notified();
            tokio::pin!(arrived);
            arrived.as_mut().enable();
            if self.waiting_count() > 0 {
                return;
            }
            arrived.await;
        }
    }

    fn lock_messages(&self) -> MutexGuard<'_, InboxMessages> {
        self.0.messages.lock()
    }
}
