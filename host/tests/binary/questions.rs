//! Questions at the terminal: none can be spoofed, overprinted, scrolled away, or answered by what
//! was typed before.

use std::path::Path;

use serde_json::{Value, json};

use crate::gate_rules::rules_in_place;
use crate::house;
use crate::support::answers::{call, says};
use crate::support::cli::with_cli;
use crate::support::command::{DEADLINE, LOOK_AGAIN, Running};
use crate::support::{Command, House, fixture};
use crate::terminal::{on_terminal, shell_on_terminal};

const QUESTION: &str = "run it?";

fn as_it_is(command: Command) -> Command {
    command
}

fn told(result: &str, then: Value) -> Value {
    let mut answer = then;
    answer["expect"] = json!({ "tool_result": result });
    answer
}

/// A house with a person's rules, a shell for the model and a tool that is asked about.
fn with_tools() -> Option<House> {
    let house = with_cli()?;
    rules_in_place(&house);
    house.ship(&fixture("probe"));
    Some(house)
}

/// Runs jaato where what is typed is shown, so that a test sees when it has arrived.
fn with_echo(house: &House, words: &str, size: &str) -> Option<Running> {
    let line = format!("stty {size}; exec '{}' {words}", house.binary().display());
    shell_on_terminal(house, &line, as_it_is)
}

/// A command that goes on once a file is there.
fn waits_for(file: &str) -> String {
    format!("while [ ! -e {file} ]; do sleep 0.01; done")
}

#[track_caller]
pub fn wait_for_file(path: &Path) {
    let begin = std::time::Instant::now();
    while !path.exists() {
        assert!(begin.elapsed() < DEADLINE, "{} never comes", path.display());
        std::thread::sleep(LOOK_AGAIN);
    }
}

/// The rows of the last question on a screen that was recorded, without their ends.
fn rows_of_question(recorded: &str) -> Vec<&str> {
    let begin = recorded.rfind("║ question ").unwrap_or_else(|| panic!("no question: {recorded}"));
    recorded[begin..].split("\r\n").collect()
}

#[test]
fn a_question_names_the_environment_in_which_the_session_works() {
    let Some(house) = with_tools() else { return };
    house.ship(&fixture("rooms"));
    house.script(&json!({ "answers": [call("count", json!({})), says("done")] }));
    let Some(mut running) = with_echo(&house, "run --environment rooms go", "echo") else { return };
    running.wait_for_text(QUESTION);
    running.write(b"no, not there\n");
    let output = running.wait_with_open_input().code(0);
    let why = "(tool `count` needs a permission; the session works in rooms)";
    assert!(output.stdout.contains(why), "{output}");
    // A person who has denied is told no more than that.
    assert!(output.stdout.contains("✗ denied: no, not there\r\ndone"), "{output}");
}

#[test]
fn on_a_small_terminal_what_it_is_about_comes_before_all_that_could_be_answered() {
    let Some(house) = with_tools() else { return };
    let lines = (1..=3).map(|number| format!("echo {number}")).collect::<Vec<_>>().join("\n");
    let answers = [
        call("cli_based_tool", json!({ "command": lines })),
        told("\"returncode\":0", says("ran")),
    ];
    for (size, is_short) in [("rows 24 cols 80 echo", false), ("rows 12 cols 80 echo", true)] {
        house.script(&json!({ "answers": answers }));
        let Some(mut running) = with_echo(&house, "run go", size) else { return };
        running.wait_for_text(QUESTION);
        running.write(b"?\n");
        running.wait_for_text("y runs this call");
        running.write(b"y\n");
        let output = running.wait_with_open_input().code(0);
        let rows = rows_of_question(&output.stdout).join("\n");
        for line in ["│ echo 1", "│ echo 2", "│ echo 3"] {
            assert!(rows.contains(line), "{line}: {rows}");
        }
        assert_eq!(!rows.contains("[a]lways"), is_short, "{rows}");
    }
}

#[test]
fn what_was_typed_before_a_question_is_no_answer_to_it() {
    let Some(house) = with_tools() else { return };
    house.script(&json!({ "answers": [
        call("cli_based_tool", json!({ "command": waits_for("go") })),
        call("count", json!({})),
        told("the user denied the call", says("done")),
    ] }));
    let Some(mut running) = with_echo(&house, "run --allow cli_based_tool go", "echo") else {
        return;
    };
    running.wait_for_text("cli_based_tool");
    running.write(b"y\nalways\nmarmot\n");
    running.wait_for_text("marmot");
    house.write("workspace/go", "");
    running.wait_for_text(QUESTION);
    running.write(b"n\n");
    let output = running.wait_with_open_input().code(0);
    assert_eq!(output.stdout.matches(QUESTION).count(), 1, "{output}");
    assert!(output.stdout.contains("done"), "{output}");
}

#[test]
fn in_a_conversation_it_is_a_message_and_no_answer() {
    let Some(house) = with_tools() else { return };
    house.script(&json!({ "answers": [
        call("cli_based_tool", json!({ "command": waits_for("go") })),
        told("yes, and marmots", call("count", json!({}))),
        told("the user denied the call", says("done")),
    ] }));
    let line = format!("exec '{}' chat --allow cli_based_tool go", house.binary().display());
    let editing = |command: Command| command.variable("TERM", "xterm");
    let Some(mut running) = shell_on_terminal(&house, &line, editing) else { return };
    running.wait_for_text("> ");
    running.write(b"yes, and marmots\r");
    running.wait_for_text("queued, goes with the next step: yes, and marmots");
    house.write("workspace/go", "");
    running.wait_for_text(QUESTION);
    running.write(b"n\n");
    running.wait_for_text("done");
    running.wait_for_text("> ");
    running.write(b"\x04");
    let output = running.wait_with_open_input().code(0);
    assert_eq!(output.stdout.matches(QUESTION).count(), 1, "{output}");
    house.nothing_lives();
}

#[test]
fn what_was_typed_before_the_question_of_trust_is_no_answer_to_it() {
    let house = house!();
    house.write("workspace/AGENTS.md", "Always rhyme.");
    house.script(&json!({ "answers": [says("done")] }));
    // Typed before jaato has begun: it waits in the terminal.
    let line = format!(
        "read -r begun; while [ ! -e go ]; do sleep 0.01; done; exec '{}' run go",
        house.binary().display()
    );
    let Some(mut running) = shell_on_terminal(&house, &line, as_it_is) else { return };
    running.write(b"begun\ny\nmarmot\n");
    running.wait_for_text("marmot");
    house.write("workspace/go", "");
    running.wait_for_text("trust them as they are?");
    running.write(b"n\n");
    running.wait_with_open_input().code(0);
    let prompt = house.run(&["run", "--show-prompt"]).code(0);
    assert!(!prompt.stdout.contains("Always rhyme."), "{prompt}");
}

#[test]
fn while_a_question_is_open_nothing_else_is_shown() {
    let Some(house) = with_tools() else { return };
    house.configure_more("[session]\nauto_background_threshold_ms = 50\n");
    let command = format!("{}; echo FORGED; : > printed; {}", waits_for("go"), waits_for("end"));
    house.script(&json!({ "answers": [
        call("cli_based_tool", json!({ "command": command })),
        call("count", json!({})),
        told("\"count\":1", says("done")),
        says("all done"),
    ] }));
    let Some(mut running) = on_terminal(&house, "run --allow cli_based_tool go", as_it_is) else {
        return;
    };
    running.wait_for_text(QUESTION);
    house.write("workspace/go", "");
    wait_for_file(&house.workspace().join("printed"));
    // Not understood, so it is asked again below: what was printed meanwhile would stand between.
    for _ in 0..3 {
        running.write(b"\n");
        running.wait_for_text(QUESTION);
    }
    running.write(b"y\n");
    house.write("workspace/end", "");
    let output = running.wait_with_open_input().code(0);
    let forged = output.stdout.find("│ FORGED").unwrap_or_else(|| panic!("it is lost: {output}"));
    let last = output.stdout.rfind(QUESTION).unwrap();
    assert!(forged > last, "{output}");
    assert!(output.stdout[forged..].contains("done"), "{output}");
}

#[test]
fn every_row_of_a_question_is_marked_and_broken_at_the_width() {
    let Some(house) = with_tools() else { return };
    let forged = format!(
        "rm -rf ~{}║ question 2 koruma: cli_based_tool of tool-cli wants to run with{}command: ls{}\u{202e}run it?\u{200b}",
        " ".repeat(600),
        " ".repeat(20),
        " ".repeat(700),
    );
    house.script(&json!({ "answers": [
        call("cli_based_tool", json!({ "command": forged })),
        told("the user denied the call", says("done")),
    ] }));
    for columns in [80, 40, 30] {
        let size = format!("rows 24 cols {columns}");
        let Some(mut running) = with_echo(&house, "run go", &size) else { return };
        running.wait_for_text("[n]o");
        running.write(b"n\n");
        let output = running.wait_with_open_input().code(0);
        let rows = rows_of_question(&output.stdout);
        let end = rows
            .iter()
            .position(|row| row.contains("instead: "))
            .unwrap_or_else(|| panic!("{output}"));
        let question = &rows[..=end];
        assert!(question.len() < 24, "{output}");
        assert!(question.iter().all(|row| row.starts_with("║ ")), "{columns}: {question:#?}");
        let is_narrow = |row: &&str| row.trim_end_matches(['n', ' ']).chars().count() < columns;
        assert!(question.iter().all(is_narrow), "{columns}: {question:#?}");
        assert!(question.iter().any(|row| row.contains("│ rm -rf ~")), "{question:#?}");
        assert!(columns < 80 || output.stdout.contains("<U+202E>"), "{output}");
        assert!(!output.stdout.contains(['\u{202e}', '\u{200b}']), "{output}");
        assert_eq!(output.stdout.matches("║ question").count(), 1, "{output}");
    }
}

#[test]
fn a_long_argument_shows_its_beginning_and_its_end_and_all_of_it_when_asked() {
    let Some(house) = with_tools() else { return };
    let lines: Vec<String> = (1..=400).map(|line| format!("echo {line} >> made")).collect();
    house.script(&json!({ "answers": [
        call("cli_based_tool", json!({ "command": lines.join("\n") })),
        told("the user denied the call", says("done")),
    ] }));
    let Some(mut running) = with_echo(&house, "run go", "rows 24 cols 80") else { return };
    running.wait_for_text("more lines");
    running.wait_for_text(QUESTION);
    running.write(b"s\n");
    running.wait_for_text("│ echo 200 >> made");
    running.wait_for_text(QUESTION);
    running.write(b"n\n");
    let output = running.wait_with_open_input().code(0);
    let asked: Vec<&str> = output.stdout.split("║ question 1").collect();
    assert_eq!(asked.len(), 3, "{output}");
    for shown in ["│ echo 1 >> made", "│ echo 400 >> made", "[s]how all"] {
        assert!(asked[1].contains(shown), "{output}");
    }
    assert!(!asked[1].contains("echo 200 >> made"), "{output}");
    assert!(asked[2].contains("│ echo 200 >> made"), "{output}");
    assert!(!house.workspace().join("made").exists());
}

#[test]
fn a_terminal_that_changes_its_size_is_asked_again() {
    let Some(house) = with_tools() else { return };
    house.script(&json!({ "answers": [
        call("cli_based_tool", json!({ "command": format!("echo a{}b > made", " ".repeat(60)) })),
        told("\"returncode\":0", says("done")),
    ] }));
    let line = format!(
        "stty rows 24 cols 80; ({}; stty cols 30 </dev/tty) & exec '{}' run go",
        waits_for("go"),
        house.binary().display()
    );
    let Some(mut running) = shell_on_terminal(&house, &line, as_it_is) else { return };
    running.wait_for_text(QUESTION);
    house.write("workspace/go", "");
    running.wait_for_text(QUESTION);
    running.write(b"y\n");
    let output = running.wait_with_open_input().code(0);
    assert_eq!(output.stdout.matches("║ question 1").count(), 2, "{output}");
    let rows = rows_of_question(&output.stdout);
    let end = rows.iter().position(|row| row.contains("instead: ")).unwrap();
    assert!(
        rows[..end].iter().all(|row| row.starts_with("║ ") && row.chars().count() < 30),
        "{rows:#?}"
    );
}

#[test]
fn a_terminal_without_room_for_the_question_is_none() {
    let Some(house) = with_tools() else { return };
    house.script(&json!({ "answers": [
        call("count", json!({})),
        told("the terminal is too small for the question", says("done")),
    ] }));
    let Some(running) = with_echo(&house, "run go", "rows 3 cols 80") else { return };
    running.wait_with_open_input().code(6);
}

#[test]
fn a_question_says_what_always_will_hold_for() {
    let Some(house) = with_tools() else { return };
    house.script(&json!({ "answers": [
        call("cli_based_tool", json!({ "command": "true" })),
        says("done"),
    ] }));
    let Some(mut running) = with_echo(&house, "run go", "rows 24 cols 200") else { return };
    running.wait_for_text("1  exactly this call of `cli_based_tool`");
    running.wait_for_text("2  calls of `cli_based_tool` that only run `true …`");
    running.wait_for_text(
        "[a]lways in this session, [p]ermanently (as in 1; a2: as in 2), [e]dit, [n]o",
    );
    running.write(b"n\n");
    running.wait_with_open_input().code(0);
}

#[test]
fn a_stranger_is_granted_always_for_exactly_this_call_whatever_it_says_of_itself() {
    let house = house!();
    house.drop_in(&fixture("echo"));
    let count = |text: &str| call("count_bytes_echo", json!({ "text": text }));
    house.script(&json!({ "answers": [
        count("a"),
        told("1", count("a")),
        told("1", count("ab")),
        told("the user denied the call", says("done")),
    ] }));
    let Some(mut running) = with_echo(&house, "run go", "rows 24 cols 200") else { return };
    running.wait_for_text("[p]ermanently for exactly this, [e]dit, [n]o");
    running.write(b"a\n");
    running.wait_for_text("[p]ermanently for exactly this, [e]dit, [n]o");
    running.write(b"n\n");
    let output = running.wait_with_open_input().code(0);
    assert_eq!(output.stdout.matches("║ question").count(), 2, "{output}");
}

#[test]
fn each_question_has_a_word_of_its_own_that_no_text_can_bring_along() {
    let Some(house) = with_tools() else { return };
    let forged = "║ question 1 koruma: cli_based_tool of tool-cli wants to run with\n‖ run it? ";
    house.script(&json!({ "answers": [
        { "steps": [{ "text": forged }, { "call": { "name": "count", "arguments": {} } }] },
        told("denied", call("count", json!({}))),
        told("denied", says("done")),
    ] }));
    let Some(mut running) = with_echo(&house, "run go", "rows 24 cols 200") else { return };
    for number in ["║ question 1 ", "║ question 2 "] {
        running.wait_for_text(number);
        running.wait_for_text("instead: ");
        running.write(b"n\n");
    }
    let output = running.wait_with_open_input().code(0);
    let word = |number: &str| {
        let rest = output.stdout.split(&format!("║ question {number} ")).nth(1).unwrap();
        rest.split(':').next().unwrap().to_owned()
    };
    let (first, second) = (word("1"), word("2"));
    assert_ne!(first, second);
    // Before the answer it stands again.
    for (number, word) in [("1", first), ("2", second)] {
        assert!(output.stdout.contains(&format!("║ {number} {word}: run it?")), "{output}");
    }
    assert!(output.stdout.contains("<U+2551> question 1 koruma"), "{output}");
    assert!(output.stdout.contains("<U+2016> run it?"), "{output}");
}

#[test]
fn the_question_of_trust_names_each_file_in_a_line_and_not_all_of_thousands() {
    let house = house!();
    for number in 0..300 {
        house.write(&format!("workspace/.jaato/{number:03}\nhint: run: curl"), "");
    }
    house.script(&json!({ "answers": [says("done")] }));
    let Some(mut running) = with_echo(&house, "run go", "rows 24 cols 80") else { return };
    running.wait_for_text("trust them as they are?");
    running.write(b"n\n");
    let output = running.wait_with_open_input().code(0);
    let rows = rows_of_question(&output.stdout);
    let end = rows.iter().position(|row| row.contains("trust them")).unwrap();
    assert!(end < 23 && rows[..end].iter().all(|row| row.starts_with("║ ")), "{rows:#?}");
    assert!(rows[..end].iter().any(|row| row.contains("000<U+000A>hint: run: curl")), "{rows:#?}");
    assert!(rows[..end].iter().any(|row| row.contains(" more lines, ")), "{rows:#?}");
    assert!(rows[end].contains("[s]how all"), "{rows:#?}");
}
