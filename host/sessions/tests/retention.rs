//! Sessions that expire.

use std::fs;
use std::time::{Duration, SystemTime};

use jaato_sessions::{Durability, SessionStore};

use crate::{prompt_record, session_file, session_id, temp_store};

const DAY: Duration = Duration::from_hours(24);

/// Creates a session with a text, changed some days ago.
fn create_aged_session(store: &SessionStore, name: &str, days: u32, bytes: usize) {
    let mut writer = store.create_session(&session_id(name), "/w", None).unwrap();
    writer.append_records([prompt_record(&"x".repeat(bytes))], Durability::Written).unwrap();
    let file = fs::File::options().append(true).open(session_file(store, name)).unwrap();
    file.set_modified(SystemTime::now() - DAY * days).unwrap();
}

#[track_caller]
fn check_expired(
    store: &SessionStore,
    age: Option<Duration>,
    bytes: Option<u64>,
    expected: &[&str],
) {
    let expired = store.expire_sessions(age, bytes).unwrap();
    assert!(expired.failed.is_empty(), "{expired:?}");
    let deleted: Vec<&str> = expired.deleted.iter().map(|id| id.as_str()).collect();
    assert_eq!(deleted, expected);
    for name in expected {
        assert!(!store.folder().join(name).exists());
    }
}

#[test]
fn sessions_expire_by_age_and_then_by_size_and_never_while_open() {
    let (_folder, store) = temp_store();
    for (name, days) in [("a", 40), ("b", 30), ("c", 20), ("d", 10), ("e", 0)] {
        create_aged_session(&store, name, days, 10_000);
    }
    let open = store.open_session(&session_id("a"), false).unwrap();
    check_expired(&store, None, None, &[]);
    check_expired(&store, Some(DAY * 50), Some(1_000_000), &[]);
    check_expired(&store, Some(DAY * 25), None, &["b"]);
    check_expired(&store, None, Some(35_000), &["c"]);
    drop(open);
    check_expired(&store, Some(DAY * 25), Some(15_000), &["a", "d"]);
    assert_eq!(store.list_sessions().unwrap(), [session_id("e")]);
}

#[test]
fn attachments_count_for_the_size() {
    let (_folder, store) = temp_store();
    create_aged_session(&store, "a", 1, 10);
    store.store_attachment(&session_id("a"), &[7; 10_000]).unwrap();
    check_expired(&store, None, Some(20_000), &[]);
    check_expired(&store, None, Some(9_000), &["a"]);
}

#[test]
fn each_copy_counts_its_part_of_a_shared_attachment() {
    let (_folder, store) = temp_store();
    create_aged_session(&store, "a", 1, 10);
    store.store_attachment(&session_id("a"), &[7; 10_000]).unwrap();
    store.fork_session(&session_id("a"), &session_id("b"), None).unwrap();
    check_expired(&store, None, Some(12_000), &[]);
    check_expired(&store, None, Some(9_000), &["a"]);
    // It has the attachment alone now.
    check_expired(&store, None, Some(9_000), &["b"]);
}
