//! Stores contents, each once under its digest.

use std::fmt::{self, Write as _};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::HistoryError;

/// The maximum size of a stored file: half of the total limit, so that one file does not displace
/// all others.
pub const CONTENT_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// The prefix of the file name of a content whose digest is not known yet.
const NEW_PREFIX: &str = ".new-";

/// The number of hexadecimal characters in a digest.
const DIGEST_CHARS: usize = 64;

/// The minimum age of an unreferenced content before it is removed. A session may have stored it
/// for a change that is about to begin.
const UNUSED_TIME_MIN: Duration = Duration::from_mins(1);

/// The SHA-256 digest of a content, in lower-case hex.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct ContentId(String);

/// The folder with the contents.
#[derive(Debug)]
pub(super) struct ContentStore {
    folder: PathBuf,
}

/// Writes a content in chunks.
#[derive(Debug)]
pub struct ContentWriter {
    folder: PathBuf,
    path: PathBuf,
    file: File,
    digest: Sha256,
    size: u64,
    bytes_max: u64,
}

impl ContentStore {
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Stores a content with this digest, unless it is already stored.
    pub fn store_content(&self, bytes: &[u8], id: &ContentId) -> Result<(), HistoryError> {
        check_size(bytes.len() as u64, CONTENT_BYTES_MAX)?;
        if self.touch_if_stored(id, bytes.len() as u64) {
            return Ok(());
        }
        let mut writer = self.new_content_writer()?;
        writer.append_bytes(bytes)?;
        writer.rename_into_place(id)
    }

    pub fn new_content_writer(&self) -> Result<ContentWriter, HistoryError> {
        ContentWriter::new(&self.folder, CONTENT_BYTES_MAX)
    }

    /// Reads a stored content and verifies it.
    pub fn read_content(&self, id: &ContentId) -> Result<Vec<u8>, HistoryError> {
        let path = self.content_path(id);
        let file = match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(HistoryError::NotKept(id.clone()));
            }
            opened => opened.map_err(HistoryError::from_io_error("open", &path))?,
        };
        let mut bytes = Vec::new();
        let read = file.take(CONTENT_BYTES_MAX + 1).read_to_end(&mut bytes);
        read.map_err(HistoryError::from_io_error("read", &path))?;
        match ContentId::from_bytes(&bytes) == *id {
            true => Ok(bytes),
            false => Err(HistoryError::Damaged(id.clone())),
        }
    }

    pub fn has_content(&self, id: &ContentId) -> bool {
        self.content_path(id).is_file()
    }

    /// Removes an unreferenced content. Returns false if it is too young, so that the caller must
    /// try again later.
    pub fn remove_unused(&self, id: &ContentId) -> bool {
        let path = self.content_path(id);
        match is_recently_modified(&path) {
            Some(true) => false,
            // If the removal fails, `remove_all_unused` finds the file again.
            Some(false) => fs::remove_file(path).map_or(true, |()| true),
            None => true,
        }
    }

    /// Removes all unused contents and unfinished files.
    pub fn remove_all_unused(
        &self,
        is_used: impl Fn(&ContentId) -> bool,
    ) -> Result<(), HistoryError> {
        for folder in folder_entries(&self.folder)? {
            if !folder.is_dir() {
                remove_unfinished_file(&folder);
                continue;
            }
            for path in folder_entries(&folder)? {
                // Unknown files stay.
                let Some(id) = content_id_from_path(&folder, &path) else { continue };
                if !is_used(&id) {
                    // A later sweep finds contents that are too young.
                    let _ = self.remove_unused(&id);
                }
            }
        }
        Ok(())
    }

    /// Returns true if the content is already stored, and renews its modification time.
    fn touch_if_stored(&self, id: &ContentId, size: u64) -> bool {
        let Ok(file) = OpenOptions::new().write(true).open(self.content_path(id)) else {
            return false;
        };
        let is_whole = file.metadata().is_ok_and(|facts| facts.len() == size);
        is_whole && file.set_modified(SystemTime::now()).is_ok()
    }

    fn content_path(&self, id: &ContentId) -> PathBuf {
        stored_content_path(&self.folder, id)
    }
}

impl ContentWriter {
    fn new(folder: &Path, bytes_max: u64) -> Result<Self, HistoryError> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let nanos = since.map_or(0, |since| since.subsec_nanos());
        let name = format!("{NEW_PREFIX}{}-{number}-{nanos}", std::process::id());
        let path = folder.join(name);
        let mut options = OpenOptions::new();
        let file = options.write(true).create_new(true).mode(0o600).open(&path);
        let file = file.map_err(HistoryError::from_io_error("write", &path))?;
        let folder = folder.to_owned();
        Ok(Self { folder, path, file, digest: Sha256::new(), size: 0, bytes_max })
    }

    /// Appends a chunk.
    ///
    /// # Errors
    /// `Io` if the disk is full, `TooLarge` above [`CONTENT_BYTES_MAX`].
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), HistoryError> {
        self.size += bytes.len() as u64;
        check_size(self.size, self.bytes_max)?;
        self.digest.update(bytes);
        self.append_bytes(bytes)
    }

    /// Stores the written content. Returns its digest and size.
    ///
    /// # Errors
    /// `Io` if the system reports an error.
    pub fn finish(self) -> Result<(ContentId, u64), HistoryError> {
        let id = ContentId::from_digest_state(self.digest.clone());
        self.rename_into_place(&id)?;
        Ok((id, self.size))
    }

    fn append_bytes(&mut self, bytes: &[u8]) -> Result<(), HistoryError> {
        self.file.write_all(bytes).map_err(HistoryError::from_io_error("write", &self.path))
    }

    fn rename_into_place(&self, id: &ContentId) -> Result<(), HistoryError> {
        let path = stored_content_path(&self.folder, id);
        if let Some(folder) = path.parent() {
            make_folder(folder)?;
        }
        fs::rename(&self.path, &path).map_err(HistoryError::from_io_error("write", &path))
    }
}

impl Drop for ContentWriter {
    fn drop(&mut self) {
        // After a successful rename, the file is gone. If the removal fails, a sweep finds the
        // file.
        let _ = fs::remove_file(&self.path);
    }
}

impl ContentId {
    /// Computes the digest of a content.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self::from_digest_state(Sha256::new().chain_update(bytes))
    }

    /// Returns the digest in lower-case hex.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Finishes a digest.
    pub(crate) fn from_digest_state(digest: Sha256) -> Self {
        let mut text = String::with_capacity(DIGEST_CHARS);
        for byte in digest.finalize() {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
        }
        Self(text)
    }
}

impl TryFrom<String> for ContentId {
    type Error = &'static str;

    /// Accepts only a valid digest, because it becomes part of a path.
    fn try_from(text: String) -> Result<Self, Self::Error> {
        let is_hex = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        match text.len() == DIGEST_CHARS && text.bytes().all(is_hex) {
            true => Ok(Self(text)),
            false => Err("not a valid digest"),
        }
    }
}

impl fmt::Display for ContentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Creates a folder that only its owner can access, if it is missing.
pub(super) fn make_folder(path: &Path) -> Result<(), HistoryError> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(HistoryError::from_io_error("make the folder", path))
}

/// Lists the entries of a folder. An absent folder has no entries.
pub(super) fn folder_entries(folder: &Path) -> Result<Vec<PathBuf>, HistoryError> {
    let failed = |error| HistoryError::from_io_error("list", folder)(error);
    match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        listed => {
            let entries = listed.map_err(failed)?;
            entries.map(|entry| entry.map(|entry| entry.path()).map_err(failed)).collect()
        }
    }
}

fn stored_content_path(folder: &Path, id: &ContentId) -> PathBuf {
    let (start, rest) = id.0.split_at(2);
    folder.join(start).join(rest)
}

/// Returns the digest of a stored content, from the names of its file and folder.
fn content_id_from_path(folder: &Path, path: &Path) -> Option<ContentId> {
    let (start, rest) = (folder.file_name()?.to_str()?, path.file_name()?.to_str()?);
    ContentId::try_from(format!("{start}{rest}")).ok()
}

fn check_size(bytes: u64, max: u64) -> Result<(), HistoryError> {
    match bytes > max {
        true => Err(HistoryError::TooLarge { bytes, max }),
        false => Ok(()),
    }
}

/// Returns true if a file was modified recently, or `None` if it does not exist.
fn is_recently_modified(path: &Path) -> Option<bool> {
    let modified = fs::metadata(path).and_then(|facts| facts.modified()).ok()?;
    Some(modified.elapsed().map_or(true, |age| age < UNUSED_TIME_MIN))
}

fn remove_unfinished_file(path: &Path) {
    let name = path.file_name().and_then(|name| name.to_str());
    if name.is_some_and(|name| name.starts_with(NEW_PREFIX))
        && is_recently_modified(path) == Some(false)
    {
        // If the removal fails, the next sweep finds the file again.
        let _ = fs::remove_file(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn empty_content_store() -> (tempfile::TempDir, ContentStore) {
        let folder = tempfile::tempdir().unwrap();
        let contents = ContentStore::new(folder.path().to_owned());
        (folder, contents)
    }

    fn store_and_identify(contents: &ContentStore, bytes: &[u8]) -> ContentId {
        let id = ContentId::from_bytes(bytes);
        contents.store_content(bytes, &id).unwrap();
        id
    }

    fn make_content_old(contents: &ContentStore, id: &ContentId) {
        let file = File::options().write(true).open(contents.content_path(id)).unwrap();
        file.set_modified(SystemTime::now() - 2 * UNUSED_TIME_MIN).unwrap();
    }

    #[test]
    fn content_is_stored_once_with_private_permissions_and_verified() {
        use std::os::unix::fs::PermissionsExt as _;
        let (folder, contents) = empty_content_store();
        let id = store_and_identify(&contents, b"password");
        assert_eq!(store_and_identify(&contents, b"password"), id);
        assert_eq!(contents.read_content(&id).unwrap(), b"password");
        let path =
            folder.path().join("5e/884898da28047151d0e56f8dc6292773603d0d6aabbdd62a11ef721d1542d8");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(folder_entries(folder.path()).unwrap().len(), 1, "no other file is left");
        fs::write(&path, b"passw0rd").unwrap();
        assert!(matches!(contents.read_content(&id), Err(HistoryError::Damaged(_))));
        fs::remove_file(&path).unwrap();
        assert!(matches!(contents.read_content(&id), Err(HistoryError::NotKept(_))));
    }

    #[test]
    fn truncated_content_file_is_written_again() {
        let (_folder, contents) = empty_content_store();
        let id = store_and_identify(&contents, b"password");
        fs::write(contents.content_path(&id), b"pass").unwrap();
        store_and_identify(&contents, b"password");
        assert_eq!(contents.read_content(&id).unwrap(), b"password");
    }

    #[test]
    fn content_written_in_pieces_is_stored_completely_or_not_at_all() {
        let (folder, contents) = empty_content_store();
        let mut writer = contents.new_content_writer().unwrap();
        writer.write(b"pass").unwrap();
        writer.write(b"word").unwrap();
        let (id, size) = writer.finish().unwrap();
        assert_eq!((id, size), (ContentId::from_bytes(b"password"), 8));
        let mut writer = ContentWriter::new(folder.path(), 8).unwrap();
        writer.write(b"12345678").unwrap();
        assert!(matches!(writer.write(b"9"), Err(HistoryError::TooLarge { bytes: 9, max: 8 })));
        drop(writer);
        assert_eq!(folder_entries(folder.path()).unwrap().len(), 1, "no other file is left");
    }

    #[test]
    fn unreferenced_old_contents_are_removed() {
        let (folder, contents) = empty_content_store();
        let [used, old, young] =
            [b"used", b"old.", b"new."].map(|text| store_and_identify(&contents, text));
        let forgotten = folder.path().join(".new-1-1-1");
        fs::write(&forgotten, b"torn").unwrap();
        make_content_old(&contents, &used);
        make_content_old(&contents, &old);
        contents.remove_all_unused(|id| *id == used).unwrap();
        assert!(
            contents.has_content(&used)
                && !contents.has_content(&old)
                && contents.has_content(&young)
        );
        assert!(forgotten.exists(), "a writer may still use it");
        make_content_old(&contents, &used);
        store_and_identify(&contents, b"used");
        assert!(!contents.remove_unused(&used), "it was kept again a moment ago");
    }

    #[test]
    fn only_a_digest_is_accepted_as_a_content_id() {
        for bad in ["", "5e", "../../../../etc/passwd", &"G".repeat(64), &"A".repeat(64)] {
            assert!(ContentId::try_from(bad.to_owned()).is_err(), "{bad}");
        }
    }
}
