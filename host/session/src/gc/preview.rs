//! Shows what a gc would do, without doing it.

use std::collections::BTreeSet;

use jaato_types::text::{one_line, truncate_chars};
use jaato_types::{GcChange, GcEdit, GcPlan, Message, Part, Result, Role};

use super::count::{message_weight, part_weight};
use super::edits::described_attachment;
use crate::{Cancel, Session};

/// The beginning of a turn that is shown, in characters.
const BEGINNING_CHARS_MAX: usize = 60;

/// About the size of the line that is sent in place of a repeated result, in bytes.
const REPEATED_BYTES: u64 = 200;

/// What a gc would do if the user asked for room.
#[derive(Debug, Clone, PartialEq)]
pub struct GcPreview {
    /// The gc's name.
    pub source: String,
    /// The context window in tokens.
    pub context_limit: u64,
    /// How full it may be, in percent, before jaato asks the gc by itself. `None` if it does not.
    pub threshold_percent: Option<f64>,
    /// Tokens in use, estimated if no provider has counted them.
    pub tokens_before: u64,
    /// Tokens in use after the plan, estimated.
    pub tokens_after: u64,
    /// The turns of which something goes.
    pub turns: Vec<PlannedTurn>,
    /// Whether a summary takes the place of what goes.
    pub is_summarised: bool,
}

/// A turn of which messages would go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedTurn {
    /// The number of the turn, counted from 1 since the session began.
    pub turn: u64,
    /// How many of its messages would go.
    pub messages: u64,
    /// Their tokens, estimated.
    pub tokens: u64,
    /// Why they would go.
    pub why: String,
    /// The beginning of the first of them.
    pub begins: String,
}

impl Session {
    /// Asks the gc what it would leave out, and changes nothing.
    ///
    /// # Errors
    /// As [`Session::collect_for_user`].
    pub async fn preview_gc(&mut self, cancel: &Cancel) -> Result<GcPreview> {
        let (plan, request) = self.plan_for_preview(cancel).await?;
        let settings = &self.gc.settings;
        let (tokens_before, weight) = (self.tokens_in_use(), self.weight_in_use().max(1));
        let share = |of: u64| {
            let tokens = u128::from(tokens_before) * u128::from(of) / u128::from(weight);
            u64::try_from(tokens).unwrap_or(u64::MAX)
        };
        let dropped = plan.drop.iter().map(|at| message_weight(&request.messages[*at]));
        let edited = plan.edits.iter().map(|edit| freed_bytes(edit, &request.messages));
        let gone: u64 = dropped.chain(edited).sum();
        let added = plan.summary.as_ref().map_or(0, message_weight);
        Ok(GcPreview {
            source: self.gc_source(),
            context_limit: self.gc.limit,
            threshold_percent: settings.auto_trigger.then(|| settings.threshold_percent.get()),
            tokens_before,
            tokens_after: tokens_before.saturating_sub(share(gone.saturating_sub(added))),
            turns: self.planned_turns(&plan, &request.messages, share),
            is_summarised: plan.summary.is_some(),
        })
    }

    fn planned_turns(
        &self,
        plan: &GcPlan,
        messages: &[Message],
        share: impl Fn(u64) -> u64,
    ) -> Vec<PlannedTurn> {
        let dropped: BTreeSet<usize> = plan.drop.iter().copied().collect();
        let numbers = self.history.sent_turn_numbers();
        let turns = super::plan::split_into_turns(messages);
        let last = turns.len().saturating_sub(1);
        let of_turn = |(place, (range, number)): (usize, (std::ops::Range<usize>, u64))| {
            let going: Vec<&Message> =
                range.clone().filter(|at| dropped.contains(at)).map(|at| &messages[at]).collect();
            let first = going.iter().find(|it| it.role == Role::User).or(going.first())?;
            let is_whole = going.len() == range.len();
            Some(PlannedTurn {
                turn: number + 1,
                messages: going.len() as u64,
                tokens: share(going.iter().map(|message| message_weight(message)).sum()),
                why: removal_reason(is_whole, plan.summary.is_some(), last - place),
                begins: message_beginning(first),
            })
        };
        let numbered = turns.iter().cloned().zip(numbers.iter().copied());
        let whole = numbered.enumerate().filter_map(of_turn);
        let of_edit = |edit: &GcEdit| {
            let place = turns.iter().position(|turn| turn.contains(&edit.message))?;
            let freed = freed_bytes(edit, messages);
            (freed > 0).then(|| PlannedTurn {
                turn: numbers.get(place).map_or(0, |number| number + 1),
                messages: 1,
                tokens: share(freed),
                why: edit_reason(&edit.change).to_owned(),
                begins: message_beginning(&messages[edit.message]),
            })
        };
        let mut planned: Vec<PlannedTurn> = whole.collect();
        planned.extend(plan.edits.iter().filter_map(of_edit));
        planned.sort_by_key(|planned| planned.turn);
        planned
    }
}

/// Returns the bytes that an edit frees, as the gc proposes it.
fn freed_bytes(edit: &GcEdit, messages: &[Message]) -> u64 {
    let part = messages.get(edit.message).and_then(|message| message.parts.get(edit.part));
    let Some(part) = part else { return 0 };
    let (before, after) = match &edit.change {
        GcChange::Shorten { bytes_max } => (part_weight(part), *bytes_max),
        GcChange::Describe { text, .. } => {
            let file = described_file(edit, part);
            (file.map_or(0, |file| part_weight(&file)), text.len() as u64)
        }
        GcChange::Repeated { .. } => (part_weight(part), REPEATED_BYTES),
        GcChange::Remove => (part_weight(part), 0),
        GcChange::Unknown => (0, 0),
    };
    before.saturating_sub(after)
}

/// Returns the file that an edit describes, as a part of its own.
fn described_file(edit: &GcEdit, part: &Part) -> Option<Part> {
    match (part, described_attachment(edit)) {
        (Part::ToolResult(result), Some(at)) => result.attachments.get(at).cloned().map(Part::Data),
        (part, _) => Some(part.clone()),
    }
}

fn edit_reason(change: &GcChange) -> &'static str {
    match change {
        GcChange::Shorten { .. } => "sent as head and tail",
        GcChange::Describe { .. } => "sent as its description",
        GcChange::Repeated { .. } => "a later call returned it again",
        GcChange::Remove => "an earlier summary",
        GcChange::Unknown => "an unknown change",
    }
}

fn message_beginning(message: &Message) -> String {
    let result = message.tool_results().next().map(|result| format!("result of {}", result.name));
    let text = result.unwrap_or_else(|| one_line(&message.text()));
    truncate_chars(&text, BEGINNING_CHARS_MAX)
}

fn removal_reason(is_whole: bool, is_summarised: bool, later: usize) -> String {
    let age = match later {
        1 => "1 turn came after it".to_owned(),
        later => format!("{later} turns came after it"),
    };
    let what = if is_whole { "old turn" } else { "part of an old turn" };
    let summary = if is_summarised { "; a summary takes its place" } else { "" };
    format!("{what}: {age}{summary}")
}
