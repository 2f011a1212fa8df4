//! A blob that is being written.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use jaato_types::Error;
use sha2::{Digest as _, Sha256};
use tempfile::NamedTempFile;

use super::file_error;
use super::session::BlobReservation;

/// A blob that is being written. Dropping it removes the file.
#[derive(Debug)]
pub struct BlobUpload {
    file: NamedTempFile,
    hash: Sha256,
    mime_type: String,
    room: BlobReservation,
}

/// A finished blob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FinishedBlob {
    /// Its id: the SHA-256 of the content, in lower-case hex.
    pub id: String,
    /// Its length in bytes.
    pub bytes: u64,
}

impl BlobUpload {
    /// Creates the temporary file with mode 0600.
    pub(super) fn create(
        folder: &Path,
        mime_type: &str,
        room: BlobReservation,
    ) -> Result<Self, Error> {
        let made = tempfile::Builder::new().prefix("upload-").tempfile_in(folder);
        let file = made.map_err(|error| file_error("make", &error))?;
        Ok(Self { file, hash: Sha256::new(), mime_type: mime_type.to_owned(), room })
    }

    /// Appends a piece. Blocks on the file.
    ///
    /// # Errors
    /// `limit_reached` if the blob or the session would have too many bytes, or `file_error`.
    pub fn write(&mut self, piece: &[u8]) -> Result<(), Error> {
        self.room.grow(piece.len() as u64)?;
        self.file.write_all(piece).map_err(|error| file_error("write", &error))?;
        self.hash.update(piece);
        Ok(())
    }

    /// Returns the number of bytes written.
    pub fn written_bytes(&self) -> u64 {
        self.room.reserved_bytes()
    }

    /// Turns the upload into a blob of the session. Blocks on the file.
    ///
    /// # Errors
    /// `file_error` if the file cannot be moved to its final path.
    pub fn finish(self) -> Result<FinishedBlob, Error> {
        let Self { file, hash, mime_type, room } = self;
        let id = hash.finalize().iter().fold(String::new(), |mut id, byte| {
            // Writing to a `String` cannot fail.
            let _ = write!(id, "{byte:02x}");
            id
        });
        let place = |path: &Path| match file.persist(path) {
            Ok(_) => Ok(()),
            Err(error) => Err(file_error("keep", &error.error)),
        };
        let bytes = room.pass_to_blob(&id, mime_type, place)?;
        Ok(FinishedBlob { id, bytes })
    }
}
