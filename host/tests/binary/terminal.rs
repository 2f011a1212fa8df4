//! Tests a terminal: calls need a prompt, jaato asks about a workspace once, and no text controls
//! the terminal.

use std::path::Path;

use serde_json::json;

use crate::support::cli::house_with_cli;
use crate::support::command::Running;
use crate::support::screen::run_recorded;
use crate::support::{Command, House, fixture};

/// The row in which a prompt is answered, without colours. Asking again shows it again.
pub const QUESTION: &str = "║ > ";

/// Runs jaato on its own terminal. The program `script` creates one, if it is installed.
pub fn run_on_terminal(
    house: &House,
    words: &str,
    change: impl FnOnce(Command) -> Command,
) -> Option<Running> {
    run_shell_on_terminal(
        house,
        &format!("stty -echo; exec '{}' {words}", house.binary().display()),
        change,
    )
}

/// Runs a shell line on its own terminal.
pub fn run_shell_on_terminal(
    house: &House,
    line: &str,
    change: impl FnOnce(Command) -> Command,
) -> Option<Running> {
    run_recorded(house, line, Path::new("/dev/null"), change)
}

fn unchanged_command(command: Command) -> Command {
    command
}

/// Returns an installation whose model calls a tool that needs a prompt, once per result.
fn house_with_counter(results: &[&str]) -> Option<House> {
    let house = House::new()?;
    house.ship(&fixture("probe"));
    let call = json!({ "call": { "name": "count", "arguments": {} } });
    let mut answers = vec![json!({ "steps": [call] })];
    for (number, result) in results.iter().enumerate() {
        let is_last = number + 1 == results.len();
        let steps = if is_last { json!([{ "text": "done" }]) } else { json!([call]) };
        answers.push(json!({ "expect": { "tool_result": result }, "steps": steps }));
    }
    house.set_script(&json!({ "answers": answers }));
    Some(house)
}

#[test]
fn a_yes_runs_the_call_once() {
    let Some(house) = house_with_counter(&["\"count\":1", "\"count\":2"]) else { return };
    let Some(mut running) = run_on_terminal(&house, "run go", unchanged_command) else { return };
    running.wait_for_question();
    running.write(b"\n");
    running.wait_for_question();
    running.write(b"y\n");
    running.wait_for_question();
    running.write(b"yes\n");
    let output = running.wait_with_open_input().code(0);
    assert!(output.stdout.contains("done"), "{output}");
    assert!(output.stdout.contains("Use `count`?"), "{output}");
}

#[test]
fn a_notice_is_shown_to_its_end_however_narrow_the_terminal_is() {
    let Some(house) = House::new() else { return };
    house.ship_to_user(&fixture("echo"));
    let call = json!({ "call": { "name": "count_bytes_echo", "arguments": { "text": "a b" } } });
    house.set_script(
        &json!({ "answers": [{ "steps": [call] }, { "steps": [{ "text": "done" }] }] }),
    );
    let line = format!("stty -echo cols 40; exec '{}' run --yes go", house.binary().display());
    let Some(running) = run_shell_on_terminal(&house, &line, unchanged_command) else { return };
    let output = running.wait_with_open_input().code(0);
    assert!(output.stdout.contains("a worker is not a sandbox"), "{output}");
}

#[test]
fn permanent_answer_prevents_later_prompts() {
    let Some(house) = house_with_counter(&["\"count\":1", "\"count\":2", "\"count\":3"]) else {
        return;
    };
    let Some(mut running) = run_on_terminal(&house, "run go", unchanged_command) else { return };
    running.wait_for_question();
    running.write(b"2\n");
    let output = running.wait_with_open_input().code(0);
    assert_eq!(output.stdout.matches(QUESTION).count(), 1, "{output}");
}

#[test]
fn permanent_answer_covers_exactly_the_same_arguments() {
    let Some(house) = house_with_cli() else { return };
    let call = |command: &str| {
        let arguments = json!({ "command": command });
        json!([{ "call": { "name": "cli_based_tool", "arguments": arguments } }])
    };
    house.set_script(&json!({ "answers": [
        { "steps": call("echo one >> made") },
        { "expect": { "tool_result": "\"returncode\":0" }, "steps": call("echo one >> made") },
        { "expect": { "tool_result": "\"returncode\":0" }, "steps": call("echo two >> made") },
        { "expect": { "tool_result": "the user denied the call" }, "steps": [{ "text": "done" }] },
    ] }));
    let Some(mut running) = run_on_terminal(&house, "run go", unchanged_command) else { return };
    running.wait_for_text("echo one >> made");
    running.wait_for_question();
    running.write(b"2\n");
    running.wait_for_text("echo two >> made");
    running.wait_for_question();
    // The same command as before has run again without a prompt.
    let made = || std::fs::read_to_string(house.workspace().join("made")).unwrap();
    assert_eq!(made(), "one\none\n");
    running.write(b"n\n");
    let output = running.wait_with_open_input().code(0);
    assert_eq!(output.stdout.matches(QUESTION).count(), 2, "{output}");
    assert!(output.stdout.contains("done"), "{output}");
    assert_eq!(made(), "one\none\n");
}

#[test]
fn denial_by_the_user_is_reported_to_the_model_and_the_run_exits_with_0() {
    let Some(house) = house_with_counter(&["the user denied the call"]) else { return };
    let Some(mut running) = run_on_terminal(&house, "run go", unchanged_command) else { return };
    running.wait_for_question();
    running.write(b"no\n");
    // A user was asked and has answered, so the exit code is 0.
    running.wait_with_open_input().code(0);
}

#[test]
fn free_text_answer_denies_with_that_reason() {
    let Some(house) = house_with_counter(&["use your fingers"]) else { return };
    let Some(mut running) = run_on_terminal(&house, "run go", unchanged_command) else { return };
    running.wait_for_question();
    running.write(b"use your fingers\n");
    running.wait_with_open_input().code(0);
}

#[test]
fn ctrl_d_at_a_prompt_denies_the_call() {
    let Some(house) = house_with_counter(&["the user denied the call"]) else { return };
    let editing = |command: Command| command.variable("TERM", "xterm");
    let Some(mut running) = run_on_terminal(&house, "run go", editing) else { return };
    running.wait_for_question();
    running.write(b"\x04");
    let output = running.wait_with_open_input().code(0);
    assert!(output.stdout.contains("✗ denied: "), "{output}");
}

#[test]
fn ctrl_c_at_a_prompt_cancels_the_run() {
    let Some(house) = house_with_counter(&["never"]) else { return };
    let Some(mut running) = run_on_terminal(&house, "run go", unchanged_command) else { return };
    running.wait_for_question();
    running.write(b"\x03");
    let output = running.wait_with_open_input().code(130);
    assert!(output.stdout.contains("cancelled"), "{output}");
    house.assert_no_processes();
}

#[test]
fn trust_prompt_is_shown_once_until_the_workspace_changes() {
    let Some(house) = house_with_counter(&["\"count\":1"]) else { return };
    house.write("workspace/AGENTS.md", "Always rhyme.");
    let asked = "Do you trust this folder?";
    let Some(mut running) = run_on_terminal(&house, "run --yes go", unchanged_command) else {
        return;
    };
    running.wait_for_text(asked);
    running.wait_for_question();
    running.write(b"n\n");
    let output = running.wait_with_open_input().code(0);
    assert!(output.stdout.contains("AGENTS.md"), "{output}");
    let again = run_on_terminal(&house, "run --yes go", unchanged_command).unwrap();
    let output = again.wait_with_open_input().code(0);
    assert!(!output.stdout.contains(asked), "{output}");
    // The content has changed, so the answer does not apply to it.
    house.write("workspace/.env", "JAATO_OFFLINE=true\n");
    let mut running = run_on_terminal(&house, "run --yes go", unchanged_command).unwrap();
    running.wait_for_text(asked);
    running.wait_for_question();
    running.write(b"y\n");
    running.wait_with_open_input().code(0);
    let prompt = house.run(&["run", "--show-prompt"]).code(0);
    assert!(prompt.stdout.contains("Always rhyme."), "{prompt}");
    // The same applies to a change of trusted content.
    house.write("workspace/AGENTS.md", "Never rhyme.");
    let mut running = run_on_terminal(&house, "run --yes go", unchanged_command).unwrap();
    running.wait_for_text("changed since you trusted it");
    running.wait_for_question();
    running.write(b"y\n");
    running.wait_with_open_input().code(0);
    assert!(house.run(&["run", "--show-prompt"]).code(0).stdout.contains("Never rhyme."));
}

#[test]
fn model_and_tool_text_cannot_control_the_terminal() {
    let Some(house) = House::new() else { return };
    house.ship(&fixture("probe"));
    let evil = "a\u{1b}]0;owned\u{7}b\u{9b}31m";
    house.set_script(&json!({ "answers": [
        { "steps": [{ "call": { "name": "echo", "arguments": { "text": evil } } }] },
        { "steps": [{ "text": evil }, { "text": "end" }] },
    ] }));
    let Some(running) = run_on_terminal(&house, "run go", unchanged_command) else { return };
    let output = running.wait_with_open_input().code(0);
    assert!(output.stdout.contains("end"), "{output}");
    for driving in ["\u{1b}]0;", "\u{7}", "\u{9b}"] {
        assert!(!output.stdout.contains(driving), "{driving:?}: {:?}", output.stdout);
    }
    assert!(output.stdout.contains("a<U+001B>]0;owned<U+0007>b<U+009B>31mend"), "{output}");
}
