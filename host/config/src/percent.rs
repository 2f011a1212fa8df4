//! A fill level in percent: the type of that setting, and how it is read and shown.

use std::ffi::OsStr;
use std::fmt;

use crate::setting::{PathBases, Setting};
use crate::toml_tree::TomlValue;

/// A percentage with at most two decimals, in hundredths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Percent(u64);

/// Hundredths of one percent.
const HUNDREDTHS: u64 = 100;

impl Percent {
    /// Creates a percentage. Returns `None` if the number is negative or more than a million.
    pub fn new(number: f64) -> Option<Self> {
        // In range, so only digits after the second decimal are lost.
        (0.0..=1e6).contains(&number).then(|| Self((number * 100.0).round() as u64))
    }

    /// Returns the number.
    pub fn get(self) -> f64 {
        self.0 as f64 / 100.0
    }

    /// Returns this percentage of an amount, rounded down.
    pub fn percent_of(self, amount: u64) -> u64 {
        let part = u128::from(amount) * u128::from(self.0) / u128::from(100 * HUNDREDTHS);
        u64::try_from(part).unwrap_or(u64::MAX)
    }

    /// Returns true if `part` is at least this percentage of an amount.
    pub fn is_reached(self, part: u64, amount: u64) -> bool {
        u128::from(part) * u128::from(100 * HUNDREDTHS) >= u128::from(amount) * u128::from(self.0)
    }
}

impl From<u64> for Percent {
    fn from(whole: u64) -> Self {
        Self(whole.saturating_mul(HUNDREDTHS))
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.get())
    }
}

impl Setting for Percent {
    const KIND: &'static str = "a number";

    fn from_toml(value: &TomlValue, _: PathBases<'_>) -> Option<Self> {
        match value {
            TomlValue::Float(number) => Self::new(*number),
            TomlValue::Integer(Ok(number)) => u64::try_from(*number).ok().map(Self::from),
            _ => None,
        }
    }

    fn from_text(text: &OsStr, _: PathBases<'_>) -> Option<Self> {
        text.to_str()?.trim().parse().ok().and_then(Self::new)
    }

    fn to_text(&self) -> String {
        self.to_string()
    }

    fn is_within(&self, (least, most): (u64, u64)) -> bool {
        (Self::from(least)..=Self::from(most)).contains(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_keeps_fractions() {
        let percent = Percent::new(82.5).unwrap();
        assert_eq!(percent.to_string(), "82.5");
        assert_eq!(Percent::from(80).to_string(), "80");
        assert_eq!(percent.percent_of(1000), 825);
        assert!(percent.is_reached(825, 1000) && !percent.is_reached(824, 1000));
        assert_eq!(Percent::from(u64::MAX).percent_of(u64::MAX), u64::MAX);
    }

    #[test]
    fn percent_respects_its_bounds() {
        let within = |number: f64| Percent::new(number).is_some_and(|it| it.is_within((1, 100)));
        assert!(within(1.0) && within(99.99) && within(100.0));
        assert!(!within(0.99) && !within(100.01) && !within(-1.0) && !within(f64::NAN));
    }
}
