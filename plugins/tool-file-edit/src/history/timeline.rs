//! Which change of a file is undone next, and which is done again.

use super::{Change, ChangeId, FilePath, FileStep, Kept};

/// A change that can be taken back, for one path and those that it was moved from or to.
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
    /// Files that the change changed beside these.
    pub others: usize,
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

    /// Whether a change can be undone or done again, at some time.
    pub fn needs(&self, id: ChangeId) -> bool {
        self.undo.contains(&id) || self.redo.contains(&id)
    }
}

impl Step {
    /// Makes it of a change; `None` if a file that belongs to it was forgotten.
    pub(super) fn of(change: &Change, path: &FilePath) -> Option<Self> {
        let mut files = vec![change.step_of(path)?.clone()];
        let mut next = 0;
        while let Some(step) = files.get(next).cloned() {
            next += 1;
            let missing =
                |path: &FilePath, files: &[FileStep]| files.iter().all(|step| step.path != *path);
            if let Some(from) = &step.moved_from
                && missing(from, &files)
            {
                files.push(change.step_of(from)?.clone());
            }
            let target = |other: &&FileStep| other.moved_from.as_ref() == Some(&step.path);
            for other in change.files.iter().filter(target) {
                if missing(&other.path, &files) {
                    files.push(other.clone());
                }
            }
        }
        let others = change.files.len() - files.len();
        let (tool, session) = (change.tool.clone(), change.session.clone());
        Some(Self { change: change.id, at_ms: change.at_ms, tool, session, files, others })
    }

    /// What has to be at each path, in the order in which it is to be written: files that move back
    /// are there again before they are taken away where they are.
    pub fn targets(&self) -> impl Iterator<Item = (&FilePath, Option<&Kept>)> {
        let there = self.files.iter().filter(|step| step.before.is_some());
        let gone = self.files.iter().filter(|step| step.before.is_none());
        there.chain(gone).map(|step| (&step.path, step.before.as_ref()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{change, edit, path};
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

    #[test]
    fn a_move_is_taken_back_at_both_its_ends() {
        let moved = FileStep { moved_from: Some(path("a")), ..edit("b", None, Some("1")) };
        let files = vec![edit("a", Some("1"), None), moved, edit("c", None, Some("2"))];
        let change = change(7, files);
        for end in ["a", "b"] {
            let step = Step::of(&change, &path(end)).unwrap();
            let targets: Vec<_> =
                step.targets().map(|(path, state)| (path.as_str(), state.is_some())).collect();
            assert_eq!((targets, step.others), (vec![("a", true), ("b", false)], 1));
        }
        assert_eq!(Step::of(&change, &path("c")).unwrap().files.len(), 1);
        assert_eq!(Step::of(&change, &path("d")), None);
        let half = Change { files: change.files[1..].to_vec(), ..change };
        assert_eq!(Step::of(&half, &path("b")), None);
    }
}
