//! Tests plugin tools that are offered, or run automatically, when conditions hold.

use serde_json::{Value, json};

use crate::house;
use crate::support::{House, fixture};

fn catch_call(count: u32) -> Value {
    json!({ "call": { "name": "catch_fish", "arguments": { "count": count } } })
}

#[test]
fn tools_become_available_with_objects_and_run_by_themselves() {
    let Some(house) = House::new() else { return };
    house.ship(&fixture("awaits"));
    let fry = json!({ "call": { "name": "fry_fish", "arguments": {} } });
    let warn = json!({ "call": { "name": "warn_of_weight", "arguments": { "over": 1 } } });
    let own = ["list_tools", "get_tool_schemas"];
    let tools =
        |more: &[&'static str]| [&["catch_fish", "get_environment"], &own[..], more].concat();
    house.set_script(&json!({ "answers": [
        {
            // The tool says that it ran automatically, and with which arguments.
            "expect": {
                "tools": tools(&[]),
                "data": "\"tool_ran_by_itself\":\"warn_of_weight\"",
            },
            "steps": [fry],
        },
        {
            "expect": { "tool_result": "the tool `fry_fish` is not available: once `catch_fish` has caught some" },
            "steps": [warn],
        },
        {
            "expect": { "tool_result": "the tool `warn_of_weight` is not available: it comes by itself" },
            "steps": [catch_call(3)],
        },
        {
            "expect": {
                "tools": tools(&["view_environment", "fry_fish"]),
                "data": "\"because\":\"there are objects of `catch_fish`\",\"arguments\":{},\"result\":{\"weighed\":3}",
            },
            "steps": [fry],
        },
        { "expect": { "tool_result": "\"fried\":3" }, "steps": [catch_call(0)] },
        // Tools in earlier requests stay listed until the next cut.
        {
            "expect": { "tools": tools(&["view_environment", "fry_fish"]) },
            "steps": [{ "text": "done" }],
        },
    ] }));
    let lines = house.run(&["run", "--yes", "--output", "json", "dinner"]).code(0).json_lines();
    let calls = lines.iter().filter(|line| line["event"] == "tool_call_finished");
    let calls: Vec<_> = calls.map(|it| it["name"].as_str().unwrap().to_owned()).collect();
    let expected = [
        "warn_of_weight",
        "fry_fish",
        "warn_of_weight",
        "catch_fish",
        "warn_of_weight",
        "weigh_fish",
        "fry_fish",
        "catch_fish",
        "warn_of_weight",
    ];
    assert_eq!(calls, expected);
    house.assert_no_processes();
}

#[test]
fn self_running_tool_needs_permission_like_any_call() {
    let house = house!(ships "awaits");
    house.set_script(&json!({ "answers": [{ "steps": [{ "text": "done" }] }] }));
    let output = house.run(&["run", "go"]).code(6);
    assert!(output.stderr.contains("`warn_of_weight` is denied"), "{output}");
}

#[test]
fn user_sees_tool_conditions_and_can_call_the_tool_anyway() {
    let house = house!(ships "awaits");
    let list = house.run(&["tool", "list"]).code(0).stdout;
    assert!(list.contains("enabled, if there are objects of `catch_fish`"), "{list}");
    assert!(
        list.contains("enabled, runs automatically if there are objects of `catch_fish`"),
        "{list}"
    );
    let show = house.run(&["tool", "show", "warn_of_weight"]).code(0).stdout;
    assert!(show.contains("it is offered to a model if its plugin says so (never)\n"), "{show}");
    assert!(show.contains("it runs automatically if its plugin says so\n"), "{show}");
    let json = house.run(&["tool", "show", "fry_fish", "--json"]).code(0).json();
    let offer = json!({
        "when": "objects_of",
        "tool": "catch_fish",
        "reason": "once `catch_fish` has caught some",
    });
    assert_eq!(json["available_if"], offer);
    assert_eq!(json.get("run_if"), None);
    let fried = house.run(&["call", "fry_fish", "{}"]).code(0).json();
    assert_eq!(fried, json!({ "fried": 0 }));
}
