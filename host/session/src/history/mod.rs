//! The record of a conversation, and the part of it that the model receives.
//!
//! Invariants, checked at every append, at restore and after every gc ([`check`]): roles alternate
//! (user, then model, then tool results and model as often as needed, then user again). Each tool
//! call has exactly one result, in call order, in the next message. Call ids are unique. No message
//! is empty. Only a prompt can be unsent. A change that breaks one of these is refused and has no
//! effect. Messages that a gc collected stay in the record and are not sent again. Roles and pairs
//! hold for the messages that are sent.

mod check;
mod cut;
mod gc_changes;

use std::collections::HashSet;
use std::sync::Arc;

use jaato_types::{CallId, Message, ModelId, Part, Role, ToolCall, ToolResult};
use serde::{Deserialize, Serialize};

pub use check::HistoryError;
pub use gc_changes::COLLECTED_BYTES_MAX;

/// One message of the record.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct HistoryEntry {
    /// The message.
    #[serde(flatten)]
    pub message: Message,
    /// The message's special state, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<MessageMark>,
    /// A replacement that the model receives: the head and tail of a message that is too large for
    /// the context window, or a prompt with a summary in front.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<Message>,
    /// For an answer, the model that gave it. Its signatures and opaque parts go back to no other
    /// model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_by: Option<ModelId>,
}

/// A message's special state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageMark {
    /// A prompt whose request failed before its first delta: kept, not sent, and free to be sent
    /// again.
    Unsent,
    /// An answer that broke off: the part that the user saw, and a text part that reports it.
    Partial,
    /// A message that a gc collected, or an answer that the user asked to replace: kept, and no
    /// longer sent.
    Collected,
}

/// The record of a conversation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct History {
    /// Shared with readers of the conversation while a turn runs.
    entries: Vec<Arc<HistoryEntry>>,
    /// The ids of all calls in the record.
    call_ids: HashSet<CallId>,
    /// Turns whose prompts were removed from the record.
    turns_forgotten: u64,
}

/// The kind of message that may come next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExpectedMessage {
    /// A prompt.
    Prompt,
    /// The model's answer.
    Answer,
    /// The results of the calls of the last answer.
    Results,
}

impl History {
    /// Creates an empty record.
    pub fn new() -> Self {
        Self::default()
    }

    /// Restores a record entry by entry, through the same checks as every append.
    pub fn restore(
        entries: impl IntoIterator<Item = impl Into<Arc<HistoryEntry>>>,
    ) -> Result<Self, HistoryError> {
        let mut history = Self::new();
        for entry in entries {
            history.append_shared_entry(entry.into())?;
        }
        Ok(history)
    }

    /// Restores a record without the turns that break an invariant. Returns how many entries are
    /// left out.
    pub fn restore_whole_turns(entries: &[Arc<HistoryEntry>]) -> (Self, usize) {
        let mut kept: Vec<Arc<HistoryEntry>> = Vec::new();
        let mut history = Self::new();
        let mut turns = entries.chunk_by(|_, next| !next.message.is_prompt()).peekable();
        while let Some(turn) = turns.next() {
            let added = turn.iter().try_for_each(|it| history.append_shared_entry(Arc::clone(it)));
            // Only the last turn may be open.
            let is_open = history.expected_message() != ExpectedMessage::Prompt;
            match added.is_err() || (is_open && turns.peek().is_some()) {
                false => kept.extend_from_slice(turn),
                // These were valid before.
                true => history = Self::restore(kept.iter().cloned()).unwrap_or_default(),
            }
        }
        let lost = entries.len() - kept.len();
        (history, lost)
    }

    /// Counts turns whose prompts were removed from the record.
    #[must_use]
    pub fn with_forgotten_turns(self, turns_forgotten: u64) -> Self {
        Self { turns_forgotten, ..self }
    }

    /// Returns how many turns were removed from the record.
    pub fn turns_forgotten(&self) -> u64 {
        self.turns_forgotten
    }

    /// Returns the whole record, including unsent prompts and collected messages.
    pub fn entries(&self) -> &[Arc<HistoryEntry>] {
        &self.entries
    }

    /// Lists the messages that the model receives.
    pub fn messages(&self) -> impl DoubleEndedIterator<Item = &Message> {
        self.entries.iter().filter(|entry| entry.is_sent()).map(|entry| entry.sent_message())
    }

    /// Counts the prompts that were sent to the model since the session began, including collected
    /// ones.
    pub fn turn_count(&self) -> u64 {
        let was_sent = |entry: &&Arc<HistoryEntry>| entry.mark != Some(MessageMark::Unsent);
        let prompts = self.entries.iter().filter(was_sent).filter(|it| it.message.is_prompt());
        self.turns_forgotten + prompts.count() as u64
    }

    /// Returns true if the record has a call with this id.
    pub fn has_call(&self, id: &CallId) -> bool {
        self.call_ids.contains(id)
    }

    /// Lists the calls of the last answer. They are open while it is the last message.
    pub(crate) fn open_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.messages().next_back().into_iter().flat_map(Message::tool_calls)
    }

    pub(crate) fn expected_message(&self) -> ExpectedMessage {
        match self.messages().next_back() {
            None => ExpectedMessage::Prompt,
            Some(last) => match last.role {
                Role::User | Role::Tool => ExpectedMessage::Answer,
                Role::Model if last.tool_calls().next().is_some() => ExpectedMessage::Results,
                Role::Model => ExpectedMessage::Prompt,
                Role::Unknown => unreachable!("refused by `check::check_entry`"),
            },
        }
    }

    /// Appends a user's prompt.
    pub fn append_prompt(&mut self, parts: Vec<Part>) -> Result<(), HistoryError> {
        self.append_entry(HistoryEntry {
            message: Message { role: Role::User, parts },
            ..HistoryEntry::default()
        })
    }

    /// Appends an answer of an unknown model. Its signed and thought parts are sent to no model.
    pub fn append_answer(
        &mut self,
        parts: Vec<Part>,
        mark: Option<MessageMark>,
    ) -> Result<(), HistoryError> {
        self.append_entry(HistoryEntry {
            message: Message::model(parts),
            mark,
            ..HistoryEntry::default()
        })
    }

    /// Appends a model's answer.
    pub fn append_model_answer(
        &mut self,
        model: &ModelId,
        parts: Vec<Part>,
        mark: Option<MessageMark>,
    ) -> Result<(), HistoryError> {
        let (message, made_by) = (Message::model(parts), Some(model.clone()));
        self.append_entry(HistoryEntry { message, mark, made_by, ..HistoryEntry::default() })
    }

    /// Appends the results of the last answer's calls, in call order. Text and data about events
    /// during the calls follow.
    pub fn append_results(
        &mut self,
        results: Vec<ToolResult>,
        news: Vec<Part>,
    ) -> Result<(), HistoryError> {
        let mut message = Message::tool(results);
        message.parts.extend(news);
        self.append_entry(HistoryEntry { message, ..HistoryEntry::default() })
    }

    /// Adds text and data about recent events to the message that is sent next.
    pub(crate) fn add_news(&mut self, news: Vec<Part>) -> Result<(), HistoryError> {
        let is_open = self.expected_message() == ExpectedMessage::Answer;
        let last = self.entries.last_mut().filter(|last| is_open && last.is_sent());
        let Some(last) = last else {
            return Err(HistoryError::Role { expected: "an answer", found: Role::User });
        };
        if !news.iter().all(check::is_user_content) {
            return Err(HistoryError::Part(last.message.role));
        }
        let last = Arc::make_mut(last);
        if let Some(sent) = &mut last.sent {
            sent.parts.extend(news.iter().cloned());
        }
        last.message.parts.extend(news);
        Ok(())
    }

    /// Marks the last message as unsent if it is a prompt. Returns true if it is.
    pub(crate) fn mark_unsent(&mut self) -> bool {
        self.mark_last_prompt(Some(MessageMark::Unsent))
    }

    /// Returns true if a prompt was kept unsent, or the last message that is sent has no answer.
    pub(crate) fn is_open(&self) -> bool {
        self.is_unsent() || self.expected_message() == ExpectedMessage::Answer
    }

    /// Returns true if the last message is an answer that broke off.
    pub(crate) fn ends_with_partial_answer(&self) -> bool {
        self.entries.last().is_some_and(|last| last.mark == Some(MessageMark::Partial))
    }

    fn is_unsent(&self) -> bool {
        self.entries.last().is_some_and(|last| last.mark == Some(MessageMark::Unsent))
    }

    /// Stops sending the last answer, so that its prompt or results can be sent again. Changes
    /// nothing if the last message is not an answer.
    pub(crate) fn stop_sending_answer(&mut self) -> Result<(), HistoryError> {
        let sent: Vec<&Message> = self.messages().collect();
        let is_answer = sent.last().is_some_and(|last| last.role == Role::Model);
        let last = sent.len().saturating_sub(1);
        if is_answer { self.replace_with_summary(&[last], None) } else { Ok(()) }
    }

    /// Sends the last message again, if it is an unsent prompt.
    pub(crate) fn mark_sent(&mut self) {
        if self.is_unsent() {
            self.mark_last_prompt(None);
        }
    }

    fn mark_last_prompt(&mut self, mark: Option<MessageMark>) -> bool {
        match self.entries.last_mut() {
            Some(last) if last.message.role == Role::User => {
                Arc::make_mut(last).mark = mark;
                true
            }
            Some(_) | None => false,
        }
    }

    /// Lists the host's data for the model in the last message, if that was never sent.
    pub(crate) fn unsent_host_data(&self) -> impl Iterator<Item = &Part> {
        let unsent = self.entries.last().filter(|last| last.mark == Some(MessageMark::Unsent));
        let parts = unsent.into_iter().flat_map(|entry| &entry.message.parts);
        parts.filter(|part| matches!(part, Part::Data(_)))
    }

    /// Returns the last prompt's text, sent or not.
    pub(crate) fn last_prompt(&self) -> Option<String> {
        let prompt = self.entries.iter().rfind(|entry| entry.message.is_prompt());
        prompt.map(|entry| entry.message.text())
    }

    fn append_entry(&mut self, entry: HistoryEntry) -> Result<(), HistoryError> {
        self.append_shared_entry(Arc::new(entry))
    }

    fn append_shared_entry(&mut self, entry: Arc<HistoryEntry>) -> Result<(), HistoryError> {
        check::check_entry(self, &entry)?;
        self.call_ids.extend(entry.message.tool_calls().map(|call| call.id.clone()));
        self.entries.push(entry);
        Ok(())
    }
}
