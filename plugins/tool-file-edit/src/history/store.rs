//! The history of one workspace.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use super::change::FILES_PER_CHANGE_MAX;
use super::contents::{ContentStore, ContentWriter, make_folder};
use super::index::ChangeIndex;
use super::journal::{ChangeJournal, JournalEntry};
use super::lock::lock_file;
use super::pending::{self, AbandonedChange};
use super::{
    Backup, BackupId, ChangeId, ContentId, FilePath, HistoryError, HistoryLimits, ListedChange,
    NewChange, PendingChange, RecordedChange, SessionPeriod, UndoStep,
};

/// The time between two sweeps for unreferenced contents. Each prune removes those that it creates.
const SWEEP_INTERVAL: Duration = Duration::from_hours(24);

/// The changes of the file tools in one workspace. Clones share their state.
#[derive(Debug, Clone)]
pub struct History(Arc<HistoryInner>);

#[derive(Debug)]
struct HistoryInner {
    folder: PathBuf,
    pending: PathBuf,
    contents: ContentStore,
    state: Mutex<HistoryState>,
}

#[derive(Debug)]
struct HistoryState {
    journal: ChangeJournal,
    index: ChangeIndex,
    /// Unreferenced contents that were too young to be removed.
    unused: Vec<ContentId>,
    /// The number of unreadable lines and files that are not reported yet.
    damaged: usize,
    /// Whether the journal was read.
    was_read: bool,
}

impl History {
    /// Opens the history in a folder that nothing else uses.
    ///
    /// # Errors
    /// `Io` if a folder cannot be created.
    pub fn open(folder: &Path) -> Result<Self, HistoryError> {
        let pending = folder.join("pending");
        let contents = folder.join("contents");
        make_folder(&pending)?;
        make_folder(&contents)?;
        let journal = ChangeJournal::new(folder.join("journal.jsonl"));
        let index = ChangeIndex::default();
        let unused = Vec::new();
        let state =
            Mutex::new(HistoryState { journal, index, unused, damaged: 0, was_read: false });
        let contents = ContentStore::new(contents);
        Ok(Self(Arc::new(HistoryInner { folder: folder.to_owned(), pending, contents, state })))
    }

    /// Stores a content, so that a change can refer to it.
    ///
    /// # Errors
    /// `Io` if the disk is full, or `TooLarge`.
    pub fn store_content(&self, bytes: &[u8]) -> Result<ContentId, HistoryError> {
        let id = ContentId::from_bytes(bytes);
        self.store_content_as(&id, bytes)?;
        Ok(id)
    }

    /// Stores a content whose digest is known.
    ///
    /// # Errors
    /// The errors of [`History::store_content`].
    pub fn store_content_as(&self, id: &ContentId, bytes: &[u8]) -> Result<(), HistoryError> {
        self.0.contents.store_content(bytes, id)
    }

    /// Returns a writer that stores a content in chunks.
    ///
    /// # Errors
    /// `Io` if the disk is full.
    pub fn content_writer(&self) -> Result<ContentWriter, HistoryError> {
        self.0.contents.new_content_writer()
    }

    /// Reads a stored content and verifies it.
    ///
    /// # Errors
    /// `NotKept`, `Damaged`, or `Io`.
    pub fn read_content(&self, id: &ContentId) -> Result<Vec<u8>, HistoryError> {
        self.0.contents.read_content(id)
    }

    /// Records a change before it is applied. All replaced content must be stored.
    ///
    /// # Errors
    /// - `NotKept` if content is missing because it was stored too long ago. Store it and begin
    ///   again.
    /// - `InUse` if another change of one of the files is being applied. Otherwise two processes
    ///   could replace a file at once, and one change would be lost.
    /// - `Io` if the disk is full, `TooManyFiles`, or `Busy`.
    ///
    /// After an error, the change must not be applied.
    pub fn begin_change(&self, new: NewChange) -> Result<PendingChange, HistoryError> {
        let (files, max) = (new.files.len(), FILES_PER_CHANGE_MAX);
        if files > max {
            return Err(HistoryError::TooManyFiles { files, max });
        }
        self.with_locked_history(|state| {
            for kept in new.files.iter().filter_map(|step| step.before.as_ref()) {
                if !self.0.contents.has_content(&kept.content) {
                    return Err(HistoryError::NotKept(kept.content.clone()));
                }
            }
            let ids = pending::list_pending_ids(&self.0.pending)?;
            for id in &ids {
                if let Some(path) = pending::find_path_in_use(&self.0.pending, *id, &new.files)? {
                    return Err(HistoryError::InUse(path));
                }
            }
            let id = state.index.next_id(&ids);
            let change = RecordedChange::new(id, now_ms(), new);
            let file = pending::write_pending_file(&self.0.pending, &change)?;
            Ok(PendingChange::new(self.clone(), change, file))
        })
    }

    /// Takes over changes that their process no longer applies. The caller must recover each (see
    /// [`plan_recovery`](super::plan_recovery)) and finish it. A dropped change is found again.
    ///
    /// # Errors
    /// `Io` or `Busy`.
    pub fn take_unfinished_changes(&self) -> Result<Vec<PendingChange>, HistoryError> {
        // Skips the lock if nothing is pending, because this runs before each call.
        if pending::list_pending_ids(&self.0.pending)?.is_empty() {
            return Ok(Vec::new());
        }
        self.with_locked_history(|state| {
            let mut taken_over = Vec::new();
            for id in pending::list_pending_ids(&self.0.pending)? {
                match pending::take_over_change(&self.0.pending, id)? {
                    None => {}
                    Some(AbandonedChange::Change(change, file)) if !state.index.has_change(id) => {
                        taken_over.push(PendingChange::new(self.clone(), *change, file));
                    }
                    // The journal already has the change, because its process died before it
                    // removed this file.
                    Some(AbandonedChange::Change(..) | AbandonedChange::Torn) => {
                        pending::remove_pending_file(&self.0.pending, id)?;
                    }
                    Some(AbandonedChange::Damaged) => {
                        pending::remove_pending_file(&self.0.pending, id)?;
                        state.damaged += 1;
                    }
                }
            }
            Ok(taken_over)
        })
    }

    /// Returns the latest change of a file that was not undone.
    ///
    /// # Errors
    /// `Hindered` if it cannot be undone as a whole, `Io`, or `Busy`.
    pub fn undo_step(&self, path: &FilePath) -> Result<Option<UndoStep>, HistoryError> {
        self.with_locked_history(|state| state.index.undo_step(path))
    }

    /// Returns the latest undo of a file, if no other change followed.
    ///
    /// # Errors
    /// The errors of [`History::undo_step`].
    pub fn redo_step(&self, path: &FilePath) -> Result<Option<UndoStep>, HistoryError> {
        self.with_locked_history(|state| state.index.redo_step(path))
    }

    /// Returns the effect of a change, to undo it. Undoing an undo redoes the original change.
    ///
    /// # Errors
    /// `NoChange`, `TakenBack`, or the errors of [`History::undo_step`].
    pub fn undo_step_of_change(&self, id: ChangeId) -> Result<UndoStep, HistoryError> {
        self.with_locked_history(|state| state.index.undo_step_of_change(id))
    }

    /// Returns the latest change that was not undone, of one session or of all sessions.
    ///
    /// # Errors
    /// `Io` or `Busy`.
    pub fn latest_change(&self, session: Option<&str>) -> Result<Option<ChangeId>, HistoryError> {
        self.with_locked_history(|state| Ok(state.index.latest_change(session)))
    }

    /// Lists the changes of sessions since a time that were not undone, newest first.
    ///
    /// # Errors
    /// `Io` or `Busy`.
    pub fn changes_since(
        &self,
        sessions: &[SessionPeriod],
        at_ms: i64,
    ) -> Result<Vec<ChangeId>, HistoryError> {
        self.with_locked_history(|state| Ok(state.index.changes_since(sessions, at_ms)))
    }

    /// Lists the latest changes, newest first.
    ///
    /// # Errors
    /// `Io` or `Busy`.
    pub fn list_changes(&self, max: usize) -> Result<Vec<ListedChange>, HistoryError> {
        self.with_locked_history(|state| Ok(state.index.list_changes().take(max).collect()))
    }

    /// Lists the backups of one path or of all paths, newest first.
    ///
    /// # Errors
    /// `Io` or `Busy`.
    pub fn list_backups(&self, path: Option<&FilePath>) -> Result<Vec<Backup>, HistoryError> {
        self.with_locked_history(|state| Ok(state.index.list_backups(path)))
    }

    /// Finds a backup.
    ///
    /// # Errors
    /// `NoBackup`, `Io`, or `Busy`.
    pub fn find_backup(&self, id: &BackupId) -> Result<Backup, HistoryError> {
        let found = self.with_locked_history(|state| Ok(state.index.find_backup(id)))?;
        found.ok_or_else(|| HistoryError::NoBackup(id.clone()))
    }

    /// Removes the oldest changes beyond the limits, and contents without references. Call it after
    /// each change.
    ///
    /// # Errors
    /// `Io` or `Busy`. The next call removes the remaining changes.
    pub fn prune_history(&self, bounds: &HistoryLimits) -> Result<(), HistoryError> {
        self.with_locked_history(|state| {
            let of_files = state.index.changes_over_file_limit(bounds.changes_per_file);
            state.remove_steps(of_files)?;
            let oldest = state.index.changes_over_total_limits(bounds);
            state.remove_steps(oldest)?;
            if state.index.has_mostly_forgotten_changes() {
                let entries = state.index.journal_entries();
                state.journal.rewrite_entries(&entries)?;
                state.index.lines = entries.len();
            }
            match self.start_sweep_if_due() {
                false if state.unused.is_empty() => Ok(()),
                is_sweep_due => self.remove_unused(state, is_sweep_due),
            }
        })
    }

    /// Returns the number of unreadable lines and files since the last call.
    ///
    /// # Errors
    /// `Io` or `Busy`.
    pub fn take_damaged_count(&self) -> Result<usize, HistoryError> {
        let take = |state: &mut HistoryState| std::mem::take(&mut state.damaged);
        {
            let mut state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
            // This runs before each call, so lines from other processes can wait until they are
            // needed.
            if state.was_read {
                return Ok(take(&mut state));
            }
        }
        self.with_locked_history(|state| Ok(take(state)))
    }

    /// Records the outcome of a change and removes its pending file.
    pub(super) fn record_outcome(&self, mut change: RecordedChange) -> Result<(), HistoryError> {
        self.with_locked_history(|state| {
            let id = change.id;
            state.index.record_undone_paths(&mut change);
            state.append_entry(JournalEntry::Change(change))?;
            // If the removal fails, a later process removes the file, because the journal has the
            // change.
            let _ = pending::remove_pending_file(&self.0.pending, id);
            Ok(())
        })
    }

    fn remove_unused(
        &self,
        state: &mut HistoryState,
        is_sweep_due: bool,
    ) -> Result<(), HistoryError> {
        let ids = pending::list_pending_ids(&self.0.pending)?;
        let changes: Vec<_> = ids
            .iter()
            .filter_map(|id| pending::read_pending_change(&self.0.pending, *id))
            .collect();
        let before =
            changes.iter().flat_map(|change| &change.files).filter_map(|step| step.before.as_ref());
        let pending: Vec<_> = before.map(|kept| &kept.content).collect();
        let is_used = |id: &ContentId| state.index.is_content_used(id) || pending.contains(&id);
        state.unused.retain(|id| !is_used(id) && !self.0.contents.remove_unused(id));
        if is_sweep_due {
            self.0.contents.remove_all_unused(is_used)?;
        }
        Ok(())
    }

    /// Returns true if a sweep is due, and marks it as done. Setting the clock back causes at most
    /// one additional sweep.
    fn start_sweep_if_due(&self) -> bool {
        let path = self.0.folder.join("swept");
        let swept = fs::metadata(&path).and_then(|facts| facts.modified());
        let is_fresh = swept.is_ok_and(|at| at.elapsed().is_ok_and(|age| age < SWEEP_INTERVAL));
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        // If the disk is full, the next prune tries again.
        !is_fresh
            && options.open(&path).and_then(|file| file.set_modified(SystemTime::now())).is_ok()
    }

    /// Runs `work` with the current journal, while no other process changes it.
    fn with_locked_history<T>(
        &self,
        work: impl FnOnce(&mut HistoryState) -> Result<T, HistoryError>,
    ) -> Result<T, HistoryError> {
        let mut state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        let _lock = lock_file(&self.0.folder.join("journal.lock"))?;
        state.read_journal_update()?;
        work(&mut state)
    }
}

impl HistoryState {
    fn read_journal_update(&mut self) -> Result<(), HistoryError> {
        let news = self.journal.read_update()?;
        if news.is_anew {
            self.index = ChangeIndex::default();
        }
        self.was_read = true;
        self.damaged += news.damaged;
        self.index.lines += news.damaged;
        for entry in news.entries {
            self.unused.extend(self.index.add_entry(entry));
        }
        Ok(())
    }

    fn remove_steps(&mut self, steps: Vec<(ChangeId, FilePath)>) -> Result<(), HistoryError> {
        match steps.is_empty() {
            true => Ok(()),
            false => self.append_entry(JournalEntry::Forget(steps)),
        }
    }

    fn append_entry(&mut self, entry: JournalEntry) -> Result<(), HistoryError> {
        self.journal.append_entry(&entry)?;
        self.unused.extend(self.index.add_entry(entry));
        Ok(())
    }
}

/// Returns the milliseconds since 1970 UTC.
pub(super) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
