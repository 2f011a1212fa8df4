//! A lock between processes, based on an empty file.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use super::HistoryError;

/// The maximum wait for a lock. Other processes hold it for milliseconds, unless they are stopped.
const WAIT_MAX: Duration = Duration::from_secs(5);

const POLL: Duration = Duration::from_millis(1);

/// A locked file. The system unlocks it when the process is killed.
#[derive(Debug)]
pub struct FileLock(File);

impl FileLock {
    /// Wraps a file that is already locked.
    pub fn new(file: File) -> Self {
        Self(file)
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // Closing the file is not enough: a child that another thread starts at this moment holds
        // it open until its program begins. If unlocking fails, the lock ends at that point.
        let _ = self.0.unlock();
    }
}

/// Locks a file and creates it if it is missing.
pub fn lock_file(path: &Path) -> Result<FileLock, HistoryError> {
    // Opening a named pipe would block until another process reads it.
    if path.metadata().is_ok_and(|found| !found.is_file()) {
        let odd = io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file");
        return Err(HistoryError::from_io_error("open", path)(odd));
    }
    let mut options = OpenOptions::new();
    let file = options.write(true).create(true).truncate(false).mode(0o600).open(path);
    let file = file.map_err(HistoryError::from_io_error("open", path))?;
    let begin = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(FileLock(file)),
            Err(TryLockError::WouldBlock) if begin.elapsed() < WAIT_MAX => std::thread::sleep(POLL),
            Err(TryLockError::WouldBlock) => return Err(HistoryError::Busy(path.to_owned())),
            Err(TryLockError::Error(error)) => {
                return Err(HistoryError::from_io_error("lock", path)(error));
            }
        }
    }
}
