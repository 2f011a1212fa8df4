//! Stores the changes of the file tools before they are applied, so that a later session or another
//! process can undo them, even after a kill.
//!
//! A change is a list of paths with the state of each before and after. The bytes before are stored
//! by their digest ([`ContentStore`]). While a change is being applied, its record is a file in
//! `pending/`, which the process holds locked. A finished change is a line of `journal.jsonl`. If a
//! process dies, its unlocked file remains, with everything needed to roll the change back
//! ([`History::take_unfinished_changes`], [`plan_recovery`]).
//!
//! The module uses blocking files on the host's side, and is independent of tools and of the
//! changed files' environment. It does not sync files to disk: a killed process loses nothing that
//! it wrote, but a power failure may lose the last changes.
//!
//! Invariants: a change is applied only after [`History::begin_change`] returns, so the replaced
//! content is stored by then. Content is never removed while a stored or pending change refers to
//! it. Any number of processes may use one folder.

mod bounds;
mod change;
mod contents;
mod error;
mod file_path;
mod index;
mod journal;
mod lock;
mod pending;
mod recovery;
mod store;
#[cfg(test)]
mod tests;
mod timeline;

pub use bounds::HistoryLimits;
pub use change::{
    Backup, BackupId, ChangeId, ChangeOutcome, FileTransition, ListedChange, NewChange,
    RecordedChange, SessionPeriod, StoredFileState,
};
pub use contents::{CONTENT_BYTES_MAX, ContentId, ContentWriter};
pub use error::HistoryError;
pub use file_path::FilePath;
pub use pending::PendingChange;
pub use recovery::{CurrentContent, RecoveryPlan, plan_recovery};
pub use store::History;
pub use timeline::UndoStep;
