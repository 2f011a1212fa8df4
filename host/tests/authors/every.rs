//! Checks every example: it runs in a worker while it is untrusted, and inside jaato once it is
//! trusted.

use std::fs;

use serde_json::{Value, json};

use super::{built_example, example_names, has_sandbox};
use crate::support::{House, Output, library_name};

/// Error kinds which mean that a plugin returned no answer.
const NO_ANSWER: [&str; 6] =
    ["plugin_crashed", "plugin_panicked", "plugin_misbehaved", "host_bug", "timeout", "other"];

/// Returns a plugin's entry in `plugin list --json`.
#[track_caller]
fn listed_plugin(house: &House, name: &str) -> Value {
    let list = house.run(&["plugin", "list", "--json"]).code(0).json();
    let plugins = list["plugins"].as_array().unwrap();
    let found = plugins.iter().find(|plugin| plugin["name"] == name);
    found.unwrap_or_else(|| panic!("`{name}` is not listed: {list:#}")).clone()
}

/// Returns where a plugin runs, without the reason.
fn run_location(entry: &Value) -> &str {
    entry["runs"].as_str().and_then(|text| text.split(", ").next()).unwrap_or_default()
}

/// Returns every example of a plugin's tools as lines of a batch.
fn example_calls(house: &House, plugin: &str) -> Vec<Value> {
    let tools = house.run(&["tool", "list", "--json"]).code(0).json();
    let own = tools.as_array().unwrap().iter().filter(|tool| tool["plugin"] == plugin);
    let of_tool = |tool: &Value| {
        let (name, examples) = (tool["name"].clone(), tool["examples"].clone());
        let examples = examples.as_array().cloned().unwrap_or_default();
        examples.into_iter().map(move |example| {
            let arguments = example.get("arguments").cloned().unwrap_or_else(|| json!({}));
            json!({ "tool": name, "args": arguments })
        })
    };
    own.flat_map(of_tool).collect()
}

/// Uses everything that a plugin offers. A tool may return an error, but only one of its own.
#[track_caller]
fn call_all_examples(house: &House, name: &str) {
    let calls = example_calls(house, name);
    if !calls.is_empty() {
        let lines: String = calls.iter().map(|call| format!("{call}\n")).collect();
        let output = house.command(&["call", "--batch"]).input(lines).run();
        let answers = output.json_lines();
        assert_eq!(answers.len(), calls.len(), "{name}: {output}");
        for answer in &answers {
            let kind = answer["error"]["kind"].as_str().unwrap_or_default();
            assert!(!NO_ANSWER.contains(&kind), "{name}: {answer:#}\n{output}");
        }
    }
    match name.split_once('-') {
        Some(("environment", environment)) if has_sandbox() => {
            assert_answer(
                &house.run(&["environment", "show", "--environment", environment]),
                environment,
            );
        }
        Some(("provider", provider)) => {
            assert_answer(&house.run(&["provider", "list"]), provider);
        }
        Some(_) | None => {}
    }
}

#[track_caller]
fn assert_answer(output: &Output, word: &str) {
    assert!(output.code == 0 && output.stdout.contains(word), "{output}");
}

#[test]
fn every_example_runs_in_a_worker_and_once_trusted_inside_jaato() {
    let Some(house) = House::new() else { return };
    let examples = example_names();
    assert!(examples.len() >= 4, "{examples:?}");
    for name in &examples {
        let Some(library) = built_example(name) else { continue };
        let place = house.user_plugins().join(library_name(&name.replace('-', "_")));
        fs::create_dir_all(house.user_plugins()).unwrap();
        fs::copy(library, &place).unwrap();
        let entry = listed_plugin(&house, name);
        assert_eq!(
            (&entry["status"], run_location(&entry)),
            (&json!("not_trusted"), "in a worker")
        );
        call_all_examples(&house, name);

        let digest = entry["sha256"].as_str().unwrap();
        house.run(&["plugin", "trust", place.to_str().unwrap(), "--sha256", digest]).code(0);
        let entry = listed_plugin(&house, name);
        let is_apart = entry["manifest"]["isolation"] == "worker";
        let place = if is_apart { "in a worker" } else { "inside jaato" };
        assert_eq!(
            (&entry["status"], run_location(&entry)),
            (&json!("active"), place),
            "{entry:#}"
        );
        call_all_examples(&house, name);
        house.assert_no_processes();
    }
}
