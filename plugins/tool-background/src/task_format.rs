//! Formats tasks for the model and the user.

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::serde_json::Map;
use jaato_plugin_sdk::task::{TaskFacts, TaskReadAnswer, TaskStatus, ToolFacts};

/// This plugin's name in the facts of tools and tasks.
pub const SOURCE: &str = "background";

/// Returns the answer of `getBackgroundTask`.
pub fn task_read_json(answer: &TaskReadAnswer) -> Value {
    let task = &answer.task;
    let mut told = json!({
        "task_id": task.task_id,
        "plugin_name": task.source,
        "tool_name": task.tool,
        "status": status_word(task.status),
        "stdout": apply_carriage_returns(&answer.output),
        "stdout_offset": answer.offset,
        "has_more": answer.offset < task.output_bytes,
        "duration_seconds": to_seconds(task.duration_ms),
    });
    if answer.lost_bytes > 0 {
        told["lost_bytes"] = json!(answer.lost_bytes);
    }
    let Some(result) = &task.result else { return told };
    if let Some(error) = result.get("error") {
        told["error"] = error.clone();
        return told;
    }
    // Offsets already give access to the printed output, so do not repeat it.
    let is_printed = |key: &str| task.output_bytes > 0 && matches!(key, "stdout" | "stderr");
    let rest = result.iter().filter(|(key, _)| !is_printed(key));
    let mut rest: Map<String, Value> = rest.map(|(key, it)| (key.clone(), it.clone())).collect();
    if let Some(code) = rest.remove("returncode") {
        told["returncode"] = code;
    }
    if !rest.is_empty() {
        told["result"] = Value::Object(rest);
    }
    told
}

/// The maximum output to keep for one answer, in bytes. No one reads more than this.
const OUTPUT_BYTES_MAX: usize = 256 * 1024;

/// Appends the output of a later read.
pub fn append_output(answer: &mut TaskReadAnswer, next: TaskReadAnswer) {
    let mut output = std::mem::take(&mut answer.output);
    output.push_str(&next.output);
    let mut lost = answer.lost_bytes + next.lost_bytes;
    if output.len() > OUTPUT_BYTES_MAX {
        let cut = output.ceil_char_boundary(output.len() - OUTPUT_BYTES_MAX);
        lost += cut as u64;
        output.drain(..cut);
    }
    *answer = next;
    (answer.output, answer.lost_bytes) = (output, lost);
}

/// Keeps only the last `lines` lines.
pub fn keep_last_lines(answer: &mut TaskReadAnswer, lines: usize) {
    let text = answer.output.trim_end_matches('\n');
    let start = text.rmatch_indices('\n').nth(lines.saturating_sub(1)).map_or(0, |(at, _)| at + 1);
    answer.output.drain(..start);
}

/// Shows each line as it looks after a program has overwritten it with `\r`.
fn apply_carriage_returns(output: &str) -> String {
    let lines = output.split('\n').map(|line| line.trim_end_matches('\r'));
    lines.map(|line| line.rsplit('\r').next().unwrap_or(line)).collect::<Vec<_>>().join("\n")
}

/// Returns an entry of `listBackgroundTasks`.
pub fn task_list_entry(task: &TaskFacts) -> Value {
    json!({
        "task_id": task.task_id,
        "plugin_name": task.source,
        "tool_name": task.tool,
        "duration_seconds": to_seconds(task.duration_ms),
    })
}

/// Returns an entry of `listBackgroundCapableTools`.
pub fn tool_list_entry(tool: &ToolFacts) -> Value {
    json!({ "plugin_name": tool.source, "tool_name": tool.name })
}

/// Returns the output of the command `tasks`.
pub fn format_tasks(tasks: &[TaskFacts]) -> String {
    let line = |task: &TaskFacts| {
        let (status, time) = (status_word(task.status), to_seconds(task.duration_ms));
        format!("{}  {}  {status}  {time} s", task.task_id, task.tool.as_str())
    };
    let lines: Vec<String> = tasks.iter().map(line).collect();
    if lines.is_empty() { "no tasks".to_owned() } else { lines.join("\n") }
}

fn status_word(status: TaskStatus) -> &'static str {
    match status {
        TaskStatus::Running => "running",
        TaskStatus::Completed => "completed",
        TaskStatus::Cancelled => "cancelled",
        TaskStatus::Timeout => "timeout",
        TaskStatus::Failed | TaskStatus::Unknown => "failed",
    }
}

fn to_seconds(milliseconds: u64) -> f64 {
    (milliseconds / 100) as f64 / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn task_outputs_are_joined_and_truncated_to_their_last_lines() {
        let answer = |output: &str, offset| {
            let mut answer = TaskReadAnswer::default();
            (answer.output, answer.offset) = (output.to_owned(), offset);
            answer
        };
        let mut all = answer("one\ntw", 6);
        append_output(&mut all, answer("o\nthree\n", 14));
        assert_eq!((all.output.as_str(), all.offset), ("one\ntwo\nthree\n", 14));
        keep_last_lines(&mut all, 2);
        assert_eq!(all.output, "two\nthree\n");
        keep_last_lines(&mut all, 9);
        assert_eq!(all.output, "two\nthree\n");
        let mut long = answer(&"é".repeat(OUTPUT_BYTES_MAX), 1);
        append_output(&mut long, answer("end", 2));
        assert!(long.output.len() <= OUTPUT_BYTES_MAX && long.output.ends_with("end"));
        assert_eq!(long.lost_bytes as usize + long.output.len(), 2 * OUTPUT_BYTES_MAX + 3);
    }

    #[test]
    fn carriage_return_overwrites_the_line() {
        assert_eq!(apply_carriage_returns("get\n10 %\r20 %\r\nthere\n"), "get\n20 %\nthere\n");
        assert_eq!(apply_carriage_returns("10 %\r20 %\r"), "20 %");
        assert_eq!(apply_carriage_returns(""), "");
    }
}
