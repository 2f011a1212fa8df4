//! Completions that a command's own plugin offers while the user types the command.

use serde::{Deserialize, Serialize};

/// Asks the command's own plugin which words may come next. Takes a [`CompleteWords`], returns a
/// [`WordChoices`].
pub const COMPLETE_WORDS: &str = "complete_words";

/// The words of a command line, and the word that the user is typing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct CompleteWords {
    /// The command.
    pub command: String,
    /// The complete words after the command.
    pub words: Vec<String>,
    /// The beginning of the word that the user is typing, possibly empty.
    pub begun: String,
}

impl CompleteWords {
    /// Creates a request. Only the host and tests need this.
    pub fn new(command: impl Into<String>, words: Vec<String>, begun: impl Into<String>) -> Self {
        Self { command: command.into(), words, begun: begun.into() }
    }
}

/// The words that may come next. The host leaves out those that do not continue the typed text.
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
    /// The meaning of the word, in one line.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
}

impl WordChoice {
    /// Creates a choice.
    pub fn new(text: impl Into<String>, description: impl Into<String>) -> Self {
        Self { text: text.into(), description: description.into() }
    }
}

impl WordChoices {
    /// Creates choices without descriptions.
    pub fn from_words<T: Into<String>>(words: impl IntoIterator<Item = T>) -> Self {
        let choices = words.into_iter().map(|word| WordChoice::new(word, "")).collect();
        Self { choices }
    }
}
