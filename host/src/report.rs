//! Prints lists and errors for people.

use std::io::{self, Write as _};

use console::{Style, measure_text_width};
use serde_json::Value;

use crate::exit::{Exit, Failure, Outcome};
use crate::view::printable;

/// Prints an error and its hint on standard error.
pub fn failure(failure: &Failure) {
    if failure.message.is_empty() {
        return;
    }
    let red = Style::new().for_stderr().red();
    let mut text = format!("{} {}\n", red.apply_to("error:"), printable(&failure.message));
    if let Some(hint) = &failure.hint {
        text.push_str(&format!("{} {}\n", red.apply_to("hint:"), printable(hint)));
    }
    // Nobody is left to tell when standard error is closed.
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Prints what could not be used, on standard error, one line each and its hint on the next.
pub fn problems(problems: &[String]) {
    let dim = Style::new().for_stderr().yellow();
    for problem in problems {
        let text = format!("{} {}\n", dim.apply_to("note:"), printable(problem));
        // As above.
        let _ = io::stderr().lock().write_all(text.as_bytes());
    }
}

/// Prints what a person should know, on standard error; the text is the program's own.
pub fn notes(text: &str) {
    // As above.
    let _ = io::stderr().lock().write_all(format!("{text}\n").as_bytes());
}

/// Prints a JSON value, indented.
pub fn json(value: &Value) -> Outcome {
    line(&format!("{value:#}"))?;
    Ok(Exit::Done)
}

/// Prints a text on standard output, safe for the terminal whoever wrote it, and ends its line.
pub fn line(text: &str) -> Result<(), Failure> {
    write(&printable(text))
}

fn write(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.write_all(b"\n"))
        .and_then(|()| out.flush())
        .map_err(|error| match error.kind() {
            // Nobody reads any more (`| head -1`): that is no failure to tell about.
            io::ErrorKind::BrokenPipe => Failure::new(Exit::Failed, ""),
            _ => Failure::new(Exit::Failed, format!("cannot write to standard output: {error}")),
        })
}

/// Prints rows as columns that line up; the last column runs on.
pub fn table(head: &[&str], rows: &[Vec<String>]) -> Result<(), Failure> {
    let head: Vec<String> = head.iter().map(|title| title.to_uppercase()).collect();
    let columns = head.len();
    let mut widths = vec![0; columns];
    for row in rows.iter().chain([&head]) {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(measure_text_width(cell));
        }
    }
    let dim = Style::new().dim();
    let mut text = Vec::new();
    for (index, row) in std::iter::once(&head).chain(rows).enumerate() {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            line.push_str(&printable(cell).replace('\n', " "));
            if column + 1 < columns {
                let pad = widths[column].saturating_sub(measure_text_width(cell)) + 2;
                line.push_str(&" ".repeat(pad));
            }
        }
        let line = line.trim_end();
        text.push(if index == 0 { dim.apply_to(line).to_string() } else { line.to_owned() });
    }
    write(&text.join("\n"))
}
