//! The scripted answers of the model.

use serde_json::Value;

/// A piece of the model's answer.
#[derive(Debug, Clone, PartialEq)]
pub enum GoogleAnswerPiece {
    /// A thought, if the request asks for thoughts.
    Thought(String),
    /// Text.
    Text(String),
    /// A call, with tool and arguments.
    Call(String, Value),
    /// A part, used unchanged.
    Part(Value),
}

/// An answer of the model.
#[derive(Debug, Clone, PartialEq)]
pub struct GoogleTurn {
    pub(super) said: Vec<GoogleAnswerPiece>,
    pub(super) reason: String,
    pub(super) block: Option<String>,
    pub(super) explanation: Option<String>,
    pub(super) chunks_max: Option<usize>,
    pub(super) error: Option<GoogleStreamFailure>,
}

/// An error in the middle of a stream.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct GoogleStreamFailure {
    pub(super) report: Value,
    /// Whether it is sent as plain JSON instead of an event.
    pub(super) is_bare: bool,
}

impl GoogleTurn {
    /// Creates an answer with these pieces.
    pub fn with_pieces(said: impl IntoIterator<Item = GoogleAnswerPiece>) -> Self {
        Self {
            said: said.into_iter().collect(),
            reason: "STOP".to_owned(),
            block: None,
            explanation: None,
            chunks_max: None,
            error: None,
        }
    }

    /// Creates an answer with one text.
    pub fn text(text: &str) -> Self {
        Self::with_pieces([GoogleAnswerPiece::Text(text.to_owned())])
    }

    /// Creates an empty answer, because the prompt is blocked.
    pub fn blocked_prompt(word: &str) -> Self {
        Self { block: Some(word.to_owned()), ..Self::with_pieces([]) }
    }

    /// Sets another stop reason.
    #[must_use]
    pub fn with_stop_reason(self, word: &str) -> Self {
        Self { reason: word.to_owned(), ..self }
    }

    /// Sets the explanation of the stop reason.
    #[must_use]
    pub fn with_explanation(self, text: &str) -> Self {
        Self { explanation: Some(text.to_owned()), ..self }
    }

    /// Ends the stream after this many chunks.
    #[must_use]
    pub fn cut_after(self, chunks: usize) -> Self {
        Self { chunks_max: Some(chunks), ..self }
    }

    /// Reports an error at the point where the stream ends.
    #[must_use]
    pub fn with_stream_error(self, report: Value) -> Self {
        Self { error: Some(GoogleStreamFailure { report, is_bare: false }), ..self }
    }

    /// Like [`GoogleTurn::with_stream_error`], but as plain JSON between the events.
    #[must_use]
    pub fn with_plain_stream_error(self, report: Value) -> Self {
        Self { error: Some(GoogleStreamFailure { report, is_bare: true }), ..self }
    }
}
