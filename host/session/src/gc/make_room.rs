//! Makes room before a request, and after a provider refused one as too large.

use std::ops::Range;

use jaato_config::Percent;
use jaato_types::{Error, ErrorKind, Event, GcReason, Retry};

use super::count::{BYTES_PER_TOKEN, estimate_tokens};
use super::cut::TruncationResult;
use super::window::poll_with_window;
use super::{GC_FAILURES_MAX, GcAnswer, OVERFLOWS_MAX, json_bytes};
use crate::events::HOST;
use crate::exchange::{BrokenAnswerPolicy, RequestOutcome, exchange_with_retries};
use crate::session::RefusedBlobs;
use crate::{Cancel, Session};

/// How full the window must be, in percent, before an unexplained refusal counts as a refusal
/// because of the size. Half, because the count here may be half of the model's own.
const SUSPECT_PERCENT: u64 = 50;

/// How many tokens make a refusal suspicious if the window is a guess: the smallest window in use.
const SUSPECT_TOKENS: u64 = 2_048;

/// How providers' errors name a status by which a server blames the request itself.
const SUSPECT_STATUSES: [&str; 2] = [" answered 400", " answered 422"];

/// How full the window may be, in percent, before results of the open turn are truncated. Without
/// room the answer would be cut off, or the provider would silently forget the beginning.
pub(super) const FULL_PERCENT: u64 = 95;

impl Session {
    /// Sends the next request, in a context that has room for it.
    pub(crate) async fn exchange_with_room(
        &mut self,
        step: u32,
        cancel: &Cancel,
    ) -> RequestOutcome {
        if step == 1 {
            self.gc.asked = GcAnswer::Helpful;
        }
        self.end_collection();
        self.omit_too_large_media().await;
        self.make_room(cancel).await;
        // The window as it was known before a refusal counted as one because of the size.
        let (mut overflows, mut before_suspicion) = (0, None);
        let (mut taken_out, mut broken_off) = (RefusedBlobs::default(), Vec::new());
        loop {
            let (request, question) = (self.next_request(), self.gc.window.pending_model_info());
            self.mark_request_sent();
            let exchange = exchange_with_retries(
                &request,
                (&*self.provider, &self.shared.ports),
                &self.shared.emitter,
                (&self.shared.limits, &self.shared.pace),
                BrokenAnswerPolicy::Restart(&mut broken_off),
                cancel,
            );
            let came = poll_with_window(exchange, question).await;
            self.account_estimate(&broken_off);
            broken_off.clear();
            self.accept_model_info();
            let RequestOutcome::Failed { partial: None, error } = came else { return came };
            if !cancel.is_cancelled() && self.omit_refused_media(&error, &mut taken_out) {
                continue;
            }
            let is_overflow = error.kind == ErrorKind::ContextOverflow;
            let is_suspect =
                !is_overflow && before_suspicion.is_none() && self.may_be_overflow(&error);
            overflows += 1;
            if is_suspect {
                before_suspicion = Some(self.window_snapshot());
            }
            if !(is_overflow || is_suspect)
                || overflows > OVERFLOWS_MAX
                || !self.make_room_after_refusal(cancel).await
            {
                // A request that cannot be made smaller may be too large because of its images.
                if is_overflow && !cancel.is_cancelled() && self.omit_all_media(&mut taken_out) {
                    continue;
                }
                self.restore_refused_media(taken_out);
                let error = if is_overflow && error.hint.is_none() {
                    error.with_hint("send less text, or use a model with a larger window")
                } else {
                    error
                };
                // A smaller request did not help, so the size need not have been the reason.
                before_suspicion.into_iter().for_each(|known| self.restore_window(known));
                return RequestOutcome::Failed { partial: None, error };
            }
        }
    }

    /// Makes room after a turn, if the settings say so.
    pub(crate) async fn make_room_after_turn(&mut self, cancel: &Cancel) {
        if !self.gc.settings.check_before_send && !cancel.is_cancelled() {
            self.end_collection();
            self.collect_if_due(cancel).await;
        }
    }

    async fn make_room(&mut self, cancel: &Cancel) {
        if self.gc.limit == 0 {
            return;
        }
        self.query_window();
        if self.is_due_by_size() || self.is_last_too_large() {
            self.wait_for_window(cancel).await;
        }
        self.shorten_last_message().await;
        if self.gc.settings.check_before_send {
            self.collect_if_due(cancel).await;
        }
        // Remove finished turns before truncating the open one, even if the gc did not help at a
        // lower fill.
        while self.is_usage_above(FULL_PERCENT) && self.can_ask_when_full() {
            self.report_guessed_limit();
            if !self.collect_automatically(GcReason::ContextLimit, cancel).await {
                break;
            }
        }
        if self.is_usage_above(FULL_PERCENT) {
            self.shorten_open_turn(GcReason::Threshold).await;
        }
    }

    fn can_ask_when_full(&self) -> bool {
        matches!(self.gc.asked, GcAnswer::Helpful | GcAnswer::InVain) && self.has_old_turns()
    }

    async fn collect_if_due(&mut self, cancel: &Cancel) {
        let settings = &self.gc.settings;
        let turns = self.history.sent_turn_numbers().len() as u64;
        let reason = if self.is_due_by_size() {
            GcReason::Threshold
        } else if settings.max_turns > 0 && turns > settings.max_turns {
            GcReason::TurnLimit
        } else {
            return;
        };
        let may_ask = settings.auto_trigger
            && self.gc.asked == GcAnswer::Helpful
            && self.gc.failures < GC_FAILURES_MAX;
        if may_ask && self.gc.limit > 0 && self.has_old_turns() {
            self.report_guessed_limit();
            self.collect_automatically(reason, cancel).await;
        }
    }

    /// Returns true if the context is so full that the gc should run.
    fn is_due_by_size(&self) -> bool {
        let settings = &self.gc.settings;
        let is_continuous = settings.pressure_percent == 0;
        self.is_usage_above(settings.threshold_percent)
            || (is_continuous && self.is_usage_above(settings.target_percent))
    }

    /// Makes room after a refusal. The provider knows better than any count: the refused request at
    /// least fills the window. Returns true if there is less to send.
    async fn make_room_after_refusal(&mut self, cancel: &Cancel) -> bool {
        if self.gc.limit == 0 || cancel.is_cancelled() {
            return false;
        }
        self.wait_for_window(cancel).await;
        self.report_guessed_limit();
        let (tokens, bytes) = (self.tokens_in_use(), self.bytes_in_use());
        let window = &self.gc.window;
        if (window.is_guess() || window.told.is_some()) && self.is_count_from_provider() {
            self.record_refused_size(tokens);
        }
        self.record_token_count(tokens.max(self.gc.limit));
        if self.has_old_turns() && self.gc.asked != GcAnswer::Failed {
            self.collect_automatically(GcReason::ContextLimit, cancel).await;
        }
        if self.is_usage_above(self.gc.settings.target_percent) {
            self.shorten_open_turn(GcReason::ContextLimit).await;
        }
        self.bytes_in_use() < bytes
    }

    /// Returns true if a refusal may mean that the window is full. Servers have many phrases for
    /// that. If the size may well be the reason, a permanent refusal without a known phrase is
    /// handled once as if it had one.
    fn may_be_overflow(&self, error: &Error) -> bool {
        let is_of_request = SUSPECT_STATUSES.iter().any(|status| error.message.contains(status));
        let is_refusal =
            is_of_request && error.kind == ErrorKind::Provider && error.retry == Retry::Permanent;
        let is_guess = self.gc.window.is_guess() && self.tokens_in_use() >= SUSPECT_TOKENS;
        // A request must have succeeded before. A model that never worked has another problem.
        is_refusal
            && self.is_count_from_provider()
            && (is_guess || self.is_usage_above(SUSPECT_PERCENT))
    }

    /// Returns the size to which the last message must shrink. Returns `None` if it fits.
    fn bytes_for_last_message(&self) -> Option<u64> {
        let bytes = json_bytes(self.history.messages().next_back()?);
        let threshold = self.gc.settings.threshold_percent;
        let window = threshold.percent_of(self.gc.limit);
        let room = window.saturating_sub(estimate_tokens(json_bytes(&self.prefix)));
        // The other half is for the earlier messages and for the answer.
        (estimate_tokens(bytes) > room).then(|| (room / 2).saturating_mul(BYTES_PER_TOKEN))
    }

    fn is_last_too_large(&self) -> bool {
        self.bytes_for_last_message().is_some()
    }

    /// Truncates a message that leaves no room for anything else, before it is sent at all.
    async fn shorten_last_message(&mut self) {
        let Some(bytes_max) = self.bytes_for_last_message() else { return };
        let places = self.history.last_turn_range();
        let last = places.end.saturating_sub(1)..places.end;
        self.shorten_messages(last, bytes_max, GcReason::Threshold).await;
    }

    /// Makes the open turn smaller until the context is as full as it should be.
    async fn shorten_open_turn(&mut self, reason: GcReason) {
        let (tokens, bytes) = (self.tokens_in_use(), self.bytes_in_use());
        let target = self.gc.limit.saturating_mul(self.gc.settings.target_percent) / 100;
        let bytes_wanted = u128::from(bytes) * u128::from(target) / u128::from(tokens.max(1));
        let places = self.history.last_turn_range();
        let open: u64 = self.history.sent_messages(places.clone()).map(json_bytes).sum();
        let others = bytes.saturating_sub(open);
        let bytes_max = u64::try_from(bytes_wanted).unwrap_or(u64::MAX).saturating_sub(others);
        self.shrink_turn(bytes_max, reason).await;
    }

    /// Frees half of the last turn, for a user who asked when there was nothing older. Returns how
    /// many messages were removed and how many became shorter.
    pub(super) async fn halve_last_turn(&mut self) -> (u64, u64) {
        let open: u64 =
            self.history.sent_messages(self.history.last_turn_range()).map(json_bytes).sum();
        let before = self.history.messages().count();
        let cut = self.shrink_turn(open / 2, GcReason::Manual).await;
        (before.saturating_sub(self.history.messages().count()) as u64, cut)
    }

    /// Removes the oldest pairs of the last turn and truncates its largest parts, until it has at
    /// most this many bytes or neither helps. Returns how many messages became shorter.
    async fn shrink_turn(&mut self, bytes_max: u64, reason: GcReason) -> u64 {
        self.remove_oldest_pairs(bytes_max, reason);
        let places = self.history.last_turn_range();
        self.shorten_messages(places, bytes_max, reason).await
    }

    /// Returns how many messages became shorter.
    async fn shorten_messages(
        &mut self,
        places: Range<usize>,
        bytes_max: u64,
        reason: GcReason,
    ) -> u64 {
        let (tokens_before, weight_before) = (self.tokens_in_use(), self.weight_in_use());
        let TruncationResult { messages, note } =
            self.truncate_largest_parts(places, bytes_max).await;
        if messages == 0 {
            return 0;
        }
        self.report_guessed_limit();
        self.recount_tokens(tokens_before, weight_before);
        self.shared.emitter.emit(Event::Gc {
            reason,
            source: HOST.to_owned(),
            messages_removed: 0,
            turns_removed: 0,
            messages_cut: messages,
            tokens_before,
            tokens_after: self.tokens_in_use(),
            note: Some(note),
            error: None,
        });
        messages
    }

    pub(super) fn is_usage_above(&self, percent: impl Into<Percent>) -> bool {
        percent.into().is_reached(self.tokens_in_use(), self.gc.limit)
    }

    /// Says once, when it first matters, that the window's size is a guess.
    fn report_guessed_limit(&mut self) {
        if !self.gc.window.is_guess() || self.gc.window.guess_told {
            return;
        }
        self.gc.window.guess_told = true;
        let (model, limit) = (self.shared.facts.snapshot().model, self.gc.limit);
        self.shared.emitter.emit_notice(format!(
            "unknown context window for `{model}`, assuming {limit} tokens; set `context_limit` \
             under `[models.\"{model}\"]`"
        ));
    }
}
