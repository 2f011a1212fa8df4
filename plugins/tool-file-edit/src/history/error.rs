//! Errors of the history.

use std::io;
use std::path::{Path, PathBuf};

use super::{BackupId, ChangeId, ContentId, FilePath};

/// An error of the history.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// The system reported an error.
    #[error("the history of changes: cannot {doing} `{}`: {source}", path.display())]
    Io {
        /// The failed action, such as `read`.
        doing: &'static str,
        /// The file's path.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Another process holds the history for too long.
    #[error("another process uses the history of changes (`{}`)", .0.display())]
    Busy(PathBuf),
    /// Another process applies a change of the same file.
    #[error("`{0}` is being changed by another call")]
    InUse(FilePath),
    /// The content is not stored.
    #[error("the content {0} is not in the history of changes")]
    NotKept(ContentId),
    /// The stored content does not match its digest.
    #[error("the content {0} in the history of changes is damaged")]
    Damaged(ContentId),
    /// The backup does not exist.
    #[error("backup {0} does not exist")]
    NoBackup(BackupId),
    /// The change does not exist.
    #[error("change {0} does not exist")]
    NoChange(ChangeId),
    /// The change was already undone completely.
    #[error("change {0} was already undone")]
    TakenBack(ChangeId),
    /// The change cannot be undone completely.
    #[error("change {change} cannot be undone, so nothing was changed: {}", join_hindrances(.hindrances))]
    Hindered {
        /// The change.
        change: ChangeId,
        /// The reasons, one per file.
        hindrances: Vec<String>,
    },
    /// The file is too large to be stored.
    #[error("{bytes} bytes are more than the {max} that the history of changes stores per file")]
    TooLarge {
        /// The size of the file, or a lower bound.
        bytes: u64,
        /// The maximum size.
        max: u64,
    },
    /// The change has too many files.
    #[error("the change has {files} files, but the history of changes stores at most {max}")]
    TooManyFiles {
        /// The number of files.
        files: usize,
        /// The maximum number of files.
        max: usize,
    },
}

impl HistoryError {
    /// Adds the failed action and the path to a system error.
    pub(super) fn from_io_error(
        doing: &'static str,
        path: &Path,
    ) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { doing, path: path.to_owned(), source }
    }

    /// Returns true if the disk or a quota is full.
    pub fn is_disk_full(&self) -> bool {
        use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
        match self {
            Self::Io { source, .. } => {
                matches!(source.kind(), StorageFull | QuotaExceeded | FileTooLarge)
            }
            Self::Busy(_)
            | Self::InUse(_)
            | Self::NotKept(_)
            | Self::Damaged(_)
            | Self::NoBackup(_)
            | Self::NoChange(_)
            | Self::TakenBack(_)
            | Self::Hindered { .. }
            | Self::TooLarge { .. }
            | Self::TooManyFiles { .. } => false,
        }
    }
}

/// Joins the first reasons.
fn join_hindrances(hindrances: &[String]) -> String {
    const TOLD_MAX: usize = 5;
    let mut text = hindrances.iter().take(TOLD_MAX).cloned().collect::<Vec<_>>().join("; ");
    if hindrances.len() > TOLD_MAX {
        text.push_str(&format!("; and {} more", hindrances.len() - TOLD_MAX));
    }
    text
}
