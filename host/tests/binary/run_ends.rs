//! Tests how `jaato run` ends: the exit code, the outcome in the events, and the deadline.

use serde_json::{Value, json};

use crate::house;
use crate::support::House;

fn call_answer(name: &str, arguments: Value) -> Value {
    json!({ "steps": [{ "call": { "name": name, "arguments": arguments } }] })
}

fn look_answer() -> Value {
    call_answer("get_environment", json!({ "aspect": "os" }))
}

fn text_answer(text: &str) -> Value {
    json!({ "steps": [{ "text": text }] })
}

/// Runs a script, and checks the exit code and the outcome in the events.
#[track_caller]
fn check_end(house: &House, answers: Value, words: &[&str], expected: (i32, &str)) {
    house.set_script(&json!({ "answers": answers }));
    let text = house.run(&[&["run", "go"], words].concat());
    house.set_script(&json!({ "answers": answers }));
    let events = house.run(&[&["run", "--output", "json", "go"], words].concat());
    assert_eq!(text.code, expected.0, "{text}");
    assert_eq!(events.code, expected.0, "{events}");
    let last = events.json_lines().pop().unwrap();
    assert_eq!((&last["event"], &last["outcome"]), (&json!("turn_finished"), &json!(expected.1)));
    house.assert_no_processes();
}

#[test]
fn every_end_has_its_exit_code_and_outcome() {
    let house = house!(ships "probe");
    let fails = json!({ "steps": [{ "fail": { "kind": "provider", "message": "gone" } }] });
    let hangs = json!({ "steps": [{ "text": "so far" }, "hang"] });
    check_end(&house, json!([look_answer(), text_answer("done")]), &[], (0, "done"));
    check_end(&house, json!([fails]), &[], (5, "failed"));
    check_end(
        &house,
        json!([look_answer(), text_answer("done")]),
        &["--max-steps", "1"],
        (6, "limit"),
    );
    check_end(
        &house,
        json!([call_answer("count", json!({})), text_answer("done")]),
        &[],
        (6, "denied"),
    );
    check_end(&house, json!([hangs]), &["--deadline", "100ms"], (6, "limit"));
    // The model claims success after each of its calls has failed.
    let broken = call_answer("panic", json!({ "place": "nowhere" }));
    check_end(&house, json!([broken, text_answer("all is well")]), &["--yes"], (1, "done"));
}

#[test]
fn run_at_its_deadline_is_saved_and_can_be_continued() {
    let house = house!(ships "probe");
    let wait = json!({ "name": "wait", "arguments": { "key": "k" } });
    house.set_script(
        &json!({ "answers": [{ "steps": [{ "text": "I wait." }, { "call": wait }] }] }),
    );
    let output = house.run(&["run", "--yes", "--deadline", "1s", "go"]).code(6);
    let told =
        "error: the task has reached its deadline of 1s\nhint: allow more time with `--deadline`\n";
    assert!(output.stderr.ends_with(told), "{output}");
    house.assert_no_processes();
    // The provider continues to count.
    house.set_script(&json!({ "answers": [text_answer("not this"), text_answer("It goes on.")] }));
    let output = house.run(&["run", "--continue", "and now?"]).code(0);
    assert_eq!(output.stdout, "It goes on.\n");
}

#[test]
fn wrong_deadline_is_refused() {
    let house = house!();
    for wrong in ["90", "0s", "soon"] {
        let output = house.run(&["run", "--deadline", wrong, "go"]).code(2);
        assert!(output.stderr.contains("use a time such as 90s, 10m or 1h30m"), "{output}");
    }
}

#[test]
fn reader_that_is_gone_ends_the_run_with_exit_code_1() {
    let house = house!();
    let many: Vec<Value> = (0..2000).map(|_| json!({ "text": "x".repeat(100) })).collect();
    house.set_script(&json!({ "answers": [{ "steps": many }] }));
    for form in ["text", "json"] {
        let words = ["run", "--output", form, "go"];
        let output = house.command(&words).run_into_closed_output(10);
        assert_eq!(output.code, 1, "{output}");
        house.assert_no_processes();
    }
}

/// The messages of a conversation, without times.
fn message_contents(lines: &[Value]) -> Vec<Value> {
    let kept = |line: &Value| json!({ "role": line["role"], "parts": line["parts"], "model": line["model"] });
    lines.iter().filter(|line| line["role"].is_string()).map(kept).collect()
}

#[test]
fn events_rebuild_the_saved_conversation() {
    let house = house!(ships "probe");
    house.write("workspace/notes.txt", "The moon is full.");
    let usage = json!({ "prompt_tokens": 20, "output_tokens": 5 });
    house.set_script(&json!({ "answers": [
        { "steps": [
            { "thought": "I look." },
            { "text": "Let me look." },
            { "call": { "id": "c1", "name": "get_environment", "arguments": { "aspect": "os" } } },
            { "call": { "id": "c2", "name": "count", "arguments": {} } },
            { "call": { "id": "c3", "name": "no_such_tool", "arguments": { "a": [1] } } },
            { "call": { "id": "c4", "name": "get_environment", "arguments": "os" } },
        ], "usage": usage },
        { "steps": [{ "text": "It is " }, { "text": "Linux." }], "usage": usage },
    ] }));
    house.configure_more("[models.\"scripted/test\"]\nprice = { input = 100, output = 100 }\n");
    let words = ["run", "--output", "json", "--attach", "notes.txt", "What system is this?"];
    let events = house.run(&words).code(6).json_lines();
    let session = events[0]["session"].as_str().unwrap();
    let exported = house.run(&["session", "export", session, "--format", "json"]).code(0);
    let told: Vec<Value> =
        events.iter().filter(|line| line["event"] == "message_added").cloned().collect();
    let rebuilt = message_contents(&told);
    assert_eq!(rebuilt, message_contents(&exported.json_lines()));
    let roles: Vec<&Value> = rebuilt.iter().map(|message| &message["role"]).collect();
    assert_eq!(roles, ["user", "model", "tool", "model"]);
    // What the record does not have: the model, permissions, usage with its cost, and the outcome.
    let all = |name: &str| -> Vec<&Value> {
        events.iter().filter(|line| line["event"] == name).collect()
    };
    assert_eq!(events[0]["model"], "scripted/test");
    let decided: Vec<_> = all("permission_decided")
        .iter()
        .map(|it| (it["call_id"].as_str().unwrap(), it["allowed"].as_bool().unwrap()))
        .collect();
    assert_eq!(decided, [("c1", true), ("c2", false)]);
    let costs: Vec<_> = all("usage").iter().map(|it| it["cost_micro_usd"].clone()).collect();
    assert_eq!(costs, [2500, 2500]);
    assert_eq!(all("turn_finished")[0]["outcome"], "denied");
}

#[test]
fn events_have_calls_that_never_began() {
    let house = house!();
    house.set_script(&json!({ "answers": [look_answer()] }));
    let events =
        house.run(&["run", "--output", "json", "--max-steps", "1", "go"]).code(6).json_lines();
    assert!(events.iter().all(|line| line["event"] != "tool_call_started"));
    let told: Vec<Value> =
        events.iter().filter(|line| line["event"] == "message_added").cloned().collect();
    let exported = house.run(&[
        "session",
        "export",
        events[0]["session"].as_str().unwrap(),
        "--format",
        "json",
    ]);
    assert_eq!(message_contents(&told), message_contents(&exported.code(0).json_lines()));
    assert_eq!(told[1]["parts"][0]["name"], "get_environment");
    assert!(told.last().unwrap()["partial"].as_bool().unwrap());
}
