//! Tests a kill in the middle of an edit of many files: afterwards either all or none are changed.

use std::fs;
use std::time::Instant;

use serde_json::{Value, json};

use super::FileToolsHouse;
use crate::support::command::DEADLINE;

/// Number of files in the edit, enough for a kill to hit the middle.
const FILES: usize = 400;

/// Number of attempts to hit the middle.
const ATTEMPTS: usize = 40;

fn file_name(number: usize) -> String {
    format!("{number:03}.txt")
}

/// Counts the files with this text.
fn count_with_text(desk: &FileToolsHouse, text: &str) -> usize {
    (0..FILES).filter(|number| desk.file_text(&file_name(*number)) == text).count()
}

fn edit_operations() -> Value {
    let mut operations: Vec<Value> = (0..FILES)
        .map(|number| {
            json!({ "action": "edit", "path": file_name(number), "old": "old", "new": "new" })
        })
        .collect();
    operations.push(json!({ "action": "rename", "from": "moves", "to": "moved" }));
    operations.push(json!({ "action": "delete", "path": "goes" }));
    json!({ "operations": operations })
}

/// Starts the edit and kills the process once the first file has changed. Returns false if that was
/// too late.
fn kill_in_the_middle(desk: &FileToolsHouse) -> bool {
    for number in 0..FILES {
        desk.write(&file_name(number), "old");
    }
    desk.write("moves", "m");
    desk.write("goes", "g");
    let _ = fs::remove_file(desk.path("moved"));
    let mut running = desk.house.command(&["call", "--batch"]).start();
    let line = json!({ "tool": "multiFileEdit", "args": edit_operations() }).to_string() + "\n";
    running.write(line.as_bytes());
    let begin = Instant::now();
    while desk.file_text(&file_name(FILES / 4)) == "old" {
        assert!(begin.elapsed() < DEADLINE, "the edit does not start");
    }
    running.send_signal("KILL");
    running.finish();
    desk.house.assert_no_processes();
    let changed = count_with_text(desk, "new");
    changed > 0 && changed < FILES
}

#[test]
fn killed_edit_is_rolled_back_by_the_next_call() {
    let Some(desk) = FileToolsHouse::new() else { return };
    assert!((0..ATTEMPTS).any(|_| kill_in_the_middle(&desk)), "every kill came too late");
    let draft = ".jaato-0123456789abcdef.tmp";
    desk.write(draft, "half of a file");
    let mut calls = desk.start_calls();
    let read = calls.call("readFile", &json!({ "path": file_name(0) }));
    let text = read["result"].as_str().unwrap();
    assert!(text.contains("was rolled back"), "{text}");
    assert_eq!((count_with_text(&desk, "old"), desk.file_text(draft)), (FILES, "-".to_owned()));
    assert_eq!(["moves", "moved", "goes"].map(|name| desk.file_text(name)), ["m", "-", "g"]);
    // It is repaired once, and none of it can be undone.
    let read = calls.call("readFile", &json!({ "path": file_name(0) }));
    assert!(!read["result"].as_str().unwrap().contains("interrupted"), "{read}");
    calls.call_refused("undoFileChange", &json!({ "path": file_name(0) }));
    calls.call("multiFileEdit", &edit_operations());
    assert_eq!(count_with_text(&desk, "new"), FILES);
    calls.call("undoFileChange", &json!({ "path": file_name(7) }));
    assert_eq!(count_with_text(&desk, "old"), FILES);
    calls.end(&desk.house);
}

#[test]
fn rollback_of_a_killed_edit_keeps_later_changes_by_others() {
    let Some(desk) = FileToolsHouse::new() else { return };
    assert!((0..ATTEMPTS).any(|_| kill_in_the_middle(&desk)), "every kill came too late");
    desk.write(&file_name(1), "theirs");
    let mut calls = desk.start_calls();
    let result = calls.call("writeNewFile", &json!({ "path": "n", "content": "" }));
    let told = result["mended"][0].as_str().unwrap();
    assert!(told.ends_with("except for files that others have changed since: 001.txt"), "{told}");
    assert_eq!(
        (desk.file_text(&file_name(1)), count_with_text(&desk, "old")),
        ("theirs".into(), FILES - 1)
    );
    calls.end(&desk.house);
}
