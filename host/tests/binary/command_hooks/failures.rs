//! Hooks that must not run, and hooks that fail.

use std::fs;

use serde_json::{Value, json};

use super::{HookHouse, done_after_result, hook_entry, run_answer, script_command};
use crate::support::answers::text_answer;

#[test]
fn hooks_of_an_untrusted_workspace_do_not_run_and_are_reported_once() {
    let hooks = hook_entry("PreToolUse", "", &script_command("sh", "touch.sh"));
    let Some(house) = HookHouse::untrusted(&hooks, &[("touch.sh", "touch ran; exit 2")]) else {
        return;
    };
    let answers = json!([run_answer("echo one"), run_answer("echo two"), done_after_result("two")]);
    let output = house.run(&answers).code(0);
    assert_eq!(house.file_text("ran"), "-");
    let told = "the hooks of .claude/settings.json do not run, because you do not trust";
    assert_eq!(output.stderr.matches(told).count(), 1, "{output}");
    house.house.run(&["trust"]).code(0);
    house.run(&json!([run_answer("echo one"), done_after_result("denied the call")])).code(0);
    assert_eq!(house.file_text("ran"), "");
    // A changed script ends the trust.
    house.house.write("workspace/.claude/hooks/touch.sh", "exit 2");
    house.run(&json!([run_answer("echo one"), done_after_result("one")])).code(0);
}

#[test]
fn trust_lists_the_commands_of_hooks() {
    let hooks = hook_entry("PreToolUse", "Bash", "./guard.sh --strict");
    let Some(house) = HookHouse::untrusted(&hooks, &[]) else { return };
    let output = house.house.run(&["trust"]).code(0);
    let told = "commands that its hooks run, without asking you:\n  PreToolUse (Bash): ./guard.sh \
                --strict\n";
    assert!(output.stdout.contains(told), "{output}");
}

#[track_caller]
fn check_guard(command: &str, more: Value, reason: &str) {
    let mut hooks = hook_entry("PreToolUse", "Bash", command);
    for (key, value) in more.as_object().into_iter().flatten() {
        hooks["PreToolUse"][0]["hooks"][0][key.as_str()] = value.clone();
    }
    let Some(house) = HookHouse::new(&hooks, &[]) else { return };
    let output = house.run(&json!([run_answer("touch ran"), done_after_result(reason)])).code(0);
    assert_eq!(house.file_text("ran"), "-", "{command}: {output}");
    house.house.assert_no_processes();
}

#[test]
fn a_guard_that_cannot_decide_denies_the_call() {
    check_guard("./no-such-program", json!({}), "it ended with the code 127");
    check_guard("echo '{\"decision\": \"blo'", json!({}), "its output is not valid JSON");
    check_guard("sleep 300 & sleep 301", json!({ "timeout": 0.3 }), "it did not end within 300 ms");
    check_guard("yes", json!({}), "it printed more than 1048576 bytes");
    check_guard("kill -9 $$", json!({}), "it was killed by signal 9");
    check_guard("", json!({ "type": "prompt" }), "does not run hooks of the type `prompt`");
    check_guard("exit 0", json!({ "timeout": "soon" }), "its `timeout` is not a positive number");
}

#[test]
fn a_guard_with_an_invalid_matcher_or_file_denies_every_call() {
    let Some(house) = HookHouse::new(&hook_entry("PreToolUse", "(Bash", "exit 0"), &[]) else {
        return;
    };
    let reason = "its matcher `(Bash` is not a valid regular expression";
    house.run(&json!([run_answer("touch ran"), done_after_result(reason)])).code(0);
    house.house.write("workspace/.claude/settings.json", "{ \"hooks\": ");
    house.house.run(&["trust"]).code(0);
    let reason = "hooks cannot be read, so no call may run: `.claude/settings.json`";
    house.run(&json!([run_answer("touch ran"), done_after_result(reason)])).code(0);
    assert_eq!(house.file_text("ran"), "-");
}

#[test]
fn other_failures_are_notices_and_block_nothing() {
    for (event, command, told) in [
        ("PreToolUse", "echo oops >&2; exit 1", "it ended with the code 1: oops"),
        ("PostToolUse", "./no-such-program", "it ended with the code 127"),
        ("UserPromptSubmit", "echo '{'", "its output is not valid JSON"),
        ("SessionStart", "exit 3", "it ended with the code 3"),
        ("Stop", "kill -9 $$", "it was killed by signal 9"),
        ("PermissionRequest", "exit 2", "jaato does not run hooks for PermissionRequest"),
    ] {
        let Some(house) = HookHouse::new(&hook_entry(event, "", command), &[]) else { return };
        let output = house.run(&json!([run_answer("echo one"), done_after_result("one")])).code(0);
        assert_eq!(output.stdout, "done\n", "{event}: {output}");
        assert!(output.stderr.contains(told), "{event}: {output}");
    }
}

#[test]
fn a_cancelled_turn_ends_the_processes_of_its_hook() {
    let hooks = hook_entry("PreToolUse", "Bash", "sleep 300 & touch started; sleep 301");
    let Some(house) = HookHouse::new(&hooks, &[]) else { return };
    house.house.set_script(&json!({ "answers": [run_answer("echo one"), text_answer("done")] }));
    let running = house.house.command(&["run", "--yes", "go"]).no_input().start();
    house.house.wait_for_file(&house.house.workspace().join("started"));
    running.send_signal("INT");
    let output = running.finish();
    assert_eq!(output.code, 130, "{output}");
    house.house.assert_no_processes();
}

#[test]
fn hooks_of_the_configuration_run_and_of_the_home_folder_only_if_asked() {
    let Some(house) = HookHouse::without_hooks() else { return };
    let home = json!({ "hooks": hook_entry("Stop", "", "touch home-ran") });
    house.house.write("home/.claude/settings.json", &home.to_string());
    let run = |more: &str| {
        house.house.set_script(&json!({ "answers": [text_answer("done")] }));
        house.house.configure_more(more);
        house.house.run(&["run", "go"]).code(0);
        let ran = |name| house.house.workspace().join(name).exists();
        let found = (ran("own-ran"), ran("home-ran"));
        for name in ["own-ran", "home-ran"] {
            let _ = fs::remove_file(house.house.workspace().join(name));
        }
        found
    };
    assert_eq!(run(""), (false, false));
    let own = "[[plugins.hook-command.hooks.Stop]]\ncommand = \"touch own-ran\"\n";
    assert_eq!(run(own), (true, false));
    assert_eq!(run(&format!("[plugins.hook-command]\nhome = true\n{own}")), (true, true));
}
