//! A conversation, independent of how it is stored.

use std::collections::BTreeMap;

use jaato_types::{Message, SessionId};

/// A conversation, independent of how it is stored.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Transcript {
    /// The session's id. For an imported session, the id that the other program gave it.
    pub id: SessionId,
    /// The session's name for users.
    pub name: String,
    /// The workspace's root, as text.
    pub workspace: String,
    /// When the session began, in milliseconds since 1970.
    pub begun_ms: i64,
    /// The messages, oldest first.
    pub messages: Vec<TranscriptMessage>,
    /// The contents that the messages refer to, by their SHA-256: attached files, and whole outputs
    /// of tools.
    pub attachments: BTreeMap<String, Vec<u8>>,
    /// The folder of the attachments, which results name with outputs. Empty if none does.
    pub attachments_folder: String,
}

/// A message of a [`Transcript`].
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TranscriptMessage {
    /// When it was sent or received, in milliseconds since 1970.
    pub at_ms: i64,
    /// The message.
    pub message: Message,
    /// For an answer, the model that gave it: `provider/model`.
    pub model: Option<String>,
    /// The message's special state for users, for example one of [`transcript_note`].
    pub note: Option<String>,
}

/// The special states of a message that jaato itself uses.
pub mod transcript_note {
    /// A prompt that the model never got, because its request failed.
    pub const NOT_SENT: &str = "not sent";
    /// An answer that broke off.
    pub const BROKE_OFF: &str = "broke off";
    /// A message that stays in the record and is no longer sent to the model.
    pub const COLLECTED: &str = "collected";
}

impl TranscriptMessage {
    /// Returns true if the model receives the message with the next request.
    pub fn is_sent(&self) -> bool {
        let note = self.note.as_deref();
        note != Some(transcript_note::NOT_SENT) && note != Some(transcript_note::COLLECTED)
    }
}
