//! Determines which change of a file is undone or redone next.

use super::{ChangeId, FilePath, FileTransition, RecordedChange};

/// A change that can be undone as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndoStep {
    /// The change, for [`NewChange::undoes`](super::NewChange::undoes) of the change that undoes
    /// it.
    pub change: ChangeId,
    /// The start time, in milliseconds since 1970 UTC.
    pub at_ms: i64,
    /// The tool that made the change.
    pub tool: String,
    /// The session that made the change.
    pub session: String,
    /// The effect of the change: `after` is the expected current state, and `before` is the state
    /// to restore.
    pub files: Vec<FileTransition>,
}

/// The changes of one path that can be undone and redone. The last one of each list is next.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct UndoTimeline {
    pub undo: Vec<ChangeId>,
    pub redo: Vec<ChangeId>,
}

impl UndoTimeline {
    /// Builds the timeline from the changes of a path, oldest first. A change that undoes the
    /// latest change is next to be redone. A change that undoes such an undo is next to be undone.
    /// Any other change is a step of its own, after which nothing can be redone.
    ///
    /// The changes themselves record what they undo, because the older ones may be forgotten.
    pub fn from_changes<'a>(
        changes: impl Iterator<Item = &'a RecordedChange>,
        path: &FilePath,
    ) -> Self {
        let mut line = Self::default();
        for change in changes {
            if change.undone.contains(path) {
                line.undo.pop_if(|last| change.undoes == Some(*last));
                line.redo.push(change.id);
            } else if change.redone.contains(path) {
                line.redo.pop_if(|last| change.undoes == Some(*last));
                line.undo.push(change.id);
            } else {
                line.undo.push(change.id);
                line.redo.clear();
            }
        }
        line
    }

    /// Returns the change that must be undone or redone first: `id` itself if it is next. Returns
    /// `None` for a change that was undone.
    pub fn next_blocking_change(&self, id: ChangeId) -> Option<ChangeId> {
        let lines = [&self.undo, &self.redo];
        lines.into_iter().find(|line| line.contains(&id))?.last().copied()
    }

    /// Returns true if a change can still be undone or redone.
    pub fn can_undo_or_redo(&self, id: ChangeId) -> bool {
        self.undo.contains(&id) || self.redo.contains(&id)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{done_change, file_path};
    use super::*;

    /// Checks changes of one file: `1`, `4u3` for a change that undoes the third, `5r4` for one
    /// that undoes that undo.
    #[track_caller]
    fn check_timeline(changes: &str, undo: &[u64], redo: &[u64]) {
        let parse = |text: &str| {
            let id = |text: &str| text.parse().unwrap();
            let changed = |id| done_change(id, Vec::new());
            let (undone, redone) = (text.split_once('u'), text.split_once('r'));
            let undoes = undone.or(redone).map(|(_, undoes)| ChangeId(id(undoes)));
            let at = |is_it: bool| if is_it { vec![file_path("a")] } else { Vec::new() };
            let number = id(undone.or(redone).map_or(text, |(number, _)| number));
            let (undone, redone) = (at(undone.is_some()), at(redone.is_some()));
            RecordedChange { undoes, undone, redone, ..changed(number) }
        };
        let changes: Vec<_> =
            changes.split(' ').filter(|text| !text.is_empty()).map(parse).collect();
        let ids = |numbers: &[u64]| numbers.iter().copied().map(ChangeId).collect();
        let expected = UndoTimeline { undo: ids(undo), redo: ids(redo) };
        assert_eq!(UndoTimeline::from_changes(changes.iter(), &file_path("a")), expected);
    }

    #[test]
    fn undo_walks_back_and_redo_walks_forth() {
        check_timeline("", &[], &[]);
        check_timeline("1 2 3", &[1, 2, 3], &[]);
        check_timeline("1 2 3 4u3", &[1, 2], &[4]);
        check_timeline("1 2 3 4u3 5u2 6u1", &[], &[4, 5, 6]);
        check_timeline("1 2 3 4u3 5u2 6r5", &[1, 6], &[4]);
        check_timeline("1 2 3 4u3 5u2 6r5 7r4", &[1, 6, 7], &[]);
        check_timeline("1 2 3 4u3 5u2 6r5 7u6", &[1], &[4, 7]);
    }

    #[test]
    fn new_change_after_undo_clears_redo() {
        check_timeline("1 2 3u2 4", &[1, 4], &[]);
        check_timeline("1 2 3u2 4 5u4 6u1", &[], &[5, 6]);
    }

    #[test]
    fn forgotten_changes_do_not_affect_the_remaining_steps() {
        let all = ["1", "2", "3", "4u3", "5u2", "6r5", "7u6"];
        let (undo, redo) = ([1], [4, 7]);
        for forgotten in 0..all.len() {
            let left = |ids: &[u64]| -> Vec<u64> {
                ids.iter().copied().filter(|id| *id > forgotten as u64).collect()
            };
            check_timeline(&all[forgotten..].join(" "), &left(&undo), &left(&redo));
        }
        // Changes that cannot be undone or redone are removed first: 2, 3, 5, 6.
        check_timeline("1 4u3 7u6", &undo, &redo);
    }
}
