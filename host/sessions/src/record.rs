//! The records of a session file.

use jaato_types::{Message, SessionId};
use serde::{Deserialize, Serialize};
use serde_json::{Value, to_value};

/// The version of the format that this program writes. It reads this version and older ones.
pub const FORMAT_VERSION: u32 = 1;

/// The types of records that this program writes. Other types are kept.
pub mod record_type {
    /// The first record of a file: a [`SessionHeader`](super::SessionHeader).
    pub const HEADER: &str = "session";
    /// A new entry of the history.
    pub const MESSAGE: &str = "message";
    /// Another change of the history, by `"change"`: `{"change": "replace", "index": N, "entry":
    /// …}`, `{"change": "cut", "length": N}` removes the entries from an index on, and
    /// `{"change": "forget", "index": N, "count": N}` counts some entries no longer.
    pub const CHANGE: &str = "change";
    /// A gc changes the history next: `{}`. That can be taken back.
    pub const COLLECTION: &str = "collection";
    /// A call that may change something is about to run: `{"call_id": …, "name": …}`.
    pub const CALL_STARTED: &str = "call_started";
    /// The result of a call, while other calls of the same answer still run: a `ToolResult`.
    pub const CALL_ENDED: &str = "call_ended";
    /// The approval mode and the user's answers from this record on.
    pub const RULES: &str = "rules";
    /// The model, the usage and what runs in the background from this record on.
    pub const STATE: &str = "state";
    /// A change of the objects: `{"changes": …, "bytes": the attachment with the bytes of hidden
    /// values, or null}`.
    pub const OBJECTS: &str = "objects";
    /// The state of a plugin's instance from this record on: `{"plugin": …, "json": …}`, or
    /// `{"plugin": …, "attachment": name}` if it is not JSON.
    pub const PLUGIN_STATE: &str = "plugin_state";
    /// The history as of an earlier record continues here: `{"seq": …}`.
    pub const REWIND: &str = "rewind";
    /// The session has a new name: `{"name": …}`.
    pub const NAME: &str = "name";
}

/// The first record of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionHeader {
    /// The version of the format.
    pub version: u32,
    /// The session's id.
    pub id: String,
    /// The workspace's root, as text.
    pub workspace: String,
    /// The session that this one was forked from, and the last record that both share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<(String, u64)>,
    /// The session that opened this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opener: Option<SessionOpener>,
}

impl SessionHeader {
    /// Creates the header of a new session, without an original and without an opener.
    pub(crate) fn new(id: &SessionId, workspace: &str) -> Self {
        Self {
            version: FORMAT_VERSION,
            id: id.as_str().to_owned(),
            workspace: workspace.to_owned(),
            forked_from: None,
            opener: None,
        }
    }

    pub(crate) fn to_record(&self) -> SessionRecord {
        // Its maps have text keys.
        SessionRecord::new(record_type::HEADER, to_value(self).unwrap_or_default())
    }
}

/// The session that opened another one, and the name that it gave it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionOpener {
    /// The id of the session that opened it.
    pub session: String,
    /// The name of the opened session for users: `researcher`.
    pub agent: String,
}

/// A record to append.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionRecord {
    /// One of [`record_type`], or a later one.
    pub kind: String,
    /// The content, whose form the type determines.
    pub data: Value,
}

impl SessionRecord {
    /// Creates a record.
    pub fn new(kind: &str, data: Value) -> Self {
        Self { kind: kind.to_owned(), data }
    }
}

/// A record as it is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredRecord {
    /// The number of the record in its file. The header has 0.
    pub seq: u64,
    /// When it was appended, in milliseconds since 1970.
    pub at_ms: i64,
    /// The owner that appended it: it increases with each claim.
    pub epoch: u64,
    /// The record.
    pub record: SessionRecord,
}

/// The text of an entry that a search finds.
#[derive(Debug)]
pub(crate) struct IndexedText {
    pub(crate) text: String,
    /// Whether it is a message of the user.
    pub(crate) is_prompt: bool,
    /// Whether the model got it, if it is a message of the user.
    pub(crate) is_sent: bool,
}

impl IndexedText {
    /// Reads an entry.
    pub(crate) fn from_entry(entry: &Value) -> Option<Self> {
        let message = Message::deserialize(entry).ok()?;
        let (is_prompt, is_sent) = (message.is_prompt(), entry["mark"] != "unsent");
        Some(Self { text: message.text(), is_prompt, is_sent })
    }
}
