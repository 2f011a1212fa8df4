//! Progress events of downloads and imports.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::{Asset, ByteSize};

/// Receives events from any thread. Must not block.
pub type AssetReporter = Arc<dyn Fn(AssetEvent) + Send + Sync>;

/// A progress event. All but [`AssetEvent::Progress`] display as one line for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AssetEvent {
    /// The first source is about to be tried.
    Started {
        /// The asset's title, or its file name.
        title: String,
        /// The licence, empty if unknown.
        license: String,
        /// Total size.
        bytes: u64,
        /// Number of bytes kept from an earlier attempt.
        kept: u64,
        /// The source.
        from: String,
        /// The target folder.
        folder: PathBuf,
    },
    /// Another source is about to be tried.
    Trying {
        /// The source.
        from: String,
    },
    /// A source provided nothing, or the wrong data.
    SourceFailed {
        /// The source.
        from: String,
        /// Why.
        reason: String,
    },
    /// The connection was lost and resumes where it broke.
    Interrupted {
        /// The source.
        from: String,
        /// Why.
        reason: String,
    },
    /// The kept data is wrong, so the download starts over.
    Restarted {
        /// The file.
        path: PathBuf,
    },
    /// Another process is working on this file, and the host waits for it.
    Waiting {
        /// The lock that it holds.
        path: PathBuf,
    },
    /// More data has arrived. At most a thousand events per file.
    Progress {
        /// Bytes received.
        done: u64,
        /// Total size.
        total: u64,
    },
    /// The file is complete and verified.
    Finished {
        /// The file.
        path: PathBuf,
    },
    /// The file is valid, but that could not be recorded, so it is hashed again next time.
    NotRemembered {
        /// Why.
        reason: String,
    },
}

impl fmt::Display for AssetEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Started { title, license, bytes, kept, from, folder } => {
                write!(f, "fetching {title} ({}", ByteSize(*bytes))?;
                if !license.is_empty() {
                    write!(f, ", {license}")?;
                }
                write!(f, ") from {from} to `{}`", folder.display())?;
                match kept {
                    0 => Ok(()),
                    kept => write!(f, ", {} already downloaded", ByteSize(*kept)),
                }
            }
            Self::Trying { from } => write!(f, "trying {from}"),
            Self::SourceFailed { from, reason } => write!(f, "{from}: {reason}"),
            Self::Interrupted { from, reason } => write!(f, "{from}: {reason}; resuming"),
            Self::Restarted { path } => write!(
                f,
                "the partial file `{}` does not match the pinned sha-256; starting over",
                path.display()
            ),
            Self::Waiting { path } => {
                write!(f, "another jaato process uses `{}`; waiting for it", path.display())
            }
            Self::Progress { done, total } => {
                write!(f, "{} of {}", ByteSize(*done), ByteSize(*total))
            }
            Self::Finished { path } => write!(f, "verified `{}`", path.display()),
            Self::NotRemembered { reason } => {
                write!(f, "{reason}; the file will be checked again next time")
            }
        }
    }
}

/// Reports progress, but not every small step.
pub(crate) struct ProgressMeter {
    report: AssetReporter,
    total: u64,
    next: u64,
}

impl ProgressMeter {
    pub(crate) fn new(report: &AssetReporter, total: u64) -> Self {
        Self { report: report.clone(), total, next: 0 }
    }

    pub(crate) fn report_progress(&mut self, done: u64) {
        if done >= self.next || done == self.total {
            (self.report)(AssetEvent::Progress { done, total: self.total });
            self.next = done + (self.total / 1000).max(1);
        }
    }
}

/// Returns an asset's name for the user.
pub(crate) fn asset_title(asset: &Asset) -> String {
    if asset.title.is_empty() { format!("`{}`", asset.file_name) } else { asset.title.clone() }
}
