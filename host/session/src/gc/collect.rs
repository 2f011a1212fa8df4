//! Asks the gc for a plan, checks it, and applies all of it or nothing.

use std::collections::HashSet;
use std::sync::Arc;

use jaato_types::{
    Error, ErrorKind, Event, GcChange, GcEdit, GcPlan, GcReason, GcRequest, Message, Part, Result,
    Role,
};

use super::edits::EditedMessage;
use super::plan::{self, PlanError};
use super::{GC_FAILURES_MAX, Gc, GcAnswer, GcReport, json_bytes, settings};
use crate::events::HOST;
use crate::{AnswerDeadline, Cancel, HistoryEntry, MessageMark, Session};

/// The longest gc note that is passed on, in characters. The user sees it as one line.
const NOTE_CHARS_MAX: usize = 400;

/// The beginning of the note that replaces turns that a gc removed, for the model. The note varies
/// only with the tools, because the request must stay the same until the next cut.
const TURNS_REMOVED: &str = "[Earlier turns of this conversation were removed here to save room. ";

/// The beginning of the note after a summary, which identifies it later.
const SUMMARY_NOTE: &str = "[The summary above replaces earlier turns. ";

impl Session {
    /// Collects because the user asked. Works between turns, even if the settings turn automatic
    /// collection off.
    ///
    /// # Errors
    /// When the session has no gc, or the gc fails or proposes an invalid plan. Nothing has changed
    /// then. Either way, an event reports the outcome.
    pub async fn collect_for_user(&mut self, cancel: &Cancel) -> Result<GcReport> {
        self.end_collection();
        match self.run_collection(GcReason::Manual, cancel).await {
            Ok(mut report) => {
                (self.gc.told, self.gc.failures) = (None, 0);
                let is_empty = report.messages_removed + report.messages_cut == 0;
                if is_empty && self.should_shorten_last_turn() {
                    (report.messages_removed, report.messages_cut) = self.halve_last_turn().await;
                    report.tokens_after = self.tokens_in_use();
                }
                // Changes to the last turn were already reported.
                if !is_empty || report.messages_removed + report.messages_cut == 0 {
                    self.emit_collection(GcReason::Manual, &report);
                }
                Ok(report)
            }
            Err(error) => {
                self.emit_gc_failure(GcReason::Manual, error.clone());
                Err(error)
            }
        }
    }

    /// Returns true if shortening the last turn serves a user who asks for room better than doing
    /// nothing: the context is rather full, or the last request failed.
    fn should_shorten_last_turn(&self) -> bool {
        let last = self.history.entries().last();
        self.is_usage_above(self.gc.settings.target_percent)
            || last.is_some_and(|entry| entry.mark == Some(MessageMark::Unsent))
    }

    /// Collects because the context is too full. Returns true if anything was removed or shortened.
    pub(super) async fn collect_automatically(
        &mut self,
        reason: GcReason,
        cancel: &Cancel,
    ) -> bool {
        match self.run_collection(reason, cancel).await {
            Ok(report) => {
                let helped = report.messages_removed + report.messages_cut > 0;
                self.gc.asked = match reason {
                    _ if helped => GcAnswer::Helpful,
                    GcReason::ContextLimit => GcAnswer::InVainWhenFull,
                    _ => GcAnswer::InVain,
                };
                (self.gc.told, self.gc.failures) = (None, 0);
                if helped {
                    self.emit_collection(reason, &report);
                }
                helped
            }
            Err(error) => {
                self.gc.asked = GcAnswer::Failed;
                if !cancel.is_cancelled() {
                    self.record_gc_failure(reason, error);
                }
                false
            }
        }
    }

    /// Reports a failure. After the last one, the gc is no longer asked before the context is full.
    fn record_gc_failure(&mut self, reason: GcReason, error: Error) {
        self.gc.failures += 1;
        if self.gc.told.as_ref() != Some(&error) {
            self.emit_gc_failure(reason, error.clone());
            self.gc.told = Some(error);
        }
        if self.gc.failures == GC_FAILURES_MAX {
            self.shared.emitter.emit_notice(format!(
                "the gc `{}` failed {GC_FAILURES_MAX} times in a row: until it succeeds, it is \
                 asked only if the context is full, or if you ask for it",
                self.gc_source()
            ));
        }
    }

    /// Returns true if there is a gc, and anything that it could remove.
    pub(super) fn has_old_turns(&self) -> bool {
        self.gc.plugin.is_some() && self.history.sent_turn_numbers().len() > 1
    }

    async fn run_collection(&mut self, reason: GcReason, cancel: &Cancel) -> Result<GcReport> {
        let Some(gc) = self.gc.plugin.clone() else { return Err(no_gc_error()) };
        self.shared.hooks.ask_before_gc(reason, cancel).await?;
        let (tokens_before, weight_before) = (self.tokens_in_use(), self.weight_in_use());
        let (request, pinned) = self.gc_request(reason);
        let mut plan = self.request_plan(&*gc, &request, cancel).await?;
        let mut report = GcReport {
            messages_removed: 0,
            messages_cut: 0,
            turns_removed: 0,
            tokens_before,
            tokens_after: tokens_before,
            note: plan.note.take().map(|note| note.chars().take(NOTE_CHARS_MAX).collect()),
        };
        if plan.drop.is_empty() && plan.summary.is_none() && plan.edits.is_empty() {
            return Ok(report);
        }
        let checked = plan::check_plan(&request.messages, &plan, &pinned).map_err(plan_error)?;
        self.check_removals(&plan.edits).map_err(plan_error)?;
        let edited = self.edited_messages(&plan.edits, &self.history.sent_indices()).await;
        if edited.is_empty() && plan.drop.is_empty() && plan.summary.is_none() {
            return Ok(report);
        }
        let freed = edited.iter().map(|message| message.freed).sum();
        plan::check_gain(&request.messages, &plan, freed).map_err(plan_error)?;
        report.messages_removed = plan.drop.len() as u64;
        report.messages_cut = edited.len() as u64;
        report.turns_removed = checked.turns_removed;
        self.apply_plan(plan, edited, &request.messages)?;
        self.recount_tokens(tokens_before, weight_before);
        self.forget_old_messages();
        report.tokens_after = self.tokens_in_use();
        Ok(report)
    }

    /// Applies a checked plan, as a whole or not at all.
    fn apply_plan(
        &mut self,
        plan: GcPlan,
        edited: Vec<EditedMessage>,
        messages: &[Message],
    ) -> Result<()> {
        let invalid = |error| plan_error(PlanError::History(error));
        let mut history = self.history.clone();
        for EditedMessage { at, sent, .. } in edited {
            history.replace_sent_message(at, sent).map_err(invalid)?;
        }
        let summary = plan.summary.map(|summary| summary.parts);
        history.replace_with_summary(&plan.drop, summary.clone()).map_err(invalid)?;
        self.begin_collection();
        self.history = history;
        self.update_collection_tools();
        if let Some(summary) = summary {
            self.add_summary_note(&summary);
        } else if !plan.drop.is_empty() {
            let gone = plan.drop.iter().map(|at| json_bytes(&messages[*at])).sum();
            self.add_removed_turns_note(gone);
        }
        self.mark_objects_outdated();
        self.make_cut();
        self.shared.objects.mark_all_unseen();
        Ok(())
    }

    /// Checks that a plan removes only texts that were put in front of a message.
    fn check_removals(&self, edits: &[GcEdit]) -> std::result::Result<(), PlanError> {
        let places = self.history.sent_indices();
        let is_own = |edit: &GcEdit| {
            let entry = places.get(edit.message).and_then(|at| self.history.entries().get(*at));
            entry.is_some_and(|entry| edit.part < entry.count_leading_parts())
        };
        let mut removals = edits.iter().filter(|edit| edit.change == GcChange::Remove);
        match removals.find(|edit| !is_own(edit)) {
            Some(&GcEdit { message: index, part, .. }) => {
                Err(PlanError::EditPart { index, part, why: "it is not a summary" })
            }
            None => Ok(()),
        }
    }

    /// Adds a note for the model where turns are missing, in front of the prompt that follows.
    /// Without it, the model would look for what it read there. Notes longer than the removed
    /// `gone` bytes are left out, because they would take room instead of making it.
    fn add_removed_turns_note(&mut self, gone: u64) {
        let entries = self.history.entries();
        let is_collected = |at: usize| entries[at].mark == Some(MessageMark::Collected);
        let follows = |at: &usize| {
            let is_sent = entries[*at].mark.is_none() && entries[*at].message.is_prompt();
            is_sent && at.checked_sub(1).is_some_and(is_collected)
        };
        let places: Vec<usize> = (0..entries.len()).filter(follows).collect();
        let note = Part::text(match self.collected_messages_tool() {
            Some(tool) => format!("{TURNS_REMOVED}`{tool}` finds what they contain.]\n\n"),
            None => {
                format!("{TURNS_REMOVED}If you need them, ask the user or use tools again.]\n\n")
            }
        });
        if json_bytes(&note).saturating_mul(places.len() as u64) >= gone {
            return;
        }
        for at in places {
            self.put_note_in_front(at, note.clone(), |text| text.starts_with(TURNS_REMOVED));
        }
    }

    /// Says after a summary which tool returns the messages that it replaces.
    fn add_summary_note(&mut self, summary: &[Part]) {
        let has_it = |entry: &Arc<HistoryEntry>| {
            entry.is_sent() && entry.sent_message().parts.starts_with(summary)
        };
        let first = self.history.entries().iter().position(has_it);
        let (Some(tool), Some(first)) = (self.collected_messages_tool(), first) else { return };
        let note = format!("{SUMMARY_NOTE}`{tool}` finds what they contain.]\n\n");
        self.put_note_in_front(first, Part::text(note), |text| text.starts_with(SUMMARY_NOTE));
    }

    /// Puts a note in front of a prompt, and removes an older one of its kind.
    pub(super) fn put_note_in_front(
        &mut self,
        at: usize,
        note: Part,
        is_old: impl Fn(&str) -> bool,
    ) {
        let Some(entry) = self.history.entries().get(at) else { return };
        // A turn that has lost its prompt has no place for a note.
        if entry.message.role != Role::User {
            return;
        }
        let is_old = |part: &Part| matches!(part, Part::Text { text, .. } if is_old(text));
        let sent = entry.sent_message();
        let (front, rest) = sent.parts.split_at(entry.count_leading_parts());
        let front = front.iter().filter(|part| !is_old(part)).cloned();
        let parts = front.chain([note]).chain(rest.iter().cloned()).collect();
        let message = Message { role: Role::User, parts, ..Message::default() };
        if let Err(error) = self.history.replace_sent_message(at, message) {
            let emitter = &self.shared.emitter;
            emitter.emit_notice(format!("cannot tell the model what is left out: {error}"));
        }
    }

    /// Asks for a plan that only shows what would go, and checks it.
    pub(super) async fn plan_for_preview(&self, cancel: &Cancel) -> Result<(GcPlan, GcRequest)> {
        let Some(gc) = self.gc.plugin.clone() else { return Err(no_gc_error()) };
        let (mut request, pinned) = self.gc_request(GcReason::Manual);
        request.is_preview = true;
        let plan = self.request_plan(&*gc, &request, cancel).await?;
        plan::check_plan(&request.messages, &plan, &pinned).map_err(plan_error)?;
        Ok((plan, request))
    }

    /// Creates the request for a plan. Returns the positions of the pinned turns in it, too.
    fn gc_request(&self, reason: GcReason) -> (GcRequest, Vec<usize>) {
        let pinned = self.pinned_places();
        let messages: Vec<Message> = self.history.messages().cloned().collect();
        let mut request = GcRequest::new(reason, messages);
        request.context_limit = self.gc.limit;
        request.total_tokens = self.tokens_in_use();
        request.settings = settings::request_settings(&self.gc.settings, &pinned);
        (request, pinned)
    }

    async fn request_plan(
        &self,
        gc: &dyn Gc,
        request: &GcRequest,
        cancel: &Cancel,
    ) -> Result<GcPlan> {
        let ms = self.gc.settings.deadline_ms;
        let clock = Arc::clone(&self.shared.ports.clock);
        let late = format!("the gc took longer than {} s for its plan", ms.div_ceil(1_000));
        let deadline = AnswerDeadline { clock, cancel, ms, late };
        deadline.wait_for_answer(|stop, hold| gc.create_plan(request, stop, hold)).await
    }

    /// Returns the indices of the messages of pinned turns among those that are sent.
    pub(super) fn pinned_messages(&self) -> HashSet<usize> {
        let turns = plan::split_into_turns(self.history.messages());
        self.pinned_places().into_iter().filter_map(|at| turns.get(at).cloned()).flatten().collect()
    }

    /// Finds the positions of the pinned turns among the turns that are sent.
    pub(super) fn pinned_places(&self) -> Vec<usize> {
        let pinned = &self.gc.settings.pinned_turn_indices;
        let numbers = self.history.sent_turn_numbers();
        let places = numbers.iter().enumerate().filter(|(_, number)| pinned.contains(number));
        places.map(|(place, _)| place).collect()
    }

    fn emit_collection(&self, reason: GcReason, report: &GcReport) {
        self.shared.emitter.emit(Event::Gc {
            reason,
            source: self.gc_source(),
            messages_removed: report.messages_removed,
            turns_removed: report.turns_removed,
            messages_cut: report.messages_cut,
            tokens_before: report.tokens_before,
            tokens_after: report.tokens_after,
            note: report.note.clone(),
            error: None,
        });
    }

    fn emit_gc_failure(&self, reason: GcReason, error: Error) {
        let tokens = self.tokens_in_use();
        self.shared.emitter.emit(Event::Gc {
            reason,
            source: self.gc_source(),
            messages_removed: 0,
            turns_removed: 0,
            messages_cut: 0,
            tokens_before: tokens,
            tokens_after: tokens,
            note: None,
            error: Some(error),
        });
    }

    pub(super) fn gc_source(&self) -> String {
        self.gc.plugin.as_ref().map_or(HOST, |gc| gc.source()).to_owned()
    }
}

fn no_gc_error() -> Error {
    Error::new(ErrorKind::Unavailable, "this session has no gc")
        .with_hint("name a plugin under `[gc] plugin`")
}

fn plan_error(error: PlanError) -> Error {
    Error::new(ErrorKind::PluginMisbehaved, format!("the gc's plan is not valid: {error}"))
}
