//! Restores the messages of the last collection.
//!
//! A collection is everything that one request, or one command of the user, left out or shortened.
//! The session remembers the record as it was before. The entries are shared, so that costs a
//! pointer for each. A saved session marks that point in its file, for the time after a restart.

use std::sync::Arc;

use jaato_types::{Error, ErrorKind, Result};

use super::make_room::FULL_PERCENT;
use crate::{History, HistoryEntry, Session};

/// The record before the last collection.
#[derive(Debug, Default)]
pub(super) struct LastCollection {
    before: Option<Vec<Arc<HistoryEntry>>>,
    /// Whether further changes belong to the same collection.
    is_open: bool,
}

/// The result of taking a collection back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GcUndoResult {
    /// Messages that the model receives again.
    pub messages_restored: u64,
    /// Messages that the model receives as a whole again.
    pub messages_whole: u64,
    /// Tokens in use before, estimated if no provider has counted them.
    pub tokens_before: u64,
    /// Tokens in use after, estimated.
    pub tokens_after: u64,
}

impl LastCollection {
    /// Creates the state of a session that continues.
    pub(super) fn from_record(before: Option<Vec<Arc<HistoryEntry>>>) -> Self {
        Self { before, is_open: false }
    }
}

impl Session {
    /// Takes the last collection back: the model receives its messages again, with the next
    /// request.
    ///
    /// # Errors
    /// `not_found` if nothing was collected, or the collection was taken back before;
    /// `limit_reached` if the messages do not fit into the context. Nothing has changed then.
    pub fn undo_gc(&mut self) -> Result<GcUndoResult> {
        let nothing = || {
            Error::new(ErrorKind::NotFound, "nothing to undo")
                .with_hint("only the last collection can be undone, and only once")
        };
        let before = self.gc.last.before.as_deref().ok_or_else(nothing)?;
        let restored = self.history.with_earlier_entries(before).map_err(|error| {
            let text = format!("the messages of the last collection no longer fit: {error}");
            Error::new(ErrorKind::Conflict, text)
        })?;
        let (messages_restored, messages_whole) = count_changes(&self.history, &restored);
        if messages_restored + messages_whole == 0 {
            return Err(nothing());
        }
        let (tokens_before, weight_before) = (self.tokens_in_use(), self.weight_in_use());
        let (collected, counted) =
            (std::mem::replace(&mut self.history, restored), self.gc.counted);
        self.recount_tokens(tokens_before, weight_before);
        if let Err(error) = self.check_restored_fits() {
            (self.history, self.gc.counted) = (collected, counted);
            return Err(error);
        }
        self.make_cut();
        self.gc.last = LastCollection::default();
        self.gc.forget_gc_answers();
        self.publish_record();
        let tokens_after = self.tokens_in_use();
        Ok(GcUndoResult { messages_restored, messages_whole, tokens_before, tokens_after })
    }

    /// Ends the current collection. The next change belongs to another one.
    pub(super) fn end_collection(&mut self) {
        self.gc.last.is_open = false;
    }

    /// Remembers the record before the first change of a collection.
    pub(super) fn begin_collection(&mut self) {
        if self.gc.last.is_open {
            return;
        }
        let before = Some(self.history.entries().to_vec());
        self.gc.last = LastCollection { before, is_open: true };
        if let Some(saver) = &self.shared.ports.saver {
            saver.save_collection(self.history.entries());
        }
    }

    /// Forgets the oldest collected messages, in the record and in the state before the last
    /// collection.
    pub(crate) fn forget_collected(&mut self, bytes_max: u64) -> bool {
        let before = self.gc.last.before.as_mut();
        self.history.forget_collected(bytes_max, before)
    }

    fn check_restored_fits(&self) -> Result<()> {
        let settings = &self.gc.settings;
        let (tokens, limit) = (self.tokens_in_use(), self.gc.limit);
        let turns = self.history.sent_turn_numbers().len() as u64;
        let (is_above, percent) = match settings.auto_trigger {
            true => {
                (self.is_usage_above(settings.threshold_percent), settings.threshold_percent.get())
            }
            false => (self.is_usage_above(FULL_PERCENT), FULL_PERCENT as f64),
        };
        let text = if limit > 0 && is_above {
            format!(
                "the messages do not fit: with them, the context would have about {tokens} of \
                 {limit} tokens, and jaato makes room at {percent} %"
            )
        } else if settings.auto_trigger && settings.max_turns > 0 && turns > settings.max_turns {
            format!(
                "the messages do not fit: with them, {turns} turns would be sent, and jaato makes \
                 room above {} (`gc.max_turns`)",
                settings.max_turns
            )
        } else {
            return Ok(());
        };
        let hint = "use a model with a larger window, or ask for what you need";
        Err(Error::new(ErrorKind::LimitReached, text).with_hint(hint))
    }
}

/// Counts the messages that are sent again, and those that are sent as a whole again.
fn count_changes(now: &History, restored: &History) -> (u64, u64) {
    let pairs = || now.entries().iter().zip(restored.entries());
    let again = pairs().filter(|(now, then)| now.is_collected() && !then.is_collected());
    let whole = pairs().filter(|(now, then)| now.is_shortened() && !then.is_shortened());
    (again.count() as u64, whole.count() as u64)
}
