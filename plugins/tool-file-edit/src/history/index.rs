//! The content of the journal in memory.

use std::collections::hash_map::Entry as Slot;
use std::collections::{BTreeMap, HashMap, HashSet};

use super::journal::JournalEntry;
use super::timeline::UndoTimeline;
use super::{
    Backup, BackupId, ChangeId, ChangeOutcome, ContentId, FilePath, FileTransition, HistoryError,
    HistoryLimits, ListedChange, RecordedChange, SessionPeriod, UndoStep,
};

/// The maximum number of lines about forgotten changes in a small journal.
const LINES_SPARE: usize = 1_000;

/// An index of all finished changes.
#[derive(Debug, Default)]
pub(super) struct ChangeIndex {
    /// The changes, in the order in which they finished.
    changes: BTreeMap<u64, RecordedChange>,
    /// The position of each change in `changes`.
    places: HashMap<ChangeId, u64>,
    /// The positions of the changes of each path, oldest first.
    paths: HashMap<FilePath, Vec<u64>>,
    /// The number of references to each content, and its size.
    contents: HashMap<ContentId, (usize, u64)>,
    /// The total size of all contents.
    bytes: u64,
    steps: usize,
    /// Paths that got a new step since the last count.
    grown: HashSet<FilePath>,
    next_place: u64,
    /// The smallest unused number.
    next: u64,
    /// The number of lines in the journal, including those about forgotten changes.
    pub lines: usize,
}

impl ChangeIndex {
    /// Adds a line of the journal. Returns contents that lost their last reference.
    pub fn add_entry(&mut self, entry: JournalEntry) -> Vec<ContentId> {
        self.lines += 1;
        match entry {
            JournalEntry::Change(change) => {
                self.add_change(change);
                Vec::new()
            }
            JournalEntry::Forget(steps) => steps
                .iter()
                .filter_map(|(id, path)| self.remove_effect(*id, path))
                .flatten()
                .collect(),
            JournalEntry::Next(id) => {
                self.next = self.next.max(id.0);
                Vec::new()
            }
        }
    }

    /// Returns an unused number. `pending` are the pending changes.
    pub fn next_id(&self, pending: &[ChangeId]) -> ChangeId {
        let after = pending.iter().map(|id| id.0 + 1).max().unwrap_or(1);
        ChangeId(self.next.max(after))
    }

    pub fn has_change(&self, id: ChangeId) -> bool {
        self.places.contains_key(&id)
    }

    pub fn is_content_used(&self, content: &ContentId) -> bool {
        self.contents.contains_key(content)
    }

    pub fn find_change(&self, id: ChangeId) -> Option<&RecordedChange> {
        self.changes.get(self.places.get(&id)?)
    }

    /// Returns the latest change of a path that can be undone, as a whole.
    pub fn undo_step(&self, path: &FilePath) -> Result<Option<UndoStep>, HistoryError> {
        self.undo_timeline(path).undo.last().map(|id| self.undo_step_of_change(*id)).transpose()
    }

    /// Returns the latest undo of a path that can be redone, as a whole.
    pub fn redo_step(&self, path: &FilePath) -> Result<Option<UndoStep>, HistoryError> {
        self.undo_timeline(path).redo.last().map(|id| self.undo_step_of_change(*id)).transpose()
    }

    /// Returns the step that undoes a change in all its files, except files at which it was already
    /// undone.
    pub fn undo_step_of_change(&self, id: ChangeId) -> Result<UndoStep, HistoryError> {
        let change =
            self.find_change(id).filter(|change| change.outcome == Some(ChangeOutcome::Done));
        let change = change.ok_or(HistoryError::NoChange(id))?;
        let mut hindrances = Vec::new();
        if change.forgotten > 0 {
            let count = change.forgotten;
            hindrances.push(format!("{count} of its files were removed from the history"));
        }
        let mut files = Vec::new();
        for step in &change.files {
            match self.undo_timeline(&step.path).next_blocking_change(id) {
                Some(next) if next == id => files.push(step.clone()),
                None => {}
                Some(next) => {
                    let tool = self.find_change(next).map_or("another call", |it| &*it.tool);
                    let path = &step.path;
                    hindrances.push(format!("{path} was changed again by {tool} (change {next})"));
                }
            }
        }
        if !hindrances.is_empty() {
            return Err(HistoryError::Hindered { change: id, hindrances });
        }
        if files.is_empty() {
            return Err(HistoryError::TakenBack(id));
        }
        let (tool, session) = (change.tool.clone(), change.session.clone());
        Ok(UndoStep { change: id, at_ms: change.at_ms, tool, session, files })
    }

    /// Returns the latest change that was not undone, of one session or of all sessions.
    pub fn latest_change(&self, session: Option<&str>) -> Option<ChangeId> {
        let is_asked =
            |change: &&RecordedChange| session.is_none_or(|session| change.session == session);
        let changes = self.changes.values().rev().filter(is_asked);
        let mut open = changes.filter(|change| !self.is_undone_or_undo(change));
        open.next().map(|change| change.id)
    }

    /// Lists the changes of sessions since a time that were not undone, newest first.
    pub fn changes_since(&self, sessions: &[SessionPeriod], at_ms: i64) -> Vec<ChangeId> {
        let changes = self.changes.values().rev();
        let is_in = |change: &RecordedChange| sessions.iter().any(|it| it.contains(change));
        let asked = changes.filter(|it| it.at_ms >= at_ms && is_in(it));
        asked.filter(|change| !self.is_undone_or_undo(change)).map(|change| change.id).collect()
    }

    /// Lists the changes, newest first.
    pub fn list_changes(&self) -> impl Iterator<Item = ListedChange> {
        let is_done = |change: &&RecordedChange| change.outcome == Some(ChangeOutcome::Done);
        self.changes.values().rev().filter(is_done).map(|change| ListedChange {
            id: change.id,
            at_ms: change.at_ms,
            tool: change.tool.clone(),
            undoes: change.undoes,
            files: change.files.iter().map(|step| step.path.clone()).collect(),
            is_taken_back: self.is_undone_or_undo(change),
        })
    }

    /// Returns true if a change is an undo, or if nothing of it can still be undone.
    fn is_undone_or_undo(&self, change: &RecordedChange) -> bool {
        let is_open =
            |step: &FileTransition| self.undo_timeline(&step.path).undo.contains(&change.id);
        change.outcome != Some(ChangeOutcome::Done) || !change.files.iter().any(is_open)
    }

    /// Lists the backups of one path or of all paths, newest first.
    pub fn list_backups(&self, path: Option<&FilePath>) -> Vec<Backup> {
        let mut backups = Vec::new();
        let mut newer: HashMap<&FilePath, &ContentId> = HashMap::new();
        let places: Box<dyn Iterator<Item = &u64>> = match path {
            Some(path) => Box::new(self.paths.get(path).into_iter().flatten().rev()),
            None => Box::new(self.changes.keys().rev()),
        };
        for change in places.filter_map(|place| self.changes.get(place)) {
            let is_asked = |step: &&FileTransition| path.is_none_or(|path| step.path == *path);
            for step in change.files.iter().filter(is_asked) {
                let Some(file) = &step.before else { continue };
                // Consecutive changes that found the same content share one backup.
                if newer.insert(&step.path, &file.content) == Some(&file.content) {
                    continue;
                }
                backups.extend(backup_of_transition(change, step));
            }
        }
        backups
    }

    pub fn find_backup(&self, id: &BackupId) -> Option<Backup> {
        let change = self.find_change(id.change_id())?;
        change
            .files
            .iter()
            .filter_map(|step| backup_of_transition(change, step))
            .find(|backup| backup.id == *id)
    }

    /// Returns the steps beyond the limit per file: first those that can be neither undone nor
    /// redone, then the oldest.
    pub fn changes_over_file_limit(&mut self, max: usize) -> Vec<(ChangeId, FilePath)> {
        let mut steps = Vec::new();
        for path in std::mem::take(&mut self.grown) {
            let changes: Vec<ChangeId> =
                self.changes_of_path(&path).map(|change| change.id).collect();
            let excess = changes.len().saturating_sub(max.max(1));
            if excess == 0 {
                continue;
            }
            let line = self.undo_timeline(&path);
            let (needed, free): (Vec<_>, Vec<_>) =
                changes.into_iter().partition(|id| line.can_undo_or_redo(*id));
            let forgotten = free.into_iter().chain(needed).take(excess);
            steps.extend(forgotten.map(|id| (id, path.clone())));
        }
        steps
    }

    /// Records the paths at which a change undoes the latest change or the latest undo.
    pub fn record_undone_paths(&self, change: &mut RecordedChange) {
        let Some(undoes) = change.undoes else { return };
        for step in &change.files {
            let line = self.undo_timeline(&step.path);
            if line.undo.last() == Some(&undoes) {
                change.undone.push(step.path.clone());
            } else if line.redo.last() == Some(&undoes) {
                change.redone.push(step.path.clone());
            }
        }
    }

    /// Returns the oldest steps to remove until the others are within the limits. The latest change
    /// stays.
    pub fn changes_over_total_limits(&self, bounds: &HistoryLimits) -> Vec<(ChangeId, FilePath)> {
        let mut forgotten = Vec::new();
        let (mut bytes, mut steps) = (self.bytes, self.steps);
        let mut gone: HashMap<&ContentId, usize> = HashMap::new();
        for change in self.changes.values().take(self.changes.len().saturating_sub(1)) {
            if bytes <= bounds.bytes && steps <= bounds.steps {
                break;
            }
            steps -= change.files.len();
            forgotten.extend(change.files.iter().map(|step| (change.id, step.path.clone())));
            for kept in change.files.iter().filter_map(|step| step.before.as_ref()) {
                let gone = gone.entry(&kept.content).or_default();
                *gone += 1;
                if let Some((count, size)) = self.contents.get(&kept.content)
                    && count == gone
                {
                    bytes -= size;
                }
            }
        }
        forgotten
    }

    /// Returns true if most lines of the journal are about forgotten changes.
    pub fn has_mostly_forgotten_changes(&self) -> bool {
        self.lines > LINES_SPARE + 2 * self.changes.len()
    }

    /// Returns equivalent journal lines.
    pub fn journal_entries(&self) -> Vec<JournalEntry> {
        let changes = self.changes.values().cloned().map(JournalEntry::Change);
        std::iter::once(JournalEntry::Next(ChangeId(self.next))).chain(changes).collect()
    }

    fn add_change(&mut self, change: RecordedChange) {
        // A process was killed after it wrote the line and before it removed the pending file.
        if self.has_change(change.id) {
            return;
        }
        let place = self.next_place;
        self.next_place += 1;
        self.next = self.next.max(change.id.0 + 1);
        self.places.insert(change.id, place);
        for step in &change.files {
            self.paths.entry(step.path.clone()).or_default().push(place);
            self.grown.insert(step.path.clone());
            self.steps += 1;
            let Some(kept) = &step.before else { continue };
            let (count, _) = self.contents.entry(kept.content.clone()).or_insert((0, kept.size));
            *count += 1;
            if *count == 1 {
                self.bytes += kept.size;
            }
        }
        self.changes.insert(place, change);
    }

    /// Removes the effect of a change on a path. Returns contents that lost their last reference.
    fn remove_effect(&mut self, id: ChangeId, path: &FilePath) -> Option<Option<ContentId>> {
        let place = *self.places.get(&id)?;
        let change = self.changes.get_mut(&place)?;
        let number = change.files.iter().position(|step| step.path == *path)?;
        let step = change.files.remove(number);
        change.forgotten += 1;
        if change.files.is_empty() {
            self.changes.remove(&place);
            self.places.remove(&id);
        }
        self.steps -= 1;
        if let Slot::Occupied(mut places) = self.paths.entry(step.path) {
            places.get_mut().retain(|other| *other != place);
            if places.get().is_empty() {
                places.remove();
            }
        }
        Some(step.before.and_then(|kept| self.drop_content_reference(kept.content)))
    }

    fn drop_content_reference(&mut self, content: ContentId) -> Option<ContentId> {
        let Slot::Occupied(mut slot) = self.contents.entry(content) else { return None };
        slot.get_mut().0 -= 1;
        if slot.get().0 > 0 {
            return None;
        }
        let (content, (_, size)) = slot.remove_entry();
        self.bytes -= size;
        Some(content)
    }

    fn undo_timeline(&self, path: &FilePath) -> UndoTimeline {
        let is_done = |change: &&RecordedChange| change.outcome == Some(ChangeOutcome::Done);
        UndoTimeline::from_changes(self.changes_of_path(path).filter(is_done), path)
    }

    fn changes_of_path(&self, path: &FilePath) -> impl Iterator<Item = &RecordedChange> {
        let places = self.paths.get(path).into_iter().flatten();
        places.filter_map(|place| self.changes.get(place))
    }
}

fn backup_of_transition(change: &RecordedChange, step: &FileTransition) -> Option<Backup> {
    let file = step.before.clone()?;
    let id = BackupId::new(change.id, &file.content);
    let (tool, session) = (change.tool.clone(), change.session.clone());
    Some(Backup { id, path: step.path.clone(), at_ms: change.at_ms, tool, session, file })
}
