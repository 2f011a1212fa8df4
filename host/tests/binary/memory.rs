//! Tests a model's memories: stored in one session, listed and found in another, changed by users.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::support::answers::text_answer;
use crate::support::{House, fixtures, library_name};

const LINE: &str = "- [release, ci]: how we publish";

fn house_with_memory() -> Option<House> {
    let house = House::new()?;
    house.ship(&fixtures::test_house()?.join("plugins").join(library_name("tool_memory")));
    Some(house)
}

fn script_answers(house: &House, answers: Value) {
    house.set_script(&json!({ "answers": answers }));
}

fn call_answer(name: &str, arguments: Value) -> Value {
    json!({ "steps": [{ "call": { "name": name, "arguments": arguments } }] })
}

fn expect_result(result: &str, mut answer: Value) -> Value {
    answer["expect"] = json!({ "tool_result": result });
    answer
}

fn look_up_answer(tool: &str) -> Value {
    call_answer("get_tool_schemas", json!({ "names": [tool] }))
}

fn memory_arguments(content: &str) -> Value {
    json!({ "content": content, "description": "how we publish", "tags": ["release", "ci"] })
}

/// Finds the workspace's memory file in jaato's data folder.
fn memory_file(house: &House) -> PathBuf {
    let mut folders = vec![house.home()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.file_name().unwrap() == "memories.sqlite" {
                return path;
            }
            if path.is_dir() && !path.is_symlink() {
                folders.push(path);
            }
        }
    }
    panic!("`memories.sqlite` does not exist");
}

#[test]
fn memory_stored_in_one_session_is_named_and_found_in_another() {
    let Some(house) = house_with_memory() else { return };
    script_answers(
        &house,
        json!([
            look_up_answer("store_memory"),
            expect_result(
                "store_memory",
                call_answer("store_memory", memory_arguments("tag first, then publish"))
            ),
            expect_result("Stored memory: how we publish", text_answer("kept")),
        ]),
    );
    assert_eq!(house.run(&["run", "remember it"]).code(0).stdout, "kept\n");

    let shown = house.run(&["run", "--show-prompt", "do a Release"]).code(0);
    assert!(shown.stdout.contains("by tool-memory"), "{shown}");
    assert!(shown.stdout.contains(LINE), "{shown}");
    let shown = house.run(&["run", "--show-prompt", "what time is it?"]).code(0);
    assert!(!shown.stdout.contains(LINE), "{shown}");

    script_answers(
        &house,
        json!([
            { "expect": { "data": LINE }, "steps": look_up_answer("retrieve_memories")["steps"] },
            expect_result(
                "retrieve_memories",
                call_answer("retrieve_memories", json!({ "tags": ["RELEASE"] })),
            ),
            expect_result("tag first, then publish", text_answer("I know how")),
        ]),
    );
    let output = house.run(&["run", "do a release"]).code(0);
    assert_eq!(output.stdout, "I know how\n", "{output}");
    house.assert_no_processes();
}

#[test]
fn user_edits_and_removes_a_memory() {
    let Some(house) = house_with_memory() else { return };
    let stored =
        house.run(&["call", "store_memory", &memory_arguments("tag first").to_string()]).code(0);
    let id = stored.json()["memory_id"].as_str().unwrap().to_owned();
    let listed = house.run(&["command", "memory"]).code(0).json();
    let expected = format!("of this workspace:\n  {id}  [release, ci] how we publish");
    assert_eq!(listed["result"], expected);
    house.run(&["command", "memory", "edit", &id, "publish", "by", "hand"]).code(0);
    let wanted = r#"{"tags": ["hand"]}"#;
    let found = house.run(&["call", "retrieve_memories", wanted]).code(0).json();
    assert_eq!(found["memories"][0]["content"], "publish by hand", "{found}");
    house.run(&["command", "memory", "remove", &id]).code(0);
    let found = house.run(&["call", "retrieve_memories", wanted]).code(0).json();
    assert_eq!(found["status"], "no_results");
    house.assert_no_processes();
}

#[test]
fn damaged_memory_file_is_reported_and_kept_and_the_session_continues() {
    let Some(house) = house_with_memory() else { return };
    house.run(&["call", "store_memory", &memory_arguments("x").to_string()]).code(0);
    let path = memory_file(&house);
    let damaged = vec![7; 20_000];
    fs::write(&path, &damaged).unwrap();
    let refused = house.run(&["call", "store_memory", &memory_arguments("y").to_string()]).code(1);
    assert!(refused.stderr.contains("are damaged"), "{refused}");
    assert!(refused.stderr.contains("stays unchanged"), "{refused}");
    script_answers(&house, json!([text_answer("well")]));
    let output = house.run(&["run", "do a release"]).code(0);
    assert_eq!(output.stdout, "well\n");
    assert!(output.stderr.contains("plugin `tool-memory` is skipped"), "{output}");
    assert_eq!(fs::read(&path).unwrap(), damaged);
    house.assert_no_processes();
}
