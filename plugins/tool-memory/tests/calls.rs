//! Tests the tools, the command and the hook through the plugin boundary.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use jaato_plugin_sdk::hooks::BeforePrompt;
use jaato_plugin_sdk::serde_json::{Value, json};
use jaato_plugin_sdk::types::{Error, ErrorKind};
use jaato_plugin_testkit::{FakeHost, FakeServiceReply};
use rusqlite::Connection;

fn memory_host() -> FakeHost {
    FakeHost::new(tool_memory::__jaato::MODULE)
}

/// Returns a host whose stores are in this folder, which other hosts may use too.
fn host_with_stores_in(folder: &Path) -> FakeHost {
    let folder = folder.to_owned();
    memory_host().with_service("store.folder", move |request| {
        let of = request.json["of"].as_str().unwrap_or("person");
        let path = folder.join(of);
        fs::create_dir_all(&path).unwrap();
        FakeServiceReply::from_value(&json!({ "path": path }))
    })
}

fn memory_file_path(folder: &Path, of: &str) -> PathBuf {
    folder.join(of).join("memories.sqlite")
}

#[track_caller]
fn call_tool(host: &FakeHost, name: &str, arguments: Value) -> Value {
    Value::Object(host.call(name, arguments).unwrap().content)
}

#[track_caller]
fn call_error(host: &FakeHost, name: &str, arguments: Value) -> Error {
    host.call(name, arguments).unwrap_err()
}

#[track_caller]
fn store_memory(host: &FakeHost, description: &str, tags: &[&str], content: &str) -> String {
    let memory = json!({ "content": content, "description": description, "tags": tags });
    call_tool(host, "store_memory", memory)["memory_id"].as_str().unwrap().to_owned()
}

#[track_caller]
fn retrieve_memories(host: &FakeHost, tags: &[&str], limit: u32) -> Vec<String> {
    let found = call_tool(host, "retrieve_memories", json!({ "tags": tags, "limit": limit }));
    let memories = found["memories"].as_array().cloned().unwrap_or_default();
    memories.iter().map(|memory| memory["description"].as_str().unwrap().to_owned()).collect()
}

fn text_before_prompt(host: &FakeHost, prompt: &str) -> String {
    let asked = BeforePrompt::new(prompt, Default::default());
    host.instance().unwrap().before_prompt(&asked).unwrap().text
}

#[track_caller]
fn run_command(host: &FakeHost, arguments: Value) -> String {
    let shown = host.instance().unwrap().command("memory", arguments).unwrap().content;
    shown["result"].as_str().unwrap().to_owned()
}

#[test]
fn named_pipe_as_memory_file_is_refused_without_waiting() {
    for name in ["memories.lock", "memories.sqlite"] {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("workspace")).unwrap();
        let pipe = folder.path().join("workspace").join(name);
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let memory =
            json!({ "content": "it is far", "description": "about the moon", "tags": ["moon"] });
        let error = call_error(&host_with_stores_in(folder.path()), "store_memory", memory);
        assert_eq!(error.kind, ErrorKind::Io);
        assert!(error.message.contains("it is not a regular file"), "{error}");
    }
}

#[test]
fn memory_files_are_private_to_the_user() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    store_memory(&host_with_stores_in(folder.path()), "about the moon", &["moon"], "it is far");
    let files: Vec<_> =
        fs::read_dir(memory_file_path(folder.path(), "workspace").parent().unwrap())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
    assert!(files.len() >= 2, "{files:?}");
    for file in files {
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600, "{file:?}");
    }
}

#[test]
fn memory_is_stored_and_retrieved_completely() {
    let host = memory_host();
    let memory = json!({
        "content": "tag first, then publish",
        "description": "how we\n  release",
        "tags": [" Release ", "release", "x", "git tag"],
        "confidence": 7,
        "scope": "universal",
        "evidence": "the person said so",
    });
    let stored = call_tool(&host, "store_memory", memory);
    let id = stored["memory_id"].clone();
    assert!(id.as_str().unwrap().starts_with("mem_20"), "{id}");
    assert_eq!(
        stored,
        json!({
            "status": "success",
            "memory_id": id,
            "message": "Stored memory: how we release",
            "tags": ["Release", "git tag"],
            "maturity": "raw",
            "confidence": 1.0,
            "scope": "universal",
        })
    );
    let mut found = call_tool(&host, "retrieve_memories", json!({ "tags": ["RELEASE"] }));
    let time = found["memories"][0]["stored"].take();
    assert_eq!(time.as_str().unwrap().len(), "2026-11-24T01:12:30.123456Z".len(), "{time}");
    assert_eq!(
        found,
        json!({ "status": "success", "count": 1, "memories": [{
            "id": id,
            "description": "how we release",
            "content": "tag first, then publish",
            "tags": ["Release", "git tag"],
            "stored": null,
            "usage_count": 1,
            "maturity": "raw",
            "confidence": 1.0,
            "scope": "universal",
            "evidence": "the person said so",
        }] })
    );
    let again = call_tool(&host, "retrieve_memories", json!({ "tags": ["release"] }));
    assert_eq!(again["memories"][0]["usage_count"], 2);
    let none = call_tool(&host, "retrieve_memories", json!({ "tags": ["Moon", "far"] }));
    let message = "No memories found for tags: ['Moon', 'far']";
    assert_eq!(none, json!({ "status": "no_results", "message": message }));
}

#[test]
fn retrieval_ranks_shared_tags_then_words_then_newest() {
    let host = memory_host();
    store_memory(&host, "old", &["moon"], "x");
    store_memory(&host, "both", &["Moon", "TIDES"], "x");
    store_memory(&host, "about the moon, as text", &["sky"], "x");
    store_memory(&host, "content alone", &["sea"], "the moons of Mars");
    let wide =
        json!({ "content": "x", "description": "new", "tags": ["moon"], "scope": "universal" });
    call_tool(&host, "store_memory", wide);
    let found = retrieve_memories(&host, &["MOON", "tides"], 20);
    assert_eq!(found[0], "both");
    assert_eq!(found[3..], ["about the moon, as text", "content alone"]);
    assert_eq!(retrieve_memories(&host, &["moon"], 2).len(), 2);
    let tags = call_tool(&host, "list_memory_tags", json!({}));
    let expected = json!({ "status": "success", "count": 4,
        "tags": ["moon", "sea", "sky", "tides"], "memory_count": 5 });
    assert_eq!(tags, expected);
    assert_eq!(retrieve_memories(&host, &["\"moon\" OR NEAR(*"], 20).len(), 5);
    assert_eq!(retrieve_memories(&host, &["'); --"], 20).len(), 0);
}

#[test]
fn matching_memories_are_listed_before_a_prompt_within_a_limit() {
    let host = memory_host();
    assert_eq!(text_before_prompt(&host, "release it"), "");
    store_memory(&host, "how we publish", &["release", "ci"], "a secret of the house");
    store_memory(&host, "distance", &["moon"], "far, and no release");
    let heading = "💡 **Available Memories** (use retrieve_memories to access):";
    let line = "- [release, ci]: how we publish";
    assert_eq!(text_before_prompt(&host, "Release it, please"), format!("{heading}\n{line}"));
    assert_eq!(text_before_prompt(&host, "why is the CI red?"), format!("{heading}\n{line}"));
    assert_eq!(text_before_prompt(&host, "what is the time?"), "");
    assert_eq!(text_before_prompt(&host, ""), "");
    for number in 0..20 {
        store_memory(&host, &format!("{number} {}", "ö".repeat(400)), &["release"], "x");
    }
    let many = text_before_prompt(&host, "release it");
    assert!(many.len() <= 800, "{} bytes", many.len());
    assert!(many.lines().count() > 2, "{many}");
}

#[test]
fn user_lists_edits_and_removes_memories() {
    let host = memory_host();
    assert_eq!(run_command(&host, json!({})), "no memories");
    let moon = store_memory(&host, "moon", &["sky"], "far");
    let wide = json!({ "content": "vi", "description": "editor", "tags": ["Tools"], "scope": "universal" });
    let editor = call_tool(&host, "store_memory", wide)["memory_id"].as_str().unwrap().to_owned();
    let expected = format!(
        "of this workspace:\n  {moon}  [sky] moon\nof all workspaces:\n  {editor}  [Tools] editor"
    );
    assert_eq!(run_command(&host, json!({ "action": "list" })), expected);
    let edited = run_command(&host, json!({ "action": "edit", "id": editor, "text": "emacs" }));
    assert_eq!(edited, format!("changed {editor} (universal)"));
    let found = call_tool(&host, "retrieve_memories", json!({ "tags": ["emacs"] }));
    assert_eq!(found["memories"][0]["content"], "emacs");
    assert!(retrieve_memories(&host, &["vi"], 3).is_empty());
    let removed = run_command(&host, json!({ "action": "remove", "id": moon }));
    assert_eq!(removed, format!("removed {moon} (project)"));
    assert!(
        retrieve_memories(&host, &["sky"], 3).is_empty()
            && retrieve_memories(&host, &["moon"], 3).is_empty()
    );
    let command =
        |arguments: Value| host.instance().unwrap().command("memory", arguments).unwrap_err();
    assert_eq!(command(json!({ "action": "remove", "id": moon })).kind, ErrorKind::NotFound);
    assert_eq!(command(json!({ "action": "edit", "id": editor })).message, "`text` is missing");
    assert!(run_command(&host, json!({ "action": "help" })).contains("memory remove ID"));
}

#[test]
fn empty_or_oversized_memories_are_refused_and_not_stored() {
    let host = memory_host();
    let refusing = |content: &str, description: &str, tags: &[&str]| {
        let memory = json!({ "content": content, "description": description, "tags": tags });
        let error = call_error(&host, "store_memory", memory);
        assert_eq!(error.kind, ErrorKind::InvalidArguments);
        error.message
    };
    let large = "x".repeat(1024 * 1024);
    assert_eq!(refusing(&large, "d", &["tag"]), "`content` has 1048576 bytes, the limit is 65536");
    assert_eq!(refusing(" ", "d", &["tag"]), "`content` is empty");
    assert_eq!(refusing("x", "\n", &["tag"]), "`description` is empty");
    let text = "All tags were rejected — each tag must be a meaningful word or phrase (at least 2 characters). Received: ['a', ' ']";
    assert_eq!(refusing("x", "d", &["a", " "]), text);
    assert_eq!(refusing("x", "d", &["tag"; 21]), "there are 21 tags, the limit is 20");
    let long = "t".repeat(101);
    assert_eq!(refusing("x", "d", &[&long]), "a tag has 101 bytes, the limit is 100");
    let none = call_error(&host, "retrieve_memories", json!({ "tags": [] }));
    assert_eq!(none.kind, ErrorKind::InvalidArguments);
    store_memory(&host, "at the limit", &["tag"], &large[..65536]);
    assert_eq!(call_tool(&host, "list_memory_tags", json!({}))["memory_count"], 1);
}

#[test]
fn full_memory_file_accepts_no_more_and_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let host = host_with_stores_in(folder.path());
    store_memory(&host, "first", &["tag"], "x");
    let database = Connection::open(memory_file_path(folder.path(), "workspace")).unwrap();
    let fill = "WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n WHERE i < 9999)
        INSERT INTO memory (id, content, description, tags, confidence, evidence, stored)
        SELECT 'mem_' || i, 'x', 'd', '[]', 0.5, '', '2026' FROM n";
    database.execute_batch(fill).unwrap();
    let memory = json!({ "content": "x", "description": "d", "tags": ["tag"] });
    let full = call_error(&host, "store_memory", memory);
    assert_eq!(full.message, "there are already 10000 memories");
    run_command(&host, json!({ "action": "remove", "id": "mem_7" }));
    store_memory(&host, "again", &["tag"], "x");
    assert_eq!(retrieve_memories(&host, &["tag"], 3), ["again", "first"], "the newest first");
    let shown = run_command(&host, json!({}));
    assert!(shown.ends_with("  … and 9900 older ones"), "{shown}");
}

/// Checks that a foreign file is reported and unchanged, and does not hide the other scope.
#[track_caller]
fn check_foreign_file_is_unchanged(make: impl Fn(&Path), text: &str) {
    let folder = tempfile::tempdir().unwrap();
    let path = memory_file_path(folder.path(), "workspace");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    make(&path);
    let before = fs::read(&path).unwrap();
    let host = host_with_stores_in(folder.path());
    let memory = json!({ "content": "x", "description": "d", "tags": ["tag"] });
    let error = call_error(&host, "store_memory", memory.clone());
    assert!(error.message.contains(text), "{}", error.message);
    let mut wide = memory;
    wide["scope"] = json!("universal");
    call_tool(&host, "store_memory", wide);
    let found = call_tool(&host, "retrieve_memories", json!({ "tags": ["tag"] }));
    assert_eq!(found["count"], 1, "{found}");
    assert!(found["warnings"][0].as_str().unwrap().contains(text), "{found}");
    assert!(run_command(&host, json!({})).contains(text));
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn newer_foreign_or_damaged_memory_file_is_left_unchanged() {
    let sql = |path: &Path, sql: &str| Connection::open(path).unwrap().execute_batch(sql).unwrap();
    let newer = "PRAGMA application_id = 1785554285; PRAGMA user_version = 3; CREATE TABLE x (y)";
    check_foreign_file_is_unchanged(
        |path| sql(path, newer),
        "its format is 3, this jaato supports 2",
    );
    check_foreign_file_is_unchanged(
        |path| sql(path, "CREATE TABLE x (y)"),
        "belongs to another program",
    );
    check_foreign_file_is_unchanged(|path| fs::write(path, "short").unwrap(), "damaged");
    check_foreign_file_is_unchanged(|path| fs::write(path, vec![7; 10_000]).unwrap(), "damaged");
}

#[test]
fn prompt_continues_without_memories_if_the_file_is_locked() {
    let folder = tempfile::tempdir().unwrap();
    let host = host_with_stores_in(folder.path());
    store_memory(&host, "how we publish", &["release"], "x");
    let lock = fs::File::open(memory_file_path(folder.path(), "workspace").with_extension("lock"))
        .unwrap();
    lock.lock().unwrap();
    assert_eq!(text_before_prompt(&host, "release it"), "");
    drop(lock);
    assert!(text_before_prompt(&host, "release it").ends_with("how we publish"));
}

/// How many memories each process stores.
const EACH: u32 = 25;

/// The second process of the test below. It does nothing when run alone.
#[test]
fn child_process_that_stores_memories() {
    let Some(folder) = std::env::var_os("MEMORIES_OF_TEST") else { return };
    let host = host_with_stores_in(Path::new(&folder));
    for number in 0..EACH {
        store_memory(&host, &format!("{} {number}", std::process::id()), &["shared"], "x");
        retrieve_memories(&host, &["shared"], 1);
    }
}

#[test]
fn concurrent_processes_lose_no_memories() {
    let folder = tempfile::tempdir().unwrap();
    let others: Vec<_> = (0..3)
        .map(|_| {
            Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "child_process_that_stores_memories"])
                .env("MEMORIES_OF_TEST", folder.path())
                .spawn()
                .unwrap()
        })
        .collect();
    for mut other in others {
        assert!(other.wait().unwrap().success());
    }
    let database = Connection::open(memory_file_path(folder.path(), "workspace")).unwrap();
    let count = |sql: &str| database.query_row(sql, [], |row| row.get::<_, u32>(0)).unwrap();
    assert_eq!(count("SELECT count(*) FROM memory"), 3 * EACH);
    assert_eq!(count("SELECT sum(usage_count) FROM memory"), 3 * EACH);
    let words = "SELECT count(*) FROM memory_words WHERE memory_words MATCH 'shared'";
    assert_eq!(count(words), 3 * EACH);
}

jaato_plugin_testkit::conformance!(tool_memory: tool, hook);
