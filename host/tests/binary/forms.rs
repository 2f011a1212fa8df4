//! Tests plugins' forms at the terminal: answered field by field, declined, withdrawn, and never
//! disguised as something else.

use serde_json::{Value, json};

use crate::house;
use crate::secrets::{SECRET, assert_secret_nowhere};
use crate::support::command::Running;
use crate::support::{Command, House, Output, fixture};
use crate::terminal::{run_on_terminal, run_shell_on_terminal};

fn unchanged_command(command: Command) -> Command {
    command
}

/// Returns an installation with the plugin `talks` inside jaato.
pub fn house_with_talks() -> Option<House> {
    let house = House::new()?;
    house.ship(&fixture("talks"));
    Some(house)
}

/// Returns an installation with the plugin `talks` in a worker, with all its grants.
pub fn house_with_talks_in_worker() -> Option<House> {
    let house = House::new()?;
    house.ship_to_user(&fixture("talks"));
    house.run(&["plugin", "grant", "fixture-talks"]).code(0);
    Some(house)
}

fn text_field(name: &str) -> Value {
    json!({ "name": name, "text": format!("What {name}?") })
}

fn form_arguments(fields: Value) -> Value {
    json!({ "title": "A form", "fields": fields })
}

/// Returns a form with all kinds of fields.
fn whole_form() -> Value {
    let options = json!([
        { "value": "red" },
        { "value": "blue", "label": "Dark blue", "description": "as the night" },
        { "value": "green" },
    ]);
    form_arguments(json!([
        { "name": "colour", "text": "Which colour?", "kind": "choice", "options": options, "default": "green" },
        { "name": "colours", "text": "Which colours?", "kind": "several", "options": options },
        { "name": "reason", "text": "Why?", "default": "none" },
        { "name": "word", "text": "Which word?", "kind": "secret" },
    ]))
}

/// Runs `call ask_person` at a user's terminal.
fn start_asking(house: &House, arguments: &Value, size: &str) -> Option<Running> {
    let arguments = arguments.to_string().replace('\'', "'\\''");
    let binary = house.binary().display().to_string();
    let line = format!("stty {size}; exec '{binary}' call ask_person '{arguments}'");
    run_shell_on_terminal(house, &line, unchanged_command)
}

fn write_answer(running: &mut Running, line: &str) {
    running.wait_for_question();
    running.write(line.as_bytes());
}

/// Returns the JSON that a call has printed after everything else.
#[track_caller]
fn printed_result(output: &Output) -> Value {
    let begin = output.stdout.find("{\r\n").unwrap_or_else(|| panic!("no result: {output}"));
    serde_json::from_str(&output.stdout[begin..])
        .unwrap_or_else(|error| panic!("{error}: {output}"))
}

#[track_caller]
fn form_answer(values: Value) -> Value {
    json!({ "answer": { "outcome": "answered", "values": values } })
}

#[test]
fn a_form_is_answered_field_by_field_on_narrow_terminals_too() {
    for columns in [40, 80, 100] {
        let Some(house) = house_with_talks() else { return };
        let arguments = json!({ "form": whole_form() });
        let size = format!("rows 24 cols {columns}");
        let Some(mut running) = start_asking(&house, &arguments, &size) else { return };
        running.wait_for_text("1 of 4");
        // First a choice that does not exist, then one by its number.
        write_answer(&mut running, "7\n");
        running.wait_for_text("not in the list");
        write_answer(&mut running, "2\n");
        write_answer(&mut running, "3, 1\n");
        // Back, and Enter keeps the answer.
        write_answer(&mut running, "<\n");
        write_answer(&mut running, "\n");
        write_answer(&mut running, "\n");
        write_answer(&mut running, "hush\r");
        let output = running.wait_with_open_input().code(0);
        let values = json!({
            "colour": "blue", "colours": ["green", "red"], "reason": "none", "word": "hush",
        });
        assert_eq!(printed_result(&output), form_answer(values), "{output}");
        let shown = &output.stdout[..output.stdout.find("{\r\n").unwrap()];
        // An answered question folds to a row that names the asking plugin.
        let is_question = |row: &&str| !row.is_empty() && !row.starts_with("fixture-talks: ");
        let rows: Vec<&str> = shown.split("\r\n").filter(is_question).collect();
        let is_marked = |row: &&str| row.starts_with("║ ") && row.chars().count() < columns;
        assert!(rows.iter().all(is_marked), "{columns}: {rows:#?}");
        assert!(shown.contains("Dark blue (blue)"), "{output}");
        // The folded rows name the options as the list does.
        assert!(columns == 40 || shown.contains("colour? → Dark blue\r\n"), "{output}");
        assert!(columns == 40 || shown.contains("colours? → green, red\r\n"), "{output}");
    }
}

#[test]
fn form_from_a_worker_is_answered_like_any_form() {
    let Some(house) = house_with_talks_in_worker() else { return };
    let arguments =
        json!({ "form": form_arguments(json!([text_field("name"), text_field("place")])) });
    let Some(mut running) = start_asking(&house, &arguments, "cols 80") else { return };
    running.wait_for_text("fixture-talks asks you, 1 of 2");
    write_answer(&mut running, "Ada\n");
    write_answer(&mut running, "here\n");
    let output = running.wait_with_open_input().code(0);
    assert_eq!(printed_result(&output), form_answer(json!({ "name": "Ada", "place": "here" })));
    house.assert_no_processes();
}

#[test]
fn declining_a_form_by_word_or_ctrl_c_restores_the_terminal() {
    let Some(house) = house_with_talks() else { return };
    let settings = |file: &str| std::fs::read_to_string(house.workspace().join(file)).unwrap();
    let binary = house.binary().display().to_string();
    let arguments =
        json!({ "form": form_arguments(json!([text_field("name"), text_field("place")])) });
    let line =
        format!("stty -a > before; '{binary}' call ask_person '{arguments}'; stty -a > after");
    for declining in ["/decline\n", "\u{3}", "half a name\u{3}"] {
        let Some(mut running) = run_shell_on_terminal(&house, &line, unchanged_command) else {
            return;
        };
        write_answer(&mut running, declining);
        let output = running.wait_with_open_input().code(0);
        assert_eq!(
            printed_result(&output),
            json!({ "answer": { "outcome": "declined" } }),
            "{output}"
        );
        assert_eq!(output.stdout.matches("asks you").count(), 1, "{output}");
        assert_eq!(settings("before"), settings("after"), "{declining:?}");
    }
}

#[test]
fn form_text_cannot_imitate_a_permission_prompt() {
    let Some(house) = house_with_talks() else { return };
    let evil = "║ Run this command?\u{1b}[2J\n  1 Yes\u{202e}";
    let long = format!("{}{evil}", " ".repeat(700));
    let option = json!({ "value": "a", "label": evil, "description": long });
    let field = json!({ "name": evil, "text": long, "kind": "choice", "options": [option], "default": "a" });
    let arguments = json!({ "form": { "title": evil, "fields": [field] } });
    for columns in [23, 40, 80] {
        let size = format!("rows 30 cols {columns}");
        let Some(mut running) = start_asking(&house, &arguments, &size) else { return };
        write_answer(&mut running, "\n");
        let output = running.wait_with_open_input().code(0);
        let shown = &output.stdout[..output.stdout.find("{\r\n").unwrap()];
        // An answered question folds to a row that names the asking plugin.
        let is_question = |row: &&str| !row.is_empty() && !row.starts_with("fixture-talks: ");
        let rows: Vec<&str> = shown.split("\r\n").filter(is_question).collect();
        assert!(rows.iter().all(|row| row.starts_with("║ ")), "{columns}: {rows:#?}");
        assert!(rows.iter().all(|row| row.chars().count() < columns), "{columns}: {rows:#?}");
        assert_eq!(shown.matches("║ Run").count(), 0, "{output}");
        assert!(!shown.contains(['\u{1b}', '\u{202e}']), "{shown:?}");
        // The plugin's text follows a bar.
        let posing = rows.iter().skip(1).filter(|row| row.contains("1 Yes"));
        assert!(posing.clone().count() > 0 || columns < 40, "{rows:#?}");
        for row in posing {
            assert!(row.starts_with("║   │ "), "{row}");
        }
    }
}

#[test]
fn long_list_of_options_is_shown_whole_on_request() {
    let Some(house) = house_with_talks() else { return };
    let options: Vec<Value> =
        (1..=100).map(|number| json!({ "value": format!("value {number}") })).collect();
    let field = json!({ "name": "one", "kind": "choice", "options": options });
    let arguments = json!({ "form": form_arguments(json!([field])) });
    let Some(mut running) = start_asking(&house, &arguments, "rows 20 cols 60") else { return };
    running.wait_for_text("more lines");
    write_answer(&mut running, "/show\n");
    running.wait_for_text("100: value 100");
    write_answer(&mut running, "value 77\n");
    let output = running.wait_with_open_input().code(0);
    assert_eq!(printed_result(&output), form_answer(json!({ "one": "value 77" })));
}

#[test]
fn secret_form_answer_reaches_only_the_plugin() {
    let Some(house) = house_with_talks() else { return };
    let secret = json!({ "name": "word", "text": "Which word?", "kind": "secret" });
    let arguments = json!({ "form": form_arguments(json!([secret])), "lengths": true });
    house.set_script(&json!({ "answers": [
        { "steps": [{ "call": { "name": "ask_person", "arguments": arguments } }] },
        { "expect": { "tool_result": "\"word\":21" }, "steps": [{ "text": "done" }] },
    ] }));
    for output in ["json", "text"] {
        let words = format!("run --yes --output {output} go");
        let Some(mut running) = run_on_terminal(&house, &words, unchanged_command) else { return };
        // An empty input is not an answer.
        write_answer(&mut running, "\r");
        write_answer(&mut running, &format!("{SECRET}\r"));
        let output = running.wait_with_open_input().code(0);
        assert!(output.stdout.contains("done"), "{output}");
        assert!(!output.stdout.contains(SECRET), "{output}");
        assert_secret_nowhere(&house);
    }
}

#[test]
fn form_without_a_user_fails_at_once_with_a_reason() {
    let Some(house) = house_with_talks() else { return };
    let arguments = json!({ "form": form_arguments(json!([text_field("name")])) }).to_string();
    let output = house.run(&["call", "ask_person", &arguments]).expect_silent();
    let answer = json!({ "outcome": "nobody", "reason": "standard input is not a terminal" });
    assert_eq!(output.json(), json!({ "answer": answer }));
    let line =
        json!({ "tool": "ask_person", "args": serde_json::from_str::<Value>(&arguments).unwrap() });
    let output = house.command(&["call", "--batch"]).input(format!("{line}\n")).run().code(0);
    assert_eq!(output.json()["result"]["answer"]["outcome"], "nobody", "{output}");
    house.set_script(&json!({ "answers": [
        { "steps": [{ "call": { "name": "ask_person", "arguments": serde_json::from_str::<Value>(&arguments).unwrap() } }] },
        { "expect": { "tool_result": "\"outcome\":\"nobody\"" }, "steps": [{ "text": "done" }] },
    ] }));
    house.run(&["run", "--yes", "go"]).code(0);
}

#[test]
fn too_large_form_is_refused_and_a_tiny_terminal_means_no_user() {
    let Some(house) = house_with_talks() else { return };
    let fields =
        |count: usize| (0..count).map(|number| text_field(&format!("f{number}"))).collect();
    let arguments = json!({ "form": form_arguments(Value::Array(fields(21))) }).to_string();
    let output = house.run(&["call", "ask_person", &arguments]).code(2);
    assert!(output.stderr.contains("a form needs 1 to 20 fields, but this one has 21"), "{output}");
    let arguments = json!({ "form": form_arguments(Value::Array(fields(1))) });
    let Some(running) = start_asking(&house, &arguments, "rows 3 cols 80") else { return };
    let output = running.wait_with_open_input().code(0);
    assert_eq!(printed_result(&output)["answer"]["outcome"], "nobody", "{output}");
}

#[test]
fn only_a_few_of_many_forms_wait_and_each_is_shown_alone() {
    for house in [house_with_talks(), house_with_talks_in_worker()] {
        let Some(house) = house else { return };
        let arguments = json!({ "form": form_arguments(json!([text_field("name")])), "times": 30 });
        let Some(mut running) = start_asking(&house, &arguments, "cols 80") else { return };
        for _ in 0..9 {
            write_answer(&mut running, "/decline\n");
        }
        let output = running.wait_with_open_input().code(0);
        assert_eq!(
            printed_result(&output),
            json!({ "came": { "declined": 9, "limit_reached": 21 } })
        );
    }
}

#[test]
fn unanswered_form_ends_with_its_session_and_restores_the_terminal() {
    let house = house!(ships "talks");
    let arguments = json!({ "form": form_arguments(json!([text_field("name")])) });
    house.set_script(&json!({ "answers": [
        { "steps": [{ "call": { "name": "ask_person", "arguments": arguments } }] },
    ] }));
    let binary = house.binary().display().to_string();
    let settings = |file: &str| std::fs::read_to_string(house.workspace().join(file)).unwrap();
    let line = format!("stty -a > before; '{binary}' run --yes go; echo ended $?; stty -a > after");
    let Some(mut running) = run_shell_on_terminal(&house, &line, unchanged_command) else { return };
    running.wait_for_question();
    running.write(b"half an answ");
    let words = format!("{binary} run --yes go");
    let processes = house.processes();
    let mut runs = processes.iter().filter_map(|it| it.trim_end().strip_suffix(&words));
    let pid = runs.next().unwrap().trim_end_matches(": ");
    assert!(std::process::Command::new("kill").arg(pid).status().unwrap().success());
    running.wait_for_text("ended 130");
    let output = running.wait_with_open_input().code(0);
    assert!(output.stdout.contains("its form was withdrawn"), "{output}");
    assert_eq!(settings("before"), settings("after"));
    house.assert_no_processes();
}

#[test]
fn forms_work_in_plugin_commands_and_chats() {
    let Some(house) = house_with_talks() else { return };
    let Some(mut running) = run_on_terminal(&house, "command quiz", unchanged_command) else {
        return;
    };
    write_answer(&mut running, "tea\n");
    let output = running.wait_with_open_input().code(0);
    assert!(output.stdout.contains("outcome: answered"), "{output}");
    assert!(output.stdout.contains("drink: tea"), "{output}");
    house.set_script(&json!({ "answers": [
        { "steps": [{ "text": "hello" }] },
    ] }));
    let editing = |command: Command| command.variable("TERM", "xterm");
    let Some(mut running) = run_on_terminal(&house, "chat", editing) else { return };
    running.wait_for_text("> ");
    running.write(b"/quiz\r");
    write_answer(&mut running, "tea\n");
    running.wait_for_text("drink: tea");
    running.wait_for_text("> ");
    running.write(b"\x04");
    running.wait_with_open_input().code(0);
}
