//! The service `notify`, through which a plugin sends the model a message and wakes an idle
//! session.

use serde::{Deserialize, Serialize};

crate::operations::service_operations! { $ notify_operations, Some("notify"), answered;
    /// Sends a message to the session's model with its next request. If no turn is running, it
    /// starts one.
    notify NOTIFY "notify": NotifyRequest => NotifyAnswer;
}

/// The maximum number of notifications per minute from a plugin to a session.
pub const NOTIFICATIONS_PER_MINUTE_MAX: u32 = 6;
/// The maximum length of a notification, in bytes of UTF-8.
pub const NOTIFICATION_BYTES_MAX: usize = 16 * 1024;

/// A message to the model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NotifyRequest {
    /// The text. The model and the user see which plugin sent it.
    pub text: String,
}

/// The answer: the message waits for the next request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct NotifyAnswer {}
