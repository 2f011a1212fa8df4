//! Makes room before a request, and after a provider refused one as too large.

use jaato_types::{ErrorKind, Event, GcReason};

use super::count::{BYTES_PER_TOKEN, tokens_of};
use super::cut::Shortened;
use super::{Asked, LimitOrigin, OVERFLOWS_MAX, json_bytes};
use crate::events::HOST;
use crate::exchange::{Exchange, exchange};
use crate::{Cancel, Session};

/// How full the window may be, in percent, before results of the open turn are shortened: without
/// room the answer would be cut off, or the provider would silently forget the beginning.
const FULL_PERCENT: u64 = 95;

impl Session {
    /// Sends the request that comes next, in a context that has room for it.
    pub(crate) async fn exchange_with_room(&mut self, step: u32, cancel: &Cancel) -> Exchange {
        if step == 1 {
            self.gc.asked = Asked::Helpful;
        }
        self.make_room(cancel).await;
        let mut overflows = 0;
        loop {
            let request = self.request();
            let came = exchange(&request, &self.ports, &self.emitter, &self.limits, cancel).await;
            let Exchange::Failed { partial: None, error } = came else { return came };
            let is_overflow = error.kind == ErrorKind::ContextOverflow;
            overflows += 1;
            if !is_overflow
                || overflows > OVERFLOWS_MAX
                || !self.make_room_after_refusal(cancel).await
            {
                let error = if is_overflow && error.hint.is_none() {
                    error.with_hint("ask for less at once, or use a model with a larger window")
                } else {
                    error
                };
                return Exchange::Failed { partial: None, error };
            }
        }
    }

    /// Looks at the context when a turn is over, where the settings say so.
    pub(crate) async fn make_room_after_turn(&mut self, cancel: &Cancel) {
        if !self.gc.settings.check_before_send && !cancel.is_cancelled() {
            self.collect_if_due(cancel).await;
        }
    }

    async fn make_room(&mut self, cancel: &Cancel) {
        if self.gc.limit == 0 {
            return;
        }
        self.shorten_last_message().await;
        if self.gc.settings.check_before_send {
            self.collect_if_due(cancel).await;
        }
        if self.is_above(FULL_PERCENT) {
            self.shorten_open_turn(GcReason::Threshold).await;
        }
    }

    async fn collect_if_due(&mut self, cancel: &Cancel) {
        let settings = &self.gc.settings;
        let turns = self.history.sent_turn_numbers().len() as u64;
        let reason = if self.is_above(settings.threshold_percent) {
            GcReason::Threshold
        } else if settings.max_turns > 0 && turns > settings.max_turns {
            GcReason::TurnLimit
        } else {
            return;
        };
        let may_ask = settings.auto_trigger && self.gc.asked == Asked::Helpful;
        if may_ask && self.gc.limit > 0 && self.has_old_turns() {
            self.say_limit();
            self.collect_by_itself(reason, cancel).await;
        }
    }

    /// The provider knows better than any count: what it refused fills the window at least. Tells
    /// whether there is less to send.
    async fn make_room_after_refusal(&mut self, cancel: &Cancel) -> bool {
        if self.gc.limit == 0 || cancel.is_cancelled() {
            return false;
        }
        self.say_limit();
        let (tokens, bytes) = (self.tokens_in_use(), self.bytes_in_use());
        if self.gc.limit_origin != LimitOrigin::Known && self.is_counted() {
            self.gc.limit = self.gc.limit.min(tokens);
        }
        self.count_as(tokens.max(self.gc.limit));
        if self.has_old_turns() && self.gc.asked != Asked::Failed {
            self.collect_by_itself(GcReason::ContextLimit, cancel).await;
        }
        if self.is_above(self.gc.settings.target_percent) {
            self.shorten_open_turn(GcReason::ContextLimit).await;
        }
        self.bytes_in_use() < bytes
    }

    /// A message beside which nothing else has room is shortened before it is sent at all.
    async fn shorten_last_message(&mut self) {
        let Some(last) = self.history.messages().next_back() else { return };
        let bytes = json_bytes(last);
        let threshold = self.gc.settings.threshold_percent;
        let window = self.gc.limit.saturating_mul(threshold) / 100;
        let room = window.saturating_sub(tokens_of(json_bytes(&self.prefix)));
        if tokens_of(bytes) <= room {
            return;
        }
        // The other half is for what came before it and for the answer.
        let bytes_max = (room / 2).saturating_mul(BYTES_PER_TOKEN);
        let places = self.history.open_turn();
        let last = places.end.saturating_sub(1)..places.end;
        self.shorten(last, bytes_max, GcReason::Threshold).await;
    }

    /// Shortens what is largest in the open turn until the context is as full as it should be.
    async fn shorten_open_turn(&mut self, reason: GcReason) {
        let (tokens, bytes) = (self.tokens_in_use(), self.bytes_in_use());
        let target = self.gc.limit.saturating_mul(self.gc.settings.target_percent) / 100;
        let bytes_wanted = u128::from(bytes) * u128::from(target) / u128::from(tokens.max(1));
        let places = self.history.open_turn();
        let open: u64 = self.history.sent_in(places.clone()).map(json_bytes).sum();
        let others = bytes.saturating_sub(open);
        let bytes_max = u64::try_from(bytes_wanted).unwrap_or(u64::MAX).saturating_sub(others);
        self.shorten(places, bytes_max, reason).await;
    }

    async fn shorten(&mut self, places: std::ops::Range<usize>, bytes_max: u64, reason: GcReason) {
        let (tokens_before, bytes_before) = (self.tokens_in_use(), self.bytes_in_use());
        let Shortened { messages, note } = self.send_head_and_tail(places, bytes_max).await;
        if messages == 0 {
            return;
        }
        self.say_limit();
        self.recount(tokens_before, bytes_before);
        self.emitter.emit(Event::Gc {
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
    }

    fn is_above(&self, percent: u64) -> bool {
        let (tokens, limit) = (u128::from(self.tokens_in_use()), u128::from(self.gc.limit));
        tokens * 100 >= limit * u128::from(percent)
    }

    /// Says once, when it first matters, that the window's size is a guess.
    fn say_limit(&mut self) {
        if self.gc.limit_origin != LimitOrigin::Assumed {
            return;
        }
        self.gc.limit_origin = LimitOrigin::AssumedAndTold;
        let (model, limit) = (self.facts.read().model, self.gc.limit);
        self.emitter.notice(format!(
            "nobody says how large the context window of `{model}` is: {limit} tokens are assumed; \
             `context_limit` under `[models.\"{model}\"]` sets it"
        ));
    }
}
