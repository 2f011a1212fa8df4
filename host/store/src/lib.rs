//! The host's data on disk beyond one process: the ledger of requests, tool calls and decisions.
//!
//! This crate reads a session's event stream and knows nothing of the session itself. A
//! [`Recorder`] turns events into [`Record`]s and is pure. A [`Ledger`] writes them on its own
//! thread. A [`Summary`] reads them again.
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

pub use digest::{ArgumentsMark, DigestKey};
pub use error::LedgerError;
pub use file::{Appended, LedgerFile};
pub use ledger::{Ledger, RECORDS_WAITING_MAX};
pub use read::{LINE_BYTES_MAX, Line, Reader};
pub use record::{Record, Stage};
pub use recorder::{Now, Recorder, read_moment, rfc3339};
pub use summary::{Summary, Totals, TurnRow};
