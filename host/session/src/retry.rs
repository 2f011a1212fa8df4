//! When to retry a failed request. Pure: random numbers come from outside.

use jaato_types::{Error, Retry};

use crate::{Limits, Random};

/// Returns how long to wait before the next attempt, in milliseconds. Returns `None` if there is
/// none. `attempts` counts the attempts so far. The caller must know that nothing visible has
/// arrived.
pub(crate) fn retry_wait_ms(
    error: &Error,
    attempts: u32,
    limits: &Limits,
    random: &dyn Random,
) -> Option<u64> {
    match error.retry {
        Retry::Temporary => {}
        Retry::Permanent | Retry::Other => return None,
    }
    if attempts >= limits.attempts_max {
        return None;
    }
    let doubled = 2_u64.saturating_pow(attempts.saturating_sub(1));
    let longest = limits.retry_base_ms.saturating_mul(doubled).min(limits.retry_wait_ms_max);
    // Full jitter, so that clients that failed together do not retry together.
    let jitter = random.number_below(longest.saturating_add(1));
    match error.retry_after_ms {
        None => Some(jitter),
        Some(asked) if asked > limits.retry_after_ms_max => None,
        // Never earlier than the provider asks. The additional jitter spreads clients that got the
        // same time.
        Some(asked) => Some(asked.saturating_add(jitter.min(limits.retry_base_ms))),
    }
}

/// Adds an explanation if an error is final only because the provider asks for too long a wait.
pub(crate) fn explain_long_wait(error: Error, limits: &Limits) -> Error {
    match error.retry_after_ms {
        Some(asked) if asked > limits.retry_after_ms_max && error.hint.is_none() => {
            let seconds = asked.div_ceil(1_000);
            error.with_hint(format!(
                "the provider asks jaato to wait {seconds} s: try again after that"
            ))
        }
        Some(_) | None => error,
    }
}

#[cfg(test)]
mod tests {
    use jaato_types::ErrorKind;

    use super::*;
    use crate::SeededRandom;

    fn temporary() -> Error {
        Error::new(ErrorKind::Provider, "overloaded").temporary()
    }

    #[test]
    fn retry_delay_grows_with_full_jitter_up_to_a_maximum() {
        let limits = Limits { attempts_max: 100, ..Limits::default() };
        let random = SeededRandom::new(1);
        for (attempts, longest) in [(1, 1_000), (2, 2_000), (3, 4_000), (6, 30_000), (99, 30_000)] {
            let waits: Vec<u64> = (0..200)
                .map(|_| retry_wait_ms(&temporary(), attempts, &limits, &random).unwrap())
                .collect();
            assert!(waits.iter().all(|wait| *wait <= longest), "{attempts}");
            assert!(waits.iter().any(|wait| *wait < longest / 4), "{attempts}");
            assert!(waits.iter().any(|wait| *wait > longest / 4 * 3), "{attempts}");
        }
    }

    #[test]
    fn permanent_errors_and_spent_attempts_are_not_tried_again() {
        let (limits, random) = (Limits::default(), SeededRandom::new(1));
        let permanent = Error::new(ErrorKind::Provider, "no such model");
        assert_eq!(retry_wait_ms(&permanent, 1, &limits, &random), None);
        assert!(retry_wait_ms(&temporary(), 4, &limits, &random).is_some());
        assert_eq!(retry_wait_ms(&temporary(), 5, &limits, &random), None);
    }

    #[test]
    fn retry_after_sets_the_minimum_delay_and_fails_above_a_limit() {
        let (limits, random) = (Limits::default(), SeededRandom::new(1));
        let asked = |ms| Error { retry_after_ms: Some(ms), ..temporary() };
        for _ in 0..100 {
            let wait = retry_wait_ms(&asked(20_000), 1, &limits, &random).unwrap();
            assert!((20_000..=21_000).contains(&wait), "{wait}");
        }
        assert!(retry_wait_ms(&asked(120_000), 1, &limits, &random).is_some());
        assert_eq!(retry_wait_ms(&asked(120_001), 1, &limits, &random), None);
        let hint = explain_long_wait(asked(120_001), &limits).hint;
        assert_eq!(
            hint.as_deref(),
            Some("the provider asks jaato to wait 121 s: try again after that")
        );
        assert_eq!(explain_long_wait(asked(120_000), &limits), asked(120_000));
    }
}
