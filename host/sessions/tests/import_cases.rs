//! Imports of conversations that are broken, branched, compacted, or from older versions.

use std::fs;

use jaato_sessions::{
    ImportError, ImportSource, ImportedSession, detect_source, import_file, to_json_lines,
};
use jaato_types::Part;
use serde_json::{Value, json};

use crate::import::{goose_database, import_or_panic, session_outline, write_file};
use crate::sample::sample_transcript;

fn json_lines(records: &[Value]) -> String {
    records.iter().map(|record| format!("{record}\n")).collect()
}

/// Imports records, which also must be recognised.
#[track_caller]
fn import_records(source: ImportSource, records: &[Value]) -> ImportedSession {
    let (_folder, path) = write_file("session.jsonl", json_lines(records));
    assert_eq!(detect_source(&path), Some(source));
    import_or_panic(source, &path)
}

/// A record of Claude Code.
fn claude_record(uuid: &str, parent: &str, message: Value) -> Value {
    let kind = if message["role"] == "assistant" { "assistant" } else { "user" };
    let parent = if parent.is_empty() { Value::Null } else { json!(parent) };
    json!({
        "type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": "s", "cwd": "/w",
        "timestamp": "2026-11-28T12:00:00Z", "message": message,
    })
}

fn user_message(content: impl Into<Value>) -> Value {
    json!({ "role": "user", "content": content.into() })
}

fn assistant_message(content: Value) -> Value {
    json!({ "role": "assistant", "model": "m", "content": content })
}

fn text_block(text: &str) -> Value {
    json!([{ "type": "text", "text": text }])
}

fn tool_use_block(id: &str) -> Value {
    json!({ "type": "tool_use", "id": id, "name": "Bash", "input": {} })
}

fn tool_result_block(id: &str, content: impl Into<Value>) -> Value {
    json!({ "type": "tool_result", "tool_use_id": id, "content": content.into() })
}

const NO_RESULT: &str =
    "error {\"error\":{\"kind\":\"failed\",\"message\":\"no result was recorded\"}}";

#[test]
fn branch_of_the_last_message_is_imported_and_the_others_are_counted() {
    let session = import_records(
        ImportSource::ClaudeCode,
        &[
            claude_record("1", "", user_message("one")),
            claude_record("2", "1", assistant_message(text_block("first try"))),
            claude_record("3", "2", user_message("no")),
            claude_record("4", "1", assistant_message(text_block("second try"))),
            claude_record("5", "4", user_message("yes")),
        ],
    );
    assert_eq!(session_outline(&session), ["user: one", "model: second try", "user: yes"]);
    assert_eq!(
        session.notes,
        ["2 messages were left out, because the session continued on another branch."]
    );
}

#[test]
fn subagents_of_claude_code_are_counted_and_their_call_stays() {
    let mut inner = claude_record("3", "", user_message("inner prompt"));
    inner["isSidechain"] = json!(true);
    let records = [
        claude_record("1", "", user_message("ask an agent")),
        claude_record("2", "1", assistant_message(json!([tool_use_block("a")]))),
        inner,
        claude_record("4", "2", user_message(json!([tool_result_block("a", "report")]))),
    ];
    let (folder, path) = write_file("s.jsonl", json_lines(&records));
    fs::create_dir_all(folder.path().join("s/subagents")).unwrap();
    for name in ["agent-1.jsonl", "agent-1.meta.json", "agent-2.jsonl"] {
        fs::write(folder.path().join("s/subagents").join(name), "{}").unwrap();
    }
    let session = import_or_panic(ImportSource::ClaudeCode, &path);
    assert_eq!(
        session_outline(&session),
        ["user: ask an agent", "model: a Bash {}", "tool: a ok {\"output\":\"report\"}"]
    );
    assert_eq!(
        session.notes,
        ["1 subagent message was left out.", "2 subagent conversations were left out."]
    );
}

#[test]
fn call_without_a_result_gets_an_error_and_an_interruption_stays_with_it() {
    let session = import_records(
        ImportSource::ClaudeCode,
        &[
            claude_record("1", "", user_message("go")),
            claude_record(
                "2",
                "1",
                assistant_message(json!([tool_use_block("a"), tool_use_block("b")])),
            ),
            claude_record(
                "3",
                "2",
                user_message(json!([tool_result_block(
                    "b",
                    json!([{ "type": "text", "text": "x" }])
                )])),
            ),
            claude_record(
                "4",
                "3",
                user_message(text_block("[Request interrupted by user for tool use]")),
            ),
            claude_record("5", "4", user_message("go on")),
            claude_record(
                "6",
                "5",
                assistant_message(json!([{ "type": "thinking", "thinking": "hm" }])),
            ),
        ],
    );
    assert_eq!(
        session_outline(&session),
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
    let mut odd = tool_use_block("");
    odd["name"] = json!("a tool/é");
    let session = import_records(
        ImportSource::ClaudeCode,
        &[
            claude_record("1", "", assistant_message(json!([tool_use_block("a")]))),
            claude_record(
                "2",
                "1",
                user_message(json!([tool_result_block("a", "1"), tool_result_block("a", "2")])),
            ),
            claude_record("3", "2", assistant_message(json!([tool_use_block("a"), odd]))),
            claude_record(
                "4",
                "3",
                user_message(json!([tool_result_block("", "4"), tool_result_block("a", "3")])),
            ),
            claude_record("5", "4", user_message(json!([tool_result_block("x", "5")]))),
            claude_record(
                "6",
                "5",
                user_message(json!([{ "type": "image", "source": { "media_type": "image/png" } }])),
            ),
            claude_record("7", "6", user_message("more")),
        ],
    );
    assert_eq!(
        session_outline(&session),
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
        claude_record("1", "", user_message("one")),
        json!({ "type": "dream", "uuid": "d", "parentUuid": "1", "sessionId": "s" }),
        json!({ "type": "dream", "sessionId": "s" }),
        claude_record(
            "2",
            "d",
            assistant_message(json!([{ "type": "hologram" }, { "type": "text", "text": "two" }])),
        ),
    ];
    let mut content = json_lines(&records).into_bytes();
    content
        .extend(b"{\"type\":\"user\",\n[1]\n\"\xff\"\n\n{\"type\":\"user\",\"uuid\":\"9\",\"messa");
    let (_folder, path) = write_file("a", content);
    let session = import_or_panic(ImportSource::ClaudeCode, &path);
    assert_eq!(session_outline(&session), ["user: one", "model: two"]);
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
        claude_record("1", "", user_message("one")),
        claude_record("2", "missing", assistant_message(text_block("two"))),
        claude_record("3", "2", user_message("three")),
    ];
    let (_folder, path) = write_file("a", format!("\u{feff}{}", json_lines(&records)));
    let session = import_or_panic(ImportSource::ClaudeCode, &path);
    assert_eq!(session_outline(&session), ["user: one", "model: two", "user: three"]);
    assert_eq!(session.notes.len(), 1, "{:?}", session.notes);
    // A circle of parents ends.
    let circle = [
        claude_record("1", "2", user_message("one")),
        claude_record("2", "1", assistant_message(text_block("two"))),
    ];
    assert_eq!(
        session_outline(&import_records(ImportSource::ClaudeCode, &circle)),
        ["user: one", "model: two"]
    );
}

#[test]
fn title_of_the_user_comes_before_generated_ones() {
    let records = [
        json!({ "type": "summary", "summary": "a summary", "leafUuid": "1" }),
        claude_record("1", "", user_message("the prompt")),
        json!({ "type": "ai-title", "aiTitle": "generated", "sessionId": "s" }),
    ];
    assert_eq!(import_records(ImportSource::ClaudeCode, &records).transcript.name, "generated");
    let mut named = records.to_vec();
    named.push(json!({ "type": "custom-title", "customTitle": "mine\n", "sessionId": "s" }));
    assert_eq!(import_records(ImportSource::ClaudeCode, &named).transcript.name, "mine");
}

#[test]
fn command_for_the_model_is_imported_with_the_text_into_which_it_expands() {
    let mut expansion =
        claude_record("2", "1", user_message(text_block("Review the last commit.")));
    expansion["isMeta"] = json!(true);
    let typed = "<command-message>review</command-message>\n<command-name>/review</command-name>\n\
                 <command-args>HEAD</command-args>";
    let records = [
        claude_record("1", "", user_message(typed)),
        expansion,
        claude_record("3", "2", assistant_message(text_block("Fine."))),
    ];
    let session = import_records(ImportSource::ClaudeCode, &records);
    assert_eq!(
        session_outline(&session),
        ["user: /review HEAD | Review the last commit.", "model: Fine."]
    );
    assert_eq!(session.notes, [] as [&str; 0]);
}

#[test]
fn errors_that_the_program_wrote_as_answers_are_left_out() {
    let mut error = claude_record("2", "1", assistant_message(text_block("API Error: 500")));
    error["isApiErrorMessage"] = json!(true);
    let session = import_records(
        ImportSource::ClaudeCode,
        &[
            claude_record("1", "", user_message("one")),
            error,
            claude_record("3", "2", user_message("two")),
        ],
    );
    assert_eq!(session_outline(&session), ["user: one | two"]);
    assert_eq!(session.notes.len(), 2, "{:?}", session.notes);
    assert_eq!(
        session.notes[0],
        "1 answer that the program wrote itself, such as an error, was left out."
    );
}

/// A line of Codex.
fn codex_record(kind: &str, payload: Value) -> Value {
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
    codex_record(
        "session_meta",
        json!({ "id": "c", "cwd": "/w", "timestamp": "2026-11-28T12:00:00Z" }),
    )
}

#[test]
fn shown_result_of_codex_is_used_only_if_the_model_got_none() {
    let ended = |id: &str| {
        let event = json!({
            "type": "exec_command_end", "call_id": id, "aggregated_output": "shown", "exit_code": 2,
        });
        codex_record("event_msg", event)
    };
    let output = json!({ "type": "function_call_output", "call_id": "a", "output": "sent" });
    let session = import_records(
        ImportSource::Codex,
        &[
            codex_start(),
            codex_record("turn_context", json!({ "model": "gpt-5" })),
            codex_record("response_item", codex_message("user", "<environment_context>x")),
            codex_record("response_item", codex_message("user", "go")),
            codex_record("event_msg", json!({ "type": "user_message", "message": "go" })),
            codex_record("response_item", codex_call("a")),
            codex_record("response_item", codex_call("b")),
            ended("a"),
            ended("b"),
            ended("c"),
            codex_record("response_item", output),
            codex_record("response_item", codex_message("assistant", "done")),
        ],
    );
    assert_eq!(
        session_outline(&session),
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
    let session = import_records(
        ImportSource::Codex,
        &[
            codex_start(),
            codex_record("response_item", codex_message("user", "one")),
            codex_record("response_item", codex_message("assistant", "1")),
            codex_record("response_item", codex_message("user", "two")),
            codex_record("response_item", codex_message("assistant", "2")),
            codex_record("event_msg", json!({ "type": "thread_rolled_back", "num_turns": 1 })),
            codex_record("response_item", codex_message("user", "three")),
            codex_record("compacted", json!({ "message": "the summary" })),
            codex_record("event_msg", json!({ "type": "context_compacted" })),
            codex_record("response_item", codex_message("user", "four")),
            codex_record("response_item", json!({ "type": "web_search_call", "action": {} })),
            codex_record("later", json!({})),
        ],
    );
    assert_eq!(
        session_outline(&session),
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
    let session = import_records(
        ImportSource::Codex,
        &[
            codex_start(),
            codex_record("response_item", codex_message("user", "one")),
            codex_record("compacted", json!({ "message": "", "replacement_history": replacement })),
            codex_record("response_item", codex_message("assistant", "done")),
        ],
    );
    let expected = [
        "user [collected]: one",
        "model [collected]: [no answer was recorded]",
        "user: one\n\nThe summary.",
        "model: done",
    ];
    assert_eq!(session_outline(&session), expected);
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
    let session = import_records(
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
        session_outline(&session),
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
fn pi_entry(id: &str, parent: &str, fields: Value) -> Value {
    let parent = if parent.is_empty() { Value::Null } else { json!(parent) };
    let mut entry = json!({
        "type": "message", "id": id, "parentId": parent, "timestamp": "2026-11-28T12:00:00Z",
    });
    entry.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    entry
}

fn pi_message(id: &str, parent: &str, role: &str, words: &str) -> Value {
    pi_entry(id, parent, json!({ "message": { "role": role, "content": text_block(words) } }))
}

fn pi_start(version: u64) -> Value {
    json!({ "type": "session", "version": version, "id": "p", "timestamp": "2026-11-28T12:00:00Z", "cwd": "/w" })
}

#[test]
fn branch_of_pi_ends_with_the_last_entry() {
    let session = import_records(
        ImportSource::Pi,
        &[
            pi_start(3),
            pi_message("1", "", "user", "one"),
            pi_message("2", "1", "assistant", "first try"),
            pi_message("3", "1", "assistant", "second try"),
            pi_entry("4", "3", json!({ "type": "session_info", "name": "named" })),
            pi_entry("5", "4", json!({ "type": "later" })),
        ],
    );
    assert_eq!(session_outline(&session), ["user: one", "model: second try"]);
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
    let session = import_records(
        ImportSource::Pi,
        &[
            pi_start(3),
            pi_message("1", "", "user", "one"),
            pi_message("2", "1", "assistant", "1"),
            pi_message("3", "2", "user", "two"),
            pi_message("4", "3", "assistant", "2"),
            pi_entry(
                "5",
                "4",
                json!({ "type": "compaction", "summary": "sum", "firstKeptEntryId": "3" }),
            ),
            pi_entry("6", "5", shell(true)),
            pi_entry("7", "6", shell(false)),
            pi_message("8", "7", "user", "three"),
        ],
    );
    assert_eq!(
        session_outline(&session),
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
    let session =
        import_records(ImportSource::Pi, &[records[0].clone(), records[1].clone(), oldest]);
    assert_eq!(session_outline(&session), ["user: one", "model: two"]);
    let newer =
        import_records(ImportSource::Pi, &[pi_start(4), pi_message("1", "", "user", "one")]);
    assert!(
        newer.notes[0].starts_with("The file has format 4, and this jaato knows formats up to 3")
    );
}

/// A message of goose.
fn goose_message(role: &str, content: Value) -> Value {
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
    let session = import_records(
        ImportSource::Goose,
        &[
            json!({ "working_dir": "/w", "description": "Old one", "message_count": 6 }),
            goose_message("user", text_block("one")),
            goose_message("assistant", json!([request])),
            goose_message(
                "user",
                json!([response(json!({ "status": "success", "value": blocks }))]),
            ),
            goose_message(
                "assistant",
                json!([
                    { "type": "toolRequest", "id": "call_0", "toolCall": { "status": "error", "error": "bad" } },
                    { "type": "redactedThinking", "data": "x" },
                ]),
            ),
            goose_message(
                "user",
                json!([response(json!({ "status": "error", "error": "it failed" }))]),
            ),
        ],
    );
    assert_eq!(
        session_outline(&session),
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
    let session = import_or_panic(ImportSource::Goose, &path);
    let outline = session_outline(&session);
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
    let export = to_json_lines(&sample_transcript());
    let (_folder, path) = write_file("a", export.replacen("\"version\":1", "\"version\":2", 1));
    let refused = import_file(ImportSource::Jaato, &path, None).unwrap_err().to_string();
    assert!(refused.ends_with("has format 2, and this jaato reads formats up to 1"), "{refused}");
    let (_folder, path) =
        write_file("a", export.replace("{\"at_ms\":", "{\"later\":[1],\"at_ms\":"));
    assert_eq!(
        import_file(ImportSource::Jaato, &path, None).unwrap().transcript,
        sample_transcript()
    );
}

#[test]
fn own_export_with_a_lost_message_is_repaired() {
    let export = to_json_lines(&sample_transcript());
    // The results of the calls.
    let kept: Vec<&str> =
        export.lines().enumerate().filter(|it| it.0 != 5).map(|it| it.1).collect();
    let (_folder, path) = write_file("a", kept.join("\n"));
    let session = import_or_panic(ImportSource::Jaato, &path);
    assert_eq!(
        session.notes[0],
        "The messages do not form a valid history, so they were repaired."
    );
    let answer = &session.transcript.messages[3].message;
    assert!(answer.parts.iter().any(|part| matches!(part, Part::Opaque(_))));
    let results = &session.transcript.messages[4].message;
    assert_eq!(results.tool_results().filter(|it| it.is_error).count(), 2);
    let (_folder, path) = write_file("a", kept[0]);
    let refused = import_file(ImportSource::Jaato, &path, None).unwrap_err();
    assert!(matches!(refused, ImportError::NoMessages(_)), "{refused}");
}
