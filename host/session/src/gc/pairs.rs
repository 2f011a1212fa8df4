//! Leaves the oldest calls of a long turn out of the request, each together with its result.
//!
//! The last pair stays, because the model has not answered it yet. So does a pair after which the
//! user said something. A note in front of the turn's prompt says which tools ran, because a model
//! that does not know would start over. The record keeps everything.

use std::fmt::Write as _;

use jaato_types::{Event, GcReason, Message, Part, Role, ToolName};

use super::cut::can_be_shortened;
use super::{PART_BYTES_MIN, json_bytes};
use crate::events::HOST;
use crate::{MessageMark, Session};

/// If parts would have to be truncated below this size, a pair is removed instead. A model learns
/// more from a few readable results than from many unreadable ones.
const PART_BYTES_KEPT: u64 = 2 * 1024;

/// In a small window, this many parts share the room before pairs are removed.
const PARTS_KEPT: u64 = 4;

/// The maximum number of tools that the note names.
const TOOLS_NAMED_MAX: usize = 8;

/// The beginning of the note, which identifies it later.
pub(super) const NOTE_BEGIN: &str = "[Left out here to save room: ";

/// One or several calls of one answer, and their results.
struct CallResultPair {
    /// The index of the answer among the messages that are sent. The results follow it.
    at: usize,
    bytes: u64,
    may_go: bool,
}

impl Session {
    /// Leaves out the oldest pairs of the last turn until the rest of it can be truncated to this
    /// many bytes. Returns true if any pair was removed.
    pub(super) fn remove_oldest_pairs(&mut self, bytes_max: u64, reason: GcReason) -> bool {
        let kept = PART_BYTES_KEPT.min(bytes_max / PARTS_KEPT).max(PART_BYTES_MIN);
        let drop = self.pairs_to_remove(bytes_max, kept);
        if drop.is_empty() || self.is_last_turn_pinned() {
            return false;
        }
        let (tokens_before, weight_before) = (self.tokens_in_use(), self.weight_in_use());
        let places: Vec<usize> = drop.iter().flat_map(|at| [*at, at + 1]).collect();
        self.begin_collection();
        // Removing whole pairs keeps the roles in order. If the history refuses that, it is a bug,
        // and nothing changes.
        if let Err(error) = self.history.replace_with_summary(&places, None) {
            self.shared.emitter.emit_notice(format!("the oldest calls of this turn stay: {error}"));
            return false;
        }
        self.update_collection_tools();
        self.update_omission_note();
        self.make_cut();
        self.shared.objects.mark_all_unseen();
        self.recount_tokens(tokens_before, weight_before);
        self.forget_old_messages();
        let calls = if drop.len() == 1 { "call" } else { "calls" };
        self.shared.emitter.emit(Event::Gc {
            reason,
            source: HOST.to_owned(),
            messages_removed: places.len() as u64,
            turns_removed: 0,
            messages_cut: 0,
            tokens_before,
            tokens_after: self.tokens_in_use(),
            note: Some(format!(
                "the {} oldest {calls} of this turn and their results are not sent again",
                drop.len()
            )),
            error: None,
        });
        true
    }

    fn pairs_to_remove(&self, bytes_max: u64, kept: u64) -> Vec<usize> {
        let turn = self.history.last_turn_range();
        let first = self.history.sent_messages(0..turn.start).count();
        let messages: Vec<&Message> = self.history.sent_messages(turn).collect();
        let mut bytes: u64 = messages.iter().map(|message| minimum_bytes(message, kept)).sum();
        let mut drop = Vec::new();
        for CallResultPair { at, bytes: of_pair, may_go } in removable_pairs(&messages, kept) {
            if bytes <= bytes_max {
                break;
            }
            if may_go {
                drop.push(first + at);
                bytes = bytes.saturating_sub(of_pair);
            }
        }
        drop
    }

    fn is_last_turn_pinned(&self) -> bool {
        let last = self.history.sent_turn_numbers().len().checked_sub(1);
        last.is_some_and(|last| self.pinned_places().contains(&last))
    }

    /// Puts a note in front of the turn's prompt, and replaces the previous one.
    fn update_omission_note(&mut self) {
        let turn = self.history.last_turn_range();
        let collected = self.history.entries()[turn.clone()].iter();
        let collected = collected.filter(|entry| entry.mark == Some(MessageMark::Collected));
        let results = collected.flat_map(|entry| entry.message.tool_results());
        let mut note = count_calls_note(results.map(|result| &result.name));
        note.push_str(&match self.collected_messages_tool() {
            Some(tool) => format!(" `{tool}` finds their results.]\n\n"),
            None => "]\n\n".to_owned(),
        });
        let note = Part::text(note);
        self.put_note_in_front(turn.start, note, |text| text.starts_with(NOTE_BEGIN));
    }
}

/// Lists the pairs of a turn, oldest first. The last pair cannot be removed.
fn removable_pairs(messages: &[&Message], kept: u64) -> Vec<CallResultPair> {
    let is_pair =
        |pair: &[&Message]| pair[0].tool_calls().next().is_some() && pair[1].role == Role::Tool;
    let found = messages.windows(2).enumerate().filter(|(_, pair)| is_pair(pair));
    let mut pairs: Vec<CallResultPair> = found
        .map(|(at, pair)| CallResultPair {
            at,
            bytes: pair.iter().map(|message| minimum_bytes(message, kept)).sum(),
            may_go: !pair[1].parts.iter().any(|part| matches!(part, Part::Text { .. })),
        })
        .collect();
    if let Some(last) = pairs.last_mut() {
        last.may_go = false;
    }
    pairs
}

/// Returns the size of a message after each part that can be truncated is truncated to this many
/// bytes.
fn minimum_bytes(message: &Message, kept: u64) -> u64 {
    let whole = json_bytes(message);
    if message.role == Role::Model {
        return whole;
    }
    let cut = message.parts.iter().filter(|part| can_be_shortened(part));
    whole.saturating_sub(cut.map(|part| json_bytes(part).saturating_sub(kept)).sum())
}

/// Lists how many calls of which tools ran, in the order of their first calls.
fn count_calls_note<'a>(names: impl Iterator<Item = &'a ToolName>) -> String {
    let mut counts: Vec<(&ToolName, u64)> = Vec::new();
    for name in names {
        match counts.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => counts.push((name, 1)),
        }
    }
    let all: u64 = counts.iter().map(|(_, count)| count).sum();
    let calls = if all == 1 { "call that this turn" } else { "calls that this turn" };
    let mut text = format!("{NOTE_BEGIN}{all} {calls} began with, and the results (");
    for (at, (name, count)) in counts.iter().take(TOOLS_NAMED_MAX).enumerate() {
        let gap = if at == 0 { "" } else { ", " };
        // Writing to a string cannot fail.
        let _ = write!(text, "{gap}{name}: {count}");
    }
    if counts.len() > TOOLS_NAMED_MAX {
        text.push_str(", …");
    }
    text.push_str("). They ran: continue from here and do not start again.");
    text
}

#[cfg(test)]
mod tests {
    use jaato_types::{CallId, ToolCall, ToolResult};
    use serde_json::{Map, json};

    use super::*;

    #[test]
    fn the_note_counts_each_tool_and_names_only_the_first() {
        let names: Vec<ToolName> = ["b", "a", "b"].into_iter().map(ToolName::from).collect();
        assert_eq!(
            count_calls_note(names.iter()),
            "[Left out here to save room: 3 calls that this turn began with, and the results (b: 2, \
             a: 1). They ran: continue from here and do not start again."
        );
        let named = |count: usize| {
            let names: Vec<_> = (0..count).map(|n| ToolName::new(format!("tool{n}"))).collect();
            count_calls_note(names.iter())
        };
        assert!(named(TOOLS_NAMED_MAX).contains("tool7: 1). They"));
        assert!(named(TOOLS_NAMED_MAX + 1).contains("tool7: 1, …). They"));
    }

    fn call_message(id: &str) -> Message {
        let (id, name) = (CallId::from(id), ToolName::from("look"));
        Message::model(vec![Part::ToolCall(ToolCall {
            id,
            name,
            arguments: json!({}),
            ..ToolCall::default()
        })])
    }

    fn result_message(id: &str) -> Message {
        let (call_id, name) = (CallId::from(id), ToolName::from("look"));
        let result = ToolResult { call_id, name, content: Map::new(), ..ToolResult::default() };
        Message::tool(vec![result])
    }

    #[test]
    fn last_call_pair_and_pairs_with_user_text_are_kept() {
        let mut said = result_message("2");
        said.parts.push(Part::text("look there too"));
        let messages = [
            Message::user("x"),
            call_message("1"),
            result_message("1"),
            call_message("2"),
            said,
            Message::model(vec![Part::text("I see")]),
            Message::user("and?"),
            call_message("3"),
            result_message("3"),
            call_message("4"),
            result_message("4"),
        ];
        let messages: Vec<&Message> = messages.iter().collect();
        let found: Vec<_> =
            removable_pairs(&messages, 512).iter().map(|it| (it.at, it.may_go)).collect();
        assert_eq!(found, [(1, true), (3, false), (7, true), (9, false)]);
    }
}
