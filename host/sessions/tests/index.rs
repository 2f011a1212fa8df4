//! The index: it follows the files, and can be made again from them.

use std::fs;
use std::sync::Arc;

use jaato_sessions::{
    DiskHook, DiskStep, Durability, SessionIndex, SessionOpener, SessionRecord, SessionStore,
    SessionStoreError, SessionWriter, record_type,
};
use serde_json::json;

use crate::{
    answer_record, name_record, prompt_record, rewind_record, session_file, session_id, temp_store,
};

fn append_records(writer: &mut SessionWriter, records: impl IntoIterator<Item = SessionRecord>) {
    writer.append_records(records, Durability::Written).unwrap();
}

fn history_change_record(data: serde_json::Value) -> SessionRecord {
    SessionRecord::new(record_type::CHANGE, data)
}

#[track_caller]
fn open_index(store: &SessionStore) -> SessionIndex {
    let (index, problems) = SessionIndex::open(store).unwrap();
    assert!(problems.is_empty(), "{problems:?}");
    index
}

/// Returns the id, the name and the number of prompts of all sessions, in the order of their ids.
fn listed_sessions(index: &SessionIndex) -> Vec<(String, String, u64)> {
    let sessions = index.list_sessions(None, 100).unwrap().into_iter();
    let mut listed: Vec<_> = sessions.map(|it| (it.id, it.name, it.prompts)).collect();
    listed.sort();
    listed
}

fn search_results(index: &SessionIndex, words: &str) -> Vec<String> {
    let hits = index.search_messages(words, None, 100).unwrap().into_iter();
    let mut found: Vec<_> = hits.map(|it| format!("{} {}", it.session, it.excerpt)).collect();
    found.sort();
    found
}

/// Compares the index with a new one.
#[track_caller]
fn check_rebuilt(store: &SessionStore, words: &[&str]) {
    let kept = open_index(store);
    let seen = |index: &SessionIndex| {
        let hits: Vec<_> = words.iter().map(|words| search_results(index, words)).collect();
        (index.list_sessions(None, 100).unwrap(), hits)
    };
    let before = seen(&kept);
    drop(kept);
    let (rebuilt, count, problems) = SessionIndex::rebuild(store).unwrap();
    assert_eq!((count, problems.len()), (before.0.len() as u64, 0));
    assert_eq!(seen(&rebuilt), before);
}

#[test]
fn index_follows_an_open_session() {
    let (_folder, store) = temp_store();
    assert_eq!(listed_sessions(&open_index(&store)), []);
    let mut writer = store.create_session(&session_id("a"), "/w", None).unwrap();
    assert_eq!(listed_sessions(&open_index(&store)), [("a".into(), String::new(), 0)]);
    append_records(&mut writer, [prompt_record("Fix the moon"), answer_record("moonlight")]);
    assert_eq!(listed_sessions(&open_index(&store)), [("a".into(), "Fix the moon".into(), 1)]);
    assert_eq!(search_results(&open_index(&store), "moon"), ["a Fix the [moon]", "a [moonlight]"]);
    append_records(&mut writer, [prompt_record("and the sun")]);
    assert_eq!(listed_sessions(&open_index(&store)), [("a".into(), "Fix the moon".into(), 2)]);
    assert!(store.folder().join("changed/a").exists());
    drop(writer);
    check_rebuilt(&store, &["moon", "sun", "the"]);
    assert!(!store.folder().join("changed/a").exists());
    // A session that is free and unchanged is not read again.
    fs::remove_file(session_file(&store, "a")).unwrap();
    assert_eq!(open_index(&store).list_sessions(None, 10).unwrap().len(), 1);
}

#[test]
fn list_is_by_change_and_can_be_limited_to_a_workspace() {
    let (_folder, store) = temp_store();
    let mut first = store.create_session(&session_id("a"), "/w", None).unwrap();
    drop(store.create_session(&session_id("b"), "/other", None).unwrap());
    drop(store.create_session(&session_id("c"), "/w", None).unwrap());
    std::thread::sleep(std::time::Duration::from_millis(2));
    append_records(&mut first, [prompt_record("later")]);
    let index = open_index(&store);
    let ids = |workspace, limit| -> Vec<String> {
        index.list_sessions(workspace, limit).unwrap().into_iter().map(|it| it.id).collect()
    };
    assert_eq!(ids(None, 10)[0], "a");
    assert_eq!(ids(Some("/w"), 10), ["a", "c"]);
    assert_eq!(ids(Some("/w"), 1), ["a"]);
    assert_eq!(ids(Some("/no"), 10), Vec::<String>::new());
    assert_eq!(
        (index.count_sessions(None).unwrap(), index.count_sessions(Some("/w")).unwrap()),
        (3, 2)
    );
}

#[test]
fn search_takes_words_literally_and_can_be_limited_to_a_workspace() {
    let (_folder, store) = temp_store();
    let mut writer = store.create_session(&session_id("a"), "/w", None).unwrap();
    append_records(&mut writer, [prompt_record("read \"it\" AND café"), answer_record("nothing")]);
    let index = open_index(&store);
    assert_eq!(search_results(&index, "\"it\" and"), ["a read \"[it]\" [AND] café"]);
    assert_eq!(search_results(&index, "Cafe"), ["a read \"it\" AND [café]"]);
    for words in ["it OR moon", "*", "", "  ", "text:it", "it NOT read"] {
        assert_eq!(search_results(&index, words), Vec::<String>::new(), "{words}");
    }
    let hits = index.search_messages("read", Some("/w"), 10).unwrap();
    assert_eq!((hits.len(), hits[0].seq, hits[0].name.as_str()), (1, 1, "read \"it\" AND café"));
    assert_eq!(index.search_messages("read", Some("/v"), 10).unwrap(), []);
}

#[test]
fn rewound_messages_are_neither_found_nor_counted() {
    let (_folder, store) = temp_store();
    let mut writer = store.create_session(&session_id("a"), "/w", None).unwrap();
    append_records(
        &mut writer,
        [prompt_record("one"), answer_record("red"), prompt_record("two"), answer_record("green")],
    );
    assert_eq!(listed_sessions(&open_index(&store)), [("a".into(), "one".into(), 2)]);
    append_records(&mut writer, [rewind_record(2)]);
    assert_eq!(listed_sessions(&open_index(&store)), [("a".into(), "one".into(), 1)]);
    append_records(&mut writer, [prompt_record("three")]);
    let opened = open_index(&store);
    assert_eq!(search_results(&opened, "green"), Vec::<String>::new());
    assert_eq!(search_results(&opened, "red"), ["a [red]"]);
    assert_eq!(listed_sessions(&opened), [("a".into(), "one".into(), 2)]);
    // Without its first prompt, the session has the name of the next one.
    append_records(&mut writer, [rewind_record(0), prompt_record("four")]);
    assert_eq!(listed_sessions(&open_index(&store)), [("a".into(), "four".into(), 1)]);
    append_records(&mut writer, [name_record("mine"), rewind_record(0)]);
    assert_eq!(listed_sessions(&open_index(&store)), [("a".into(), "mine".into(), 0)]);
    check_rebuilt(&store, &["one", "two", "three", "four"]);
}

#[test]
fn changes_of_the_history_change_the_index() {
    let (_folder, store) = temp_store();
    let mut writer = store.create_session(&session_id("a"), "/w", None).unwrap();
    append_records(
        &mut writer,
        [prompt_record("one"), answer_record("re"), prompt_record("two"), answer_record("green")],
    );
    assert_eq!(search_results(&open_index(&store), "green"), ["a [green]"]);
    let red = answer_record("red").data;
    append_records(
        &mut writer,
        [history_change_record(json!({ "change": "replace", "index": 1, "entry": red }))],
    );
    append_records(&mut writer, [history_change_record(json!({ "change": "forget", "count": 2 }))]);
    append_records(&mut writer, [history_change_record(json!({ "change": "cut", "length": 1 }))]);
    let opened = open_index(&store);
    assert_eq!(search_results(&opened, "green"), Vec::<String>::new());
    assert_eq!(search_results(&opened, "red"), ["a [red]"]);
    assert_eq!(listed_sessions(&opened), [("a".into(), "one".into(), 2)]);
    // A prompt that was not sent does not count.
    let mut unsent = prompt_record("two").data;
    unsent["mark"] = json!("unsent");
    append_records(
        &mut writer,
        [history_change_record(json!({ "change": "replace", "index": 0, "entry": unsent }))],
    );
    append_records(
        &mut writer,
        [prompt_record("blue"), history_change_record(json!({ "change": "unknown" }))],
    );
    assert_eq!(listed_sessions(&open_index(&store)), [("a".into(), "one".into(), 2)]);
    check_rebuilt(&store, &["one", "two", "red", "green", "blue"]);
}

#[test]
fn message_that_is_forgotten_between_others_is_still_found() {
    let (_folder, store) = temp_store();
    let mut writer = store.create_session(&session_id("a"), "/w", None).unwrap();
    append_records(
        &mut writer,
        [prompt_record("one"), answer_record("red"), prompt_record("two"), answer_record("green")],
    );
    append_records(
        &mut writer,
        [history_change_record(json!({ "change": "forget", "index": 1, "count": 2 }))],
    );
    assert_eq!(search_results(&open_index(&store), "red"), ["a [red]"]);
    let blue = answer_record("blue").data;
    append_records(
        &mut writer,
        [history_change_record(json!({ "change": "replace", "index": 1, "entry": blue }))],
    );
    append_records(
        &mut writer,
        [prompt_record("three"), history_change_record(json!({ "change": "cut", "length": 2 }))],
    );
    let opened = open_index(&store);
    assert_eq!(search_results(&opened, "red"), ["a [red]"]);
    assert_eq!(search_results(&opened, "blue"), ["a [blue]"]);
    for gone in ["green", "three"] {
        assert_eq!(search_results(&opened, gone), Vec::<String>::new());
    }
    assert_eq!(listed_sessions(&opened), [("a".into(), "one".into(), 2)]);
    check_rebuilt(&store, &["one", "two", "red", "green", "blue", "three"]);
}

#[test]
fn deleted_session_leaves_the_index() {
    let (_folder, store) = temp_store();
    let mut writer = store.create_session(&session_id("a"), "/w", None).unwrap();
    append_records(&mut writer, [prompt_record("moon")]);
    drop(writer);
    assert_eq!(search_results(&open_index(&store), "moon").len(), 1);
    store.delete_session(&session_id("a")).unwrap();
    let opened = open_index(&store);
    assert_eq!((listed_sessions(&opened), search_results(&opened, "moon")), (vec![], vec![]));
    assert_eq!(store.open_sessions().unwrap(), []);
    assert!(!store.folder().join("changed/a").exists());
}

#[test]
fn damaged_missing_and_older_index_is_made_again() {
    let (_folder, store) = temp_store();
    let mut writer = store.create_session(&session_id("a"), "/w", None).unwrap();
    append_records(&mut writer, [prompt_record("moon")]);
    drop(writer);
    let path = store.folder().join("index.sqlite");
    let older = rusqlite::Connection::open_in_memory().unwrap();
    older.execute_batch("create table sessions (x); pragma user_version = 1;").unwrap();
    let newer = rusqlite::Connection::open_in_memory().unwrap();
    newer.execute_batch("create table sessions (x); pragma user_version = 99;").unwrap();
    drop(open_index(&store));
    let bytes = fs::read(&path).unwrap();
    let flipped = bytes.iter().map(|byte| byte ^ 0x55).collect();
    let half = bytes[..bytes.len() / 2].to_vec();
    for damaged in [Vec::new(), b"no database".to_vec(), half, flipped] {
        fs::write(&path, damaged).unwrap();
        assert_eq!(search_results(&open_index(&store), "moon"), ["a [moon]"]);
    }
    for foreign in [older, newer] {
        fs::remove_file(&path).unwrap();
        foreign.execute("vacuum into ?1", [path.to_str().unwrap()]).unwrap();
        assert_eq!(search_results(&open_index(&store), "moon"), ["a [moon]"]);
    }
}

#[test]
fn file_that_was_replaced_is_read_from_its_begin() {
    let (_folder, store) = temp_store();
    let mut writer = store.create_session(&session_id("a"), "/w", None).unwrap();
    append_records(
        &mut writer,
        [prompt_record("moon"), answer_record("long ".repeat(50).as_str())],
    );
    assert_eq!(search_results(&open_index(&store), "moon").len(), 1);
    let text = fs::read_to_string(session_file(&store, "a")).unwrap();
    let header = text.lines().next().unwrap();
    fs::write(session_file(&store, "a"), format!("{header}\n")).unwrap();
    assert_eq!(search_results(&open_index(&store), "moon"), Vec::<String>::new());
}

#[test]
fn session_that_cannot_be_read_is_reported_and_hides_no_other() {
    let (_folder, store) = temp_store();
    for name in ["a", "b"] {
        append_records(
            &mut store.create_session(&session_id(name), "/w", None).unwrap(),
            [prompt_record("moon")],
        );
    }
    fs::write(session_file(&store, "a"), "{\"seq\":0").unwrap();
    let (opened, problems) = SessionIndex::open(&store).unwrap();
    assert_eq!(listed_sessions(&opened), [("b".into(), "moon".into(), 1)]);
    let [problem] = &problems[..] else { panic!("{problems:?}") };
    assert_eq!(problem.session, session_id("a"));
    assert!(matches!(problem.error, SessionStoreError::NotASession(_)));
    drop(opened);
    // It is reported once, and again when the index is made again.
    drop(open_index(&store));
    assert_eq!(SessionIndex::rebuild(&store).unwrap().2.len(), 1);
}

#[test]
fn processes_can_open_the_index_at_once() {
    let (_folder, store) = temp_store();
    for at in 0..20 {
        let mut writer = store.create_session(&session_id(&format!("a{at}")), "/w", None).unwrap();
        append_records(&mut writer, [prompt_record("moon")]);
    }
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| assert_eq!(search_results(&open_index(&store), "moon").len(), 20));
        }
    });
}

#[test]
fn index_and_marks_are_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let (_folder, store) = temp_store();
    let writer = store.create_session(&session_id("a"), "/w", None).unwrap();
    drop(open_index(&store));
    let mode =
        |path: &str| fs::metadata(store.folder().join(path)).unwrap().permissions().mode() & 0o777;
    for file in ["index.sqlite", "changed/a", "a/session.jsonl", "a/owner-1", "a/lock"] {
        assert_eq!(mode(file), 0o600, "{file}");
    }
    for folder in ["", "changed", "a"] {
        assert_eq!(mode(folder), 0o700, "{folder}");
    }
    drop(writer);
}

/// Opens the index just before a new session gets its file.
#[derive(Debug)]
struct IndexDuringCreation(SessionStore);

impl DiskHook for IndexDuringCreation {
    fn before_step(&self, step: &DiskStep<'_>) -> std::io::Result<()> {
        if matches!(step, DiskStep::Rename(_)) {
            assert_eq!(listed_sessions(&open_index(&self.0)), []);
        }
        Ok(())
    }

    fn after_step(&self, _: &DiskStep<'_>) {}
}

#[test]
fn session_is_indexed_if_the_index_was_opened_while_it_was_created() {
    let (_folder, store) = temp_store();
    let hook = Arc::new(IndexDuringCreation(store.clone()));
    let mut writer =
        store.clone().with_disk_hook(hook).create_session(&session_id("a"), "/w", None).unwrap();
    append_records(&mut writer, [prompt_record("moon")]);
    drop(writer);
    assert_eq!(listed_sessions(&open_index(&store)), [("a".into(), "moon".into(), 1)]);
}

#[test]
fn mark_of_a_session_whose_creation_crashed_is_removed() {
    let (_folder, store) = temp_store();
    drop(store.create_session(&session_id("a"), "/w", None).unwrap());
    fs::remove_file(session_file(&store, "a")).unwrap();
    assert_eq!(listed_sessions(&open_index(&store)), []);
    assert!(!store.folder().join("changed/a").exists());
    // The id is free.
    drop(store.create_session(&session_id("a"), "/w", None).unwrap());
    assert_eq!(listed_sessions(&open_index(&store)).len(), 1);
}

#[test]
fn tree_has_each_session_once_even_if_damaged_files_name_each_other() {
    let (_folder, store) = temp_store();
    let opened = |name: &str, opener: &str| {
        let opener = SessionOpener { session: opener.to_owned(), agent: format!("{name}s") };
        let mut writer = store.create_session(&session_id(name), "/w", Some(&opener)).unwrap();
        append_records(&mut writer, [prompt_record(name)]);
    };
    append_records(
        &mut store.create_session(&session_id("a"), "/w", None).unwrap(),
        [prompt_record("a")],
    );
    for (name, opener) in [("b", "a"), ("c", "b"), ("d", "a"), ("x", "y"), ("y", "x")] {
        opened(name, opener);
    }
    let index = open_index(&store);
    let below = |name: &str| -> Vec<(usize, String)> {
        let below = index.opened_descendants(name).unwrap();
        below.into_iter().map(|(level, session)| (level, session.id)).collect()
    };
    let expected = [(1, "b"), (2, "c"), (1, "d")].map(|(level, name)| (level, name.to_owned()));
    assert_eq!(below("a"), expected);
    assert_eq!(below("x"), [(1, "y".to_owned())]);
    assert_eq!(index.count_sessions(None).unwrap(), 1, "opened sessions are not in the list");
}
