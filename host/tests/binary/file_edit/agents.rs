//! Tests several sessions that edit one file: nothing is lost.

use std::thread;

use serde_json::json;

use super::{FileToolsHouse, edit_arguments};

#[test]
fn edit_after_another_agents_change_is_refused_once_with_the_changes() {
    let Some(desk) = FileToolsHouse::new() else { return };
    desk.write("a.txt", "one\ntwo\n");
    let (mut first, mut second) = (desk.start_calls(), desk.start_calls());
    first.call("readFile", &json!({ "path": "a.txt" }));
    second.call("updateFile", &edit_arguments("a.txt", "one", "1"));
    let error = first.call_refused("updateFile", &edit_arguments("a.txt", "two", "2"));
    assert_eq!(error["kind"], "conflict");
    assert!(error["hint"].as_str().unwrap().contains("-one\n+1\n two"), "{error}");
    first.call("updateFile", &edit_arguments("a.txt", "two", "2"));
    assert_eq!(desk.file_text("a.txt"), "1\n2\n");
    // The current content is not the second session's.
    second.call_refused("removeFile", &json!({ "path": "a.txt" }));
    first.end_jaato();
    second.end(&desk.house);
}

#[test]
fn edits_at_the_same_time_are_done_or_refused_and_never_lost() {
    const EDITS: usize = 30;
    let Some(desk) = FileToolsHouse::new() else { return };
    desk.write("a.txt", "begin\nend\n");
    let edits = |name: &'static str| {
        let mut calls = desk.start_calls();
        move || {
            let mut done = Vec::new();
            for number in 0..EDITS {
                let line = format!("{name}{number}\n");
                let answer = calls.call_any(
                    "updateFile",
                    &edit_arguments("a.txt", "end\n", &format!("{line}end\n")),
                );
                match answer["error"]["kind"].as_str() {
                    None => done.push(line),
                    Some(kind) => assert_eq!(kind, "conflict", "{answer}"),
                }
            }
            (calls, done)
        }
    };
    let threads = ["a", "b", "c"].map(|name| thread::spawn(edits(name)));
    let ended = threads.map(|thread| thread.join().unwrap());
    let text = desk.file_text("a.txt");
    let done: Vec<&String> = ended.iter().flat_map(|(_, done)| done).collect();
    assert!(!done.is_empty());
    assert!(done.iter().all(|line| text.contains(*line)), "{text}");
    assert_eq!(text.lines().count(), done.len() + 2, "{text}");
    for (calls, _) in ended {
        calls.end_jaato();
    }
    desk.house.assert_no_processes();
}
