//! Shows what a gc would do, without doing it.

use std::collections::BTreeSet;

use jaato_types::text::{one_line, truncate_chars};
use jaato_types::{GcChange, GcEdit, GcPlan, GcReason, Message, Result, Role};

use super::count::message_weight;
use super::edits::part_weight;
use crate::{Cancel, Session};

/// The beginning of a turn that is shown, in characters.
const BEGINNING_CHARS_MAX: usize = 60;

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

/// A turn of which something would go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedTurn {
    /// The number of the turn, counted from 1 since the session began.
    pub turn: u64,
    /// How many of its messages would go.
    pub messages: u64,
    /// How many parts of its other messages would be sent shorter, or not at all.
    pub parts_shortened: u64,
    /// The tokens that would go, estimated.
    pub tokens: u64,
    /// Why they would go.
    pub why: String,
    /// The beginning of the first message of which something would go.
    pub begins: String,
}

impl Session {
    /// Asks the gc what it would leave out, and changes nothing.
    ///
    /// # Errors
    /// As [`Session::gc`].
    pub async fn preview_gc(&mut self, cancel: &Cancel) -> Result<GcPreview> {
        let (plan, request) = self.plan_for_preview(GcReason::Manual, cancel).await?;
        let settings = &self.gc.settings;
        let (tokens_before, weight) = (self.tokens_in_use(), self.weight_in_use().max(1));
        let share = |of: u64| {
            let tokens = u128::from(tokens_before) * u128::from(of) / u128::from(weight);
            u64::try_from(tokens).unwrap_or(u64::MAX)
        };
        let gone = |at: &usize| request.messages.get(*at).map_or(0, message_weight);
        let freed: u64 = plan.drop.iter().map(gone).sum::<u64>()
            + plan.edits.iter().map(|edit| freed_by(edit, &request.messages)).sum::<u64>();
        let added = plan.summary.as_ref().map_or(0, message_weight);
        Ok(GcPreview {
            source: self.gc_source(),
            context_limit: self.gc.limit,
            threshold_percent: settings.auto_trigger.then(|| settings.threshold_percent.get()),
            tokens_before,
            tokens_after: tokens_before.saturating_sub(share(freed.saturating_sub(added))),
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
        let turns = super::plan::turns(messages);
        let last = turns.len().saturating_sub(1);
        let of_turn = |(place, (range, number)): (usize, (std::ops::Range<usize>, u64))| {
            let going: Vec<usize> = range.clone().filter(|at| dropped.contains(at)).collect();
            let edits = || {
                let edits = plan.edits.iter();
                edits.filter(|edit| range.contains(&edit.message) && !going.contains(&edit.message))
            };
            let mut changed: Vec<usize> =
                going.iter().copied().chain(edits().map(|edit| edit.message)).collect();
            changed.sort_unstable();
            let is_prompt = |at: &&usize| messages[**at].role == Role::User;
            let first = changed.iter().find(is_prompt).or(changed.first())?;
            let freed = going.iter().map(|at| message_weight(&messages[*at])).sum::<u64>()
                + edits().map(|edit| freed_by(edit, messages)).sum::<u64>();
            Some(PlannedTurn {
                turn: number + 1,
                messages: going.len() as u64,
                parts_shortened: edits().count() as u64,
                tokens: share(freed),
                why: why((going.len(), range.len()), plan.summary.is_some(), last - place),
                begins: truncate_chars(&one_line(&messages[*first].text()), BEGINNING_CHARS_MAX),
            })
        };
        let turns = turns.iter().cloned().zip(numbers.iter().copied());
        turns.enumerate().filter_map(of_turn).collect()
    }
}

/// Estimates how much smaller an edit makes its part.
fn freed_by(edit: &GcEdit, messages: &[Message]) -> u64 {
    let part = messages.get(edit.message).and_then(|message| message.parts.get(edit.part));
    let whole = part.map_or(0, part_weight);
    match &edit.change {
        GcChange::Shorten { bytes_max } => whole.saturating_sub(*bytes_max),
        GcChange::Describe { text, .. } => whole.saturating_sub(text.len() as u64),
        _ => whole,
    }
}

/// Explains why this many of a turn's messages would go, or parts of them.
fn why((going, all): (usize, usize), is_summarised: bool, later: usize) -> String {
    let age = match later {
        1 => "1 turn came after it".to_owned(),
        later => format!("{later} turns came after it"),
    };
    let what = match going {
        0 => "long results and repeated reads of an old turn",
        going if going == all => "old turn",
        _ => "part of an old turn",
    };
    let summary = if is_summarised && going > 0 { "; a summary takes its place" } else { "" };
    format!("{what}: {age}{summary}")
}
