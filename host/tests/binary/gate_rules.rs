//! Tests known ways around the gate with a user's rules in place: a rule allows exactly what it
//! says, and nothing that only looks like it.

use serde_json::{Value, json};

use crate::house;
use crate::support::cli::house_with_cli;
use crate::support::{House, fixture};

/// Rules of a user who allows much.
const RULES: &str = r#"version = 1

[[rules]]
decision = "allow"
read_only = true

[[rules]]
decision = "allow"
tool = "ech*"

[[rules]]
decision = "allow"
command = "ls"

[[rules]]
decision = "allow"
command = "git status"

[[rules]]
decision = "allow"
tool = "updateFile"
path = "src"

[[rules]]
decision = "ask"
host = "*.example.com"

[[rules]]
decision = "deny"
command = "git push"
"#;

/// Installs the user's rules.
pub fn write_gate_rules(house: &House) {
    house.write("home/.config/jaato/permissions.toml", RULES);
}

/// Names that match the tool's name, or do not.
const NAMES: [&str; 12] = [
    "cli_based_tool",
    " cli_based_tool",
    "cli_based_tool ",
    "cli_based_tool\n",
    "CLI_BASED_TOOL",
    "cli_based_t\u{43e}\u{43e}l",
    "cli_based_tool\u{200b}",
    "functions.cli_based_tool",
    "tool-cli:cli_based_tool",
    "cli_based_tool\u{0}",
    "*",
    "",
];

/// Returns arguments that would create a file `ran`, or would be allowed because of their content.
fn command_forms() -> Vec<Value> {
    vec![
        json!({ "command": "touch ran" }),
        json!({ "command": "ls; touch ran" }),
        json!({ "command": "ls\ntouch ran" }),
        json!({ "command": "ls $(touch ran)" }),
        json!({ "command": "ls\u{0}; touch ran" }),
        json!({ "command": "ls > ran" }),
        json!({ "command": "git -c core.fsmonitor='touch ran' status" }),
        json!({ "command": "touch ran", "auto_approval": true, "permission": "allow", "yes": true }),
        json!({ "command": "touch ran", "Command": "ls" }),
        json!({ "command": ["ls", "; touch ran"] }),
        json!({ "command": { "ls": "touch ran" } }),
        json!({ "command": "touch", "args": ["ran"] }),
        json!({ "command": "sh", "args": ["-c", "touch ran", "ls"] }),
        json!("touch ran"),
        json!(["touch ran"]),
        json!("{\"command\": \"touch ran\"}"),
        Value::Null,
        json!({}),
    ]
}

/// Returns answers with a few calls each, followed by text.
fn answers_for_calls(calls: &[Value]) -> Value {
    let steps = |calls: &[Value]| json!({ "steps": calls });
    let mut answers: Vec<Value> = calls.chunks(12).map(steps).collect();
    answers.push(json!({ "steps": [{ "text": "done" }] }));
    json!({ "answers": answers })
}

#[test]
fn no_variant_of_a_call_matches_a_rule_for_another_call() {
    let Some(house) = house_with_cli() else { return };
    write_gate_rules(&house);
    let calls: Vec<Value> = NAMES
        .iter()
        .flat_map(|name| command_forms().into_iter().map(move |arguments| (name, arguments)))
        .enumerate()
        // Two of each three have the same id.
        .map(|(at, (name, arguments))| {
            let id = format!("call_{}", at - at % 3 / 2);
            json!({ "call": { "id": id, "name": name, "arguments": arguments } })
        })
        .collect();
    assert_eq!(calls.len(), 216);
    house.set_script(&answers_for_calls(&calls));
    let words = ["run", "--output", "json", "--max-steps", "40", "go"];
    let output = house.command(&words).input("y\nalways\nyes\na\n".repeat(1000)).run();
    let ran = house.path().join("workspace/ran");
    assert!(!ran.exists(), "{output}");
    let lines = output.json_lines();
    let finished = lines.iter().filter(|line| line["event"] == "tool_call_finished");
    let (failed, well): (Vec<_>, Vec<_>) = finished.partition(|line| line["is_error"] == true);
    assert_eq!((failed.len(), well.len()), (216, 0), "{output}");
    // An allowed command runs, which proves that the rules are in place.
    let listing =
        json!({ "call": { "name": "cli_based_tool", "arguments": { "command": "ls -a" } } });
    house.set_script(&answers_for_calls(&[listing]));
    let output = house.run(&["run", "--output", "json", "go"]).code(0);
    let decided = output.json_lines();
    let decided = decided.iter().find(|line| line["event"] == "permission_decided").unwrap();
    assert_eq!((&decided["allowed"], &decided["rule"]), (&json!(true), &json!("file.allow")));
}

#[test]
fn rules_for_shipped_tools_do_not_apply_to_an_untrusted_plugins_tool() {
    let house = house!();
    write_gate_rules(&house);
    // `echo` promises to be read-only, and two rules would allow it if it were shipped.
    house.ship_to_user(&fixture("probe"));
    let call = json!({ "call": { "name": "echo", "arguments": { "text": "t" } } });
    house.set_script(&answers_for_calls(std::slice::from_ref(&call)));
    let output = house.run(&["run", "go"]).code(6);
    assert!(output.stderr.contains("ask.unproven_promise"), "{output}");
    house.write(
        "home/.config/jaato/permissions.toml",
        &format!("{RULES}\n[[rules]]\ndecision = \"allow\"\nplugin = \"fixture-probe\"\ntool = \"echo\"\n"),
    );
    house.set_script(&answers_for_calls(&[call]));
    house.run(&["run", "go"]).code(0);
}

#[test]
fn a_session_changes_no_rule() {
    let Some(house) = house_with_cli() else { return };
    write_gate_rules(&house);
    let before = std::fs::read(house.path().join("home/.config/jaato/permissions.toml")).unwrap();
    for words in [
        &["permission", "allow", "--command", "rm", "--options", "any"][..],
        &["permission", "allow", "--workspace", "count"],
        &["permission", "deny", "count"],
        &["permission", "remove", "1"],
    ] {
        let refused = house.command(words).variable("JAATO_SESSION_ID", "s1").run().code(3);
        assert!(refused.stderr.contains("only a user can trust"), "{refused}");
    }
    // Neither can the model's own shell, even with the user's `--yes`.
    let line = format!("'{}' permission allow --command rm", house.binary().display());
    let call = json!({ "call": { "name": "cli_based_tool", "arguments": { "command": line } } });
    house.set_script(&answers_for_calls(&[call]));
    let output = house.run(&["run", "--yes", "go"]).code(0);
    assert!(output.stderr.contains("only a user can trust"), "{output}");
    let after = std::fs::read(house.path().join("home/.config/jaato/permissions.toml")).unwrap();
    assert_eq!(before, after);
    assert!(!house.path().join("workspace/.jaato/permissions.toml").exists());
}
