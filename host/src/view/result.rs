//! Shows the result of a call to the user: whether it succeeded, and the parts that were not shown
//! before.

use serde_json::{Map, Value};

use super::calls::ShownEffect;
use crate::terminal::Look;

/// Lines of a text result that are shown.
const TEXT_LINES_MAX: usize = 6;

/// Lines of an error that are shown. Each explains why, or what to do.
const ERROR_LINES_MAX: usize = 20;

/// The shortest duration that is shown.
const DURATION_MIN_MS: u64 = 1000;

/// The key of the file with the full output, if that is truncated.
const FILE_KEY: &str = "output_file";

/// Keys of a result that repeat a change that other rows have shown.
const CHANGE_KEYS: [&str; 17] = [
    "path",
    "diff",
    "changes",
    "files",
    "operations",
    "backup",
    "moved_from",
    "plan_id",
    "title",
    "status",
    "steps",
    "step_id",
    "sequence",
    "description",
    "progress",
    "confirmed",
    "message",
];

/// A line of the result.
#[derive(Debug)]
pub struct Line {
    pub look: Look,
    pub text: String,
    pub fit: Fit,
}

/// What happens to a line that is longer than its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fit {
    /// It is truncated, because the rest is not worth a row.
    Cut,
    /// It continues in further rows, because its end explains why or what to do.
    Wrapped,
    /// It is written without line breaks, so that the user can copy it.
    Whole,
}

impl Line {
    fn new(look: Look, text: String, fit: Fit) -> Self {
        Self { look, text, fit }
    }
}

/// The facts about a call that has ended.
#[derive(Debug, Clone, Copy)]
pub struct Ending<'a> {
    /// The result for the model.
    pub result: &'a Map<String, Value>,
    /// Whether it is an error.
    pub is_error: bool,
    /// Whether its output was shown while it ran.
    pub was_shown: bool,
    /// How much of its effect other rows have shown.
    pub effect: ShownEffect,
    /// How long the call took, in milliseconds, or `None` if that is not shown.
    pub duration_ms: Option<u64>,
}

/// Formats a result as lines. The first begins with a mark. Lines may be long.
pub fn lines(ending: Ending<'_>) -> Vec<Line> {
    let duration = ending.duration_ms.filter(|duration| *duration >= DURATION_MIN_MS);
    let duration = duration.map(|ms| format!(" · {:.1} s", ms as f64 / 1000.0));
    let duration = duration.unwrap_or_default();
    if ending.is_error {
        return error(ending.result, &duration);
    }
    let code = ending.result.get("returncode").and_then(Value::as_i64);
    // This applies to commands. A terminal is normally closed by a signal.
    let is_command = ending.result.contains_key("returncode");
    let of_command = |key: &str| ending.result.get(key).filter(|_| is_command);
    let killed = of_command("signal").and_then(|signal| signal["name"].as_str());
    let is_late = of_command("timed_out").and_then(Value::as_bool) == Some(true);
    let is_well = code.is_none_or(|code| code == 0) && killed.is_none() && !is_late;
    let (look, mark) = if is_well { (Look::Dim, "✓") } else { (Look::Red, "✗") };
    let code = match (code, killed) {
        _ if is_late => " stopped at its deadline".to_owned(),
        (Some(code), _) => format!(" exit code {code}"),
        (None, Some(signal)) => format!(" killed by {signal}"),
        (None, None) => String::new(),
    };
    let (first, more) = match ending.effect {
        ShownEffect::Whole => Default::default(),
        ShownEffect::Nothing | ShownEffect::Change => unseen_parts(ending),
    };
    let is_known = is_well && first.is_empty() && more.is_empty() && duration.is_empty();
    let was_told = ending.effect != ShownEffect::Nothing;
    if was_told && !ending.was_shown && code.is_empty() && is_known {
        // The rows of the change, the plan or the form already show it.
        return Vec::new();
    }
    let mut lines = vec![Line::new(look, format!("{mark}{code}{duration}{first}"), Fit::Cut)];
    lines.extend(more.into_iter().map(|line| Line::new(Look::Dim, line, Fit::Cut)));
    if let Some(file) = ending.result.get(FILE_KEY).and_then(Value::as_str) {
        lines.push(Line::new(Look::Dim, format!("  full output: {file}"), Fit::Whole));
    }
    lines
}

/// Returns the parts that were not shown before: the rest of the first line, and more lines.
fn unseen_parts(ending: Ending<'_>) -> (String, Vec<String>) {
    let result = ending.result;
    let was_told = ending.effect != ShownEffect::Nothing;
    if let (Some(Value::String(text)), 1) = (result.get("result"), result.len()) {
        return text_lines(text);
    }
    let is_told = |key: &str| {
        matches!(key, "returncode" | "timed_out" | "timeout_seconds" | FILE_KEY)
            // The mark says it.
            || key == "success" && result[key] == Value::Bool(true)
            || key == "status" && result[key] == "success"
    };
    // A result repeats the output of its tool in texts and lists.
    let is_all = !ending.was_shown && !was_told && !result.contains_key("returncode");
    let is_short = |value: &Value| is_all || matches!(value, Value::Bool(_) | Value::Number(_));
    // These keys repeat the change that was shown. All other keys are news.
    let is_change = |key: &str| was_told && CHANGE_KEYS.contains(&key);
    let is_news = was_told && !ending.was_shown;
    let is_shown =
        |key: &str, value: &Value| !is_told(key) && !is_change(key) && (is_news || is_short(value));
    let parts = result.iter().filter(|(key, value)| is_shown(key, value));
    let parts = pairs(parts);
    (if parts.is_empty() { parts } else { format!(" {parts}") }, Vec::new())
}

/// Formats values with their names in one row, without empty values.
fn pairs<'a>(parts: impl Iterator<Item = (&'a String, &'a Value)>) -> String {
    let parts =
        parts.filter_map(|(key, value)| Some(format!("{key} {}", format_value_in_row(value)?)));
    parts.collect::<Vec<_>>().join(", ")
}

/// Formats a value in one row. Returns `None` if it is empty.
fn format_value_in_row(value: &Value) -> Option<String> {
    let is_plain = |item: &Value| !matches!(item, Value::Array(_) | Value::Object(_));
    match value {
        Value::Null => None,
        Value::String(text) => (!text.trim().is_empty()).then(|| text.trim().to_owned()),
        Value::Array(items) if items.iter().all(is_plain) => {
            let items: Vec<String> = items.iter().filter_map(format_value_in_row).collect();
            (!items.is_empty()).then(|| format!("[{}]", items.join(", ")))
        }
        Value::Array(items) => Some(counted(items.len(), "item")),
        Value::Object(content) => {
            (!content.is_empty()).then(|| format!("({})", pairs(content.iter())))
        }
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
    }
}

fn text_lines(text: &str) -> (String, Vec<String>) {
    let mut lines = text.lines();
    let first = lines.next().map(|line| format!(" {line}")).unwrap_or_default();
    let mut behind = lines.clone();
    if behind.next() == Some("") {
        // After a head and an empty line, the rest is the text of a file or a page.
        return (format!("{first} … {} more", counted(behind.count(), "line")), Vec::new());
    }
    let mut more: Vec<String> = lines.by_ref().take(TEXT_LINES_MAX - 1).map(indent_line).collect();
    match lines.count() {
        0 => {}
        left => more.push(format!("  … {} more", counted(left, "line"))),
    }
    (first, more)
}

/// Formats the whole error: its reason and its hint.
fn error(result: &Map<String, Value>, duration: &str) -> Vec<Line> {
    let error = result.get("error");
    let of = |key: &str| error.and_then(|error| error.get(key)).and_then(Value::as_str);
    let message = match (of("message"), error) {
        (Some(message), _) => message.to_owned(),
        (None, Some(Value::String(message))) => message.clone(),
        (None, Some(error)) => error.to_string(),
        (None, None) => Value::Object(result.clone()).to_string(),
    };
    let wrapped = |look, text| Line::new(look, text, Fit::Wrapped);
    let mut lines = vec![];
    let mut rows = message.lines();
    let first = rows.next().unwrap_or("it failed");
    lines.push(wrapped(Look::Red, format!("✗{duration} {first}")));
    lines.extend(rows.map(|row| wrapped(Look::Red, indent_line(row))));
    let hint = of("hint").map(|hint| hint.lines().collect::<Vec<_>>().join(" "));
    lines.extend(hint.map(|hint| wrapped(Look::Plain, format!("  hint: {hint}"))));
    if lines.len() > ERROR_LINES_MAX {
        let left = lines.len() - ERROR_LINES_MAX;
        lines.truncate(ERROR_LINES_MAX);
        lines.push(wrapped(Look::Red, format!("  … {} more", counted(left, "line"))));
    }
    lines
}

fn indent_line(line: &str) -> String {
    format!("  {line}")
}

/// Formats a number with its noun.
pub fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn result_lines(result: Value, is_error: bool, was_shown: bool) -> Vec<String> {
        let Value::Object(result) = result else { panic!("no object") };
        let ending = Ending {
            result: &result,
            is_error,
            was_shown,
            effect: ShownEffect::Nothing,
            duration_ms: Some(999),
        };
        lines(ending).into_iter().map(|line| line.text).collect()
    }

    #[test]
    fn a_command_is_told_by_its_exit_code() {
        let result = |code: i32| json!({ "stdout": "hi\n", "stderr": "", "returncode": code });
        assert_eq!(result_lines(result(0), false, true), ["✓ exit code 0"]);
        assert_eq!(result_lines(result(2), false, true), ["✗ exit code 2"]);
        let cut = json!({ "stdout": "hi", "returncode": 0, "output_file": "/o" });
        assert_eq!(result_lines(cut, false, true), ["✓ exit code 0", "  full output: /o"]);
    }

    #[test]
    fn a_command_that_was_ended_has_not_gone_well() {
        let signal = json!({ "name": "SIGKILL", "number": 9 });
        let killed = json!({ "stdout": "", "returncode": null, "signal": signal });
        assert_eq!(result_lines(killed, false, false), ["✗ killed by SIGKILL"]);
        let late = json!({
            "returncode": null, "signal": signal, "timed_out": true, "timeout_seconds": 5,
        });
        assert_eq!(result_lines(late, false, true), ["✗ stopped at its deadline"]);
        let closed = json!({ "exit_status": null, "signal": { "name": "SIGHUP" } });
        assert_eq!(result_lines(closed, false, true), ["✓"]);
    }

    #[test]
    fn what_was_shown_is_not_shown_again() {
        let result = json!({ "matches": ["a.rs:1"], "total": 1, "note": "…" });
        assert_eq!(result_lines(result.clone(), false, true), ["✓ total 1"]);
        assert_eq!(result_lines(result, false, false), ["✓ matches [a.rs:1], total 1, note …"]);
    }

    #[test]
    fn a_result_is_one_row_and_no_json() {
        let result = json!({
            "success": true, "status": "success", "task_id": "task_1", "none": null, "empty": "", "tags": ["a", 2],
            "tasks": [{ "id": 1 }, { "id": 2 }], "progress": { "total": 2, "done": 0 }, "list": [],
        });
        let row = "✓ task_id task_1, tags [a, 2], tasks 2 items, progress (total 2, done 0)";
        assert_eq!(result_lines(result, false, false), [row]);
        let file = json!({ "result": "path: a.py | lines: 30\n\n  def f(): pass\n  f()" });
        assert_eq!(result_lines(file, false, false), ["✓ path: a.py | lines: 30 … 2 lines more"]);
    }

    #[test]
    fn what_is_news_beside_a_change_is_shown() {
        let result = json!({
            "success": true, "path": "a.rs", "diff": "…", "lines": 3, "mended": ["b.rs"],
        });
        let Value::Object(result) = result else { panic!("no object") };
        let (is_error, was_shown, effect) = (false, false, ShownEffect::Change);
        let ending = Ending { result: &result, is_error, was_shown, effect, duration_ms: None };
        assert_eq!(lines(ending)[0].text, "✓ lines 3, mended [b.rs]");
        let Value::Object(result) = json!({ "path": "a.rs" }) else { panic!("no object") };
        assert!(lines(Ending { result: &result, ..ending }).is_empty(), "the change was shown");
    }

    #[test]
    fn result_of_a_drawn_plan_is_only_its_duration_or_its_error() {
        let told = |result: Value, is_error: bool, duration_ms: u64| -> Vec<String> {
            let Value::Object(result) = result else { panic!("no object") };
            let (was_shown, effect) = (false, ShownEffect::Whole);
            let duration_ms = Some(duration_ms);
            let ending = Ending { result: &result, is_error, was_shown, effect, duration_ms };
            lines(ending).into_iter().map(|line| line.text).collect()
        };
        let step = json!({ "step_id": "1", "completed_at": "now", "instruction": "Go on." });
        assert_eq!(told(step.clone(), false, 0), [""; 0]);
        assert_eq!(told(step, false, 6400), ["✓ · 6.4 s"]);
        assert_eq!(told(json!({ "result": "a\nb" }), false, 0), [""; 0]);
        assert_eq!(told(json!({ "error": "no" }), true, 0), ["✗ no"]);
    }

    #[test]
    fn a_text_is_shown_as_one_and_its_rest_is_counted() {
        assert_eq!(result_lines(json!({ "result": "one\ntwo" }), false, false), ["✓ one", "  two"]);
        let many = result_lines(json!({ "result": "line\n".repeat(9) }), false, false);
        assert_eq!((many.len(), many.last().map(String::as_str)), (7, Some("  … 3 lines more")));
        assert_eq!(result_lines(json!({ "result": "" }), false, false), ["✓"]);
    }

    #[test]
    fn an_error_is_told_whole_with_its_hint() {
        let error =
            json!({ "error": { "kind": "io", "message": "no\nroom", "hint": "make\nsome" } });
        assert_eq!(result_lines(error, true, false), ["✗ no", "  room", "  hint: make some"]);
        assert_eq!(result_lines(json!({ "error": "odd" }), true, false), ["✗ odd"]);
        let long = json!({ "error": { "message": "x\n".repeat(30) } });
        assert_eq!(result_lines(long, true, false).len(), ERROR_LINES_MAX + 1);
    }

    #[test]
    fn what_took_long_says_how_long() {
        let (result, is_error, was_shown) = (&Map::new(), false, true);
        let effect = ShownEffect::Nothing;
        let ending = Ending { result, is_error, was_shown, effect, duration_ms: Some(1250) };
        assert_eq!(lines(ending)[0].text, "✓ · 1.2 s");
    }
}
