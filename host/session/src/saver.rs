//! Saves the record of a session while it runs, as changes that a restart applies again.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use jaato_policy::{PolicyMode, Rules, SessionRule};
use jaato_types::{CallId, Error, ToolCall, ToolResult};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{HistoryEntry, SessionUsage, SharedObjects, SharedRules};

/// Saves a session. No method blocks.
pub trait SessionSaver: Send + Sync {
    /// Saves the record as it is now.
    fn save_record(&self, entries: &[Arc<HistoryEntry>]);

    /// Saves the record as it is now, and that a collection changes it next. A saver that does not
    /// do the latter cannot take that collection back after a restart.
    fn save_collection(&self, entries: &[Arc<HistoryEntry>]) {
        self.save_record(entries);
    }

    /// Saves the approval mode and the user's answers.
    fn save_rules(&self, rules: &SharedRules);

    /// Saves everything else that is needed to continue.
    fn save_state(&self, state: SavedState, objects: &SharedObjects);

    /// Saves the name that the user gives the session.
    fn save_name(&self, name: &str);

    /// Saves that a call is about to run that may change something. Resolves when the disk has it,
    /// or has failed: the call runs in both cases.
    ///
    /// # Errors
    /// If another process continues the session, so that the call must not run.
    fn save_call_start<'a>(&'a self, call: &'a ToolCall) -> BoxFuture<'a, Result<(), Error>>;

    /// Writes what waits for the session's next message, because the user changed something.
    fn save_pending(&self);

    /// Resolves when everything so far is written, or cannot be saved.
    fn wait_until_written(&self) -> BoxFuture<'_, ()>;

    /// Returns false if nothing is saved any longer.
    fn is_saving(&self) -> bool;

    /// Saves the result of a call, while other calls of the same answer still run.
    fn save_call_result(&self, result: &ToolResult);
}

/// The rules of a session that do not come from files or the command line.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SavedRules {
    /// The approval mode.
    pub mode: PolicyMode,
    /// The user's answers that hold until the session ends.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<SessionRule>,
}

impl SavedRules {
    /// Reads the rules as they are now.
    pub fn from_rules(rules: &SharedRules) -> Self {
        let rules = rules.lock();
        Self { mode: rules.mode, answers: rules.answers_of_session().cloned().collect() }
    }

    /// Adds them to the rules of a session that continues. Elsewhere than in the workspace and
    /// environment in which the user answered, only what denies holds.
    pub fn restore_into(self, rules: &mut Rules, is_same_place: bool) {
        let is_strict = matches!(self.mode, PolicyMode::ReadOnly | PolicyMode::Plan);
        if is_same_place || is_strict {
            rules.mode = self.mode;
        }
        // A file can hold anything.
        let of_session = |answer: &SessionRule| answer.decision().duration_name() == "session";
        let holds = |answer: &SessionRule| is_same_place || !answer.decision().can_run();
        let kept = self.answers.into_iter().filter(|it| of_session(it) && holds(it));
        kept.for_each(|answer| rules.remember_answer(answer));
    }
}

/// The state that changes in addition to the record while a session runs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SavedState {
    /// The model, by its full id.
    pub model: String,
    /// The execution environment. Empty if it was not saved.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub environment: String,
    /// The user's options of the environment.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub environment_options: Map<String, Value>,
    /// The working folder, from the workspace's root. `None` if it was not saved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// The usage so far.
    #[serde(default)]
    pub usage: SessionUsage,
    /// The running background tasks as text. They end with the process.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub background: Vec<String>,
}

/// The state of the calls that had no result in the record when the process ended.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct InterruptedCalls {
    /// Calls that had started and may have changed something.
    pub started: HashSet<CallId>,
    /// Results that had arrived.
    pub results: HashMap<CallId, ToolResult>,
}

/// One change of a record. Each index counts the entries that are not forgotten.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum RecordChange {
    /// A new entry at the end.
    Append {
        /// The entry.
        entry: Arc<HistoryEntry>,
    },
    /// The entry at this index has changed.
    Replace {
        /// The index.
        index: usize,
        /// The entry.
        entry: Arc<HistoryEntry>,
    },
    /// The entries from this index on are gone.
    Cut {
        /// The new length.
        length: usize,
    },
    /// Collected entries are not in the record any longer.
    Forget {
        /// The index of the first one.
        index: usize,
        /// Their number.
        count: usize,
    },
}

/// A record as it was saved last.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SavedRecord {
    entries: Vec<Arc<HistoryEntry>>,
}

impl SavedRecord {
    /// Creates a record that has these entries.
    pub fn from_entries(entries: Vec<Arc<HistoryEntry>>) -> Self {
        Self { entries }
    }

    /// Returns the entries.
    pub fn entries(&self) -> &[Arc<HistoryEntry>] {
        &self.entries
    }

    /// Lists what changed since the last call. Entries count as equal if they are the same
    /// allocation, so this reads no texts. Entries that were collected at the last call can be
    /// forgotten.
    pub fn take_changes(&mut self, now: &[Arc<HistoryEntry>]) -> Vec<RecordChange> {
        let mut changes = Vec::new();
        let mut before = &self.entries[..];
        for (index, entry) in now.iter().enumerate() {
            if let Some(count) = count_forgotten_before(before, entry) {
                changes.push(RecordChange::Forget { index, count });
                before = &before[count..];
            }
            match before.split_first() {
                Some((first, rest)) => {
                    if !Arc::ptr_eq(first, entry) {
                        changes.push(RecordChange::Replace { index, entry: Arc::clone(entry) });
                    }
                    before = rest;
                }
                None => changes.push(RecordChange::Append { entry: Arc::clone(entry) }),
            }
        }
        if !before.is_empty() {
            let (index, count) = (now.len(), before.len());
            changes.push(match before.iter().all(|entry| entry.is_collected()) {
                true => RecordChange::Forget { index, count },
                false => RecordChange::Cut { length: index },
            });
        }
        self.entries = now.to_vec();
        changes
    }
}

/// Counts the collected entries in front of an entry, if it is there and follows at least one.
fn count_forgotten_before(
    before: &[Arc<HistoryEntry>],
    entry: &Arc<HistoryEntry>,
) -> Option<usize> {
    let is_at = |at: usize| before.get(at).is_some_and(|it| Arc::ptr_eq(it, entry));
    if is_at(0) {
        return None;
    }
    let collected = before.iter().take_while(|it| it.is_collected()).count();
    (1..=collected).find(|count| is_at(*count))
}

#[cfg(test)]
mod tests {
    use jaato_types::Message;
    use serde_json::json;

    use super::*;
    use crate::MessageMark;

    fn entry(text: &str) -> Arc<HistoryEntry> {
        Arc::new(HistoryEntry { message: Message::user(text), ..HistoryEntry::default() })
    }

    #[test]
    fn changes_are_those_since_the_last_call() {
        let (a, b, c, d) = (entry("a"), entry("b"), entry("c"), entry("d"));
        let collected = |it: &Arc<HistoryEntry>| {
            Arc::new(HistoryEntry { mark: Some(MessageMark::Collected), ..HistoryEntry::clone(it) })
        };
        let (first, third) = (collected(&a), collected(&c));
        let states: [(&[&Arc<HistoryEntry>], Value); 8] = [
            (&[&a], json!(["append a"])),
            (&[&a, &b], json!(["append b"])),
            (&[&a, &b], json!([])),
            (&[&first, &b, &c], json!(["replace 0", "append c"])),
            // An answer is taken back, and another one comes.
            (&[&first, &b], json!(["cut 2"])),
            (&[&first, &b, &third, &d], json!(["append c", "append d"])),
            // The collected entries are forgotten.
            (&[&b, &third, &d], json!(["forget 0+1"])),
            (&[&b, &d, &a], json!(["forget 1+1", "append a"])),
        ];
        let mut saved = SavedRecord::default();
        for (state, expected) in states {
            let now: Vec<Arc<HistoryEntry>> = state.iter().map(|it| Arc::clone(it)).collect();
            let changes = saved.take_changes(&now);
            let names = changes.iter().map(|change| match change {
                RecordChange::Append { entry } => format!("append {}", entry.message.text()),
                RecordChange::Replace { index, .. } => format!("replace {index}"),
                RecordChange::Cut { length } => format!("cut {length}"),
                RecordChange::Forget { index, count } => format!("forget {index}+{count}"),
            });
            assert_eq!(names.collect::<Value>(), expected);
            assert_eq!(saved.entries(), now);
        }
    }

    #[test]
    fn entry_that_was_not_collected_is_cut_and_not_forgotten() {
        let (a, b, c) = (entry("a"), entry("b"), entry("c"));
        let mut saved = SavedRecord::from_entries(vec![a.clone(), b, c.clone()]);
        let changes = saved.take_changes(&[a, c.clone()]);
        let expected =
            [RecordChange::Replace { index: 1, entry: c }, RecordChange::Cut { length: 2 }];
        assert_eq!(changes, expected);
    }

    fn saved_rules() -> SavedRules {
        let rule = |tool: &str, decision: &str| {
            json!({
                "tool": tool, "plugin": "p", "definition": null, "decision": decision,
                "pattern": "tool", "place": { "root": null, "waits_for_trust": false },
            })
        };
        let answers = [
            rule("allowed", "allow_in_session"),
            rule("denied", "deny_in_session"),
            rule("always", "allow_always"),
        ];
        let rules = json!({ "mode": "accept-edits", "answers": answers });
        serde_json::from_value(rules).unwrap()
    }

    fn restored_policy(is_same_place: bool) -> (PolicyMode, Vec<String>) {
        let mut rules = Rules::default();
        saved_rules().restore_into(&mut rules, is_same_place);
        let tools = rules.answers().iter().map(|answer| answer.tool().to_string());
        (rules.mode, tools.collect())
    }

    #[test]
    fn only_answers_of_the_session_are_restored() {
        let expected = ["allowed", "denied"].map(str::to_owned).to_vec();
        assert_eq!(restored_policy(true), (PolicyMode::AcceptEdits, expected));
    }

    #[test]
    fn elsewhere_only_what_denies_is_restored() {
        assert_eq!(restored_policy(false), (PolicyMode::Ask, vec!["denied".to_owned()]));
        let mut rules = Rules::default();
        SavedRules { mode: PolicyMode::ReadOnly, ..SavedRules::default() }
            .restore_into(&mut rules, false);
        assert_eq!(rules.mode, PolicyMode::ReadOnly);
    }
}
