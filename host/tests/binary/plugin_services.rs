//! Tests what a session provides to its plugins: other tools, models, the conversation, child
//! sessions.

use serde_json::{Value, json};

use crate::support::{House, fixture, is_isolated};

fn ship_company() -> Option<House> {
    let house = House::without_plugins()?;
    house.ship(&fixture("company"));
    Some(house)
}

/// Returns an installation with the fixture: shipped or, if plugins run in workers, as a user's
/// plugin with its grants.
fn house_with_services() -> Option<House> {
    if !is_isolated() {
        return ship_company();
    }
    let house = House::without_plugins()?;
    house.ship_to_user(&fixture("company"));
    house.run(&["plugin", "grant", "fixture-company"]).code(0);
    Some(house)
}

fn call_answer(name: &str, arguments: &Value) -> Value {
    json!({ "steps": [{ "call": { "name": name, "arguments": arguments } }] })
}

fn text_answer(text: &str) -> Value {
    json!({ "steps": [{ "text": text }], "usage": { "prompt_tokens": 9, "output_tokens": 4 } })
}

/// Runs a task in which the model calls the tool and then finishes. Returns the events.
fn play_words(house: &House, words: &[&str]) -> Vec<Value> {
    let run = [&["run", "--output", "json", "--yes", "go"], words].concat();
    let events = house.run(&run).json_lines();
    // Events of a child that ends at this moment may come later.
    let is_end =
        |it: &&Value| it["event"] == "turn_finished" && it["session"] == events[0]["session"];
    assert_eq!(events.iter().rfind(is_end).unwrap()["outcome"], "done");
    events
}

/// Returns the result of that tool's first call.
fn first_result(events: &[Value], tool: &str) -> Value {
    let is_it = |it: &&Value| it["event"] == "tool_call_finished" && it["name"] == tool;
    let found = events.iter().find(is_it).unwrap_or_else(|| panic!("no {tool} in {events:#?}"));
    found["result"].clone()
}

#[test]
fn nested_tool_call_is_checked_and_has_events_and_ledger_records() {
    let Some(house) = house_with_services() else { return };
    let arguments = json!({ "name": "echo", "arguments": "{\"text\":\"moon\"}" });
    house.set_script(
        &json!({ "answers": [call_answer("call_other", &arguments), text_answer("done")] }),
    );
    let events = play_words(&house, &[]);
    let result = first_result(&events, "call_other");
    assert_eq!(result, json!({ "of": "echo", "gave": { "echo": "moon" }, "bytes": 0 }));
    let started = |name: &str| {
        let is_it = |it: &&Value| it["event"] == "tool_call_started" && it["name"] == name;
        events.iter().find(is_it).unwrap().clone()
    };
    let (outer, inner) = (started("call_other"), started("echo"));
    assert_eq!(inner["parent"], outer["call_id"]);
    assert_eq!(inner["by"], "fixture-company");
    assert!(outer.get("by").is_none() && outer.get("parent").is_none());
    let ledger = house.run(&["ledger", "show", "--json"]).code(0);
    assert_eq!(ledger.json()["totals"]["tool_calls"], 2);
    house.assert_no_processes();
}

#[test]
fn permission_rules_apply_to_nested_tool_calls() {
    let Some(house) = ship_company() else { return };
    let arguments = json!({ "name": "change", "arguments": "{}" });
    house.set_script(
        &json!({ "answers": [call_answer("call_other", &arguments), text_answer("done")] }),
    );
    // No user is present, and only the outer call is allowed.
    let run = ["run", "--output", "json", "--allow", "call_other", "go"];
    let events = house.run(&run).json_lines();
    let error = &first_result(&events, "call_other")["error"];
    assert_eq!(error["kind"], "permission_denied", "{error:#}");
    let message = error["message"].as_str().unwrap();
    assert!(message.starts_with("the call to `change` is denied"), "{message}");
}

#[test]
fn nested_calls_are_limited_in_depth_and_number() {
    let Some(house) = house_with_services() else { return };
    // Each call makes the same call again. Three levels deep it ends.
    let mut arguments = json!({ "text": "deep" }).to_string();
    let mut name = "echo";
    for _ in 0..4 {
        arguments = json!({ "name": name, "arguments": arguments }).to_string();
        name = "call_other";
    }
    let deep: Value = serde_json::from_str(&arguments).unwrap();
    let often = json!({ "name": "echo", "arguments": "{\"text\":\"x\"}", "times": 201 });
    house.set_script(&json!({ "answers": [
        call_answer("call_other", &deep), call_answer("call_other", &often), text_answer("done"),
    ] }));
    let events = play_words(&house, &[]);
    let is_outer = |it: &&Value| {
        it["event"] == "tool_call_finished" && it["name"] == "call_other" && it["is_error"] == true
    };
    let errors: Vec<&str> = events
        .iter()
        .filter(is_outer)
        .filter_map(|it| it["result"]["error"]["message"].as_str())
        .collect();
    assert_eq!(errors.first(), Some(&"tool calls can be nested at most 3 deep"));
    assert_eq!(errors.last(), Some(&"one call may call tools at most 200 times"));
}

#[test]
fn a_tool_reads_the_conversation() {
    let Some(house) = house_with_services() else { return };
    house.set_script(&json!({ "answers": [
        call_answer("read_history", &json!({})),
        call_answer("read_history", &json!({ "last": 1 })),
        text_answer("done"),
    ] }));
    let events = play_words(&house, &[]);
    let results: Vec<Value> = events
        .iter()
        .filter(|it| it["event"] == "tool_call_finished")
        .map(|it| it["result"].clone())
        .collect();
    let first = json!({ "all": 2, "messages": [[0, "user", "go"], [1, "model", ""]] });
    assert_eq!(results[0], first);
    assert_eq!(results[1], json!({ "all": 4, "messages": [[3, "model", ""]] }));
}

#[test]
fn tool_can_ask_models_and_the_ledger_records_each_request() {
    let Some(house) = house_with_services() else { return };
    // For a request outside of the conversation, the session's model takes the next answer of its
    // script.
    house.set_script(&json!({ "answers": [
        call_answer("ask_model", &json!({ "text": "How far?" })),
        { "expect": { "prompt": "How far?", "tools": [], "messages": 1 },
          "steps": [{ "text": "Far." }], "usage": { "prompt_tokens": 5, "output_tokens": 2 } },
        call_answer(
            "ask_model",
            &json!({ "text": "And there?", "model": "other/moon", "stream": true }),
        ),
        text_answer("done"),
    ] }));
    let other = house.write(
        "other.json",
        &json!({ "answers": [
        { "expect": { "model": "moon", "prompt": "And there?" },
          "steps": [{ "text": "Very " }, { "text": "far." }] },
    ] })
        .to_string(),
    );
    house.configure_more(&format!(
        "[providers.other]\nplugin = \"provider-scripted\"\nscript = \"{}\"\n",
        other.display()
    ));
    let events = play_words(&house, &[]);
    let results: Vec<Value> = events
        .iter()
        .filter(|it| it["event"] == "tool_call_finished")
        .map(|it| it["result"].clone())
        .collect();
    let first = json!({ "model": "scripted/test", "text": "Far.", "pieces": [], "tokens": 7 });
    assert_eq!(results[0], first, "{events:#?}");
    assert_eq!(results[1]["model"], "other/moon", "{results:#?}");
    assert_eq!(results[1]["text"], "Very far.");
    let pieces: Vec<&str> =
        results[1]["pieces"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert_eq!(pieces.concat(), "Very far.");
    let told: Vec<(&str, &str)> = events
        .iter()
        .filter(|it| it["event"] == "completion_finished")
        .map(|it| (it["by"].as_str().unwrap(), it["model"].as_str().unwrap()))
        .collect();
    let by = "fixture-company";
    assert_eq!(told, [(by, "scripted/test"), (by, "other/moon")]);
    // None of it is the session's own answer.
    let said = |it: &&Value| it["event"] == "text_delta";
    let said: Vec<&str> = events.iter().filter(said).filter_map(|it| it["text"].as_str()).collect();
    assert_eq!(said, ["done"]);
    let ledger = std::fs::read_to_string(house.home().join(".local/share/jaato/ledger.jsonl"));
    let ledger = ledger.unwrap();
    assert_eq!(ledger.matches("\"stage\":\"completion\"").count(), 2, "{ledger}");
    assert!(!ledger.contains("How far?"));
}

#[test]
fn plugin_model_requests_are_limited_per_turn_and_by_user_caps() {
    let Some(house) = ship_company() else { return };
    let asking = call_answer("ask_model", &json!({ "text": "Again?", "times": 9 }));
    let answers: Vec<Value> =
        [asking].into_iter().chain((0..9).map(|_| text_answer("yes"))).collect();
    house.set_script(&json!({ "answers": answers }));
    let events = play_words(&house, &[]);
    let message = first_result(&events, "ask_model")["error"]["message"].clone();
    let expected = "after 8 answers: plugins ask models at most 8 times in a turn";
    assert_eq!(message, expected);
    let events = house.run(&["run", "--output", "json", "--yes", "--max-steps", "3", "go"]);
    let message = first_result(&events.json_lines(), "ask_model")["error"]["message"].clone();
    let message = message.as_str().unwrap();
    assert!(message.starts_with("after 2 answers: the session has reached its cap"), "{message}");
}

#[test]
fn model_asked_by_a_plugin_sees_only_the_requested_objects() {
    for (objects, shown) in [("none", None), ("contents", Some(false)), ("full", Some(true))] {
        let Some(house) = ship_company() else { return };
        let expect = match shown {
            None => json!({ "data": "[]" }),
            Some(false) => {
                json!({ "data": "\"find\":[{\"name\":\"moon\",\"_REF_ID\":\"find_1\"}]" })
            }
            Some(true) => json!({ "data": "\"metadata\":{\"place\":\"sky\"}" }),
        };
        house.set_script(&json!({ "answers": [
            call_answer("find", &json!({})),
            call_answer("ask_model", &json!({ "text": "What is there?", "objects": objects })),
            { "expect": expect, "steps": [{ "text": "seen" }] },
            text_answer("done"),
        ] }));
        let events = play_words(&house, &[]);
        let answer = first_result(&events, "ask_model");
        assert_eq!(answer["text"], "seen", "{objects}: {answer:#}");
        assert!(!events.iter().any(|it| it.to_string().contains("treasure")), "{objects}");
    }
}

#[test]
fn a_child_session_works_under_its_own_name_and_ends_with_its_call() {
    let Some(house) = house_with_services() else { return };
    let open = json!({ "text": "Say moon", "model": "other/moon", "tools": ["echo"] });
    let leave = json!({ "text": "Never end", "model": "endless/moon", "leave": true });
    house.set_script(&json!({ "answers": [
        call_answer("open_child", &open), call_answer("open_child", &leave), text_answer("done"),
    ] }));
    let other = json!({ "answers": [
        { "expect": { "prompt": "Say moon", "tools": ["echo"] },
          "steps": [{ "call": { "name": "echo", "arguments": { "text": "moon" } } }] },
        { "expect": { "tool_result": "moon" }, "steps": [{ "text": "It says moon." }] },
    ] });
    let other = house.write("other.json", &other.to_string());
    let endless = json!({ "answers": [{ "steps": [{ "text": "so" }, "hang"] }] });
    let endless = house.write("endless.json", &endless.to_string());
    for (name, script) in [("other", other), ("endless", endless)] {
        house.configure_more(&format!(
            "[providers.{name}]\nplugin = \"provider-scripted\"\nscript = \"{}\"\n",
            script.display()
        ));
    }
    let events = play_words(&house, &[]);
    let answer = first_result(&events, "open_child");
    assert_eq!(answer["text"], "It says moon.", "{answer:#}");
    assert_eq!((&answer["outcome"], &answer["steps"]), (&json!("done"), &json!(2)));
    let started: Vec<&Value> =
        events.iter().filter(|it| it["event"] == "session_started").collect();
    let [main, child, left] = started.as_slice() else { panic!("{started:#?}") };
    assert_eq!(child["agent"], "helper");
    assert_eq!(child["opener"], main["session"]);
    assert_eq!(child["tools"], json!(["echo"]));
    let echoed = |it: &&Value| it["event"] == "tool_call_finished" && it["name"] == "echo";
    let echoed: Vec<&Value> = events.iter().filter(echoed).collect();
    assert_eq!(echoed[0]["session"], child["session"]);
    // The remaining child ended with the call that opened it.
    let ended = |it: &&Value| it["event"] == "turn_finished" && it["session"] == left["session"];
    let ended: Vec<&Value> = events.iter().filter(ended).collect();
    assert!(ended.iter().all(|it| it["outcome"] == "cancelled"), "{ended:#?}");
    house.assert_no_processes();
}

#[test]
fn child_sessions_are_limited_in_number_depth_and_tools() {
    let Some(house) = ship_company() else { return };
    let nested = json!({ "text": "deeper", "model": "deep/moon" });
    let strange = json!({ "text": "x", "tools": ["echo", "no_such_tool"] });
    house.set_script(&json!({ "answers": [
        call_answer("open_many", &json!({})),
        call_answer("open_child", &nested),
        call_answer("open_child", &strange),
        text_answer("done"),
    ] }));
    let deep = json!({ "answers": [call_answer("open_child", &nested), text_answer("bottom")] });
    let deep = house.write("deep.json", &deep.to_string());
    house.configure_more(&format!(
        "[providers.deep]\nplugin = \"provider-scripted\"\nscript = \"{}\"\n",
        deep.display()
    ));
    let events = play_words(&house, &[]);
    let many = first_result(&events, "open_many");
    assert_eq!(many, json!({ "opened": 128, "why": "128 child sessions are already open" }));
    let errors: Vec<&str> = events
        .iter()
        .filter(|it| it["event"] == "tool_call_finished" && it["name"] == "open_child")
        .filter_map(|it| it["result"]["error"]["message"].as_str())
        .collect();
    assert_eq!(errors[0], "sessions can be nested at most 2 deep", "{errors:#?}");
    assert!(errors[1].contains("no_such_tool"), "{errors:#?}");
}

#[test]
fn plugin_without_a_grant_is_refused_and_continues() {
    let Some(house) = House::without_plugins() else { return };
    house.ship_to_user(&fixture("company"));
    let arguments = json!({ "name": "echo", "arguments": "{\"text\":\"moon\"}" });
    house.set_script(&json!({ "answers": [
        call_answer("call_other", &arguments), call_answer("echo", &json!({ "text": "still here" })), text_answer("done"),
    ] }));
    let events = play_words(&house, &[]);
    let error = first_result(&events, "call_other")["error"].clone();
    assert_eq!(error["kind"], "permission_denied");
    assert_eq!(error["hint"], "jaato plugin grant fixture-company tools.call");
    assert_eq!(first_result(&events, "echo"), json!({ "echo": "still here" }));
}
