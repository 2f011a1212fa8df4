//! Settings for the model's answers: their types, and how each is read and shown.

use std::ffi::OsStr;
use std::fmt;
use std::str::FromStr;

use jaato_types::Effort;

use crate::setting::{PathBases, Setting, toml_list, toml_text};
use crate::toml_tree::TomlValue;

/// A sampling temperature from 0 to 2, in thousandths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Temperature(u32);

/// Texts of any kind, including blanks and line ends.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TextList(pub Vec<String>);

/// The words for [`Effort`], in ascending order.
const EFFORTS: [(&str, Effort); 6] = [
    ("none", Effort::None),
    ("minimal", Effort::Minimal),
    ("low", Effort::Low),
    ("medium", Effort::Medium),
    ("high", Effort::High),
    ("max", Effort::Max),
];

/// Parses a word for an effort: `none`, `minimal`, `low`, `medium`, `high` or `max`.
pub fn parse_effort(word: &str) -> Option<Effort> {
    let word = word.trim().to_lowercase();
    EFFORTS.iter().find(|(name, _)| *name == word).map(|(_, effort)| *effort)
}

impl Temperature {
    /// The largest temperature.
    const MAX: f64 = 2.0;

    /// Creates a temperature. Returns `None` if the number is not from 0 to 2.
    pub fn new(number: f64) -> Option<Self> {
        let is_one = (0.0..=Self::MAX).contains(&number);
        // In range, so at most 2,000.
        is_one.then(|| Self((number * 1_000.0).round() as u32))
    }

    /// Returns the number.
    pub fn get(self) -> f32 {
        // At most 2,000, which a float represents exactly.
        self.0 as f32 / 1_000.0
    }
}

impl FromStr for Temperature {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = text.trim().parse().ok();
        number.and_then(Self::new).ok_or("a temperature must be a number from 0 to 2")
    }
}

impl fmt::Display for Temperature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.get())
    }
}

const NOT_SET: &str = "(not set)";

impl Setting for Option<Temperature> {
    const KIND: &'static str = "a number from 0 to 2";

    fn from_toml(value: &TomlValue, _: PathBases<'_>) -> Option<Self> {
        match value {
            TomlValue::Float(number) => Temperature::new(*number).map(Some),
            TomlValue::Integer(Ok(number)) => Temperature::new(*number as f64).map(Some),
            _ => None,
        }
    }

    fn from_text(text: &OsStr, _: PathBases<'_>) -> Option<Self> {
        text.to_str()?.parse().ok().map(Some)
    }

    fn to_text(&self) -> String {
        self.map_or_else(|| NOT_SET.to_owned(), |it| it.to_string())
    }
}

impl Setting for Option<Effort> {
    const KIND: &'static str = "none, minimal, low, medium, high or max";

    fn from_toml(value: &TomlValue, _: PathBases<'_>) -> Option<Self> {
        parse_effort(toml_text(value)?).map(Some)
    }

    fn from_text(text: &OsStr, _: PathBases<'_>) -> Option<Self> {
        parse_effort(text.to_str()?).map(Some)
    }

    fn to_text(&self) -> String {
        let word = EFFORTS.iter().find(|(_, effort)| Some(*effort) == *self);
        word.map_or_else(|| NOT_SET.to_owned(), |(word, _)| format!("{word:?}"))
    }
}

impl Setting for Option<u64> {
    const KIND: &'static str = "a whole number";

    fn from_toml(value: &TomlValue, bases: PathBases<'_>) -> Option<Self> {
        u64::from_toml(value, bases).map(Some)
    }

    fn from_text(text: &OsStr, bases: PathBases<'_>) -> Option<Self> {
        u64::from_text(text, bases).map(Some)
    }

    fn to_text(&self) -> String {
        self.map_or_else(|| NOT_SET.to_owned(), |number| number.to_string())
    }
}

impl Setting for TextList {
    const KIND: &'static str = "a list of strings; a variable holds one";

    fn from_toml(value: &TomlValue, _: PathBases<'_>) -> Option<Self> {
        let texts = toml_list(value)?.iter().map(|item| toml_text(&item.value));
        let texts = texts.map(|text| text.filter(|text| !text.is_empty()).map(str::to_owned));
        texts.collect::<Option<_>>().map(Self)
    }

    fn from_text(text: &OsStr, _: PathBases<'_>) -> Option<Self> {
        let text = text.to_str()?;
        Some(Self(if text.is_empty() { Vec::new() } else { vec![text.to_owned()] }))
    }

    fn to_text(&self) -> String {
        format!("{:?}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_temperature_is_from_0_to_2() {
        for (text, shown) in [("0", "0"), ("0.7", "0.7"), ("2", "2"), (" 1.25 ", "1.25")] {
            assert_eq!(text.parse::<Temperature>().unwrap().to_string(), shown);
        }
        for text in ["-0.1", "2.1", "NaN", "inf", "hot", ""] {
            text.parse::<Temperature>().unwrap_err();
        }
    }

    #[test]
    fn each_effort_is_shown_as_the_word_it_is_parsed_from() {
        for (word, effort) in EFFORTS {
            assert_eq!(parse_effort(&word.to_uppercase()), Some(effort));
            assert_eq!(Some(effort).to_text(), format!("{word:?}"));
        }
        assert_eq!(parse_effort("hard"), None);
    }
}
