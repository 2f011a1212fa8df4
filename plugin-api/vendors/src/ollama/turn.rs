//! What the model of a script says.

use serde_json::Value;

/// A piece of what the model says.
#[derive(Debug, Clone, PartialEq)]
pub enum Said {
    /// A thought, where the request lets the model think.
    Thought(String),
    /// Text.
    Text(String),
    /// A call: tool and arguments.
    Call(String, Value),
}

/// An answer of the model.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    pub(super) said: Vec<Said>,
    pub(super) reason: String,
    pub(super) lines_max: Option<usize>,
    pub(super) error: Option<String>,
}

impl Turn {
    /// Says these, and stops.
    pub fn says(said: impl IntoIterator<Item = Said>) -> Self {
        let said = said.into_iter().collect();
        Self { said, reason: "stop".to_owned(), lines_max: None, error: None }
    }

    /// Says one text.
    pub fn text(text: &str) -> Self {
        Self::says([Said::Text(text.to_owned())])
    }

    /// Stops for this reason instead.
    #[must_use]
    pub fn stopping(self, word: &str) -> Self {
        Self { reason: word.to_owned(), ..self }
    }

    /// Ends the stream behind so many lines.
    #[must_use]
    pub fn cut_after(self, lines: usize) -> Self {
        Self { lines_max: Some(lines), ..self }
    }

    /// Reports an error where the stream is cut, or where it would end. Before the first line it is
    /// an answer of status 500.
    #[must_use]
    pub fn failing(self, text: &str) -> Self {
        Self { error: Some(text.to_owned()), ..self }
    }
}
