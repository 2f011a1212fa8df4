//! The scripted answers of the model.

use serde_json::Value;

/// A piece of the model's answer.
#[derive(Debug, Clone, PartialEq)]
pub enum OllamaAnswerPiece {
    /// A thought, if the request allows thinking.
    Thought(String),
    /// Text.
    Text(String),
    /// A call, with tool and arguments.
    Call(String, Value),
}

/// An answer of the model.
#[derive(Debug, Clone, PartialEq)]
pub struct OllamaTurn {
    pub(super) said: Vec<OllamaAnswerPiece>,
    pub(super) reason: String,
    pub(super) lines_max: Option<usize>,
    pub(super) error: Option<String>,
}

impl OllamaTurn {
    /// Creates an answer with these pieces.
    pub fn with_pieces(said: impl IntoIterator<Item = OllamaAnswerPiece>) -> Self {
        let said = said.into_iter().collect();
        Self { said, reason: "stop".to_owned(), lines_max: None, error: None }
    }

    /// Creates an answer with one text.
    pub fn text(text: &str) -> Self {
        Self::with_pieces([OllamaAnswerPiece::Text(text.to_owned())])
    }

    /// Sets another stop reason.
    #[must_use]
    pub fn with_stop_reason(self, word: &str) -> Self {
        Self { reason: word.to_owned(), ..self }
    }

    /// Ends the stream after this many lines.
    #[must_use]
    pub fn cut_after(self, lines: usize) -> Self {
        Self { lines_max: Some(lines), ..self }
    }

    /// Reports an error at the point where the stream ends. Before the first line, the answer has
    /// the status 500.
    #[must_use]
    pub fn with_stream_error(self, text: &str) -> Self {
        Self { error: Some(text.to_owned()), ..self }
    }
}
