//! Decides how to recover a change whose process died while it was applied.
//!
//! Pure: the caller reads the files and writes those that must be restored.

use super::{ContentId, FileTransition, RecordedChange, StoredFileState};

/// The current content of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CurrentContent {
    /// Nothing exists there.
    Nothing,
    /// A file with this content.
    Content(ContentId),
    /// A file that holds only part of its new content, because writing it was interrupted.
    Torn,
    /// A folder, a device, or a file that cannot be read.
    Other,
}

/// The recovery of an incomplete change. Numbers are those of its files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecoveryPlan {
    /// Whether the change belongs to another environment. It then stays unfinished.
    pub is_elsewhere: bool,
    /// Whether the change is completely applied, so that nothing must be restored.
    pub is_done: bool,
    /// Files to restore, last one first.
    pub restore: Vec<usize>,
    /// Files that were changed by others since, because they hold neither their old nor their new
    /// content. They are left alone.
    pub left_alone: Vec<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TransitionSide {
    Before,
    After,
    /// The step does not change the content.
    Both,
    Neither,
}

/// Decides from the current content of its paths how to recover a change. If all files hold their
/// new content, except those that others changed, the change was applied. Otherwise it is rolled
/// back.
///
/// A change from another environment may concern other files than the given ones.
/// [`RecoveryPlan::is_elsewhere`] is set, unless one of the files holds its new content.
pub fn plan_recovery(
    change: &RecordedChange,
    found: &[CurrentContent],
    environment: &str,
) -> RecoveryPlan {
    let sides: Vec<_> =
        change.files.iter().zip(found).map(|(step, found)| transition_side(step, found)).collect();
    let with = |side: TransitionSide| {
        let numbers = sides.iter().enumerate().filter(move |(_, other)| **other == side);
        numbers.map(|(number, _)| number)
    };
    let is_shared = with(TransitionSide::After).next().is_some()
        && change.files.iter().all(|step| step.path.is_in_environment(environment));
    if change.environment != environment && !is_shared {
        return RecoveryPlan { is_elsewhere: true, ..RecoveryPlan::default() };
    }
    let is_torn = found.contains(&CurrentContent::Torn);
    let is_done = !is_torn
        && with(TransitionSide::Before).next().is_none()
        && with(TransitionSide::After).next().is_some();
    let restore = match is_done {
        true => Vec::new(),
        false => with(TransitionSide::After).collect::<Vec<_>>().into_iter().rev().collect(),
    };
    let left_alone = with(TransitionSide::Neither).collect();
    RecoveryPlan { is_elsewhere: false, is_done, restore, left_alone }
}

fn transition_side(step: &FileTransition, found: &CurrentContent) -> TransitionSide {
    // The file holds part of its new content, so it is restored like a complete one.
    if *found == CurrentContent::Torn {
        return TransitionSide::After;
    }
    let fits = |state: &Option<StoredFileState>| match (state, found) {
        (None, CurrentContent::Nothing) => true,
        (Some(kept), CurrentContent::Content(content)) => kept.content == *content,
        (None, CurrentContent::Content(_) | CurrentContent::Other | CurrentContent::Torn)
        | (Some(_), CurrentContent::Nothing | CurrentContent::Other | CurrentContent::Torn) => {
            false
        }
    };
    match (fits(&step.before), fits(&step.after)) {
        (true, true) => TransitionSide::Both,
        (true, false) => TransitionSide::Before,
        (false, true) => TransitionSide::After,
        (false, false) => TransitionSide::Neither,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{done_change, transition};
    use super::*;

    /// Checks the recovery of files that change from `0` to `1`. Each character of `found` is the
    /// content of one file, and `-` means that it is missing.
    #[track_caller]
    fn check_recovery(found: &str, expected: (bool, &[usize], &[usize])) {
        let names: Vec<_> = (0..found.len()).map(|number| format!("{number}.txt")).collect();
        let files = names.iter().map(|name| transition(name, Some("0"), Some("1"))).collect();
        let state = |found: char| match found {
            '-' => CurrentContent::Nothing,
            '?' => CurrentContent::Other,
            '~' => CurrentContent::Torn,
            text => CurrentContent::Content(ContentId::from_bytes(text.to_string().as_bytes())),
        };
        let found: Vec<_> = found.chars().map(state).collect();
        let (is_done, restore, left_alone) = expected;
        let (restore, left_alone) = (restore.to_vec(), left_alone.to_vec());
        assert_eq!(
            plan_recovery(&done_change(1, files), &found, "local"),
            RecoveryPlan { is_elsewhere: false, is_done, restore, left_alone }
        );
    }

    #[test]
    fn interrupted_change_is_kept_if_complete_or_rolled_back() {
        check_recovery("1", (true, &[], &[]));
        check_recovery("0", (false, &[], &[]));
        check_recovery("111", (true, &[], &[]));
        check_recovery("000", (false, &[], &[]));
        check_recovery("100", (false, &[0], &[]));
        check_recovery("110", (false, &[1, 0], &[]));
        check_recovery("101", (false, &[2, 0], &[]));
        check_recovery("~", (false, &[0], &[]));
        check_recovery("1~", (false, &[1, 0], &[]));
    }

    #[test]
    fn recovery_leaves_files_changed_by_others_alone() {
        check_recovery("2", (false, &[], &[0]));
        check_recovery("-", (false, &[], &[0]));
        check_recovery("1?1", (true, &[], &[1]));
        check_recovery("112", (true, &[], &[2]));
        check_recovery("120", (false, &[0], &[1]));
        check_recovery("02", (false, &[], &[1]));
        check_recovery("22", (false, &[], &[0, 1]));
    }

    #[test]
    fn recovery_detects_created_and_deleted_files_by_absence() {
        let files = vec![transition("new", None, Some("1")), transition("gone", Some("0"), None)];
        let change = done_change(1, files);
        let text = |text: &str| CurrentContent::Content(ContentId::from_bytes(text.as_bytes()));
        let plan = |found: [CurrentContent; 2]| plan_recovery(&change, &found, "local");
        assert!(plan([text("1"), CurrentContent::Nothing]).is_done);
        assert_eq!(plan([text("1"), text("0")]).restore, [0]);
        assert_eq!(plan([CurrentContent::Nothing, CurrentContent::Nothing]).restore, [1]);
        assert_eq!(plan([CurrentContent::Nothing, text("0")]), RecoveryPlan::default());
    }

    #[test]
    fn unchanged_content_does_not_affect_recovery() {
        let files = vec![
            transition("mode", Some("0"), Some("0")),
            transition("text", Some("0"), Some("1")),
        ];
        let change = done_change(1, files);
        let text = |text: &str| CurrentContent::Content(ContentId::from_bytes(text.as_bytes()));
        assert!(plan_recovery(&change, &[text("0"), text("1")], "local").is_done);
        assert_eq!(
            plan_recovery(&change, &[text("0"), text("0")], "local"),
            RecoveryPlan::default()
        );
    }

    #[test]
    fn change_of_another_environment_is_recovered_only_if_its_files_are_visible() {
        let text = |text: &str| CurrentContent::Content(ContentId::from_bytes(text.as_bytes()));
        let shared = done_change(
            1,
            vec![transition("a", Some("0"), Some("1")), transition("b", Some("0"), Some("1"))],
        );
        let plan =
            |change: &RecordedChange, found| plan_recovery(change, &[found, text("0")], "docker");
        assert_eq!(plan(&shared, text("1")).restore, [0]);
        assert!(plan(&shared, text("0")).is_elsewhere, "the owner of these files is unknown");
        let outside = FileTransition {
            path: super::super::FilePath::new("/etc/b", "/srv", "local"),
            ..transition("b", Some("0"), Some("1"))
        };
        let own = done_change(1, vec![transition("a", Some("0"), Some("1")), outside]);
        assert!(plan(&own, text("1")).is_elsewhere);
    }
}
