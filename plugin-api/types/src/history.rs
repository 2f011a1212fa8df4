//! The service `session.history`, through which a plugin reads the conversation.

use serde::{Deserialize, Serialize};

use crate::Message;

crate::operations::service_operations! { $ history_operations, Some("session.history"), answered;
    /// Reads the messages of the session's record, oldest first. Each frame is a `HistoryMessage`.
    [reads] history SESSION_HISTORY "session.history":
        (Option<HistoryRead>) => HistoryAnswer + stream;
}

/// The range of messages to read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HistoryRead {
    /// The number of the first message to read. 0 is the first of the record.
    #[serde(skip_serializing_if = "is_zero")]
    pub from: u64,
    /// The maximum number of messages, counted from the end. If absent, all messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<u64>,
    /// Whether to read only messages that the model no longer gets as they were said: those that a
    /// gc left out or shortened.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub only_collected: bool,
}

/// The answer before the first message.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct HistoryAnswer {
    /// The number of messages in the record.
    pub messages: u64,
    /// The stream of the requested messages.
    pub handle: u64,
}

/// A message of the record.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct HistoryMessage {
    /// The number of the message, counted from 0.
    pub number: u64,
    /// The number of its turn, counted from 1 since the session began. 0 from an older host, and
    /// for messages before the first prompt.
    #[serde(skip_serializing_if = "is_zero")]
    pub turn: u64,
    /// The message as it was said. If it is larger than a frame, its largest parts are missing.
    pub message: Message,
    /// Whether a gc removed it from the messages that the model gets.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_collected: bool,
    /// Whether the model gets a shorter form of it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_shortened: bool,
    /// Whether the model never got it because its request failed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_unsent: bool,
}

impl HistoryMessage {
    /// Creates a message. Only the host needs this.
    pub fn new(number: u64, message: Message) -> Self {
        Self { number, message, ..Self::default() }
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}
