//! Tests the gate: what a model may call, and what ends with exit code 6 because no user can be
//! asked.

use expect_test::expect;
use serde_json::{Value, json};

use crate::gate_rules::write_gate_rules;
use crate::house;
use crate::support::{House, fixture};

/// `count` promises nothing, so it needs a prompt. `echo` is read-only.
fn script_call(tool: &str, result: &str) -> Value {
    json!({ "answers": [
        { "steps": [{ "call": { "name": tool, "arguments": { "text": "t" } } }] },
        { "expect": { "tool_result": result }, "steps": [{ "text": "done" }] },
    ] })
}

fn house_with_counter(result: &str) -> Option<House> {
    let house = House::new()?;
    write_gate_rules(&house);
    house.ship(&fixture("probe"));
    house.set_script(&json!({ "answers": [
        { "steps": [{ "call": { "name": "count", "arguments": {} } }] },
        { "expect": { "tool_result": result }, "steps": [{ "text": "done" }] },
    ] }));
    Some(house)
}

#[test]
fn call_is_denied_when_no_user_can_be_asked() {
    let Some(house) = house_with_counter("permission_denied") else { return };
    let output = house.run(&["run", "count"]).code(6);
    expect![[r#"
        exit 6
        --- stdout
        done
        --- stderr
        [fixture-probe] count
          fixture-probe │ ✗ the call to `count` is denied: tool `count` needs permission, and no user can be asked (standard input is not a terminal) (rule `ask.silence`)
          fixture-probe │   hint: allow it with `--allow count`, or everything with `--yes`
        a call was denied because no user could be asked
    "#]].assert_eq(&output.to_string());
    let output = house.run(&["run", "--output", "json", "count"]).code(6);
    let lines = output.json_lines();
    let decided = lines.iter().find(|line| line["event"] == "permission_decided").unwrap();
    assert_eq!(decided["allowed"], false);
    assert_eq!(lines.last().unwrap()["outcome"], "denied");
}

#[test]
fn an_allowed_tool_runs() {
    let Some(house) = house_with_counter("\"count\":1") else { return };
    let output = house.run(&["run", "--allow", "count", "count"]).code(0);
    assert_eq!(output.stdout, "done\n", "{output}");
    house.run(&["run", "--allow", "echo,count", "count"]).code(0);
}

#[test]
fn allowing_another_tool_does_not_allow_the_call() {
    let Some(house) = house_with_counter("permission_denied") else { return };
    house.run(&["run", "--allow", "echo", "count"]).code(6);
}

#[test]
fn yes_allows_every_tool() {
    let Some(house) = house_with_counter("\"count\":1") else { return };
    house.run(&["run", "--yes", "count"]).code(0);
}

#[test]
fn a_disabled_tool_is_refused_even_with_yes() {
    let Some(house) = house_with_counter("tool_disabled") else { return };
    house.configure_more("[tools]\ndisabled = [\"count\"]\n");
    let output = house.run(&["run", "--yes", "count"]).code(0);
    assert_eq!(output.stdout, "done\n", "{output}");
}

#[test]
fn shipped_read_only_tool_runs_without_a_prompt() {
    let house = house!();
    house.ship(&fixture("probe"));
    house.set_script(&script_call("echo", "\"text\":\"t\""));
    house.run(&["run", "echo"]).code(0);
}

#[test]
fn read_only_annotation_of_a_dropped_in_plugin_is_ignored() {
    let house = house!();
    write_gate_rules(&house);
    house.set_script(&script_call("echo", "permission_denied"));
    house.ship_to_user(&fixture("probe"));
    let list = house.run(&["plugin", "list", "--json"]).code(0).json();
    let plugins = list["plugins"].as_array().unwrap();
    let probe = plugins.iter().find(|plugin| plugin["name"] == "fixture-probe").unwrap();
    let (path, digest) = (probe["path"].as_str().unwrap(), probe["sha256"].as_str().unwrap());
    house.run(&["plugin", "trust", path, "--sha256", digest]).expect_silent();
    let output = house.run(&["run", "echo"]).code(6);
    assert!(output.stderr.contains("permission") || output.stderr.contains("denied"), "{output}");
    house.set_script(&script_call("echo", "\"text\":\"t\""));
    house.run(&["run", "--allow", "fixture-probe:echo", "echo"]).code(0);
}

#[test]
fn tool_of_a_dropped_in_plugin_is_allowed_only_with_its_plugin_name() {
    let house = house!();
    write_gate_rules(&house);
    house.set_script(&script_call("echo", "\"text\":\"t\""));
    house.ship_to_user(&fixture("probe"));
    let output = house.run(&["run", "--allow", "echo", "echo"]).code(2);
    expect![[r#"
        error: tool `echo` belongs to plugin `fixture-probe`, which is not shipped with jaato: its name alone allows nothing
        hint: `--allow fixture-probe:echo` allows it
    "#]]
    .assert_eq(output.stderr.split_inclusive('\n').filter(|line| !line.starts_with("note:")).collect::<String>().as_str());
    let output = house.run(&["run", "--allow", "tool-other:echo", "echo"]).code(2);
    assert!(
        output.stderr.contains("is not of plugin `tool-other` but of `fixture-probe`"),
        "{output}"
    );
    house.run(&["run", "--allow", "fixture-probe:echo", "echo"]).code(0);
}

#[test]
fn tool_of_an_untrusted_plugin_is_offered_but_needs_permission() {
    let house = house!();
    write_gate_rules(&house);
    house.ship_to_user(&fixture("probe"));
    house.set_script(&script_call("echo", "permission_denied"));
    house.run(&["run", "echo"]).code(6);
    house.set_script(&script_call("echo", "\"text\":\"t\""));
    house.run(&["run", "--yes", "echo"]).code(0);
}

#[test]
fn a_plan_starts_without_a_user_and_the_run_ends_with_0() {
    let Some(house) = crate::support::cli::house_with_cli() else { return };
    let Some(fixtures) = crate::support::fixtures::test_house() else { return };
    house.ship(&fixtures.join("plugins").join(crate::support::library_name("tool_todo")));
    let call =
        |name: &str, arguments: Value| json!({ "call": { "name": name, "arguments": arguments } });
    house.set_script(&json!({ "answers": [
        { "steps": [call("createPlan", json!({ "title": "A file", "steps": ["make it"] }))] },
        { "steps": [call("startPlan", json!({}))] },
        {
            "expect": { "tool_result": "no user was available to approve the plan" },
            "steps": [call("cli_based_tool", json!({ "command": "touch made" }))],
        },
        { "steps": [{ "text": "All done" }] },
    ] }));
    house.run(&["run", "--allow", "cli_based_tool", "go"]).code(0);
    house.run(&["run", "go"]).code(6);
}
