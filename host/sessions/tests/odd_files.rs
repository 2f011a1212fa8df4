//! Links, pipes and absurd numbers in the folder of a session.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use jaato_sessions::{Durability, OwnerState, SessionIndex, SessionStore, SessionStoreError};
use serde_json::json;

use crate::{prompt_record, session_file, session_id, stored_texts, temp_store};

/// Creates the sessions `a` and `b` with a message each.
fn create_two(store: &SessionStore) {
    for name in ["a", "b"] {
        let mut writer = store.create_session(&session_id(name), "/w", None).unwrap();
        writer.append_records([prompt_record("moon")], Durability::Written).unwrap();
    }
}

fn make_pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

#[track_caller]
fn check_refused<T>(result: Result<T, SessionStoreError>, path: &Path) {
    let error = result.map(drop).unwrap_err().to_string();
    let expected = format!("`{}` is not used: it is not a regular file", path.display());
    assert_eq!(error, expected);
}

/// Checks that the index lists only `b`, and reports `a`.
#[track_caller]
fn check_index(store: &SessionStore) {
    let (index, count, problems) = SessionIndex::rebuild(store).unwrap();
    assert_eq!((count, problems.len()), (1, 1), "{problems:?}");
    assert_eq!(problems[0].session, session_id("a"));
    assert_eq!(index.list_sessions(None, 10).unwrap().len(), 1);
}

#[test]
fn pipe_or_link_instead_of_the_records_is_refused() {
    for make in [make_pipe as fn(&Path), |path: &Path| {
        fs::rename(path.with_file_name("moved"), path.with_file_name("target")).unwrap();
        symlink("target", path).unwrap();
    }] {
        let (_folder, store) = temp_store();
        create_two(&store);
        let path = session_file(&store, "a");
        fs::rename(&path, path.with_file_name("moved")).unwrap();
        make(&path);
        check_refused(store.read_session(&session_id("a")), &path);
        check_refused(store.open_session(&session_id("a"), true), &path);
        let (_, problems) = SessionIndex::open(&store).unwrap();
        assert_eq!(problems.len(), 1, "{problems:?}");
        check_index(&store);
        store.delete_session(&session_id("a")).unwrap();
    }
}

#[test]
fn folder_of_a_session_is_no_link_but_the_folder_of_all_sessions_can_be() {
    let (folder, store) = temp_store();
    create_two(&store);
    let elsewhere = folder.path().join("elsewhere");
    fs::rename(store.folder().join("a"), &elsewhere).unwrap();
    symlink(&elsewhere, store.folder().join("a")).unwrap();
    let error = store.read_session(&session_id("a")).map(drop).unwrap_err().to_string();
    assert!(error.ends_with("/a` is not used: it is not a folder"), "{error}");
    check_index(&store);
    let link = folder.path().join("link");
    symlink(store.folder(), &link).unwrap();
    assert_eq!(stored_texts(&SessionStore::new(link), "b"), ["moon"]);
}

#[test]
fn pipe_or_link_instead_of_a_lock_or_an_owner_is_refused() {
    for name in ["lock", "owner-7"] {
        let (_folder, store) = temp_store();
        create_two(&store);
        let path = store.folder().join("a").join(name);
        let _ = fs::remove_file(&path);
        make_pipe(&path);
        check_refused(store.open_session(&session_id("a"), false), &path);
        let (_, problems) = SessionIndex::open(&store).unwrap();
        assert_eq!(problems.len(), 1, "{problems:?}");
        fs::remove_file(&path).unwrap();
        symlink("made", &path).unwrap();
        check_refused(store.open_session(&session_id("a"), false), &path);
        assert!(!path.with_file_name("made").exists());
    }
}

#[test]
fn damaged_attachment_is_stored_again() {
    let (folder, store) = temp_store();
    create_two(&store);
    let name = store.store_attachment(&session_id("a"), b"large").unwrap();
    let path = store.folder().join("a/attachments").join(&name);
    let outside = folder.path().join("outside");
    fs::write(&outside, b"large").unwrap();
    for damage in [
        (|path, _| fs::write(path, b"short!!").unwrap()) as fn(&Path, &Path),
        |path, _| fs::write(path, b"lorge").unwrap(),
        |path, _| {
            fs::remove_file(path).unwrap();
            make_pipe(path);
        },
        |path, outside| {
            fs::remove_file(path).unwrap();
            symlink(outside, path).unwrap();
        },
    ] {
        damage(&path, &outside);
        assert!(!matches!(store.read_attachment(&session_id("a"), &name), Ok(Some(_))));
        assert_eq!(store.store_attachment(&session_id("a"), b"large").unwrap(), name);
        assert_eq!(store.read_attachment(&session_id("a"), &name).unwrap().unwrap(), b"large");
        assert!(fs::symlink_metadata(&path).unwrap().is_file());
    }
    assert_eq!(fs::read(&outside).unwrap(), b"large");
}

/// Adds a record with these numbers to a session's file.
fn add_line(store: &SessionStore, seq: u64, epoch: u64) {
    let record = prompt_record("odd");
    let line = json!({
        "seq": seq, "at": "2026-11-28T12:00:00Z", "epoch": epoch,
        "type": record.kind, "data": record.data,
    });
    let mut line = line.to_string();
    line.pop();
    let checksum = crc32fast::hash(line.as_bytes());
    let mut file = fs::read_to_string(session_file(store, "a")).unwrap();
    file.push_str(&format!("{line},\"crc32\":\"{checksum:08x}\"}}\n"));
    fs::write(session_file(store, "a"), file).unwrap();
}

#[test]
fn record_with_a_huge_number_counts_as_damaged() {
    for (seq, epoch) in [(u64::MAX, 1), (2, u64::MAX)] {
        let (_folder, store) = temp_store();
        create_two(&store);
        add_line(&store, seq, epoch);
        let mut opened = store.open_session(&session_id("a"), false).unwrap();
        assert_eq!((opened.records.len(), opened.problems.len()), (1, 1));
        assert_eq!(
            opened.writer.append_records([prompt_record("next")], Durability::Written).unwrap(),
            2
        );
        assert_eq!(stored_texts(&store, "a"), ["moon", "next"]);
    }
}

#[test]
fn no_record_is_added_if_one_of_them_would_have_too_large_a_number() {
    let (_folder, store) = temp_store();
    create_two(&store);
    add_line(&store, i64::MAX.unsigned_abs() - 1, 1);
    let mut opened = store.open_session(&session_id("a"), false).unwrap();
    let two = [prompt_record("one"), prompt_record("two")];
    let error = opened.writer.append_records(two, Durability::Written).unwrap_err();
    assert!(matches!(error, SessionStoreError::Unwritable { .. }), "{error}");
    assert_eq!(stored_texts(&store, "a"), ["moon", "odd"]);
    opened.writer.append_records([prompt_record("one")], Durability::Written).unwrap();
    assert_eq!(stored_texts(&store, "a"), ["moon", "odd", "one"]);
    opened.writer.append_records([prompt_record("two")], Durability::Written).unwrap_err();
}

#[test]
fn owner_file_with_a_huge_number_is_ignored() {
    let (_folder, store) = temp_store();
    create_two(&store);
    for number in [u64::MAX, i64::MAX.unsigned_abs() + 1] {
        fs::write(store.folder().join(format!("a/owner-{number}")), "1").unwrap();
    }
    let opened = store.open_session(&session_id("a"), false).unwrap();
    assert!(matches!(store.owner_state(&session_id("a")).unwrap(), OwnerState::InUse { .. }));
    drop(opened);
    assert_eq!(store.owner_state(&session_id("a")).unwrap(), OwnerState::Free);
}
