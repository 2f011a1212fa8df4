//! Sessions that expire.

use std::fs;
use std::time::{Duration, SystemTime};

use jaato_sessions::{Durability, SessionStore};

use crate::{file_of, id, prompt, store};

const DAY: Duration = Duration::from_hours(24);

/// Creates a session with a text, changed some days ago.
fn aged(store: &SessionStore, name: &str, days: u32, bytes: usize) {
    let mut writer = store.create(&id(name), "/w", None).unwrap();
    writer.append([prompt(&"x".repeat(bytes))], Durability::Written).unwrap();
    let file = fs::File::options().append(true).open(file_of(store, name)).unwrap();
    file.set_modified(SystemTime::now() - DAY * days).unwrap();
}

#[track_caller]
fn check(store: &SessionStore, age: Option<Duration>, bytes: Option<u64>, expected: &[&str]) {
    let expired = store.expire(age, bytes).unwrap();
    assert!(expired.failed.is_empty(), "{expired:?}");
    let deleted: Vec<&str> = expired.deleted.iter().map(|id| id.as_str()).collect();
    assert_eq!(deleted, expected);
    for name in expected {
        assert!(!store.folder().join(name).exists());
    }
}

#[test]
fn sessions_expire_by_age_and_then_by_size_and_never_while_open() {
    let (_folder, store) = store();
    for (name, days) in [("a", 40), ("b", 30), ("c", 20), ("d", 10), ("e", 0)] {
        aged(&store, name, days, 10_000);
    }
    let open = store.open(&id("a"), false).unwrap();
    check(&store, None, None, &[]);
    check(&store, Some(DAY * 50), Some(1_000_000), &[]);
    check(&store, Some(DAY * 25), None, &["b"]);
    check(&store, None, Some(35_000), &["c"]);
    drop(open);
    check(&store, Some(DAY * 25), Some(15_000), &["a", "d"]);
    assert_eq!(store.list().unwrap(), [id("e")]);
}

#[test]
fn attachments_count_for_the_size() {
    let (_folder, store) = store();
    aged(&store, "a", 1, 10);
    store.keep_attachment(&id("a"), &[7; 10_000]).unwrap();
    check(&store, None, Some(20_000), &[]);
    check(&store, None, Some(9_000), &["a"]);
}

#[test]
fn each_copy_counts_its_part_of_a_shared_attachment() {
    let (_folder, store) = store();
    aged(&store, "a", 1, 10);
    store.keep_attachment(&id("a"), &[7; 10_000]).unwrap();
    store.fork(&id("a"), &id("b"), None).unwrap();
    check(&store, None, Some(12_000), &[]);
    check(&store, None, Some(9_000), &["a"]);
    // It has the attachment alone now.
    check(&store, None, Some(9_000), &["b"]);
}
