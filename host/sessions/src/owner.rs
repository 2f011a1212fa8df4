//! Ownership of a session: the process that claimed it last may append.
//!
//! A claim creates the file `owner-N` with the next number and locks it for the life of the
//! process, then removes the file of the owner before it. A process whose file is gone has lost the
//! session. Whoever finds the newest file locked knows that its owner is alive.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use jaato_places::open_own_file;

use crate::error::SessionStoreError;

/// The beginning of the names of owner files.
const PREFIX: &str = "owner-";

/// A claim of a session. Dropping it leaves the file, which is unlocked then.
#[derive(Debug)]
pub struct OwnerClaim {
    /// The number of the claim.
    pub epoch: u64,
    path: PathBuf,
    _locked: File,
}

impl OwnerClaim {
    /// Claims a session's folder. `take_over` says what to do if its owner is alive.
    ///
    /// # Errors
    /// [`SessionStoreError::InUse`] if its owner is alive and is not to be replaced.
    pub fn take(folder: &Path, id: &str, take_over: bool) -> Result<Self, SessionStoreError> {
        loop {
            let newest = newest_epoch(folder)?;
            if let Some(newest) = newest
                && !take_over
                && is_locked(&owner_path(folder, newest))?
            {
                return Err(SessionStoreError::InUse { id: id.to_owned() });
            }
            let epoch = newest.unwrap_or(0) + 1;
            let path = owner_path(folder, epoch);
            let mut options = OpenOptions::new();
            let file = match open_own_file(&path, options.write(true).create_new(true)) {
                Ok(file) => file,
                // Another process claimed it at the same time.
                Err(_) if path.exists() => continue,
                Err(error) => return Err(error.into()),
            };
            file.try_lock().map_err(|error| {
                SessionStoreError::io("lock", &path)(match error {
                    TryLockError::Error(error) => error,
                    TryLockError::WouldBlock => ErrorKind::WouldBlock.into(),
                })
            })?;
            if let Some(newest) = newest {
                remove(&owner_path(folder, newest))?;
            }
            return Ok(Self { epoch, path, _locked: file });
        }
    }

    /// Returns false if another process has claimed the session since.
    pub fn holds(&self) -> bool {
        self.path.exists()
    }
}

/// Returns true if the owner of a session is alive.
///
/// # Errors
/// If the folder cannot be read.
pub fn is_owned(folder: &Path) -> Result<bool, SessionStoreError> {
    match newest_epoch(folder)? {
        Some(epoch) => is_locked(&owner_path(folder, epoch)),
        None => Ok(false),
    }
}

fn owner_path(folder: &Path, epoch: u64) -> PathBuf {
    folder.join(format!("{PREFIX}{epoch}"))
}

fn newest_epoch(folder: &Path) -> Result<Option<u64>, SessionStoreError> {
    let entries = fs::read_dir(folder).map_err(SessionStoreError::io("read", folder))?;
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    Ok(names.filter_map(|name| name.strip_prefix(PREFIX)?.parse().ok()).max())
}

fn is_locked(path: &Path) -> Result<bool, SessionStoreError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(SessionStoreError::io("open", path)(error)),
    };
    match file.try_lock() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(SessionStoreError::io("lock", path)(error)),
    }
}

fn remove(path: &Path) -> Result<(), SessionStoreError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(SessionStoreError::io("remove", path)(error))
        }
        _ => Ok(()),
    }
}
