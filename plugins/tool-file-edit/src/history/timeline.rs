//! Which change of a file is undone next, and which is done again.

use super::{Change, ChangeId, FilePath, FileStep};

/// A change that can be taken back as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The change: [`NewChange::undoes`](super::NewChange::undoes) of the one that takes it back.
    pub change: ChangeId,
    /// When it began, in milliseconds since 1970 UTC.
    pub at_ms: i64,
    /// The tool that made it.
    pub tool: String,
    /// The session that made it.
    pub session: String,
    /// What it did: `after` is what should be there, `before` is what has to be there again.
    pub files: Vec<FileStep>,
}

/// The changes of one path that can be undone and done again; the next is the last.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Timeline {
    pub undo: Vec<ChangeId>,
    pub redo: Vec<ChangeId>,
}

impl Timeline {
    /// Takes the changes of a path, oldest first. One that takes back the last change makes it the
    /// next to be done again; one that takes that back makes it the next to be undone. Any other
    /// is a step of its own, after which nothing can be done again.
    ///
    /// Which changes are undos, they say themselves: the older ones may be forgotten.
    pub fn of<'a>(changes: impl Iterator<Item = &'a Change>, path: &FilePath) -> Self {
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

    /// Returns what comes before a change can be undone or done again: itself where it is the next.
    /// Nothing for one that was taken back.
    pub fn first_before(&self, id: ChangeId) -> Option<ChangeId> {
        let lines = [&self.undo, &self.redo];
        lines.into_iter().find(|line| line.contains(&id))?.last().copied()
    }

    /// Whether a change can be undone or done again, at some time.
    pub fn needs(&self, id: ChangeId) -> bool {
        self.undo.contains(&id) || self.redo.contains(&id)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{change, path};
    use super::*;

    /// Changes of one file: `1`, `4u3` for one that undoes the third, `5r4` for one that takes that
    /// back.
    #[track_caller]
    fn check(changes: &str, undo: &[u64], redo: &[u64]) {
        let parse = |text: &str| {
            let id = |text: &str| text.parse().unwrap();
            let changed = |id| change(id, Vec::new());
            let (undone, redone) = (text.split_once('u'), text.split_once('r'));
            let undoes = undone.or(redone).map(|(_, undoes)| ChangeId(id(undoes)));
            let at = |is_it: bool| if is_it { vec![path("a")] } else { Vec::new() };
            let number = id(undone.or(redone).map_or(text, |(number, _)| number));
            let (undone, redone) = (at(undone.is_some()), at(redone.is_some()));
            Change { undoes, undone, redone, ..changed(number) }
        };
        let changes: Vec<_> =
            changes.split(' ').filter(|text| !text.is_empty()).map(parse).collect();
        let ids = |numbers: &[u64]| numbers.iter().copied().map(ChangeId).collect();
        let expected = Timeline { undo: ids(undo), redo: ids(redo) };
        assert_eq!(Timeline::of(changes.iter(), &path("a")), expected);
    }

    #[test]
    fn undo_walks_back_and_redo_walks_forth() {
        check("", &[], &[]);
        check("1 2 3", &[1, 2, 3], &[]);
        check("1 2 3 4u3", &[1, 2], &[4]);
        check("1 2 3 4u3 5u2 6u1", &[], &[4, 5, 6]);
        check("1 2 3 4u3 5u2 6r5", &[1, 6], &[4]);
        check("1 2 3 4u3 5u2 6r5 7r4", &[1, 6, 7], &[]);
        check("1 2 3 4u3 5u2 6r5 7u6", &[1], &[4, 7]);
    }

    #[test]
    fn a_change_after_undos_ends_what_can_be_done_again() {
        check("1 2 3u2 4", &[1, 4], &[]);
        check("1 2 3u2 4 5u4 6u1", &[], &[5, 6]);
    }

    #[test]
    fn what_is_forgotten_from_behind_changes_nothing_of_the_rest() {
        let all = ["1", "2", "3", "4u3", "5u2", "6r5", "7u6"];
        let (undo, redo) = ([1], [4, 7]);
        for forgotten in 0..all.len() {
            let left = |ids: &[u64]| -> Vec<u64> {
                ids.iter().copied().filter(|id| *id > forgotten as u64).collect()
            };
            check(&all[forgotten..].join(" "), &left(&undo), &left(&redo));
        }
        // What nothing needs any longer goes first: 2, 3, 5, 6.
        check("1 4u3 7u6", &undo, &redo);
    }
}
