//! Sessions that are created, continued, followed and read after damage.

use std::fs;
use std::io::Write as _;

use jaato_sessions::{Durability, OwnerState, ReadProblem, SessionRecord, SessionStoreError};
use serde_json::json;

use crate::{prompt_record, session_file, session_id, stored_texts, temp_store};

#[test]
fn session_is_continued_after_its_records() {
    let (_folder, store) = temp_store();
    let mut writer = store.create_session(&session_id("a"), "/w", None).unwrap();
    assert_eq!(
        writer
            .append_records([prompt_record("one"), prompt_record("two")], Durability::Written)
            .unwrap(),
        2
    );
    drop(writer);
    let mut opened = store.open_session(&session_id("a"), false).unwrap();
    assert_eq!(opened.records.len(), 2);
    assert_eq!(opened.problems, []);
    assert_eq!(
        opened.writer.append_records([prompt_record("three")], Durability::Synced).unwrap(),
        3
    );
    assert_eq!(stored_texts(&store, "a"), ["one", "two", "three"]);
    let epochs: Vec<u64> = store
        .read_session(&session_id("a"))
        .unwrap()
        .read_rest()
        .unwrap()
        .iter()
        .map(|it| it.epoch)
        .collect();
    assert_eq!(epochs, [1, 1, 2]);
}

#[test]
fn file_cut_at_any_byte_keeps_all_whole_records_before_the_cut() {
    let (_folder, store) = temp_store();
    let mut writer = store.create_session(&session_id("a"), "/w", None).unwrap();
    let mut ends = vec![fs::read(session_file(&store, "a")).unwrap().len()];
    for text in ["one", "two é", "three"] {
        writer.append_records([prompt_record(text)], Durability::Written).unwrap();
        ends.push(fs::read(session_file(&store, "a")).unwrap().len());
    }
    drop(writer);
    let whole = fs::read(session_file(&store, "a")).unwrap();
    for cut in 0..=whole.len() {
        fs::write(session_file(&store, "a"), &whole[..cut]).unwrap();
        let opened = store.open_session(&session_id("a"), false);
        if cut < ends[0] {
            assert!(matches!(opened, Err(SessionStoreError::NotASession(_))), "cut at {cut}");
            continue;
        }
        let mut opened = opened.unwrap();
        let expected = ends.iter().filter(|end| **end <= cut).count() - 1;
        assert_eq!(opened.records.len(), expected, "cut at {cut}");
        assert_eq!(opened.problems.is_empty(), ends.contains(&cut), "cut at {cut}");
        opened.writer.append_records([prompt_record("next")], Durability::Written).unwrap();
        assert_eq!(stored_texts(&store, "a").last().unwrap(), "next", "cut at {cut}");
        assert_eq!(stored_texts(&store, "a").len(), expected + 1, "cut at {cut}");
    }
}

#[test]
fn damaged_line_is_reported_and_the_records_around_it_are_read() {
    let (_folder, store) = temp_store();
    let mut writer = store.create_session(&session_id("a"), "/w", None).unwrap();
    for text in ["one", "two", "three"] {
        writer.append_records([prompt_record(text)], Durability::Written).unwrap();
    }
    drop(writer);
    let mut bytes = fs::read(session_file(&store, "a")).unwrap();
    let at = bytes.windows(3).position(|it| it == b"two").unwrap();
    bytes[at] = b'T';
    fs::write(session_file(&store, "a"), &bytes).unwrap();
    let opened = store.open_session(&session_id("a"), false).unwrap();
    assert_eq!(opened.records.len(), 2);
    assert!(matches!(opened.problems[..], [ReadProblem::Damaged { line: 3, .. }]));
}

#[test]
fn second_owner_is_refused_and_a_replaced_owner_cannot_append() {
    let (_folder, store) = temp_store();
    let mut first = store.create_session(&session_id("a"), "/w", None).unwrap();
    assert!(matches!(
        store.open_session(&session_id("a"), false),
        Err(SessionStoreError::InUse { .. })
    ));
    assert!(matches!(store.delete_session(&session_id("a")), Err(SessionStoreError::InUse { .. })));
    let mut second = store.open_session(&session_id("a"), true).unwrap();
    second.writer.append_records([prompt_record("mine")], Durability::Written).unwrap();
    let refused = first.append_records([prompt_record("lost")], Durability::Written);
    assert!(matches!(refused, Err(SessionStoreError::TakenOver { .. })));
    assert_eq!(stored_texts(&store, "a"), ["mine"]);
    // The end of the replaced owner does not free the session.
    drop(first);
    assert!(matches!(
        store.open_session(&session_id("a"), false),
        Err(SessionStoreError::InUse { .. })
    ));
    drop(second);
    store.delete_session(&session_id("a")).unwrap();
    assert_eq!(store.list_sessions().unwrap(), []);
}

#[test]
fn reader_follows_what_another_process_appends() {
    let (_folder, store) = temp_store();
    let mut writer = store.create_session(&session_id("a"), "/w", None).unwrap();
    let mut reader = store.read_session(&session_id("a")).unwrap();
    assert_eq!(reader.read_rest().unwrap(), []);
    writer.append_records([prompt_record("one")], Durability::Written).unwrap();
    assert_eq!(reader.read_rest().unwrap().len(), 1);
    // Half a record of an append that has not finished is not a record yet.
    let mut file = fs::OpenOptions::new().append(true).open(session_file(&store, "a")).unwrap();
    file.write_all(b"{\"seq\":2,").unwrap();
    assert_eq!(reader.read_rest().unwrap(), []);
    assert!(matches!(reader.problems(), [ReadProblem::TornEnd { bytes: 9 }]));
}

#[test]
fn newer_format_is_refused_and_unknown_records_are_kept() {
    let (_folder, store) = temp_store();
    let mut writer = store.create_session(&session_id("a"), "/w", None).unwrap();
    let later = SessionRecord::new("of_a_later_version", json!({ "x": [1, 2.5, null] }));
    writer.append_records([later.clone()], Durability::Written).unwrap();
    drop(writer);
    let records = store.open_session(&session_id("a"), false).unwrap().records;
    assert_eq!(records[0].record, later);
    let text = fs::read_to_string(session_file(&store, "a")).unwrap();
    let header = text.lines().next().unwrap().split(",\"crc32\"").next().unwrap();
    let header = header.replace("\"version\":1", "\"version\":2");
    let checksum = crc32fast::hash(header.as_bytes());
    fs::write(session_file(&store, "a"), format!("{header},\"crc32\":\"{checksum:08x}\"}}\n"))
        .unwrap();
    let error = store.open_session(&session_id("a"), false).unwrap_err().to_string();
    assert!(error.ends_with("has format 2, and this jaato reads formats up to 1"), "{error}");
}

#[test]
fn ids_that_leave_the_folder_are_refused() {
    let (_folder, store) = temp_store();
    for text in ["", ".", "..", "a/b", "../a", "-a", "a b", &"a".repeat(65)] {
        for refused in [
            store.create_session(&session_id(text), "/w", None).map(drop),
            store.open_session(&session_id(text), true).map(drop),
            store.delete_session(&session_id(text)),
        ] {
            assert!(matches!(refused, Err(SessionStoreError::InvalidId(_))), "{text}");
        }
    }
}

#[test]
fn attachment_is_read_by_its_digest_and_a_damaged_one_is_missing() {
    let (_folder, store) = temp_store();
    store.create_session(&session_id("a"), "/w", None).unwrap();
    let name = store.store_attachment(&session_id("a"), b"large").unwrap();
    assert_eq!(store.store_attachment(&session_id("a"), b"large").unwrap(), name);
    assert_eq!(store.read_attachment(&session_id("a"), &name).unwrap().unwrap(), b"large");
    fs::write(store.folder().join("a/attachments").join(&name), "other").unwrap();
    assert_eq!(store.read_attachment(&session_id("a"), &name).unwrap(), None);
    assert_eq!(store.read_attachment(&session_id("a"), "../session.jsonl").unwrap(), None);
}

#[test]
fn owner_and_its_process_are_shown_while_the_session_is_open() {
    let (_folder, store) = temp_store();
    let writer = store.create_session(&session_id("a"), "/w", None).unwrap();
    let pid = Some(std::process::id());
    assert_eq!(store.owner_state(&session_id("a")).unwrap(), OwnerState::InUse { pid });
    assert_eq!(store.open_sessions().unwrap(), [(session_id("a"), pid)]);
    let error = store.open_session(&session_id("a"), false).unwrap_err().to_string();
    assert_eq!(error, format!("session `a` is open in another process ({})", std::process::id()));
    drop(writer);
    assert_eq!(store.owner_state(&session_id("a")).unwrap(), OwnerState::Free);
    assert_eq!(store.open_sessions().unwrap(), []);
}

#[test]
fn of_many_that_claim_a_session_at_once_one_succeeds() {
    let (_folder, store) = temp_store();
    drop(store.create_session(&session_id("a"), "/w", None).unwrap());
    for round in 1..=20 {
        let opened: Vec<_> = std::thread::scope(|scope| {
            let open = || store.open_session(&session_id("a"), false);
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(open)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let (mut owners, refused): (Vec<_>, Vec<_>) = opened.into_iter().partition(Result::is_ok);
        assert_eq!(owners.len(), 1);
        for refused in refused {
            assert!(matches!(refused, Err(SessionStoreError::InUse { .. })), "{refused:?}");
        }
        let mut owner = owners.remove(0).unwrap();
        let seq = owner.writer.append_records([prompt_record("x")], Durability::Written).unwrap();
        assert_eq!(seq, round);
    }
}

#[test]
fn of_many_that_take_a_session_over_at_once_only_the_last_can_append() {
    let (_folder, store) = temp_store();
    let mut first = store.create_session(&session_id("a"), "/w", None).unwrap();
    for _ in 0..20 {
        let mut opened: Vec<_> = std::thread::scope(|scope| {
            let open = || store.open_session(&session_id("a"), true).unwrap();
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(open)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let appended = opened
            .iter_mut()
            .map(|opened| opened.writer.append_records([prompt_record("x")], Durability::Written));
        assert_eq!(appended.filter(Result::is_ok).count(), 1);
        assert!(first.append_records([prompt_record("lost")], Durability::Written).is_err());
    }
    let numbers: Vec<u64> = store
        .read_session(&session_id("a"))
        .unwrap()
        .read_rest()
        .unwrap()
        .iter()
        .map(|it| it.seq)
        .collect();
    assert_eq!(numbers, (1..=20).collect::<Vec<_>>());
}

#[test]
fn reader_sees_only_whole_appends_of_another_thread() {
    let (_folder, store) = temp_store();
    let mut writer = store.create_session(&session_id("a"), "/w", None).unwrap();
    let mut reader = store.read_session(&session_id("a")).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for at in 0..200 {
                let texts = (0..3).map(|part| prompt_record(&format!("{at} {part}")));
                writer.append_records(texts, Durability::Written).unwrap();
            }
        });
        let mut seen = 0;
        while seen < 600 {
            let records = reader.read_rest().unwrap();
            assert_eq!(records.len() % 3, 0);
            assert_eq!(reader.problems(), []);
            seen += records.len();
        }
    });
}

#[test]
fn id_that_is_taken_is_refused_for_a_new_session() {
    let (_folder, store) = temp_store();
    let mut writer = store.create_session(&session_id("a"), "/w", None).unwrap();
    writer.append_records([prompt_record("kept")], Durability::Written).unwrap();
    assert!(matches!(
        store.create_session(&session_id("a"), "/w", None),
        Err(SessionStoreError::InUse { .. })
    ));
    drop(writer);
    let refused = store.create_session(&session_id("a"), "/w", None);
    assert!(matches!(refused, Err(SessionStoreError::AlreadyExists(_))));
    assert_eq!(stored_texts(&store, "a"), ["kept"]);
}

#[test]
fn session_is_found_by_a_unique_beginning_or_end_of_its_id() {
    let (_folder, store) = temp_store();
    for name in ["20261128-121314-k3f9qz", "20261128-121315-abcdef", "20261129-000000-zzzzzz"] {
        store.create_session(&session_id(name), "/w", None).unwrap();
    }
    for text in ["20261128-121315-abcdef", "abcdef", "abcd", "cdef", "20261128-121315"] {
        assert_eq!(store.find_session(text).unwrap(), session_id("20261128-121315-abcdef"));
    }
    for (text, expected) in [
        (
            "20261128",
            "`20261128` matches 2 sessions: `20261128-121315-abcdef`, `20261128-121314-k3f9qz`",
        ),
        ("def", "there is no session `def`, and a part of an id has at least 4 characters"),
        ("121314", "there is no session `121314`"),
        ("../20261129-000000-zzzzzz", "there is no session `../20261129-000000-zzzzzz`"),
        ("chan", "there is no session `chan`"),
    ] {
        assert_eq!(store.find_session(text).unwrap_err().to_string(), expected);
    }
    for second in 10..14 {
        store
            .create_session(&session_id(&format!("20261128-1213{second}-xxxxxx")), "/w", None)
            .unwrap();
    }
    let error = store.find_session("20261128").unwrap_err().to_string();
    assert!(
        error.starts_with("`20261128` matches 6 sessions: `20261128-121315-abcdef`, "),
        "{error}"
    );
    assert!(error.ends_with("-xxxxxx` and 1 more"), "{error}");
}
