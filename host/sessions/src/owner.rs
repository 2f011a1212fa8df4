//! Ownership of a session: the process that claimed it last may append.
//!
//! A claim creates the file `owner-N` with the next number and locks it for the life of the
//! process, then removes the file of the owner before it. A process whose file is gone has lost the
//! session. If the newest file is locked, its owner is alive. The content is the process id, for
//! messages only.
//!
//! The file `lock` is locked for the moment of a claim or a deletion, so these never overlap.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use crate::disk::Disk;
use crate::error::SessionStoreError;
use crate::line::{NUMBER_MAX, UnwritableRecord};
use crate::plain::{check_regular_file, open_regular_file};
use crate::writer::unwritable_record_error;

/// The beginning of the names of owner files.
const PREFIX: &str = "owner-";

/// The file that is locked during a claim.
const LOCK: &str = "lock";

/// The most digits of a process id.
const PID_DIGITS_MAX: u64 = 20;

/// The greatest number of a claim. The writer may need a few greater ones for its records.
const EPOCH_MAX: u64 = NUMBER_MAX / 2;

/// Whether a process has a session open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnerState {
    /// No process has it open.
    Free,
    /// A process has it open to append.
    InUse {
        /// The process id, if it can be read.
        pid: Option<u32>,
    },
}

/// A claim of a session. Dropping it leaves the file, which is unlocked then.
#[derive(Debug)]
pub struct OwnerClaim {
    /// The number of the claim.
    pub epoch: u64,
    path: PathBuf,
    locked: File,
}

impl Drop for OwnerClaim {
    fn drop(&mut self) {
        // A process that was forked and does not run its program yet has the file open too.
        let _ = self.locked.unlock();
    }
}

impl OwnerClaim {
    /// Claims a session's folder. `take_over` replaces an owner that is alive.
    ///
    /// # Errors
    /// [`SessionStoreError::InUse`] if its owner is alive and is not to be replaced.
    pub fn claim_folder(
        disk: &Disk,
        folder: &Path,
        id: &str,
        take_over: bool,
    ) -> Result<Self, SessionStoreError> {
        let _lock = lock_folder(folder, id)?;
        let epochs = list_epochs(folder)?;
        let newest = epochs.iter().copied().max();
        if let Some(newest) = newest
            && !take_over
            && let OwnerState::InUse { pid } = owner_file_state(&owner_path(folder, newest))?
        {
            return Err(SessionStoreError::InUse { id: id.to_owned(), pid });
        }
        let epoch = newest.unwrap_or(0) + 1;
        if epoch > EPOCH_MAX {
            return Err(unwritable_record_error(id)(UnwritableRecord::Number));
        }
        let path = owner_path(folder, epoch);
        let file = disk.create_new(&path)?;
        // Waits only while another process looks whether it is locked.
        file.lock().map_err(SessionStoreError::from_io("lock", &path))?;
        // Without it, messages only lack the process id.
        let _ = disk.append_bytes(&file, &path, std::process::id().to_string().as_bytes());
        for epoch in epochs {
            disk.remove_file(&owner_path(folder, epoch))?;
        }
        Ok(Self { epoch, path, locked: file })
    }

    /// Returns false if another process has claimed the session since.
    pub fn is_current(&self) -> bool {
        self.path.exists()
    }
}

/// Locks a session's folder against claims and deletion, until the file is dropped.
///
/// # Errors
/// [`SessionStoreError::NotFound`] if it does not exist, or was deleted during the wait.
pub fn lock_folder(folder: &Path, id: &str) -> Result<File, SessionStoreError> {
    let waits = |file: &File| file.lock().map(|()| true);
    let locked = lock_folder_with(folder, id, waits)?;
    locked.ok_or_else(|| SessionStoreError::InUse { id: id.to_owned(), pid: None })
}

/// Does the same without waiting. Returns `None` if another process has locked the folder.
///
/// # Errors
/// As [`lock_folder`].
pub fn try_lock_folder(folder: &Path, id: &str) -> Result<Option<File>, SessionStoreError> {
    lock_folder_with(folder, id, |file| match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    })
}

/// Returns `None` if `lock` returns false.
fn lock_folder_with(
    folder: &Path,
    id: &str,
    lock: impl Fn(&File) -> io::Result<bool>,
) -> Result<Option<File>, SessionStoreError> {
    let path = folder.join(LOCK);
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    let failed = |error: io::Error| match error.kind() {
        ErrorKind::NotFound => SessionStoreError::NotFound(id.to_owned()),
        _ => SessionStoreError::from_io("lock", &path)(error),
    };
    check_regular_file(&path)?;
    let file = options.open(&path).map_err(failed)?;
    if !lock(&file).map_err(failed)? {
        return Ok(None);
    }
    let (locked, named) =
        (file.metadata().map_err(failed)?, fs::symlink_metadata(&path).map_err(failed)?);
    match (locked.dev(), locked.ino()) == (named.dev(), named.ino()) {
        true => Ok(Some(file)),
        false => Err(SessionStoreError::NotFound(id.to_owned())),
    }
}

/// Returns whether the owner of a session is alive.
///
/// # Errors
/// If the folder cannot be read.
pub fn owner_state(folder: &Path) -> Result<OwnerState, SessionStoreError> {
    match list_epochs(folder)?.into_iter().max() {
        Some(epoch) => owner_file_state(&owner_path(folder, epoch)),
        None => Ok(OwnerState::Free),
    }
}

fn owner_path(folder: &Path, epoch: u64) -> PathBuf {
    folder.join(format!("{PREFIX}{epoch}"))
}

fn list_epochs(folder: &Path) -> Result<Vec<u64>, SessionStoreError> {
    let entries = fs::read_dir(folder).map_err(SessionStoreError::from_io("read", folder))?;
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let epochs = names.filter_map(|name| name.strip_prefix(PREFIX)?.parse().ok());
    // No claim makes a greater number, so such a file is from elsewhere.
    Ok(epochs.filter(|epoch| *epoch <= EPOCH_MAX).collect())
}

fn owner_file_state(path: &Path) -> Result<OwnerState, SessionStoreError> {
    let (folder, name) = (path.parent(), path.file_name().unwrap_or_default());
    let file = match open_regular_file(folder.unwrap_or(path), Path::new(name)) {
        Ok(file) => file,
        Err(SessionStoreError::Io { error, .. }) if error.kind() == ErrorKind::NotFound => {
            return Ok(OwnerState::Free);
        }
        Err(error) => return Err(error),
    };
    // Shared, so that two processes that look do not take each other for the owner.
    match file.try_lock_shared() {
        Ok(()) => Ok(OwnerState::Free),
        Err(TryLockError::WouldBlock) => {
            let mut text = String::new();
            let read = file.take(PID_DIGITS_MAX).read_to_string(&mut text);
            let pid = read.ok().and_then(|_| text.trim().parse().ok());
            Ok(OwnerState::InUse { pid })
        }
        Err(TryLockError::Error(error)) => Err(SessionStoreError::from_io("lock", path)(error)),
    }
}
