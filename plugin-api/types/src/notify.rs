//! The service `notify`: a plugin has something for the model, and wakes an idle session with it.

use serde::{Deserialize, Serialize};

crate::operations::service_operations! { $ notify_operations, Some("notify"), answered;
    /// Gives the session's model a text with its next request, and begins a turn for it if none
    /// runs.
    notify NOTIFY "notify": Notify => Notified;
}

/// Notifications that a plugin may send a session in a minute.
pub const NOTIFICATIONS_PER_MINUTE_MAX: u32 = 6;
/// Longest notification, in bytes of UTF-8.
pub const NOTIFICATION_BYTES_MAX: usize = 16 * 1024;

/// Something for the model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Notify {
    /// What to tell it. The model and the person are told which plugin says so.
    pub text: String,
}

/// It waits for the next request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Notified {}
