//! Caps on the usage of several sessions together. Each request reserves the most that it may use,
//! so that requests at the same time do not exceed a cap.

use std::collections::HashSet;
use std::sync::Arc;

use jaato_config::Dollars;
use jaato_types::{Error, ErrorKind, Result, SessionId, Usage};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

use crate::{Cancel, Caps, SessionUsage};

/// Caps on the usage of several sessions together. Clones share it.
///
/// A request that does not fit next to the running ones waits until one of them ends, because most
/// use less than they reserve. A request that would not fit even alone is refused.
#[derive(Debug, Clone)]
pub struct SharedBudget(Arc<BudgetInner>);

#[derive(Debug)]
struct BudgetInner {
    caps: Caps,
    /// The group's name in errors.
    name: &'static str,
    /// The beginning of the names of its options.
    options: &'static str,
    /// The budget of which this one is a part.
    parent: Option<SharedBudget>,
    state: Mutex<BudgetState>,
    /// Wakes requests that wait for room.
    freed: Notify,
}

#[derive(Debug, Default)]
struct BudgetState {
    used: SessionUsage,
    /// The most that the running requests may use. Their steps are already in `used`.
    reserved: RequestEstimate,
    refused: HashSet<SessionId>,
}

/// The most that a request may use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RequestEstimate {
    pub(crate) tokens: u64,
    pub(crate) cost_micro_usd: u64,
}

/// A request's part of the budget. Dropping it frees the part.
#[derive(Debug)]
#[must_use = "dropping it frees the reserved part"]
pub(crate) struct BudgetReservation {
    budget: SharedBudget,
    estimate: RequestEstimate,
    /// The part of the parent's budget.
    _parent: Option<Box<BudgetReservation>>,
}

impl SharedBudget {
    /// Creates a budget, of which some may be used already. The name of the group, for example
    /// `batch`, and its options are in errors: `options` is how their names begin, for example
    /// `--batch-max-`. A budget can be a part of another one.
    pub fn new(
        (name, options): (&'static str, &'static str),
        caps: Caps,
        used: SessionUsage,
        parent: Option<Self>,
    ) -> Self {
        let state = Mutex::new(BudgetState { used, ..BudgetState::default() });
        Self(Arc::new(BudgetInner { caps, name, options, parent, state, freed: Notify::new() }))
    }

    /// Returns the usage so far, without running requests.
    pub fn usage(&self) -> SessionUsage {
        self.lock().used
    }

    /// Returns true if the budget has refused a request of a session.
    pub fn has_refused(&self, session: &SessionId) -> bool {
        self.lock().refused.contains(session)
    }

    /// Returns the error of every further request, if the budget is used up.
    pub fn exhausted_error(&self) -> Option<Error> {
        self.excess_error(&self.lock().used, RequestEstimate::default())
    }

    /// Returns true if it limits the cost, so that each request needs a known price.
    pub(crate) fn has_cost_limit(&self) -> bool {
        self.0.caps.cost.is_some() || self.0.parent.as_ref().is_some_and(Self::has_cost_limit)
    }

    /// Returns the option that limits the cost.
    pub(crate) fn cost_option(&self) -> String {
        match &self.0.parent {
            Some(parent) if self.0.caps.cost.is_none() => parent.cost_option(),
            _ => format!("{}cost", self.0.options),
        }
    }

    /// Adds an answer's usage.
    pub(crate) fn add_usage(&self, usage: &Usage) {
        self.lock().used.add_usage(usage);
        if let Some(parent) = &self.0.parent {
            parent.add_usage(usage);
        }
    }

    /// Reserves a request's part, and waits for running requests if only they leave too little.
    ///
    /// # Errors
    /// `limit_reached` if the request does not fit even alone, `cancelled` if that comes first.
    pub(crate) async fn reserve_request(
        &self,
        session: &SessionId,
        estimate: RequestEstimate,
        cancel: &Cancel,
    ) -> Result<BudgetReservation> {
        let mut reserved = self.reserve_own_request(session, estimate, cancel).await?;
        if let Some(parent) = &self.0.parent {
            match Box::pin(parent.reserve_request(session, estimate, cancel)).await {
                Ok(part) => reserved._parent = Some(Box::new(part)),
                Err(error) => {
                    // The request is not sent.
                    self.lock().used.steps -= 1;
                    return Err(error);
                }
            }
        }
        Ok(reserved)
    }

    async fn reserve_own_request(
        &self,
        session: &SessionId,
        estimate: RequestEstimate,
        cancel: &Cancel,
    ) -> Result<BudgetReservation> {
        loop {
            let freed = self.0.freed.notified();
            tokio::pin!(freed);
            // Registers before it looks, so that it does not miss a request that ends between.
            freed.as_mut().enable();
            {
                let mut state = self.lock();
                if let Some(error) = self.excess_error(&state.used, estimate) {
                    state.refused.insert(session.clone());
                    return Err(error);
                }
                let together = state.reserved.add_estimate(estimate);
                if self.excess_error(&state.used, together).is_none() {
                    state.used.steps += 1;
                    state.reserved = together;
                    return Ok(BudgetReservation { budget: self.clone(), estimate, _parent: None });
                }
            }
            tokio::select! {
                biased;
                () = cancel.cancelled() => return Err(Error::cancelled()),
                () = freed => {}
            }
        }
    }

    /// Returns the error if a cap leaves no room for a request with this estimate.
    fn excess_error(&self, used: &SessionUsage, estimate: RequestEstimate) -> Option<Error> {
        let BudgetInner { caps, name, options, .. } = &*self.0;
        let (text, option) = if let Some(cap) = caps.cost.map(Dollars::micros)
            && (used.cost_micro_usd.saturating_add(estimate.cost_micro_usd) > cap
                || used.cost_micro_usd >= cap)
        {
            let [used, cap, next] =
                [used.cost_micro_usd, cap, estimate.cost_micro_usd].map(Dollars::from_micros);
            let next = format!("the next request may cost {next}");
            (format!("{used} of {cap} US dollars are used, {next}"), "cost")
        } else if let Some(cap) = caps.tokens
            && (used.tokens.saturating_add(estimate.tokens) > cap || used.tokens >= cap)
        {
            let next = format!("the next request may use {}", estimate.tokens);
            (format!("{} of {cap} tokens are used, {next}", used.tokens), "tokens")
        } else if let Some(cap) = caps.steps.filter(|cap| used.steps >= *cap) {
            (format!("it has made {} of {cap} requests", used.steps), "steps")
        } else {
            return None;
        };
        let text = format!("the {name} has reached its cap `{options}{option}`: {text}");
        let hint = match option {
            "steps" => format!("raise it with `{options}{option}`"),
            _ => format!("raise it with `{options}{option}`, or lower `--max-output-tokens`"),
        };
        Some(Error::new(ErrorKind::LimitReached, text).with_hint(hint))
    }

    fn lock(&self) -> MutexGuard<'_, BudgetState> {
        self.0.state.lock()
    }
}

impl RequestEstimate {
    fn add_estimate(self, other: Self) -> Self {
        Self {
            tokens: self.tokens.saturating_add(other.tokens),
            cost_micro_usd: self.cost_micro_usd.saturating_add(other.cost_micro_usd),
        }
    }
}

impl Drop for BudgetReservation {
    fn drop(&mut self) {
        let Self { budget, estimate, .. } = self;
        let mut state = budget.lock();
        state.reserved.tokens -= estimate.tokens;
        state.reserved.cost_micro_usd -= estimate.cost_micro_usd;
        drop(state);
        budget.0.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    fn token_estimate(tokens: u64) -> RequestEstimate {
        RequestEstimate { tokens, cost_micro_usd: 0 }
    }

    fn budget_with_caps(caps: Caps) -> SharedBudget {
        SharedBudget::new(("batch", "--batch-max-"), caps, SessionUsage::default(), None)
    }

    #[tokio::test]
    async fn a_request_waits_for_running_ones_and_takes_what_they_leave() {
        let budget = budget_with_caps(Caps { tokens: Some(100), ..Caps::default() });
        let (session, cancel) = (SessionId::from("s"), Cancel::new());
        let first = budget.reserve_request(&session, token_estimate(60), &cancel).await.unwrap();
        let second = budget.reserve_request(&session, token_estimate(60), &cancel);
        tokio::pin!(second);
        assert!(second.as_mut().now_or_never().is_none());
        budget.add_usage(&Usage { prompt_tokens: 30, output_tokens: 10, ..Usage::default() });
        drop(first);
        let second = second.await.unwrap();
        let error =
            budget.reserve_request(&session, token_estimate(61), &cancel).await.unwrap_err();
        assert_eq!(
            error.message,
            "the batch has reached its cap `--batch-max-tokens`: 40 of 100 tokens are used, \
             the next request may use 61"
        );
        assert!(budget.has_refused(&session) && budget.exhausted_error().is_none());
        assert!(!budget.has_refused(&SessionId::from("other")));
        drop(second);
        assert_eq!(budget.usage().steps, 2);
    }

    #[tokio::test]
    async fn steps_and_cost_have_caps_too() {
        let (session, cancel) = (SessionId::from("s"), Cancel::new());
        let steps = budget_with_caps(Caps { steps: Some(1), ..Caps::default() });
        drop(steps.reserve_request(&session, token_estimate(1), &cancel).await.unwrap());
        let error = steps.reserve_request(&session, token_estimate(1), &cancel).await.unwrap_err();
        assert!(error.message.ends_with("it has made 1 of 1 requests"), "{error}");
        assert_eq!(steps.exhausted_error(), Some(error));
        let cost = budget_with_caps(Caps { cost: Dollars::new(0.5), ..Caps::default() });
        let estimate = RequestEstimate { tokens: 1, cost_micro_usd: 500_001 };
        let error = cost.reserve_request(&session, estimate, &cancel).await.unwrap_err();
        assert!(error.message.contains("0 of 0.5 US dollars are used"), "{error}");
        assert!(cost.has_cost_limit() && !steps.has_cost_limit());
    }

    #[tokio::test]
    async fn a_part_of_a_budget_has_its_own_caps_and_counts_for_both() {
        let (session, cancel) = (SessionId::from("s"), Cancel::new());
        let whole = budget_with_caps(Caps { tokens: Some(100), steps: Some(2), ..Caps::default() });
        let caps = Caps { tokens: Some(50), ..Caps::default() };
        let used = SessionUsage::default();
        let part = SharedBudget::new(("agent", "max_"), caps, used, Some(whole.clone()));
        let error = part.reserve_request(&session, token_estimate(51), &cancel).await.unwrap_err();
        assert!(error.message.starts_with("the agent has reached its cap `max_tokens`"), "{error}");
        drop(part.reserve_request(&session, token_estimate(50), &cancel).await.unwrap());
        part.add_usage(&Usage { prompt_tokens: 20, ..Usage::default() });
        assert_eq!((part.usage().tokens, whole.usage().tokens), (20, 20));
        drop(whole.reserve_request(&session, token_estimate(80), &cancel).await.unwrap());
        let error = part.reserve_request(&session, token_estimate(1), &cancel).await.unwrap_err();
        assert!(error.message.contains("`--batch-max-steps`"), "{error}");
        assert_eq!(part.usage().steps, 1, "a request that the whole refuses is not sent");
    }

    #[tokio::test]
    async fn waiting_for_room_ends_with_a_cancellation() {
        let budget = budget_with_caps(Caps { tokens: Some(10), ..Caps::default() });
        let (session, cancel) = (SessionId::from("s"), Cancel::new());
        let _running = budget.reserve_request(&session, token_estimate(10), &cancel).await.unwrap();
        cancel.cancel();
        let error =
            budget.reserve_request(&session, token_estimate(10), &cancel).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Cancelled);
    }
}
