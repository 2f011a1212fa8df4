//! Tests of the guard on a host in memory, with rules and with a list of tools.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use jaato_plugin_sdk::hooks::{BeforeTool, GuardAnswer};
use jaato_plugin_sdk::prelude::*;
use jaato_plugin_testkit::FakeHost;

#[track_caller]
fn check_answer(config: Value, command: &str, expected: GuardAnswer) {
    let host = FakeHost::new(hook_guard::__jaato::MODULE).with_config(config);
    let instance = host.create(None).unwrap();
    let asked = BeforeTool::new("cli_based_tool", json!({ "command": command }));
    assert_eq!(instance.before_tool(&asked).unwrap(), expected, "{command}");
}

#[test]
fn default_rules_stop_dangerous_commands() {
    check_answer(json!({}), "ls", GuardAnswer::GoOn);
    check_answer(
        json!({}),
        "rm -rf / --no-preserve-root",
        GuardAnswer::deny("`rm -rf /` must not run here"),
    );
    check_answer(json!({}), "rm -rf target", GuardAnswer::ask("it has `rm -rf`"));
    let dry = GuardAnswer::rewrite(json!({ "command": "npm publish --dry-run" }));
    check_answer(json!({}), "npm publish", dry);
}

#[test]
fn user_rules_replace_the_default_rules_of_their_kind() {
    let config = json!({ "deny": ["ls"], "ask": [], "dry_run": [] });
    check_answer(config.clone(), "ls", GuardAnswer::deny("`ls` must not run here"));
    check_answer(config, "rm -rf target", GuardAnswer::GoOn);
}

#[test]
fn rules_apply_only_to_the_listed_tools() {
    check_answer(json!({ "deny": ["ls"], "tools": ["shell_input"] }), "ls", GuardAnswer::GoOn);
    let denied = GuardAnswer::deny("`ls` must not run here");
    check_answer(json!({ "deny": ["ls"], "tools": ["cli_based_tool"] }), "ls", denied);
}
