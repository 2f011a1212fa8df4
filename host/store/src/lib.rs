//! What a host keeps on disk beyond one process: the ledger of requests, tool calls and decisions.
//!
//! Not the session: this crate reads the stream of events and knows nothing of whoever makes it. A
//! [`Recorder`] turns events into [`Record`]s and is pure; a [`Ledger`] writes them on a thread of
//! its own; [`Summary`] reads them again.
//!
//! Invariants:
//! - Nothing that a person, a model or a tool said stands in a record: names, counts, kinds,
//!   digests.
//! - A session never waits for the ledger, and a record that is lost is counted and told.
//! - Processes share a file without mixing lines; what one of them left torn is cut by the next.

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
