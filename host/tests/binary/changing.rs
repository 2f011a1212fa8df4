//! Tests plugins whose tools change while they run: which changes are accepted, which are refused,
//! and when they take effect.

use serde_json::{Value, json};

use crate::support::{House, fixture};

fn set_up_house(answers: &Value) -> Option<House> {
    let house = House::new()?;
    house.ship(&fixture("changes"));
    house.set_script(&json!({ "answers": answers }));
    Some(house)
}

fn call_answer(name: &str, arguments: &Value) -> Value {
    json!({ "steps": [{ "call": { "name": name, "arguments": arguments } }] })
}

fn change_call(how: &str) -> Value {
    call_answer("change", &json!({ "how": how }))
}

fn text_answer(text: &str) -> Value {
    json!({ "steps": [{ "text": text }] })
}

/// Returns the results of a run's calls, in order.
fn run_results(house: &House) -> Vec<Value> {
    let events = house.run(&["run", "--output", "json", "go"]).json_lines();
    let finished = events.into_iter().filter(|it| it["event"] == "tool_call_finished");
    finished.map(|it| it["result"].clone()).collect()
}

#[test]
fn plugin_can_set_at_most_1000_tools_and_only_once_a_second() {
    let answers = json!([change_call("many"), text_answer("done")]);
    let Some(house) = set_up_house(&answers) else { return };
    let [many] = run_results(&house).try_into().unwrap();
    assert_eq!(many["tools"], 1_000, "{many:#}");
    let refused = many["refused"].to_string();
    assert!(refused.contains("each tool from the 1001th on"), "{refused}");
    let answers = json!([change_call("fast"), text_answer("done")]);
    let Some(house) = set_up_house(&answers) else { return };
    let [fast] = run_results(&house).try_into().unwrap();
    let taken = fast["taken"].as_u64().unwrap();
    // A hundred changes take as long as the machine needs. One per second is accepted, and hardly
    // more.
    assert!((1..=20).contains(&taken), "{fast:#}");
    assert_eq!(fast["refused"], "a plugin can set its tools at most once per second");
    house.assert_no_processes();
}

#[test]
fn invalid_dynamic_tool_is_refused_alone_and_the_plugin_gets_the_reason() {
    let Some(house) = set_up_house(&json!([change_call("bad"), text_answer("done")])) else {
        return;
    };
    let [bad] = run_results(&house).try_into().unwrap();
    assert_eq!(bad["tools"], 1, "{bad:#}");
    let refused: Vec<&str> =
        bad["refused"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    for name in
        ["change", "list_tools", "get_environment", "no name", "shapeless", "long", "broken"]
    {
        let is_told = refused.iter().any(|line| line.contains(name));
        assert!(is_told, "{name} in {refused:#?}");
    }
    assert!(refused.contains(&"list_tools: jaato has a tool with that name"), "{refused:#?}");
    let broken = "broken: its schema does not compile: \
                  Pointer '/components/schemas/Limit' does not exist";
    assert!(refused.contains(&broken), "{refused:#?}");
}

#[test]
fn tool_that_is_set_when_a_session_begins_can_be_listed_shown_and_named() {
    let greet = call_answer("greet_mars", &json!({}));
    let Some(house) = set_up_house(&json!([greet, text_answer("done")])) else { return };
    house.configure_more("[plugins.fixture-changes]\nfirst = [\"greet_mars\", \"broken\"]\n");
    let list = house.run(&["tool", "list", "--json"]).code(0).json();
    let names = list.as_array().unwrap().iter().filter_map(|tool| tool["name"].as_str());
    let names: Vec<&str> = names.filter(|name| ["greet_mars", "broken"].contains(name)).collect();
    assert_eq!(names, ["greet_mars"], "a tool whose schema does not compile is not offered");
    house.wait_for_log("`broken` is refused: its schema does not compile");
    let shown = house.run(&["tool", "show", "greet_mars", "--json"]).code(0).json();
    assert_eq!(shown["plugin"], "fixture-changes");
    let options = ["--tools", "greet_mars", "--allow", "fixture-changes:greet_mars"];
    let run = house.run(&[&["run"], &options[..], &["go"]].concat()).code(0);
    assert!(run.stdout.contains("done") && run.stderr.contains("✓"), "{run}");
    for option in ["--tools", "--allow"] {
        let near = house.run(&["run", option, "greet_mar", "go"]).code(2);
        assert!(near.stderr.contains("there is no tool `greet_mar`"), "{near}");
        assert!(near.stderr.contains("did you mean `greet_mars`?"), "{near}");
    }
    house.assert_no_processes();
}

#[test]
fn dynamic_tools_commands_and_instructions_apply_from_the_next_step() {
    let answers = json!([
        // The model learns of them at once, and may call them in the same turn.
        change_call("some"),
        { "expect": { "data": "own is mine, theirs is not" },
          "steps": [{ "call": { "name": "own", "arguments": {} } }] },
        text_answer("first"), call_answer("own", &json!({})), call_answer("own", &json!({ "extra": 1 })), call_answer("theirs", &json!({})), call_answer("gone", &json!({})),
        text_answer("second"),
    ]);
    let Some(house) = set_up_house(&answers) else { return };
    let chat = house.command(&["chat"]).input("one\ntwo\n/late\n").run();
    let errors = &chat.stderr;
    assert_eq!(errors.matches("✓ ran own").count(), 2, "{errors}");
    // Its schema is enforced, but its promises do not count.
    assert!(errors.contains("extra"), "{errors}");
    assert!(errors.contains("the call to `theirs` is denied"), "{errors}");
    assert!(errors.contains("it is gone by now"), "{errors}");
    assert!(chat.stdout.contains("the command late ran"), "{}", chat.stdout);
    assert!(chat.stdout.contains("second"), "{}", chat.stdout);
    house.assert_no_processes();
}
