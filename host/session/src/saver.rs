//! Saves the record of a session while it runs, as changes that a restart applies again.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use jaato_policy::{PolicyMode, Rules, SessionRule};
use jaato_types::{CallId, Error, ToolCall, ToolResult};
use serde::{Deserialize, Serialize};

use crate::{HistoryEntry, MessageMark, SessionUsage, SharedObjects, SharedRules};

/// Saves a session. No method blocks.
pub trait SessionSaver: Send + Sync {
    /// Saves the record as it is now.
    fn save_record(&self, entries: &[Arc<HistoryEntry>]);

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
    fn call_starts<'a>(&'a self, call: &'a ToolCall) -> BoxFuture<'a, Result<(), Error>>;

    /// Writes what waits for the session's next message, because the user changed something.
    fn save_now(&self);

    /// Resolves when everything so far is written, or cannot be saved.
    fn written(&self) -> BoxFuture<'_, ()>;

    /// Returns false if nothing is saved any longer.
    fn is_saving(&self) -> bool;

    /// Saves the result of a call, while other calls of the same answer still run.
    fn call_ended(&self, result: &ToolResult);
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
    pub fn of(rules: &SharedRules) -> Self {
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
        kept.for_each(|answer| rules.remember(answer));
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

/// One change of a record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
    /// The oldest entries were removed from the record.
    Forget {
        /// Their number.
        count: usize,
    },
}

/// A record as it was saved last.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SavedRecord {
    entries: Vec<Arc<HistoryEntry>>,
    /// Prompts among the forgotten entries.
    turns_forgotten: u64,
}

/// A change that does not fit the record before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a saved change does not fit the record before it")]
pub struct RecordChangeError;

impl SavedRecord {
    /// Returns the entries.
    pub fn entries(&self) -> &[Arc<HistoryEntry>] {
        &self.entries
    }

    /// Returns how many turns were removed from the record.
    pub fn turns_forgotten(&self) -> u64 {
        self.turns_forgotten
    }

    /// Lists what changed since the last call. Entries count as equal if they are the same
    /// allocation, so this reads no texts.
    pub fn changes_to(&mut self, now: &[Arc<HistoryEntry>]) -> Vec<RecordChange> {
        let mut changes = Vec::new();
        let is_first =
            |entry: &Arc<HistoryEntry>| now.first().is_some_and(|it| Arc::ptr_eq(it, entry));
        let count = self.entries.iter().position(is_first).unwrap_or(0);
        if count > 0 {
            changes.push(RecordChange::Forget { count });
        }
        let before = &self.entries[count..];
        let is_same =
            |index: usize| before.get(index).is_some_and(|entry| Arc::ptr_eq(entry, &now[index]));
        let changed = (0..now.len()).filter(|index| !is_same(*index));
        changes.extend(changed.map(|index| {
            let entry = Arc::clone(&now[index]);
            match index < before.len() {
                true => RecordChange::Replace { index, entry },
                false => RecordChange::Append { entry },
            }
        }));
        if before.len() > now.len() {
            changes.push(RecordChange::Cut { length: now.len() });
        }
        for change in &changes {
            // They fit, because they were made from this record.
            let _ = self.apply(change.clone());
        }
        changes
    }

    /// Applies a saved change.
    ///
    /// # Errors
    /// If it does not fit.
    pub fn apply(&mut self, change: RecordChange) -> Result<(), RecordChangeError> {
        match change {
            RecordChange::Append { entry } => self.entries.push(entry),
            RecordChange::Replace { index, entry } if index < self.entries.len() => {
                self.entries[index] = entry;
            }
            RecordChange::Cut { length } if length <= self.entries.len() => {
                self.entries.truncate(length);
            }
            RecordChange::Forget { count } if count <= self.entries.len() => {
                let forgotten = self.entries.drain(..count);
                let is_turn = |entry: &Arc<HistoryEntry>| {
                    entry.message.is_prompt() && entry.mark != Some(MessageMark::Unsent)
                };
                self.turns_forgotten += forgotten.filter(is_turn).count() as u64;
            }
            RecordChange::Replace { .. }
            | RecordChange::Cut { .. }
            | RecordChange::Forget { .. } => return Err(RecordChangeError),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use jaato_types::Message;
    use serde_json::json;

    use super::*;

    fn entry(text: &str) -> Arc<HistoryEntry> {
        Arc::new(HistoryEntry { message: Message::user(text), ..HistoryEntry::default() })
    }

    /// Applies all changes to an empty record, through their JSON.
    fn replay_changes(changes: &[RecordChange]) -> SavedRecord {
        let mut record = SavedRecord::default();
        for change in changes {
            let json = serde_json::to_string(change).unwrap();
            record.apply(serde_json::from_str(&json).unwrap()).unwrap();
        }
        record
    }

    #[test]
    fn replayed_changes_give_the_record_at_each_save() {
        let (a, b, c, d) = (entry("a"), entry("b"), entry("c"), entry("d"));
        let marked = Arc::new(HistoryEntry {
            mark: Some(MessageMark::Collected),
            ..HistoryEntry::clone(&a)
        });
        let states: [&[&Arc<HistoryEntry>]; 7] = [
            &[&a],
            &[&a, &b],
            // A collected entry, one more, an answer taken back, and the oldest forgotten.
            &[&marked, &b, &c],
            &[&marked, &b],
            &[&marked, &b, &d],
            &[&b, &d],
            &[&b, &d],
        ];
        let (mut saved, mut all) = (SavedRecord::default(), Vec::new());
        for state in states {
            let now: Vec<Arc<HistoryEntry>> = state.iter().map(|it| Arc::clone(it)).collect();
            all.extend(saved.changes_to(&now));
            assert_eq!(saved.entries(), now);
            assert_eq!(replay_changes(&all), saved);
        }
        assert_eq!(saved.turns_forgotten(), 1);
        assert_eq!(saved.changes_to(&[b, d]), []);
        assert_eq!(all.len(), 7);
    }

    #[test]
    fn change_that_does_not_fit_is_refused_and_has_no_effect() {
        let mut record = SavedRecord::default();
        for change in [
            RecordChange::Replace { index: 0, entry: entry("a") },
            RecordChange::Cut { length: 1 },
            RecordChange::Forget { count: 1 },
        ] {
            assert_eq!(record.apply(change), Err(RecordChangeError));
        }
        assert_eq!(record, SavedRecord::default());
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
