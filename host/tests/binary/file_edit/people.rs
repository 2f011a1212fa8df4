//! What a person sees of an edit: before, in the question, and after.

use serde_json::{Value, json};

use super::Desk;
use crate::support::fixture;
use crate::terminal::on_terminal;

fn call(arguments: Value) -> Value {
    json!({ "steps": [{ "call": { "name": "updateFile", "arguments": arguments } }] })
}

/// A house whose model edits a file.
fn editing(arguments: Value, result: &str) -> Option<Desk> {
    let desk = Desk::new()?;
    let _ = fixture("probe");
    desk.write("a.txt", "one\ntwo\n");
    desk.house.script(&json!({ "answers": [
        call(arguments),
        { "expect": { "tool_result": result }, "steps": [{ "text": "done" }] },
    ] }));
    Some(desk)
}

#[test]
fn the_question_shows_the_diff_and_the_change_is_told() {
    let arguments = json!({ "path": "a.txt", "old": "two", "new": "2" });
    let Some(desk) = editing(arguments, "\"success\":true") else { return };
    let Some(mut running) = on_terminal(&desk.house, "run go", |command| command) else { return };
    running.wait_for_question();
    running.write(b"y\n");
    let output = running.wait_with_open_input().code(0);
    for row in ["Edit a.txt? +1 −1", "2 - two", "2 + 2", "changed a.txt (+1 -1)"] {
        assert!(output.stdout.contains(row), "{row}: {output}");
    }
    assert_eq!(desk.text("a.txt"), "one\n2\n");
}

#[test]
fn nobody_is_asked_about_an_edit_that_cannot_apply() {
    let arguments = json!({ "path": "a.txt", "old": "tow", "new": "2" });
    let Some(desk) = editing(arguments, "Search text not found: 'tow'") else { return };
    let Some(running) = on_terminal(&desk.house, "run go", |command| command) else { return };
    let output = running.wait_with_open_input().code(0);
    assert!(!output.stdout.contains("║"), "{output}");
    assert!(output.stdout.contains("done"), "{output}");
}

#[test]
fn programs_get_old_new_and_hunks() {
    let arguments = json!({ "path": "a.txt", "old": "two", "new": "2" });
    let Some(desk) = editing(arguments, "\"success\":true") else { return };
    let output = desk.house.run(&["run", "--yes", "--output", "json", "go"]).code(0);
    let events = output.json_lines();
    let changed: Vec<&Value> =
        events.iter().filter(|event| event["event"] == "file_changed").collect();
    assert_eq!(changed.len(), 1, "{output}");
    let change = &changed[0]["change"];
    assert_eq!((&change["old"], &change["new"]), (&json!("one\ntwo\n"), &json!("one\n2\n")));
    assert_eq!(change["hunks"][0]["lines"].as_array().map(Vec::len), Some(3));
}
