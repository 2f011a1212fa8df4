//! Tests plugins whose tools change while they run: which changes are accepted, which are refused,
//! and when they take effect.

use serde_json::{Value, json};

use crate::support::{House, fixture};

fn set_up_house(answers: &Value) -> Option<House> {
    let house = House::new()?;
    house.ship(&fixture("changes"));
    house.script(&json!({ "answers": answers }));
    Some(house)
}

fn call(name: &str, arguments: &Value) -> Value {
    json!({ "steps": [{ "call": { "name": name, "arguments": arguments } }] })
}

fn change_call(how: &str) -> Value {
    call("change", &json!({ "how": how }))
}

fn text(text: &str) -> Value {
    json!({ "steps": [{ "text": text }] })
}

/// Returns the results of a run's calls, in order.
fn results(house: &House) -> Vec<Value> {
    let events = house.run(&["run", "--output", "json", "go"]).json_lines();
    let finished = events.into_iter().filter(|it| it["event"] == "tool_call_finished");
    finished.map(|it| it["result"].clone()).collect()
}

#[test]
fn plugin_can_set_at_most_1000_tools_and_only_once_a_second() {
    let answers = json!([change_call("many"), text("done")]);
    let Some(house) = set_up_house(&answers) else { return };
    let [many] = results(&house).try_into().unwrap();
    assert_eq!(many["tools"], 1_000, "{many:#}");
    let refused = many["refused"].to_string();
    assert!(refused.contains("each tool from the 1001th on"), "{refused}");
    let answers = json!([change_call("fast"), text("done")]);
    let Some(house) = set_up_house(&answers) else { return };
    let [fast] = results(&house).try_into().unwrap();
    let taken = fast["taken"].as_u64().unwrap();
    // A hundred changes take as long as the machine needs. One per second is accepted, and hardly
    // more.
    assert!((1..=20).contains(&taken), "{fast:#}");
    assert_eq!(fast["refused"], "a plugin sets its tools at most once a second");
    house.nothing_lives();
}

#[test]
fn invalid_dynamic_tool_is_refused_alone_and_the_plugin_gets_the_reason() {
    let Some(house) = set_up_house(&json!([change_call("bad"), text("done")])) else { return };
    let [bad] = results(&house).try_into().unwrap();
    assert_eq!(bad["tools"], 1, "{bad:#}");
    let refused: Vec<&str> =
        bad["refused"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    for name in ["change", "list_tools", "get_environment", "no name", "shapeless", "long"] {
        let is_told = refused.iter().any(|line| line.contains(name));
        assert!(is_told, "{name} in {refused:#?}");
    }
    assert!(refused.contains(&"list_tools: jaato has a tool with that name"), "{refused:#?}");
}

#[test]
fn dynamic_tools_commands_and_instructions_apply_from_the_next_step() {
    let answers = json!([
        // The model learns of them at once, and may call them in the same turn.
        change_call("some"),
        { "expect": { "data": "own is mine, theirs is not" },
          "steps": [{ "call": { "name": "own", "arguments": {} } }] },
        text("first"), call("own", &json!({})), call("own", &json!({ "extra": 1 })), call("theirs", &json!({})), call("gone", &json!({})),
        text("second"),
    ]);
    let Some(house) = set_up_house(&answers) else { return };
    let chat = house.command(&["chat"]).input("one\ntwo\n/late\n").run();
    let errors = &chat.stderr;
    assert_eq!(errors.matches("✓ ran own").count(), 2, "{errors}");
    // Its schema is enforced, but its promises do not count.
    assert!(errors.contains("extra"), "{errors}");
    assert!(errors.contains("the call of `theirs` is denied"), "{errors}");
    assert!(errors.contains("it is gone by now"), "{errors}");
    assert!(chat.stdout.contains("the command late ran"), "{}", chat.stdout);
    assert!(chat.stdout.contains("second"), "{}", chat.stdout);
    house.nothing_lives();
}
