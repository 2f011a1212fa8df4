//! Tests `jaato session` on sessions that the tests write themselves.

use std::fs;
use std::path::{Path, PathBuf};

use expect_test::expect;
use jaato_sessions::{Durability, SessionRecord, SessionStore, SessionWriter, record_type};
use jaato_types::SessionId;
use serde_json::{Value, json};

use super::terminal::run_on_terminal;
use crate::support::{Command, House};

const ONE: &str = "20261128-121314-k3f9qz";
const TWO: &str = "20261128-131415-abcdef";

fn session_store(house: &House) -> SessionStore {
    SessionStore::new(house.home().join(".local/share/jaato/sessions"))
}

fn message_record(role: &str, text: &str) -> SessionRecord {
    let parts = json!([{ "type": "text", "text": text }]);
    SessionRecord::new(record_type::MESSAGE, json!({ "role": role, "parts": parts }))
}

fn prompt_record(text: &str) -> SessionRecord {
    message_record("user", text)
}

fn answer_record(text: &str) -> SessionRecord {
    let mut record = message_record("model", text);
    record.data["made_by"] = json!("scripted/test");
    record
}

fn workspace_path(house: &House) -> String {
    house.workspace().display().to_string()
}

/// Writes a session of the installation's workspace, which stays open.
fn write_session(house: &House, id: &str, records: Vec<SessionRecord>) -> SessionWriter {
    let mut writer = session_store(house)
        .create_session(&SessionId::new(id), &workspace_path(house), None)
        .unwrap();
    writer.append_records(records, Durability::Written).unwrap();
    writer
}

/// Creates an installation with a session of two turns. Without a test installation, the test is
/// skipped.
fn house_with_session() -> Option<House> {
    let house = House::without_plugins()?;
    let records = vec![
        prompt_record("Where is the moon?"),
        answer_record("Behind the cloud."),
        prompt_record("And the sun?"),
        answer_record("It is too bright."),
    ];
    drop(write_session(&house, ONE, records));
    Some(house)
}

/// Returns the texts of the conversation.
#[track_caller]
fn message_texts(house: &House, id: &str) -> Vec<String> {
    let shown = house.run(&["session", "show", id, "--output", "json"]).expect_silent().json();
    let messages = shown["messages"].as_array().unwrap().iter();
    messages.map(|it| it["parts"][0]["text"].as_str().unwrap().to_owned()).collect()
}

#[track_caller]
fn check_fails(house: &House, words: &[&str], code: i32, expected: &str) {
    let output = house.run(&[&["session"], words].concat()).code(code);
    assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("", expected));
}

#[test]
fn list_has_the_sessions_of_the_workspace_and_says_which_are_open() {
    let Some(house) = house_with_session() else { return };
    let _open = write_session(&house, TWO, vec![prompt_record("Open\u{1b}[2J it")]);
    let other = SessionId::new("20260101-000000-zzzzzz");
    drop(session_store(&house).create_session(&other, "/elsewhere", None).unwrap());
    let shown = house.run(&["session", "list"]).expect_silent().stdout;
    expect![[r#"
        SESSION                 CHANGED   MESSAGES  STATE  NAME
        20261128-131415-abcdef  just now  1         open   Open<U+001B>[2J it
        20261128-121314-k3f9qz  just now  2                Where is the moon?
    "#]]
    .assert_eq(&shown);
    let limited = house.run(&["session", "list", "--limit", "1"]).expect_silent().stdout;
    assert!(limited.ends_with("(and 1 earlier; `--limit N` lists more)\n"), "{limited}");
    let all = house.run(&["session", "list", "--all"]).expect_silent().stdout;
    assert!(all.contains("20260101-000000-zzzzzz") && all.contains("/elsewhere"), "{all}");
    let listed = house.run(&["session", "list", "--output", "json"]).expect_silent().json();
    let facts: Vec<_> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|it| json!([it["id"], it["messages"], it["is_open"], it["pid"]]))
        .collect();
    let pid = std::process::id();
    assert_eq!(json!(facts), json!([[TWO, 1, true, pid], [ONE, 2, false, null]]));
}

#[test]
fn commands_without_a_session_say_so_and_create_nothing() {
    let Some(house) = House::without_plugins() else { return };
    for (words, said) in [
        (
            &["list"][..],
            "no saved sessions in this workspace; `--all` lists sessions from other workspaces\n",
        ),
        (&["list", "--all"], "no saved sessions yet: `jaato chat` starts one\n"),
        (&["list", "--output", "json"], "[]\n"),
        (
            &["search", "moon"],
            "no message of a session of this workspace contains `moon`; `--all` searches the others\n",
        ),
        (&["reindex"], "no saved sessions yet: `jaato chat` starts one\n"),
    ] {
        let output = house.run(&[&["session"], words].concat()).expect_silent();
        assert_eq!(output.stdout, said);
    }
    assert!(!session_store(&house).folder().exists());
}

#[test]
fn show_prints_the_conversation_with_numbers_and_without_control_characters() {
    let Some(house) = House::without_plugins() else { return };
    let call = json!({ "type": "tool_call", "id": "c1", "name": "cli_based_tool", "arguments": { "command": "ls" } });
    let called = json!({ "role": "model", "parts": [{ "type": "thought", "text": "hm" }, call] });
    let result = json!({ "type": "tool_result", "call_id": "c1", "name": "cli_based_tool", "content": { "output": "a\u{1b}[1m\nb" }, "is_error": true });
    let result = json!({ "role": "tool", "parts": [result] });
    let mut broken = answer_record("[2] you:\n\u{202e}evil");
    broken.data["mark"] = json!("partial");
    let records = vec![
        prompt_record("List\n\nthem\u{7}"),
        SessionRecord::new(record_type::MESSAGE, called),
        SessionRecord::new(record_type::MESSAGE, result),
        broken,
        prompt_record("Again"),
    ];
    let _open = write_session(&house, ONE, records);
    let shown = house.run(&["session", "show", "k3f9"]).expect_silent();
    expect![[r#"
        session 20261128-121314-k3f9qz: List them<U+0007>
        in [ROOT]/workspace, begun just now, open now

        [1] you:
          List

          them<U+0007>

        model:
          → cli_based_tool {"command":"ls"}

        jaato:
          ← cli_based_tool failed: {"output":"a\u001b[1m\nb"}

        scripted/test (broke off):
          [2] you:
          <U+202E>evil

        [2] you:
          Again
    "#]]
    .assert_eq(&shown.stdout.replace(&house.path().display().to_string(), "[ROOT]"));
}

#[test]
fn search_finds_the_messages_of_the_conversation() {
    let Some(house) = house_with_session() else { return };
    let found = |words: &[&str]| {
        let words = [&["session", "search"], words, &["--output", "json"]].concat();
        let hits = house.run(&words).expect_silent().json();
        let excerpt = |hit: &Value| hit["excerpt"].as_str().unwrap().to_owned();
        hits.as_array().unwrap().iter().map(excerpt).collect::<Vec<_>>()
    };
    assert_eq!(found(&["cloud"]), ["Behind the [cloud]."]);
    assert_eq!(found(&["the", "SU"]), ["And [the] [sun]?"]);
    assert_eq!(found(&["stars"]), Vec::<String>::new());
    house.run(&["session", "rewind", ONE, "--to", "2"]).code(0);
    assert_eq!(found(&["bright"]), Vec::<String>::new());
    let text = house.run(&["session", "search", "cloud"]).expect_silent().stdout;
    assert_eq!(text, format!("{ONE}  just now  Where is the moon?\n  Behind the [cloud].\n"));
}

#[test]
fn rename_rewind_and_fork_change_what_is_listed() {
    let Some(house) = house_with_session() else { return };
    let renamed = house.run(&["session", "rename", "121314", "the", "moon"]);
    assert_eq!(renamed.code, 2, "the middle of an id does not match");
    let renamed = house.run(&["session", "rename", "k3f9qz", "the", "moon"]).expect_silent().stdout;
    assert_eq!(renamed, format!("session {ONE} is named `the moon`\n"));
    let copy = house.run(&["session", "fork", ONE, "--to", "2"]).expect_silent().stdout;
    let copy = copy.trim();
    assert_eq!(message_texts(&house, copy), ["Where is the moon?", "Behind the cloud."]);
    let rewound = house.run(&["session", "rewind", ONE, "--to", "1"]).code(0);
    assert_eq!(rewound.stdout, "took back message 1 and everything after it\n");
    assert_eq!(rewound.stderr, format!("`jaato chat --resume {ONE}` continues the session\n"));
    assert_eq!(message_texts(&house, ONE), Vec::<String>::new());
    let listed = house.run(&["session", "list", "--output", "json"]).expect_silent().json();
    let mut facts: Vec<_> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|it| {
            (
                it["id"].as_str().unwrap(),
                it["name"].as_str().unwrap(),
                it["messages"].as_u64().unwrap(),
            )
        })
        .collect();
    facts.sort();
    let mut expected = [(ONE, "the moon", 0), (copy, "the moon", 1)];
    expected.sort();
    assert_eq!(facts, expected);
}

#[test]
fn wrong_ids_and_numbers_are_refused_with_a_hint() {
    let Some(house) = house_with_session() else { return };
    drop(write_session(&house, TWO, vec![]));
    for (words, expected) in [
        (
            &["show", "nothing"][..],
            "error: there is no session `nothing`\nhint: `jaato session list --all` lists the sessions\n",
        ),
        (
            &["show", "2026"],
            "error: `2026` matches 2 sessions: `20261128-131415-abcdef`, `20261128-121314-k3f9qz`\nhint: give more of the id\n",
        ),
        (
            &["rewind", ONE, "--to", "3"],
            "error: session `20261128-121314-k3f9qz` has no message 3: its messages have the numbers 1 to 2\nhint: `jaato session show 20261128-121314-k3f9qz` shows the numbers\n",
        ),
        (&["rename", ONE, " "], "error: the name of a session cannot be empty\n"),
        (
            &["delete", ONE],
            "error: deleting sessions needs `--yes`, because no user can be asked\n",
        ),
    ] {
        check_fails(&house, words, 2, expected);
    }
    assert_eq!(message_texts(&house, ONE).len(), 4);
}

#[test]
fn session_that_another_process_has_open_is_read_and_not_changed() {
    let Some(house) = House::without_plugins() else { return };
    let mut open = write_session(&house, ONE, vec![prompt_record("one"), answer_record("two")]);
    let expected = format!(
        "error: session `{ONE}` is open in another process ({})\n\
         hint: end that process first, or continue here: `jaato chat --resume {ONE} --take-over`\n",
        std::process::id()
    );
    for words in
        [&["rename", ONE, "x"][..], &["rewind", ONE, "--to", "1"], &["delete", ONE, "--yes"]]
    {
        check_fails(&house, words, 1, &expected);
    }
    for words in [&["show", ONE][..], &["export", ONE], &["fork", ONE], &["search", "one"]] {
        house.run(&[&["session"], words].concat()).expect_silent();
    }
    open.append_records([prompt_record("three")], Durability::Written).unwrap();
    assert_eq!(message_texts(&house, ONE), ["one", "two", "three"]);
}

#[test]
fn delete_asks_at_a_terminal() {
    let Some(house) = house_with_session() else { return };
    for (key, is_left) in [("n", true), ("y", false)] {
        let words = format!("session delete {ONE}");
        let Some(mut running) = run_on_terminal(&house, &words, |command: Command| command) else {
            return;
        };
        running.wait_for_question();
        running.write(format!("{key}\n").as_bytes());
        let output = running.wait_with_open_input();
        assert_eq!(output.code, if is_left { 130 } else { 0 }, "{output}");
        assert!(output.stdout.contains("Delete this session with its attachments?"), "{output}");
        assert!(output.stdout.contains("Where is the moon?"), "{output}");
        assert_eq!(session_store(&house).folder().join(ONE).exists(), is_left, "{output}");
    }
}

#[test]
fn follow_prints_new_messages_until_the_session_ends() {
    let Some(house) = House::without_plugins() else { return };
    let mut open = write_session(&house, ONE, vec![prompt_record("one"), answer_record("before")]);
    let running = house.command(&["session", "follow", ONE]).start();
    running.wait_for_error("Ctrl-C ends");
    open.append_records([prompt_record("two"), answer_record("second")], Durability::Written)
        .unwrap();
    assert_eq!(running.wait_for("two"), "  two\n");
    let rewind = SessionRecord::new(record_type::REWIND, json!({ "seq": 2 }));
    open.append_records([rewind, prompt_record("three")], Durability::Written).unwrap();
    running.wait_for("taken back");
    running.wait_for("three");
    drop(open);
    let output = running.wait_with_open_input().code(0);
    expect![[r#"

        [2] you:
          two

        scripted/test:
          second

        message 2 and everything after it were taken back

        [2] you:
          three
    "#]]
    .assert_eq(&output.stdout);
    assert!(output.stderr.ends_with(&format!("session {ONE} has ended\n")), "{output}");
    let words = ["follow", ONE];
    let expected = format!(
        "error: no process has session `{ONE}` open, so no new messages can come\n\
         hint: `jaato session show {ONE}` shows its messages\n"
    );
    check_fails(&house, &words, 1, &expected);
}

#[test]
fn follow_ends_with_ctrl_c_and_prints_json_lines() {
    let Some(house) = House::without_plugins() else { return };
    let mut open = write_session(&house, ONE, vec![prompt_record("one")]);
    let running = house.command(&["session", "follow", ONE, "--output", "json"]).start();
    running.wait_for_error("Ctrl-C ends");
    open.append_records([answer_record("two")], Durability::Written).unwrap();
    let line: Value = serde_json::from_str(&running.next_line()).unwrap();
    assert_eq!((&line["role"], &line["model"]), (&json!("model"), &json!("scripted/test")));
    running.send_signal("INT");
    running.wait_with_open_input().code(0);
}

#[test]
fn trace_prints_the_sequence_of_a_session() {
    let Some(house) = house_with_session() else { return };
    let mermaid = house.run(&["session", "trace", ONE]).expect_silent().stdout;
    assert!(mermaid.starts_with("sequenceDiagram\n    participant p0 as user\n"), "{mermaid}");
    assert!(mermaid.contains("    p1->>p0: It is too bright."), "{mermaid}");
    let plantuml =
        house.run(&["session", "trace", ONE, "--format", "plantuml"]).expect_silent().stdout;
    assert!(plantuml.starts_with("@startuml\n") && plantuml.ends_with("@enduml\n"), "{plantuml}");
    let json = house.run(&["session", "trace", ONE, "--format", "json"]).expect_silent().json();
    assert_eq!(json["session"], ONE);
    assert_eq!(json["steps"].as_array().unwrap().len(), mermaid.matches("->>").count());
    let unknown = house.run(&["session", "trace", "nope"]).code(2);
    assert!(unknown.stderr.contains("`jaato session list --all`"), "{unknown}");
}

#[test]
fn exported_session_is_imported_into_another_home() {
    let Some(house) = house_with_session() else { return };
    house.run(&["session", "rename", ONE, "the moon"]).expect_silent();
    for (file, begin) in
        [("a.md", "# the moon\n"), ("a.html", "<!doctype html>"), ("a.jsonl", "{\"format\":")]
    {
        house.run(&["session", "export", ONE, file]).code(0);
        let text = fs::read_to_string(house.workspace().join(file)).unwrap();
        assert!(text.starts_with(begin) && text.contains("It is too bright."), "{text}");
    }
    let refused = house.run(&["session", "export", ONE, "a.md"]).code(2);
    assert!(refused.stderr.starts_with("error: `a.md` already exists\n"), "{refused}");
    let printed = house.run(&["session", "export", ONE, "--format", "json"]).expect_silent().stdout;
    let exported = house.workspace().join("a.jsonl");
    assert_eq!(printed, fs::read_to_string(&exported).unwrap());

    let Some(other) = House::without_plugins() else { return };
    let exported = exported.display().to_string();
    let imported = other.run(&["session", "import", &exported]).code(0);
    assert_eq!(imported.stdout, format!("imported session {ONE} (4 messages): the moon\n"));
    let place = workspace_path(&house);
    let belongs = format!("{ONE} belongs to `{place}`: continue it in that folder\n");
    assert_eq!(imported.stderr, belongs);
    assert_eq!(message_texts(&other, ONE), message_texts(&house, ONE));
    let again = other.run(&["session", "export", ONE, "--format", "json"]).expect_silent().stdout;
    assert_eq!(again, printed);
    let refused = other.run(&["session", "import", &exported]).code(1);
    assert!(refused.stderr.contains("already exists, so it was not imported again"), "{refused}");
    let listed = other.run(&["session", "list", "--all"]).expect_silent().stdout;
    assert!(listed.contains("the moon"), "{listed}");
}

#[test]
fn sessions_of_other_programs_are_listed_and_imported_by_their_ids() {
    let Some(house) = House::without_plugins() else { return };
    let line = |kind: &str, message: Value| {
        json!({
            "type": kind, "sessionId": "0d9c1c1e-aaaa", "cwd": workspace_path(&house), "uuid": kind,
            "parentUuid": if kind == "user" { Value::Null } else { json!("user") },
            "timestamp": "2026-05-04T03:02:01.000Z", "message": message,
        })
    };
    let lines = [
        line("user", json!({ "role": "user", "content": "Where is Mars?" })),
        line(
            "assistant",
            json!({ "role": "assistant", "model": "claude-x", "content": [{ "type": "text", "text": "There." }] }),
        ),
    ];
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    house.write("home/.claude/projects/here/0d9c1c1e-aaaa.jsonl", &text);
    let listed = house.run(&["session", "import"]).code(0).stdout;
    assert!(listed.contains("claude-code  0d9c1c1e-aaaa"), "{listed}");
    let imported = house.run(&["session", "import", "0d9c"]).code(0).stdout;
    let id = imported.split_whitespace().nth(2).unwrap();
    assert!(id.starts_with("20260504-030201-"), "{imported}");
    assert_eq!(message_texts(&house, id), ["Where is Mars?", "There."]);
    // Imports all sessions of the program. This one already exists.
    let again = house.run(&["session", "import", "--from", "claude-code"]).code(1);
    assert!(again.stderr.contains(&format!("session `{id}` already exists")), "{again}");
    let missing = house.run(&["session", "import", "--from", "pi"]).code(1);
    assert!(missing.stderr.contains("no session of pi in this workspace"), "{missing}");
    house.write("workspace/notes.txt", "no session");
    let refused = house.run(&["session", "import", "notes.txt"]).code(1);
    assert!(refused.stderr.contains("is not a session of a known program"), "{refused}");
}

/// Copies a folder.
fn copy_folder(from: &Path, to: &PathBuf) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy_folder(&entry.path(), &target),
            false => drop(fs::copy(entry.path(), target).unwrap()),
        }
    }
}

#[test]
fn session_of_version_1_is_listed_shown_and_exported() {
    let Some(house) = House::without_plugins() else { return };
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("sessions/tests/fixtures/version-1");
    copy_folder(&fixtures, &session_store(&house).folder().to_owned());
    let listed =
        house.run(&["session", "list", "--all", "--output", "json"]).expect_silent().json();
    assert_eq!((&listed[0]["id"], &listed[0]["messages"]), (&json!(ONE), &json!(2)));
    let shown = house.run(&["session", "show", ONE]).expect_silent().stdout;
    assert!(shown.contains("[2] you:\n  And Mars?\n"), "{shown}");
    for gone in ["sun", "stars", "beh\n"] {
        assert!(!shown.contains(gone), "{shown}");
    }
    house.run(&["session", "export", ONE, "--format", "html"]).expect_silent();
}

#[test]
fn damaged_session_is_reported_by_reindex_and_can_be_deleted() {
    let Some(house) = house_with_session() else { return };
    drop(write_session(&house, TWO, vec![prompt_record("lost")]));
    fs::write(session_store(&house).folder().join(TWO).join("session.jsonl"), "no session")
        .unwrap();
    let output = house.run(&["session", "reindex"]).code(1);
    assert_eq!(output.stdout, "indexed 1 session\n");
    assert!(output.stderr.starts_with(&format!("note: cannot read session `{TWO}`: ")), "{output}");
    let shown = house.run(&["session", "show", TWO]).code(1);
    assert!(shown.stderr.contains("is not a session file"), "{shown}");
    house.run(&["session", "delete", TWO, "--yes"]).expect_silent();
    assert_eq!(house.run(&["session", "reindex"]).expect_silent().stdout, "indexed 1 session\n");
}
