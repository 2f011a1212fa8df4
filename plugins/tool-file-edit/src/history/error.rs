//! What can go wrong with the history.

use std::io;
use std::path::{Path, PathBuf};

use super::{BackupId, ChangeId, ContentId, FilePath};

/// Why the history cannot do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// The system refuses.
    #[error("the history of changes: cannot {doing} `{}`: {source}", path.display())]
    Io {
        /// What was tried, as `read`.
        doing: &'static str,
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Another process holds the history for too long.
    #[error("the history of changes is held by another process (`{}`)", .0.display())]
    Busy(PathBuf),
    /// Somebody else applies a change of the same file.
    #[error("`{0}` is being changed by somebody else at this moment")]
    InUse(FilePath),
    /// Bytes that were kept are not there.
    #[error("the content {0} is not in the history of changes")]
    NotKept(ContentId),
    /// Bytes that were kept have another digest than they should.
    #[error("the content {0} in the history of changes is damaged")]
    Damaged(ContentId),
    /// There is no such backup.
    #[error("there is no backup {0}")]
    NoBackup(BackupId),
    /// There is no such change.
    #[error("there is no change {0}")]
    NoChange(ChangeId),
    /// Nothing of a change is left to be taken back.
    #[error("change {0} was taken back already")]
    TakenBack(ChangeId),
    /// A change cannot be taken back as a whole.
    #[error("change {change} cannot be taken back, so nothing was done: {}", told(.hindrances))]
    Hindered {
        /// The change.
        change: ChangeId,
        /// Why, for each file.
        hindrances: Vec<String>,
    },
    /// A file that is too large to be kept.
    #[error("{bytes} bytes are more than the {max} that the history of changes keeps of a file")]
    TooLarge {
        /// How many there are, at least.
        bytes: u64,
        /// How many there may be.
        max: u64,
    },
    /// A change of too many files.
    #[error("a change of {files} files: the history of changes takes at most {max}")]
    TooManyFiles {
        /// How many there are.
        files: usize,
        /// How many there may be.
        max: usize,
    },
}

impl HistoryError {
    /// Adds to an error of the system what was tried with which file.
    pub(super) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { doing, path: path.to_owned(), source }
    }

    /// Whether the disk or a quota is full.
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

/// Names the first of several reasons.
fn told(hindrances: &[String]) -> String {
    const TOLD_MAX: usize = 5;
    let mut text = hindrances.iter().take(TOLD_MAX).cloned().collect::<Vec<_>>().join("; ");
    if hindrances.len() > TOLD_MAX {
        text.push_str(&format!("; and {} more", hindrances.len() - TOLD_MAX));
    }
    text
}
