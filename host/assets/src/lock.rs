//! One writer per file, across processes.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::store::AssetPaths;
use crate::{AssetError, AssetEvent, AssetReporter};

/// How often a held lock is tried again.
const POLL: Duration = Duration::from_millis(200);

/// Longest wait while the other process makes no progress: a part of 50 MB over a slow line.
const STALL_MAX: Duration = Duration::from_secs(30 * 60);

/// A lock, held until it is dropped or the process ends. The file stays, because removing it would
/// race.
#[derive(Debug)]
pub(crate) struct AssetLock {
    _file: File,
}

impl AssetLock {
    /// Takes the lock. Returns `None` if another process holds it.
    pub(crate) fn try_take(path: &Path) -> Result<Option<Self>, AssetError> {
        let mut options = OpenOptions::new();
        let open =
            jaato_places::open_own_file(path, options.create(true).truncate(false).write(true));
        let file = open.map_err(|error| AssetError::from_io("open", path, error.into()))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self { _file: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(AssetError::from_io("lock", path, error)),
        }
    }

    /// Takes the lock or fails immediately.
    pub(crate) fn acquire(path: &Path) -> Result<Self, AssetError> {
        let busy = || AssetError::Busy { path: path.to_owned(), waited: Duration::ZERO };
        Self::try_take(path)?.ok_or_else(busy)
    }

    /// Waits for the lock as long as its holder makes progress, and reports that once.
    pub(crate) async fn wait_for_lock(
        paths: &AssetPaths,
        total: u64,
        report: &AssetReporter,
    ) -> Result<Self, AssetError> {
        if let Some(lock) = Self::try_take(&paths.lock)? {
            return Ok(lock);
        }
        report(AssetEvent::Waiting { path: paths.lock.clone() });
        let (mut seen, mut stalled) = (0, Duration::ZERO);
        while stalled < STALL_MAX {
            tokio::time::sleep(POLL).await;
            if let Some(lock) = Self::try_take(&paths.lock)? {
                return Ok(lock);
            }
            let done = file_length(&paths.part);
            if done == seen {
                stalled += POLL;
            } else {
                (seen, stalled) = (done, Duration::ZERO);
                report(AssetEvent::Progress { done: done.min(total), total });
            }
        }
        Err(AssetError::Busy { path: paths.lock.clone(), waited: STALL_MAX })
    }
}

fn file_length(path: &PathBuf) -> u64 {
    std::fs::metadata(path).map_or(0, |metadata| metadata.len())
}
