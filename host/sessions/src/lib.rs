//! Saved sessions: one folder per session with an append-only file of records, the attachments
//! next to it, and an index over all sessions that can be rebuilt.
//!
//! This crate stores records and knows nothing about a running session. A [`SessionStore`] creates,
//! lists and deletes sessions. A [`SessionWriter`] owns one session and appends records. A
//! [`SessionReader`] reads records, also while another process appends. A [`SessionIndex`] finds
//! sessions by their texts.
//!
//! A [`Transcript`] is a conversation outside of the store. [`to_markdown`], [`to_html`] and
//! [`to_json_lines`] export one. [`import_file`] reads one from the file of another program, and
//! never writes there.
//!
//! Invariants:
//! - A line is a whole record with a valid checksum, or it is the torn end of the file.
//! - Only the process that claimed a session last appends to it.
//! - Records of unknown types are kept and returned as they are.
//! - The index holds nothing that the files do not hold.

mod attachments;
mod disk;
mod effective;
mod error;
mod export;
mod find;
mod fork;
mod import;
mod index;
mod line;
mod owner;
mod plain;
mod reader;
mod record;
mod removal;
mod replay;
mod store;
mod turns;
mod writer;

pub use attachments::message_blobs;
pub use disk::{DiskHook, DiskStep};
pub use effective::effective_records;
pub use error::SessionStoreError;
pub use export::{
    AgentTranscript, TRANSCRIPT_FORMAT, TRANSCRIPT_VERSION, Transcript, TranscriptMessage, to_html,
    to_html_with_blobs, to_json_lines, to_markdown, to_mermaid, to_plantuml, to_sequence_json,
    transcript_note,
};
pub use fork::foreign_session_id;
pub use import::{
    FoundSession, IMPORT_BYTES_MAX, ImportError, ImportSource, ImportedSession, detect_source,
    find_sessions, import_file,
};
pub use index::{IndexProblem, IndexedSession, SearchHit, SessionIndex};
pub use line::UnwritableRecord;
pub use owner::OwnerState;
pub use reader::{ReadProblem, SessionReader};
pub use record::{
    FORMAT_VERSION, SessionHeader, SessionOpener, SessionRecord, StoredRecord, record_type,
};
pub use removal::ExpiredSessions;
pub use replay::{HistoryChange, ReplayedEntry, ReplayedHistory};
pub use store::{OpenedSession, SessionStore};
pub use turns::{NumberedPrompt, OpenedRewind};
pub use writer::{Durability, SessionWriter};
