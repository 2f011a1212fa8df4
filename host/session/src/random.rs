//! Random numbers behind a trait, for jitter and ids, so that a run can be replayed from one seed.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

/// A source of random numbers. Not for secrets.
pub trait Random: Send + Sync {
    /// Returns the next number, uniformly distributed.
    fn next_u64(&self) -> u64;

    /// Returns a number from 0 up to, but not including, `end`. Returns 0 if `end` is 0.
    fn number_below(&self, end: u64) -> u64 {
        // The high half of the product is uniform enough for any `end` used here.
        let product = u128::from(self.next_u64()) * u128::from(end);
        u64::try_from(product >> 64).unwrap_or(0)
    }
}

/// `SplitMix64`: small, uniform, and the same everywhere from the same seed.
#[derive(Debug)]
pub struct SeededRandom(AtomicU64);

impl SeededRandom {
    /// Starts from a seed. The same seed produces the same numbers.
    pub fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }

    /// Starts from a seed of the operating system for this process.
    pub fn from_system() -> Self {
        Self::new(RandomState::new().hash_one(std::process::id()))
    }
}

impl Random for SeededRandom {
    fn next_u64(&self) -> u64 {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut z = self.0.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers_within_bounds() {
        let numbers = |seed| {
            let random = SeededRandom::new(seed);
            (0..100).map(|_| random.number_below(7)).collect::<Vec<_>>()
        };
        assert_eq!(numbers(1), numbers(1));
        assert_ne!(numbers(1), numbers(2));
        let all: std::collections::BTreeSet<_> = numbers(3).into_iter().collect();
        assert_eq!(all, (0..7).collect());
        assert_eq!(SeededRandom::new(5).number_below(0), 0);
    }
}
