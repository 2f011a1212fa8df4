//! A lock between processes, by a file that says nothing.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use super::HistoryError;

/// How long a lock is waited for. Others hold it for milliseconds, unless they are stopped.
const WAIT_MAX: Duration = Duration::from_secs(5);

const POLL: Duration = Duration::from_millis(1);

/// Locks a file, which is made where it is missing. It is unlocked when it is dropped, also by a
/// process that is killed.
pub fn lock(path: &Path) -> Result<File, HistoryError> {
    let mut options = OpenOptions::new();
    let file = options.write(true).create(true).truncate(false).mode(0o600).open(path);
    let file = file.map_err(HistoryError::io("open", path))?;
    let begin = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if begin.elapsed() < WAIT_MAX => std::thread::sleep(POLL),
            Err(TryLockError::WouldBlock) => return Err(HistoryError::Busy(path.to_owned())),
            Err(TryLockError::Error(error)) => return Err(HistoryError::io("lock", path)(error)),
        }
    }
}
