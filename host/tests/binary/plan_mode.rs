//! Tests the mode `plan`: the model reads and plans, and changes nothing before the user agrees.

use serde_json::{Value, json};

use crate::support::answers::{call_answer, text_answer, with_expectation};
use crate::support::cli::house_with_cli;
use crate::support::command::Running;
use crate::support::{House, Output, fixtures, library_name};

/// Returns an installation with the file tools, the shell and the plan tools, and a file to edit.
fn set_up_house() -> Option<House> {
    let house = house_with_cli()?;
    let plugins = fixtures::test_house()?.join("plugins");
    for name in ["tool_file_edit", "tool_todo"] {
        house.ship(&plugins.join(library_name(name)));
    }
    house.write("workspace/a.txt", "one\n");
    Some(house)
}

fn edit_call(old: &str, new: &str) -> Value {
    call_answer("updateFile", json!({ "path": "a.txt", "old": old, "new": new }))
}

fn create_plan_answer() -> Value {
    call_answer("createPlan", json!({ "title": "Count", "steps": ["write two"] }))
}

fn file_content(house: &House) -> String {
    std::fs::read_to_string(house.workspace().join("a.txt")).unwrap()
}

/// Waits for the permission prompt of a tool and returns it.
#[track_caller]
fn wait_for_prompt(running: &Running, tool: &str) -> Value {
    let line = running.wait_for("\"event\":\"permission_asked\"");
    let prompt: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(prompt["name"], tool, "{prompt}");
    prompt
}

fn answer_prompt(running: &mut Running, prompt: &Value, decision: &str, mode: Option<&str>) {
    let mut answer = json!({ "call_id": prompt["call_id"], "decision": decision });
    if let Some(mode) = mode {
        answer["mode"] = mode.into();
    }
    running.write(format!("{}\n", json!({ "answer": answer })).as_bytes());
}

/// Returns the decision about each call: tool, `allowed` or `denied`, rule.
fn call_decisions(output: &Output) -> Vec<String> {
    let lines = output.json_lines();
    let decided = lines.iter().filter(|line| line["event"] == "permission_decided");
    let text = |line: &Value| {
        let word = if line["allowed"] == true { "allowed" } else { "denied" };
        format!("{} {word} {}", line["name"].as_str().unwrap(), line["rule"].as_str().unwrap())
    };
    decided.map(text).collect()
}

/// Returns the modes that the session changed to.
fn mode_changes(output: &Output) -> Vec<String> {
    let lines = output.json_lines();
    let changed = lines.iter().filter(|line| line["event"] == "mode_changed");
    changed.map(|line| line["mode"].as_str().unwrap().to_owned()).collect()
}

const RUN: [&str; 7] = ["run", "--output", "json", "--answers", "--mode", "plan", "go"];

#[test]
fn plan_mode_lasts_until_the_user_accepts_the_plan() {
    let rules = "version = 1\n[[rules]]\ndecision = \"allow\"\ntool = \"startPlan\"\n";
    for (mode, rule) in [("accept-edits", "mode.accept_edits"), ("ask", "person.once")] {
        let Some(house) = set_up_house() else { return };
        // A rule that allows starting a plan does not end the mode.
        house.write("home/.config/jaato/permissions.toml", rules);
        house.set_script(&json!({ "answers": [
            with_expectation("system", "The session is in plan mode", edit_call("one", "two")),
            with_expectation(
                "tool_result",
                "(rule `mode.plan`)",
                call_answer("readFile", json!({ "path": "a.txt" })),
            ),
            with_expectation(
                "tool_result",
                "one",
                call_answer("cli_based_tool", json!({ "command": "touch made" })),
            ),
            with_expectation("tool_result", "(rule `mode.plan`)", create_plan_answer()),
            with_expectation("tool_result", "plan_1", call_answer("startPlan", json!({}))),
            with_expectation("tool_result", "\"confirmed\":true", edit_call("one", "two")),
            text_answer("done"),
        ] }));
        let mut running = house.command(&RUN).start();
        let prompt = wait_for_prompt(&running, "startPlan");
        assert_eq!(prompt["title"], "Start this plan?");
        assert_eq!(prompt["subject"], json!({ "kind": "plan", "steps": ["write two"] }));
        assert_eq!(prompt["rule"], "mode.start_plan");
        answer_prompt(&mut running, &prompt, "allow_once", Some(mode));
        if mode == "ask" {
            let prompt = wait_for_prompt(&running, "updateFile");
            answer_prompt(&mut running, &prompt, "allow_once", None);
        }
        let output = running.finish().code(0);
        let expected = [
            "updateFile denied mode.plan",
            "readFile allowed shipped.read_only",
            "cli_based_tool denied mode.plan",
            "createPlan allowed shipped.auto_approval",
            "startPlan allowed person.once",
            &format!("updateFile allowed {rule}"),
        ];
        assert_eq!(call_decisions(&output), expected, "{output}");
        assert_eq!(mode_changes(&output), [mode]);
        assert_eq!(file_content(&house), "two\n");
        assert!(!house.workspace().join("made").exists());
    }
}

#[test]
fn denied_plan_keeps_plan_mode() {
    let Some(house) = set_up_house() else { return };
    house.set_script(&json!({ "answers": [
        create_plan_answer(),
        call_answer("startPlan", json!({})),
        with_expectation(
            "tool_result",
            "the user denied the call to `startPlan`",
            edit_call("one", "two"),
        ),
        with_expectation("tool_result", "(rule `mode.plan`)", text_answer("done")),
    ] }));
    let mut running = house.command(&RUN).start();
    let prompt = wait_for_prompt(&running, "startPlan");
    answer_prompt(&mut running, &prompt, "deny", None);
    let output = running.finish().code(0);
    assert_eq!(mode_changes(&output), [""; 0], "{output}");
    assert_eq!(file_content(&house), "one\n");
}

#[test]
fn plan_mode_does_not_end_without_a_plan_or_a_user() {
    let Some(house) = set_up_house() else { return };
    // The user is not asked about a plan that does not exist.
    house.set_script(
        &json!({ "answers": [call_answer("startPlan", json!({})), text_answer("done")] }),
    );
    let output = house.command(&RUN).start().wait_with_open_input();
    assert_eq!(call_decisions(&output), ["startPlan denied preview.refuses"], "{output}");
    // `--yes` does not agree to a plan.
    house.set_script(&json!({ "answers": [
        create_plan_answer(),
        call_answer("startPlan", json!({})),
        with_expectation("tool_result", "(rule `mode.start_plan`)", edit_call("one", "two")),
        with_expectation("tool_result", "(rule `mode.plan`)", text_answer("done")),
    ] }));
    let words = ["run", "--yes", "--output", "json", "--mode", "plan", "go"];
    let output = house.command(&words).no_input().run();
    let expected = [
        "createPlan allowed option.yes",
        "startPlan denied mode.start_plan",
        "updateFile denied mode.plan",
    ];
    assert_eq!(call_decisions(&output), expected, "{output}");
    assert_eq!(file_content(&house), "one\n");
}

#[test]
fn system_prompt_mentions_plan_mode_only_in_plan_mode() {
    let Some(house) = set_up_house() else { return };
    house.set_script(&json!({ "answers": [text_answer("done")] }));
    let shown = |mode: &str| {
        let output = house.run(&["run", "--show-prompt", "--mode", mode, "go"]).code(0);
        output.stdout
    };
    let plan = shown("plan");
    assert!(plan.contains("--- mode plan (about"), "{plan}");
    for mode in ["ask", "accept-edits", "read-only"] {
        assert!(!shown(mode).contains("plan mode"), "{mode}");
    }
}

#[test]
fn chat_switches_to_plan_mode_and_back() {
    let Some(house) = set_up_house() else { return };
    house.set_script(&json!({ "answers": [
        with_expectation("system", "The session is in plan mode", text_answer("I plan.")),
        edit_call("one", "two"),
        with_expectation("tool_result", "\"path\"", text_answer("done")),
    ] }));
    let lines = "/mode plan\ngo\n/mode accept-edits\ngo\n";
    let output = house.command(&["chat"]).input(lines).run();
    let line = "Mode: plan, only tools and commands that read run until you agree to a plan.";
    assert!(output.stderr.contains(line), "{output}");
    assert_eq!(file_content(&house), "two\n", "{output}");
}
