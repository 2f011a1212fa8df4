//! Turns of a history, and sizes of messages. Pure.

use std::ops::Range;

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::serde_json;
use jaato_plugin_sdk::types::DataPart;

use crate::PlanSettings;

/// The bytes that an image or another file counts as: about 1,000 tokens.
const MEDIA_BYTES: u64 = 4_096;

/// A turn: its messages, and whether a plan may change it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HistoryTurn {
    /// The indices of its messages.
    pub(crate) messages: Range<usize>,
    /// Whether it is finished and not pinned, and another turn follows.
    pub(crate) is_free: bool,
    /// Whether it is one of the recent turns that should stay.
    pub(crate) is_recent: bool,
}

/// Splits a history into turns. Messages before the first prompt belong to the first turn.
pub(crate) fn split_turns(messages: &[Message], settings: &PlanSettings) -> Vec<HistoryTurn> {
    let is_start = |at: &usize| *at == 0 || messages[*at].is_prompt();
    let starts: Vec<usize> = (0..messages.len()).filter(is_start).collect();
    let ends = starts.iter().skip(1).copied().chain([messages.len()]);
    let finished = starts.len().saturating_sub(usize::from(is_turn_open(messages)));
    let first_recent = finished.saturating_sub(settings.preserve_recent_turns);
    let last = starts.len().saturating_sub(1);
    let turn = |(index, (&start, end)): (usize, (&usize, usize))| HistoryTurn {
        messages: start..end,
        is_free: index != last && !settings.pinned_turn_indices.contains(&index),
        is_recent: index >= first_recent,
    };
    starts.iter().zip(ends).enumerate().map(turn).collect()
}

/// Returns true if the last turn has no final answer yet.
pub(crate) fn is_turn_open(messages: &[Message]) -> bool {
    let is_answer = |last: &Message| last.role == Role::Model && last.tool_calls().next().is_none();
    messages.last().is_some_and(|last| !is_answer(last))
}

/// Returns the size of a message as JSON, plus an estimate for its files. A message that cannot be
/// serialized counts as 0, because removing it gains nothing.
pub(crate) fn message_bytes(message: &Message) -> u64 {
    let files = message.parts.iter().map(|part| part_files(part).len() as u64).sum::<u64>();
    json_size(message) + files * MEDIA_BYTES
}

/// Returns the size of a part, as [`message_bytes`].
pub(crate) fn part_bytes(part: &Part) -> u64 {
    json_size(part) + part_files(part).len() as u64 * MEDIA_BYTES
}

pub(crate) fn json_size<T: jaato_plugin_sdk::serde::Serialize>(value: &T) -> u64 {
    serde_json::to_string(value).map_or(0, |json| json.len() as u64)
}

/// Returns the files of a part, each with its index among the attachments.
pub(crate) fn part_files(part: &Part) -> Vec<(Option<usize>, &DataPart)> {
    let files: Vec<(Option<usize>, &DataPart)> = match part {
        Part::Data(data) => vec![(None, data)],
        Part::ToolResult(result) => {
            result.attachments.iter().enumerate().map(|(at, data)| (Some(at), data)).collect()
        }
        _ => Vec::new(),
    };
    files.into_iter().filter(|(_, data)| data.blob_id().is_some()).collect()
}
