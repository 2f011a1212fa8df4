//! Events other than tool calls: sessions, subagents, notifications, and the end of a turn.

use serde_json::{Value, json};

use super::{
    HookHouse, call_answer, done_after_result, expect_result, hook_entry, run_answer,
    script_command,
};
use crate::support::answers::text_answer;
use crate::support::{fixture, fixtures, library_name};
use crate::terminal::run_on_terminal;

/// Logs the input of each event.
const LOGGER: &str = "cat >> log.jsonl; echo >> log.jsonl";

/// Returns an installation that logs these events.
fn house_logging_events(events: &[&str]) -> Option<HookHouse> {
    let mut hooks = json!({});
    for event in events {
        hooks[*event] = hook_entry(event, "", &script_command("sh", "log.sh"))[*event].clone();
    }
    HookHouse::new(&hooks, &[("log.sh", LOGGER)])
}

fn logged_events(house: &HookHouse) -> Vec<Value> {
    house.file_text("log.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_session_tells_its_start_its_prompts_and_its_end() {
    let events = ["SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"];
    let Some(house) = house_logging_events(&events) else { return };
    house.run(&json!([text_answer("the answer")])).code(0);
    let log = logged_events(&house);
    let seen: Vec<&str> =
        log.iter().map(|line| line["hook_event_name"].as_str().unwrap()).collect();
    assert_eq!(seen, events);
    assert_eq!((&log[0]["source"], &log[0]["model"]), (&json!("startup"), &json!("scripted/test")));
    assert_eq!(log[1]["prompt"], "go");
    assert_eq!(log[2]["last_assistant_message"], "the answer");
    assert_eq!(log[3]["reason"], "other");
    house.house.assert_no_processes();
}

#[test]
fn a_subagent_has_its_own_end_and_is_named_in_its_calls() {
    let events = ["UserPromptSubmit", "PreToolUse", "SubagentStop", "Stop"];
    let Some(house) = house_logging_events(&events) else { return };
    house.house.ship(&fixture("company"));
    let open = json!({ "text": "look around", "model": "other/moon" });
    let child = json!({ "answers": [
        run_answer("echo from the child"),
        expect_result("from the child", text_answer("found it")),
    ] });
    house.house.set_script(
        &json!({ "answers": [call_answer("open_child", open), done_after_result("found it")] }),
    );
    let child = house.house.write("child.json", &child.to_string());
    house.house.configure_more(&format!(
        "[providers.other]\nplugin = \"provider-scripted\"\nscript = \"{}\"\n",
        child.display()
    ));
    house.house.run(&["run", "--yes", "go"]).code(0);
    let log = logged_events(&house);
    let seen: Vec<(&str, bool)> = log
        .iter()
        .map(|line| (line["hook_event_name"].as_str().unwrap(), line["agent_id"].is_string()))
        .collect();
    let expected = [
        ("UserPromptSubmit", false),
        ("PreToolUse", false),
        ("PreToolUse", true),
        ("SubagentStop", true),
        ("Stop", false),
    ];
    assert_eq!(seen, expected);
    assert_eq!(log[2]["agent_type"], "helper");
    assert_ne!(log[2]["session_id"], log[1]["session_id"]);
}

#[test]
fn a_permission_prompt_is_notified() {
    let Some(house) = house_logging_events(&["Notification"]) else { return };
    house.house.set_script(&json!({ "answers": [run_answer("touch a"), text_answer("done")] }));
    let Some(mut running) = run_on_terminal(&house.house, "run go", |command| command) else {
        return;
    };
    running.wait_for_question();
    house.house.wait_for_file(&house.house.workspace().join("log.jsonl"));
    running.write(b"y\n");
    running.wait_with_open_input().code(0);
    let log = logged_events(&house);
    assert_eq!(log[0]["notification_type"], "permission_prompt");
    assert!(log[0]["message"].as_str().unwrap().starts_with("jaato needs your permission: "));
}

#[test]
fn a_collection_is_told_before_it_happens() {
    let Some(house) = house_logging_events(&["PreCompact"]) else { return };
    let plugins = fixtures::test_house().unwrap().join("plugins");
    house.house.ship(&plugins.join(library_name("gc_truncate")));
    house.house.set_script(&json!({ "answers": [text_answer("one"), text_answer("two")] }));
    house.house.command(&["chat"]).input("a\nb\n/gc\n").run().code(0);
    let log = logged_events(&house);
    assert_eq!((log.len(), &log[0]["trigger"]), (1, &json!("manual")));
}

#[test]
fn a_hook_can_prevent_a_collection() {
    let deny = r#"echo '{"decision": "block", "reason": "keep it all"}'"#;
    let Some(house) = HookHouse::new(&hook_entry("PreCompact", "", deny), &[]) else { return };
    let plugins = fixtures::test_house().unwrap().join("plugins");
    house.house.ship(&plugins.join(library_name("gc_truncate")));
    house.house.set_script(&json!({ "answers": [text_answer("one"), text_answer("two")] }));
    let output = house.house.command(&["chat"]).input("a\nb\n/gc\n").run();
    let text = "plugin `hook-command` refused the gc: keep it all";
    assert!(output.code != 0 && output.stderr.contains(text), "{output}");
}

#[test]
fn a_hook_can_end_the_turn() {
    let stop = r#"echo '{"continue": false, "stopReason": "the budget is spent"}'"#;
    for event in ["PreToolUse", "PostToolUse"] {
        let Some(house) = HookHouse::new(&hook_entry(event, "", stop), &[]) else { return };
        let output = house.run(&json!([run_answer("touch ran"), text_answer("never said")]));
        let text = "plugin `hook-command` ended the turn: the budget is spent";
        assert!(output.code != 0 && output.stderr.contains(text), "{event}: {output}");
        assert!(!output.stdout.contains("never said"), "{event}: {output}");
        assert_eq!(
            house.file_text("ran"),
            if event == "PreToolUse" { "-" } else { "" },
            "{output}"
        );
    }
}

#[test]
fn the_strictest_of_several_hooks_decides_and_a_change_can_need_a_permission() {
    let answer = |decision: &str, more: &str| {
        let specific = format!(
            r#"{{"permissionDecision": "{decision}", "permissionDecisionReason": "because"{more}}}"#
        );
        format!(r#"echo '{{"hookSpecificOutput": {specific}}}'"#)
    };
    let commands = [answer("allow", ""), answer("deny", ""), answer("ask", "")];
    let entries: Vec<Value> = commands.iter().map(|it| json!({ "command": it })).collect();
    let hooks = json!({ "PreToolUse": [{ "matcher": "Bash", "hooks": entries }] });
    let Some(house) = HookHouse::new(&hooks, &[]) else { return };
    house
        .run(&json!([run_answer("touch ran"), done_after_result("`cli_based_tool`: because")]))
        .code(0);
    assert_eq!(house.file_text("ran"), "-");
    let asks = answer("ask", r#", "updatedInput": {"command": "touch other"}"#);
    house.write_settings(&hook_entry("PreToolUse", "Bash", &asks));
    house.house.run(&["trust"]).code(0);
    house.house.set_script(&json!({ "answers": [run_answer("touch ran"), text_answer("done")] }));
    let change = |command| command;
    let Some(mut running) = run_on_terminal(&house.house, "run --yes go", change) else { return };
    running.wait_for_question();
    running.write(b"y\n");
    let output = running.wait_with_open_input().code(0);
    assert!(output.stdout.contains("touch other"), "{output}");
    assert_eq!((house.file_text("ran").as_str(), house.file_text("other").as_str()), ("-", ""));
}
