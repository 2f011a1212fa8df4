//! The service `session.history`: a plugin reads the conversation.

use serde::{Deserialize, Serialize};

use crate::Message;

crate::operations::service_operations! { $ history_operations, Some("session.history"), answered;
    /// Reads the messages of the session's record, oldest first. Each frame is a `HistoryMessage`.
    [reads] history SESSION_HISTORY "session.history":
        (Option<HistoryRead>) => HistoryAnswer + stream;
}

/// Which messages to read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HistoryRead {
    /// Only those from this number on; 0 is the first of the record.
    #[serde(skip_serializing_if = "is_zero")]
    pub from: u64,
    /// Only the last so many of them; all where this is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<u64>,
}

/// What is known before the first message.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct HistoryAnswer {
    /// Messages of the record.
    pub messages: u64,
    /// The stream of those that were asked for.
    pub handle: u64,
}

/// A message of the record.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct HistoryMessage {
    /// Its number, from 0.
    pub number: u64,
    /// The message as it was said. What is larger than a frame comes without its largest parts.
    pub message: Message,
    /// Whether a gc has left it out of what the model is sent.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_collected: bool,
    /// Whether the model was never sent it: its request failed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_unsent: bool,
}

impl HistoryMessage {
    /// Makes a message; the host does.
    pub fn new(number: u64, message: Message) -> Self {
        Self { number, message, is_collected: false, is_unsent: false }
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}
