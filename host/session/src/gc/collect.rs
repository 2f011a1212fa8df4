//! Asks the gc for a plan, checks it, and applies all of it or nothing.

use std::sync::Arc;

use jaato_types::{
    Error, ErrorKind, Event, GcPlan, GcReason, GcRequest, Message, Part, Result, Role,
};

use super::plan::{self, PlanError};
use super::{GC_FAILURES_MAX, Gc, GcAnswer, GcReport, json_bytes, settings};
use crate::events::HOST;
use crate::{AnswerDeadline, Cancel, MessageMark, Session};

/// The longest gc note that is passed on, in characters. The user sees it as one line.
const NOTE_CHARS_MAX: usize = 400;

/// The note that replaces turns that a gc removed, for the model. It never varies, because the
/// request must stay the same until the next cut.
const TURNS_REMOVED: &str = "[Earlier turns of this conversation were removed here to save room. \
    If you need them, ask the user or use tools again.]\n\n";

impl Session {
    /// Collects because the user asked. Works between turns, even if the settings turn automatic
    /// collection off.
    ///
    /// # Errors
    /// When the session has no gc, or the gc fails or proposes an invalid plan. Nothing has changed
    /// then. Either way, an event reports the outcome.
    pub async fn gc(&mut self, cancel: &Cancel) -> Result<GcReport> {
        match self.collect(GcReason::Manual, cancel).await {
            Ok(mut report) => {
                (self.gc.told, self.gc.failures) = (None, 0);
                let is_empty = report.messages_removed == 0;
                if is_empty && self.wants_less() {
                    (report.messages_removed, report.messages_cut) = self.halve_last_turn().await;
                    report.tokens_after = self.tokens_in_use();
                }
                // Changes to the last turn were already reported.
                if !is_empty || report.messages_removed + report.messages_cut == 0 {
                    self.emit_collected(GcReason::Manual, &report);
                }
                Ok(report)
            }
            Err(error) => {
                self.emit_failed(GcReason::Manual, error.clone());
                Err(error)
            }
        }
    }

    /// Returns true if shortening the last turn serves a user who asks for room better than doing
    /// nothing: the context is rather full, or the last request failed.
    fn wants_less(&self) -> bool {
        let last = self.history.entries().last();
        self.is_above(self.gc.settings.target_percent)
            || last.is_some_and(|entry| entry.mark == Some(MessageMark::Unsent))
    }

    /// Collects because the context is too full. Returns true if anything was removed.
    pub(super) async fn collect_by_itself(&mut self, reason: GcReason, cancel: &Cancel) -> bool {
        match self.collect(reason, cancel).await {
            Ok(report) => {
                let helped = report.messages_removed > 0;
                self.gc.asked = match reason {
                    _ if helped => GcAnswer::Helpful,
                    GcReason::ContextLimit => GcAnswer::InVainWhenFull,
                    _ => GcAnswer::InVain,
                };
                (self.gc.told, self.gc.failures) = (None, 0);
                if helped {
                    self.emit_collected(reason, &report);
                }
                helped
            }
            Err(error) => {
                self.gc.asked = GcAnswer::Failed;
                if !cancel.is_cancelled() {
                    self.count_failure(reason, error);
                }
                false
            }
        }
    }

    /// Reports a failure. After the last one, the gc is no longer asked before the context is full.
    fn count_failure(&mut self, reason: GcReason, error: Error) {
        self.gc.failures += 1;
        if self.gc.told.as_ref() != Some(&error) {
            self.emit_failed(reason, error.clone());
            self.gc.told = Some(error);
        }
        if self.gc.failures == GC_FAILURES_MAX {
            self.shared.emitter.notice(format!(
                "the gc `{}` failed {GC_FAILURES_MAX} times in a row: until it succeeds, it is \
                 asked only if the context is full, or if you ask for it",
                self.gc_source()
            ));
        }
    }

    /// Returns true if there is a gc, and anything that it could remove.
    pub(super) fn has_old_turns(&self) -> bool {
        self.shared.ports.gc.is_some() && self.history.sent_turn_numbers().len() > 1
    }

    async fn collect(&mut self, reason: GcReason, cancel: &Cancel) -> Result<GcReport> {
        let Some(gc) = self.shared.ports.gc.clone() else { return Err(no_gc()) };
        self.shared.hooks.before_gc(reason, cancel).await;
        let (tokens_before, bytes_before) = (self.tokens_in_use(), self.bytes_in_use());
        let pinned = self.pinned_places();
        let messages: Vec<Message> = self.history.messages().cloned().collect();
        let mut request = GcRequest::new(reason, messages);
        request.context_limit = self.gc.limit;
        request.total_tokens = tokens_before;
        request.settings = settings::for_request(&self.gc.settings, &pinned);
        let GcPlan { drop, summary, note, .. } = self.ask_for_plan(&*gc, &request, cancel).await?;
        let mut report = GcReport {
            messages_removed: drop.len() as u64,
            messages_cut: 0,
            turns_removed: 0,
            tokens_before,
            tokens_after: tokens_before,
            note: note.map(|note| note.chars().take(NOTE_CHARS_MAX).collect()),
        };
        if drop.is_empty() && summary.is_none() {
            return Ok(report);
        }
        let plan = GcPlan { drop, summary, ..GcPlan::default() };
        let checked = plan::check(&request.messages, &plan, &pinned).map_err(plan_error)?;
        let summary = plan.summary.map(|summary| summary.parts);
        let is_summarised = summary.is_some();
        let applied = self.history.replace_with_summary(&plan.drop, summary);
        applied.map_err(|error| plan_error(PlanError::History(error)))?;
        if !is_summarised {
            let gone = plan.drop.iter().map(|at| json_bytes(&request.messages[*at])).sum();
            self.note_removed_turns(gone);
        }
        self.cut();
        self.shared.objects.show_again();
        self.recount(tokens_before, bytes_before);
        self.forget_old();
        report.turns_removed = checked.turns_removed;
        report.tokens_after = self.tokens_in_use();
        Ok(report)
    }

    /// Adds a note for the model where turns are missing, in front of the prompt that follows.
    /// Without it, the model would look for what it read there. Notes longer than the removed
    /// `gone` bytes are left out, because they would take room instead of making it.
    fn note_removed_turns(&mut self, gone: u64) {
        let entries = self.history.entries();
        let is_collected = |at: usize| entries[at].mark == Some(MessageMark::Collected);
        let follows = |at: &usize| {
            let is_sent = entries[*at].mark.is_none() && entries[*at].message.is_prompt();
            is_sent && at.checked_sub(1).is_some_and(is_collected)
        };
        let places: Vec<usize> = (0..entries.len()).filter(follows).collect();
        let bytes = json_bytes(&Part::text(TURNS_REMOVED)).saturating_mul(places.len() as u64);
        if bytes >= gone {
            return;
        }
        for at in places {
            self.put_in_front(at, Part::text(TURNS_REMOVED), |text| text == TURNS_REMOVED);
        }
    }

    /// Puts a note in front of a prompt, and removes an older one of its kind.
    pub(super) fn put_in_front(&mut self, at: usize, note: Part, is_old: impl Fn(&str) -> bool) {
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
        if let Err(error) = self.history.send_instead(at, message) {
            let emitter = &self.shared.emitter;
            emitter.notice(format!("cannot tell the model what is left out: {error}"));
        }
    }

    async fn ask_for_plan(
        &self,
        gc: &dyn Gc,
        request: &GcRequest,
        cancel: &Cancel,
    ) -> Result<GcPlan> {
        let ms = self.gc.settings.deadline_ms;
        let clock = Arc::clone(&self.shared.ports.clock);
        let late = format!("the gc took longer than {} s for its plan", ms.div_ceil(1_000));
        let deadline = AnswerDeadline { clock, cancel, ms, late };
        deadline.wait(|stop, hold| gc.plan(request, stop, hold)).await
    }

    /// Finds the positions of the pinned turns among the turns that are sent.
    pub(super) fn pinned_places(&self) -> Vec<usize> {
        let pinned = &self.gc.settings.pinned_turn_indices;
        let numbers = self.history.sent_turn_numbers();
        let places = numbers.iter().enumerate().filter(|(_, number)| pinned.contains(number));
        places.map(|(place, _)| place).collect()
    }

    fn emit_collected(&self, reason: GcReason, report: &GcReport) {
        self.shared.emitter.emit(Event::Gc {
            reason,
            source: self.gc_source(),
            messages_removed: report.messages_removed,
            turns_removed: report.turns_removed,
            messages_cut: 0,
            tokens_before: report.tokens_before,
            tokens_after: report.tokens_after,
            note: report.note.clone(),
            error: None,
        });
    }

    fn emit_failed(&self, reason: GcReason, error: Error) {
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

    fn gc_source(&self) -> String {
        self.shared.ports.gc.as_ref().map_or(HOST, |gc| gc.source()).to_owned()
    }
}

fn no_gc() -> Error {
    Error::new(ErrorKind::Unavailable, "this session has no gc")
        .with_hint("name a plugin under `[gc] plugin`")
}

fn plan_error(error: PlanError) -> Error {
    Error::new(ErrorKind::PluginMisbehaved, format!("the gc's plan is not valid: {error}"))
}
