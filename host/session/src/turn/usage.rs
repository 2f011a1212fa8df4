//! Counts the usage of requests, and ends a turn at a cap.

use std::ops::ControlFlow;

use jaato_types::{Error, ErrorKind, Event, Outcome, Part, Result, Usage};

use super::{MARK_CAP, TurnEnd, TurnProgress};
use crate::gc::{estimate_tokens, is_possible_output, json_bytes};
use crate::shared_budget::BudgetReservation;
use crate::usage_caps::{unknown_cost_error, with_cost};
use crate::{Cancel, Session, completion};

/// The part of a shared budget that a request may use, or the end of the turn.
type RequestAdmission = ControlFlow<TurnEnd, Option<BudgetReservation>>;

impl Session {
    /// Ends the turn if a cap is reached, or cannot be enforced.
    pub(super) async fn check_caps(&mut self, cancel: &Cancel) -> Result<Option<TurnEnd>> {
        let reached = self.shared.spent.lock().reached_cap_error(&self.shared.caps);
        if let Some(error) = reached {
            return self.end_at_cap(error).map(Some);
        }
        if let Some(option) = self.shared.cost_option().filter(|_| self.price.is_none()) {
            self.wait_for_model_info(cancel).await;
            if self.price.is_none() && !cancel.is_cancelled() {
                let error = unknown_cost_error(&self.model, &option);
                return self.end_failed(None, error).map(Some);
            }
        }
        self.shared.spent.lock().steps += 1;
        Ok(None)
    }

    /// Reserves the most that the next request may use, if the session shares a budget. Ends the
    /// turn if the budget does not cover it.
    pub(super) async fn reserve_budget(&mut self, cancel: &Cancel) -> Result<RequestAdmission> {
        let Some(budget) = self.shared.budget() else {
            return Ok(RequestAdmission::Continue(None));
        };
        let estimate = self.next_request_estimate();
        let error = match budget.reserve_request(&self.shared.id, estimate, cancel).await {
            Ok(reserved) => return Ok(RequestAdmission::Continue(Some(reserved))),
            Err(error) => error,
        };
        // The request was counted and is not sent.
        self.shared.spent.lock().steps -= 1;
        if error.kind == ErrorKind::Cancelled {
            return self.end_cancelled(Vec::new()).map(ControlFlow::Break);
        }
        self.end_at_cap(error).map(ControlFlow::Break)
    }

    /// Admits the request to the next model, whose cost may be unknown or higher.
    pub(super) async fn admit_fallback(&mut self, cancel: &Cancel) -> Result<RequestAdmission> {
        match self.check_caps(cancel).await? {
            Some(end) => Ok(RequestAdmission::Break(end)),
            None => self.reserve_budget(cancel).await,
        }
    }

    fn end_at_cap(&mut self, error: Error) -> Result<TurnEnd> {
        let paused = completion::remove_calls(std::mem::take(&mut self.paused));
        let text = self.append_broken_answer(paused, MARK_CAP)?;
        Ok(TurnEnd { outcome: Outcome::Limit, text, error: Some(error) })
    }

    /// Records the tokens of the last request that reported them, because a sum would count the
    /// prompt repeatedly. The session's usage is summed up.
    pub(super) fn account_usage(
        &mut self,
        mut usage: Usage,
        parts: &[Part],
        progress: &mut TurnProgress,
    ) {
        if usage == Usage::default() {
            return self.account_estimate(parts);
        }
        usage = self.plausible_usage(usage, parts);
        usage = with_cost(self.price.as_ref(), usage);
        self.shared.add_usage(&usage);
        progress.usage = usage;
        self.record_usage(usage, parts);
        self.shared.facts.update_facts(|facts| {
            facts.prompt_tokens = usage.prompt_tokens;
            facts.output_tokens = usage.output_tokens;
        });
        self.shared.emitter.emit(Event::Usage { usage });
    }

    /// Replaces impossible counts with an estimate: more tokens than the request has bytes, or more
    /// output than a model gives. Otherwise they would empty the context and reach caps for no
    /// reason.
    fn plausible_usage(&mut self, usage: Usage, answer: &[Part]) -> Usage {
        let is_prompt_believed = usage.prompt_tokens <= self.request_tokens_max();
        let is_output_believed = is_possible_output(&usage, answer);
        if is_prompt_believed && is_output_believed {
            return usage;
        }
        if !std::mem::replace(&mut self.has_told_counts, true) {
            let Usage { prompt_tokens, output_tokens, .. } = usage;
            let (model, asked, said) = (&self.model, self.bytes_in_use(), json_bytes(&answer));
            self.shared.emitter.emit_notice(format!(
                "`{model}` reports {prompt_tokens} prompt and {output_tokens} output tokens for a \
                 request of {asked} bytes and an answer of {said} bytes, which is impossible: \
                 jaato uses its own estimate"
            ));
        }
        let prompt_tokens = match is_prompt_believed {
            true => usage.prompt_tokens,
            false => self.tokens_in_use(),
        };
        let (output_tokens, reasoning_tokens) = match is_output_believed {
            true => (usage.output_tokens, usage.reasoning_tokens),
            false => (estimate_tokens(json_bytes(&answer)), 0),
        };
        Usage {
            prompt_tokens,
            output_tokens,
            reasoning_tokens,
            cached_tokens: usage.cached_tokens.min(prompt_tokens),
            cache_write_tokens: usage.cache_write_tokens.min(prompt_tokens),
            ..usage
        }
    }

    /// Counts an answer without reported tokens, so that caps hold by an estimate. An empty answer
    /// is not counted.
    pub(crate) fn account_estimate(&mut self, parts: &[Part]) {
        if parts.is_empty() {
            return;
        }
        let (prompt_tokens, output_tokens) =
            (self.tokens_in_use(), estimate_tokens(json_bytes(&parts)));
        let guess = Usage { prompt_tokens, output_tokens, ..Usage::default() };
        self.shared.add_usage(&with_cost(self.price.as_ref(), guess));
    }
}
