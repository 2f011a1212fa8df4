//! Tests what a user sees of an edit: before it, in the prompt, and after it.

use serde_json::{Value, json};

use super::FileToolsHouse;
use crate::support::fixture;
use crate::terminal::run_on_terminal;

fn edit_answer(arguments: Value) -> Value {
    json!({ "steps": [{ "call": { "name": "updateFile", "arguments": arguments } }] })
}

/// Returns an installation whose model edits a file.
fn house_that_edits(arguments: Value, result: &str) -> Option<FileToolsHouse> {
    let desk = FileToolsHouse::new()?;
    let _ = fixture("probe");
    desk.write("a.txt", "one\ntwo\n");
    desk.house.set_script(&json!({ "answers": [
        edit_answer(arguments),
        { "expect": { "tool_result": result }, "steps": [{ "text": "done" }] },
    ] }));
    Some(desk)
}

#[test]
fn edit_prompt_shows_the_diff_and_the_change_is_reported() {
    let arguments = json!({ "path": "a.txt", "old": "two", "new": "2" });
    let Some(desk) = house_that_edits(arguments, "\"success\":true") else { return };
    let Some(mut running) = run_on_terminal(&desk.house, "run go", |command| command) else {
        return;
    };
    running.wait_for_question();
    running.write(b"y\n");
    let output = running.wait_with_open_input().code(0);
    for row in ["Edit a.txt? +1 −1", "2 - two", "2 + 2", "changed a.txt (+1 -1)"] {
        assert!(output.stdout.contains(row), "{row}: {output}");
    }
    assert_eq!(desk.file_text("a.txt"), "one\n2\n");
}

#[test]
fn patch_prompt_shows_the_diff() {
    let patch = "*** Begin Patch\n*** Update File: a.txt\n@@ one\n-two\n+2\n*** End Patch";
    let Some(desk) = FileToolsHouse::new() else { return };
    let _ = fixture("probe");
    desk.write("a.txt", "one\ntwo\n");
    desk.house.set_script(&json!({ "answers": [
        { "steps": [{ "call": { "name": "apply_patch", "arguments": { "input": patch } } }] },
        { "expect": { "tool_result": "\"modified\":[\"a.txt\"]" }, "steps": [{ "text": "done" }] },
    ] }));
    let Some(mut running) = run_on_terminal(&desk.house, "run go", |command| command) else {
        return;
    };
    running.wait_for_question();
    running.write(b"y\n");
    let output = running.wait_with_open_input().code(0);
    for row in ["Edit a.txt? +1 −1", "2 - two", "2 + 2", "changed a.txt (+1 -1)"] {
        assert!(output.stdout.contains(row), "{row}: {output}");
    }
    assert_eq!(desk.file_text("a.txt"), "one\n2\n");
}

#[test]
fn edit_that_cannot_apply_is_refused_without_a_prompt() {
    let arguments = json!({ "path": "a.txt", "old": "tow", "new": "2" });
    let Some(desk) = house_that_edits(arguments, "Search text not found: 'tow'") else { return };
    let Some(running) = run_on_terminal(&desk.house, "run go", |command| command) else { return };
    let output = running.wait_with_open_input().code(0);
    assert!(!output.stdout.contains("║"), "{output}");
    assert!(output.stdout.contains("done"), "{output}");
}

#[test]
fn file_changed_event_has_old_and_new_text_and_hunks() {
    let arguments = json!({ "path": "a.txt", "old": "two", "new": "2" });
    let Some(desk) = house_that_edits(arguments, "\"success\":true") else { return };
    let output = desk.house.run(&["run", "--yes", "--output", "json", "go"]).code(0);
    let events = output.json_lines();
    let changed: Vec<&Value> =
        events.iter().filter(|event| event["event"] == "file_changed").collect();
    assert_eq!(changed.len(), 1, "{output}");
    let change = &changed[0]["change"];
    assert_eq!((&change["old"], &change["new"]), (&json!("one\ntwo\n"), &json!("one\n2\n")));
    assert_eq!(change["hunks"][0]["lines"].as_array().map(Vec::len), Some(3));
}

#[test]
fn undo_command_reverts_a_change_after_confirmation() {
    let Some(desk) = FileToolsHouse::new() else { return };
    desk.write("a.txt", "one\n");
    desk.write("b.txt", "one\n");
    let replace = json!({ "pattern": "one", "replacement": "two", "paths": "*.txt" }).to_string();
    desk.house.run(&["call", "findAndReplace", &replace]).code(0);
    let listed = desk.house.run(&["undo", "--list"]).code(0).stdout;
    assert!(
        listed.starts_with("    1  2") && listed.contains("findAndReplace  a.txt, b.txt\n"),
        "{listed}"
    );
    let refused = desk.house.run(&["undo"]).code(6);
    assert!(
        refused.stderr.contains("change 1 was not undone: no user can confirm it"),
        "{refused}"
    );
    assert_eq!(desk.file_text("a.txt"), "two\n");
    let Some(mut running) = run_on_terminal(&desk.house, "undo", |command| command) else { return };
    running.wait_for_question();
    running.write(b"1\n");
    let output = running.wait_with_open_input().code(0);
    for row in [
        "Undo change 1 (findAndReplace",
        "-two",
        "+one",
        "Change 1 (findAndReplace: a.txt, b.txt) was undone.",
    ] {
        assert!(output.stdout.contains(row), "{row}: {output}");
    }
    assert_eq!(
        (desk.file_text("a.txt"), desk.file_text("b.txt")),
        ("one\n".into(), "one\n".into())
    );
    desk.house.run(&["undo", "2", "--yes"]).code(0);
    assert_eq!(desk.file_text("a.txt"), "two\n");
    desk.write("b.txt", "theirs\n");
    let output = desk.house.run(&["undo", "3", "--yes"]).code(1);
    assert!(output.stderr.contains("so nothing was changed: b.txt has changed since"), "{output}");
    assert_eq!(desk.file_text("a.txt"), "two\n");
}

#[test]
fn undo_in_a_chat_is_reported_to_the_model() {
    let Some(desk) = FileToolsHouse::new() else { return };
    let _ = fixture("probe");
    desk.write("a.txt", "one\n");
    desk.house.set_script(&json!({ "answers": [
        edit_answer(json!({ "path": "a.txt", "old": "one", "new": "two" })),
        { "steps": [{ "text": "edited" }] },
        { "expect": { "data": "Change 1 (updateFile: a.txt) was undone" }, "steps": [{ "text": "seen" }] },
    ] }));
    let mut chat = desk.house.command(&["chat", "--yes"]).start();
    chat.write(b"edit it\n/undo 1 true\ncontinue\n");
    let output = chat.finish().code(0);
    assert!(output.stdout.contains("seen"), "{output}");
    assert_eq!(desk.file_text("a.txt"), "one\n");
}
