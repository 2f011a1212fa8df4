//! Errors of assets: kinds and hints. The texts are in `error_text`.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jaato_types::ErrorKind;

/// A failure with an asset. Its text is for users.
#[derive(Debug)]
pub enum AssetError {
    /// The plugin's declaration is invalid.
    Invalid {
        /// The asset's id.
        id: String,
        /// The problem.
        reason: String,
    },
    /// The file is missing, and jaato is offline.
    Offline {
        /// The asset's title.
        title: String,
        /// The expected path.
        path: PathBuf,
    },
    /// The file is missing, and the configuration forbids downloading it.
    DownloadOff {
        /// The asset's title.
        title: String,
        /// The expected path.
        path: PathBuf,
    },
    /// No source could provide it.
    NoSource {
        /// The asset's title.
        title: String,
        /// The sources that were tried, and how each failed.
        failures: Vec<String>,
        /// Number of bytes kept for the next attempt.
        kept: u64,
    },
    /// A file's bytes differ from the pinned ones.
    WrongDigest {
        /// The file.
        path: PathBuf,
        /// The pinned SHA-256.
        wants: String,
        /// The file's SHA-256.
        has: String,
    },
    /// A file's size differs from the pinned one.
    WrongSize {
        /// The file.
        path: PathBuf,
        /// The pinned size.
        wants: u64,
        /// The file's size.
        has: u64,
    },
    /// An imported model has changed since it was imported.
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// The disk is full, or a quota is used up.
    NoSpace {
        /// The file being written.
        path: PathBuf,
        /// Bytes still missing.
        needs: u64,
        /// Free bytes, if the system reports them.
        free: Option<u64>,
    },
    /// Another process is working on the same file.
    Busy {
        /// The lock.
        path: PathBuf,
        /// How long the host waited without any progress.
        waited: Duration,
    },
    /// The file to import does not exist.
    Missing {
        /// The path.
        path: PathBuf,
    },
    /// The path to import is a folder, a pipe or a device.
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// The file to import is empty.
    Empty {
        /// The path.
        path: PathBuf,
    },
    /// The file to import is not a valid GGUF file.
    NotGguf {
        /// The path.
        path: PathBuf,
        /// The problem.
        reason: String,
    },
    /// The model to import has another architecture.
    WrongArchitecture {
        /// The path.
        path: PathBuf,
        /// The supported architecture.
        wants: String,
        /// The file's architecture.
        has: String,
    },
    /// The name for an imported model is invalid.
    BadName {
        /// The name.
        name: String,
        /// Why.
        reason: String,
    },
    /// The work was cancelled.
    Cancelled,
    /// Reading or writing failed.
    Io {
        /// The action: `read`, `write`, `rename`, …
        action: &'static str,
        /// The path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// The kind of an [`AssetError`], for code to branch on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "each is documented at the variant of AssetError of its name")]
pub enum AssetErrorKind {
    Invalid,
    Offline,
    DownloadOff,
    NoSource,
    WrongDigest,
    WrongSize,
    Changed,
    NoSpace,
    Busy,
    Missing,
    NotAFile,
    Empty,
    NotGguf,
    WrongArchitecture,
    BadName,
    Cancelled,
    Io,
}

/// The hint for an asset that cannot be downloaded.
const IMPORT: &str = "fetch the file on another machine and run `jaato model import FILE`";

impl AssetError {
    /// Wraps a failed read or write. A full disk has its own kind.
    pub(crate) fn from_io(action: &'static str, path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::FileTooLarge => Self::NoSpace { path, needs: 0, free: None },
            _ => Self::Io { action, path, source },
        }
    }

    /// Adds the number of missing bytes, which only the caller knows.
    pub(crate) fn with_needed_bytes(self, bytes: u64) -> Self {
        match self {
            Self::NoSpace { path, free, .. } => Self::NoSpace { path, needs: bytes, free },
            other => other,
        }
    }

    /// Returns the kind.
    pub fn kind(&self) -> AssetErrorKind {
        match self {
            Self::Invalid { .. } => AssetErrorKind::Invalid,
            Self::Offline { .. } => AssetErrorKind::Offline,
            Self::DownloadOff { .. } => AssetErrorKind::DownloadOff,
            Self::NoSource { .. } => AssetErrorKind::NoSource,
            Self::WrongDigest { .. } => AssetErrorKind::WrongDigest,
            Self::WrongSize { .. } => AssetErrorKind::WrongSize,
            Self::Changed { .. } => AssetErrorKind::Changed,
            Self::NoSpace { .. } => AssetErrorKind::NoSpace,
            Self::Busy { .. } => AssetErrorKind::Busy,
            Self::Missing { .. } => AssetErrorKind::Missing,
            Self::NotAFile { .. } => AssetErrorKind::NotAFile,
            Self::Empty { .. } => AssetErrorKind::Empty,
            Self::NotGguf { .. } => AssetErrorKind::NotGguf,
            Self::WrongArchitecture { .. } => AssetErrorKind::WrongArchitecture,
            Self::BadName { .. } => AssetErrorKind::BadName,
            Self::Cancelled => AssetErrorKind::Cancelled,
            Self::Io { .. } => AssetErrorKind::Io,
        }
    }

    /// Returns what the user can do about it.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Invalid { .. } => "report this to the plugin's author".to_owned(),
            Self::Offline { .. } => format!("run it once without `--offline`, or {IMPORT}"),
            Self::DownloadOff { .. } => {
                format!("`jaato model pull` downloads it; `--model` names another model; or {IMPORT}")
            }
            Self::NoSource { .. } => format!("check the network and try again, or {IMPORT}"),
            Self::WrongDigest { path, .. } | Self::WrongSize { path, .. } => {
                format!("remove `{}`, then run `jaato model pull` or import the right file", path.display())
            }
            Self::Changed { path } => {
                format!("remove `{}` and import the model again", path.display())
            }
            Self::NoSpace { .. } => {
                "free some space and try again: what has arrived is kept".to_owned()
            }
            Self::Busy { .. } => "stop the other jaato process, or wait for it".to_owned(),
            Self::Missing { .. } | Self::NotAFile { .. } | Self::Empty { .. } => {
                "give the path of a model file: `jaato model import FILE`".to_owned()
            }
            Self::NotGguf { .. } => "only models in the GGUF format can be imported".to_owned(),
            Self::WrongArchitecture { wants, .. } => {
                format!("look for a GGUF of a `{wants}` model")
            }
            Self::BadName { .. } => {
                "a name has 1 to 64 of `a-z`, `0-9`, `.`, `_`, `-` and begins with a letter or digit"
                    .to_owned()
            }
            Self::Io { source, .. } => return jaato_places::io_error_hint(source),
            Self::Cancelled => return None,
        })
    }
}

/// Converts the error for a plugin that requested the asset.
impl From<AssetError> for jaato_types::Error {
    fn from(error: AssetError) -> Self {
        let kind = match error.kind() {
            AssetErrorKind::Invalid => ErrorKind::PluginMisbehaved,
            AssetErrorKind::Offline | AssetErrorKind::NoSource | AssetErrorKind::Busy => {
                ErrorKind::Unavailable
            }
            AssetErrorKind::DownloadOff => ErrorKind::Configuration,
            AssetErrorKind::Missing => ErrorKind::NotFound,
            AssetErrorKind::WrongDigest
            | AssetErrorKind::WrongSize
            | AssetErrorKind::Changed
            | AssetErrorKind::NotAFile
            | AssetErrorKind::Empty
            | AssetErrorKind::NotGguf
            | AssetErrorKind::WrongArchitecture
            | AssetErrorKind::BadName => ErrorKind::InvalidArguments,
            AssetErrorKind::Cancelled => ErrorKind::Cancelled,
            AssetErrorKind::NoSpace | AssetErrorKind::Io => ErrorKind::Io,
        };
        let made = Self::new(kind, error.to_string());
        let made = match error.hint() {
            Some(hint) => made.with_hint(hint),
            None => made,
        };
        if matches!(error, AssetError::NoSource { .. } | AssetError::Busy { .. }) {
            return made.temporary();
        }
        made
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_disk_is_reported_as_no_space_with_the_missing_bytes() {
        let full = io::Error::from(io::ErrorKind::StorageFull);
        let error =
            AssetError::from_io("write", Path::new("m.part"), full).with_needed_bytes(2_000_000);
        assert_eq!(error.kind(), AssetErrorKind::NoSpace);
        assert_eq!(error.to_string(), "no space left to write `m.part`: 2 MB are still missing");
    }

    #[test]
    fn converted_asset_error_keeps_its_hint_and_retry_class() {
        let failures = vec!["h.example: gone".to_owned()];
        let error = AssetError::NoSource { title: "the model".to_owned(), failures, kept: 0 };
        let crossed = jaato_types::Error::from(error);
        assert_eq!(crossed.kind, ErrorKind::Unavailable);
        assert_eq!(crossed.retry, jaato_types::Retry::Temporary);
        assert!(crossed.hint.is_some_and(|hint| hint.contains("`jaato model import FILE`")));
    }
}
