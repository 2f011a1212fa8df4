//! Why a session of another program cannot be imported.

use std::io;
use std::path::PathBuf;

use super::source::ImportSource;

/// Why a session cannot be imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// A text is not the name of a source.
    #[error("unknown source `{0}`, expected {names}", names = ImportSource::source_names())]
    UnknownSource(String),
    /// The system refused.
    #[error("cannot {action} `{path}`: {error}")]
    Io {
        /// A verb, for example `read`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The path is a folder, a pipe or a device.
    #[error("`{0}` is not a file, give the path of a session's file")]
    NotAFile(PathBuf),
    /// The file has no content.
    #[error("`{0}` is empty")]
    Empty(PathBuf),
    /// The file is larger than [`IMPORT_BYTES_MAX`](super::IMPORT_BYTES_MAX).
    #[error("`{path}` has {bytes} bytes, and jaato imports at most {most}")]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size.
        bytes: u64,
        /// The largest size.
        most: u64,
    },
    /// The file is UTF-16.
    #[error("`{0}` is UTF-16, and a session is UTF-8; convert the file first")]
    WrongEncoding(PathBuf),
    /// The file is not a session of this source.
    #[error("`{path}` is not a session of `{source_name}`")]
    NotASession {
        /// The file.
        path: PathBuf,
        /// The source's name.
        source_name: &'static str,
    },
    /// A newer program wrote the file.
    #[error("`{path}` has format {version}, and this jaato reads formats up to {known}")]
    NewerFormat {
        /// The file.
        path: PathBuf,
        /// The file's version.
        version: u64,
        /// The newest version that this program reads.
        known: u64,
    },
    /// The file has no session with this id.
    #[error("`{path}` has no session `{id}`")]
    UnknownSession {
        /// The file.
        path: PathBuf,
        /// The requested id.
        id: String,
    },
    /// The file has several sessions, and the caller named none.
    #[error("`{path}` has {count} sessions, name one by its id, for example `{example}`")]
    SeveralSessions {
        /// The file.
        path: PathBuf,
        /// How many it has.
        count: usize,
        /// The id of the newest one.
        example: String,
    },
    /// The session has no message.
    #[error("the session in `{0}` has no messages")]
    NoMessages(PathBuf),
    /// The database cannot be read.
    #[error("cannot read the database `{path}`: {error}")]
    Database {
        /// The file.
        path: PathBuf,
        /// SQLite's error.
        error: rusqlite::Error,
    },
}

impl ImportError {
    pub(super) fn from_io(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |error| Self::Io { action, path, error }
    }

    pub(super) fn not_a_session(path: impl Into<PathBuf>, source: ImportSource) -> Self {
        Self::NotASession { path: path.into(), source_name: source.name() }
    }

    pub(super) fn from_database(path: impl Into<PathBuf>) -> impl FnOnce(rusqlite::Error) -> Self {
        let path = path.into();
        move |error| Self::Database { path, error }
    }
}
