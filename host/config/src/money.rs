//! Money: caps on a session's cost, and prices of models, as users write them.

use std::ffi::OsStr;
use std::fmt;
use std::str::FromStr;

use jaato_types::Price;

use crate::setting::{PathBases, Setting};
use crate::toml_tree::TomlValue;

/// A sum in US dollars, in millionths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dollars(u64);

impl Dollars {
    /// The largest sum.
    const MAX: f64 = 1_000_000_000.0;

    /// Creates a sum of dollars. Returns `None` if the number is not from 0 to a billion.
    pub fn new(dollars: f64) -> Option<Self> {
        // In range, so at most 10^15.
        (0.0..=Self::MAX).contains(&dollars).then(|| Self((dollars * 1e6).round() as u64))
    }

    /// Creates a sum of millionths.
    pub fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// Returns the millionths.
    pub fn micros(self) -> u64 {
        self.0
    }
}

impl FromStr for Dollars {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        let number = text.strip_prefix('$').unwrap_or(text).parse().ok();
        number.and_then(Self::new).ok_or("a sum is a number of US dollars, such as 0.5")
    }
}

/// Formats it as users write it: `0.5`.
impl fmt::Display for Dollars {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.0 / 1_000_000, self.0 % 1_000_000);
        let rest = format!("{rest:06}");
        let rest = rest.trim_end_matches('0');
        if rest.is_empty() { write!(f, "{whole}") } else { write!(f, "{whole}.{rest}") }
    }
}

fn number_from_toml(value: &TomlValue) -> Option<f64> {
    match value {
        TomlValue::Float(number) => Some(*number),
        TomlValue::Integer(Ok(number)) => Some(*number as f64),
        _ => None,
    }
}

impl Setting for Option<Dollars> {
    const KIND: &'static str = "an amount in US dollars";

    fn from_toml(value: &TomlValue, _: PathBases<'_>) -> Option<Self> {
        Dollars::new(number_from_toml(value)?).map(Some)
    }

    fn from_text(text: &OsStr, _: PathBases<'_>) -> Option<Self> {
        text.to_str()?.parse().ok().map(Some)
    }

    fn to_text(&self) -> String {
        self.map_or_else(|| "(not set)".to_owned(), |sum| sum.to_string())
    }
}

/// Parses `{ input = 3, output = 15, cache_read = 0.3, cache_write = 3.75 }`, in US dollars per
/// million tokens. The last two are optional.
pub(crate) fn parse_price(value: &TomlValue) -> Option<Price> {
    let TomlValue::Table(entries) = value else { return None };
    let mut price = Price::default();
    let (mut has_input, mut has_output) = (false, false);
    for (name, node) in entries {
        let rate = number_from_toml(&node.value).filter(|rate| (0.0..=1e6).contains(rate))?;
        match name.as_str() {
            "input" => (price.input, has_input) = (rate, true),
            "output" => (price.output, has_output) = (rate, true),
            "cache_read" => price.cache_read = Some(rate),
            "cache_write" => price.cache_write = Some(rate),
            _ => return None,
        }
    }
    (has_input && has_output).then_some(price)
}

/// The format of [`parse_price`], for users.
pub(crate) const PRICE: &str = "`{ input = …, output = … }` in US dollars for a million tokens, \
                                with `cache_read` and `cache_write` where they differ";

/// Formats a price as a file would have it.
pub(crate) fn format_price(price: &Price) -> String {
    let more = [("cache_read", price.cache_read), ("cache_write", price.cache_write)];
    let more = more.into_iter().filter_map(|(name, rate)| Some(format!(", {name} = {}", rate?)));
    let more: String = more.collect();
    format!("{{ input = {}, output = {}{more} }}", price.input, price.output)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_read_and_shown_exactly() {
        for (text, micros, shown) in [
            ("0.5", 500_000, "0.5"),
            ("$12", 12_000_000, "12"),
            (" 0.000001 ", 1, "0.000001"),
            ("0", 0, "0"),
            ("1e3", 1_000_000_000, "1000"),
        ] {
            let sum: Dollars = text.parse().unwrap();
            assert_eq!((sum.micros(), sum.to_string().as_str()), (micros, shown));
        }
        for text in ["", "-1", "NaN", "inf", "much", "1e10", "1,5"] {
            text.parse::<Dollars>().unwrap_err();
        }
    }
}
