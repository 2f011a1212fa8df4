//! What a fetch or an import tells while it works.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::{Asset, Size};

/// Takes events, from any thread; must not block.
pub type Report = Arc<dyn Fn(Event) + Send + Sync>;

/// Something to tell. All but [`Event::Progress`] are one line for a person, by `Display`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The first source is about to be tried: what, how big, from where, to where.
    Started {
        /// The asset's title, or its file name.
        title: String,
        /// Licence, empty if not told.
        license: String,
        /// Size of the whole.
        bytes: u64,
        /// How much of it is there from an earlier time.
        kept: u64,
        /// The source.
        from: String,
        /// The folder that it goes to.
        folder: PathBuf,
    },
    /// A further source is about to be tried.
    Trying {
        /// The source.
        from: String,
    },
    /// A source gave nothing, or not the right thing.
    SourceFailed {
        /// The source.
        from: String,
        /// Why.
        reason: String,
    },
    /// The connection was lost and is made again where it broke.
    Interrupted {
        /// The source.
        from: String,
        /// Why.
        reason: String,
    },
    /// What was kept does not fit and is fetched again from the beginning.
    Restarted {
        /// The file.
        path: PathBuf,
    },
    /// Another process works on this file; its end is waited for.
    Waiting {
        /// The lock that it holds.
        path: PathBuf,
    },
    /// More has arrived. At most a thousand a file.
    Progress {
        /// Bytes that are there.
        done: u64,
        /// Size of the whole.
        total: u64,
    },
    /// The file is there and verified.
    Finished {
        /// The file.
        path: PathBuf,
    },
    /// The file is good, but that could not be noted: it is hashed again next time.
    NotRemembered {
        /// Why.
        reason: String,
    },
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Started { title, license, bytes, kept, from, folder } => {
                write!(f, "fetching {title} ({}", Size(*bytes))?;
                if !license.is_empty() {
                    write!(f, ", {license}")?;
                }
                write!(f, ") from {from} to `{}`", folder.display())?;
                match kept {
                    0 => Ok(()),
                    kept => write!(f, ", {} are there already", Size(*kept)),
                }
            }
            Self::Trying { from } => write!(f, "trying {from}"),
            Self::SourceFailed { from, reason } => write!(f, "{from}: {reason}"),
            Self::Interrupted { from, reason } => write!(f, "{from}: {reason}; going on"),
            Self::Restarted { path } => write!(
                f,
                "what was kept in `{}` does not fit the pinned sha-256; starting again",
                path.display()
            ),
            Self::Waiting { path } => {
                write!(f, "another jaato holds `{}`; waiting for it", path.display())
            }
            Self::Progress { done, total } => write!(f, "{} of {}", Size(*done), Size(*total)),
            Self::Finished { path } => write!(f, "verified `{}`", path.display()),
            Self::NotRemembered { reason } => {
                write!(f, "{reason}; the file will be checked again next time")
            }
        }
    }
}

/// Reports progress, but not every small step.
pub(crate) struct Meter {
    report: Report,
    total: u64,
    next: u64,
}

impl Meter {
    pub(crate) fn new(report: &Report, total: u64) -> Self {
        Self { report: report.clone(), total, next: 0 }
    }

    pub(crate) fn at(&mut self, done: u64) {
        if done >= self.next || done == self.total {
            (self.report)(Event::Progress { done, total: self.total });
            self.next = done + (self.total / 1000).max(1);
        }
    }
}

/// What people call an asset.
pub(crate) fn title(asset: &Asset) -> String {
    if asset.title.is_empty() { format!("`{}`", asset.file_name) } else { asset.title.clone() }
}
