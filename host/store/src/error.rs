//! Why a ledger cannot be written.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why a ledger cannot be written.
#[derive(Debug)]
pub enum LedgerError {
    /// Nobody says where it lies.
    NoPlace(String),
    /// The file holds something else, which must not be touched.
    NotALedger(PathBuf),
    /// The system refused.
    Io(PathBuf, io::Error),
    /// The thread that writes cannot be started.
    NoThread(io::Error),
    /// The disk is slower than the session.
    TooSlow(PathBuf),
}

impl fmt::Display for LedgerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPlace(cause) => write!(f, "there is no ledger: {cause}"),
            Self::NotALedger(path) => {
                write!(f, "`{}` is no ledger, so nothing is added to it", path.display())
            }
            Self::Io(path, error) => {
                write!(f, "cannot write the ledger `{}`: {error}", path.display())
            }
            Self::NoThread(error) => write!(f, "cannot write the ledger: {error}"),
            Self::TooSlow(path) => {
                write!(f, "the disk of the ledger `{}` is too slow", path.display())
            }
        }
    }
}

impl std::error::Error for LedgerError {}
