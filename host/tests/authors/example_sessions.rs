//! Tests examples in a session: the user answers and the model calls, in a worker and inside jaato.

use std::fs;

use serde_json::{Value, json};

use super::house_with_example;
use crate::support::command::Running;
use crate::support::{House, fixtures, library_name};

/// An untrusted plugin runs in a worker, a trusted one inside jaato.
const PLACES: [&str; 2] = ["in a worker", "inside jaato"];

/// Returns an installation with the example, which runs in that place.
#[track_caller]
fn set_up_house(example: &str, place: &str) -> Option<House> {
    let house = house_with_example(example)?;
    if place == "inside jaato" {
        let list = house.run(&["plugin", "list", "--json"]).code(0).json();
        let plugins = list["plugins"].as_array().unwrap();
        let listed = plugins.iter().find(|plugin| plugin["name"] == example).unwrap();
        let file = house.user_plugins().join(library_name(&example.replace('-', "_")));
        let digest = listed["sha256"].as_str().unwrap();
        house.run(&["plugin", "trust", file.to_str().unwrap(), "--sha256", digest]).code(0);
    }
    Some(house)
}

/// Scripts a model that calls a tool and then finishes.
fn script_one_call(house: &House, tool: &str, arguments: &Value) {
    let call = json!({ "call": { "name": tool, "arguments": arguments } });
    house.set_script(
        &json!({ "answers": [{ "steps": [call] }, { "steps": [{ "text": "done" }] }] }),
    );
}

/// Returns how the first call to a tool ended.
#[track_caller]
fn finished_call(lines: &[Value], tool: &str) -> Value {
    let is_it = |it: &&Value| it["event"] == "tool_call_finished" && it["name"] == tool;
    lines.iter().find(is_it).unwrap_or_else(|| panic!("no {tool} in {lines:#?}")).clone()
}

#[track_caller]
fn wait_for_event(running: &Running, name: &str) -> Value {
    serde_json::from_str(&running.wait_for(&format!("\"event\":\"{name}\""))).unwrap()
}

fn write_answer(running: &mut Running, answer: &Value) {
    running.write(format!("{}\n", json!({ "answer": answer })).as_bytes());
}

#[test]
fn dice_tool_asks_the_user_for_a_die_and_keeps_the_throws() {
    for place in PLACES {
        let Some(house) = set_up_house("tool-dice", place) else { return };
        let alone = house.run(&["call", "throw_die"]).code(0).json();
        assert_eq!((&alone["die"], &alone["chosen_by"]), (&json!("d6"), &json!("nobody")));
        house.run(&["plugin", "grant", "tool-dice"]).code(0);
        script_one_call(&house, "throw_die", &json!({}));
        let mut running = house.command(&["run", "--output", "json", "--answers", "go"]).start();
        let id = wait_for_event(&running, "permission_asked")["call_id"].clone();
        write_answer(&mut running, &json!({ "call_id": id, "decision": "allow_once" }));
        let asked = wait_for_event(&running, "form_asked");
        assert_eq!(asked["form"]["title"], "A throw", "{asked:#}");
        let values = json!({ "die": "d100" });
        let id = asked["form_id"].clone();
        let form = json!({ "form_id": id, "outcome": "answered", "values": values });
        write_answer(&mut running, &form);
        let output = running.finish().code(0);
        let result = finished_call(&output.json_lines(), "throw_die")["result"].clone();
        assert_eq!((&result["die"], &result["chosen_by"]), (&json!("d100"), &json!("person")));
        assert_eq!(result["last"], json!([result["thrown"], alone["thrown"]]), "{place}");
        let kept = house.run(&["call", "last_throws"]).code(0).json();
        assert_eq!(kept["last"], result["last"], "{place}");
        house.assert_no_processes();
    }
}

#[test]
fn a_recipe_of_the_workspace_is_a_tool_of_the_session() {
    for place in PLACES {
        let Some(house) = set_up_house("tool-recipes", place) else { return };
        // The example reads this environment's files.
        let Some(built) = fixtures::test_house() else { return };
        house.ship(&built.join("plugins").join(library_name("environment_local")));
        let folder = house.workspace().join("recipes");
        fs::create_dir_all(&folder).unwrap();
        let recipe = |name: &str| {
            format!(
                "name = '{name}'\ndescription = 'Greets.'\ntemplate = 'hello {{who}}'\nparameters = {{ who = 'Whom.' }}"
            )
        };
        fs::write(folder.join("a.recipe.toml"), recipe("greet")).unwrap();
        // jaato has a tool with that name, so only that recipe is refused.
        fs::write(folder.join("b.recipe.toml"), recipe("list_tools")).unwrap();
        script_one_call(&house, "greet", &json!({ "who": "Ada" }));
        let output = house.run(&["run", "--output", "json", "--yes", "go"]).code(0);
        let lines = output.json_lines();
        assert_eq!(
            finished_call(&lines, "greet")["result"],
            json!({ "result": "hello Ada" }),
            "{place}"
        );
        let shown = house.run(&["command", "recipes"]).code(0).json();
        assert_eq!(shown, json!({ "result": "greet: Greets." }), "{place}");
        house.assert_no_processes();
    }
}

#[test]
fn chart_tool_returns_a_picture_and_a_text() {
    for place in PLACES {
        let Some(house) = set_up_house("tool-chart", place) else { return };
        let arguments =
            json!({ "title": "Rain", "kind": "line", "labels": ["May", "June"], "values": [1, 2] });
        script_one_call(&house, "draw_chart", &arguments);
        let output = house.run(&["run", "--output", "json", "--yes", "go"]).code(0);
        let done = finished_call(&output.json_lines(), "draw_chart");
        let words = "Rain. From left to right, on an axis from 0 to 2: May: 1, June: 2";
        assert_eq!(done["result"], json!({ "chart": words, "has_picture": true }), "{place}");
        house.assert_no_processes();
    }
}
