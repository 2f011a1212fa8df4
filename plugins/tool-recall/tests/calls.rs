//! Tests the tool through the plugin boundary.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use jaato_plugin_sdk::serde_json::{Map, Value, json};
use jaato_plugin_sdk::types::{ErrorKind, Message, Part, ToolCall, ToolResult};
use jaato_plugin_testkit::FakeHost;

fn call_and_result(id: &str, name: &str, arguments: Value, text: &str) -> [Message; 2] {
    let call = ToolCall::new(id, name, arguments);
    let mut result = ToolResult::default();
    (result.call_id, result.name) = (call.id.clone(), call.name.clone());
    result.content = Map::from_iter([("stdout".to_owned(), json!(text))]);
    [Message::model(vec![Part::ToolCall(call)]), Message::tool(vec![result])]
}

/// Two collected turns, and one that the model still gets.
fn host_with_collected_turns() -> FakeHost {
    let mut messages = vec![Message::user("The staging database listens on port 5433.")];
    let listing = "a.rs\n".repeat(2_000) + "needle.rs\n";
    messages.extend(call_and_result("1", "cat", json!({ "path": "src/a.rs" }), &listing));
    messages.push(Message::model(vec![Part::text("I see.")]));
    messages.push(Message::user("Thanks."));
    messages.extend(call_and_result("2", "recall", json!({ "query": "port" }), "port 5433"));
    messages.push(Message::model(vec![Part::text("You are welcome.")]));
    let collected = messages.len();
    messages.push(Message::user("Which port is it?"));
    FakeHost::new(tool_recall::__jaato::MODULE).with_collected_history(messages, collected)
}

#[track_caller]
fn call_recall(arguments: Value) -> Value {
    Value::Object(host_with_collected_turns().call("recall", arguments).unwrap().content)
}

#[test]
fn words_find_the_original_text_with_its_turn() {
    let found = call_recall(json!({ "query": "Which port does the staging database use?" }));
    let expected =
        json!({ "turn": 1, "from": "user", "text": "The staging database listens on port 5433." });
    assert_eq!(found["matches"][0], expected, "{found}");
    let all = found["matches"].to_string();
    assert!(!all.contains("Which port is it?"), "messages that the model gets are not found");
    assert!(!all.contains("recall"), "results of the tool itself are not found");
}

#[test]
fn long_results_are_found_by_their_lines_and_read_page_by_page() {
    let found = call_recall(json!({ "query": "needle" }));
    let text = found["matches"][0]["text"].as_str().unwrap();
    assert!(text.contains("needle.rs") && text.len() < 2_000, "{found}");
    let first = call_recall(json!({ "path": "src/a.rs" }));
    let pages = first["pages"].as_u64().unwrap();
    let mut whole = String::new();
    for page in 1..=pages {
        let found = call_recall(json!({ "path": "src/a.rs", "page": page }));
        for passage in found["matches"].as_array().unwrap() {
            if passage["from"] == "tool cat" {
                whole += passage["text"].as_str().unwrap();
            }
        }
    }
    assert_eq!(whole, format!("stdout:\n{}needle.rs", "a.rs\n".repeat(2_000)));
}

#[test]
fn turn_is_read_in_its_order() {
    let found = call_recall(json!({ "turn": 2 }));
    let texts: Vec<&str> = found["matches"]
        .as_array()
        .unwrap()
        .iter()
        .map(|passage| passage["text"].as_str().unwrap())
        .collect();
    assert_eq!(texts, ["Thanks.", "You are welcome."]);
}

#[test]
fn call_without_a_wish_is_refused() {
    for arguments in [json!({}), json!({ "query": " " }), json!({ "path": "" })] {
        let error = host_with_collected_turns().call("recall", arguments).unwrap_err();
        assert_eq!(error.kind, ErrorKind::InvalidArguments, "{error}");
        assert!(error.message.contains("`query`, `turn` or `path`"), "{error}");
    }
    let found = call_recall(json!({ "query": "xyzzy" }));
    assert_eq!(found["found"], 0);
    assert!(found["hint"].as_str().unwrap().contains("turns 1 to 2"), "{found}");
}

jaato_plugin_testkit::conformance!(tool_recall: tool);
