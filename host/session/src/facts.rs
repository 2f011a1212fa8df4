//! The model and tokens of a session, readable while a turn runs.

use std::sync::Arc;

use jaato_types::service::ContextFacts;
use parking_lot::Mutex;

/// The facts of a session. Clones share them, so a tool can read them while the turn holds the
/// session.
#[derive(Debug, Clone, Default)]
pub struct SharedFacts(Arc<Mutex<ContextFacts>>);

impl SharedFacts {
    pub(crate) fn new(facts: ContextFacts) -> Self {
        Self(Arc::new(Mutex::new(facts)))
    }

    /// Returns the current facts.
    pub fn snapshot(&self) -> ContextFacts {
        self.0.lock().clone()
    }

    pub(crate) fn update_facts(&self, change: impl FnOnce(&mut ContextFacts)) {
        change(&mut self.0.lock());
    }
}

/// Returns how much of a context window is used, in percent with two decimals. Returns 0 if its
/// size is unknown.
pub fn percent_used(total_tokens: u64, context_limit: u64) -> f64 {
    if context_limit == 0 {
        return 0.0;
    }
    // Whole hundredths of a percent first, so that the result has exactly two decimals.
    let hundredths = (u128::from(total_tokens) * 20_000 + u128::from(context_limit))
        / (2 * u128::from(context_limit));
    u32::try_from(hundredths).map_or(f64::from(u32::MAX), f64::from) / 100.0
}

/// Estimates the tokens of a text: a quarter of its bytes, rounded up. For display, never for
/// billing.
pub fn estimate_tokens(text: &str) -> u64 {
    u64::try_from(text.len().div_ceil(4)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_used_has_two_decimals_and_is_zero_for_an_unknown_window() {
        let cases = [(0, 100, 0.0), (1, 3, 33.33), (2, 3, 66.67), (5, 0, 0.0), (200, 100, 200.0)];
        for (total, limit, expected) in cases {
            assert!((percent_used(total, limit) - expected).abs() < 1e-9, "{total} of {limit}");
        }
    }
}
