//! `/tasks` of a conversation: lists and ends background tasks.

use jaato_runtime::session_loop::{RunningTask, SessionHandle};
use jaato_runtime::types::Error;
use serde_json::Value;

use crate::chat::slash;
use crate::exit::{CommandFailure, Exit};
use crate::report;
use crate::terminal::{exact_line, one_line, size};

/// The columns of a row besides the text of a task.
const TASK_COLUMNS: usize = 30;

/// Lists the background tasks, or ends one.
///
/// # Errors
/// When the session is over.
pub fn run_tasks_command(session: &SessionHandle, words: &str) -> Result<Exit, Error> {
    let words: Vec<&str> = words.split_whitespace().collect();
    match words.as_slice() {
        [] | ["list"] => {
            report::print_remark(&format_tasks(&session.running_tasks()?, size().1));
            Ok(Exit::Done)
        }
        ["stop", id] => stop_task(session, id),
        _ => {
            let text = format!("unknown: `/tasks {}`", words.join(" "));
            report::print_failure(
                &CommandFailure::new(Exit::Usage, text).hint(slash::hint("tasks")),
            );
            Ok(Exit::Usage)
        }
    }
}

/// The tasks that were reported to the user.
#[derive(Debug, Default)]
pub struct ReportedTasks(Vec<String>);

impl ReportedTasks {
    /// Names the running tasks that were not named before. Returns `None` if there are none.
    pub fn new_task_ids(&mut self, session: &SessionHandle) -> Option<String> {
        let running = session.running_tasks().unwrap_or_default();
        let ids: Vec<String> = running.into_iter().map(|task| task.facts.task_id).collect();
        let told = std::mem::replace(&mut self.0, ids);
        let news: Vec<&str> =
            self.0.iter().filter(|id| !told.contains(id)).map(String::as_str).collect();
        (!news.is_empty()).then(|| news.join(", "))
    }
}

fn stop_task(session: &SessionHandle, id: &str) -> Result<Exit, Error> {
    let running = session.running_tasks()?;
    let is_meant = |task: &&RunningTask| {
        let task_id = &task.facts.task_id;
        id == "all" || task_id == id || task_id.strip_prefix("task_") == Some(id)
    };
    let meant: Vec<&RunningTask> = running.iter().filter(is_meant).collect();
    if meant.is_empty() {
        let text = match id {
            "all" => "nothing runs in the background".to_owned(),
            id => format!("no task `{id}` runs in the background"),
        };
        report::print_failure(&CommandFailure::new(Exit::Usage, text).hint(slash::hint("tasks")));
        return Ok(Exit::Usage);
    }
    for task in meant {
        // A task that has just ended on its own is fine, too.
        let _ = session.cancel_task(&task.facts.task_id);
        report::print_remark(&format!(
            "{} is ended",
            exact_line(&task.facts.task_id, TASK_COLUMNS)
        ));
    }
    Ok(Exit::Done)
}

fn format_tasks(running: &[RunningTask], columns: usize) -> String {
    if running.is_empty() {
        return "nothing runs in the background".to_owned();
    }
    let room = columns.saturating_sub(TASK_COLUMNS).max(TASK_COLUMNS);
    let mut lines = Vec::new();
    for task in running {
        let facts = &task.facts;
        let (id, tool) = (&facts.task_id, facts.tool.as_str());
        let seconds = facts.duration_ms / 1000;
        let title = one_line(&call_title(&task.arguments), room);
        let head = format!("{id}  {seconds:>4} s  {tool}  {title}");
        lines.push(exact_line(&head, columns.max(TASK_COLUMNS)));
        if !task.last_line.is_empty() {
            lines.push(format!("  │ {}", one_line(&task.last_line, room)));
        }
    }
    lines.push("/tasks stop ID ends one, all ends all".to_owned());
    lines.join("\n")
}

/// Returns the title of a call: its command if it has one, else all its arguments.
fn call_title(arguments: &Value) -> String {
    match arguments.get("command").and_then(Value::as_str) {
        Some(command) => command.to_owned(),
        None => arguments.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use jaato_runtime::types::tasks::TaskFacts;
    use serde_json::json;

    use super::*;

    fn running_task(arguments: Value, last_line: &str) -> RunningTask {
        let mut facts = TaskFacts::default();
        (facts.task_id, facts.tool) = ("task_1".to_owned(), "cli".into());
        facts.duration_ms = 12_900;
        RunningTask { facts, arguments, last_line: last_line.to_owned() }
    }

    #[test]
    fn task_list_shows_command_age_and_last_output() {
        let running =
            [running_task(json!({ "command": "cargo\ntest" }), "running 3 tests\u{1b}[2J")];
        let expected = "task_1    12 s  cli  cargo test\n  │ running 3 tests<U+001B>[2J\n\
                        /tasks stop ID ends one, all ends all";
        assert_eq!(format_tasks(&running, 80), expected);
        let running = [running_task(json!({ "n": 1 }), "")];
        let expected = "task_1    12 s  cli  {\"n\":1}\n/tasks stop ID ends one, all ends all";
        assert_eq!(format_tasks(&running, 80), expected);
        assert_eq!(format_tasks(&[], 80), "nothing runs in the background");
    }
}
