//! The folder of one store on disk.

use std::fs::{self, File};
use std::io::{ErrorKind as Io, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jaato_places::PlaceError;
use jaato_types::store::{BYTES_MAX, KEYS_MAX, StoredKey, VALUE_BYTES_MAX};
use jaato_types::{Error, ErrorKind, Frame, Retry};
use sha2::{Digest as _, Sha256};

use super::hex_digest;
use super::usage::{StoreUsage, StoreUsageCache};
use super::values::{ValueCondition, check_key};

/// Longest wait for another process that writes to the same store, which takes milliseconds.
const LOCK_WAIT: Duration = Duration::from_secs(5);

/// Maximum bytes before the value: the length, and a key that JSON may have to escape.
const HEAD_BYTES_MAX: u64 = 4 * 1024;

/// The prefix of incomplete files.
const UNFINISHED: &str = "unfinished-";

/// Maximum number of folder entries to examine: those of a full store and foreign files.
const ENTRIES_MAX: usize = 4 * KEYS_MAX;

/// The place of a plugin's own data. All its methods block.
#[derive(Debug, Clone)]
pub struct PluginStore {
    folder: PathBuf,
    remembered: Arc<StoreUsageCache>,
}

/// A value and its digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredValue {
    /// The value.
    pub bytes: Vec<u8>,
    /// Its SHA-256 in lower-case hex.
    pub digest: String,
}

impl PluginStore {
    pub(super) fn new(folder: PathBuf, remembered: Arc<StoreUsageCache>) -> Self {
        Self { folder, remembered }
    }

    /// Returns the path of the folder for the plugin's own files, which may not exist.
    pub fn folder_path(&self) -> PathBuf {
        self.folder.join("files")
    }

    /// Creates the folder for the plugin's own files, and returns it.
    ///
    /// # Errors
    /// `io`.
    pub fn folder(&self) -> Result<PathBuf, Error> {
        let folder = self.folder_path();
        jaato_places::make_own_folder(&folder).map_err(|error| unusable_store_error(&error))?;
        Ok(folder)
    }

    /// Reads a value.
    ///
    /// # Errors
    /// `invalid_arguments` if the key is invalid, or `io`.
    pub fn get(&self, key: &str) -> Result<Option<StoredValue>, Error> {
        check_key(key)?;
        let path = self.value_file(key);
        let read = jaato_places::read_own_file(&path, VALUE_BYTES_MAX as u64 + HEAD_BYTES_MAX);
        let Some(file) = read.map_err(|error| unusable_store_error(&error))? else {
            return Ok(None);
        };
        let damaged = || {
            let text = format!("the value of `{key}` is damaged: `{}`", path.display());
            Error::new(ErrorKind::Io, text).with_hint("remove the file, or write the value again")
        };
        let frame = Frame::parse(&file).map_err(|_| damaged())?;
        if !frame.json::<String>().is_ok_and(|has| has == key) {
            return Err(damaged());
        }
        let bytes = frame.bytes.to_vec();
        let digest = hex_digest(&Sha256::digest(&bytes));
        Ok(Some(StoredValue { bytes, digest }))
    }

    /// Stores a value and returns its digest.
    ///
    /// # Errors
    /// `invalid_arguments` if the key is invalid, `limit_reached` if the value or the store would
    /// be too large, `conflict` if the current value is not the expected one, or `io`. The current
    /// value stays.
    pub fn set(&self, key: &str, value: &[u8], expected: &ValueCondition) -> Result<String, Error> {
        check_key(key)?;
        if value.len() > VALUE_BYTES_MAX {
            let text = format!(
                "a value has at most {VALUE_BYTES_MAX} bytes, this one has {}",
                value.len()
            );
            let hint = "keep it as a file in the folder that `store.folder` returns";
            return Err(Error::new(ErrorKind::LimitReached, text).with_hint(hint));
        }
        let bug =
            |error: jaato_types::FrameError| Error::new(ErrorKind::HostBug, error.to_string());
        let file = Frame::write_with_bytes(key, value).map_err(bug)?;
        let _lock = self.lock_store()?;
        self.check_expected(key, expected)?;
        let mut used =
            self.usage_without_key(key).map_err(|error| store_error("look at", key, &error))?;
        if used.keys >= KEYS_MAX || used.bytes + file.len() as u64 > BYTES_MAX {
            let text = format!(
                "the store is full: it holds at most {KEYS_MAX} values and {BYTES_MAX} bytes, and without \
                 `{key}` it has {} values and {} bytes",
                used.keys, used.bytes
            );
            return Err(Error::new(ErrorKind::LimitReached, text));
        }
        self.write_value(key, &file).map_err(|error| store_error("keep", key, &error))?;
        used.keys += 1;
        used.bytes += file.len() as u64;
        self.remembered.record_usage(&self.values_folder(), used);
        Ok(hex_digest(&Sha256::digest(value)))
    }

    /// Removes a value. Returns false if there was none.
    ///
    /// # Errors
    /// As [`PluginStore::set`].
    pub fn delete(&self, key: &str, expected: &ValueCondition) -> Result<bool, Error> {
        check_key(key)?;
        let _lock = self.lock_store()?;
        self.check_expected(key, expected)?;
        match fs::remove_file(self.value_file(key)) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == Io::NotFound => Ok(false),
            Err(error) => Err(store_error("take away", key, &error)),
        }
    }

    /// Lists the keys with a prefix, sorted.
    ///
    /// # Errors
    /// `io`.
    pub fn list(&self, prefix: &str) -> Result<Vec<StoredKey>, Error> {
        let failed = |error: &std::io::Error| {
            Error::new(ErrorKind::Io, format!("cannot list the keys: {error}"))
        };
        let entries = match fs::read_dir(self.values_folder()) {
            Ok(entries) => entries,
            Err(error) if error.kind() == Io::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed(&error)),
        };
        let mut keys = Vec::new();
        for entry in entries.take(ENTRIES_MAX) {
            // Skips damaged and removed values. Reading such a value returns a detailed error.
            let Some(found) = stored_key(&entry.map_err(|error| failed(&error))?.path()) else {
                continue;
            };
            if found.key.starts_with(prefix) && keys.len() < KEYS_MAX {
                keys.push(found);
            }
        }
        keys.sort_unstable();
        Ok(keys)
    }

    fn values_folder(&self) -> PathBuf {
        self.folder.join("values")
    }

    pub(super) fn value_file(&self, key: &str) -> PathBuf {
        self.values_folder().join(hex_digest(&Sha256::digest(key)))
    }

    fn lock_store(&self) -> Result<File, Error> {
        jaato_places::make_own_folder(&self.values_folder())
            .map_err(|error| unusable_store_error(&error))?;
        let path = self.folder.join("lock");
        let held = jaato_places::lock_own_file(&path, LOCK_WAIT)
            .map_err(|error| unusable_store_error(&error))?;
        held.ok_or_else(|| {
            let text = "another process keeps writing to the plugin's store";
            Error { retry: Retry::Temporary, ..Error::new(ErrorKind::Unavailable, text) }
        })
    }

    fn check_expected(&self, key: &str, expected: &ValueCondition) -> Result<(), Error> {
        if *expected == ValueCondition::Anything {
            return Ok(());
        }
        let has = self.get(key)?;
        expected.check_value(key, has.as_ref().map(|value| value.digest.as_str()))
    }

    /// Returns the use of all other values. Called under the lock.
    fn usage_without_key(&self, key: &str) -> std::io::Result<StoreUsage> {
        let mut used = match self.remembered.recall_usage(&self.values_folder()) {
            Some(used) => used,
            None => self.count_usage()?,
        };
        match fs::symlink_metadata(self.value_file(key)) {
            Ok(own) => {
                used.keys = used.keys.saturating_sub(1);
                used.bytes = used.bytes.saturating_sub(own.len());
            }
            Err(error) if error.kind() == Io::NotFound => {}
            Err(error) => return Err(error),
        }
        Ok(used)
    }

    /// Counts all values, and removes incomplete files of dead processes.
    fn count_usage(&self) -> std::io::Result<StoreUsage> {
        let mut used = StoreUsage::default();
        for entry in fs::read_dir(self.values_folder())?.take(ENTRIES_MAX) {
            let entry = entry?;
            if entry.file_name().as_encoded_bytes().starts_with(UNFINISHED.as_bytes()) {
                // A file that cannot be removed is tried again next time.
                let _ = fs::remove_file(entry.path());
                continue;
            }
            used.keys += 1;
            used.bytes += entry.metadata()?.len();
        }
        Ok(used)
    }

    fn write_value(&self, key: &str, content: &[u8]) -> std::io::Result<()> {
        // Created with mode 0600, and removed unless it gets its final name.
        let beside = tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(self.values_folder());
        let mut file = beside?;
        file.write_all(content)?;
        file.as_file().sync_data()?;
        file.persist(self.value_file(key))?;
        Ok(())
    }
}

/// Reads the key and the value's size from a file. Returns `None` if the file is not a value.
fn stored_key(path: &Path) -> Option<StoredKey> {
    let file = jaato_places::open_plain_file(path).ok()?;
    let bytes = file.metadata().ok()?.len();
    let mut length = [0; 4];
    (&file).read_exact(&mut length).ok()?;
    let length = u64::from(u32::from_le_bytes(length));
    let mut head = Vec::new();
    file.take(length.min(HEAD_BYTES_MAX)).read_to_end(&mut head).ok()?;
    let key: String = serde_json::from_slice(&head).ok()?;
    let is_its = path.file_name()?.to_str()? == hex_digest(&Sha256::digest(&key));
    is_its.then(|| StoredKey::new(key, bytes.saturating_sub(4 + length)))
}

fn store_error(doing: &str, key: &str, error: &std::io::Error) -> Error {
    let text =
        format!("cannot {doing} the value of `{key}`, its stored value is unchanged: {error}");
    let made = Error::new(ErrorKind::Io, text);
    jaato_places::io_error_hint(error).into_iter().fold(made, Error::with_hint)
}

fn unusable_store_error(error: &PlaceError) -> Error {
    let made = Error::new(ErrorKind::Io, format!("the plugin's store cannot be used: {error}"));
    error.hint().into_iter().fold(made, Error::with_hint)
}
