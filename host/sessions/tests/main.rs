//! Tests the store as a host uses it: with files, locks, processes and a killed writer.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod export;
mod history_rules;
mod import;
mod import_cases;
mod sample;

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;

use jaato_sessions::{
    Durability, ReadProblem, SessionIndex, SessionRecord, SessionStore, SessionStoreError,
    record_type,
};
use jaato_types::SessionId;
use serde_json::{Value, json};
use tempfile::TempDir;

fn store() -> (TempDir, SessionStore) {
    let folder = tempfile::tempdir().unwrap();
    let store = SessionStore::new(folder.path().join("sessions"));
    (folder, store)
}

fn id(name: &str) -> SessionId {
    SessionId::new(name)
}

fn prompt(text: &str) -> SessionRecord {
    let message = json!({ "role": "user", "parts": [{ "type": "text", "text": text }] });
    SessionRecord::new(record_type::MESSAGE, message)
}

fn file_of(store: &SessionStore, name: &str) -> PathBuf {
    store.folder().join(name).join("session.jsonl")
}

fn texts(store: &SessionStore, name: &str) -> Vec<Value> {
    let records = store.read(&id(name)).unwrap().read_rest().unwrap();
    records.into_iter().map(|it| it.record.data["parts"][0]["text"].clone()).collect()
}

#[test]
fn session_is_continued_after_its_records() {
    let (_folder, store) = store();
    let mut writer = store.create(&id("a"), "/w", None).unwrap();
    assert_eq!(writer.append([prompt("one"), prompt("two")], Durability::Written).unwrap(), 2);
    drop(writer);
    let mut opened = store.open(&id("a"), false).unwrap();
    assert_eq!(opened.records.len(), 2);
    assert_eq!(opened.problems, []);
    assert_eq!(opened.writer.append([prompt("three")], Durability::Synced).unwrap(), 3);
    assert_eq!(texts(&store, "a"), ["one", "two", "three"]);
    let epochs: Vec<u64> =
        store.read(&id("a")).unwrap().read_rest().unwrap().iter().map(|it| it.epoch).collect();
    assert_eq!(epochs, [1, 1, 2]);
}

#[test]
fn file_cut_at_any_byte_keeps_all_whole_records_before_the_cut() {
    let (_folder, store) = store();
    let mut writer = store.create(&id("a"), "/w", None).unwrap();
    let mut ends = vec![fs::read(file_of(&store, "a")).unwrap().len()];
    for text in ["one", "two é", "three"] {
        writer.append([prompt(text)], Durability::Written).unwrap();
        ends.push(fs::read(file_of(&store, "a")).unwrap().len());
    }
    drop(writer);
    let whole = fs::read(file_of(&store, "a")).unwrap();
    for cut in 0..=whole.len() {
        fs::write(file_of(&store, "a"), &whole[..cut]).unwrap();
        let opened = store.open(&id("a"), false);
        if cut < ends[0] {
            assert!(matches!(opened, Err(SessionStoreError::NotASession(_))), "cut at {cut}");
            continue;
        }
        let mut opened = opened.unwrap();
        let expected = ends.iter().filter(|end| **end <= cut).count() - 1;
        assert_eq!(opened.records.len(), expected, "cut at {cut}");
        assert_eq!(opened.problems.is_empty(), ends.contains(&cut), "cut at {cut}");
        opened.writer.append([prompt("next")], Durability::Written).unwrap();
        assert_eq!(texts(&store, "a").last().unwrap(), "next", "cut at {cut}");
        assert_eq!(texts(&store, "a").len(), expected + 1, "cut at {cut}");
    }
}

#[test]
fn damaged_line_is_reported_and_the_records_around_it_are_read() {
    let (_folder, store) = store();
    let mut writer = store.create(&id("a"), "/w", None).unwrap();
    for text in ["one", "two", "three"] {
        writer.append([prompt(text)], Durability::Written).unwrap();
    }
    drop(writer);
    let mut bytes = fs::read(file_of(&store, "a")).unwrap();
    let at = bytes.windows(3).position(|it| it == b"two").unwrap();
    bytes[at] = b'T';
    fs::write(file_of(&store, "a"), &bytes).unwrap();
    let opened = store.open(&id("a"), false).unwrap();
    assert_eq!(opened.records.len(), 2);
    assert!(matches!(opened.problems[..], [ReadProblem::Damaged { line: 3, .. }]));
}

#[test]
fn second_owner_is_refused_and_a_replaced_owner_cannot_append() {
    let (_folder, store) = store();
    let mut first = store.create(&id("a"), "/w", None).unwrap();
    assert!(matches!(store.open(&id("a"), false), Err(SessionStoreError::InUse { .. })));
    assert!(matches!(store.delete(&id("a")), Err(SessionStoreError::InUse { .. })));
    let mut second = store.open(&id("a"), true).unwrap();
    second.writer.append([prompt("mine")], Durability::Written).unwrap();
    let refused = first.append([prompt("lost")], Durability::Written);
    assert!(matches!(refused, Err(SessionStoreError::TakenOver { .. })));
    assert_eq!(texts(&store, "a"), ["mine"]);
    // The end of the replaced owner does not free the session.
    drop(first);
    assert!(matches!(store.open(&id("a"), false), Err(SessionStoreError::InUse { .. })));
    drop(second);
    store.delete(&id("a")).unwrap();
    assert_eq!(store.list().unwrap(), []);
}

#[test]
fn reader_follows_what_another_process_appends() {
    let (_folder, store) = store();
    let mut writer = store.create(&id("a"), "/w", None).unwrap();
    let mut reader = store.read(&id("a")).unwrap();
    assert_eq!(reader.read_rest().unwrap(), []);
    writer.append([prompt("one")], Durability::Written).unwrap();
    assert_eq!(reader.read_rest().unwrap().len(), 1);
    // Half a record of an append that goes on is no record yet.
    let mut file = fs::OpenOptions::new().append(true).open(file_of(&store, "a")).unwrap();
    file.write_all(b"{\"seq\":2,").unwrap();
    assert_eq!(reader.read_rest().unwrap(), []);
    assert!(matches!(reader.problems(), [ReadProblem::TornEnd { bytes: 9 }]));
}

#[test]
fn newer_format_is_refused_and_unknown_records_are_kept() {
    let (_folder, store) = store();
    let mut writer = store.create(&id("a"), "/w", None).unwrap();
    let later = SessionRecord::new("of_a_later_version", json!({ "x": [1, 2.5, null] }));
    writer.append([later.clone()], Durability::Written).unwrap();
    drop(writer);
    let records = store.open(&id("a"), false).unwrap().records;
    assert_eq!(records[0].record, later);
    let text = fs::read_to_string(file_of(&store, "a")).unwrap();
    let header = text.lines().next().unwrap().split(",\"crc32\"").next().unwrap();
    let header = header.replace("\"version\":1", "\"version\":2");
    let checksum = crc32fast::hash(header.as_bytes());
    fs::write(file_of(&store, "a"), format!("{header},\"crc32\":\"{checksum:08x}\"}}\n")).unwrap();
    let error = store.open(&id("a"), false).unwrap_err().to_string();
    assert!(error.ends_with("has format 2, and this jaato reads formats up to 1"), "{error}");
}

#[test]
fn ids_that_leave_the_folder_are_refused() {
    let (_folder, store) = store();
    for text in ["", ".", "..", "a/b", "../a", "-a", "a b", &"a".repeat(65)] {
        for refused in [
            store.create(&id(text), "/w", None).map(drop),
            store.open(&id(text), true).map(drop),
            store.delete(&id(text)),
        ] {
            assert!(matches!(refused, Err(SessionStoreError::InvalidId(_))), "{text}");
        }
    }
}

#[test]
fn attachment_is_read_by_its_digest_and_a_damaged_one_is_missing() {
    let (_folder, store) = store();
    store.create(&id("a"), "/w", None).unwrap();
    let name = store.keep_attachment(&id("a"), b"large").unwrap();
    assert_eq!(store.keep_attachment(&id("a"), b"large").unwrap(), name);
    assert_eq!(store.attachment(&id("a"), &name).unwrap().unwrap(), b"large");
    fs::write(store.folder().join("a/attachments").join(&name), "other").unwrap();
    assert_eq!(store.attachment(&id("a"), &name).unwrap(), None);
    assert_eq!(store.attachment(&id("a"), "../session.jsonl").unwrap(), None);
}

#[test]
fn rebuilt_index_equals_the_one_that_was_kept() {
    let (folder, store) = store();
    let path = folder.path().join("index.sqlite");
    let (index, is_new) = SessionIndex::open(&path).unwrap();
    assert!(is_new);
    for (name, texts) in
        [("a", ["Fix the moon", "and the sun"]), ("b", ["read \"it\"", "moonlight"])]
    {
        let mut writer = store.create(&id(name), "/w", None).unwrap();
        writer.append(texts.map(prompt), Durability::Written).unwrap();
        let records = store.read(&id(name)).unwrap().read_rest().unwrap();
        index.add_session(name, "/w", records[0].at_ms).unwrap();
        index.add_records(name, &records).unwrap();
    }
    let mut writer = store.open(&id("b"), true).unwrap().writer;
    let renamed = SessionRecord::new(record_type::NAME, json!({ "name": "light" }));
    writer.append([renamed], Durability::Written).unwrap();
    let records = store.read(&id("b")).unwrap().read_rest().unwrap();
    index.add_records("b", &records[2..]).unwrap();
    let found = |index: &SessionIndex| {
        let names: Vec<_> =
            index.list(Some("/w"), 10).unwrap().into_iter().map(|it| (it.id, it.name)).collect();
        let hits: Vec<_> =
            index.search("moon", 10).unwrap().into_iter().map(|it| it.excerpt).collect();
        (names, hits)
    };
    let kept = found(&index);
    assert_eq!(kept.0.len(), 2);
    assert!(kept.0.contains(&("a".into(), "Fix the moon".into())), "{kept:?}");
    assert!(kept.0.contains(&("b".into(), "light".into())), "{kept:?}");
    assert_eq!(kept.1.len(), 2, "{kept:?}");
    assert_eq!(index.list(Some("/other"), 10).unwrap(), []);
    assert_eq!(index.search("\" OR moon*", 10).unwrap().len(), 0);
    index.rebuild(&store).unwrap();
    assert_eq!(found(&index), kept);
    drop(index);
    let (index, is_new) = SessionIndex::open(&path).unwrap();
    assert!(!is_new);
    index.remove("a").unwrap();
    assert_eq!(index.newest("/w").unwrap().as_deref(), Some("b"));
    assert_eq!(index.search("sun", 10).unwrap(), []);
}
