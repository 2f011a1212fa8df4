//! A lock between processes, by a file of ours that says nothing.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::error::PlaceError;
use crate::file::open;

const POLL: Duration = Duration::from_millis(5);

/// Locks a file of ours, which is made where it is missing; `None` where another process holds it
/// for longer than the wait. Blocks. It is unlocked when it is dropped, also by a process that is
/// killed.
///
/// What is protected must be another file: renaming over a locked one would leave two that are
/// locked.
///
/// # Errors
/// What is wrong with the file, or with a folder above it.
pub fn lock(path: &Path, wait: Duration) -> Result<Option<File>, PlaceError> {
    let file = open(path, OpenOptions::new().write(true).create(true).truncate(false))?;
    let begin = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Some(file)),
            Err(TryLockError::WouldBlock) if begin.elapsed() < wait => std::thread::sleep(POLL),
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(PlaceError::system(path)(error)),
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
        let held = lock(&path, Duration::ZERO).unwrap();
        assert!(held.is_some());
        assert!(lock(&path, Duration::ZERO).unwrap().is_none());
        drop(held);
        assert!(lock(&path, Duration::ZERO).unwrap().is_some());
    }
}
