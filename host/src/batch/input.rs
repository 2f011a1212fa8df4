//! The tasks of a batch: a JSON object per line, checked as a whole before any task runs.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jaato_runtime::config::{Caps, Dollars};
use serde::Deserialize;
use serde_json::Value;

use crate::deadline::parse_deadline;
use crate::exit::{CommandFailure, Exit};
use crate::input_lines::{InputLine, LINE_BYTES_MAX, next_line};

/// The largest number of tasks. All of them are in memory.
const TASKS_MAX: usize = 100_000;

/// The most bytes of a task's id, which is in results and in progress lines.
const ID_BYTES_MAX: usize = 256;

/// Some editors write it at the beginning of a file.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// The name of standard input.
const STANDARD_INPUT: &str = "-";

/// A task of a batch. Its settings override those of the command line.
#[derive(Debug, Clone, PartialEq)]
pub struct BatchTask {
    /// Its id; by default, the number of its line.
    pub id: String,
    /// The number of its line, from 1.
    pub line: usize,
    /// The prompt.
    pub task: String,
    pub model: Option<String>,
    pub tools: Option<Vec<String>>,
    pub system: Option<String>,
    pub attach: Vec<PathBuf>,
    pub deadline: Option<Duration>,
    pub caps: Caps,
}

/// A line as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TaskLine {
    id: Option<Value>,
    task: String,
    model: Option<String>,
    tools: Option<Vec<String>>,
    system: Option<String>,
    #[serde(default)]
    attach: Vec<PathBuf>,
    deadline: Option<String>,
    max_cost: Option<f64>,
    max_tokens: Option<NonZeroU64>,
    max_steps: Option<NonZeroU64>,
}

/// Reads all tasks of a file, or of standard input if its name is `-`. Blocks.
///
/// # Errors
/// If it cannot be read, has no task, or a line is wrong. The error names the line.
pub fn read_tasks(file: &Path) -> Result<Vec<BatchTask>, CommandFailure> {
    if file == Path::new(STANDARD_INPUT) {
        return parse_tasks(io::stdin().lock(), "standard input");
    }
    let shown = format!("`{}`", file.display());
    let opened = File::open(file).map_err(|error| read_failure(&shown, &error))?;
    parse_tasks(BufReader::new(opened), &shown)
}

fn read_failure(shown: &str, error: &io::Error) -> CommandFailure {
    CommandFailure::new(Exit::Usage, format!("cannot read {shown}: {error}"))
}

fn parse_tasks(mut input: impl BufRead, shown: &str) -> Result<Vec<BatchTask>, CommandFailure> {
    let (mut tasks, mut lines) = (Vec::new(), HashMap::new());
    for number in 1.. {
        let Some(line) = next_line(&mut input).map_err(|error| read_failure(shown, &error))? else {
            break;
        };
        let wrong = |text: String| {
            CommandFailure::new(Exit::Usage, format!("{shown}, line {number}: {text}"))
                .hint("a line is {\"task\": \"…\"}; `jaato batch --help` lists the other keys")
        };
        let line = match line {
            InputLine::Whole(line) => line,
            InputLine::TooLong => {
                return Err(wrong(format!("the line has more than {LINE_BYTES_MAX} bytes")));
            }
        };
        let line = match number {
            1 => line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&line),
            _ => &line,
        };
        if line.trim_ascii().is_empty() {
            continue;
        }
        let task = parse_task(line, number).map_err(wrong)?;
        if let Some(before) = lines.insert(task.id.clone(), number) {
            return Err(wrong(format!("line {before} has the id `{}` too", task.id)));
        }
        if tasks.len() == TASKS_MAX {
            return Err(wrong(format!("a batch has at most {TASKS_MAX} tasks")));
        }
        tasks.push(task);
    }
    if tasks.is_empty() {
        return Err(CommandFailure::new(Exit::Usage, format!("{shown} has no task"))
            .hint("write a JSON object per line, such as {\"task\": \"…\"}"));
    }
    Ok(tasks)
}

fn parse_task(line: &[u8], number: usize) -> Result<BatchTask, String> {
    let text = std::str::from_utf8(line)
        .map_err(|error| format!("it is not UTF-8: byte {} is wrong", error.valid_up_to() + 1))?;
    if !text.trim_start().starts_with('{') {
        return Err("it is not a JSON object".to_owned());
    }
    let line: TaskLine = serde_json::from_str(text).map_err(|error| json_error(&error))?;
    if line.task.trim().is_empty() {
        return Err("`task` is empty".to_owned());
    }
    let deadline = line.deadline.as_deref().map(parse_deadline).transpose();
    let cost = line
        .max_cost
        .map(|cost| Dollars::new(cost).ok_or_else(|| format!("`max_cost` must not be {cost}")));
    Ok(BatchTask {
        id: task_id(line.id, number)?,
        line: number,
        task: line.task,
        model: line.model,
        tools: line.tools,
        system: line.system,
        attach: line.attach,
        deadline: deadline.map_err(|error| format!("`deadline`: {error}"))?,
        caps: Caps {
            cost: cost.transpose()?,
            tokens: line.max_tokens.map(NonZeroU64::get),
            steps: line.max_steps.map(NonZeroU64::get),
        },
    })
}

/// Returns the id of a task: a text or a whole number, or else the number of its line.
fn task_id(given: Option<Value>, number: usize) -> Result<String, String> {
    let id = match given {
        None | Some(Value::Null) => number.to_string(),
        Some(Value::String(id)) => id,
        Some(Value::Number(id)) if id.is_u64() || id.is_i64() => id.to_string(),
        Some(_) => return Err("`id` is neither a text nor a whole number".to_owned()),
    };
    match id.len() {
        0 => Err("`id` is empty".to_owned()),
        1..=ID_BYTES_MAX => Ok(id),
        _ => Err(format!("`id` has more than {ID_BYTES_MAX} bytes")),
    }
}

/// Words an error of JSON without the number of the line, which is always 1.
fn json_error(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let what = text.split(" at line ").next().unwrap_or_default();
    match error.column() {
        0 => what.to_owned(),
        column => format!("{what} at column {column}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_input(text: impl AsRef<[u8]>) -> Result<Vec<BatchTask>, String> {
        parse_tasks(text.as_ref(), "`t`").map_err(|failure| failure.message)
    }

    #[track_caller]
    fn check_refusal(text: impl AsRef<[u8]>, expected: &str) {
        assert_eq!(parse_input(text).unwrap_err(), expected);
    }

    #[test]
    fn line_has_a_task_and_settings() {
        let text = "\u{feff}{\"task\": \"one\"}\n\n{\"id\": 7, \"task\": \"two\", \"model\": \"a/b\", \
                    \"tools\": [\"x\"], \"system\": \"s\", \"attach\": [\"f\"], \"deadline\": \"2s\", \
                    \"max_cost\": 0.5, \"max_tokens\": 9, \"max_steps\": 3}";
        let plain = |id: &str, line, task: &str| BatchTask {
            id: id.to_owned(),
            line,
            task: task.to_owned(),
            model: None,
            tools: None,
            system: None,
            attach: Vec::new(),
            deadline: None,
            caps: Caps::default(),
        };
        let full = BatchTask {
            model: Some("a/b".to_owned()),
            tools: Some(vec!["x".to_owned()]),
            system: Some("s".to_owned()),
            attach: vec!["f".into()],
            deadline: Some(Duration::from_secs(2)),
            caps: Caps { cost: Dollars::new(0.5), tokens: Some(9), steps: Some(3) },
            ..plain("7", 3, "two")
        };
        assert_eq!(parse_input(text).unwrap(), [plain("1", 1, "one"), full]);
    }

    #[test]
    fn wrong_line_is_named() {
        check_refusal("", "`t` has no task");
        check_refusal("\n \n", "`t` has no task");
        check_refusal(
            "{\"task\": \"a\"}\n{\"task\": ",
            "`t`, line 2: EOF while parsing a value at column 9",
        );
        check_refusal("[]", "`t`, line 1: it is not a JSON object");
        check_refusal("{\"id\": \"a\"}", "`t`, line 1: missing field `task` at column 11");
        check_refusal("{\"task\": \" \"}", "`t`, line 1: `task` is empty");
        check_refusal(b"{\"task\": \"\xff\"}", "`t`, line 1: it is not UTF-8: byte 11 is wrong");
        check_refusal(
            "{\"task\": \"a\", \"id\": []}",
            "`t`, line 1: `id` is neither a text nor a whole number",
        );
        check_refusal("{\"task\": \"a\", \"id\": \"\"}", "`t`, line 1: `id` is empty");
        check_refusal(
            "{\"task\": \"a\", \"deadline\": \"9\"}",
            "`t`, line 1: `deadline`: use a time such as 90s, 10m or 1h30m",
        );
        check_refusal(
            "{\"task\": \"a\", \"max_cost\": -1}",
            "`t`, line 1: `max_cost` must not be -1",
        );
        let unknown = parse_input("{\"task\": \"a\", \"modle\": \"x\"}").unwrap_err();
        assert!(
            unknown.starts_with("`t`, line 1: unknown field `modle`, expected one of `id`, `task`")
        );
    }

    #[test]
    fn id_that_occurs_twice_is_refused() {
        check_refusal(
            "{\"task\": \"a\", \"id\": \"2\"}\n{\"task\": \"b\"}",
            "`t`, line 2: line 1 has the id `2` too",
        );
    }

    #[test]
    fn line_at_the_limit_is_read_and_a_longer_one_refused() {
        let line = |bytes: u64| {
            let frame = "{\"task\":\"\"}".len();
            let text = "x".repeat(usize::try_from(bytes).unwrap() - frame);
            format!("{{\"task\":\"{text}\"}}\n{{\"task\":\"b\"}}")
        };
        assert_eq!(parse_input(line(LINE_BYTES_MAX - 1)).unwrap().len(), 2);
        check_refusal(
            line(LINE_BYTES_MAX + 1),
            "`t`, line 1: the line has more than 8388608 bytes",
        );
    }
}
