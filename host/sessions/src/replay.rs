//! Replays the changes of a history, in the same way for each reader.

use serde_json::Value;

use crate::record::{SessionRecord, StoredRecord, record_type};

/// A change of the history that a record describes. Each index counts the entries that are not
/// forgotten.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum HistoryChange<'a> {
    /// A new entry at the end.
    Append(&'a Value),
    /// The entry at this index has changed.
    Replace {
        /// The index.
        index: usize,
        /// The entry.
        entry: &'a Value,
    },
    /// The entries from this index on are gone.
    Cut {
        /// The new length.
        length: usize,
    },
    /// Entries that the running session keeps no longer. They stay part of the conversation.
    Forget {
        /// The index of the first one.
        index: usize,
        /// Their number.
        count: usize,
    },
}

impl SessionRecord {
    /// Returns the change of the history that the record describes. Returns `None` for other
    /// records, and `Some(None)` if the change is damaged.
    pub fn history_change(&self) -> Option<Option<HistoryChange<'_>>> {
        match self.kind.as_str() {
            record_type::MESSAGE => Some(Some(HistoryChange::Append(&self.data))),
            record_type::CHANGE => Some(parse_change(&self.data)),
            _ => None,
        }
    }
}

fn parse_change(data: &Value) -> Option<HistoryChange<'_>> {
    let number = |name: &str| Some(usize::try_from(data[name].as_u64()?).unwrap_or(usize::MAX));
    Some(match data["change"].as_str()? {
        "replace" => HistoryChange::Replace { index: number("index")?, entry: &data["entry"] },
        "cut" => HistoryChange::Cut { length: number("length")? },
        "forget" => {
            // The oldest entries, unless the record says which.
            let index = if data["index"].is_null() { 0 } else { number("index")? };
            HistoryChange::Forget { index, count: number("count")? }
        }
        _ => return None,
    })
}

/// An entry of a replayed history.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplayedEntry<T> {
    /// The number of the record that appended it.
    pub seq: u64,
    /// When that was, in milliseconds since 1970.
    pub at_ms: i64,
    /// The entry, as the last change left it.
    pub entry: T,
}

/// The entries of a history, with those that the running session forgot.
#[derive(Debug)]
pub struct ReplayedHistory<T> {
    entries: Vec<ReplayedEntry<T>>,
    /// The positions of the entries that are not forgotten. An index of a change counts these.
    kept: Vec<usize>,
}

impl<T> Default for ReplayedHistory<T> {
    fn default() -> Self {
        Self { entries: Vec::new(), kept: Vec::new() }
    }
}

impl<T> ReplayedHistory<T> {
    /// Applies a record. `read` reads an entry. Records that do not change the history have no
    /// effect. Returns `None` if the change is damaged or does not fit, and nothing changes then.
    pub fn apply_record(
        &mut self,
        stored: &StoredRecord,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Option<()> {
        let Some(change) = stored.record.history_change() else { return Some(()) };
        match change? {
            HistoryChange::Append(entry) => {
                let (seq, at_ms, entry) = (stored.seq, stored.at_ms, read(entry)?);
                self.kept.push(self.entries.len());
                self.entries.push(ReplayedEntry { seq, at_ms, entry });
            }
            HistoryChange::Replace { index, entry } => {
                let at = *self.kept.get(index)?;
                self.entries[at].entry = read(entry)?;
            }
            HistoryChange::Cut { length } if length <= self.kept.len() => {
                // Usually the last entries go, which moves no others.
                for at in self.kept.drain(length..).rev() {
                    self.entries.remove(at);
                }
            }
            HistoryChange::Forget { index, count } => {
                let end = index.checked_add(count).filter(|end| *end <= self.kept.len())?;
                self.kept.drain(index..end);
            }
            HistoryChange::Cut { .. } => return None,
        }
        Some(())
    }

    /// Returns copies of the entries that are not forgotten.
    pub fn kept_entries(&self) -> Vec<T>
    where
        T: Clone,
    {
        self.kept.iter().map(|at| self.entries[*at].entry.clone()).collect()
    }

    /// Returns all entries, with the forgotten ones at their places.
    pub fn into_entries(self) -> Vec<ReplayedEntry<T>> {
        self.entries
    }

    /// Returns the entries that are not forgotten, and then the forgotten ones.
    pub fn into_kept_and_forgotten(self) -> (Vec<T>, Vec<T>) {
        let mut kept_positions = self.kept.into_iter().peekable();
        let (mut kept, mut forgotten) = (Vec::new(), Vec::new());
        for (at, ReplayedEntry { entry, .. }) in self.entries.into_iter().enumerate() {
            match kept_positions.next_if_eq(&at) {
                Some(_) => kept.push(entry),
                None => forgotten.push(entry),
            }
        }
        (kept, forgotten)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn replay_records(records: &[Value]) -> (ReplayedHistory<String>, usize) {
        let (mut history, mut damaged) = (ReplayedHistory::default(), 0);
        for (seq, data) in (1..).zip(records) {
            let kind = if data.is_object() { record_type::CHANGE } else { record_type::MESSAGE };
            let record = SessionRecord::new(kind, data.clone());
            let stored = StoredRecord { seq, at_ms: 0, epoch: 1, record };
            let read = |entry: &Value| entry.as_str().map(str::to_owned);
            damaged += usize::from(history.apply_record(&stored, read).is_none());
        }
        (history, damaged)
    }

    fn kept_texts(history: ReplayedHistory<String>) -> Vec<String> {
        history.into_entries().into_iter().map(|it| it.entry).collect()
    }

    #[test]
    fn forgotten_entries_keep_their_places_and_are_not_counted() {
        let records = [
            json!("a"),
            json!("b"),
            json!("c"),
            json!("d"),
            json!({ "change": "forget", "index": 1, "count": 2 }),
            json!({ "change": "replace", "index": 1, "entry": "D" }),
            json!("e"),
            json!({ "change": "cut", "length": 2 }),
            json!("f"),
        ];
        assert_eq!(kept_texts(replay_records(&records).0), ["a", "b", "c", "D", "f"]);
        let (kept, forgotten) = replay_records(&records).0.into_kept_and_forgotten();
        assert_eq!((kept.join(""), forgotten.join("")), ("aDf".to_owned(), "bc".to_owned()));
        let oldest = [json!("a"), json!("b"), json!({ "change": "forget", "count": 1 })];
        assert_eq!(replay_records(&oldest).0.into_kept_and_forgotten().0, ["b"]);
    }

    #[test]
    fn change_that_does_not_fit_has_no_effect() {
        let changes = [
            json!({ "change": "replace", "index": u64::MAX, "entry": "x" }),
            json!({ "change": "replace", "index": 0, "entry": 7 }),
            json!({ "change": "cut", "length": 2 }),
            json!({ "change": "forget", "index": 1, "count": u64::MAX }),
            json!({ "change": "forget", "index": "0", "count": 1 }),
            json!({ "change": "of a later version" }),
        ];
        let records: Vec<Value> = [json!("a")].into_iter().chain(changes).collect();
        let (history, damaged) = replay_records(&records);
        assert_eq!((kept_texts(history), damaged), (vec!["a".to_owned()], 6));
    }
}
