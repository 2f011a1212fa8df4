//! Tests tools that are in no request until a model looks for them, and calls with duplicate ids.

use serde_json::{Value, json};

use crate::house;
use crate::support::{House, fixture};

fn tool_call(name: &str, arguments: Value) -> Value {
    json!({ "call": { "name": name, "arguments": arguments } })
}

/// Runs a task that plays its script to the end, and returns the results of the calls, in order.
#[track_caller]
fn run_results(house: &House) -> Vec<Value> {
    let output = house.run(&["run", "--output", "json", "hello"]).code(0);
    let events = output.json_lines();
    let ended = events.last().unwrap();
    assert_eq!((&ended["event"], &ended["text"]), (&json!("turn_finished"), &json!("done")));
    let finished = events.iter().filter(|event| event["event"] == "tool_call_finished");
    finished.cloned().collect()
}

#[test]
fn discovered_tool_can_be_called_and_stays_at_the_end_of_the_list() {
    let house = house!(ships "echo");
    let known = json!(["get_environment", "list_tools", "get_tool_schemas"]);
    let grown = json!(["get_environment", "list_tools", "get_tool_schemas", "count_bytes_echo"]);
    house.set_script(&json!({ "answers": [
        { "expect": { "tools": known }, "steps": [tool_call("list_tools", json!({}))] },
        {
            "expect": { "tools": known, "tool_result": "\"total_tools\":2" },
            "steps": [tool_call("list_tools", json!({ "category": "other" }))],
        },
        {
            "expect": { "tools": known, "tool_result": "\"name\":\"count_bytes_echo\"" },
            "steps": [tool_call("get_tool_schemas", json!({ "names": ["count_bytes_echo"] }))],
        },
        {
            "expect": { "tools": grown, "tool_result": "\"activated\":[\"count_bytes_echo\"]" },
            "steps": [tool_call("count_bytes_echo", json!({ "text": "möndchen" }))],
        },
        {
            "expect": { "tools": grown, "tool_result": "\"bytes\":9" },
            "steps": [{ "text": "done" }],
        },
    ] }));
    let results = run_results(&house);
    let names: Vec<_> = results.iter().map(|result| result["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["list_tools", "list_tools", "get_tool_schemas", "count_bytes_echo"]);
    assert!(results.iter().all(|result| result["is_error"] == false), "{results:#?}");
    let schema = &results[2]["result"]["schemas"][0]["parameters"];
    assert_eq!(schema["required"], json!(["text"]), "{schema}");
}

#[test]
fn a_tool_that_is_switched_off_is_neither_listed_nor_looked_up() {
    let house = house!();
    for name in ["echo", "probe"] {
        house.ship(&fixture(name));
    }
    let looked_up = json!({ "names": ["count_bytes_echo"] });
    house.set_script(&json!({ "answers": [
        { "steps": [tool_call("list_tools", json!({ "category": "other" }))] },
        { "steps": [tool_call("get_tool_schemas", looked_up)] },
        {
            "expect": { "tools": ["get_environment", "list_tools", "get_tool_schemas"] },
            "steps": [{ "text": "done" }],
        },
    ] }));
    house.configure_more("[tools]\ndisabled = [\"count_bytes_echo\"]\n");
    let results = run_results(&house);
    assert!(!results[0]["result"].to_string().contains("count_bytes_echo"), "{results:#?}");
    assert_eq!(results[1]["result"]["not_found"], json!(["count_bytes_echo"]), "{results:#?}");
}

#[test]
fn calls_with_the_same_id_are_all_answered() {
    let house = house!(ships "echo");
    let call = |id: &str, text: &str| json!({ "call": { "id": id, "name": "count_bytes_echo", "arguments": { "text": text } } });
    house.set_script(&json!({ "answers": [
        // Twice in one answer, and once without an id.
        { "steps": [call("same", "a"), call("same", "bb"), call("", "ccc")] },
        // Once more in the next answer.
        { "expect": { "messages": 3, "tool_result": "\"bytes\":2" }, "steps": [call("same", "dddd")] },
        { "expect": { "messages": 5, "tool_result": "\"bytes\":4" }, "steps": [{ "text": "done" }] },
    ] }));
    let results = run_results(&house);
    let mut told: Vec<_> =
        results.iter().map(|result| result["result"]["bytes"].as_u64().unwrap()).collect();
    told.sort_unstable();
    assert_eq!(told, [1, 2, 3, 4], "{results:#?}");
    let mut ids: Vec<_> =
        results.iter().map(|result| result["call_id"].as_str().unwrap()).collect();
    assert!(ids.contains(&"same"), "a usable id is kept: {ids:?}");
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 4, "each call has its own id: {results:#?}");
    assert!(ids.iter().all(|id| !id.is_empty()), "{ids:?}");
}
