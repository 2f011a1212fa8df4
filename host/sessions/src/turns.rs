//! The user's messages of a conversation, by their numbers, and rewinds to before one.

use jaato_types::{Message, SessionId};
use serde::Deserialize as _;
use serde_json::json;

use crate::effective::effective_records;
use crate::error::SessionStoreError;
use crate::record::{SessionRecord, StoredRecord, record_type};
use crate::store::SessionStore;
use crate::writer::Durability;

/// A message of the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberedPrompt {
    /// Its number in the conversation, from 1.
    pub number: u64,
    /// The number of its record.
    pub seq: u64,
    /// When it was sent, in milliseconds since 1970.
    pub at_ms: i64,
    /// Its text.
    pub text: String,
}

/// Lists the user's messages among [effective records](effective_records).
pub fn numbered_prompts(effective: &[StoredRecord]) -> Vec<NumberedPrompt> {
    let texts = effective.iter().filter_map(|stored| {
        let is_message = stored.record.kind == record_type::MESSAGE;
        let message = is_message.then(|| Message::deserialize(&stored.record.data).ok())??;
        message.is_prompt().then(|| (stored, message.text()))
    });
    let numbered = (1..).zip(texts).map(|(number, (stored, text))| NumberedPrompt {
        number,
        seq: stored.seq,
        at_ms: stored.at_ms,
        text,
    });
    numbered.collect()
}

impl SessionStore {
    /// Returns the number of the last record before a message of the user.
    ///
    /// # Errors
    /// If there is no such session or message, or the session cannot be read.
    pub fn seq_before_prompt(&self, id: &SessionId, number: u64) -> Result<u64, SessionStoreError> {
        let records = effective_records(self.read(id)?.read_rest()?);
        let prompts = numbered_prompts(&records);
        let Some(prompt) = prompts.iter().find(|prompt| prompt.number == number) else {
            let (id, count) = (id.as_str().to_owned(), prompts.len() as u64);
            return Err(SessionStoreError::NoPrompt { id, number, count });
        };
        let before = records.iter().take_while(|stored| stored.seq < prompt.seq).last();
        Ok(before.map_or(0, |stored| stored.seq))
    }

    /// Takes back a message of the user and everything after it. The records stay in the file.
    ///
    /// # Errors
    /// As [`SessionStore::seq_before_prompt`], if another process has the session open, or if the
    /// disk refuses.
    pub fn rewind_before_prompt(
        &self,
        id: &SessionId,
        number: u64,
    ) -> Result<(), SessionStoreError> {
        let seq = self.seq_before_prompt(id, number)?;
        let mut opened = self.open(id, false)?;
        let rewind = SessionRecord::new(record_type::REWIND, json!({ "seq": seq }));
        opened.writer.append([rewind], Durability::Synced).map(drop)
    }
}
