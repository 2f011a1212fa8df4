//! Tests the ledger on disk: it always has whole lines, and a session never waits.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::support::{Writer, numbered_line, numbered_record, recorded_indexes, turn_end};
use jaato_store::{Ledger, LedgerError, LedgerFile, LedgerReader, RECORDS_WAITING_MAX};

#[test]
fn new_ledger_and_its_folder_are_private_to_the_user() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("data/jaato/ledger.jsonl");
    let mut file = LedgerFile::open(&path).unwrap();
    let appended = file.append(&[numbered_line(1), numbered_line(2)]);
    assert_eq!((appended.lines, appended.cut_bytes), (2, 0));
    assert!(appended.error.is_none());
    file.sync().unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
    assert_eq!(recorded_indexes(&path), [1, 2]);
}

#[test]
fn reading_a_ledger_that_is_a_named_pipe_fails_at_once() {
    let root = tempfile::tempdir().unwrap();
    let pipe = root.path().join("ledger.jsonl");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    assert_eq!(LedgerReader::open(&pipe).unwrap_err().to_string(), "it is a named pipe");
}

#[track_caller]
fn check_cut(before: &[u8], cut: u64, after: &[u64]) {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("ledger.jsonl");
    fs::write(&path, before).unwrap();
    let appended = LedgerFile::open(&path).unwrap().append(&[numbered_line(9)]);
    assert_eq!((appended.lines, appended.cut_bytes), (1, cut));
    assert_eq!(recorded_indexes(&path), after);
}

#[test]
fn incomplete_last_record_is_removed_and_the_rest_is_kept() {
    let (one, two) = (numbered_line(1), numbered_line(2));
    let torn = &two[..two.len() / 2];
    check_cut(&[&one[..], torn].concat(), torn.len() as u64, &[1, 9]);
    check_cut(&one, 0, &[1, 9]);
    // A last line without a newline may be complete by chance, but that cannot be known.
    check_cut(&[&one[..], &two[..two.len() - 1]].concat(), two.len() as u64 - 1, &[1, 9]);
    check_cut(&[&one[..], &[0; 700]].concat(), 700, &[1, 9]);
}

#[test]
fn ledger_with_only_an_incomplete_record_starts_empty() {
    check_cut(&numbered_line(1)[..20], 20, &[9]);
    check_cut(b"{\"", 2, &[9]);
    check_cut(&[0; 4096], 4096, &[9]);
    check_cut(b"", 0, &[9]);
}

#[test]
fn incomplete_line_longer_than_any_record_is_closed_and_kept() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("ledger.jsonl");
    let long = [numbered_line(1), vec![b'x'; 100_000]].concat();
    fs::write(&path, &long).unwrap();
    let appended = LedgerFile::open(&path).unwrap().append(&[numbered_line(2)]);
    assert_eq!((appended.lines, appended.cut_bytes), (1, 0));
    let expected = [long, b"\n".to_vec(), numbered_line(2)].concat();
    assert!(fs::read(&path).unwrap() == expected, "nothing of it is lost");
}

#[test]
fn a_file_that_is_no_ledger_is_left_as_it_is() {
    let root = tempfile::tempdir().unwrap();
    for text in ["export PATH=/bin", "{\"a\": 1}\n", "[1]\nlast line", "{\"w\"", "\u{0}x"] {
        let path = root.path().join("notes");
        fs::write(&path, text).unwrap();
        let error = LedgerFile::open(&path).unwrap_err();
        assert!(matches!(error, LedgerError::NotALedger(_)), "{text:?}: {error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
}

#[test]
fn writers_in_several_processes_lose_and_mix_nothing() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("ledger.jsonl");
    // Torn from the start. All writers detect it, and only one may remove it.
    fs::write(&path, &numbered_line(7)[..30]).unwrap();
    let writers: Vec<_> = (0..4).map(|_| Writer::start(&path, 300)).collect();
    for writer in writers {
        writer.assert_success();
    }
    assert_eq!(recorded_indexes(&path).len(), 4 * 300);
}

#[test]
fn ledger_of_a_killed_writer_can_be_continued() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("ledger.jsonl");
    let mut rest = 0;
    for _ in 0..5 {
        let mut writer = Writer::start(&path, usize::MAX);
        writer.wait_for_records(rest + 50);
        writer.kill();
        let appended = LedgerFile::open(&path).unwrap().append(&[numbered_line(1)]);
        assert!(appended.error.is_none());
        rest = recorded_indexes(&path).len();
    }
}

#[test]
fn record_cut_short_by_a_full_disk_is_removed() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("ledger.jsonl");
    // The system's limit on file size tears a write like a full disk does.
    let error = Writer::start_with_limit(&path, 1000).assert_failure();
    assert!(error.contains("File too large"), "{error}");
    let written = recorded_indexes(&path).len();
    let left = 8192 - fs::metadata(&path).unwrap().len();
    assert!(
        written > 0 && left < numbered_line(1000).len() as u64,
        "the limit was reached: {left}"
    );
    // With space again, the file continues after the last complete line.
    let appended = LedgerFile::open(&path).unwrap().append(&[numbered_line(1)]);
    assert_eq!((appended.lines, appended.cut_bytes), (1, 0));
    assert_eq!(recorded_indexes(&path).len(), written + 1);
}

fn new_ledger(path: &Path) -> Ledger {
    Ledger::new(Ok(path.to_owned()), Box::new(|_| {}))
}

#[test]
fn a_ledger_that_is_never_used_makes_no_file() {
    let root = tempfile::tempdir().unwrap();
    let ledger = new_ledger(&root.path().join("ledger.jsonl"));
    assert_eq!(ledger.finish(), Vec::<String>::new());
    assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
}

#[test]
fn finish_writes_all_records_and_later_records_are_lost() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("ledger.jsonl");
    let ledger = new_ledger(&path);
    for index in 1..=1000 {
        ledger.add_record(&numbered_record(index));
    }
    ledger.add_record(&turn_end(1001));
    assert_eq!((ledger.finish(), ledger.notice()), (Vec::new(), None));
    assert_eq!(recorded_indexes(&path), (1..=1001).collect::<Vec<_>>());
    ledger.add_record(&numbered_record(1002));
    assert_eq!(ledger.finish(), ["1 record of this run is not in the ledger"]);
}

#[track_caller]
fn check_trouble(path: &Path, cause: &str) {
    let ledger = new_ledger(path);
    for index in 1..=3 {
        ledger.add_record(&numbered_record(index));
    }
    let words = ledger.finish();
    let [words] = words.as_slice() else { panic!("one line: {words:?}") };
    assert!(words.contains(cause), "{words}");
    assert!(words.ends_with("; 3 records of this run are not in the ledger"), "{words}");
    assert_eq!(ledger.notice(), None, "the problem is reported once");
}

#[test]
fn unwritable_ledger_is_reported_once_and_lost_records_are_counted() {
    let root = tempfile::tempdir().unwrap();
    check_trouble(Path::new("/dev/full"), "`/dev/full`: No space left on device");
    check_trouble(root.path(), "Is a directory");
    check_trouble(Path::new("/proc/nothing/ledger.jsonl"), "No such file");
    let file = root.path().join("file");
    fs::write(&file, "text").unwrap();
    check_trouble(&file, "is not a ledger");
    check_trouble(&file.join("ledger.jsonl"), "Not a directory");
    let nowhere = Ledger::new(Err("no home".into()), Box::new(|_| {}));
    nowhere.add_record(&numbered_record(1));
    let words = "there is no ledger: no home; 1 record of this run is not in the ledger";
    assert_eq!(nowhere.finish(), [words]);
}

#[test]
fn error_reported_during_the_run_is_only_counted_at_the_end() {
    let (told, heard) = std::sync::mpsc::channel();
    let log = move |text: &str| told.send(text.to_owned()).unwrap();
    let ledger = Ledger::new(Ok("/dev/full".into()), Box::new(log));
    ledger.add_record(&numbered_record(1));
    assert!(heard.recv().unwrap().starts_with("cannot write the ledger `/dev/full`"));
    // The log is written a moment before the notice is available.
    let notice = std::iter::repeat_with(|| ledger.notice()).flatten().next().unwrap();
    assert!(
        notice.ends_with("the session continues without it; `LEDGER_PATH` may name another file")
    );
    ledger.add_record(&numbered_record(2));
    assert_eq!(ledger.finish(), ["2 records of this run are not in the ledger"]);
    assert_eq!(ledger.notice(), None);
}

#[test]
fn blocked_disk_does_not_block_the_session_and_lost_records_are_counted() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    // A pipe without a reader: it holds 64 KiB, then every write blocks.
    let ledger = new_ledger(&path);
    let count = RECORDS_WAITING_MAX as u64 + 3000;
    for index in 1..=count {
        ledger.add_record(&numbered_record(index));
    }
    let words = ledger.finish();
    let [words] = words.as_slice() else { panic!("one line: {words:?}") };
    assert!(words.starts_with("the disk of the ledger `"), "{words}");
    assert!(words.ends_with("records of this run are not in the ledger"), "{words}");
}
