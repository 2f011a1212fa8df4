//! Changes that are being applied.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use super::contents::folder_entries;
use super::lock::FileLock;
use super::store::now_ms;
use super::{
    ChangeId, ChangeOutcome, FilePath, FileTransition, History, HistoryError, RecordedChange,
};

/// The age at which a pending change is abandoned. Within a week, its environment may come back.
const STALE_MS: i64 = 7 * 24 * 60 * 60 * 1000;

/// A change that is being applied. Its file is locked while this exists. If this is dropped before
/// [`PendingChange::finish`], the change is [unfinished](History::unfinished).
#[derive(Debug)]
pub struct PendingChange {
    history: History,
    change: RecordedChange,
    _locked: FileLock,
}

/// The content of a pending file whose process has ended.
pub(super) enum AbandonedChange {
    /// A complete change.
    Change(Box<RecordedChange>, FileLock),
    /// An incomplete line. The process died before it applied anything.
    Torn,
    /// A complete line in an unknown format.
    Damaged,
}

impl PendingChange {
    pub(super) fn new(history: History, change: RecordedChange, locked: FileLock) -> Self {
        Self { history, change, _locked: locked }
    }

    /// Returns the change.
    pub fn change(&self) -> &RecordedChange {
        &self.change
    }

    /// Returns true if the change is too old to be recovered, because its environment is gone.
    pub fn is_stale(&self) -> bool {
        now_ms().saturating_sub(self.change.at_ms) > STALE_MS
    }

    /// Records the outcome of the change.
    ///
    /// # Errors
    /// `Io` if the disk is full, or `Busy`. The change is then unfinished, and the next
    /// [`History::take_unfinished_changes`] finds it.
    pub fn finish(self, outcome: ChangeOutcome) -> Result<ChangeId, HistoryError> {
        let id = self.change.id;
        self.history
            .clone()
            .record_outcome(RecordedChange { outcome: Some(outcome), ..self.change })?;
        Ok(id)
    }
}

/// Writes the file of a change and locks it. The caller must hold the history's lock.
pub(super) fn write_pending_file(
    folder: &Path,
    change: &RecordedChange,
) -> Result<FileLock, HistoryError> {
    let path = pending_path(folder, change.id);
    let mut options = OpenOptions::new();
    let file = options.write(true).create_new(true).mode(0o600).open(&path);
    let mut file = file.map_err(HistoryError::from_io_error("write", &path))?;
    let mut line = serde_json::to_vec(change).unwrap_or_default();
    line.push(b'\n');
    let written = file.lock().and_then(|()| file.write_all(&line));
    if let Err(error) = written {
        // If the removal fails, the next reader removes the torn file.
        let _ = fs::remove_file(&path);
        return Err(HistoryError::from_io_error("write", &path)(error));
    }
    Ok(FileLock::new(file))
}

/// Removes the file of a change.
pub(super) fn remove_pending_file(folder: &Path, id: ChangeId) -> Result<(), HistoryError> {
    let path = pending_path(folder, id);
    fs::remove_file(&path).map_err(HistoryError::from_io_error("remove", &path))
}

/// Lists the numbers of pending changes, of running and ended processes.
pub(super) fn list_pending_ids(folder: &Path) -> Result<Vec<ChangeId>, HistoryError> {
    let number = |path: &PathBuf| path.file_name()?.to_str()?.parse().ok().map(ChangeId);
    let mut ids: Vec<_> = folder_entries(folder)?.iter().filter_map(number).collect();
    ids.sort_unstable();
    Ok(ids)
}

/// Reads a pending change, locked or not. Returns `None` if it cannot be read.
pub(super) fn read_pending_change(folder: &Path, id: ChangeId) -> Option<RecordedChange> {
    let bytes = fs::read(pending_path(folder, id)).ok()?;
    serde_json::from_slice(&bytes).ok()
}

/// Finds a path of `files` that a running process also changes with the pending change `id`. The
/// caller must hold the history's lock.
pub(super) fn find_path_in_use(
    folder: &Path,
    id: ChangeId,
    files: &[FileTransition],
) -> Result<Option<FilePath>, HistoryError> {
    // An unreadable file is not a change that is being applied.
    let Some(change) = read_pending_change(folder, id) else { return Ok(None) };
    let taken: HashSet<&FilePath> = change.files.iter().map(|step| &step.path).collect();
    let Some(step) = files.iter().find(|step| taken.contains(&step.path)) else { return Ok(None) };
    let path = pending_path(folder, id);
    let file = File::open(&path).map_err(HistoryError::from_io_error("open", &path))?;
    match file.try_lock() {
        Ok(()) => {
            drop(FileLock::new(file));
            Ok(None)
        }
        Err(TryLockError::WouldBlock) => Ok(Some(step.path.clone())),
        Err(TryLockError::Error(error)) => Err(HistoryError::from_io_error("lock", &path)(error)),
    }
}

/// Takes over an unlocked change. Returns `None` if its process is running. The caller must hold
/// the history's lock.
pub(super) fn take_over_change(
    folder: &Path,
    id: ChangeId,
) -> Result<Option<AbandonedChange>, HistoryError> {
    let path = pending_path(folder, id);
    let file = OpenOptions::new().read(true).write(true).open(&path);
    let mut file = file.map_err(HistoryError::from_io_error("open", &path))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(None),
        Err(TryLockError::Error(error)) => {
            return Err(HistoryError::from_io_error("lock", &path)(error));
        }
    }
    let mut line = Vec::new();
    file.read_to_end(&mut line).map_err(HistoryError::from_io_error("read", &path))?;
    Ok(Some(match serde_json::from_slice::<RecordedChange>(&line) {
        Ok(change) if change.id == id => {
            AbandonedChange::Change(Box::new(change), FileLock::new(file))
        }
        _ if !line.ends_with(b"\n") => AbandonedChange::Torn,
        _ => AbandonedChange::Damaged,
    }))
}

fn pending_path(folder: &Path, id: ChangeId) -> PathBuf {
    folder.join(id.to_string())
}
