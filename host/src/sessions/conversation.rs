//! The conversation of a saved session, with the numbers and times of its messages.

use std::sync::Arc;

use jaato_runtime::saved::read_history_entry;
use jaato_runtime::session_loop::{HistoryEntry, MessageMark};
use jaato_runtime::sessions::{
    ReplayedEntry, ReplayedHistory, SessionReader, StoredRecord, Transcript, TranscriptMessage,
    effective_records, record_type, transcript_note,
};
use jaato_runtime::types::SessionId;
use serde_json::Value;

/// A message of a conversation.
#[derive(Debug, Clone)]
pub(super) struct NumberedEntry {
    /// The number of a message of the user.
    pub number: Option<u64>,
    /// The number of its record.
    seq: u64,
    /// When it was appended, in milliseconds since 1970.
    pub at_ms: i64,
    /// The message.
    pub entry: Arc<HistoryEntry>,
}

impl NumberedEntry {
    /// Returns the number of the record that appended it.
    pub fn seq(&self) -> u64 {
        self.seq
    }
}

/// A conversation as it is after all changes. Messages that a running session no longer keeps in
/// memory are part of it.
#[derive(Debug, Default)]
pub(super) struct SavedConversation {
    pub entries: Vec<NumberedEntry>,
    /// The name that the user gave.
    name: Option<String>,
    /// Records that do not fit.
    pub damaged: usize,
}

impl SavedConversation {
    /// Builds it from all records of a session.
    pub fn from_records(records: Vec<StoredRecord>) -> Self {
        let mut conversation = Self::default();
        let mut history = ReplayedHistory::default();
        for stored in effective_records(records) {
            conversation.damaged +=
                usize::from(history.apply_record(&stored, read_history_entry).is_none());
            if stored.record.kind == record_type::NAME {
                conversation.name = stored.record.data["name"].as_str().map(str::to_owned);
            }
        }
        let mut numbers = 1..;
        let numbered = history.into_entries().into_iter().map(|replayed| {
            let ReplayedEntry { seq, at_ms, entry } = replayed;
            let number = entry.message.is_prompt().then(|| numbers.next()).flatten();
            NumberedEntry { number, seq, at_ms, entry }
        });
        conversation.entries = numbered.collect();
        conversation
    }

    /// Returns the name that the user gave, or else the beginning of the first message.
    pub fn name(&self) -> String {
        const CHARS_MAX: usize = 80;
        let first = || {
            let prompt = self.entries.iter().find(|entry| entry.number.is_some())?;
            let text = prompt.entry.message.text();
            let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
            let is_long = line.chars().nth(CHARS_MAX).is_some();
            let begin: String = line.chars().take(CHARS_MAX).collect();
            Some(if is_long { format!("{begin}…") } else { begin })
        };
        self.name.clone().or_else(first).unwrap_or_default()
    }

    /// Returns the conversation as a document.
    pub fn to_transcript(&self, id: &SessionId, reader: &SessionReader) -> Transcript {
        let message = |it: &NumberedEntry| TranscriptMessage {
            at_ms: it.at_ms,
            message: it.entry.message.clone(),
            model: it.entry.made_by.as_ref().map(ToString::to_string),
            note: entry_note(&it.entry).map(str::to_owned),
        };
        Transcript {
            id: id.clone(),
            name: self.name(),
            workspace: reader.header().workspace.clone(),
            begun_ms: reader.begun_ms(),
            messages: self.entries.iter().map(message).collect(),
            ..Transcript::default()
        }
    }
}

/// Returns the special state of a message.
pub(super) fn entry_note(entry: &HistoryEntry) -> Option<&'static str> {
    Some(match entry.mark? {
        MessageMark::Unsent => transcript_note::NOT_SENT,
        MessageMark::Partial => transcript_note::BROKE_OFF,
        MessageMark::Collected => transcript_note::COLLECTED,
    })
}

/// Returns a message as JSON for programs.
pub(super) fn entry_to_json(entry: &NumberedEntry) -> Value {
    serde_json::json!({
        "number": entry.number,
        "at": super::time::format_utc(entry.at_ms),
        "role": entry.entry.message.role,
        "model": entry.entry.made_by,
        "note": entry_note(&entry.entry),
        "parts": entry.entry.message.parts,
    })
}

#[cfg(test)]
mod tests {
    use jaato_runtime::sessions::SessionRecord;
    use serde_json::json;

    use super::*;

    #[test]
    fn changes_with_huge_numbers_are_skipped() {
        let message =
            |text: &str| json!({ "role": "user", "parts": [{ "type": "text", "text": text }] });
        let stored = |(seq, (kind, data)): (u64, (&str, Value))| {
            let record = SessionRecord::new(kind, data);
            StoredRecord { seq, at_ms: 0, epoch: 1, record }
        };
        let records = [
            (record_type::MESSAGE, message("one")),
            (record_type::MESSAGE, message("two")),
            (record_type::CHANGE, json!({ "change": "forget", "count": 1 })),
            (record_type::CHANGE, json!({ "change": "forget", "count": u64::MAX })),
            (record_type::CHANGE, json!({ "change": "cut", "length": u64::MAX })),
            (
                record_type::CHANGE,
                json!({ "change": "replace", "index": u64::MAX, "entry": message("three") }),
            ),
        ];
        let conversation =
            SavedConversation::from_records((1..).zip(records).map(stored).collect());
        let texts = conversation.entries.iter().map(|entry| entry.entry.message.text());
        assert_eq!(texts.collect::<Vec<_>>(), ["one", "two"]);
        assert_eq!(conversation.damaged, 3);
    }
}
