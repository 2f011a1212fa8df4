//! Converts the system's metadata to the facts in answers.

use std::path::Path;

use jaato_types::files::{FileFacts, FileIdentity};

use crate::platform::FileMetadata;

impl FileMetadata {
    /// Returns a version that differs if the file was replaced or changed, as far as the system
    /// reports it.
    pub(crate) fn version(&self) -> String {
        let (_, number) = self.identity;
        let (modified, changed) = (to_nanoseconds(self.modified), to_nanoseconds(self.changed));
        format!("{number:x}-{:x}-{modified:x}-{changed:x}", self.size)
    }

    /// Returns the identity that distinguishes the file from others.
    pub(crate) fn identity(&self) -> FileIdentity {
        let (device, inode) = self.identity;
        FileIdentity::new(device, inode)
    }

    /// Returns the facts of the file.
    pub(crate) fn file_facts(&self, shown: &Path) -> FileFacts {
        let (seconds, nanoseconds) = self.modified;
        FileFacts {
            path: shown.to_string_lossy().into_owned(),
            kind: self.kind,
            size: self.size,
            modified_ms: seconds.saturating_mul(1000).saturating_add(nanoseconds / 1_000_000),
            mode: self.mode,
            version: Some(self.version()),
            ..FileFacts::default()
        }
    }
}

fn to_nanoseconds((seconds, nanoseconds): (i64, i64)) -> i128 {
    i128::from(seconds) * 1_000_000_000 + i128::from(nanoseconds)
}
