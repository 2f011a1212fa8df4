//! Decides which turns to remove: whole turns, oldest first. Pure.
//!
//! Invariants: a turn is removed or kept as a whole, so that tool calls keep their results. Pinned
//! turns and the last turn, which may still be open, are kept.

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::serde_json;
use jaato_plugin_sdk::types::GcReason;

use crate::TruncateSettings;

/// How much of the window, in percent, recent turns may fill before the oldest of them are removed
/// too. A fuller window leaves too little room for an answer.
const FULL_PERCENT: u64 = 95;

/// A turn's position among the messages.
#[derive(Debug, Clone, Copy)]
struct TurnRange {
    start: usize,
    end: usize,
    bytes: u64,
    stays: bool,
}

/// Plans which messages to remove.
///
/// The plan removes all finished turns except the last `preserve_recent_turns` and the pinned ones.
/// It also removes the oldest recent turns, down to `target_percent`, if the request would not fit
/// otherwise: the provider has refused it, or the remaining turns are estimated to fill the window.
/// If the user asks for a gc and no turn is old, the older half of the recent turns is removed,
/// regardless of the estimate. The user may know that a server refuses a context that the estimate
/// does not consider full.
pub fn plan(request: &GcRequest, settings: &TruncateSettings) -> GcPlan {
    let mut turns = split_turns(&request.messages);
    let finished = turns.len().saturating_sub(usize::from(is_open(&request.messages)));
    let first_recent = finished.saturating_sub(settings.preserve_recent_turns);
    let last = turns.len().saturating_sub(1);
    for (index, turn) in turns.iter_mut().enumerate() {
        let is_pinned = settings.pinned_turn_indices.contains(&index);
        turn.stays = is_pinned || index >= first_recent || index == last;
    }
    let mut tokens = request.total_tokens.saturating_sub(tokens_freed(&turns));
    let is_asked = request.reason == GcReason::Manual;
    if is_asked && turns.iter().all(|turn| turn.stays) {
        let free = (first_recent..last).filter(|at| !settings.pinned_turn_indices.contains(at));
        let free: Vec<usize> = free.collect();
        for index in free.iter().take(free.len().div_ceil(2)) {
            turns[*index].stays = false;
        }
        tokens = request.total_tokens.saturating_sub(tokens_freed(&turns));
    }
    let must_fit = request.reason == GcReason::ContextLimit;
    if must_fit || is_above(tokens, FULL_PERCENT, request) {
        for index in first_recent..last {
            if !is_above(tokens, settings.target_percent, request) {
                break;
            }
            if !settings.pinned_turn_indices.contains(&index) {
                turns[index].stays = false;
                tokens = request.total_tokens.saturating_sub(tokens_freed(&turns));
            }
        }
    }
    let gone = turns.iter().filter(|turn| !turn.stays);
    let drop: Vec<usize> = gone.flat_map(|turn| turn.start..turn.end).collect();
    let note =
        (settings.notify_on_gc && !drop.is_empty()).then(|| format_removal_note(&turns, finished));
    GcPlan { v: GcPlan::VERSION, drop, summary: None, note, ..GcPlan::default() }
}

/// Splits a history into turns. Messages before the first prompt belong to the first turn.
fn split_turns(messages: &[Message]) -> Vec<TurnRange> {
    let is_start = |at: &usize| *at == 0 || messages[*at].is_prompt();
    let starts: Vec<usize> = (0..messages.len()).filter(is_start).collect();
    let ends = starts.iter().skip(1).copied().chain([messages.len()]);
    let turn = |(&start, end): (&usize, usize)| {
        let bytes = messages[start..end].iter().map(message_bytes).sum();
        TurnRange { start, end, bytes, stays: true }
    };
    starts.iter().zip(ends).map(turn).collect()
}

/// Returns true if the last turn has no final answer yet.
fn is_open(messages: &[Message]) -> bool {
    let is_answer = |last: &Message| last.role == Role::Model && last.tool_calls().next().is_none();
    messages.last().is_some_and(|last| !is_answer(last))
}

/// Returns the size of a message as JSON. A message that cannot be serialized counts as 0, because
/// removing it gains nothing.
fn message_bytes(message: &Message) -> u64 {
    serde_json::to_string(message).map_or(0, |json| json.len() as u64)
}

/// Estimates the tokens that the plan frees as a quarter of their bytes.
fn tokens_freed(turns: &[TurnRange]) -> u64 {
    turns.iter().filter(|turn| !turn.stays).map(|turn| turn.bytes).sum::<u64>() / 4
}

fn is_above(tokens: u64, percent: u64, request: &GcRequest) -> bool {
    let (tokens, limit) = (u128::from(tokens), u128::from(request.context_limit));
    tokens * 100 > limit * u128::from(percent)
}

fn format_removal_note(turns: &[TurnRange], finished: usize) -> String {
    let removed = turns.iter().filter(|turn| !turn.stays).count();
    let kept = turns[..finished].iter().filter(|turn| turn.stays).count();
    format!("Context cleaned: removed {removed} old turns, kept {kept} recent turns.")
}
