//! A record of the user's decisions on disk: one JSON file in one of the user's folders.
//!
//! It is written next to the old file and renamed, under a lock, and only its owner can read it. A
//! record that cannot be read is an error, never an empty record. Otherwise damage would silently
//! withdraw decisions, and the next write would lose them permanently.

use std::fmt;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jaato_places::{PathProblem, PlaceError};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::TrustError;

/// The version of the records that this host writes.
pub(super) const RECORD_VERSION: u64 = 1;

/// The longest wait for another process that writes the record, which takes milliseconds.
const LOCK_WAIT: Duration = Duration::from_secs(5);

/// The longest record that is read: thousands of workspaces with hundreds of files each.
const RECORD_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// The kind of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordKind {
    /// The user's trust.
    Trust,
    /// The user's grants to plugins.
    Grants,
}

/// The file of a record.
#[derive(Debug, Clone)]
pub(super) struct RecordFile {
    folder: PathBuf,
    kind: RecordKind,
}

/// The part of the record that shows whether the rest can be read.
#[derive(Deserialize)]
struct VersionOnly {
    version: u64,
}

impl RecordKind {
    /// Returns what does not hold while the record cannot be read.
    pub(super) fn effect_while_unreadable(self) -> &'static str {
        match self {
            Self::Trust => "nothing is trusted until this is fixed",
            Self::Grants => "nothing is granted until this is fixed",
        }
    }

    /// Returns what the user must do again after removing a damaged record.
    pub(super) fn repeat_hint(self) -> &'static str {
        match self {
            Self::Trust => "trust",
            Self::Grants => "grant",
        }
    }

    /// The name of the file without its extension.
    fn file_stem(self) -> &'static str {
        match self {
            Self::Trust => "trust",
            Self::Grants => "grants",
        }
    }
}

impl fmt::Display for RecordKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "record of {}", self.file_stem())
    }
}

impl RecordFile {
    pub(super) fn new(folder: &Path, kind: RecordKind) -> Self {
        Self { folder: folder.to_owned(), kind }
    }

    pub(super) fn path(&self) -> PathBuf {
        self.folder.join(format!("{}.json", self.kind.file_stem()))
    }

    /// Reads the record. A missing file is an empty record.
    pub(super) fn read_content<T: Default + DeserializeOwned>(&self) -> Result<T, TrustError> {
        let (path, record) = (self.path(), self.kind);
        let text = match jaato_places::read_own_file(&path, RECORD_BYTES_MAX) {
            Ok(Some(text)) => text,
            Ok(None) => return Ok(T::default()),
            Err(error) if is_folder_missing(&error) => return Ok(T::default()),
            // An unreadable record counts as empty, and jaato continues.
            Err(why) => return Err(TrustError::NotBelieved { record, why }),
        };
        let corrupt = |error: serde_json::Error| TrustError::Corrupt {
            record,
            path: path.clone(),
            cause: error.to_string(),
        };
        let VersionOnly { version } = serde_json::from_slice(&text).map_err(corrupt)?;
        if version > RECORD_VERSION {
            return Err(TrustError::Newer { record, path, has: version, knows: RECORD_VERSION });
        }
        serde_json::from_slice(&text).map_err(corrupt)
    }

    /// Reads, changes and writes the record while no other process does.
    pub(super) fn edit_content<T, A>(&self, edit: impl FnOnce(&mut T) -> A) -> Result<A, TrustError>
    where
        T: Default + Clone + PartialEq + Serialize + DeserializeOwned,
    {
        jaato_places::make_own_folder(&self.folder).map_err(|error| self.bad_place_error(error))?;
        // Unlocked when it is dropped, even by a process that is killed.
        let _lock = self.lock_file()?;
        let before: T = self.read_content()?;
        let mut after = before.clone();
        let answer = edit(&mut after);
        if after != before {
            self.write_content(&after)?;
        }
        Ok(answer)
    }

    fn lock_file(&self) -> Result<File, TrustError> {
        let path = self.folder.join(format!("{}.lock", self.kind.file_stem()));
        let held = jaato_places::lock_own_file(&path, LOCK_WAIT);
        let held = held.map_err(|error| self.bad_place_error(error))?;
        held.ok_or(TrustError::Locked { record: self.kind, path })
    }

    fn write_content(&self, content: &impl Serialize) -> Result<(), TrustError> {
        let path = self.path();
        let write = || -> std::io::Result<()> {
            // Created with mode 0600.
            let mut file = tempfile::NamedTempFile::new_in(&self.folder)?;
            serde_json::to_writer_pretty(&mut file, content)?;
            file.write_all(b"\n")?;
            file.as_file().sync_all()?;
            file.persist(&path)?;
            Ok(())
        };
        write().map_err(|error| record_io_error(&path, "write", &error))
    }

    fn bad_place_error(&self, why: PlaceError) -> TrustError {
        match &why.why {
            PathProblem::System(cause) => record_io_error(&why.path, "use", cause),
            PathProblem::Owner(_)
            | PathProblem::Writable(_)
            | PathProblem::NotAFolder
            | PathProblem::NotAFile
            | PathProblem::TooLarge(_)
            | PathProblem::TooManyLinks => TrustError::NotBelieved { record: self.kind, why },
        }
    }
}

/// Returns a digest in the form that records use.
pub(super) fn checked_digest(sha256: &str) -> Result<String, TrustError> {
    let is_digest = sha256.len() == 64 && sha256.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_digest
        .then(|| sha256.to_ascii_lowercase())
        .ok_or_else(|| TrustError::BadDigest { has: sha256.to_owned() })
}

/// Returns a time in the form that records use.
pub(super) fn unix_seconds(time: SystemTime) -> u64 {
    // A clock before 1970 is wrong, but the time is only shown.
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

fn record_io_error(path: &Path, doing: &'static str, error: &std::io::Error) -> TrustError {
    TrustError::Io { path: path.to_owned(), doing, cause: error.to_string() }
}

/// Returns true if there is a file in place of a folder above the record (`HOME=/dev/null`). Then
/// no record exists, and none can be created.
fn is_folder_missing(error: &PlaceError) -> bool {
    matches!(&error.why, PathProblem::System(error) if error.kind() == ErrorKind::NotADirectory)
}
