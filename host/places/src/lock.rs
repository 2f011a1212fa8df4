//! A lock between processes, with an empty file.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::error::PlaceError;
use crate::file::open_own_file;

const POLL: Duration = Duration::from_millis(5);

/// Locks a file of jaato, and makes it if it is missing. Returns `None` if another process holds
/// the lock for longer than the wait. Blocks. Dropping the file unlocks it, and so does the end of
/// the process.
///
/// The protected data must be in another file, because renaming over a locked file would leave two
/// locked files.
///
/// # Errors
/// The problem with the file, or with a folder above it.
pub fn lock_own_file(path: &Path, wait: Duration) -> Result<Option<File>, PlaceError> {
    let file = open_own_file(path, OpenOptions::new().write(true).create(true).truncate(false))?;
    let begin = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Some(file)),
            Err(TryLockError::WouldBlock) if begin.elapsed() < wait => std::thread::sleep(POLL),
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(PlaceError::from_io(path)(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_held_once_until_it_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("below/it.lock");
        let held = lock_own_file(&path, Duration::ZERO).unwrap();
        assert!(held.is_some());
        assert!(lock_own_file(&path, Duration::ZERO).unwrap().is_none());
        drop(held);
        assert!(lock_own_file(&path, Duration::ZERO).unwrap().is_some());
    }
}
