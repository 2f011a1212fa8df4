//! Picks the next token from logits.

/// The number of tokens to choose from if the temperature is above zero.
const CANDIDATES: usize = 40;

/// Picks tokens: the most likely one, or a random one at a temperature.
///
/// The randomness comes from a seed, so that a run can be replayed.
#[derive(Debug, Clone)]
pub struct TokenSampler {
    temperature: f32,
    state: u64,
}

impl TokenSampler {
    /// Creates a sampler. A temperature of 0, or an invalid one, is greedy.
    pub fn new(temperature: f32, seed: u64) -> Self {
        let temperature = if temperature.is_finite() { temperature.max(0.0) } else { 0.0 };
        Self { temperature, state: seed }
    }

    /// Returns true if the sampler always picks the most likely token.
    pub fn is_greedy(&self) -> bool {
        self.temperature == 0.0
    }

    /// Picks a token. Returns `None` if all logits are minus infinity.
    pub fn pick_token(&mut self, logits: &[f32]) -> Option<u32> {
        if self.is_greedy() { likeliest_token(logits) } else { self.pick_random_token(logits) }
    }

    fn pick_random_token(&mut self, logits: &[f32]) -> Option<u32> {
        let mut candidates: Vec<(u32, f32)> = logits
            .iter()
            .enumerate()
            .filter(|(_, logit)| logit.is_finite())
            .map(|(token, &logit)| (token as u32, logit))
            .collect();
        if candidates.len() > CANDIDATES {
            candidates.select_nth_unstable_by(CANDIDATES, |a, b| b.1.total_cmp(&a.1));
            candidates.truncate(CANDIDATES);
        }
        candidates.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        let top = candidates.first()?.1;
        let weight = |logit: f32| f64::from((logit - top) / self.temperature).exp();
        let sum: f64 = candidates.iter().map(|&(_, logit)| weight(logit)).sum();
        let mut left = self.next_unit_number() * sum;
        let last = candidates.last()?.0;
        for (token, logit) in candidates {
            left -= f64::from((logit - top) / self.temperature).exp();
            if left < 0.0 {
                return Some(token);
            }
        }
        Some(last)
    }

    /// Returns the next number in `0..1`, with SplitMix64.
    fn next_unit_number(&mut self) -> f64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Returns the token with the highest logit, or the first of equal ones.
fn likeliest_token(logits: &[f32]) -> Option<u32> {
    let mut best: Option<(usize, f32)> = None;
    for (token, &logit) in logits.iter().enumerate() {
        if logit > best.map_or(f32::NEG_INFINITY, |(_, logit)| logit) {
            best = Some((token, logit));
        }
    }
    best.map(|(token, _)| token as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn greedy_sampler_takes_the_first_of_the_highest_logits() {
        let mut sampler = TokenSampler::new(0.0, 1);
        assert_eq!(sampler.pick_token(&[0.0, 2.0, f32::NAN, 2.0]), Some(1));
        assert_eq!(sampler.pick_token(&[f32::NEG_INFINITY; 3]), None);
        assert_eq!(sampler.pick_token(&[]), None);
    }

    #[test]
    fn sampling_follows_the_logits_and_never_takes_masked_tokens() {
        let mut sampler = TokenSampler::new(1.0, 7);
        let mut counts = [0_u32; 3];
        for _ in 0..3000 {
            let token = sampler.pick_token(&[0.0, f32::NEG_INFINITY, 1.0]).unwrap();
            counts[token as usize] += 1;
        }
        assert_eq!(counts[1], 0);
        let share = f64::from(counts[2]) / 3000.0;
        assert!((share - 0.731).abs() < 0.04, "{share}");
    }

    #[test]
    fn the_same_seed_gives_the_same_tokens() {
        let logits: Vec<f32> = (0..200).map(|token| (token % 17) as f32).collect();
        let run = || {
            let mut sampler = TokenSampler::new(0.8, 42);
            (0..20).map(|_| sampler.pick_token(&logits)).collect::<Vec<_>>()
        };
        assert_eq!(run(), run());
    }

    #[test]
    fn invalid_temperature_samples_greedily() {
        assert!(TokenSampler::new(f32::NAN, 1).is_greedy());
        assert!(TokenSampler::new(-1.0, 1).is_greedy());
    }
}
