//! Tests that tables and answers fit on terminals of 40, 80 and 100 columns, and that scripts can
//! read piped output.

use serde_json::json;

use crate::support::{Command, House, fixture, fixtures, library_name};
use crate::terminal::run_shell_on_terminal;

/// Returns a command's output on a terminal with this many columns, line by line.
fn shown_lines(house: &House, columns: usize, words: &str) -> Option<Vec<String>> {
    let binary = house.binary();
    let line = format!("stty -echo rows 24 cols {columns}; exec '{}' {words}", binary.display());
    let output =
        run_shell_on_terminal(house, &line, |command| command)?.wait_with_open_input().code(0);
    let text = console::strip_ansi_codes(&output.stdout).replace('\r', "");
    Some(text.trim_end().lines().map(str::to_owned).collect())
}

#[track_caller]
fn assert_fits(lines: &[String], columns: usize) {
    assert!(!lines.is_empty());
    for line in lines {
        assert!(console::measure_text_width(line) < columns, "{columns}: {line:?} of {lines:#?}");
    }
}

/// Returns an installation with a plugin whose table has six columns, the last of them long.
fn house_with_table() -> Option<House> {
    let house = House::new()?;
    house.ship(&fixture("probe"));
    Some(house)
}

#[test]
fn tables_fit_their_terminal_and_a_pipe_keeps_its_columns() {
    let Some(house) = house_with_table() else { return };
    for words in ["tool list", "plugin list", "provider list", "config path"] {
        let piped = Command::new(&house, &words.split(' ').collect::<Vec<_>>()).run().code(0);
        let widest = piped.stdout.lines().map(console::measure_text_width).max();
        for columns in [40, 80, 100] {
            let Some(lines) = shown_lines(&house, columns, words) else { return };
            let lines: Vec<String> =
                lines.into_iter().filter(|line| !line.starts_with("note: ")).collect();
            assert_fits(&lines, columns);
            let is_whole = lines.join("\n") == piped.stdout.trim_end();
            assert_eq!(is_whole, widest < Some(columns), "{columns}: {lines:#?}\n{piped}");
        }
    }
}

#[test]
fn ledger_and_permission_lists_fit_the_terminal() {
    let Some(house) = house_with_table() else { return };
    let count = json!({ "steps": [{ "call": { "name": "count", "arguments": {} } }] });
    house.set_script(&json!({ "answers": [count, { "steps": [{ "text": "counted" }] }] }));
    for task in ["count", "count once more"] {
        house.run(&["run", "--yes", task]).code(0);
    }
    house
        .run(&["permission", "allow", "count", "--why", "it only counts, as everybody knows"])
        .code(0);
    for words in ["ledger show", "permission log", "permission list"] {
        let piped = house.run(&words.split(' ').collect::<Vec<_>>()).code(0);
        let named = if words == "ledger show" { "scripted/test" } else { "count" };
        assert!(piped.stdout.contains(named), "{words}: {piped}");
        for columns in [40, 80, 100] {
            let Some(lines) = shown_lines(&house, columns, words) else { return };
            assert_fits(&lines, columns);
        }
    }
}

#[test]
fn at_forty_columns_each_value_has_a_line() {
    let Some(house) = house_with_table() else { return };
    let Some(lines) = shown_lines(&house, 40, "tool list") else { return };
    let first = lines.iter().position(|line| line == "tool: count");
    let first = first.unwrap_or_else(|| panic!("no tool in {lines:#?}"));
    assert!(lines[first + 1].starts_with("plugin: "), "{lines:#?}");
    assert!(lines.contains(&String::new()), "{lines:#?}");
}

#[test]
fn command_result_is_text_on_a_terminal_and_json_in_a_pipe() {
    let Some(house) = house_with_table() else { return };
    let words = ["command", "objects"];
    let piped = Command::new(&house, &words).run().code(0);
    assert_eq!(piped.json(), json!({ "environment": {} }));
    for columns in [40, 80, 100] {
        let Some(lines) = shown_lines(&house, columns, "command objects") else { return };
        assert_eq!(lines, ["environment: none"]);
    }
}

#[test]
fn gc_command_prints_one_sentence_in_a_chat() {
    let Some(house) = house_with_table() else { return };
    house.ship(&fixtures::test_house().unwrap().join("plugins").join(library_name("gc_truncate")));
    house.set_script(&json!({ "answers": [] }));
    let Some(mut running) = run_shell_on_terminal(
        &house,
        &format!("stty -echo rows 24 cols 40; exec '{}' chat", house.binary().display()),
        |command| command,
    ) else {
        return;
    };
    running.wait_for_text("> ");
    running.write(b"/gc\r");
    running.wait_for_text("gc truncate: nothing to leave out,");
    running.write(b"\x04");
    let output = running.wait_with_open_input().code(0);
    // The end of the sentence fits on a narrow terminal too, and its numbers are not listed again.
    let shown = output.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(shown.contains(" tokens before and ") && shown.contains(" after"), "{output}");
    assert!(!shown.contains('{') && !shown.contains("messages removed"), "{output}");
}
