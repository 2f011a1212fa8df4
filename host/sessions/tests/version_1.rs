//! A session that the first version of the format has written. Each later version must read it.
//!
//! The files in `fixtures/version-1` never change. A new record type gets a file of its own.

use std::fs;
use std::path::Path;

use jaato_sessions::{
    Durability, SessionIndex, SessionStore, StoredRecord, effective_records, record_type,
};
use tempfile::TempDir;

use crate::{prompt_record, session_id};

const SESSION: &str = "20261128-121314-k3f9qz";

/// Copies the fixture, because the store writes to it.
fn copy_fixture() -> (TempDir, SessionStore) {
    let folder = tempfile::tempdir().unwrap();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/version-1");
    copy_folder(&fixtures, folder.path());
    let store = SessionStore::new(folder.path());
    (folder, store)
}

fn copy_folder(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            fs::create_dir_all(&target).unwrap();
            copy_folder(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

fn record_numbers(records: &[StoredRecord]) -> Vec<u64> {
    records.iter().map(|stored| stored.seq).collect()
}

#[test]
fn session_of_version_1_is_read_with_all_its_records() {
    let (_folder, store) = copy_fixture();
    let mut reader = store.read_session(&session_id(SESSION)).unwrap();
    assert_eq!(
        (reader.header().version, reader.header().workspace.as_str()),
        (1, "/home/user/moon")
    );
    assert_eq!(reader.begun_ms(), 1_795_867_994_000);
    let records = reader.read_rest().unwrap();
    assert_eq!(reader.problems(), []);
    assert_eq!(record_numbers(&records), (1..=17).collect::<Vec<_>>());
    let kinds = [
        record_type::MESSAGE,
        record_type::CHANGE,
        record_type::CALL_STARTED,
        record_type::NAME,
        record_type::REWIND,
        "of_a_later_version",
    ];
    for kind in kinds {
        assert!(records.iter().any(|stored| stored.record.kind == kind), "{kind}");
    }
    assert_eq!(
        record_numbers(&effective_records(records)),
        [1, 2, 3, 4, 5, 6, 9, 11, 12, 13, 14, 15, 16, 17]
    );
}

#[test]
fn session_of_version_1_is_indexed_continued_and_forked() {
    let (_folder, store) = copy_fixture();
    let (index, problems) = SessionIndex::open(&store).unwrap();
    assert!(problems.is_empty(), "{problems:?}");
    let listed = index.list_sessions(None, 10).unwrap();
    let session = listed.iter().find(|it| it.id == SESSION).unwrap();
    assert_eq!((session.name.as_str(), session.prompts), ("Where things are", 2));
    let found = |words| index.search_messages(words, None, 10).unwrap().len();
    assert_eq!([found("cloud"), found("red"), found("bright"), found("stars")], [1, 1, 0, 0]);
    let mut opened = store.open_session(&session_id(SESSION), false).unwrap();
    assert_eq!(
        opened.writer.append_records([prompt_record("next")], Durability::Synced).unwrap(),
        18
    );
    assert_eq!(store.fork_session(&session_id(SESSION), &session_id("b"), Some(6)).unwrap(), 6);
    let name = "fc2d0db7916389445a943a1c93ea6b319fa3d29d9a3387419a6cd9fe56d539cd";
    for session in [SESSION, "b"] {
        let content = store.read_attachment(&session_id(session), name).unwrap().unwrap();
        assert_eq!(content, b"a large output of a tool\n");
    }
}
