//! Tests the possible answers to a permission prompt, and how long they hold.

use serde_json::{Value, json};

use crate::support::answers::{call_answer, text_answer};
use crate::support::cli::{house_with_asking_cli, house_with_cli};
use crate::support::command::Running;
use crate::support::{Command, House, fixture, fixtures, library_name};
use crate::terminal::{QUESTION, run_on_terminal, run_shell_on_terminal};

fn run_call(command: &str) -> Value {
    call_answer("cli_based_tool", json!({ "command": command }))
}

fn expect_result(result: &str, then: Value) -> Value {
    let mut answer = then;
    answer["expect"] = json!({ "tool_result": result });
    answer
}

fn unchanged_command(command: Command) -> Command {
    command
}

fn with_xterm(command: Command) -> Command {
    command.variable("TERM", "xterm")
}

fn find_created_file(house: &House) -> String {
    std::fs::read_to_string(house.workspace().join("made")).unwrap_or_default()
}

#[test]
fn remembered_permission_pattern_is_listed_and_can_be_removed() {
    let Some(house) = house_with_asking_cli() else { return };
    house.set_script(&json!({ "answers": [
        run_call("echo one"),
        expect_result("one", run_call("echo two")),
        expect_result("two", text_answer("first")),
        run_call("echo three"),
        expect_result("the user denied the call", text_answer("second")),
    ] }));
    let Some(mut running) = run_on_terminal(&house, "chat begin", with_xterm) else { return };
    running.wait_for_text("Yes, and don't ask again for `echo` in this session");
    running.wait_for_question();
    running.write(b"2\n");
    running.wait_for_text("first");
    running.wait_for_text("> ");
    running.write(b"/permissions\r");
    running.wait_for_text("1  allowed in this session: any `echo`");
    running.write(b"/permissions remove 1\r");
    running.wait_for_text("removed:");
    running.write(b"continue\r");
    running.wait_for_text("echo three");
    running.wait_for_question();
    running.write(b"n\n");
    running.wait_for_text("second");
    running.wait_for_text("> ");
    running.write(b"\x04");
    let output = running.wait_with_open_input().code(0);
    assert_eq!(output.stdout.matches("✓ allowed: ").count(), 1, "{output}");
    assert_eq!(output.stdout.matches("✗ denied: ").count(), 1, "{output}");
}

#[test]
fn prompts_use_the_terminal_if_standard_input_is_a_pipe() {
    let Some(house) = house_with_cli() else { return };
    house.set_script(&json!({ "answers": [
        run_call("echo one >> made"),
        expect_result("\"returncode\":0", text_answer("done")),
    ] }));
    let line =
        format!("stty -echo; printf 'what was piped' | '{}' run look", house.binary().display());
    let Some(mut running) = run_shell_on_terminal(&house, &line, unchanged_command) else { return };
    running.wait_for_question();
    running.write(b"y\n");
    let output = running.wait_with_open_input().code(0);
    assert!(output.stdout.contains("done"), "{output}");
    assert_eq!(find_created_file(&house), "one\n");
    // In the background no one reads from the terminal, so the call is denied, and nothing hangs.
    house.set_script(&json!({ "answers": [
        run_call("echo two >> made"),
        expect_result("no user can be asked", text_answer("done")),
    ] }));
    let line = format!(
        "stty -echo; set -m; (printf x | '{}' run look) & wait $!; echo code $?",
        house.binary().display()
    );
    let running = run_shell_on_terminal(&house, &line, unchanged_command).unwrap();
    let output = running.wait_with_open_input();
    assert!(output.stdout.contains("code 6"), "{output}");
    assert_eq!(find_created_file(&house), "one\n");
}

#[test]
fn arguments_are_changed_before_the_call_runs_and_shown_again() {
    let Some(house) = house_with_cli() else { return };
    house.set_script(&json!({ "answers": [
        run_call("echo one >> made"),
        expect_result("\"arguments_changed_by\":[\"the user\"]", text_answer("done")),
    ] }));
    let Some(mut running) = run_on_terminal(&house, "run go", unchanged_command) else { return };
    running.wait_for_question();
    running.write(b"e\n");
    running.wait_for_text("NAME = VALUE changes one");
    running.wait_for_question();
    running.write(b"command = echo changed >> made\n");
    running.wait_for_text("as you changed");
    running.wait_for_question();
    running.write(b"y\n");
    let output = running.wait_with_open_input().code(0);
    assert!(output.stdout.contains("done"), "{output}");
    assert_eq!(find_created_file(&house), "changed\n");
}

#[test]
fn read_only_mode_denies_changes_even_with_the_yes_option() {
    let Some(house) = house_with_cli() else { return };
    house.set_script(&json!({ "answers": [
        run_call("echo one >> made"),
        expect_result("mode.read_only", text_answer("done")),
    ] }));
    let output = house.run(&["run", "--yes", "--mode", "read-only", "go"]).code(0);
    assert!(output.stdout.contains("done"), "{output}");
    assert_eq!(find_created_file(&house), "");
    let output = house.run(&["run", "--mode", "auto", "go"]).code(2);
    assert!(output.stderr.contains("a mode is ask, accept-edits, plan, read-only"), "{output}");
}

#[test]
fn chat_can_change_the_permission_mode() {
    let Some(house) = house_with_cli() else { return };
    house.set_script(
        &json!({ "answers": [run_call("echo one >> made"), expect_result("mode.read_only", text_answer("no"))] }),
    );
    let lines = "/mode\n/mode read-only\ngo\n/mode nothing\n";
    let output = house.command(&["chat", "--yes"]).input(lines).run().code(2);
    assert!(output.stderr.contains("Mode: --yes, tools run without asking."), "{output}");
    assert!(output.stderr.contains("Mode: read-only, only tools and commands"), "{output}");
    assert_eq!(find_created_file(&house), "");
}

/// Waits for an event and returns it.
#[track_caller]
fn wait_for_event(running: &Running, name: &str) -> Value {
    let line = running.wait_for(&format!("\"event\":\"{name}\""));
    serde_json::from_str(&line).unwrap()
}

fn write_answer(running: &mut Running, answer: &Value) {
    running.write(format!("{}\n", json!({ "answer": answer })).as_bytes());
}

#[test]
fn permission_event_names_the_sessions_environment() {
    let Some(house) = house_with_cli() else { return };
    house.ship(&fixture("rooms"));
    house.ship(&fixture("probe"));
    house.set_script(&json!({ "answers": [call_answer("count", json!({})), text_answer("done")] }));
    for (more, expected) in [(&["--environment", "rooms"][..], json!("rooms")), (&[], Value::Null)]
    {
        let words = [&["run", "--output", "json", "--answers"][..], more, &["go"]].concat();
        let mut running = house.command(&words).start();
        let asked = wait_for_event(&running, "permission_asked");
        assert_eq!(asked["environment"], expected);
        write_answer(&mut running, &json!({ "call_id": asked["call_id"], "decision": "deny" }));
        running.wait_with_open_input().code(0);
    }
}

#[test]
fn client_gets_the_offered_answers_and_other_answers_are_refused() {
    let Some(house) = house_with_asking_cli() else { return };
    house.set_script(&json!({ "answers": [
        run_call("echo one"),
        expect_result("one", run_call("echo two")),
        expect_result("two", run_call("ls")),
        expect_result("no answer came to the permission prompt", text_answer("done")),
    ] }));
    let words = ["run", "--output", "json", "--answers", "go"];
    let timeout = ("JAATO_PERMISSION_TIMEOUT", "4");
    let mut running = house.command(&words).variable(timeout.0, timeout.1).start();
    let asked = wait_for_event(&running, "permission_asked");
    assert_eq!(asked["title"], "Run this command?");
    let subject = json!({ "kind": "command", "line": "echo one" });
    assert_eq!((&asked["subject"], &asked["warning"]), (&subject, &Value::Null));
    assert_eq!((&asked["patience_ms"], &asked["agent_type"]), (&json!(4_000), &json!("main")));
    assert_eq!(asked["patterns"], json!(["exactly `echo one`", "any `echo`"]));
    let labels: Vec<_> =
        asked["answers"].as_array().unwrap().iter().map(|it| &it["label"]).collect();
    assert_eq!(
        labels,
        [
            "Yes",
            "Yes, and don't ask again for `echo` in this session",
            "Yes, and don't ask again for `echo` in this folder",
            "No",
        ]
    );
    // An answer that was not offered is ignored, and the prompt still waits.
    let call_id = &asked["call_id"];
    let mut wide = json!({ "call_id": call_id, "decision": "allow_in_session", "pattern": 99 });
    write_answer(&mut running, &wide);
    running.wait_for_error("does not allow this answer");
    wide["pattern"] = json!(1);
    write_answer(&mut running, &wide);
    // No one answers the third call.
    let output = running.wait_with_open_input().code(6);
    assert_eq!(output.stdout.matches("\"permission_asked\"").count(), 2, "{output}");
    let ledger = house.run(&["ledger", "show"]).code(0);
    assert!(ledger.stdout.contains("denied"), "{ledger}");
    let records =
        std::fs::read_to_string(house.home().join(".local/share/jaato/ledger.jsonl")).unwrap();
    let is_stage = |it: &&str, stage: &str| it.contains(&format!("\"stage\":\"{stage}\""));
    let requests = records.lines().filter(|it| is_stage(it, "permission-request")).count();
    assert_eq!(requests, 2);
    let checks: Vec<&str> = records.lines().filter(|it| is_stage(it, "permission-check")).collect();
    let said = "\"answered_by\":\"client\",\"scope\":\"session\",\"pattern\":\"command\"";
    assert!(checks[0].contains(said), "{}", checks[0]);
    assert!(checks[2].contains("person.late"), "{}", checks[2]);
    assert!(!records.contains("echo"), "nothing that was said is in the ledger");
}

#[test]
fn prompt_before_terminal_input_names_the_program() {
    let Some(house) = house_with_cli() else { return };
    let Some(plugins) = fixtures::test_house().map(|it| it.join("plugins")) else { return };
    house.ship(&plugins.join(library_name("tool_interactive_shell")));
    house.set_script(&json!({ "answers": [
        call_answer("shell_spawn", json!({ "command": "cat" })),
        expect_result("session_0", call_answer("shell_input", json!({ "session_id": "session_0", "input": "hello\n" }))),
        expect_result("hello", call_answer("shell_input", json!({ "session_id": "session_0", "input": "again\n" }))),
        expect_result("again", text_answer("done")),
    ] }));
    let Some(mut running) =
        run_on_terminal(&house, "run --allow shell_spawn go", unchanged_command)
    else {
        return;
    };
    running.wait_for_text("Type this into cat?");
    running.wait_for_text("Yes, and don't ask again for typing into session_0 in this session");
    running.wait_for_question();
    running.write(b"2\n");
    let output = running.wait_with_open_input().code(0);
    assert_eq!(output.stdout.matches(QUESTION).count(), 1, "{output}");
    assert!(output.stdout.contains("done"), "{output}");
}

#[test]
fn line_typed_into_a_shell_is_checked_as_a_command() {
    let Some(house) = house_with_cli() else { return };
    let Some(plugins) = fixtures::test_house().map(|it| it.join("plugins")) else { return };
    house.ship(&plugins.join(library_name("tool_interactive_shell")));
    let rule = "version = 1\n[[rules]]\ndecision = \"allow\"\ncommand = \"echo\"\n";
    house.write("home/.config/jaato/permissions.toml", rule);
    let input = |text: &str| {
        call_answer(
            "shell_input",
            json!({ "session_id": "session_0", "input": text, "timeout": 30 }),
        )
    };
    house.set_script(&json!({ "answers": [
        call_answer("shell_spawn", json!({ "command": "sh", "timeout": 30 })),
        expect_result("session_0", input("echo moon\n")),
        expect_result("moon", input("touch made; echo sun\n")),
        expect_result("needs permission", input("cat\n")),
        expect_result("needs permission", text_answer("done")),
    ] }));
    let output = house.run(&["run", "--allow", "shell_spawn", "go"]).code(6);
    assert!(output.stderr.contains("moon"), "{output}");
    assert!(!house.path().join("workspace/made").exists(), "{output}");
}
