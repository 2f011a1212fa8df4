//! Changes that are being applied.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use super::contents::entries;
use super::lock::Locked;
use super::store::now_ms;
use super::{Change, ChangeId, FilePath, FileStep, History, HistoryError, Outcome};

/// How old a change is that is given up: a week, in which its environment may come back.
const STALE_MS: i64 = 7 * 24 * 60 * 60 * 1000;

/// A change that is being applied: its file is locked as long as this lives. If it is dropped
/// before [`Pending::finish`], the change is [unfinished](History::unfinished).
#[derive(Debug)]
pub struct Pending {
    history: History,
    change: Change,
    _locked: Locked,
}

/// What stands in the file of a change whose process is gone.
pub(super) enum LeftBehind {
    /// The change.
    Change(Box<Change>, Locked),
    /// Nothing whole: the process died before anything was applied.
    Torn,
    /// A whole line that is none of ours.
    Damaged,
}

impl Pending {
    pub(super) fn new(history: History, change: Change, locked: Locked) -> Self {
        Self { history, change, _locked: locked }
    }

    /// Returns the change.
    pub fn change(&self) -> &Change {
        &self.change
    }

    /// Whether it began so long ago that nobody is going to recover it: the environment that it was
    /// made in is gone.
    pub fn is_stale(&self) -> bool {
        now_ms().saturating_sub(self.change.at_ms) > STALE_MS
    }

    /// Writes down how the change ended.
    ///
    /// # Errors
    /// `Io` when the disk is full, `Busy`. Then the change is unfinished, and whoever looks next
    /// finds how far it came.
    pub fn finish(self, outcome: Outcome) -> Result<ChangeId, HistoryError> {
        let id = self.change.id;
        self.history.clone().end(Change { outcome: Some(outcome), ..self.change })?;
        Ok(id)
    }
}

/// Writes the file of a change, and locks it. Called by the holder of the history's lock.
pub(super) fn write(folder: &Path, change: &Change) -> Result<Locked, HistoryError> {
    let path = path_of(folder, change.id);
    let mut options = OpenOptions::new();
    let file = options.write(true).create_new(true).mode(0o600).open(&path);
    let mut file = file.map_err(HistoryError::io("write", &path))?;
    let mut line = serde_json::to_vec(change).unwrap_or_default();
    line.push(b'\n');
    let written = file.lock().and_then(|()| file.write_all(&line));
    if let Err(error) = written {
        // What stays is torn, and taken away by whoever finds it.
        let _ = fs::remove_file(&path);
        return Err(HistoryError::io("write", &path)(error));
    }
    Ok(Locked::new(file))
}

/// Takes the file of a change away.
pub(super) fn remove(folder: &Path, id: ChangeId) -> Result<(), HistoryError> {
    let path = path_of(folder, id);
    fs::remove_file(&path).map_err(HistoryError::io("remove", &path))
}

/// Lists the numbers of changes that are pending, of living processes and of dead ones.
pub(super) fn list(folder: &Path) -> Result<Vec<ChangeId>, HistoryError> {
    let number = |path: &PathBuf| path.file_name()?.to_str()?.parse().ok().map(ChangeId);
    let mut ids: Vec<_> = entries(folder)?.iter().filter_map(number).collect();
    ids.sort_unstable();
    Ok(ids)
}

/// Reads a change that is pending, whoever holds it; `None` if it cannot be read.
pub(super) fn read(folder: &Path, id: ChangeId) -> Option<Change> {
    let bytes = fs::read(path_of(folder, id)).ok()?;
    serde_json::from_slice(&bytes).ok()
}

/// Finds a path that a change names too which a living process applies at this moment. Called by
/// the holder of the history's lock.
pub(super) fn path_in_use(
    folder: &Path,
    id: ChangeId,
    files: &[FileStep],
) -> Result<Option<FilePath>, HistoryError> {
    // One that cannot be read is no change that is being applied.
    let Some(change) = read(folder, id) else { return Ok(None) };
    let taken: HashSet<&FilePath> = change.files.iter().map(|step| &step.path).collect();
    let Some(step) = files.iter().find(|step| taken.contains(&step.path)) else { return Ok(None) };
    let path = path_of(folder, id);
    let file = File::open(&path).map_err(HistoryError::io("open", &path))?;
    match file.try_lock() {
        Ok(()) => {
            drop(Locked::new(file));
            Ok(None)
        }
        Err(TryLockError::WouldBlock) => Ok(Some(step.path.clone())),
        Err(TryLockError::Error(error)) => Err(HistoryError::io("lock", &path)(error)),
    }
}

/// Takes over a change that nobody holds; `None` if its process lives. Called by the holder of the
/// history's lock.
pub(super) fn take_over(folder: &Path, id: ChangeId) -> Result<Option<LeftBehind>, HistoryError> {
    let path = path_of(folder, id);
    let file = OpenOptions::new().read(true).write(true).open(&path);
    let mut file = file.map_err(HistoryError::io("open", &path))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(None),
        Err(TryLockError::Error(error)) => return Err(HistoryError::io("lock", &path)(error)),
    }
    let mut line = Vec::new();
    file.read_to_end(&mut line).map_err(HistoryError::io("read", &path))?;
    Ok(Some(match serde_json::from_slice::<Change>(&line) {
        Ok(change) if change.id == id => LeftBehind::Change(Box::new(change), Locked::new(file)),
        _ if !line.ends_with(b"\n") => LeftBehind::Torn,
        _ => LeftBehind::Damaged,
    }))
}

fn path_of(folder: &Path, id: ChangeId) -> PathBuf {
    folder.join(id.to_string())
}
