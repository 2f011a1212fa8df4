//! Why a ledger cannot be written.

use std::io;
use std::path::PathBuf;

/// Why a ledger cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// No path is known for it.
    #[error("there is no ledger: {0}")]
    NoPlace(String),
    /// The file is not a ledger and must not be changed.
    #[error("`{0}` is not a ledger, so nothing is added to it")]
    NotALedger(PathBuf),
    /// The system refused.
    #[error("cannot write the ledger `{0}`: {1}")]
    Io(PathBuf, io::Error),
    /// The writing thread cannot be started.
    #[error("cannot write the ledger: {0}")]
    NoThread(io::Error),
    /// The disk is slower than the session.
    #[error("the disk of the ledger `{0}` is too slow")]
    TooSlow(PathBuf),
}
