//! What becomes of a change whose process died while it was applied.
//!
//! Pure: what is in the files, the caller looks up; what must be restored, the caller writes.

use super::{Change, ContentId, FileStep, Kept};

/// What is at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// Nothing.
    Nothing,
    /// A file with this content.
    Content(ContentId),
    /// A file into which the content after it was being written when that ended.
    Torn,
    /// A folder, a device, or a file that cannot be read.
    Other,
}

/// What is to be done with a change that is half applied. Numbers are those of its files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Whether it is the business of another environment: it stays unfinished.
    pub is_elsewhere: bool,
    /// Whether it is applied as a whole, so that nothing has to be restored.
    pub is_done: bool,
    /// Files that must become again what they were before, the last one first.
    pub restore: Vec<usize>,
    /// Files that hold neither what was there before nor what the change makes of them: somebody
    /// else changed them since, and they are left alone.
    pub left_alone: Vec<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Before,
    After,
    /// The change does not change the content.
    Both,
    Neither,
}

/// Decides what to do with a change, by what is at its paths now. Where all files that nobody else
/// changed are as after the change, it was applied; else it is taken back.
///
/// A change that was made in another environment may concern other files than those that are
/// looked at: unless one of these is as after it, [`Recovery::is_elsewhere`] says so.
pub fn plan_recovery(change: &Change, found: &[Found], environment: &str) -> Recovery {
    let sides: Vec<_> =
        change.files.iter().zip(found).map(|(step, found)| side(step, found)).collect();
    let with = |side: Side| {
        let numbers = sides.iter().enumerate().filter(move |(_, other)| **other == side);
        numbers.map(|(number, _)| number)
    };
    let is_shared = with(Side::After).next().is_some()
        && change.files.iter().all(|step| step.path.is_in(environment));
    if change.environment != environment && !is_shared {
        return Recovery { is_elsewhere: true, ..Recovery::default() };
    }
    let is_torn = found.contains(&Found::Torn);
    let is_done =
        !is_torn && with(Side::Before).next().is_none() && with(Side::After).next().is_some();
    let restore = match is_done {
        true => Vec::new(),
        false => with(Side::After).collect::<Vec<_>>().into_iter().rev().collect(),
    };
    let left_alone = with(Side::Neither).collect();
    Recovery { is_elsewhere: false, is_done, restore, left_alone }
}

fn side(step: &FileStep, found: &Found) -> Side {
    // Half of it is there: it goes back as if it were whole.
    if *found == Found::Torn {
        return Side::After;
    }
    let fits = |state: &Option<Kept>| match (state, found) {
        (None, Found::Nothing) => true,
        (Some(kept), Found::Content(content)) => kept.content == *content,
        (None, Found::Content(_) | Found::Other | Found::Torn)
        | (Some(_), Found::Nothing | Found::Other | Found::Torn) => false,
    };
    match (fits(&step.before), fits(&step.after)) {
        (true, true) => Side::Both,
        (true, false) => Side::Before,
        (false, true) => Side::After,
        (false, false) => Side::Neither,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{change, edit};
    use super::*;

    /// Files that go from `0` to `1`; what is in them, a character each, `-` for nothing.
    #[track_caller]
    fn check(found: &str, expected: (bool, &[usize], &[usize])) {
        let names: Vec<_> = (0..found.len()).map(|number| format!("{number}.txt")).collect();
        let files = names.iter().map(|name| edit(name, Some("0"), Some("1"))).collect();
        let state = |found: char| match found {
            '-' => Found::Nothing,
            '?' => Found::Other,
            '~' => Found::Torn,
            text => Found::Content(ContentId::of(text.to_string().as_bytes())),
        };
        let found: Vec<_> = found.chars().map(state).collect();
        let (is_done, restore, left_alone) = expected;
        let (restore, left_alone) = (restore.to_vec(), left_alone.to_vec());
        assert_eq!(
            plan_recovery(&change(1, files), &found, "local"),
            Recovery { is_elsewhere: false, is_done, restore, left_alone }
        );
    }

    #[test]
    fn a_change_is_done_or_taken_back() {
        check("1", (true, &[], &[]));
        check("0", (false, &[], &[]));
        check("111", (true, &[], &[]));
        check("000", (false, &[], &[]));
        check("100", (false, &[0], &[]));
        check("110", (false, &[1, 0], &[]));
        check("101", (false, &[2, 0], &[]));
        check("~", (false, &[0], &[]));
        check("1~", (false, &[1, 0], &[]));
    }

    #[test]
    fn what_somebody_else_changed_is_left_alone() {
        check("2", (false, &[], &[0]));
        check("-", (false, &[], &[0]));
        check("1?1", (true, &[], &[1]));
        check("112", (true, &[], &[2]));
        check("120", (false, &[0], &[1]));
        check("02", (false, &[], &[1]));
        check("22", (false, &[], &[0, 1]));
    }

    #[test]
    fn files_that_come_and_go_are_known_by_their_absence() {
        let files = vec![edit("new", None, Some("1")), edit("gone", Some("0"), None)];
        let change = change(1, files);
        let text = |text: &str| Found::Content(ContentId::of(text.as_bytes()));
        let plan = |found: [Found; 2]| plan_recovery(&change, &found, "local");
        assert!(plan([text("1"), Found::Nothing]).is_done);
        assert_eq!(plan([text("1"), text("0")]).restore, [0]);
        assert_eq!(plan([Found::Nothing, Found::Nothing]).restore, [1]);
        assert_eq!(plan([Found::Nothing, text("0")]), Recovery::default());
    }

    #[test]
    fn a_content_that_stays_says_nothing() {
        let files = vec![edit("mode", Some("0"), Some("0")), edit("text", Some("0"), Some("1"))];
        let change = change(1, files);
        let text = |text: &str| Found::Content(ContentId::of(text.as_bytes()));
        assert!(plan_recovery(&change, &[text("0"), text("1")], "local").is_done);
        assert_eq!(plan_recovery(&change, &[text("0"), text("0")], "local"), Recovery::default());
    }

    #[test]
    fn a_change_of_another_environment_is_recovered_where_its_files_are_seen() {
        let text = |text: &str| Found::Content(ContentId::of(text.as_bytes()));
        let shared =
            change(1, vec![edit("a", Some("0"), Some("1")), edit("b", Some("0"), Some("1"))]);
        let plan = |change: &Change, found| plan_recovery(change, &[found, text("0")], "docker");
        assert_eq!(plan(&shared, text("1")).restore, [0]);
        assert!(plan(&shared, text("0")).is_elsewhere, "nothing tells whose files these are");
        let outside = FileStep {
            path: super::super::FilePath::new("/etc/b", "/srv", "local"),
            ..edit("b", Some("0"), Some("1"))
        };
        let own = change(1, vec![edit("a", Some("0"), Some("1")), outside]);
        assert!(plan(&own, text("1")).is_elsewhere);
    }
}
