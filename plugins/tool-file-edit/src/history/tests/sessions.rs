//! Consecutive sessions.

use std::fs;
use std::path::Path;

use super::super::{
    ChangeId, ChangeOutcome, ContentId, FileTransition, History, HistoryError, HistoryLimits,
    NewChange,
};
use super::{file_path, transition};

struct HistoryFixture {
    folder: tempfile::TempDir,
    history: History,
}

impl HistoryFixture {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let history = History::open(folder.path()).unwrap();
        Self { folder, history }
    }

    /// Opens the history in another session.
    fn reopen_history(&self) -> History {
        History::open(self.folder.path()).unwrap()
    }

    fn journal_path(&self) -> std::path::PathBuf {
        self.folder.path().join("journal.jsonl")
    }
}

fn prepare_change(
    history: &History,
    files: Vec<FileTransition>,
    undoes: Option<ChangeId>,
) -> NewChange {
    for step in files.iter().filter(|step| step.before.is_some()) {
        // In these tests, files hold single words, so the word of a content is found by trying all
        // of them.
        let word = WORDS.iter().find(|word| {
            step.before
                .as_ref()
                .is_some_and(|kept| kept.content == ContentId::from_bytes(word.as_bytes()))
        });
        history.store_content(word.unwrap().as_bytes()).unwrap();
    }
    let (session, tool) = ("s1".to_owned(), "updateFile".to_owned());
    let (call, environment) = ("call_1".to_owned(), "local".to_owned());
    NewChange { session, tool, call, environment, undoes, files }
}

const WORDS: &[&str] = &["v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9"];

fn finish_change(history: &History, files: Vec<FileTransition>) -> ChangeId {
    history
        .begin_change(prepare_change(history, files, None))
        .unwrap()
        .finish(ChangeOutcome::Done)
        .unwrap()
}

#[test]
fn named_pipe_as_lock_file_is_refused_without_waiting() {
    let place = HistoryFixture::new();
    let pipe = place.folder.path().join("journal.lock");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let error = place.history.list_changes(1).unwrap_err();
    assert!(error.to_string().ends_with("it is not a regular file"), "{error}");
}

#[test]
fn history_files_are_private_to_the_user() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = HistoryFixture::new();
    finish_change(&place.history, vec![transition("a", Some("v0"), Some("v1"))]);
    place.history.prune_history(&HistoryLimits::default()).unwrap();
    let mut folders = vec![place.folder.path().to_owned()];
    let mut names = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap()) {
            let (path, facts) = (entry.path(), entry.metadata().unwrap());
            if facts.is_dir() {
                folders.push(path);
            } else {
                assert_eq!(facts.permissions().mode() & 0o777, 0o600, "{}", path.display());
                names.push(entry.file_name());
            }
        }
    }
    assert!(names.iter().any(|name| name == "swept"), "{names:?}");
}

/// Undoes a step as a session does, and returns the content after it.
fn undo_and_read(history: &History, step: super::super::UndoStep, now: &str) -> String {
    let before = step.files[0].before.clone();
    let word = |kept: &super::super::StoredFileState| {
        String::from_utf8(history.read_content(&kept.content).unwrap()).unwrap()
    };
    let after = before.as_ref().map(word).unwrap();
    let files = vec![transition("a", Some(now), Some(&after))];
    let new = prepare_change(history, files, Some(step.change));
    history.begin_change(new).unwrap().finish(ChangeOutcome::Done).unwrap();
    after
}

#[test]
fn later_session_can_undo_and_redo() {
    let place = HistoryFixture::new();
    for (before, after) in [("v1", "v2"), ("v2", "v3"), ("v3", "v4")] {
        finish_change(&place.history, vec![transition("a", Some(before), Some(after))]);
    }
    let mut now = "v4".to_owned();
    for expected in ["v3", "v2", "v1"] {
        let history = place.reopen_history();
        let step = history.undo_step(&file_path("a")).unwrap().unwrap();
        now = undo_and_read(&history, step, &now);
        assert_eq!(now, expected);
    }
    assert_eq!(place.history.undo_step(&file_path("a")).unwrap(), None);
    for expected in ["v2", "v3"] {
        let history = place.reopen_history();
        let step = history.redo_step(&file_path("a")).unwrap().unwrap();
        now = undo_and_read(&history, step, &now);
        assert_eq!(now, expected);
    }
    let step = place.history.undo_step(&file_path("a")).unwrap().unwrap();
    assert_eq!(undo_and_read(&place.history, step, &now), "v2");
    assert_eq!(place.history.undo_step(&file_path("b")).unwrap(), None);
}

#[test]
fn change_is_listed_only_after_it_is_finished() {
    let place = HistoryFixture::new();
    finish_change(
        &place.history,
        vec![transition("a", Some("v1"), Some("v2")), transition("b", None, Some("v1"))],
    );
    let pending = place.history.begin_change(prepare_change(
        &place.history,
        vec![transition("a", Some("v2"), Some("v3"))],
        None,
    ));
    let pending = pending.unwrap();
    let list = || {
        let backups = place.reopen_history().list_backups(None).unwrap();
        backups.iter().map(|backup| backup.id.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(list(), ["1.3bfc269594ef"]);
    pending.finish(ChangeOutcome::Done).unwrap();
    assert_eq!(list(), ["2.fb04dcb6970e", "1.3bfc269594ef"]);
    let backup = place.history.find_backup(&"1.3bfc269594ef".parse().unwrap()).unwrap();
    assert_eq!((backup.path, backup.file.size), (file_path("a"), 2));
    assert_eq!(place.history.read_content(&backup.file.content).unwrap(), b"v1");
    assert_eq!(place.history.list_backups(Some(&file_path("b"))).unwrap(), []);
    let missing = place.history.find_backup(&"9.3bfc269594ef".parse().unwrap());
    assert!(matches!(missing, Err(HistoryError::NoBackup(_))));
}

#[test]
fn abandoned_change_is_unfinished_and_rolled_back_change_is_no_undo_step() {
    let place = HistoryFixture::new();
    let begin = || {
        let files = vec![transition("a", Some("v1"), Some("v2"))];
        place.history.begin_change(prepare_change(&place.history, files, None)).unwrap()
    };
    let pending = begin();
    assert_eq!(
        place.reopen_history().take_unfinished_changes().unwrap().len(),
        0,
        "it is being applied"
    );
    drop(pending);
    let found = place.reopen_history().take_unfinished_changes().unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(
        place.reopen_history().take_unfinished_changes().unwrap().len(),
        0,
        "a recovery is running"
    );
    drop(found);
    let found = place.reopen_history().take_unfinished_changes().unwrap().remove(0);
    assert_eq!(found.change().files, vec![transition("a", Some("v1"), Some("v2"))]);
    found.finish(ChangeOutcome::RolledBack).unwrap();
    assert_eq!(place.reopen_history().take_unfinished_changes().unwrap().len(), 0);
    assert_eq!(place.reopen_history().undo_step(&file_path("a")).unwrap(), None);
    assert_eq!(begin().change().id, ChangeId(2), "no number is given twice");
}

#[test]
fn old_unfinished_change_is_stale() {
    let place = HistoryFixture::new();
    let files = vec![transition("a", Some("v1"), Some("v2"))];
    let pending = place.history.begin_change(prepare_change(&place.history, files, None)).unwrap();
    assert!(!pending.is_stale());
    drop(pending);
    let path = place.folder.path().join("pending/1");
    let record = fs::read_to_string(&path).unwrap();
    let (start, rest) = record.split_once("\"at_ms\":").unwrap();
    let rest = rest.trim_start_matches(|sign: char| sign.is_ascii_digit());
    fs::write(&path, format!("{start}\"at_ms\":0{rest}")).unwrap();
    assert!(place.reopen_history().take_unfinished_changes().unwrap()[0].is_stale());
}

#[test]
fn file_in_a_pending_change_cannot_be_changed_by_another() {
    let place = HistoryFixture::new();
    let begin = |history: &History, names: &[&str]| {
        let files = names.iter().map(|name| transition(name, Some("v1"), Some("v2"))).collect();
        history.begin_change(prepare_change(history, files, None))
    };
    let first = begin(&place.history, &["a", "b"]).unwrap();
    let refused = begin(&place.reopen_history(), &["c", "b"]).unwrap_err();
    assert_eq!(refused.to_string(), "`b` is being changed by another call");
    let other = begin(&place.reopen_history(), &["c"]).unwrap();
    first.finish(ChangeOutcome::Done).unwrap();
    let second = begin(&place.reopen_history(), &["b"]).unwrap();
    // An abandoned change does not count as being applied.
    drop(second);
    begin(&place.history, &["b"]).unwrap();
    other.finish(ChangeOutcome::Done).unwrap();
}

#[test]
fn change_without_stored_contents_or_with_too_many_files_is_refused() {
    let place = HistoryFixture::new();
    let files = vec![transition("a", Some("v1"), Some("v2"))];
    let begun = place.history.begin_change(NewChange { files, ..NewChange::default() });
    assert!(matches!(begun, Err(HistoryError::NotKept(_))));
    assert_eq!(fs::read_dir(place.folder.path().join("pending")).unwrap().count(), 0);
    let step = transition("a", None, Some("v2"));
    for (files, is_taken) in [(10_000, true), (10_001, false)] {
        let files = vec![step.clone(); files];
        let begun = place.history.begin_change(NewChange { files, ..NewChange::default() });
        assert_eq!(begun.is_ok(), is_taken);
    }
}

#[test]
fn damaged_journal_lines_are_skipped_and_counted() {
    let place = HistoryFixture::new();
    for (before, after) in [("v1", "v2"), ("v2", "v3"), ("v3", "v4")] {
        finish_change(&place.history, vec![transition("a", Some(before), Some(after))]);
    }
    let text = fs::read_to_string(place.journal_path()).unwrap();
    let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
    lines[1].replace_range(10..20, "\0\0\0\0");
    let torn = &lines[2][..lines[2].len() - 1];
    fs::write(place.journal_path(), format!("{}\n{}\n{torn}", lines[0], lines[1])).unwrap();
    let history = place.reopen_history();
    assert_eq!(history.undo_step(&file_path("a")).unwrap().unwrap().change, ChangeId(1));
    assert_eq!(
        (history.take_damaged_count().unwrap(), history.take_damaged_count().unwrap()),
        (2, 0)
    );
    finish_change(&history, vec![transition("a", Some("v4"), Some("v5"))]);
    assert_eq!(place.reopen_history().list_backups(None).unwrap().len(), 2);
}

#[test]
fn finished_or_truncated_pending_records_are_not_unfinished_changes() {
    let place = HistoryFixture::new();
    let pending = place.folder.path().join("pending");
    let begun = prepare_change(&place.history, vec![transition("a", Some("v1"), Some("v2"))], None);
    let begun = place.history.begin_change(begun).unwrap();
    let record = fs::read(pending.join("1")).unwrap();
    begun.finish(ChangeOutcome::Done).unwrap();
    fs::write(pending.join("1"), &record).unwrap();
    fs::write(pending.join("2"), &record[..record.len() - 2]).unwrap();
    fs::write(pending.join("3"), b"").unwrap();
    fs::write(pending.join("4"), b"{}\n").unwrap();
    fs::write(pending.join("README"), b"who put this here?").unwrap();
    let history = place.reopen_history();
    assert_eq!(history.take_unfinished_changes().unwrap().len(), 0);
    assert_eq!(history.take_damaged_count().unwrap(), 1);
    assert_eq!(fs::read_dir(&pending).unwrap().count(), 1);
    assert_eq!(history.list_backups(None).unwrap().len(), 1);
}

fn count_files(folder: &Path) -> usize {
    fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| if path.is_dir() { count_files(&path) } else { 1 })
        .sum()
}

#[test]
fn prune_removes_the_oldest_changes_and_keeps_pending_ones() {
    let place = HistoryFixture::new();
    let pending =
        prepare_change(&place.history, vec![transition("c", Some("v0"), Some("v9"))], None);
    let _pending = place.history.begin_change(pending).unwrap();
    for (before, after) in [("v1", "v2"), ("v2", "v3"), ("v3", "v4"), ("v4", "v5")] {
        finish_change(&place.history, vec![transition("a", Some(before), Some(after))]);
    }
    finish_change(&place.history, vec![transition("b", Some("v0"), Some("v1"))]);
    let prune = |bounds: &HistoryLimits| {
        place.history.prune_history(bounds).unwrap();
        place.reopen_history().list_backups(None).unwrap().len()
    };
    assert_eq!(prune(&HistoryLimits { changes_per_file: 4, ..HistoryLimits::default() }), 5);
    assert_eq!(prune(&HistoryLimits { bytes: 10, ..HistoryLimits::default() }), 5);
    finish_change(&place.history, vec![transition("a", Some("v5"), Some("v6"))]);
    assert_eq!(prune(&HistoryLimits { changes_per_file: 4, ..HistoryLimits::default() }), 5);
    assert_eq!(prune(&HistoryLimits { bytes: 9, ..HistoryLimits::default() }), 4);
    assert_eq!(prune(&HistoryLimits { steps: 3, ..HistoryLimits::default() }), 3);
    assert_eq!(
        prune(&HistoryLimits { bytes: 0, ..HistoryLimits::default() }),
        1,
        "the latest stays"
    );
    let contents = place.folder.path().join("contents");
    assert_eq!(count_files(&contents), 6, "a starting session may need new contents");
    make_all_files_old(&contents);
    assert_eq!(prune(&HistoryLimits::default()), 1);
    assert_eq!(count_files(&contents), 2, "the latest and the pending change keep theirs");
    assert_eq!(place.history.read_content(&ContentId::from_bytes(b"v0")).unwrap(), b"v0");
}

fn make_all_files_old(folder: &Path) {
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            make_all_files_old(&path);
        } else {
            let file = fs::File::options().write(true).open(path).unwrap();
            file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
        }
    }
}

#[test]
fn ten_thousand_changes_leave_a_short_journal() {
    let place = HistoryFixture::new();
    let bounds = HistoryLimits { changes_per_file: 3, ..HistoryLimits::default() };
    let names: Vec<_> = (0..100).map(|number| format!("{number}.txt")).collect();
    place.history.store_content(b"v1").unwrap();
    for number in 0..10_000 {
        let files = vec![transition(&names[number % 100], Some("v1"), Some("v1"))];
        let new = NewChange { files, ..NewChange::default() };
        place.history.begin_change(new).unwrap().finish(ChangeOutcome::Done).unwrap();
        place.history.prune_history(&bounds).unwrap();
    }
    let text = fs::read_to_string(place.journal_path()).unwrap();
    assert!(text.lines().count() < 2_000, "{}", text.lines().count());
    let history = place.reopen_history();
    assert_eq!(history.undo_step(&file_path("99.txt")).unwrap().unwrap().change, ChangeId(10_000));
    assert_eq!(history.list_backups(None).unwrap().len(), 100, "equal contents share a backup");
}

#[test]
fn undo_of_an_older_change_is_recorded_as_a_new_step() {
    let place = HistoryFixture::new();
    let first = finish_change(&place.history, vec![transition("a", Some("v1"), Some("v2"))]);
    finish_change(&place.history, vec![transition("a", Some("v2"), Some("v3"))]);
    let files = vec![transition("a", Some("v3"), Some("v1"))];
    let new = prepare_change(&place.history, files, Some(first));
    let third = place.history.begin_change(new).unwrap().finish(ChangeOutcome::Done).unwrap();
    let history = place.reopen_history();
    assert_eq!(history.undo_step(&file_path("a")).unwrap().unwrap().change, third);
    assert_eq!(history.redo_step(&file_path("a")).unwrap(), None);
}

#[test]
fn repeated_undo_and_redo_removes_no_undoable_change() {
    let place = HistoryFixture::new();
    let bounds = HistoryLimits { changes_per_file: 2, ..HistoryLimits::default() };
    finish_change(&place.history, vec![transition("a", Some("v1"), Some("v2"))]);
    finish_change(&place.history, vec![transition("a", Some("v2"), Some("v3"))]);
    let mut now = "v3".to_owned();
    for _ in 0..5 {
        let step = place.history.undo_step(&file_path("a")).unwrap().unwrap();
        now = undo_and_read(&place.history, step, &now);
        place.history.prune_history(&bounds).unwrap();
        let step = place.history.redo_step(&file_path("a")).unwrap().unwrap();
        now = undo_and_read(&place.history, step, &now);
        place.history.prune_history(&bounds).unwrap();
    }
    for expected in ["v2", "v1"] {
        let history = place.reopen_history();
        let step = history.undo_step(&file_path("a")).unwrap().unwrap();
        now = undo_and_read(&history, step, &now);
        history.prune_history(&bounds).unwrap();
        assert_eq!(now, expected);
    }
    assert_eq!(place.history.undo_step(&file_path("a")).unwrap(), None);
}
