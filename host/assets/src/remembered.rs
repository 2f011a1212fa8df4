//! Records that a file was verified, so that a start never hashes a gigabyte.

use std::fs::{self, Metadata, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};

use crate::AssetError;

const VERSION: u32 = 1;

/// Largest record to read. Ours have about 300 bytes.
const NOTE_BYTES_MAX: u64 = 64 * 1024;

/// The known facts about a file with this metadata.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DigestRecord {
    version: u32,
    /// The content's digest.
    pub(crate) sha256: String,
    /// The file's metadata when it was hashed.
    marks: FileFingerprint,
    /// The architecture of an imported model, or `None` for declared assets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) architecture: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct FileFingerprint {
    bytes: u64,
    mtime_ns: u64,
    inode: u64,
}

impl FileFingerprint {
    /// Returns a file's metadata. A time before 1970 or after 2500 counts as 0, which only costs a
    /// second hash.
    fn from_metadata(metadata: &Metadata) -> Self {
        let since = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let mtime_ns = since.and_then(|since| u64::try_from(since.as_nanos()).ok()).unwrap_or(0);
        let inode = std::os::unix::fs::MetadataExt::ino(metadata);
        Self { bytes: metadata.len(), mtime_ns, inode }
    }
}

impl DigestRecord {
    /// Creates a record of a file's digest. `metadata` must come from the hashed handle.
    pub(crate) fn new(sha256: String, metadata: &Metadata) -> Self {
        Self {
            version: VERSION,
            sha256,
            marks: FileFingerprint::from_metadata(metadata),
            architecture: None,
        }
    }

    /// Reads a file's record, if it is valid and matches the file's current state.
    pub(crate) fn read_matching(path: &Path, metadata: &Metadata) -> Option<Self> {
        let note = jaato_places::read_own_file(&note_path(path), NOTE_BYTES_MAX).ok()??;
        let read: Self = serde_json::from_slice(&note).ok()?;
        (read.version == VERSION && read.marks == FileFingerprint::from_metadata(metadata))
            .then_some(read)
    }

    /// Writes the record next to the file, atomically.
    pub(crate) fn write(&self, path: &Path) -> Result<(), AssetError> {
        let note = note_path(path);
        static WRITES: AtomicU64 = AtomicU64::new(0);
        let write = WRITES.fetch_add(1, Ordering::Relaxed);
        let written = note.with_extension(format!("verified-{}-{write}", std::process::id()));
        let text = serde_json::to_vec(self).map_err(std::io::Error::other);
        let mut options = OpenOptions::new();
        text.and_then(|text| {
            let file = jaato_places::open_own_file(
                &written,
                options.write(true).create(true).truncate(true),
            );
            file?.write_all(&text)
        })
        .and_then(|()| fs::rename(&written, &note))
        .map_err(|error| AssetError::from_io("write", &note, error))
    }
}

/// Returns the path of a file's record.
pub(crate) fn note_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".verified");
    PathBuf::from(name)
}
