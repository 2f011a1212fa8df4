//! Tests `jaato permission` and rule files in the real binary.

use expect_test::expect;
use serde_json::json;

use crate::house;
use crate::support::{House, fixture, fixtures, library_name};

const FILE: &str = "home/.config/jaato/permissions.toml";

const RULES: &str = r#"# mine
version = 1

[[rules]]
decision = "allow"
command = "git status"

[[rules]]
decision = "deny"
command = "rm"
why = "too final"

[[rules]]
decision = "deny"
tool = "count"
"#;

fn house_with_counter() -> Option<House> {
    let house = House::new()?;
    house.ship(&fixture("probe"));
    house.set_script(&json!({ "answers": [
        { "steps": [{ "call": { "name": "count", "arguments": {} } }] },
        { "steps": [{ "text": "done" }] },
    ] }));
    Some(house)
}

/// Returns an installation with the tool that runs commands.
fn house_with_cli() -> Option<House> {
    let house = House::new()?;
    let plugins = fixtures::test_house()?.join("plugins");
    house.ship(&plugins.join(library_name("tool_cli")));
    Some(house)
}

fn write_rules(house: &House, text: &str) {
    house.write(FILE, text);
}

#[test]
fn permission_deny_rule_in_user_file_overrides_yes_option() {
    let Some(house) = house_with_counter() else { return };
    write_rules(&house, RULES);
    let output = house.run(&["run", "--yes", "--output", "json", "count"]);
    let lines = output.json_lines();
    let decided = lines.iter().find(|line| line["event"] == "permission_decided").unwrap();
    assert_eq!((&decided["allowed"], &decided["rule"]), (&json!(false), &json!("file.deny")));
    let words = ["run", "--yes", "--ignore-deny-rules", "--output", "json", "count"];
    let lines = house.run(&words).json_lines();
    let decided = lines.iter().find(|line| line["event"] == "permission_decided").unwrap();
    let rule = "option.yes (option.ignore_deny_rules)";
    assert_eq!((&decided["allowed"], &decided["rule"]), (&json!(true), &json!(rule)));
    let log = house.run(&["permission", "log"]).code(0).stdout;
    assert!(log.contains("file.deny") && log.contains(rule), "{log}");
}

#[test]
fn permission_explain_names_rule_file_and_line() {
    let Some(house) = house_with_cli() else { return };
    write_rules(&house, RULES);
    let explain = |command: &str| {
        let arguments = json!({ "command": command }).to_string();
        let words = ["permission", "explain", "cli_based_tool", &arguments, "--output", "json"];
        let output = house.run(&words).code(0);
        serde_json::from_str::<serde_json::Value>(&output.stdout).unwrap()
    };
    let denied = explain("ls; sudo rm x");
    assert_eq!((&denied["outcome"], &denied["rule"]["line"]), (&json!("deny"), &json!(9)));
    assert!(denied["rule"]["file"].as_str().unwrap().ends_with("permissions.toml"), "{denied}");
    assert_eq!(denied["commands"], json!(["ls", "sudo rm x", "rm x"]));
    assert_eq!(explain("git status; x")["outcome"], "ask");
    let text = house.run(&["permission", "explain", "cli_based_tool", r#"{"command":"rm x"}"#]);
    assert!(text.code(0).stdout.starts_with("deny: `deny command = \"rm\"` at "));
    house.run(&["permission", "explain", "no_such_tool"]).code(4);
    house.run(&["permission", "explain", "cli_based_tool", "{"]).code(2);
}

#[test]
fn permission_allow_deny_and_remove_preserve_the_rest_of_the_file() {
    let house = house!();
    house.run(&["permission", "allow", "--command", "cargo test"]).code(0);
    house.run(&["permission", "deny", "count", "--why", "no"]).code(0);
    house.run(&["permission", "deny"]).code(2);
    house.run(&["permission", "allow", "x", "--command", "* x"]).code(3);
    let text = std::fs::read_to_string(house.path().join(FILE)).unwrap();
    expect![[r#"
        version = 1

        [[rules]]
        decision = "allow"
        command = "cargo test"

        [[rules]]
        decision = "deny"
        tool = "count"
        why = "no"
    "#]]
    .assert_eq(&text);
    house.run(&["permission", "remove", "3"]).code(3);
    house.run(&["permission", "remove", "2"]).code(0);
    let list = house.run(&["permission", "list", "--json"]).code(0).stdout;
    let list: serde_json::Value = serde_json::from_str(&list).unwrap();
    assert_eq!(list[0]["rules"][0]["rule"], "allow command = \"cargo test\"");
    assert_eq!(list[0]["rules"].as_array().unwrap().len(), 1);
}

#[test]
fn permission_rules_of_a_workspace_need_trust_and_editing_keeps_it() {
    let house = house!();
    house.write(
        "workspace/.jaato/permissions.toml",
        "[[rules]]\ndecision = \"deny\"\ntool = \"x\"\n",
    );
    let listed = house.run(&["permission", "list"]).code(0).stdout;
    assert!(listed.contains("is not used"), "{listed}");
    house.run(&["trust"]).code(0);
    house.run(&["permission", "deny", "y", "--workspace"]).code(0);
    let listed = house.run(&["permission", "list"]).code(0).stdout;
    assert!(listed.contains("tool = \"x\"") && listed.contains("tool = \"y\""), "{listed}");
}

#[test]
fn permission_test_reports_unexpected_decisions() {
    let Some(house) = house_with_cli() else { return };
    write_rules(&house, RULES);
    let cases = "[[cases]]\ncommand = \"rm x\"\nexpect = \"deny\"\n\n[[cases]]\ncommand = \"make\"\nexpect = \"allow\"\n";
    house.write("workspace/cases.toml", cases);
    let output = house.run(&["permission", "test", "cases.toml"]).code(1);
    assert_eq!(output.stdout, "1 of 2 calls get the decision that the file expects\n");
    assert!(output.stderr.contains("line 6: ask and not allow"), "{output}");
    house.write("workspace/cases.toml", cases.replace("\"allow\"", "\"ask\"").as_str());
    house.run(&["permission", "test", "cases.toml"]).code(0);
}

#[test]
fn permission_file_named_by_a_variable_counts_as_the_users_own() {
    let Some(house) = house_with_counter() else { return };
    house.write("workspace/mine.json", r#"{ "whitelist": { "tools": ["count"] } }"#);
    let run = |path: &str| {
        house.command(&["run", "count"]).variable("PERMISSION_CONFIG_PATH", path).run()
    };
    run("mine.json").code(0);
    let missing = run("other.json");
    assert!(missing.stderr.contains("`PERMISSION_CONFIG_PATH` names it"), "{missing}");
    assert!(!missing.stderr.contains('✓'), "{missing}");
}

#[test]
fn permission_file_that_is_broken_denies_everything() {
    let Some(house) = house_with_counter() else { return };
    write_rules(&house, "[[rules]]\ndecison = \"deny\"\n");
    let output = house.run(&["run", "--yes", "count"]);
    assert!(output.stderr.contains("did you mean `decision`"), "{output}");
    house.run(&["permission", "list"]).code(3);
}

#[test]
fn permission_sanitization_denies_dangerous_commands_and_shell_operators() {
    let Some(house) = house_with_cli() else { return };
    let text = r#"{"defaultPolicy": "allow", "sanitization": {"enabled": true}}"#;
    house.write("home/.jaato/permissions.json", text);
    for (command, expected) in [("rm a", "deny"), ("ls; id", "deny"), ("id", "allow")] {
        let arguments = json!({ "command": command }).to_string();
        let words = ["permission", "explain", "cli_based_tool", &arguments];
        let said = house.run(&words).code(0).stdout;
        assert!(said.starts_with(expected), "{command}: {said}");
    }
}

#[test]
fn permission_allow_says_when_the_rule_allows_nothing() {
    let house = house!();
    for command in ["python3", "sh"] {
        let output = house.run(&["permission", "allow", "--command", command]).code(0);
        assert!(output.stderr.contains("allows no call yet"), "{command}: {output}");
    }
    house.run(&["permission", "allow", "--command", "git status"]).expect_silent();
    let output = house.run(&["permission", "allow", "git log"]).code(2);
    assert!(output.stderr.contains("did you mean `--command 'git log'`?"), "{output}");
}
