//! Forks and deletions.

use std::fs;

use jaato_sessions::{
    Durability, SessionIndex, SessionRecord, SessionStore, SessionStoreError, Transcript,
};

use serde_json::json;

use crate::{
    answer_record, name_record, prompt_record, rewind_record, session_file, session_id,
    stored_texts, temp_store,
};

#[test]
fn fork_has_the_conversation_up_to_a_record_and_its_own_future() {
    let (_folder, store) = temp_store();
    let mut writer = store.create_session(&session_id("a"), "/w", None).unwrap();
    let records = [
        prompt_record("one"),
        answer_record("red"),
        name_record("mine"),
        prompt_record("two"),
        rewind_record(3),
    ];
    writer.append_records(records, Durability::Written).unwrap();
    writer
        .append_records([prompt_record("three"), answer_record("blue")], Durability::Written)
        .unwrap();
    // The session stays open.
    assert_eq!(store.fork_session(&session_id("a"), &session_id("b"), None).unwrap(), 7);
    assert_eq!(store.fork_session(&session_id("a"), &session_id("c"), Some(2)).unwrap(), 2);
    assert_eq!(store.fork_session(&session_id("a"), &session_id("d"), Some(0)).unwrap(), 0);
    let mut forked = store.open_session(&session_id("b"), false).unwrap();
    let numbers: Vec<u64> = forked.records.iter().map(|stored| stored.seq).collect();
    assert_eq!(numbers, [1, 2, 3, 6, 7]);
    assert_eq!(
        forked.writer.append_records([prompt_record("four")], Durability::Written).unwrap(),
        8
    );
    // The last one is the name.
    assert_eq!(stored_texts(&store, "c"), [json!("one"), json!("red"), json!(null)]);
    assert_eq!(stored_texts(&store, "d"), [json!(null)]);
    assert_eq!(stored_texts(&store, "a").last().unwrap(), "blue");
    let reader = store.read_session(&session_id("c")).unwrap();
    assert_eq!(reader.header().forked_from, Some(("a".to_owned(), 2)));
    assert_eq!(reader.header().workspace, "/w");
    let (index, _) = SessionIndex::open(&store).unwrap();
    let mut names: Vec<_> = index
        .list_sessions(None, 10)
        .unwrap()
        .into_iter()
        .map(|it| (it.id, it.name, it.prompts))
        .collect();
    names.sort();
    let expected = [("a", "mine", 2), ("b", "mine", 3), ("c", "mine", 1), ("d", "mine", 0)];
    let expected = expected.map(|(id, name, prompts)| (id.to_owned(), name.to_owned(), prompts));
    assert_eq!(names, expected);
}

#[test]
fn fork_keeps_the_attachments_after_the_first_session_is_deleted() {
    let (_folder, store) = temp_store();
    drop(store.create_session(&session_id("a"), "/w", None).unwrap());
    let name = store.store_attachment(&session_id("a"), b"large").unwrap();
    fs::write(store.folder().join("a/attachments/rest.part"), "").unwrap();
    store.fork_session(&session_id("a"), &session_id("b"), None).unwrap();
    store.delete_session(&session_id("a")).unwrap();
    assert_eq!(store.read_attachment(&session_id("b"), &name).unwrap().unwrap(), b"large");
    assert!(!store.folder().join("b/attachments/rest.part").exists());
}

/// Returns the texts of all records of a session, by their paths in JSON.
fn texts_at(store: &SessionStore, name: &str, path: &str) -> Vec<String> {
    let records = store.read_session(&session_id(name)).unwrap().read_rest().unwrap();
    let texts = records.iter().filter_map(|stored| stored.record.data.pointer(path)?.as_str());
    texts.map(str::to_owned).collect()
}

#[test]
fn fork_names_its_own_outputs_but_leaves_answers_rules_and_other_paths() {
    let (_folder, store) = temp_store();
    let mut writer = store.create_session(&session_id("a"), "/w", None).unwrap();
    let output = store.store_attachment(&session_id("a"), b"whole").unwrap();
    let folder = |name: &str| store.attachments_folder(&session_id(name)).display().to_string();
    let text = |name: &str| format!("{0}/{output} {0}/{output}.", folder(name));
    let others = format!("{0}-old/{output} {0}/plan.txt {0}", folder("a"));
    let exact = json!({ "digest": "c91f", "text": text("a") });
    let rules = json!({ "mode": "ask", "answers": [{ "pattern": { "exact": exact } }] });
    let rules = SessionRecord::new("rules", rules);
    let records =
        [prompt_record(&text("a")), answer_record(&text("a")), prompt_record(&others), rules];
    writer.append_records(records, Durability::Written).unwrap();
    store.fork_session(&session_id("a"), &session_id("b"), None).unwrap();
    assert_eq!(texts_at(&store, "b", "/parts/0/text"), [text("b"), text("a"), others]);
    assert_eq!(texts_at(&store, "b", "/answers/0/pattern/exact/text"), [text("a")]);
}

#[test]
fn folder_of_a_hostile_export_changes_only_paths_of_contents() {
    let (_folder, store) = temp_store();
    for (name, folder) in [("a", "user"), ("b", "text"), ("c", "e"), ("d", "/")] {
        let transcript =
            Transcript { attachments_folder: folder.to_owned(), ..Transcript::default() };
        let record = prompt_record("the user/e text/e e/e //");
        store.add_session(&session_id(name), &transcript, vec![(1, record.clone())]).unwrap();
        let records = store.read_session(&session_id(name)).unwrap().read_rest().unwrap();
        assert_eq!(records[0].record, record, "{folder}");
    }
}

#[test]
fn fork_to_a_taken_id_or_from_a_missing_record_is_refused() {
    let (_folder, store) = temp_store();
    let mut writer = store.create_session(&session_id("a"), "/w", None).unwrap();
    writer
        .append_records(
            [prompt_record("one"), prompt_record("two"), rewind_record(1)],
            Durability::Written,
        )
        .unwrap();
    let refused = store.fork_session(&session_id("a"), &session_id("a"), None);
    assert!(matches!(refused, Err(SessionStoreError::AlreadyExists(_))));
    for seq in [2, 3, 4] {
        let error = store
            .fork_session(&session_id("a"), &session_id("b"), Some(seq))
            .unwrap_err()
            .to_string();
        assert_eq!(error, format!("the conversation of session `a` has no record {seq}"));
    }
    let refused = store.fork_session(&session_id("x"), &session_id("b"), None);
    assert!(matches!(refused, Err(SessionStoreError::NotFound(_))));
    assert_eq!(store.list_sessions().unwrap(), [session_id("a")]);
}

#[test]
fn rest_of_a_crashed_deletion_is_removed_by_the_next_one() {
    let (_folder, store) = temp_store();
    for name in ["a", "b"] {
        drop(store.create_session(&session_id(name), "/w", None).unwrap());
    }
    let rest = store.folder().join(".deleted-a-1");
    fs::rename(store.folder().join("a"), &rest).unwrap();
    let draft = store.folder().join(".draft-c-1");
    fs::create_dir(&draft).unwrap();
    fs::copy(session_file(&store, "b"), draft.join("session.jsonl")).unwrap();
    assert_eq!(store.list_sessions().unwrap(), [session_id("b")]);
    store.delete_session(&session_id("b")).unwrap();
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
    let (_folder, store) = temp_store();
    for at in 0..50 {
        let name = format!("a{at}");
        drop(store.create_session(&session_id(&name), "/w", None).unwrap());
        let (opened, deleted) = std::thread::scope(|scope| {
            let open = scope.spawn(|| store.open_session(&session_id(&name), false));
            let delete = scope.spawn(|| store.delete_session(&session_id(&name)));
            (open.join().unwrap(), delete.join().unwrap())
        });
        match (opened, deleted) {
            (Ok(mut opened), Err(SessionStoreError::InUse { .. })) => {
                opened.writer.append_records([prompt_record("kept")], Durability::Written).unwrap();
                assert_eq!(stored_texts(&store, &name), ["kept"]);
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
    let (_folder, store) = temp_store();
    let records = vec![(1_000, prompt_record("one")), (2_000, answer_record("red"))];
    let transcript =
        Transcript { workspace: "/w".to_owned(), begun_ms: 500, ..Transcript::default() };
    store.add_session(&session_id("a"), &transcript, records.clone()).unwrap();
    let refused = store.add_session(&session_id("a"), &transcript, records);
    assert!(matches!(refused, Err(SessionStoreError::AlreadyExists(_))));
    let mut opened = store.open_session(&session_id("a"), false).unwrap();
    let times: Vec<_> = opened.records.iter().map(|it| (it.seq, it.at_ms)).collect();
    assert_eq!(times, [(1, 1_000), (2, 2_000)]);
    assert_eq!(
        opened.writer.append_records([prompt_record("two")], Durability::Written).unwrap(),
        3
    );
    drop(opened);
    let (index, _) = SessionIndex::open(&store).unwrap();
    let session = index.list_sessions(None, 1).unwrap().remove(0);
    assert_eq!((session.begun_ms, session.prompts), (500, 2));
}

#[test]
fn prompts_are_numbered_as_the_conversation_has_them() {
    let (_folder, store) = temp_store();
    let mut writer = store.create_session(&session_id("a"), "/w", None).unwrap();
    let cut = |length: u64| {
        let data = serde_json::json!({ "change": "cut", "length": length });
        SessionRecord::new("change", data)
    };
    let records = [
        prompt_record("one"),
        answer_record("red"),
        prompt_record("lost"),
        cut(2),
        prompt_record("two"),
    ];
    writer.append_records(records, Durability::Written).unwrap();
    drop(writer);
    let numbered = store.list_prompts(&session_id("a")).unwrap();
    let numbered: Vec<_> = numbered.iter().map(|it| (it.number, it.seq, &*it.text)).collect();
    assert_eq!(numbered, [(1, 1, "one"), (2, 5, "two")]);
    assert_eq!(store.last_seq_before(&session_id("a"), Some(2)).unwrap(), Some(4));
    let error = store.rewind_before_prompt(&session_id("a"), 3).unwrap_err().to_string();
    assert_eq!(error, "session `a` has no message 3: its messages have the numbers 1 to 2");
    store.rewind_before_prompt(&session_id("a"), 2).unwrap();
    assert_eq!(stored_texts(&store, "a").len(), 6);
    store.rewind_before_prompt(&session_id("a"), 1).unwrap();
    let records = store.read_session(&session_id("a")).unwrap().read_rest().unwrap();
    assert_eq!(jaato_sessions::effective_records(records), []);
}

#[test]
fn session_is_owned_from_the_choice_of_the_message_until_the_rewind() {
    let (_folder, store) = temp_store();
    let mut writer = store.create_session(&session_id("a"), "/w", None).unwrap();
    writer
        .append_records([prompt_record("one"), prompt_record("two")], Durability::Written)
        .unwrap();
    assert!(matches!(store.open_rewind(&session_id("a"), 2), Err(SessionStoreError::InUse { .. })));
    drop(writer);
    drop(store.open_rewind(&session_id("a"), 1).unwrap());
    let rewind = store.open_rewind(&session_id("a"), 2).unwrap();
    assert_eq!(rewind.prompt().text, "two");
    assert!(matches!(
        store.open_session(&session_id("a"), false),
        Err(SessionStoreError::InUse { .. })
    ));
    rewind.finish().unwrap();
    let prompts = store.list_prompts(&session_id("a")).unwrap();
    assert_eq!(prompts.iter().map(|prompt| &prompt.text).collect::<Vec<_>>(), ["one"]);
}

#[test]
fn lineage_names_the_originals_and_what_they_share() {
    let (_folder, store) = temp_store();
    let (first, second) = (1_000, 2_000);
    let records = vec![(first, prompt_record("one")), (second, prompt_record("two"))];
    store.add_session(&session_id("a"), &Transcript::default(), records).unwrap();
    store.fork_session(&session_id("a"), &session_id("b"), None).unwrap();
    store.fork_session(&session_id("b"), &session_id("c"), Some(1)).unwrap();
    let lineage = store.lineage(&session_id("c")).unwrap();
    // The second copy ends before what the first one has of the original.
    assert_eq!(
        lineage,
        [(session_id("c"), i64::MAX), (session_id("b"), first), (session_id("a"), first)]
    );
    let lineage = store.lineage(&session_id("b")).unwrap();
    assert_eq!(lineage, [(session_id("b"), i64::MAX), (session_id("a"), second)]);
    store.delete_session(&session_id("b")).unwrap();
    assert_eq!(
        store.lineage(&session_id("c")).unwrap(),
        [(session_id("c"), i64::MAX), (session_id("b"), first)]
    );
}
