//! Imports of conversations that are broken, branched, compacted, or from older versions.

use std::fs;

use jaato_sessions::{
    ImportError, ImportSource, ImportedSession, detect_source, import_file, to_json_lines,
};
use jaato_types::Part;
use serde_json::{Value, json};

use crate::import::{file, goose_database, import, outline};
use crate::sample::sample;

fn lines(records: &[Value]) -> String {
    records.iter().map(|record| format!("{record}\n")).collect()
}

/// Imports records, which also must be recognised.
#[track_caller]
fn imported(source: ImportSource, records: &[Value]) -> ImportedSession {
    let (_folder, path) = file("session.jsonl", lines(records));
    assert_eq!(detect_source(&path), Some(source));
    import(source, &path)
}

/// A record of Claude Code.
fn claude(uuid: &str, parent: &str, message: Value) -> Value {
    let kind = if message["role"] == "assistant" { "assistant" } else { "user" };
    let parent = if parent.is_empty() { Value::Null } else { json!(parent) };
    json!({
        "type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": "s", "cwd": "/w",
        "timestamp": "2026-11-28T12:00:00Z", "message": message,
    })
}

fn user(content: impl Into<Value>) -> Value {
    json!({ "role": "user", "content": content.into() })
}

fn assistant(content: Value) -> Value {
    json!({ "role": "assistant", "model": "m", "content": content })
}

fn text(text: &str) -> Value {
    json!([{ "type": "text", "text": text }])
}

fn tool_use(id: &str) -> Value {
    json!({ "type": "tool_use", "id": id, "name": "Bash", "input": {} })
}

fn tool_result(id: &str, content: impl Into<Value>) -> Value {
    json!({ "type": "tool_result", "tool_use_id": id, "content": content.into() })
}

const NO_RESULT: &str =
    "error {\"error\":{\"kind\":\"failed\",\"message\":\"no result was recorded\"}}";

#[test]
fn branch_of_the_last_message_is_imported_and_the_others_are_counted() {
    let session = imported(
        ImportSource::ClaudeCode,
        &[
            claude("1", "", user("one")),
            claude("2", "1", assistant(text("first try"))),
            claude("3", "2", user("no")),
            claude("4", "1", assistant(text("second try"))),
            claude("5", "4", user("yes")),
        ],
    );
    assert_eq!(outline(&session), ["user: one", "model: second try", "user: yes"]);
    assert_eq!(
        session.notes,
        ["2 messages were left out, because the session continued on another branch."]
    );
}

#[test]
fn subagents_of_claude_code_are_counted_and_their_call_stays() {
    let mut inner = claude("3", "", user("inner prompt"));
    inner["isSidechain"] = json!(true);
    let records = [
        claude("1", "", user("ask an agent")),
        claude("2", "1", assistant(json!([tool_use("a")]))),
        inner,
        claude("4", "2", user(json!([tool_result("a", "report")]))),
    ];
    let (folder, path) = file("s.jsonl", lines(&records));
    fs::create_dir_all(folder.path().join("s/subagents")).unwrap();
    for name in ["agent-1.jsonl", "agent-1.meta.json", "agent-2.jsonl"] {
        fs::write(folder.path().join("s/subagents").join(name), "{}").unwrap();
    }
    let session = import(ImportSource::ClaudeCode, &path);
    assert_eq!(
        outline(&session),
        ["user: ask an agent", "model: a Bash {}", "tool: a ok {\"output\":\"report\"}"]
    );
    assert_eq!(
        session.notes,
        ["1 subagent message was left out.", "2 subagent conversations were left out."]
    );
}

#[test]
fn call_without_a_result_gets_an_error_and_an_interruption_stays_with_it() {
    let session = imported(
        ImportSource::ClaudeCode,
        &[
            claude("1", "", user("go")),
            claude("2", "1", assistant(json!([tool_use("a"), tool_use("b")]))),
            claude(
                "3",
                "2",
                user(json!([tool_result("b", json!([{ "type": "text", "text": "x" }]))])),
            ),
            claude("4", "3", user(text("[Request interrupted by user for tool use]"))),
            claude("5", "4", user("go on")),
            claude("6", "5", assistant(json!([{ "type": "thinking", "thinking": "hm" }]))),
        ],
    );
    assert_eq!(
        outline(&session),
        [
            "user: go",
            "model: a Bash {} | b Bash {}",
            &format!(
                "tool: a {NO_RESULT} | b ok {{\"output\":\"x\"}} | [Request interrupted by user for tool use]"
            ),
            "model [broke off]: [no answer was recorded]",
            "user: go on",
            "model [broke off]: (hm) | [no answer was recorded]",
        ]
    );
    assert_eq!(
        session.notes,
        [
            "1 tool call without a recorded result was given an error as result.",
            "1 missing answer was replaced by a line of text, because a prompt needs an answer before \
             the next one.",
        ]
    );
}

#[test]
fn repeated_ids_and_refused_names_are_changed_and_extra_results_are_left_out() {
    let mut odd = tool_use("");
    odd["name"] = json!("a tool/é");
    let session = imported(
        ImportSource::ClaudeCode,
        &[
            claude("1", "", assistant(json!([tool_use("a")]))),
            claude("2", "1", user(json!([tool_result("a", "1"), tool_result("a", "2")]))),
            claude("3", "2", assistant(json!([tool_use("a"), odd]))),
            claude("4", "3", user(json!([tool_result("", "4"), tool_result("a", "3")]))),
            claude("5", "4", user(json!([tool_result("x", "5")]))),
            claude(
                "6",
                "5",
                user(json!([{ "type": "image", "source": { "media_type": "image/png" } }])),
            ),
            claude("7", "6", user("more")),
        ],
    );
    assert_eq!(
        outline(&session),
        [
            "user: [no prompt was recorded]",
            "model: a Bash {}",
            "tool: a ok {\"output\":\"1\"}",
            "model: a-2 Bash {} | call-2 a_tool__ {}",
            "tool: a-2 ok {\"output\":\"3\"} | call-2 ok {\"output\":\"4\"}",
            "model [broke off]: [no answer was recorded]",
            "user: [an attachment of type image/png was not imported] | more",
        ]
    );
    assert_eq!(session.notes.len(), 8, "{:#?}", session.notes);
}

#[test]
fn damaged_lines_and_unknown_records_are_named() {
    let records = [
        claude("1", "", user("one")),
        json!({ "type": "dream", "uuid": "d", "parentUuid": "1", "sessionId": "s" }),
        json!({ "type": "dream", "sessionId": "s" }),
        claude(
            "2",
            "d",
            assistant(json!([{ "type": "hologram" }, { "type": "text", "text": "two" }])),
        ),
    ];
    let mut content = lines(&records).into_bytes();
    content
        .extend(b"{\"type\":\"user\",\n[1]\n\"\xff\"\n\n{\"type\":\"user\",\"uuid\":\"9\",\"messa");
    let (_folder, path) = file("a", content);
    let session = import(ImportSource::ClaudeCode, &path);
    assert_eq!(outline(&session), ["user: one", "model: two"]);
    assert_eq!(
        session.notes,
        [
            "Lines 5, 6, 7, 9 are damaged and were left out.",
            "2 records of the unknown type `dream` could not be imported.",
            "1 record of the unknown type `hologram` could not be imported.",
        ]
    );
}

#[test]
fn byte_order_mark_and_missing_parents_do_not_stop_an_import() {
    let records = [
        claude("1", "", user("one")),
        claude("2", "missing", assistant(text("two"))),
        claude("3", "2", user("three")),
    ];
    let (_folder, path) = file("a", format!("\u{feff}{}", lines(&records)));
    let session = import(ImportSource::ClaudeCode, &path);
    assert_eq!(outline(&session), ["user: one", "model: two", "user: three"]);
    assert_eq!(session.notes.len(), 1, "{:?}", session.notes);
    // A circle of parents ends.
    let circle = [claude("1", "2", user("one")), claude("2", "1", assistant(text("two")))];
    assert_eq!(outline(&imported(ImportSource::ClaudeCode, &circle)), ["user: one", "model: two"]);
}

#[test]
fn title_of_the_user_comes_before_generated_ones() {
    let records = [
        json!({ "type": "summary", "summary": "a summary", "leafUuid": "1" }),
        claude("1", "", user("the prompt")),
        json!({ "type": "ai-title", "aiTitle": "generated", "sessionId": "s" }),
    ];
    assert_eq!(imported(ImportSource::ClaudeCode, &records).transcript.name, "generated");
    let mut named = records.to_vec();
    named.push(json!({ "type": "custom-title", "customTitle": "mine\n", "sessionId": "s" }));
    assert_eq!(imported(ImportSource::ClaudeCode, &named).transcript.name, "mine");
}

#[test]
fn command_for_the_model_is_imported_with_the_text_into_which_it_expands() {
    let mut expansion = claude("2", "1", user(text("Review the last commit.")));
    expansion["isMeta"] = json!(true);
    let typed = "<command-message>review</command-message>\n<command-name>/review</command-name>\n\
                 <command-args>HEAD</command-args>";
    let records =
        [claude("1", "", user(typed)), expansion, claude("3", "2", assistant(text("Fine.")))];
    let session = imported(ImportSource::ClaudeCode, &records);
    assert_eq!(outline(&session), ["user: /review HEAD | Review the last commit.", "model: Fine."]);
    assert_eq!(session.notes, [] as [&str; 0]);
}

#[test]
fn errors_that_the_program_wrote_as_answers_are_left_out() {
    let mut error = claude("2", "1", assistant(text("API Error: 500")));
    error["isApiErrorMessage"] = json!(true);
    let session = imported(
        ImportSource::ClaudeCode,
        &[claude("1", "", user("one")), error, claude("3", "2", user("two"))],
    );
    assert_eq!(outline(&session), ["user: one | two"]);
    assert_eq!(session.notes.len(), 2, "{:?}", session.notes);
    assert_eq!(
        session.notes[0],
        "1 answer that the program wrote itself, such as an error, was left out."
    );
}

/// A line of Codex.
fn codex(kind: &str, payload: Value) -> Value {
    json!({ "timestamp": "2026-11-28T12:00:00Z", "type": kind, "payload": payload })
}

fn codex_message(role: &str, text: &str) -> Value {
    let kind = if role == "assistant" { "output_text" } else { "input_text" };
    json!({ "type": "message", "role": role, "content": [{ "type": kind, "text": text }] })
}

fn codex_call(id: &str) -> Value {
    json!({ "type": "function_call", "call_id": id, "name": "shell", "arguments": "{\"a\":1}" })
}

fn codex_start() -> Value {
    codex("session_meta", json!({ "id": "c", "cwd": "/w", "timestamp": "2026-11-28T12:00:00Z" }))
}

#[test]
fn shown_result_of_codex_is_used_only_if_the_model_got_none() {
    let ended = |id: &str| {
        let event = json!({
            "type": "exec_command_end", "call_id": id, "aggregated_output": "shown", "exit_code": 2,
        });
        codex("event_msg", event)
    };
    let output = json!({ "type": "function_call_output", "call_id": "a", "output": "sent" });
    let session = imported(
        ImportSource::Codex,
        &[
            codex_start(),
            codex("turn_context", json!({ "model": "gpt-5" })),
            codex("response_item", codex_message("user", "<environment_context>x")),
            codex("response_item", codex_message("user", "go")),
            codex("event_msg", json!({ "type": "user_message", "message": "go" })),
            codex("response_item", codex_call("a")),
            codex("response_item", codex_call("b")),
            ended("a"),
            ended("b"),
            ended("c"),
            codex("response_item", output),
            codex("response_item", codex_message("assistant", "done")),
        ],
    );
    assert_eq!(
        outline(&session),
        [
            "user: go",
            "model: a shell {\"a\":1} | b shell {\"a\":1}",
            "tool: a ok {\"output\":\"sent\"} | b ok {\"output\":\"shown\",\"exit_code\":2}",
            "model: done",
        ]
    );
    assert_eq!(session.transcript.messages[3].model.as_deref(), Some("openai/gpt-5"));
}

#[test]
fn turns_that_were_taken_back_in_codex_are_left_out() {
    let session = imported(
        ImportSource::Codex,
        &[
            codex_start(),
            codex("response_item", codex_message("user", "one")),
            codex("response_item", codex_message("assistant", "1")),
            codex("response_item", codex_message("user", "two")),
            codex("response_item", codex_message("assistant", "2")),
            codex("event_msg", json!({ "type": "thread_rolled_back", "num_turns": 1 })),
            codex("response_item", codex_message("user", "three")),
            codex("compacted", json!({ "message": "the summary" })),
            codex("event_msg", json!({ "type": "context_compacted" })),
            codex("response_item", codex_message("user", "four")),
            codex("response_item", json!({ "type": "web_search_call", "action": {} })),
            codex("later", json!({})),
        ],
    );
    assert_eq!(
        outline(&session),
        [
            "user [collected]: one",
            "model [collected]: 1",
            "user [collected]: three",
            "model [collected]: [no answer was recorded]",
            "user: the summary | four",
        ]
    );
    assert_eq!(session.notes.len(), 4, "{:?}", session.notes);
}

#[test]
fn summary_of_codex_may_be_in_the_messages_that_replace_the_older_ones() {
    let replacement = json!([
        codex_message("developer", "instructions"),
        codex_message("user", "<environment_context>x"),
        codex_message("user", "one"),
        codex_message("user", "The summary."),
        { "type": "compaction", "encrypted_content": "x" },
    ]);
    let session = imported(
        ImportSource::Codex,
        &[
            codex_start(),
            codex("response_item", codex_message("user", "one")),
            codex("compacted", json!({ "message": "", "replacement_history": replacement })),
            codex("response_item", codex_message("assistant", "done")),
        ],
    );
    let expected = [
        "user [collected]: one",
        "model [collected]: [no answer was recorded]",
        "user: one\n\nThe summary.",
        "model: done",
    ];
    assert_eq!(outline(&session), expected);
}

#[test]
fn older_file_of_codex_without_envelopes_is_imported() {
    let output = json!({
        "type": "custom_tool_call_output", "call_id": "p",
        "output": [{ "type": "input_text", "text": "done" }, { "type": "input_image", "image_url": "data:" }],
    });
    let patch = json!({ "type": "custom_tool_call", "call_id": "p", "name": "apply_patch", "input": "*** x" });
    let shell = json!({
        "type": "local_shell_call", "id": "l", "call_id": null, "action": { "command": ["ls"] },
    });
    let failed = json!({
        "type": "function_call_output", "call_id": "l",
        "output": { "content": "no", "success": false },
    });
    let bad =
        json!({ "type": "function_call", "call_id": "q", "name": "f", "arguments": "{broken" });
    let session = imported(
        ImportSource::Codex,
        &[
            json!({ "id": "old", "timestamp": "2025-05-07T17:24:21Z", "instructions": null, "git": {} }),
            json!({ "record_type": "state" }),
            codex_message("user", "patch it"),
            json!({ "type": "reasoning", "summary": [{ "type": "summary_text", "text": "hm" }] }),
            patch,
            output,
            shell,
            failed,
            bad,
        ],
    );
    assert_eq!(
        outline(&session),
        [
            "user: patch it",
            "model: (hm) | p apply_patch {\"input\":\"*** x\"}",
            "tool: p ok {\"output\":\"done\\n[an attachment of type input_image was not imported]\"}",
            "model: l local_shell {\"command\":[\"ls\"]}",
            "tool: l error {\"output\":\"no\"}",
            "model: q f \"{broken\"",
            &format!("tool: q {NO_RESULT}"),
        ]
    );
    assert_eq!(session.transcript.id.as_str(), "old");
    assert_eq!(session.transcript.begun_ms, 1_746_638_661_000);
}

/// An entry of pi.
fn pi(id: &str, parent: &str, fields: Value) -> Value {
    let parent = if parent.is_empty() { Value::Null } else { json!(parent) };
    let mut entry = json!({
        "type": "message", "id": id, "parentId": parent, "timestamp": "2026-11-28T12:00:00Z",
    });
    entry.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    entry
}

fn pi_message(id: &str, parent: &str, role: &str, words: &str) -> Value {
    pi(id, parent, json!({ "message": { "role": role, "content": text(words) } }))
}

fn pi_start(version: u64) -> Value {
    json!({ "type": "session", "version": version, "id": "p", "timestamp": "2026-11-28T12:00:00Z", "cwd": "/w" })
}

#[test]
fn branch_of_pi_ends_with_the_last_entry() {
    let session = imported(
        ImportSource::Pi,
        &[
            pi_start(3),
            pi_message("1", "", "user", "one"),
            pi_message("2", "1", "assistant", "first try"),
            pi_message("3", "1", "assistant", "second try"),
            pi("4", "3", json!({ "type": "session_info", "name": "named" })),
            pi("5", "4", json!({ "type": "later" })),
        ],
    );
    assert_eq!(outline(&session), ["user: one", "model: second try"]);
    assert_eq!(session.transcript.name, "named");
    assert_eq!(
        session.notes,
        [
            "1 message was left out, because the session continued on another branch.",
            "1 record of the unknown type `later` could not be imported.",
        ]
    );
}

#[test]
fn compaction_of_pi_puts_its_summary_before_the_kept_entries() {
    let shell = |hidden: bool| {
        json!({ "message": {
            "role": "bashExecution", "command": "ls", "output": "a", "excludeFromContext": hidden,
        } })
    };
    let session = imported(
        ImportSource::Pi,
        &[
            pi_start(3),
            pi_message("1", "", "user", "one"),
            pi_message("2", "1", "assistant", "1"),
            pi_message("3", "2", "user", "two"),
            pi_message("4", "3", "assistant", "2"),
            pi(
                "5",
                "4",
                json!({ "type": "compaction", "summary": "sum", "firstKeptEntryId": "3" }),
            ),
            pi("6", "5", shell(true)),
            pi("7", "6", shell(false)),
            pi_message("8", "7", "user", "three"),
        ],
    );
    assert_eq!(
        outline(&session),
        [
            "user [collected]: one",
            "model [collected]: 1",
            "user: sum | two",
            "model: 2",
            "user: The user ran `ls`:\n\na | three",
        ]
    );
}

#[test]
fn newer_and_older_versions_of_pi_are_read() {
    let message = |role: &str, words: &str| {
        json!({ "type": "message", "timestamp": "2026-11-28T12:00:00Z",
                "message": { "role": role, "content": words } })
    };
    let records = [pi_start(1), message("user", "one"), pi_message("", "", "assistant", "two")];
    let mut oldest = records[2].clone();
    oldest.as_object_mut().unwrap().remove("parentId");
    let session = imported(ImportSource::Pi, &[records[0].clone(), records[1].clone(), oldest]);
    assert_eq!(outline(&session), ["user: one", "model: two"]);
    let newer = imported(ImportSource::Pi, &[pi_start(4), pi_message("1", "", "user", "one")]);
    assert!(
        newer.notes[0].starts_with("The file has format 4, and this jaato knows formats up to 3")
    );
}

/// A message of goose.
fn goose(role: &str, content: Value) -> Value {
    json!({ "role": role, "created": 1_700_000_000, "content": content })
}

#[test]
fn older_file_of_goose_is_imported() {
    let request = json!({
        "type": "toolRequest", "id": "call_0",
        "toolCall": { "status": "success", "value": { "name": "developer__shell", "arguments": { "a": 1 } } },
    });
    let response =
        |value: Value| json!({ "type": "toolResponse", "id": "call_0", "toolResult": value });
    let blocks = json!([{ "type": "text", "text": "out" }, { "type": "image", "mimeType": "image/png", "data": "" }]);
    let session = imported(
        ImportSource::Goose,
        &[
            json!({ "working_dir": "/w", "description": "Old one", "message_count": 6 }),
            goose("user", text("one")),
            goose("assistant", json!([request])),
            goose("user", json!([response(json!({ "status": "success", "value": blocks }))])),
            goose(
                "assistant",
                json!([
                    { "type": "toolRequest", "id": "call_0", "toolCall": { "status": "error", "error": "bad" } },
                    { "type": "redactedThinking", "data": "x" },
                ]),
            ),
            goose("user", json!([response(json!({ "status": "error", "error": "it failed" }))])),
        ],
    );
    assert_eq!(
        outline(&session),
        [
            "user: one",
            "model: call_0 developer__shell {\"a\":1}",
            "tool: call_0 ok {\"output\":\"out\\n[an attachment of type image/png was not imported]\"}",
            "model: call_0-2 invalid_call {}",
            "tool: call_0-2 error {\"output\":\"it failed\"}",
        ]
    );
    assert_eq!(session.transcript.name, "Old one");
    assert_eq!(session.transcript.messages[0].at_ms, 1_700_000_000_000);
}

#[test]
fn messages_that_the_model_of_goose_no_longer_sees_are_collected() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    let database = goose_database(&path, "delete");
    let change = r#"
        UPDATE messages SET metadata_json = '{"agentVisible":false}';
        INSERT INTO messages (session_id, role, content_json, created_timestamp, metadata_json) VALUES
            ('20261128_1', 'user', '[{"type":"text","text":"the summary"}]', 1795876667,
             '{"userVisible":false,"agentVisible":true}'),
            ('20261128_1', 'assistant', 'broken', 1795876668, NULL);
        ALTER TABLE messages DROP COLUMN tokens;
        ALTER TABLE messages ADD COLUMN later TEXT"#;
    database.execute_batch(change).unwrap();
    drop(database);
    let session = import(ImportSource::Goose, &path);
    let outline = outline(&session);
    assert_eq!(outline.len(), 5, "{outline:#?}");
    assert!(outline[..4].iter().all(|it| it.contains("[collected]")));
    assert_eq!(outline[4], "user: the summary");
    assert_eq!(
        session.notes.last().unwrap(),
        "1 record of the unknown type `message without blocks` could not be imported."
    );
}

#[test]
fn database_of_another_program_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let database = rusqlite::Connection::open(&path).unwrap();
    database.execute_batch("CREATE TABLE messages (id INTEGER)").unwrap();
    drop(database);
    assert_eq!(detect_source(&path), None);
    let refused = import_file(ImportSource::Goose, &path, None).unwrap_err();
    assert!(matches!(refused, ImportError::NotASession { .. }), "{refused}");
}

#[test]
fn own_export_of_a_newer_version_is_refused_and_new_fields_are_ignored() {
    let export = to_json_lines(&sample());
    let (_folder, path) = file("a", export.replacen("\"version\":1", "\"version\":2", 1));
    let refused = import_file(ImportSource::Jaato, &path, None).unwrap_err().to_string();
    assert!(refused.ends_with("has format 2, and this jaato reads formats up to 1"), "{refused}");
    let (_folder, path) = file("a", export.replace("{\"at_ms\":", "{\"later\":[1],\"at_ms\":"));
    assert_eq!(import_file(ImportSource::Jaato, &path, None).unwrap().transcript, sample());
}

#[test]
fn own_export_with_a_lost_message_is_repaired() {
    let export = to_json_lines(&sample());
    // The results of the calls.
    let kept: Vec<&str> =
        export.lines().enumerate().filter(|it| it.0 != 5).map(|it| it.1).collect();
    let (_folder, path) = file("a", kept.join("\n"));
    let session = import(ImportSource::Jaato, &path);
    assert_eq!(
        session.notes[0],
        "The messages do not form a valid history, so they were repaired."
    );
    let answer = &session.transcript.messages[3].message;
    assert!(answer.parts.iter().any(|part| matches!(part, Part::Opaque(_))));
    let results = &session.transcript.messages[4].message;
    assert_eq!(results.tool_results().filter(|it| it.is_error).count(), 2);
    let (_folder, path) = file("a", kept[0]);
    let refused = import_file(ImportSource::Jaato, &path, None).unwrap_err();
    assert!(matches!(refused, ImportError::NoMessages(_)), "{refused}");
}
