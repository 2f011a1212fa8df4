//! Plans what to drop: pairs of calls and large results first, then whole turns, oldest first.
//! Pure.
//!
//! Invariants: a call is dropped together with its result, in one pair of messages. The last turn,
//! the recent turns and the pinned turns stay unchanged. Nothing more is dropped once the target is
//! reached.

use std::collections::BTreeSet;
use std::ops::Range;

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::serde_json;

/// The settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanBounds {
    /// Results of at least this many bytes are large.
    pub large_bytes: usize,
    /// The number of recent turns to keep whole. The last turn always stays.
    pub recent_turns: usize,
    /// The indices of further turns to keep whole, starting at 0.
    pub pinned: Vec<usize>,
    /// The fill level to reach, in percent of the context.
    pub target_percent: u64,
}

/// The approximate number of bytes in a token.
const BYTES_PER_TOKEN: u64 = 4;

/// Plans which messages to drop.
pub fn plan_drops(request: &GcRequest, bounds: &PlanBounds) -> GcPlan {
    let messages = &request.messages;
    let turns = old_turns(messages, bounds);
    let mut going = DropSelection::new(request, bounds.target_percent);
    let pairs =
        turns.iter().flat_map(|turn| large_pairs(&messages[turn.clone()], turn.start, bounds));
    let results = pairs.filter(|pair| going.drop_messages(pair.clone())).count();
    let whole = turns.iter().filter(|turn| going.drop_messages((*turn).clone())).count();
    let drop: Vec<usize> = going.places.into_iter().collect();
    let note = (!drop.is_empty())
        .then(|| format!("left out {results} large results of tools, and {whole} whole turns"));
    GcPlan { v: GcPlan::VERSION, drop, note, ..GcPlan::default() }
}

/// Returns the turns from which messages may be dropped, oldest first.
fn old_turns(messages: &[Message], bounds: &PlanBounds) -> Vec<Range<usize>> {
    // Messages before the first prompt belong to the first turn.
    let is_start = |at: &usize| *at == 0 || messages[*at].is_prompt();
    let starts: Vec<usize> = (0..messages.len()).filter(is_start).collect();
    let ends = starts.iter().skip(1).copied().chain([messages.len()]);
    let turns: Vec<Range<usize>> =
        starts.iter().zip(ends).map(|(&start, end)| start..end).collect();
    let old = turns.len().saturating_sub(bounds.recent_turns.max(1));
    let turns = turns.into_iter().enumerate().take(old);
    turns.filter(|(at, _)| !bounds.pinned.contains(at)).map(|(_, turn)| turn).collect()
}

/// Returns the ranges of call and result messages whose results are large.
fn large_pairs(turn: &[Message], start: usize, bounds: &PlanBounds) -> Vec<Range<usize>> {
    let is_large = |at: &usize| {
        turn[*at].tool_calls().next().is_some()
            && message_bytes(&turn[at + 1]) >= bounds.large_bytes as u64
    };
    let places = (0..turn.len().saturating_sub(1)).filter(is_large);
    places.map(|at| start + at..start + at + 2).collect()
}

/// The messages to drop, and the size of the context without them.
struct DropSelection<'a> {
    messages: &'a [Message],
    places: BTreeSet<usize>,
    tokens: u64,
    target_tokens: u64,
}

impl<'a> DropSelection<'a> {
    fn new(request: &'a GcRequest, target_percent: u64) -> Self {
        let target = u128::from(request.context_limit) * u128::from(target_percent) / 100;
        Self {
            messages: &request.messages,
            places: BTreeSet::new(),
            tokens: request.total_tokens,
            target_tokens: u64::try_from(target).unwrap_or(u64::MAX),
        }
    }

    /// Drops these messages, unless enough were already dropped.
    fn drop_messages(&mut self, places: Range<usize>) -> bool {
        if self.tokens <= self.target_tokens {
            return false;
        }
        for at in places {
            if self.places.insert(at) {
                let tokens = message_bytes(&self.messages[at]) / BYTES_PER_TOKEN;
                self.tokens = self.tokens.saturating_sub(tokens);
            }
        }
        true
    }
}

/// Returns the size of a message, or 0 if it cannot be written, so that it is not worth dropping.
fn message_bytes(message: &Message) -> u64 {
    serde_json::to_string(message).map_or(0, |json| json.len() as u64)
}
