//! What the model of a script says.

use serde_json::Value;

/// A piece of what the model says.
#[derive(Debug, Clone, PartialEq)]
pub enum Said {
    /// A thought, where the request wants to see them.
    Thought(String),
    /// Text.
    Text(String),
    /// A call: tool and arguments.
    Call(String, Value),
    /// A part as it is.
    Part(Value),
}

/// An answer of the model.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    pub(super) said: Vec<Said>,
    pub(super) reason: String,
    pub(super) block: Option<String>,
    pub(super) explanation: Option<String>,
    pub(super) chunks_max: Option<usize>,
    pub(super) error: Option<Failure>,
}

/// An error in the middle of a stream.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Failure {
    pub(super) report: Value,
    /// Whether it stands there without the form of an event.
    pub(super) is_bare: bool,
}

impl Turn {
    /// Says these, and stops.
    pub fn says(said: impl IntoIterator<Item = Said>) -> Self {
        Self {
            said: said.into_iter().collect(),
            reason: "STOP".to_owned(),
            block: None,
            explanation: None,
            chunks_max: None,
            error: None,
        }
    }

    /// Says one text.
    pub fn text(text: &str) -> Self {
        Self::says([Said::Text(text.to_owned())])
    }

    /// Says nothing: the prompt is blocked.
    pub fn blocked(word: &str) -> Self {
        Self { block: Some(word.to_owned()), ..Self::says([]) }
    }

    /// Stops for this reason instead.
    #[must_use]
    pub fn stopping(self, word: &str) -> Self {
        Self { reason: word.to_owned(), ..self }
    }

    /// Explains why it stops.
    #[must_use]
    pub fn explained(self, text: &str) -> Self {
        Self { explanation: Some(text.to_owned()), ..self }
    }

    /// Ends the stream behind so many chunks.
    #[must_use]
    pub fn cut_after(self, chunks: usize) -> Self {
        Self { chunks_max: Some(chunks), ..self }
    }

    /// Reports an error where the stream is cut, or where it would end.
    #[must_use]
    pub fn failing(self, report: Value) -> Self {
        Self { error: Some(Failure { report, is_bare: false }), ..self }
    }

    /// The same as plain JSON between the events.
    #[must_use]
    pub fn failing_barely(self, report: Value) -> Self {
        Self { error: Some(Failure { report, is_bare: true }), ..self }
    }
}
