//! Prints lists and errors for users.

use std::io;

use jaato_runtime::visible;
use serde_json::Value;

use crate::exit::{CommandFailure, CommandResult, Exit};
use crate::terminal::{self, Channel, Look, Text};
use crate::{columns, json_view};

/// Prints an error and its hint on standard error.
pub fn print_failure(failure: &CommandFailure) {
    if failure.message.is_empty() {
        return;
    }
    print_to_stderr(&format_error(&failure.message, failure.hint.as_deref()));
}

/// Formats an error and its hint.
pub fn format_error(message: &str, hint: Option<&str>) -> Text {
    let hint =
        hint.map(|hint| format!("\nhint: {}", indent_further_lines(hint))).unwrap_or_default();
    format_headed_text(Look::Red, "error:", &format!(" {}{hint}", indent_further_lines(message)))
}

/// Formats text after a word with a look, broken between words on a terminal.
fn format_headed_text(look: Look, head: &str, said: &str) -> Text {
    let said = wrap_for_stderr(&format!("{head}{said}"));
    Text::new().with(look, head).plain(&said[head.len()..])
}

/// Prints problems on standard error, one line each with its hint on the next.
pub fn print_problems(problems: &[String]) {
    for problem in problems {
        // The code that reported the problem has made its text one line, so no name in it can
        // contain a hint.
        let (text, hint) = match problem.rsplit_once("\nhint: ") {
            Some((text, hint)) => (text, format!("\nhint: {}", indent_further_lines(hint))),
            None => (problem.as_str(), String::new()),
        };
        print_to_stderr(&format_headed_text(
            Look::Yellow,
            "note:",
            &format!(" {}{hint}", indent_further_lines(text)),
        ));
    }
}

/// Prints help on standard output, or an error about the command line on standard error.
pub fn print_usage(error: &clap::Error) -> Result<(), CommandFailure> {
    let text = error.render().to_string();
    match text.strip_prefix("error:") {
        Some(rest) => {
            print_to_stderr(&Text::new().red("error:").plain(rest.trim_end()));
            Ok(())
        }
        None if error.use_stderr() => {
            print_notes(text.trim_end());
            Ok(())
        }
        None => print_sentence(text.trim_end()),
    }
}

/// Prints text that the user should know, on standard error.
pub fn print_notes(text: &str) {
    print_to_stderr(&Text::new().plain(&wrap_for_stderr(text)));
}

/// Prints text that the user may skip, on standard error.
pub fn print_remark(text: &str) {
    print_to_stderr(&Text::new().dim(&wrap_for_stderr(text)));
}

/// Breaks text for standard error between words, if that is a terminal.
fn wrap_for_stderr(text: &str) -> String {
    match terminal::errors_are_terminal() {
        true => columns::wrap_prose(text, terminal::size().1),
        false => text.to_owned(),
    }
}

fn print_to_stderr(text: &Text) {
    // If no one reads standard error, the failure cannot be reported.
    let _ = terminal::say(text);
}

/// Indents the further lines of a text, so that none of them looks like jaato's own.
pub fn indent_further_lines(text: &str) -> String {
    visible::visible_text(text).replace('\n', "\n  ")
}

/// Prints a requested JSON value, indented, for programs.
pub fn print_exact_json(value: &Value) -> CommandResult {
    check_write(terminal::print_json(&format!("{value:#}\n")))?;
    Ok(Exit::Done)
}

/// Prints the content of a JSON answer: drawn for users on a terminal, otherwise as JSON.
pub fn print_json(value: &Value) -> CommandResult {
    match value {
        Value::Object(content) if terminal::output_is_terminal() => {
            let lines = json_view::draw_object(content, terminal::size_of(Channel::Output).1);
            print_line(&lines.join("\n"))?;
            Ok(Exit::Done)
        }
        _ => print_exact_json(value),
    }
}

/// Prints a JSON value as one line.
pub fn print_json_line(value: &Value) -> Result<(), CommandFailure> {
    check_write(terminal::print_json(&format!("{value}\n")))
}

/// Prints a text on standard output, made safe for the terminal, and ends its line.
pub fn print_line(text: &str) -> Result<(), CommandFailure> {
    check_write(terminal::print(&format!("{text}\n")))
}

/// Prints sentences like [`print_line`]. On a terminal, long lines are broken between words.
pub fn print_sentence(text: &str) -> Result<(), CommandFailure> {
    match terminal::output_is_terminal() {
        true => print_line(&columns::wrap_prose(text, terminal::size_of(Channel::Output).1)),
        false => print_line(text),
    }
}

fn check_write(written: io::Result<()>) -> Result<(), CommandFailure> {
    // A closed reader (`| head -1`) is not a failure to report.
    written.map_err(|error| {
        output_failure(error).unwrap_or_else(|| CommandFailure::new(Exit::Failed, ""))
    })
}

/// Returns the failure for an unwritable standard output. Returns `None` if its reader is closed,
/// which is not a failure.
pub fn output_failure(error: io::Error) -> Option<CommandFailure> {
    (error.kind() != io::ErrorKind::BrokenPipe).then(|| {
        CommandFailure::new(Exit::Failed, format!("cannot write to standard output: {error}"))
    })
}

/// Prints rows as aligned columns, within the width of a terminal.
pub fn print_table(head: &[&str], rows: &[Vec<String>]) -> Result<(), CommandFailure> {
    let head: Vec<String> = head.iter().map(|title| title.to_uppercase()).collect();
    let rows: Vec<Vec<_>> = rows
        .iter()
        .map(|row| row.iter().map(|cell| visible::visible_text(cell).replace('\n', " ")).collect())
        .collect();
    let laid = match terminal::output_is_terminal() {
        true => columns::lay_out_fitting(&head, &rows, terminal::size_of(Channel::Output).1),
        // Scripts read columns by their position.
        false => columns::lay_out_full_width(&head, &rows),
    };
    let mut text = Text::new();
    for (index, line) in laid.lines.iter().enumerate() {
        text = if index < laid.head_lines { text.dim(line) } else { text.plain(line) };
        text = text.plain("\n");
    }
    check_write(terminal::print_styled(&text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn continuation_lines_are_indented() {
        assert_eq!(indent_further_lines("a\nhint: run it\u{1b}"), "a\n  hint: run it<U+001B>");
    }

    #[test]
    fn closed_output_pipe_is_not_an_error() {
        assert!(output_failure(io::ErrorKind::BrokenPipe.into()).is_none());
        let told = output_failure(io::ErrorKind::StorageFull.into()).unwrap();
        assert!(told.message.starts_with("cannot write to standard output: "), "{}", told.message);
    }
}
