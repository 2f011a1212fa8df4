//! Concurrent processes, killed processes, and a full disk.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use super::super::{
    ChangeOutcome, ContentId, CurrentContent, FileTransition, History, HistoryError, NewChange,
    StoredFileState, plan_recovery,
};
use super::file_path;

/// Variables that make a test program one of the processes below: the folder and its job.
const FOLDER: &str = "JAATO_TEST_FILE_HISTORY";
const JOB: &str = "JAATO_TEST_FILE_HISTORY_JOB";

/// The number of points in a change of three files at which a process can be killed. After that,
/// the change is finished.
const POINTS: usize = 6;

/// The number of changes that one process makes to its file.
const CHANGES: usize = 200;

fn start_job(folder: &Path, job: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    configure_job(&mut command, folder, job);
    command
}

fn configure_job(command: &mut Command, folder: &Path, job: &str) {
    command.args([
        "--exact",
        "history::tests::processes::child_process_of_the_other_tests",
        "--nocapture",
    ]);
    command.env(FOLDER, folder).env(JOB, job);
}

/// Does nothing unless another test starts it as a process.
#[test]
fn child_process_of_the_other_tests() {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else { return };
    let job = std::env::var(JOB).unwrap();
    let history = History::open(&folder.join("history")).unwrap();
    match job.split_once(' ').unwrap() {
        ("die", point) => apply_until(&history, &folder.join("work"), point.parse().unwrap()),
        ("change", name) => change_often(&history, name),
        ("fill", _) => fill_disk(&history, &folder.join("work")),
        other => panic!("{other:?}"),
    }
}

/// Returns the state of the file at a path, and stores its content.
fn stored_file_state(history: &History, path: &Path) -> Option<StoredFileState> {
    let bytes = fs::read(path).ok()?;
    let content = history.store_content(&bytes).unwrap();
    Some(StoredFileState { content, size: bytes.len() as u64, mode: 0o644 })
}

fn state_after(text: &str) -> Option<StoredFileState> {
    let content = ContentId::from_bytes(text.as_bytes());
    Some(StoredFileState { content, size: text.len() as u64, mode: 0o644 })
}

/// Changes a file, creates one, deletes one, and aborts at a point.
fn apply_until(history: &History, work: &Path, point: usize) {
    let die_at = |here: usize| {
        if here == point {
            std::process::abort();
        }
    };
    let step = |name: &str, after| FileTransition {
        path: file_path(name),
        before: stored_file_state(history, &work.join(name)),
        after,
        moved_from: None,
    };
    let files = vec![
        step("changed", state_after("new")),
        step("made", state_after("made")),
        step("gone", None),
    ];
    die_at(0);
    let environment = "local".to_owned();
    let new = NewChange { files, environment, ..NewChange::default() };
    let pending = history.begin_change(new).unwrap();
    die_at(1);
    fs::write(work.join("changed"), "new").unwrap();
    die_at(2);
    fs::write(work.join("made"), "made").unwrap();
    die_at(3);
    fs::remove_file(work.join("gone")).unwrap();
    die_at(4);
    pending.finish(ChangeOutcome::Done).unwrap();
    die_at(5);
}

fn work_file_texts(work: &Path) -> [Option<String>; 3] {
    ["changed", "made", "gone"].map(|name| fs::read_to_string(work.join(name)).ok())
}

/// Recovers changes, as a session does before its first call.
fn recover_changes(history: &History, work: &Path) {
    for pending in history.take_unfinished_changes().unwrap() {
        let look = |step: &FileTransition| match fs::read(work.join(step.path.as_str())) {
            Ok(bytes) => CurrentContent::Content(ContentId::from_bytes(&bytes)),
            Err(_) => CurrentContent::Nothing,
        };
        let found: Vec<_> = pending.change().files.iter().map(look).collect();
        let recovery = plan_recovery(pending.change(), &found, "local");
        assert_eq!(recovery.left_alone, [0; 0]);
        for number in &recovery.restore {
            let step = &pending.change().files[*number];
            let path = work.join(step.path.as_str());
            match &step.before {
                Some(kept) => {
                    fs::write(path, history.read_content(&kept.content).unwrap()).unwrap()
                }
                None => fs::remove_file(path).unwrap(),
            }
        }
        let outcome =
            if recovery.is_done { ChangeOutcome::Done } else { ChangeOutcome::RolledBack };
        pending.finish(outcome).unwrap();
    }
}

fn is_aborted(status: ExitStatus) -> bool {
    use std::os::unix::process::ExitStatusExt as _;
    status.signal() == Some(6)
}

#[test]
fn change_is_applied_completely_or_not_at_all_if_the_process_is_killed() {
    let text = |text: &str| Some(text.to_owned());
    let (old, new) = ([text("old"), None, text("gone")], [text("new"), text("made"), None]);
    for point in 0..=POINTS {
        let folder = tempfile::tempdir().unwrap();
        let work = folder.path().join("work");
        fs::create_dir(&work).unwrap();
        fs::write(work.join("changed"), "old").unwrap();
        fs::write(work.join("gone"), "gone").unwrap();
        let output = start_job(folder.path(), &format!("die {point}")).output().unwrap();
        assert_eq!(is_aborted(output.status), point < POINTS, "{output:?}");
        let history = History::open(&folder.path().join("history")).unwrap();
        recover_changes(&history, &work);
        let is_new = point >= 4;
        assert_eq!(
            work_file_texts(&work),
            if is_new { new.clone() } else { old.clone() },
            "point {point}"
        );
        let step = history.undo_step(&file_path("changed")).unwrap();
        assert_eq!(step.is_some(), is_new, "point {point}");
        assert_eq!(history.take_unfinished_changes().unwrap().len(), 0);
        let left = fs::read_dir(folder.path().join("history/pending")).unwrap().count();
        assert_eq!(left, 0, "point {point}");
    }
}

fn change_often(history: &History, name: &str) {
    for number in 0..CHANGES {
        let text = format!("{name} {number}");
        let content = history.store_content(text.as_bytes()).unwrap();
        let before = Some(StoredFileState { content, size: text.len() as u64, mode: 0o644 });
        let files = vec![
            FileTransition {
                path: file_path(name),
                before: before.clone(),
                after: None,
                moved_from: None,
            },
            FileTransition { path: file_path("shared"), before, after: None, moved_from: None },
        ];
        let new = NewChange { files, ..NewChange::default() };
        let pending = loop {
            match history.begin_change(new.clone()) {
                Err(HistoryError::InUse(_)) => std::thread::yield_now(),
                begun => break begun.unwrap(),
            }
        };
        pending.finish(ChangeOutcome::Done).unwrap();
        let bounds =
            super::super::HistoryLimits { changes_per_file: CHANGES, ..Default::default() };
        history.prune_history(&bounds).unwrap();
    }
}

#[test]
fn two_processes_at_once_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut children = ["one", "two"]
        .map(|name| start_job(folder.path(), &format!("change {name}")).spawn().unwrap());
    for child in &mut children {
        assert!(child.wait().unwrap().success());
    }
    let history = History::open(&folder.path().join("history")).unwrap();
    for name in ["one", "two", "shared"] {
        let backups = history.list_backups(Some(&file_path(name))).unwrap();
        assert_eq!(backups.len(), CHANGES, "{name}");
        for backup in &backups {
            history.read_content(&backup.file.content).unwrap();
        }
    }
    assert_eq!(history.take_damaged_count().unwrap(), 0);
}

/// Makes changes until the disk is full, and one that is too large for it.
fn fill_disk(history: &History, work: &Path) {
    let large = history.store_content(&vec![b'x'; 64 * 1024]).unwrap_err();
    assert!(large.is_disk_full(), "{large}");
    // The journal reaches the file size limit.
    for number in 0.. {
        let text = number.to_string();
        let content = history.store_content(text.as_bytes()).unwrap();
        let before = Some(StoredFileState { content, size: text.len() as u64, mode: 0o644 });
        let step = FileTransition {
            path: file_path("a"),
            before,
            after: state_after("new"),
            moved_from: None,
        };
        let new = NewChange { files: vec![step], ..NewChange::default() };
        let pending = history.begin_change(new).unwrap();
        if let Err(error) = pending.finish(ChangeOutcome::Done) {
            assert!(error.is_disk_full(), "{error}");
            fs::write(work.join("finished"), text).unwrap();
            return;
        }
    }
}

#[test]
fn on_a_full_disk_no_change_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("work")).unwrap();
    let mut command = Command::new("bash");
    command.args(["-c", "trap '' XFSZ; ulimit -f 16; exec \"$0\" \"$@\""]);
    command.arg(std::env::current_exe().unwrap());
    configure_job(&mut command, folder.path(), "fill all");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let finished = fs::read_to_string(folder.path().join("work/finished")).unwrap();
    let finished: usize = finished.parse().unwrap();
    let history = History::open(&folder.path().join("history")).unwrap();
    assert_eq!(history.list_backups(None).unwrap().len(), finished);
    assert_eq!(history.take_damaged_count().unwrap(), 0, "the torn line is cut off");
    let unfinished = history.take_unfinished_changes().unwrap();
    assert_eq!(unfinished.len(), 1, "the change that could not be recorded is still pending");
    for pending in unfinished {
        pending.finish(ChangeOutcome::Done).unwrap();
    }
    assert_eq!(history.list_backups(None).unwrap().len(), finished + 1);
    let contents = folder.path().join("history/contents");
    let beside =
        fs::read_dir(contents).unwrap().filter(|entry| !entry.as_ref().unwrap().path().is_dir());
    assert_eq!(beside.count(), 0);
}
