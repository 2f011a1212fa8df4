//! Tests keys at a prompt: pastes, stops, signals, and a terminal that shrinks during the prompt.

use serde_json::json;

use crate::house;
use crate::questions::{told, waits_for, with_tools};
use crate::support::Command;
use crate::support::answers::{call, says};
use crate::support::screen::{Scene, Size};
use crate::terminal::{on_terminal, shell_on_terminal};

fn editing(command: Command) -> Command {
    command.variable("TERM", "xterm")
}

#[test]
fn a_terminal_that_shrinks_gets_the_short_form_and_asks_for_no_other_arguments() {
    let Some(house) = with_tools() else { return };
    house.script(&json!({ "answers": [
        call("cli_based_tool", json!({ "command": "echo one > made" })),
        told("\"returncode\":0", says("done")),
    ] }));
    let line = format!(
        "stty rows 24 cols 80; ({}; stty rows 6 </dev/tty) & exec '{}' run go",
        waits_for("go"),
        house.binary().display()
    );
    let Some(mut running) = shell_on_terminal(&house, &line, std::convert::identity) else {
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
fn what_is_pasted_decides_nothing_whatever_it_holds() {
    let Some(house) = with_tools() else { return };
    house.script(&json!({ "answers": [
        call("cli_based_tool", json!({ "command": "echo one > made" })),
        told("the user denied the call", says("done")),
    ] }));
    let size = Size { rows: 24, columns: 80 };
    let Some(mut scene) = Scene::begin(&house, "run go", size, None) else { return };
    scene.until("║ >");
    // Ctrl-D, Ctrl-Z, Up, an answer with Enter, and half an escape sequence at the end of a read.
    scene.write(b"\x1b[200~\x04\x1a\x10y\r\x1b");
    scene.until("║ > y");
    scene.write(b"y\r1\r\x1b[201~");
    scene.until("║ > y  1");
    scene.write(b"\x15n\r");
    let ended = scene.end();
    assert!(ended.contains("denied") && ended.contains("done"), "{ended}");
    assert!(!house.workspace().join("made").exists());
}

#[test]
fn after_ctrl_z_a_question_is_shown_again_with_an_empty_line() {
    let Some(house) = with_tools() else { return };
    house.script(&json!({ "answers": [
        call("cli_based_tool", json!({ "command": "echo one > made" })),
        told("\"returncode\":0", says("done")),
    ] }));
    let binary = house.binary().display().to_string();
    let line = format!("set -m; '{binary}' run go; echo has stopped; fg");
    let Some(mut running) = shell_on_terminal(&house, &line, editing) else { return };
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
fn ctrl_c_at_the_question_of_trust_ends_jaato_with_the_terminal_as_it_was() {
    let house = house!();
    house.write("workspace/AGENTS.md", "Always rhyme.");
    house.script(&json!({ "answers": [says("done")] }));
    for words in ["run go", "chat go"] {
        let Some(mut running) = on_terminal(&house, words, editing) else { return };
        running.wait_for_text("Do you trust this folder?");
        running.wait_for_question();
        running.write(b"\x03");
        let output = running.wait_with_open_input().code(130);
        assert!(output.stdout.contains("\u{1b}[?2004l"), "{output}");
        assert!(!output.stdout.contains("done"), "{output}");
    }
}
