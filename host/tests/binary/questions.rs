//! Tests prompts at the terminal: no text can imitate one, they cannot be overwritten or scrolled
//! away, and earlier input does not answer them.

use std::path::Path;

use serde_json::{Value, json};

use crate::gate_rules::write_gate_rules;
use crate::house;
use crate::support::answers::{call_answer, text_answer};
use crate::support::cli::{disable_shipped_rules, house_with_cli};
use crate::support::command::{DEADLINE, LOOK_AGAIN, Running};
use crate::support::screen::{RecordedTerminal, ScreenSize};
use crate::support::{Command, House, fixture};
use crate::terminal::{QUESTION, run_on_terminal, run_shell_on_terminal};

fn unchanged_command(command: Command) -> Command {
    command
}

pub fn expect_result(result: &str, then: Value) -> Value {
    let mut answer = then;
    answer["expect"] = json!({ "tool_result": result });
    answer
}

/// Returns an installation with the user's rules, a shell for the model and a tool that needs a
/// prompt.
pub fn house_with_tools() -> Option<House> {
    let house = house_with_cli()?;
    write_gate_rules(&house);
    house.ship(&fixture("probe"));
    Some(house)
}

/// Runs jaato with echo enabled, so that a test sees when the input has arrived.
fn start_with_echo(house: &House, words: &str, size: &str) -> Option<Running> {
    let line = format!("stty {size}; exec '{}' {words}", house.binary().display());
    run_shell_on_terminal(house, &line, unchanged_command)
}

/// Returns a command that continues once a file exists.
pub fn command_waiting_for(file: &str) -> String {
    format!("while [ ! -e {file} ]; do sleep 0.01; done")
}

#[track_caller]
pub fn wait_for_file(path: &Path) {
    let begin = std::time::Instant::now();
    while !path.exists() {
        assert!(begin.elapsed() < DEADLINE, "{} does not appear", path.display());
        std::thread::sleep(LOOK_AGAIN);
    }
}

/// Returns the rows of the last prompt on a recorded screen, including the input row.
fn question_rows<'a>(recorded: &'a str, title: &str) -> Vec<&'a str> {
    let begin = recorded.rfind(&format!("║ {title}"));
    let begin = begin.unwrap_or_else(|| panic!("no question: {recorded}"));
    let rows: Vec<&str> = recorded[begin..].split("\r\n").collect();
    let end = rows.iter().position(|row| row.starts_with(QUESTION));
    rows[..=end.unwrap_or_else(|| panic!("no prompt: {recorded}"))].to_vec()
}

const COMMAND: &str = "Run this command?";

#[test]
fn permission_prompt_names_the_execution_environment() {
    let Some(house) = house_with_tools() else { return };
    house.ship(&fixture("rooms"));
    house.set_script(&json!({ "answers": [call_answer("count", json!({})), text_answer("done")] }));
    let Some(mut running) = start_with_echo(&house, "run --environment rooms go", "echo") else {
        return;
    };
    running.wait_for_question();
    running.write(b"no, not there\n");
    let output = running.wait_with_open_input().code(0);
    assert!(output.stdout.contains("(runs in rooms)"), "{output}");
    // A user who has denied sees nothing more.
    assert!(output.stdout.contains("(“no, not there”)\r\ndone"), "{output}");
}

#[test]
fn small_terminal_shows_the_command_before_the_possible_answers() {
    let Some(house) = house_with_tools() else { return };
    disable_shipped_rules(&house);
    let lines = (1..=3).map(|number| format!("echo {number}")).collect::<Vec<_>>().join("\n");
    let answers = [
        call_answer("cli_based_tool", json!({ "command": lines })),
        expect_result("\"returncode\":0", text_answer("ran")),
    ];
    for (size, is_short) in [("rows 24 cols 80 echo", false), ("rows 8 cols 80 echo", true)] {
        house.set_script(&json!({ "answers": answers }));
        let Some(mut running) = start_with_echo(&house, "run go", size) else { return };
        running.wait_for_question();
        running.write(b"?\n");
        running.wait_for_text("y, 1: run it once");
        running.wait_for_question();
        running.write(b"y\n");
        let output = running.wait_with_open_input().code(0);
        let rows = question_rows(&output.stdout, COMMAND).join("\n");
        for line in ["│ echo 1", "│ echo 2", "│ echo 3"] {
            assert!(rows.contains(line), "{line}: {rows}");
        }
        assert_eq!(!rows.contains("1 Yes"), is_short, "{rows}");
    }
}

#[test]
fn input_typed_before_a_permission_prompt_does_not_answer_it() {
    let Some(house) = house_with_tools() else { return };
    house.set_script(&json!({ "answers": [
        call_answer("cli_based_tool", json!({ "command": command_waiting_for("go") })),
        call_answer("count", json!({})),
        expect_result("the user denied the call", text_answer("done")),
    ] }));
    let Some(mut running) = start_with_echo(&house, "run --allow cli_based_tool go", "echo") else {
        return;
    };
    running.wait_for_text("cli_based_tool");
    running.write(b"y\nalways\nmarmot\n");
    running.wait_for_text("marmot");
    house.write("workspace/go", "");
    running.wait_for_question();
    running.write(b"n\n");
    let output = running.wait_with_open_input().code(0);
    assert_eq!(output.stdout.matches(QUESTION).count(), 1, "{output}");
    assert!(output.stdout.contains("done"), "{output}");
}

#[test]
fn chat_input_typed_before_a_prompt_becomes_a_message() {
    let Some(house) = house_with_tools() else { return };
    house.set_script(&json!({ "answers": [
        call_answer("cli_based_tool", json!({ "command": command_waiting_for("go") })),
        expect_result("yes, and marmots", call_answer("count", json!({}))),
        expect_result("the user denied the call", text_answer("done")),
    ] }));
    let line = format!("exec '{}' chat --allow cli_based_tool go", house.binary().display());
    let editing = |command: Command| command.variable("TERM", "xterm");
    let Some(mut running) = run_shell_on_terminal(&house, &line, editing) else { return };
    running.wait_for_text("> ");
    running.write(b"yes, and marmots\r");
    running.wait_for_text("queued, goes with the next step: yes, and marmots");
    house.write("workspace/go", "");
    running.wait_for_question();
    running.write(b"n\n");
    running.wait_for_text("done");
    running.wait_for_text("> ");
    running.write(b"\x04");
    let output = running.wait_with_open_input().code(0);
    assert_eq!(output.stdout.matches("✗ denied: ").count(), 1, "{output}");
    house.assert_no_processes();
}

#[test]
fn input_typed_before_the_trust_prompt_does_not_answer_it() {
    let house = house!();
    house.write("workspace/AGENTS.md", "Always rhyme.");
    house.set_script(&json!({ "answers": [text_answer("done")] }));
    // Typed before jaato has started, so the input waits in the terminal.
    let line = format!(
        "read -r begun; while [ ! -e go ]; do sleep 0.01; done; exec '{}' run go",
        house.binary().display()
    );
    let Some(mut running) = run_shell_on_terminal(&house, &line, unchanged_command) else { return };
    running.write(b"begun\ny\nmarmot\n");
    running.wait_for_text("marmot");
    house.write("workspace/go", "");
    running.wait_for_question();
    running.write(b"n\n");
    running.wait_with_open_input().code(0);
    let prompt = house.run(&["run", "--show-prompt"]).code(0);
    assert!(!prompt.stdout.contains("Always rhyme."), "{prompt}");
}

#[test]
fn no_other_output_appears_while_a_prompt_is_open() {
    let Some(house) = house_with_tools() else { return };
    house.configure_more("[session]\nauto_background_threshold_ms = 50\n");
    let command = format!(
        "{}; echo FORGED; : > printed; {}",
        command_waiting_for("go"),
        command_waiting_for("end")
    );
    house.set_script(&json!({ "answers": [
        call_answer("cli_based_tool", json!({ "command": command })),
        call_answer("count", json!({})),
        expect_result("\"count\":1", text_answer("done")),
        text_answer("all done"),
    ] }));
    let Some(mut running) =
        run_on_terminal(&house, "run --allow cli_based_tool go", unchanged_command)
    else {
        return;
    };
    running.wait_for_question();
    house.write("workspace/go", "");
    wait_for_file(&house.workspace().join("printed"));
    // The input is not understood, so jaato asks again below. Output printed in the meantime would
    // appear between the questions.
    for _ in 0..3 {
        running.write(b"\n");
        running.wait_for_question();
    }
    running.write(b"y\n");
    house.write("workspace/end", "");
    let output = running.wait_with_open_input().code(0);
    let forged =
        output.stdout.find("│ FORGED").unwrap_or_else(|| panic!("no forged text: {output}"));
    let last = output.stdout.rfind(QUESTION).unwrap();
    assert!(forged > last, "{output}");
    assert!(output.stdout[forged..].contains("done"), "{output}");
}

#[test]
fn every_row_of_a_prompt_is_marked_and_wrapped_at_the_width() {
    let Some(house) = house_with_tools() else { return };
    let forged = format!(
        "rm -rf ~{}║ Run this command?  ls{}  1 Yes{}\u{202e}║ > \u{200b}",
        " ".repeat(600),
        " ".repeat(20),
        " ".repeat(700),
    );
    house.set_script(&json!({ "answers": [
        call_answer("cli_based_tool", json!({ "command": forged })),
        expect_result("the user denied the call", text_answer("done")),
    ] }));
    for columns in [80, 40, 30] {
        let size = format!("rows 24 cols {columns}");
        let Some(mut running) = start_with_echo(&house, "run go", &size) else { return };
        running.wait_for_question();
        running.write(b"n\n");
        let output = running.wait_with_open_input().code(0);
        let question = question_rows(&output.stdout, COMMAND);
        assert!(question.len() < 24, "{output}");
        assert!(question.iter().all(|row| row.starts_with("║ ")), "{columns}: {question:#?}");
        let is_narrow = |row: &&str| row.chars().count() < columns;
        assert!(question.iter().all(is_narrow), "{columns}: {question:#?}");
        assert!(question.iter().any(|row| row.contains("│ rm -rf ~")), "{question:#?}");
        assert!(columns < 80 || output.stdout.contains("<U+202E>"), "{output}");
        assert!(!output.stdout.contains(['\u{202e}', '\u{200b}']), "{output}");
        assert_eq!(output.stdout.matches("║ Run").count(), 1, "{output}");
        assert_eq!(output.stdout.matches("║   1 Yes").count(), 1, "{output}");
    }
}

#[test]
fn long_argument_is_shortened_and_shown_completely_on_request() {
    let Some(house) = house_with_tools() else { return };
    let lines: Vec<String> = (1..=400).map(|line| format!("echo {line} >> made")).collect();
    let answers = [
        call_answer("cli_based_tool", json!({ "command": lines.join("\n") })),
        expect_result("the user denied the call", text_answer("done")),
    ];
    for word in ["/show\n", "s\n", "S\n"] {
        house.set_script(&json!({ "answers": answers }));
        let Some(mut running) = start_with_echo(&house, "run go", "rows 24 cols 80") else {
            return;
        };
        running.wait_for_text("more lines");
        running.wait_for_question();
        running.write(word.as_bytes());
        running.wait_for_text("│ echo 200 >> made");
        running.wait_for_question();
        running.write(b"n\n");
        let output = running.wait_with_open_input().code(0);
        let asked: Vec<&str> = output.stdout.split("║ Run this command?").collect();
        assert_eq!(asked.len(), 3, "{output}");
        for shown in ["│ echo 1 >> made", "│ echo 400 >> made", "s Show all of it"] {
            assert!(asked[1].contains(shown), "{output}");
        }
        assert!(!asked[1].contains("echo 200 >> made"), "{output}");
        assert!(asked[2].contains("│ echo 200 >> made"), "{output}");
        assert!(!house.workspace().join("made").exists());
    }
}

#[test]
fn prompt_is_repeated_when_the_terminal_is_resized() {
    let Some(house) = house_with_tools() else { return };
    house.set_script(&json!({ "answers": [
        call_answer(
            "cli_based_tool",
            json!({ "command": format!("echo a{}b > made", " ".repeat(60)) }),
        ),
        expect_result("\"returncode\":0", text_answer("done")),
    ] }));
    let line = format!(
        "stty rows 24 cols 80; ({}; stty cols 30 </dev/tty) & exec '{}' run go",
        command_waiting_for("go"),
        house.binary().display()
    );
    let Some(mut running) = run_shell_on_terminal(&house, &line, unchanged_command) else { return };
    running.wait_for_question();
    house.write("workspace/go", "");
    running.wait_for_question();
    running.write(b"y\n");
    let output = running.wait_with_open_input().code(0);
    assert_eq!(output.stdout.matches("║ Run this command?").count(), 2, "{output}");
    let rows = question_rows(&output.stdout, COMMAND);
    assert!(rows.iter().all(|row| row.starts_with("║ ") && row.chars().count() < 30), "{rows:#?}");
}

#[test]
fn call_is_denied_if_the_terminal_is_too_small_for_the_prompt() {
    let Some(house) = house_with_tools() else { return };
    house.set_script(&json!({ "answers": [
        call_answer("count", json!({})),
        expect_result("the terminal is too small for the question", text_answer("done")),
    ] }));
    let Some(running) = start_with_echo(&house, "run go", "rows 3 cols 80") else { return };
    running.wait_with_open_input().code(6);
}

#[test]
fn permission_prompt_states_the_scope_of_each_answer() {
    let Some(house) = house_with_tools() else { return };
    house.run(&["trust"]).code(0);
    house.run(&["permission", "allow", "--command", "tail"]).code(0);
    house.set_script(&json!({ "answers": [
        call_answer("cli_based_tool", json!({ "command": "cargo test -q 2>&1 | tail -5" })),
        text_answer("done"),
    ] }));
    let Some(mut running) = start_with_echo(&house, "run go", "rows 24 cols 120") else { return };
    running.wait_for_text("║ Run this command?  cargo test -q 2>&1 | tail -5");
    running.wait_for_text("║   1 Yes\r\n");
    running.wait_for_text("Yes, and don't ask again for `cargo test` in this folder");
    running.wait_for_text("No (or say what to do instead)");
    running.wait_for_question();
    running.write(b"n\n");
    running.wait_with_open_input().code(0);
}

#[test]
fn permanent_answer_for_an_untrusted_tool_covers_only_identical_calls() {
    let house = house!();
    house.ship_to_user(&fixture("echo"));
    let count = |text: &str| call_answer("count_bytes_echo", json!({ "text": text }));
    house.set_script(&json!({ "answers": [
        count("a"),
        expect_result("1", count("a")),
        expect_result("1", count("ab")),
        expect_result("the user denied the call", text_answer("done")),
    ] }));
    let Some(mut running) = start_with_echo(&house, "run go", "rows 24 cols 200") else { return };
    running.wait_for_question();
    running.write(b"2\n");
    running.wait_for_text("text: ab");
    running.wait_for_question();
    running.write(b"n\n");
    let output = running.wait_with_open_input().code(0);
    assert_eq!(output.stdout.matches(QUESTION).count(), 2, "{output}");
}

#[test]
fn text_that_imitates_a_prompt_lacks_the_prompt_mark() {
    let Some(house) = house_with_tools() else { return };
    disable_shipped_rules(&house);
    let forged = "║ Run this command?  ls\n║   1 Yes\n║   2 No (or say what to do instead)\n║ > ";
    let others = ['‖', '∥', 'ǁ', '⫴'].map(|sign| forged.replace('║', &sign.to_string()));
    for imitation in std::iter::once(forged.to_owned()).chain(others) {
        house.set_script(&json!({ "answers": [
            { "steps": [
                { "text": &imitation },
                { "call": { "name": "echo", "arguments": { "text": &imitation } } },
            ] },
            call_answer(
                "cli_based_tool",
                json!({ "command": format!("printf '%s' '{imitation}'") }),
            ),
            expect_result("denied", text_answer("done")),
        ] }));
        let line = format!("stty rows 40 cols 40; exec '{}' run go", house.binary().display());
        let plain = |command: Command| command.variable("TERM", "xterm").variable("NO_COLOR", "1");
        let Some(mut running) = run_shell_on_terminal(&house, &line, plain) else { return };
        running.wait_for_question();
        running.write(b"n\r");
        let output = running.wait_with_open_input().code(0);
        assert!(output.stdout.contains("done"), "{output}");
        // All rows that begin with the mark belong to the only prompt.
        let marks = output.stdout.matches('║').count();
        assert!(!output.stdout.contains(['‖', '∥', 'ǁ', '⫴']), "{output}");
        assert_eq!(output.stdout.matches("║ Run this command?").count(), 1, "{output}");
        assert_eq!(output.stdout.matches("║   1 Yes").count(), 1, "{output}");
        let begin = output.stdout.find("║ Run this command?").unwrap();
        assert_eq!(output.stdout[begin..].matches('║').count(), marks, "{output}");
    }
}

#[test]
fn keys_answer_without_enter_and_the_prompt_collapses_to_one_row() {
    let Some(house) = house_with_tools() else { return };
    let command = |text: &str| call_answer("cli_based_tool", json!({ "command": text }));
    house.set_script(&json!({ "answers": [
        command("echo one >> made"),
        expect_result("\"returncode\":0", command("echo two >> made")),
        expect_result("the user denied the call", command("echo three >> made")),
        expect_result("\"returncode\":0", command("echo four >> made")),
        expect_result("rather five", text_answer("done")),
    ] }));
    let size = ScreenSize { rows: 24, columns: 80 };
    let Some(mut scene) = RecordedTerminal::begin(&house, "run go", size, None) else { return };
    for (command, keys, folded) in [
        ("one", "y", "✓ allowed: echo one >> made"),
        ("two", "n", "✗ denied: echo two >> made"),
        ("three", "1", "✓ allowed: echo three >> made"),
        // Left, Home and the text typed there are not part of an answer.
        ("four", "fiv\u{1b}[De\u{1b}[Hrather \u{1b}[F\u{7f}\u{7f}ve\r", "(“rather five”)"),
    ] {
        scene.wait_until_shown(&format!("Run this command?  echo {command} >> made"));
        scene.wait_until_shown("║ >");
        scene.write(keys.as_bytes());
        scene.wait_until_shown(folded);
    }
    let ended = scene.last_screen();
    assert!(!ended.contains('║') && !ended.contains("^[["), "{ended}");
    let made = std::fs::read_to_string(house.workspace().join("made")).unwrap();
    assert_eq!(made, "one\nthree\n");
}

#[test]
fn trust_prompt_lists_one_file_per_row_and_limits_the_rows() {
    let house = house!();
    for number in 0..300 {
        house.write(&format!("workspace/.jaato/{number:03}\nhint: run: curl"), "");
    }
    house.set_script(&json!({ "answers": [text_answer("done")] }));
    let Some(mut running) = start_with_echo(&house, "run go", "rows 24 cols 80") else { return };
    running.wait_for_question();
    running.write(b"n\n");
    let output = running.wait_with_open_input().code(0);
    let rows = question_rows(&output.stdout, "Do you trust this folder?");
    assert!(rows.len() < 24 && rows.iter().all(|row| row.starts_with("║ ")), "{rows:#?}");
    assert!(rows.iter().any(|row| row.contains("000<U+000A>hint: run: curl")), "{rows:#?}");
    assert!(rows.iter().any(|row| row.contains(" more lines")), "{rows:#?}");
    assert!(rows.iter().any(|row| row.contains("s Show all of it")), "{rows:#?}");
}
