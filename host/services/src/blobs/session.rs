//! The blobs of one session and its remaining space.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use jaato_environments::OutputFolder;
use jaato_types::media_type::is_media_type;
use jaato_types::service::{BLOB_BYTES_MAX, BLOBS_BYTES_MAX, BLOBS_MAX};
use jaato_types::text::truncate_chars;
use jaato_types::{Error, ErrorKind, SessionId};
use parking_lot::Mutex;

use super::file_error as cannot;
use super::upload::BlobUpload;

/// Digits of an id: SHA-256 in hex.
const ID_DIGITS: usize = 64;

/// Maximum length of a wrong id in an error, in characters.
const SHOWN_MAX: usize = 80;

/// The blobs of one session.
#[derive(Debug)]
pub struct SessionBlobs {
    outputs: Arc<OutputFolder>,
    /// The name of the session's folder among the outputs.
    name: String,
    folder: OnceLock<PathBuf>,
    state: Mutex<BlobTable>,
}

#[derive(Debug, Default)]
struct BlobTable {
    kept: HashMap<String, StoredBlob>,
    /// Bytes of stored and unfinished blobs.
    bytes: u64,
    /// Number of blobs being written.
    uploads: usize,
}

/// A stored blob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredBlob {
    /// Its path.
    pub path: PathBuf,
    /// Its length in bytes.
    pub bytes: u64,
    /// Its media type, as given when it was first stored.
    pub mime_type: String,
}

/// Space reserved by an upload. Released on drop, unless a blob takes it over.
#[derive(Debug)]
pub(super) struct BlobReservation {
    blobs: Arc<SessionBlobs>,
    bytes: u64,
}

impl SessionBlobs {
    pub(super) fn new(outputs: Arc<OutputFolder>, session: &SessionId) -> Self {
        let name = format!("blobs-{session}");
        Self { outputs, name, folder: OnceLock::new(), state: Mutex::default() }
    }

    /// Begins a blob. Blocks on files.
    ///
    /// # Errors
    /// `invalid_arguments` if the media type is invalid, `limit_reached` if the session has too
    /// many blobs, `file_error` if the file cannot be created.
    pub fn begin_upload(self: &Arc<Self>, mime_type: &str) -> Result<BlobUpload, Error> {
        check_media_type(mime_type)?;
        let room = BlobReservation::reserve_blob(self)?;
        BlobUpload::create(self.ensure_folder()?, mime_type, room)
    }

    /// Finds a blob.
    ///
    /// # Errors
    /// `not_found` if the session has no blob with this id.
    pub fn find(&self, id: &str) -> Result<StoredBlob, Error> {
        let found = self.state.lock().kept.get(id).cloned();
        found.filter(|_| is_blob_id(id)).ok_or_else(|| blob_not_found_error(id))
    }

    /// Opens a blob's file. Blocks on it.
    ///
    /// # Errors
    /// `not_found` if the session has no blob with this id, or its file was removed, or
    /// `file_error`.
    pub fn open(&self, id: &str) -> Result<(StoredBlob, File), Error> {
        let kept = self.find(id)?;
        match File::open(&kept.path) {
            Ok(file) => Ok((kept, file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.forget_blob(id);
                Err(blob_not_found_error(id))
            }
            Err(error) => Err(cannot("read", &error)),
        }
    }

    /// Reads the first bytes of a blob, up to a maximum. Blocks on its file.
    ///
    /// # Errors
    /// As [`SessionBlobs::open`].
    pub fn read_blob_start(&self, id: &str, bytes_max: u64) -> Result<Vec<u8>, Error> {
        let (_, file) = self.open(id)?;
        let mut head = Vec::new();
        file.take(bytes_max).read_to_end(&mut head).map_err(|error| cannot("read", &error))?;
        Ok(head)
    }

    /// Returns the number of bytes stored or being written.
    pub fn stored_bytes(&self) -> u64 {
        self.state.lock().bytes
    }

    /// Removes the folder with all its files. Blocks.
    pub(super) fn remove(&self) {
        if let Some(folder) = self.folder.get() {
            // Files that cannot be removed go with the host's folder.
            let _ = std::fs::remove_dir_all(folder);
        }
    }

    fn ensure_folder(&self) -> Result<&Path, Error> {
        if let Some(folder) = self.folder.get() {
            return Ok(folder);
        }
        let folder = self.outputs.path(&self.name)?;
        jaato_places::make_own_folder(&folder).map_err(|error| {
            let made = Error::new(ErrorKind::Io, error.to_string());
            error.hint().into_iter().fold(made, Error::with_hint)
        })?;
        Ok(self.folder.get_or_init(|| folder))
    }

    /// Forgets a blob whose file is gone.
    fn forget_blob(&self, id: &str) {
        let mut state = self.state.lock();
        if let Some(kept) = state.kept.remove(id) {
            state.bytes -= kept.bytes;
        }
    }
}

impl BlobReservation {
    fn reserve_blob(blobs: &Arc<SessionBlobs>) -> Result<Self, Error> {
        let mut state = blobs.state.lock();
        if state.kept.len() + state.uploads >= BLOBS_MAX {
            let text = format!("the session already has {BLOBS_MAX} blobs, the maximum");
            return Err(Error::new(ErrorKind::LimitReached, text));
        }
        state.uploads += 1;
        drop(state);
        Ok(Self { blobs: Arc::clone(blobs), bytes: 0 })
    }

    /// Returns the number of reserved bytes.
    pub(super) fn reserved_bytes(&self) -> u64 {
        self.bytes
    }

    /// Reserves more bytes.
    pub(super) fn grow(&mut self, bytes: u64) -> Result<(), Error> {
        if self.bytes + bytes > BLOB_BYTES_MAX {
            let text = format!("a blob has at most {BLOB_BYTES_MAX} bytes");
            return Err(Error::new(ErrorKind::LimitReached, text));
        }
        let mut state = self.blobs.state.lock();
        if state.bytes + bytes > BLOBS_BYTES_MAX {
            let text = format!("the blobs of a session have at most {BLOBS_BYTES_MAX} bytes");
            return Err(Error::new(ErrorKind::LimitReached, text));
        }
        state.bytes += bytes;
        self.bytes += bytes;
        Ok(())
    }

    /// Passes the space on to a blob whose file is complete. `place` moves that file to its final
    /// path, and is not called if the session already has the blob.
    pub(super) fn pass_to_blob(
        mut self,
        id: &str,
        mime_type: String,
        place: impl FnOnce(&Path) -> Result<(), Error>,
    ) -> Result<u64, Error> {
        let path = self.blobs.ensure_folder()?.join(id);
        // Held across the rename, so that of two identical blobs one is placed and both are found.
        let mut state = self.blobs.state.lock();
        let is_known = state.kept.contains_key(id);
        if is_known && path.is_file() {
            return Ok(self.bytes);
        }
        place(&path)?;
        let bytes = self.bytes;
        let kept = StoredBlob { path, bytes, mime_type };
        if state.kept.insert(id.to_owned(), kept).is_none() {
            // The blob now owns the space, so the upload must not release it.
            drop(state);
            self.bytes = 0;
        }
        Ok(bytes)
    }
}

impl Drop for BlobReservation {
    fn drop(&mut self) {
        let mut state = self.blobs.state.lock();
        state.uploads -= 1;
        state.bytes -= self.bytes;
    }
}

/// Returns true if a text is a SHA-256 in lower-case hex. Nothing else becomes a file name.
fn is_blob_id(text: &str) -> bool {
    text.len() == ID_DIGITS && text.bytes().all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f'))
}

fn blob_not_found_error(id: &str) -> Error {
    let shown = truncate_chars(id, SHOWN_MAX);
    Error::new(ErrorKind::NotFound, format!("the session has no blob `{shown}`"))
}

/// Rejects an invalid media type, because it becomes part of requests to servers.
fn check_media_type(mime_type: &str) -> Result<(), Error> {
    if is_media_type(mime_type) {
        return Ok(());
    }
    let shown = truncate_chars(mime_type, SHOWN_MAX);
    let text = format!("`{shown}` is not a media type");
    Err(Error::new(ErrorKind::InvalidArguments, text)
        .with_hint("use a media type such as `image/png`"))
}
