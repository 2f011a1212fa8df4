//! Tests keys at a prompt: pastes, stops, signals, and a terminal that shrinks during the prompt.

use serde_json::json;

use crate::house;
use crate::questions::{command_waiting_for, expect_result, house_with_tools};
use crate::support::Command;
use crate::support::answers::{call_answer, text_answer};
use crate::support::screen::{RecordedTerminal, ScreenSize};
use crate::terminal::{run_on_terminal, run_shell_on_terminal};

fn with_xterm(command: Command) -> Command {
    command.variable("TERM", "xterm")
}

#[test]
fn prompt_is_shortened_when_the_terminal_shrinks() {
    let Some(house) = house_with_tools() else { return };
    house.set_script(&json!({ "answers": [
        call_answer("cli_based_tool", json!({ "command": "echo one > made" })),
        expect_result("\"returncode\":0", text_answer("done")),
    ] }));
    let line = format!(
        "stty rows 24 cols 80; ({}; stty rows 6 </dev/tty) & exec '{}' run go",
        command_waiting_for("go"),
        house.binary().display()
    );
    let Some(mut running) = run_shell_on_terminal(&house, &line, std::convert::identity) else {
        return;
    };
    running.wait_for_question();
    house.write("workspace/go", "");
    running.wait_for_text("y yes, n no, e edit, ? help");
    running.wait_for_question();
    running.write(b"y\n");
    let output = running.wait_with_open_input().code(0);
    assert!(!output.stdout.contains("Change the arguments"), "{output}");
    assert_eq!(std::fs::read_to_string(house.workspace().join("made")).unwrap(), "one\n");
}

#[test]
fn prompt_is_erased_before_it_is_shown_again_at_another_width() {
    let Some(house) = house_with_tools() else { return };
    house.set_script(&json!({ "answers": [
        call_answer("cli_based_tool", json!({ "command": "echo one > made" })),
        expect_result("\"returncode\":0", text_answer("done")),
    ] }));
    let line = format!(
        "stty rows 24 cols 50; ({}; stty cols 100 </dev/tty) & exec '{}' run go",
        command_waiting_for("go"),
        house.binary().display()
    );
    let Some(mut running) = run_shell_on_terminal(&house, &line, with_xterm) else { return };
    running.wait_for_question();
    house.write("workspace/go", "");
    running.wait_for_question();
    running.write(b"y\n");
    let output = running.wait_with_open_input().code(0);
    let asked: Vec<&str> = output.stdout.split("Run this command?").collect();
    assert_eq!(asked.len(), 3, "{output}");
    // The first title and everything below it, except the row in which the answer is typed.
    let rows_above = asked[1].matches('\n').count();
    assert!(rows_above > 5, "{output}");
    assert!(asked[1].contains(&format!("\r\u{1b}[{rows_above}A\u{1b}[J")), "{output}");
}

#[test]
fn pasted_text_never_answers_a_prompt() {
    let Some(house) = house_with_tools() else { return };
    house.set_script(&json!({ "answers": [
        call_answer("cli_based_tool", json!({ "command": "echo one > made" })),
        expect_result("the user denied the call", text_answer("done")),
    ] }));
    let size = ScreenSize { rows: 24, columns: 80 };
    let Some(mut scene) = RecordedTerminal::begin(&house, "run go", size, None) else { return };
    scene.wait_until_shown("║ >");
    // Ctrl-D, Ctrl-Z, Up, an answer with Enter, and half an escape sequence at the end of a read.
    scene.write(b"\x1b[200~\x04\x1a\x10y\r\x1b");
    scene.wait_until_shown("║ > y");
    scene.write(b"y\r1\r\x1b[201~");
    scene.wait_until_shown("║ > y  1");
    scene.write(b"\x15n\r");
    let ended = scene.last_screen();
    assert!(ended.contains("denied") && ended.contains("done"), "{ended}");
    assert!(!house.workspace().join("made").exists());
}

#[test]
fn prompt_is_shown_again_with_an_empty_line_after_ctrl_z() {
    let Some(house) = house_with_tools() else { return };
    house.set_script(&json!({ "answers": [
        call_answer("cli_based_tool", json!({ "command": "echo one > made" })),
        expect_result("\"returncode\":0", text_answer("done")),
    ] }));
    let binary = house.binary().display().to_string();
    let line = format!("set -m; '{binary}' run go; echo has stopped; fg");
    let Some(mut running) = run_shell_on_terminal(&house, &line, with_xterm) else { return };
    running.wait_for_question();
    running.write(b"half");
    running.wait_for_text("half");
    running.write(b"\x1a");
    running.wait_for_text("has stopped");
    running.wait_for_text("Run this command?");
    running.wait_for_question();
    // Together with earlier input it would be a sentence, which denies.
    running.write(b"y\r");
    let output = running.wait_with_open_input().code(0);
    assert!(output.stdout.contains("✓ allowed: "), "{output}");
    assert_eq!(std::fs::read_to_string(house.workspace().join("made")).unwrap(), "one\n");
}

#[test]
fn ctrl_c_at_the_trust_prompt_exits_and_restores_the_terminal() {
    let house = house!();
    house.write("workspace/AGENTS.md", "Always rhyme.");
    house.set_script(&json!({ "answers": [text_answer("done")] }));
    for words in ["run go", "chat go"] {
        let Some(mut running) = run_on_terminal(&house, words, with_xterm) else { return };
        running.wait_for_text("Do you trust this folder?");
        running.wait_for_question();
        running.write(b"\x03");
        let output = running.wait_with_open_input().code(130);
        assert!(output.stdout.contains("\u{1b}[?2004l"), "{output}");
        assert!(!output.stdout.contains("done"), "{output}");
    }
}
