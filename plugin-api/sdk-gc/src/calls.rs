//! A line for each finished call that is removed, so that no model runs it again. Pure.

use std::collections::{BTreeMap, HashMap};

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::serde_json;
use jaato_plugin_sdk::types::text::{one_line, truncate_chars};
use jaato_plugin_sdk::types::{CallId, ToolResult};

use crate::lines::{drop_oldest_lines, remove_earlier_duplicates};

/// How much of a call's arguments its line shows, in characters.
const ARGUMENTS_CHARS: usize = 120;

/// How much of a call's result its line shows, in characters.
const OUTCOME_CHARS: usize = 80;

/// The beginning of the line that counts calls without a line of their own.
const COUNTS: &str = "earlier calls without details: ";

/// Finished calls: a line for each, and how many older ones there were of each tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FinishedCalls {
    pub(crate) lines: Vec<String>,
    counts: BTreeMap<String, u64>,
}

impl FinishedCalls {
    /// Reads the lines that [`FinishedCalls::all_lines`] wrote.
    pub(crate) fn parse_lines(lines: Vec<String>) -> Self {
        let mut calls = Self::default();
        for line in lines {
            let Some(counts) = line.strip_prefix(COUNTS) else {
                calls.lines.push(line);
                continue;
            };
            for (name, count) in counts.split(", ").filter_map(|it| it.rsplit_once(' ')) {
                *calls.counts.entry(name.to_owned()).or_default() += count.parse().unwrap_or(0);
            }
        }
        calls
    }

    /// Adds other, newer calls.
    pub(crate) fn add_newer_calls(&mut self, other: Self) {
        self.lines.extend(other.lines);
        for (name, count) in other.counts {
            *self.counts.entry(name).or_default() += count;
        }
    }

    /// Adds the finished calls of these messages.
    pub(crate) fn add_messages<'a>(&mut self, messages: impl Iterator<Item = &'a Message> + Clone) {
        let results = messages.clone().flat_map(Message::tool_results);
        let results: HashMap<&CallId, &ToolResult> =
            results.map(|result| (&result.call_id, result)).collect();
        for call in messages.flat_map(Message::tool_calls) {
            if let Some(result) = results.get(&call.id) {
                self.lines.push(format_call(call, result));
            }
        }
    }

    /// Counts the oldest calls instead of showing them, until the lines fit. Equal lines become
    /// one, the last.
    pub(crate) fn fit_into(&mut self, bytes_max: u64) {
        remove_earlier_duplicates(&mut self.lines);
        for line in drop_oldest_lines(&mut self.lines, bytes_max, |_| true) {
            let name = line.split_whitespace().next().unwrap_or_default();
            *self.counts.entry(name.to_owned()).or_default() += 1;
        }
    }

    /// Returns all lines, beginning with the counts.
    pub(crate) fn all_lines(&self) -> Vec<String> {
        let counts = self.counts.iter().map(|(name, count)| format!("{name} {count}"));
        let counts = counts.collect::<Vec<_>>().join(", ");
        let first = (!counts.is_empty()).then(|| format!("{COUNTS}{counts}"));
        first.into_iter().chain(self.lines.iter().cloned()).collect()
    }
}

/// Formats a call as `name arguments → outcome`, on one line.
fn format_call(call: &ToolCall, result: &ToolResult) -> String {
    let arguments = truncate_chars(&one_line(&call.arguments.to_string()), ARGUMENTS_CHARS);
    let content = serde_json::to_string(&result.content).unwrap_or_default();
    let outcome = truncate_chars(&one_line(&content), OUTCOME_CHARS);
    let failed = if result.is_error { "failed: " } else { "" };
    format!("{} {arguments} → {failed}{outcome}", call.name)
}

#[cfg(test)]
mod tests {
    use jaato_plugin_sdk::serde_json::Map;

    use super::*;

    fn call_exchange(id: &str, path: &str, is_error: bool) -> [Message; 2] {
        let call = ToolCall::new(id, "readFile", json!({ "path": path }));
        let content = Map::from_iter([("text".to_owned(), json!("a\nb".repeat(60)))]);
        let result = ToolResult { is_error, ..ToolResult::new(id, "readFile", content) };
        [Message::model(vec![Part::ToolCall(call)]), Message::tool([result])]
    }

    #[test]
    fn finished_call_is_one_line_with_its_outcome() {
        let mut calls = FinishedCalls::default();
        calls.add_messages(call_exchange("1", "a", false).iter());
        calls.add_messages(call_exchange("2", &"b".repeat(300), true).iter());
        calls.add_messages([&call_exchange("3", "open", false)[0]].into_iter());
        assert_eq!(calls.lines.len(), 2, "an open call is not finished");
        assert!(calls.lines[0].starts_with(r#"readFile {"path":"a"} → {"text":"a\nba\nb"#));
        assert!(calls.lines[1].contains("… → failed: {"), "{}", calls.lines[1]);
        assert!(calls.lines.iter().all(|line| line.chars().count() < 230));
    }

    #[test]
    fn oldest_lines_become_counts_which_are_read_back() {
        let lines = ["a 1", "b 1", "a 2", "a 1"].map(str::to_owned).to_vec();
        let mut calls = FinishedCalls::parse_lines(lines);
        calls.fit_into(7);
        assert_eq!(calls.all_lines(), ["earlier calls without details: b 1", "a 2", "a 1"]);
        let mut read = FinishedCalls::parse_lines(calls.all_lines());
        assert_eq!(read, calls);
        read.add_newer_calls(calls);
        read.fit_into(0);
        assert_eq!(read.all_lines(), ["earlier calls without details: a 2, b 2"]);
    }
}
