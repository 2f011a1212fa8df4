//! A session's usage (requests, tokens, money) and the user's caps on it.

use std::sync::Arc;

use jaato_config::Dollars;
use jaato_types::{Error, ErrorKind, ModelId, Price, Usage};
use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};

use crate::Caps;
use crate::shared_budget::RequestEstimate;

/// The longest answer of a model whose limit is unknown, in tokens.
const ANSWER_TOKENS_ASSUMED: u64 = 32_768;

/// A session's usage since it began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionUsage {
    /// Requests to models.
    pub steps: u64,
    /// Tokens of requests and answers.
    pub tokens: u64,
    /// Their known cost, in millionths of a US dollar.
    pub cost_micro_usd: u64,
    /// Whether some of the cost is unknown.
    pub has_unknown_cost: bool,
}

/// The combined usage of sessions. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct SharedUsage(Arc<Mutex<SessionUsage>>);

impl SharedUsage {
    /// Continues a usage.
    pub fn from_usage(usage: SessionUsage) -> Self {
        Self(Arc::new(Mutex::new(usage)))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, SessionUsage> {
        self.0.lock()
    }
}

impl SessionUsage {
    /// Adds an answer's usage.
    pub(crate) fn add_usage(&mut self, usage: &Usage) {
        self.tokens = self.tokens.saturating_add(usage.total_tokens());
        match usage.cost_micro_usd {
            Some(cost) => self.cost_micro_usd = self.cost_micro_usd.saturating_add(cost),
            None => self.has_unknown_cost = true,
        }
    }

    /// Returns an error if a cap is reached.
    pub(crate) fn reached_cap_error(&self, caps: &Caps) -> Option<Error> {
        let is_reached = |used: u64, cap: Option<u64>| cap.filter(|cap| used >= *cap);
        let cost = caps.cost.map(Dollars::micros);
        let (what, option, key) = if is_reached(self.cost_micro_usd, cost).is_some() {
            let (used, cap) = (Dollars::from_micros(self.cost_micro_usd), caps.cost?);
            (format!("it has cost {used} of {cap} US dollars"), "--max-cost", "cost")
        } else if let Some(cap) = is_reached(self.tokens, caps.tokens) {
            (format!("it has used {} of {cap} tokens", self.tokens), "--max-tokens", "tokens")
        } else if let Some(cap) = is_reached(self.steps, caps.steps) {
            (format!("it has made {} of {cap} requests", self.steps), "--max-steps", "steps")
        } else {
            return None;
        };
        let text = format!("the session has reached its cap `{option}`: {what}");
        let hint = format!("raise it with `{option}`, or by `{key}` under `[caps]`");
        Some(Error::new(ErrorKind::LimitReached, text).with_hint(hint))
    }
}

/// Adds an answer's cost, computed from the price if the server does not report it.
pub(crate) fn with_cost(price: Option<&Price>, usage: Usage) -> Usage {
    let Some(price) = price.filter(|_| usage.cost_micro_usd.is_none()) else { return usage };
    let cost_micro_usd = Some(cost_micro_usd(price, &usage));
    Usage { cost_micro_usd, cost_is_estimate: true, ..usage }
}

/// Returns the error for a cap on cost that cannot be enforced.
pub(crate) fn unknown_cost_error(model: &ModelId, option: &str) -> Error {
    let text = format!("the price of `{model}` is unknown, so `{option}` cannot be enforced");
    let hint = format!(
        "set `price = {{ input = …, output = … }}` under `[models.\"{model}\"]`, \
         in US dollars for a million tokens; or use `{}`",
        option.replace("cost", "tokens")
    );
    Error::new(ErrorKind::Configuration, text).with_hint(hint)
}

/// Returns the most that a request may use, as far as the host can tell. The number of prompt
/// tokens is an estimate, which may be half of the model's own count.
pub(crate) fn request_estimate(
    price: Option<&Price>,
    prompt_tokens: u64,
    answer_tokens_max: Option<u64>,
) -> RequestEstimate {
    let prompt_tokens = prompt_tokens.saturating_mul(2);
    let output_tokens = answer_tokens_max.unwrap_or(ANSWER_TOKENS_ASSUMED);
    let usage = Usage { prompt_tokens, output_tokens, ..Usage::default() };
    RequestEstimate {
        tokens: usage.total_tokens(),
        cost_micro_usd: price.map_or(0, |price| cost_micro_usd(price, &usage)),
    }
}

/// Computes an answer's cost, in millionths of a US dollar.
pub fn cost_micro_usd(price: &Price, usage: &Usage) -> u64 {
    let tier = price.tiers.iter().filter(|tier| usage.prompt_tokens > tier.above);
    let tier = tier.max_by_key(|tier| tier.above);
    let (input, output, read, write) = match tier {
        Some(tier) => (tier.input, tier.output, tier.cache_read, tier.cache_write),
        None => (price.input, price.output, price.cache_read, price.cache_write),
    };
    let cached = usage.cached_tokens.min(usage.prompt_tokens);
    let written = usage.cache_write_tokens.min(usage.prompt_tokens - cached);
    let plain = usage.prompt_tokens - cached - written;
    // Dollars per million tokens equal millionths of a dollar per token.
    let sum = plain as f64 * input
        + cached as f64 * read.unwrap_or(input)
        + written as f64 * write.unwrap_or(input)
        + usage.output_tokens as f64 * output;
    // No sum of tokens and prices comes near the largest whole number.
    sum.max(0.0).round() as u64
}

#[cfg(test)]
mod tests {
    use jaato_types::PriceTier;

    use super::*;

    fn token_usage(
        prompt_tokens: u64,
        cached_tokens: u64,
        written: u64,
        output_tokens: u64,
    ) -> Usage {
        let cache_write_tokens = written;
        Usage {
            prompt_tokens,
            cached_tokens,
            cache_write_tokens,
            output_tokens,
            ..Usage::default()
        }
    }

    #[test]
    fn each_kind_of_token_has_its_price() {
        let mut price = Price { input: 3.0, output: 15.0, ..Price::default() };
        assert_eq!(cost_micro_usd(&price, &token_usage(1_000, 0, 0, 100)), 3_000 + 1_500);
        // If the cache has no price of its own, its tokens cost the same as the rest of the
        // request.
        assert_eq!(cost_micro_usd(&price, &token_usage(1_000, 900, 50, 0)), 3_000);
        (price.cache_read, price.cache_write) = (Some(0.3), Some(3.75));
        assert_eq!(cost_micro_usd(&price, &token_usage(1_000, 900, 60, 0)), 120 + 270 + 225);
        // A server that counts more tokens from the cache than there were.
        assert_eq!(cost_micro_usd(&price, &token_usage(10, 20, 30, 0)), 3);
        assert_eq!(cost_micro_usd(&Price::zero(), &token_usage(10, 20, 30, 9)), 0);
    }

    #[test]
    fn a_long_request_has_the_price_of_its_tier() {
        let tier = |above, input| PriceTier { above, input, output: input, ..PriceTier::default() };
        let price = Price {
            input: 1.0,
            output: 1.0,
            tiers: vec![tier(100, 2.0), tier(200, 4.0)],
            ..Price::default()
        };
        for (prompt, cost) in [(100, 100), (101, 202), (200, 400), (201, 804)] {
            assert_eq!(cost_micro_usd(&price, &token_usage(prompt, 0, 0, 0)), cost, "{prompt}");
        }
    }

    #[test]
    fn error_names_the_cap_that_was_reached() {
        let mut spent = SessionUsage::default();
        let caps = Caps { cost: Dollars::new(0.5), tokens: Some(10), steps: Some(3) };
        assert_eq!(spent.reached_cap_error(&caps), None);
        spent.steps = 3;
        let said = |spent: &SessionUsage| spent.reached_cap_error(&caps).unwrap().message;
        assert!(said(&spent).ends_with("`--max-steps`: it has made 3 of 3 requests"));
        spent.add_usage(&token_usage(9, 0, 0, 2));
        assert!(said(&spent).ends_with("`--max-tokens`: it has used 11 of 10 tokens"));
        assert!(spent.has_unknown_cost);
        spent.add_usage(&Usage { cost_micro_usd: Some(500_000), ..Usage::default() });
        assert!(said(&spent).ends_with("`--max-cost`: it has cost 0.5 of 0.5 US dollars"));
        assert_eq!(spent.reached_cap_error(&Caps::default()), None);
    }
}
