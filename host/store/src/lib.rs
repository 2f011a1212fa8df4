//! The host's data on disk beyond one process: the ledger of requests, tool calls and decisions.
//!
//! This crate reads a session's event stream and knows nothing about the session itself. A
//! [`EventRecorder`] turns events into [`LedgerRecord`]s and is pure. A [`Ledger`] writes them on
//! its own thread. A [`LedgerFileSummary`] reads them again.
//!
//! Invariants:
//! - A record contains nothing that a user, a model or a tool said, only names, counts, kinds and
//!   digests.
//! - A session never waits for the ledger, and lost records are counted and reported.
//! - Processes share a file without mixing lines, and remove each other's torn records.

mod digest;
mod error;
mod file;
mod ledger;
mod read;
mod record;
mod recorder;
mod summary;
mod writer;

pub use digest::{ArgumentsDigest, DigestKey};
pub use error::LedgerError;
pub use file::{AppendResult, LedgerFile};
pub use ledger::{Ledger, RECORDS_WAITING_MAX};
pub use read::{LINE_BYTES_MAX, LedgerLine, LedgerReader};
pub use record::{LedgerRecord, LedgerStage};
pub use recorder::{EventRecorder, EventTime, format_rfc3339, parse_rfc3339};
pub use summary::{LedgerFileSummary, TurnRow, UsageTotals};
