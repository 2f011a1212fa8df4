//! Changes by a gc: messages that are removed from later requests or sent in a shorter form. The
//! record keeps them.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use jaato_types::{Message, Part, Role};

use super::{History, HistoryEntry, HistoryError, MessageMark};

/// The maximum number of bytes of collected messages that the record keeps, as JSON. The oldest
/// beyond that are forgotten, because a session may last for months.
pub const COLLECTED_BYTES_MAX: u64 = 16 * 1024 * 1024;

impl HistoryEntry {
    /// Returns the message that the model receives for it.
    pub fn sent_message(&self) -> &Message {
        self.sent.as_ref().unwrap_or(&self.message)
    }

    /// Returns true if a gc removed it from the model's requests.
    pub fn is_collected(&self) -> bool {
        self.mark == Some(MessageMark::Collected)
    }

    /// Returns true if the model receives a shorter form of it, not counting what is sent in front.
    pub fn is_shortened(&self) -> bool {
        let Some(sent) = &self.sent else { return false };
        // A cut takes thoughts and signatures out of answers, which are never shortened.
        self.message.role != Role::Model
            && self.is_sent()
            && self
                .sent_parts()
                .map(|(_, part)| part)
                .ne(sent.parts.iter().skip(self.count_leading_parts()))
    }

    pub(crate) fn is_sent(&self) -> bool {
        !matches!(self.mark, Some(MessageMark::Unsent | MessageMark::Collected))
    }
}

impl History {
    /// Stops sending some messages, and puts a summary in their place: in front of the first prompt
    /// that remains after the first of them. A cut follows. `drop` are ascending indices among the
    /// messages that are sent. If a check fails, nothing changes.
    pub(crate) fn replace_with_summary(
        &mut self,
        drop: &[usize],
        summary: Option<Vec<Part>>,
    ) -> Result<(), HistoryError> {
        let sent = self.sent_indices();
        let gone: HashSet<usize> = drop.iter().filter_map(|at| sent.get(*at).copied()).collect();
        let mut entries = self.entries.clone();
        for at in &gone {
            Arc::make_mut(&mut entries[*at]).mark = Some(MessageMark::Collected);
        }
        if let Some(mut parts) = summary {
            let from = gone.iter().copied().min().unwrap_or(0);
            let is_place =
                |entry: &&mut Arc<HistoryEntry>| entry.is_sent() && entry.message.is_prompt();
            let Some(first) = entries[from..].iter_mut().find(is_place) else {
                return Err(HistoryError::Summary);
            };
            parts.extend(first.sent_message().parts.iter().cloned());
            Arc::make_mut(first).sent =
                Some(Message { role: Role::User, parts, ..Message::default() });
        }
        let mut collected = Self::restore(entries)?;
        // Ids stay in use even if their messages are forgotten.
        collected.call_ids.extend(self.call_ids.drain());
        collected.turns_forgotten = self.turns_forgotten;
        *self = collected;
        Ok(())
    }

    /// Returns the indices in the record of the messages that are sent.
    pub(crate) fn sent_indices(&self) -> Vec<usize> {
        (0..self.entries.len()).filter(|at| self.entries[*at].is_sent()).collect()
    }

    /// Sends another message instead of the one at this index of the record, with the same role,
    /// calls and results. If a check fails, nothing changes.
    pub(crate) fn replace_sent_message(
        &mut self,
        at: usize,
        sent: Message,
    ) -> Result<(), HistoryError> {
        let Some(entry) = self.entries.get_mut(at) else { return Err(HistoryError::Sent) };
        super::check::check_replacement(&entry.message, &sent)?;
        Arc::make_mut(entry).sent = Some(sent);
        Ok(())
    }

    /// Returns the indices of the last turn in the record.
    pub(crate) fn last_turn_range(&self) -> Range<usize> {
        let begins = |entry: &Arc<HistoryEntry>| entry.is_sent() && entry.message.is_prompt();
        let start = self.entries.iter().rposition(begins);
        let is_sent = |entry: &Arc<HistoryEntry>| entry.is_sent();
        let first = || self.entries.iter().position(is_sent).unwrap_or(self.entries.len());
        start.unwrap_or_else(first)..self.entries.len()
    }

    /// Lists the messages that are sent for these indices of the record.
    pub(crate) fn sent_messages(&self, places: Range<usize>) -> impl Iterator<Item = &Message> {
        let entries = self.entries.get(places).unwrap_or_default();
        entries.iter().filter(|entry| entry.is_sent()).map(|entry| entry.sent_message())
    }

    /// Lists the numbers of the turns that are sent, counted from 0 since the session began. The
    /// rest of a turn without its prompt counts as that turn if it comes first.
    pub(crate) fn sent_turn_numbers(&self) -> Vec<u64> {
        let (mut begun, mut numbers) = (self.turns_forgotten, Vec::new());
        for entry in self.entries.iter().filter(|entry| entry.mark != Some(MessageMark::Unsent)) {
            let is_prompt = entry.message.is_prompt();
            begun += u64::from(is_prompt);
            if entry.is_sent() && (is_prompt || numbers.is_empty()) {
                numbers.push(begun.saturating_sub(1));
            }
        }
        numbers
    }

    /// Returns true if the model no longer receives some messages as they were said, because a gc
    /// or the session has left them out or shortened them. Answers that the user asked to replace
    /// do not count.
    pub(crate) fn has_collected(&self) -> bool {
        let is_collected = |entry: &Arc<HistoryEntry>| {
            let message = &entry.message;
            let may_be_replaced =
                message.role == Role::Model && message.tool_calls().next().is_none();
            (entry.is_collected() && !may_be_replaced) || entry.is_shortened()
        };
        self.turns_forgotten > 0 || self.entries.iter().any(is_collected)
    }

    /// Returns this record with each entry sent as in an earlier state of it. Later entries stay.
    /// Fails if the messages no longer fit together.
    pub(crate) fn with_earlier_entries(
        &self,
        earlier: &[Arc<HistoryEntry>],
    ) -> Result<Self, HistoryError> {
        let mut entries = self.entries.clone();
        for (entry, was) in entries.iter_mut().zip(earlier) {
            if Arc::ptr_eq(entry, was) {
                continue;
            }
            let is_collected = entry.is_collected() && !was.is_collected();
            // Events may have been added to a message since.
            let has_grown = entry.message != was.message;
            let entry = Arc::make_mut(entry);
            if is_collected {
                entry.mark = was.mark;
            }
            if !has_grown || was.sent.is_none() {
                entry.sent.clone_from(&was.sent);
            }
        }
        let mut restored = Self::restore(entries)?;
        restored.call_ids.extend(self.call_ids.iter().cloned());
        restored.turns_forgotten = self.turns_forgotten;
        Ok(restored)
    }

    /// Forgets the oldest collected messages beyond this many bytes, also in an `earlier` state of
    /// the record. Returns true if there were any.
    pub(crate) fn forget_collected(
        &mut self,
        bytes_max: u64,
        earlier: Option<&mut Vec<Arc<HistoryEntry>>>,
    ) -> bool {
        let mut bytes = 0;
        let mut first_kept = 0;
        for (at, entry) in self.entries.iter().enumerate().rev() {
            if entry.is_collected() {
                bytes += crate::gc::json_bytes(&entry.message);
                if bytes > bytes_max {
                    first_kept = at + 1;
                    break;
                }
            }
        }
        if first_kept == 0 {
            return false;
        }
        let goes: Vec<bool> =
            self.entries[..first_kept].iter().map(|it| it.is_collected()).collect();
        let gone = self.entries.iter().zip(&goes).filter(|(_, goes)| **goes);
        self.turns_forgotten += gone.filter(|(entry, _)| entry.message.is_prompt()).count() as u64;
        for entries in [Some(&mut self.entries), earlier].into_iter().flatten() {
            let mut goes = goes.iter();
            entries.retain(|_| !goes.next().is_some_and(|goes| *goes));
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history_with_turns(turns: usize) -> History {
        let mut history = History::new();
        for turn in 0..turns {
            history.append_prompt(vec![Part::text(format!("prompt {turn}"))]).unwrap();
            history.append_answer(vec![Part::text("answer")], None).unwrap();
        }
        history
    }

    fn message_texts(history: &History) -> Vec<String> {
        history.messages().map(Message::text).collect()
    }

    #[test]
    fn collected_messages_stay_recorded_and_turns_keep_their_numbers() {
        let mut history = history_with_turns(4);
        history.replace_with_summary(&[0, 1, 4, 5], None).unwrap();
        assert_eq!(message_texts(&history), ["prompt 1", "answer", "prompt 3", "answer"]);
        assert_eq!(history.entries().len(), 8);
        assert_eq!((history.turn_count(), history.sent_turn_numbers()), (4, vec![1, 3]));
        history.replace_with_summary(&[0, 1], None).unwrap();
        assert_eq!((history.turn_count(), history.sent_turn_numbers()), (4, vec![3]));
        let restored = History::restore(history.entries().iter().cloned());
        assert_eq!(restored.as_ref(), Ok(&history));
    }

    #[test]
    fn replacement_that_would_split_a_turn_changes_nothing() {
        let mut history = history_with_turns(3);
        let before = history.clone();
        for drop in [&[0][..], &[1], &[1, 2, 3]] {
            history.replace_with_summary(drop, None).unwrap_err();
            assert_eq!(history, before);
        }
    }

    #[test]
    fn summary_is_sent_before_the_first_kept_prompt_but_not_recorded() {
        let mut history = history_with_turns(3);
        history.replace_with_summary(&[0, 1], Some(vec![Part::text("summary. ")])).unwrap();
        assert_eq!(message_texts(&history)[0], "summary. prompt 1");
        assert_eq!(history.entries()[2].message.text(), "prompt 1");
        history.replace_with_summary(&[0, 1], Some(vec![Part::text("again. ")])).unwrap();
        assert_eq!(message_texts(&history), ["again. prompt 2", "answer"]);
    }

    #[test]
    fn only_a_message_of_the_same_kind_is_sent_instead() {
        let mut history = history_with_turns(1);
        let before = history.clone();
        let model = Message::model(vec![Part::text("x")]);
        history.replace_sent_message(0, model).unwrap_err();
        history.replace_sent_message(0, Message { role: Role::User, parts: vec![] }).unwrap_err();
        history.replace_sent_message(9, Message::user("x")).unwrap_err();
        assert_eq!(history, before);
        history.replace_sent_message(0, Message::user("x")).unwrap();
        assert_eq!(
            (message_texts(&history)[0].as_str(), history.last_prompt().unwrap().as_str()),
            ("x", "prompt 0")
        );
    }

    #[test]
    fn the_oldest_collected_messages_beyond_the_bound_are_forgotten() {
        let mut history = history_with_turns(6);
        history.replace_with_summary(&[0, 1, 2, 3, 4, 5, 6, 7], None).unwrap();
        let two = 2 * crate::gc::json_bytes(&history.entries()[0].message);
        assert!(history.forget_collected(two, None) && !history.forget_collected(two, None));
        // A prompt has as many bytes as an answer, or one less.
        assert_eq!(history.entries().len(), 6);
        assert_eq!((history.turn_count(), history.sent_turn_numbers()), (6, vec![4, 5]));
        assert_eq!(message_texts(&history)[0], "prompt 4");
        history.forget_collected(0, None);
        assert_eq!((history.entries().len(), history.turn_count()), (4, 6));
    }
}
