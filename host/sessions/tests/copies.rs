//! Forks and deletions.

use std::fs;

use jaato_sessions::{
    Durability, SessionIndex, SessionRecord, SessionStore, SessionStoreError, Transcript,
};

use serde_json::json;

use crate::{answer, file_of, id, name, prompt, rewind, store, texts};

#[test]
fn fork_has_the_conversation_up_to_a_record_and_its_own_future() {
    let (_folder, store) = store();
    let mut writer = store.create(&id("a"), "/w", None).unwrap();
    let records = [prompt("one"), answer("red"), name("mine"), prompt("two"), rewind(3)];
    writer.append(records, Durability::Written).unwrap();
    writer.append([prompt("three"), answer("blue")], Durability::Written).unwrap();
    // The session stays open.
    assert_eq!(store.fork(&id("a"), &id("b"), None).unwrap(), 7);
    assert_eq!(store.fork(&id("a"), &id("c"), Some(2)).unwrap(), 2);
    assert_eq!(store.fork(&id("a"), &id("d"), Some(0)).unwrap(), 0);
    let mut forked = store.open(&id("b"), false).unwrap();
    let numbers: Vec<u64> = forked.records.iter().map(|stored| stored.seq).collect();
    assert_eq!(numbers, [1, 2, 3, 6, 7]);
    assert_eq!(forked.writer.append([prompt("four")], Durability::Written).unwrap(), 8);
    // The last one is the name.
    assert_eq!(texts(&store, "c"), [json!("one"), json!("red"), json!(null)]);
    assert_eq!(texts(&store, "d"), [json!(null)]);
    assert_eq!(texts(&store, "a").last().unwrap(), "blue");
    let reader = store.read(&id("c")).unwrap();
    assert_eq!(reader.header().forked_from, Some(("a".to_owned(), 2)));
    assert_eq!(reader.header().workspace, "/w");
    let (index, _) = SessionIndex::open(&store).unwrap();
    let mut names: Vec<_> =
        index.list(None, 10).unwrap().into_iter().map(|it| (it.id, it.name, it.prompts)).collect();
    names.sort();
    let expected = [("a", "mine", 2), ("b", "mine", 3), ("c", "mine", 1), ("d", "mine", 0)];
    let expected = expected.map(|(id, name, prompts)| (id.to_owned(), name.to_owned(), prompts));
    assert_eq!(names, expected);
}

#[test]
fn fork_keeps_the_attachments_after_the_first_session_is_deleted() {
    let (_folder, store) = store();
    drop(store.create(&id("a"), "/w", None).unwrap());
    let name = store.keep_attachment(&id("a"), b"large").unwrap();
    fs::write(store.folder().join("a/attachments/rest.part"), "").unwrap();
    store.fork(&id("a"), &id("b"), None).unwrap();
    store.delete(&id("a")).unwrap();
    assert_eq!(store.attachment(&id("b"), &name).unwrap().unwrap(), b"large");
    assert!(!store.folder().join("b/attachments/rest.part").exists());
}

/// Returns the texts of all records of a session, by their paths in JSON.
fn texts_at(store: &SessionStore, name: &str, path: &str) -> Vec<String> {
    let records = store.read(&id(name)).unwrap().read_rest().unwrap();
    let texts = records.iter().filter_map(|stored| stored.record.data.pointer(path)?.as_str());
    texts.map(str::to_owned).collect()
}

#[test]
fn fork_names_its_own_outputs_but_leaves_answers_rules_and_other_paths() {
    let (_folder, store) = store();
    let mut writer = store.create(&id("a"), "/w", None).unwrap();
    let output = store.keep_attachment(&id("a"), b"whole").unwrap();
    let folder = |name: &str| store.attachments_folder(&id(name)).display().to_string();
    let text = |name: &str| format!("{0}/{output} {0}/{output}.", folder(name));
    let others = format!("{0}-old/{output} {0}/plan.txt {0}", folder("a"));
    let exact = json!({ "digest": "c91f", "text": text("a") });
    let rules = json!({ "mode": "ask", "answers": [{ "pattern": { "exact": exact } }] });
    let rules = SessionRecord::new("rules", rules);
    let records = [prompt(&text("a")), answer(&text("a")), prompt(&others), rules];
    writer.append(records, Durability::Written).unwrap();
    store.fork(&id("a"), &id("b"), None).unwrap();
    assert_eq!(texts_at(&store, "b", "/parts/0/text"), [text("b"), text("a"), others]);
    assert_eq!(texts_at(&store, "b", "/answers/0/pattern/exact/text"), [text("a")]);
}

#[test]
fn folder_of_a_hostile_export_changes_only_paths_of_contents() {
    let (_folder, store) = store();
    for (name, folder) in [("a", "user"), ("b", "text"), ("c", "e"), ("d", "/")] {
        let transcript =
            Transcript { attachments_folder: folder.to_owned(), ..Transcript::default() };
        let record = prompt("the user/e text/e e/e //");
        store.add(&id(name), &transcript, vec![(1, record.clone())]).unwrap();
        let records = store.read(&id(name)).unwrap().read_rest().unwrap();
        assert_eq!(records[0].record, record, "{folder}");
    }
}

#[test]
fn fork_to_a_taken_id_or_from_a_missing_record_is_refused() {
    let (_folder, store) = store();
    let mut writer = store.create(&id("a"), "/w", None).unwrap();
    writer.append([prompt("one"), prompt("two"), rewind(1)], Durability::Written).unwrap();
    let refused = store.fork(&id("a"), &id("a"), None);
    assert!(matches!(refused, Err(SessionStoreError::AlreadyExists(_))));
    for seq in [2, 3, 4] {
        let error = store.fork(&id("a"), &id("b"), Some(seq)).unwrap_err().to_string();
        assert_eq!(error, format!("the conversation of session `a` has no record {seq}"));
    }
    let refused = store.fork(&id("x"), &id("b"), None);
    assert!(matches!(refused, Err(SessionStoreError::NotFound(_))));
    assert_eq!(store.list().unwrap(), [id("a")]);
}

#[test]
fn rest_of_a_crashed_deletion_is_removed_by_the_next_one() {
    let (_folder, store) = store();
    for name in ["a", "b"] {
        drop(store.create(&id(name), "/w", None).unwrap());
    }
    let rest = store.folder().join(".deleted-a-1");
    fs::rename(store.folder().join("a"), &rest).unwrap();
    let draft = store.folder().join(".draft-c-1");
    fs::create_dir(&draft).unwrap();
    fs::copy(file_of(&store, "b"), draft.join("session.jsonl")).unwrap();
    assert_eq!(store.list().unwrap(), [id("b")]);
    store.delete(&id("b")).unwrap();
    assert!(!rest.exists());
    // Another process may still fill it.
    assert!(draft.exists());
    let long_ago = std::time::SystemTime::now() - std::time::Duration::from_hours(25);
    fs::File::open(&draft).unwrap().set_modified(long_ago).unwrap();
    SessionIndex::rebuild(&store).unwrap();
    assert!(!draft.exists());
}

#[test]
fn session_cannot_be_opened_while_it_is_deleted() {
    let (_folder, store) = store();
    for at in 0..50 {
        let name = format!("a{at}");
        drop(store.create(&id(&name), "/w", None).unwrap());
        let (opened, deleted) = std::thread::scope(|scope| {
            let open = scope.spawn(|| store.open(&id(&name), false));
            let delete = scope.spawn(|| store.delete(&id(&name)));
            (open.join().unwrap(), delete.join().unwrap())
        });
        match (opened, deleted) {
            (Ok(mut opened), Err(SessionStoreError::InUse { .. })) => {
                opened.writer.append([prompt("kept")], Durability::Written).unwrap();
                assert_eq!(texts(&store, &name), ["kept"]);
            }
            (Err(SessionStoreError::NotFound(_)), Ok(())) => {}
            // It was opened and given up before the deletion, or opened its file too late.
            (Ok(_), Ok(())) => panic!("both succeeded"),
            (Err(SessionStoreError::Io { .. }), Ok(())) => {}
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn session_from_elsewhere_keeps_the_times_of_its_records() {
    let (_folder, store) = store();
    let records = vec![(1_000, prompt("one")), (2_000, answer("red"))];
    let transcript =
        Transcript { workspace: "/w".to_owned(), begun_ms: 500, ..Transcript::default() };
    store.add(&id("a"), &transcript, records.clone()).unwrap();
    let refused = store.add(&id("a"), &transcript, records);
    assert!(matches!(refused, Err(SessionStoreError::AlreadyExists(_))));
    let mut opened = store.open(&id("a"), false).unwrap();
    let times: Vec<_> = opened.records.iter().map(|it| (it.seq, it.at_ms)).collect();
    assert_eq!(times, [(1, 1_000), (2, 2_000)]);
    assert_eq!(opened.writer.append([prompt("two")], Durability::Written).unwrap(), 3);
    drop(opened);
    let (index, _) = SessionIndex::open(&store).unwrap();
    let session = index.list(None, 1).unwrap().remove(0);
    assert_eq!((session.begun_ms, session.prompts), (500, 2));
}

#[test]
fn prompts_are_numbered_as_the_conversation_has_them() {
    let (_folder, store) = store();
    let mut writer = store.create(&id("a"), "/w", None).unwrap();
    let cut = |length: u64| {
        let data = serde_json::json!({ "change": "cut", "length": length });
        SessionRecord::new("change", data)
    };
    let records = [prompt("one"), answer("red"), prompt("lost"), cut(2), prompt("two")];
    writer.append(records, Durability::Written).unwrap();
    drop(writer);
    let numbered = store.prompts(&id("a")).unwrap();
    let numbered: Vec<_> = numbered.iter().map(|it| (it.number, it.seq, &*it.text)).collect();
    assert_eq!(numbered, [(1, 1, "one"), (2, 5, "two")]);
    assert_eq!(store.seq_before(&id("a"), Some(2)).unwrap(), Some(4));
    let error = store.rewind_before_prompt(&id("a"), 3).unwrap_err().to_string();
    assert_eq!(error, "session `a` has no message 3: its messages have the numbers 1 to 2");
    store.rewind_before_prompt(&id("a"), 2).unwrap();
    assert_eq!(texts(&store, "a").len(), 6);
    store.rewind_before_prompt(&id("a"), 1).unwrap();
    let records = store.read(&id("a")).unwrap().read_rest().unwrap();
    assert_eq!(jaato_sessions::effective_records(records), []);
}

#[test]
fn session_is_owned_from_the_choice_of_the_message_until_the_rewind() {
    let (_folder, store) = store();
    let mut writer = store.create(&id("a"), "/w", None).unwrap();
    writer.append([prompt("one"), prompt("two")], Durability::Written).unwrap();
    assert!(matches!(store.open_rewind(&id("a"), 2), Err(SessionStoreError::InUse { .. })));
    drop(writer);
    drop(store.open_rewind(&id("a"), 1).unwrap());
    let rewind = store.open_rewind(&id("a"), 2).unwrap();
    assert_eq!(rewind.prompt().text, "two");
    assert!(matches!(store.open(&id("a"), false), Err(SessionStoreError::InUse { .. })));
    rewind.finish().unwrap();
    let prompts = store.prompts(&id("a")).unwrap();
    assert_eq!(prompts.iter().map(|prompt| &prompt.text).collect::<Vec<_>>(), ["one"]);
}

#[test]
fn lineage_names_the_originals_and_what_they_share() {
    let (_folder, store) = store();
    let (first, second) = (1_000, 2_000);
    let records = vec![(first, prompt("one")), (second, prompt("two"))];
    store.add(&id("a"), &Transcript::default(), records).unwrap();
    store.fork(&id("a"), &id("b"), None).unwrap();
    store.fork(&id("b"), &id("c"), Some(1)).unwrap();
    let lineage = store.lineage(&id("c")).unwrap();
    // The second copy ends before what the first one has of the original.
    assert_eq!(lineage, [(id("c"), i64::MAX), (id("b"), first), (id("a"), first)]);
    let lineage = store.lineage(&id("b")).unwrap();
    assert_eq!(lineage, [(id("b"), i64::MAX), (id("a"), second)]);
    store.delete(&id("b")).unwrap();
    assert_eq!(store.lineage(&id("c")).unwrap(), [(id("c"), i64::MAX), (id("b"), first)]);
}
