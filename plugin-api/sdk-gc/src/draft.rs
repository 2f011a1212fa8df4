//! A plan in the making: what goes, what is shortened, and how full the context is then. Pure.
//!
//! Invariants: the last turn and pinned turns stay. Calls and their results go together. What the
//! user said, and which calls have finished, stays in the context when their messages go.

use std::collections::{BTreeSet, HashMap, HashSet};

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::types::{CallId, GcReason};

use crate::block::CarriedBlock;
use crate::edits::{ProposedEdit, proposed_edits};
use crate::facts;
use crate::lines::{drop_oldest_lines, remove_earlier_duplicates};
use crate::statements::{extract_statements, fit_statements, user_texts};
use crate::transcript;
use crate::turns::{HistoryTurn, is_turn_open, json_size, message_bytes, part_bytes, split_turns};
use crate::{PlanSettings, SummaryFailure};

/// How much of the window, in percent, recent turns may fill before they are changed too. A fuller
/// window leaves too little room for an answer.
const FULL_PERCENT: u64 = 95;

/// Shares of the window, in percent, for what is carried over. Statements that seem to bind have
/// more room than others.
const STATEMENTS_PERCENT: u64 = 20;
const BINDING_PERCENT: u64 = 35;
const CALLS_PERCENT: u64 = 10;
const FACTS_PERCENT: u64 = 5;

/// The approximate number of bytes in a token.
const BYTES_PER_TOKEN: u64 = 4;

/// A plan in the making.
pub struct PlanDraft<'a> {
    request: &'a GcRequest,
    settings: &'a PlanSettings,
    turns: Vec<HistoryTurn>,
    dropped: BTreeSet<usize>,
    edits: Vec<ProposedEdit>,
    /// The bytes that the edits of each message free.
    freed_by_edits: HashMap<usize, u64>,
    freed: u64,
}

impl<'a> PlanDraft<'a> {
    /// Creates a plan that changes nothing.
    pub fn new(request: &'a GcRequest, settings: &'a PlanSettings) -> Self {
        Self {
            request,
            settings,
            turns: split_turns(&request.messages, settings),
            dropped: BTreeSet::new(),
            edits: Vec::new(),
            freed_by_edits: HashMap::new(),
            freed: 0,
        }
    }

    /// Returns the indices of the turns that may go and are not recent, oldest first.
    pub fn old_turns(&self) -> Vec<usize> {
        self.turn_indices(|turn| turn.is_free && !turn.is_recent)
    }

    /// Returns the indices of the recent turns that may go if they must, oldest first.
    fn recent_turns(&self) -> Vec<usize> {
        self.turn_indices(|turn| turn.is_free && turn.is_recent)
    }

    fn turn_indices(&self, is_in: impl Fn(&HistoryTurn) -> bool) -> Vec<usize> {
        (0..self.turns.len()).filter(|at| is_in(&self.turns[*at])).collect()
    }

    /// Returns true if the context is fuller than this many percent after the plan.
    pub fn is_above(&self, percent: u64) -> bool {
        let tokens = self.request.total_tokens.saturating_sub(self.freed / BYTES_PER_TOKEN);
        let (tokens, limit) = (u128::from(tokens), u128::from(self.request.context_limit));
        tokens * 100 > limit * u128::from(percent)
    }

    /// Returns true if the context is fuller than `target_percent` after the plan.
    pub fn is_above_target(&self) -> bool {
        self.is_above(self.settings.target_percent)
    }

    /// Returns true if recent turns must be changed too: the provider has refused the request, or
    /// the context is still full.
    fn must_change_recent(&self) -> bool {
        self.request.reason == GcReason::ContextLimit || self.is_above(FULL_PERCENT)
    }

    /// Returns true if shortened results are enough, so that no turn need go. They are not if the
    /// user or the number of turns demands that turns go.
    pub fn is_shortening_enough(&self) -> bool {
        let by_size = matches!(self.request.reason, GcReason::Threshold | GcReason::ContextLimit);
        by_size && !self.edits.is_empty() && !self.is_above_target()
    }

    /// Shortens results in these turns, replaces repeated reads and describes images, until the
    /// context is as full as it should be.
    pub fn shorten_results(&mut self, turns: &[usize]) {
        let mut messages: BTreeSet<usize> =
            turns.iter().flat_map(|turn| self.turns[*turn].messages.clone()).collect();
        messages.retain(|at| !self.dropped.contains(at) && !self.freed_by_edits.contains_key(at));
        for edit in proposed_edits(&self.request.messages, |at| messages.contains(&at)) {
            if !self.is_above_target() {
                return;
            }
            self.freed += edit.freed;
            *self.freed_by_edits.entry(edit.edit.message).or_default() += edit.freed;
            self.edits.push(edit);
        }
    }

    /// Returns true if the user only wants to see what would go, so that nothing may cost anything.
    pub fn is_preview(&self) -> bool {
        self.request.is_preview
    }

    /// Returns the settings.
    pub fn settings(&self) -> &PlanSettings {
        self.settings
    }

    /// Returns the context window in tokens.
    pub fn context_limit(&self) -> u64 {
        self.request.context_limit
    }

    /// Returns the turns that go as a whole.
    pub fn removed_turns(&self) -> Vec<usize> {
        self.turn_indices(|turn| turn.messages.clone().all(|at| self.dropped.contains(&at)))
    }

    /// Removes a whole turn.
    pub fn drop_turn(&mut self, turn: usize) {
        for at in self.turns[turn].messages.clone() {
            self.drop_message(at);
        }
    }

    /// Removes the calls of a turn with their results, oldest first, until the context is as full
    /// as it should be. What the user said during a call stays, and so does that call.
    pub fn drop_calls(&mut self, turn: usize) {
        let messages = &self.request.messages;
        let turn = self.turns[turn].messages.clone();
        for at in turn.clone().filter(|at| at + 1 < turn.end) {
            let has_calls = messages[at].tool_calls().next().is_some();
            let has_words = user_texts(&messages[at + 1]).next().is_some();
            if !self.is_above_target() {
                return;
            }
            if has_calls && messages[at + 1].role == Role::Tool && !has_words {
                self.drop_message(at);
                self.drop_message(at + 1);
            }
        }
    }

    /// Removes the old turns. If recent turns must be changed too, it shortens them, and removes
    /// the oldest of them until the context is as full as it should be. If the user asks for a gc
    /// and no turn is old, the older half of the recent turns is removed, regardless of the
    /// estimate. The user may know that a server refuses a context that the estimate does not
    /// consider full.
    pub fn remove_old_turns(&mut self) {
        let (old, recent) = (self.old_turns(), self.recent_turns());
        old.iter().for_each(|turn| self.drop_turn(*turn));
        if self.request.reason == GcReason::Manual && old.is_empty() {
            let half = recent.len().div_ceil(2);
            recent.iter().take(half).for_each(|turn| self.drop_turn(*turn));
        }
        self.make_recent_fit();
    }

    /// Shortens recent turns if they must be changed, and removes the oldest of them until the
    /// context is as full as it should be.
    pub fn make_recent_fit(&mut self) {
        if self.must_change_recent() {
            self.shrink_recent();
        }
    }

    /// Shortens recent turns, and removes the oldest of them until the context is as full as it
    /// should be.
    pub fn shrink_recent(&mut self) {
        let recent = self.recent_turns();
        self.shorten_results(&recent);
        for turn in recent {
            if !self.is_above_target() {
                return;
            }
            self.drop_turn(turn);
        }
    }

    fn drop_message(&mut self, at: usize) {
        if self.dropped.insert(at) {
            let edited = self.freed_by_edits.get(&at).copied().unwrap_or(0);
            self.freed += message_bytes(&self.request.messages[at]).saturating_sub(edited);
        }
    }

    /// Returns the texts of some turns for a model that summarises them, beginning with the summary
    /// of earlier turns.
    pub fn transcript(&self, turns: &[usize]) -> Vec<String> {
        let earlier = self.earlier_blocks().map(|(_, block, _)| block.summary);
        let earlier = earlier.filter(|summary| !summary.is_empty());
        let earlier = earlier.map(|summary| format!("EARLIER SUMMARY: {summary}"));
        let messages = turns.iter().flat_map(|turn| self.turns[*turn].messages.clone());
        let entries = messages
            .flat_map(|at| transcript::message_entries(&without_block(&self.request.messages[at])));
        earlier.chain(entries).collect()
    }

    /// Returns the blocks of earlier collections, with their messages and parts.
    fn earlier_blocks(
        &self,
    ) -> impl Iterator<Item = (usize, CarriedBlock, std::ops::Range<usize>)> {
        let messages = self.request.messages.iter().enumerate();
        messages.filter_map(|(at, message)| {
            CarriedBlock::parse_message(message).map(|(block, parts)| (at, block, parts))
        })
    }

    /// Returns the plan, with a summary of the removed turns if there is one. If a summary failed,
    /// the note says so. A summary of the removed turns also replaces the earlier summary.
    pub fn finish(self, summary: Option<std::result::Result<String, SummaryFailure>>) -> GcPlan {
        let mut problem = None;
        let mut plan = match summary {
            Some(Ok(summary)) => self.plan_with_summary(Some(&summary)).unwrap_or_else(|| {
                problem = Some("it is longer than what it replaces".to_owned());
                self.plan_without_summary()
            }),
            Some(Err(SummaryFailure(why))) => {
                problem = Some(why);
                self.plan_without_summary()
            }
            None => self.plan_without_summary(),
        };
        if let Some(why) = problem {
            let text =
                format!("The summary failed ({why}), so old turns were removed without one.");
            plan.note = Some(match plan.note.take() {
                Some(note) => format!("{note} {text}"),
                None => text,
            });
        }
        plan
    }

    fn plan_without_summary(&self) -> GcPlan {
        self.plan_with_summary(None).unwrap_or_else(|| self.build_plan(None, Vec::new(), 0))
    }

    /// Returns the plan with all that must be carried over. Returns `None` if that is larger than
    /// what the plan frees.
    fn plan_with_summary(&self, summary: Option<&str>) -> Option<GcPlan> {
        if self.dropped.is_empty() {
            return Some(self.build_plan(None, Vec::new(), 0));
        }
        let mut block = CarriedBlock::default();
        let (mut removals, mut freed) = (Vec::new(), self.freed);
        for (at, earlier, parts) in self.earlier_blocks() {
            if !self.dropped.contains(&at) {
                let message = &self.request.messages[at];
                freed += message.parts[parts.clone()].iter().map(part_bytes).sum::<u64>();
                removals.extend(parts.map(|part| GcEdit::new(at, part, GcChange::Remove)));
            }
            block.add_newer(earlier);
        }
        self.add_carried_facts(&mut block);
        if let Some(summary) = summary {
            summary.trim().clone_into(&mut block.summary);
        }
        let lost = self.fit_block(&mut block);
        let message = Message { parts: block.to_parts(), ..Message::default() };
        let message = (!block.is_empty()).then_some(message);
        if message.as_ref().map_or(0, json_size) >= freed {
            return None;
        }
        Some(self.build_plan(message, removals, lost))
    }

    /// Adds what the removed messages say to the block.
    fn add_carried_facts(&self, block: &mut CarriedBlock) {
        let messages = || self.dropped.iter().map(|at| &self.request.messages[*at]);
        for message in messages() {
            for text in user_texts(&without_block(message)) {
                block.statements.extend(extract_statements(text));
                block.facts.extend(facts::extract_facts(text));
            }
        }
        block.calls.add_messages(messages());
    }

    /// Makes the block fit into its share of the window. Returns how many statements went.
    fn fit_block(&self, block: &mut CarriedBlock) -> usize {
        let share = |percent| {
            let tokens = self.request.context_limit.saturating_mul(percent) / 100;
            tokens.saturating_mul(BYTES_PER_TOKEN)
        };
        remove_earlier_duplicates(&mut block.statements);
        let lost = fit_statements(
            &mut block.statements,
            share(STATEMENTS_PERCENT),
            share(BINDING_PERCENT),
        );
        block.calls.fit_into(share(CALLS_PERCENT));
        let text = format!("{}\n{}", block.summary, block.statements.join("\n"));
        let mut seen = HashSet::new();
        block.facts.retain(|fact| !facts::contains_fact(fact, &text) && seen.insert(fact.clone()));
        drop_oldest_lines(&mut block.facts, share(FACTS_PERCENT), |_| true);
        lost
    }

    fn build_plan(&self, summary: Option<Message>, removals: Vec<GcEdit>, lost: usize) -> GcPlan {
        let edits = self.edits.iter().map(|proposed| proposed.edit.clone());
        let edits = edits.filter(|edit| !self.dropped.contains(&edit.message));
        let dropped = self.dropped.iter().flat_map(|at| self.request.messages[*at].tool_results());
        let dropped: HashSet<&CallId> = dropped.map(|result| &result.call_id).collect();
        // An edit must not refer to a later result that goes.
        let has_target = |edit: &GcEdit| match &edit.change {
            GcChange::Repeated { by } => !dropped.contains(by),
            _ => true,
        };
        let edits: Vec<GcEdit> = edits.filter(has_target).chain(removals).collect();
        let drop: Vec<usize> = self.dropped.iter().copied().collect();
        let note = self.user_note(summary.is_some(), &edits, lost);
        GcPlan { v: GcPlan::VERSION, drop, summary, edits, note }
    }

    /// Returns the note for the user. Lost statements are always reported.
    fn user_note(&self, has_block: bool, edits: &[GcEdit], lost: usize) -> Option<String> {
        let mut notes = Vec::new();
        let removed = self.removed_turns().len();
        let finished = self.turns.len() - usize::from(is_turn_open(&self.request.messages));
        let kept = finished.saturating_sub(removed);
        let whole: usize =
            self.removed_turns().iter().map(|turn| self.turns[*turn].messages.len()).sum();
        let calls = (self.dropped.len() - whole) / 2;
        let shortened = edits.iter().filter(|edit| edit.change != GcChange::Remove).count();
        if self.settings.notify_on_gc && calls > 0 {
            notes.push(format!("Removed {calls} finished calls and their results."));
        }
        if self.settings.notify_on_gc && removed > 0 {
            notes.push(format!(
                "Context cleaned: removed {removed} old turns, kept {kept} recent turns."
            ));
        }
        if self.settings.notify_on_gc && shortened > 0 {
            notes.push(format!("Shortened {shortened} old results."));
        }
        let without = !self.dropped.is_empty() && !has_block && self.has_user_statements();
        if lost > 0 {
            notes.push(format!(
                "{lost} statements of yours no longer fit and are only in the session's file."
            ));
        } else if without {
            notes.push("What you said in them is only in the session's file.".to_owned());
        }
        (!notes.is_empty()).then(|| notes.join(" "))
    }

    /// Returns true if the removed messages have statements of the user with at least three words.
    fn has_user_statements(&self) -> bool {
        let mut texts = self.dropped.iter().flat_map(|at| user_texts(&self.request.messages[*at]));
        let is_said = |statement: &String| statement.split_whitespace().nth(2).is_some();
        texts.any(|text| extract_statements(text).iter().any(is_said))
    }
}

/// Returns a message without the block of an earlier collection.
fn without_block(message: &Message) -> Message {
    let block = CarriedBlock::parse_message(message).map_or(0..0, |(_, parts)| parts);
    let parts = message.parts.iter().enumerate().filter(|(at, _)| !block.contains(at));
    Message { parts: parts.map(|(_, part)| part.clone()).collect(), role: message.role }
}
