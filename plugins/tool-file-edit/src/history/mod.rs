//! What the file tools changed, kept before it happens: so that a later session, or another
//! process, can undo it, also after a kill.
//!
//! A change is a list of paths with the state of each before and after. The bytes of each state
//! before are kept by their digest ([`Contents`]). A change that is being applied stands in
//! `pending/`, in a file that the living process holds locked; one that is finished is a line of
//! `journal.jsonl`. A process that dies leaves its unlocked file behind, and with it all that is
//! needed to roll the change back ([`History::unfinished`], [`plan_recovery`]).
//!
//! Plain blocking files on the host's side: nothing here knows of tools or of the environment in
//! which the changed files lie. Nothing is synced to the disk: a killed process loses nothing of
//! what it wrote, a machine without power may lose its last changes.
//!
//! Invariants: a change is applied only after [`History::begin`] returned, so what it replaces is
//! kept by then. Nothing is taken away that a change names which is kept or pending. Any number of
//! processes may work in one folder.

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

pub use bounds::Bounds;
pub use change::{
    Backup, BackupId, Change, ChangeId, FileStep, Kept, ListedChange, NewChange, Outcome,
};
pub use contents::{CONTENT_BYTES_MAX, ContentId, ContentWriter};
pub use error::HistoryError;
pub use file_path::FilePath;
pub use pending::Pending;
pub use recovery::{Found, Recovery, plan_recovery};
pub use store::History;
pub use timeline::Step;
