//! The user's messages of a conversation, by their numbers, and rewinds to before one.

use jaato_types::SessionId;
use serde_json::json;

use crate::effective::effective_records;
use crate::error::SessionStoreError;
use crate::record::{IndexedText, SessionRecord, StoredRecord, record_type};
use crate::replay::{ReplayedEntry, ReplayedHistory};
use crate::store::{OpenedSession, SessionStore};
use crate::writer::{Durability, SessionWriter};

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

/// Lists the user's messages of the conversation that [effective records](effective_records)
/// describe. A message that was cut has no number. One that was not sent has.
fn numbered_prompts(effective: &[StoredRecord]) -> Vec<NumberedPrompt> {
    let mut history = ReplayedHistory::default();
    for stored in effective {
        // A damaged change has no effect.
        let _ = history.apply_record(stored, IndexedText::from_entry);
    }
    let prompts = history.into_entries().into_iter().filter(|it| it.entry.is_prompt);
    let numbered = (1..).zip(prompts).map(|(number, ReplayedEntry { seq, at_ms, entry })| {
        NumberedPrompt { number, seq, at_ms, text: entry.text }
    });
    numbered.collect()
}

impl SessionStore {
    /// Lists the user's messages of a session.
    ///
    /// # Errors
    /// If there is no such session, or it cannot be read.
    pub fn list_prompts(&self, id: &SessionId) -> Result<Vec<NumberedPrompt>, SessionStoreError> {
        Ok(numbered_prompts(&effective_records(self.read_session(id)?.read_rest()?)))
    }

    /// Returns a message of the user.
    ///
    /// # Errors
    /// As [`SessionStore::list_prompts`], or if there is no message with this number.
    pub fn find_prompt(
        &self,
        id: &SessionId,
        number: u64,
    ) -> Result<NumberedPrompt, SessionStoreError> {
        numbered_prompt(&effective_records(self.read_session(id)?.read_rest()?), id, number)
    }

    /// Returns the number of the last record before a message of the user, if one is given.
    ///
    /// # Errors
    /// As [`SessionStore::find_prompt`].
    pub fn last_seq_before(
        &self,
        id: &SessionId,
        number: Option<u64>,
    ) -> Result<Option<u64>, SessionStoreError> {
        match number {
            Some(number) => {
                let records = effective_records(self.read_session(id)?.read_rest()?);
                Ok(Some(last_seq_before_prompt(&records, &numbered_prompt(&records, id, number)?)))
            }
            None => self.read_session(id).map(|_| None),
        }
    }

    /// Opens a session to take back a message of the user and everything after it. No other process
    /// can change the session until the result is finished or dropped.
    ///
    /// # Errors
    /// As [`SessionStore::find_prompt`] and [`SessionStore::open_session`].
    pub fn open_rewind(
        &self,
        id: &SessionId,
        number: u64,
    ) -> Result<OpenedRewind, SessionStoreError> {
        let OpenedSession { writer, records, .. } = self.open_session(id, false)?;
        let records = effective_records(records);
        let prompt = numbered_prompt(&records, id, number)?;
        let seq = last_seq_before_prompt(&records, &prompt);
        Ok(OpenedRewind { prompt, seq, writer })
    }

    /// Takes back a message of the user and everything after it. The records stay in the file.
    ///
    /// # Errors
    /// As [`SessionStore::open_rewind`], or if the disk refuses.
    pub fn rewind_before_prompt(
        &self,
        id: &SessionId,
        number: u64,
    ) -> Result<(), SessionStoreError> {
        self.open_rewind(id, number)?.finish()
    }
}

/// A session that this process owns to rewind it. Dropping it changes nothing.
#[derive(Debug)]
pub struct OpenedRewind {
    prompt: NumberedPrompt,
    /// The number of the last record that stays.
    seq: u64,
    writer: SessionWriter,
}

impl OpenedRewind {
    /// Returns the message that is taken back.
    pub fn prompt(&self) -> &NumberedPrompt {
        &self.prompt
    }

    /// Takes back the message and everything after it. The records stay in the file.
    ///
    /// # Errors
    /// If the disk refuses, or another process has taken the session over.
    pub fn finish(mut self) -> Result<(), SessionStoreError> {
        let rewind = SessionRecord::new(record_type::REWIND, json!({ "seq": self.seq }));
        self.writer.append_records([rewind], Durability::Synced).map(drop)
    }
}

fn numbered_prompt(
    effective: &[StoredRecord],
    id: &SessionId,
    number: u64,
) -> Result<NumberedPrompt, SessionStoreError> {
    let prompts = numbered_prompts(effective);
    let count = prompts.len() as u64;
    let found = prompts.into_iter().find(|prompt| prompt.number == number);
    let id = || id.as_str().to_owned();
    found.ok_or_else(|| SessionStoreError::NoPrompt { id: id(), number, count })
}

/// Returns the number of the last record before a message, or 0.
fn last_seq_before_prompt(effective: &[StoredRecord], prompt: &NumberedPrompt) -> u64 {
    let before = effective.iter().take_while(|stored| stored.seq < prompt.seq).last();
    before.map_or(0, |stored| stored.seq)
}
