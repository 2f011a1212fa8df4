//! Words that may come next while a person types a command, as its own plugin offers them.

use serde::{Deserialize, Serialize};

/// Asks a command's own plugin which words may come next: [`CompleteWords`], [`WordChoices`].
pub const COMPLETE_WORDS: &str = "complete_words";

/// The words of a command line, and the one that is being typed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct CompleteWords {
    /// The command.
    pub command: String,
    /// The words behind it that are whole.
    pub words: Vec<String>,
    /// The beginning of the word that is being typed, possibly empty.
    pub begun: String,
}

impl CompleteWords {
    /// Makes the question; the host does, and tests.
    pub fn new(command: impl Into<String>, words: Vec<String>, begun: impl Into<String>) -> Self {
        Self { command: command.into(), words, begun: begun.into() }
    }
}

/// Words that may come next. The host leaves out those that do not go on from what was typed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WordChoices {
    /// The words, best first.
    pub choices: Vec<WordChoice>,
}

/// A word that may come next.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WordChoice {
    /// The whole word.
    pub text: String,
    /// What it stands for, in one line.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
}

impl WordChoice {
    /// Offers a word.
    pub fn new(text: impl Into<String>, description: impl Into<String>) -> Self {
        Self { text: text.into(), description: description.into() }
    }
}

impl WordChoices {
    /// Offers words without descriptions.
    pub fn of<T: Into<String>>(words: impl IntoIterator<Item = T>) -> Self {
        let choices = words.into_iter().map(|word| WordChoice::new(word, "")).collect();
        Self { choices }
    }
}
