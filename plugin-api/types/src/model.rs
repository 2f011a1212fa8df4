//! The service `model.complete`: a plugin asks a model something beside the conversation.

use serde::{Deserialize, Serialize};

use crate::{Completion, Delta, Message, RequestOptions};

crate::operations::service_operations! { $ model_operations, Some("model.complete"), answered;
    /// Sends a request without tools to a model. With `stream`, the answer is a `StreamAnswer`,
    /// each frame is a `ModelPiece`, and the last frame has the answer.
    complete MODEL_COMPLETE "model.complete": ModelComplete => ModelAnswer + stream;
}

/// Requests of plugins that are sent at once for a session; further ones wait.
pub const COMPLETIONS_AT_ONCE: usize = 2;
/// Requests of plugins of a session that may wait. One more is refused.
pub const COMPLETIONS_WAITING_MAX: usize = 16;
/// Requests of plugins in a turn, where the person has set no cap.
pub const COMPLETIONS_PER_TURN_MAX: u32 = 8;

/// What to ask a model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ModelComplete {
    /// The model, by any name that a person may give; the session's where this is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The system text.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub system: String,
    /// The messages; at least one, the last of the user's. Calls and results of tools stand in them
    /// as in any request.
    pub messages: Vec<Message>,
    /// Settings of the request. What is not said here is as the model is set up; an option that the
    /// provider does not take is refused.
    pub options: RequestOptions,
    /// How much the model is shown of the objects that tools have put in front of the session's
    /// model.
    pub objects: ObjectsShown,
    /// Whether the answer is streamed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub stream: bool,
}

/// How much of a session's objects a model is shown. What is hidden from models is shown to none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ObjectsShown {
    /// The objects, by the tool under which they stand.
    Contents,
    /// The objects with their names and metadata, as the session's own model is shown them.
    Full,
    /// Nothing; so is a word that this side does not know.
    #[default]
    #[serde(other)]
    None,
}

/// What a model answered.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ModelAnswer {
    /// `provider/model`.
    pub model: String,
    /// The answer, with what it used.
    pub completion: Completion,
}

/// A piece of an answer that is streamed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ModelPiece {
    /// More of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delta: Option<Delta>,
    /// The whole answer, in the last piece.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<ModelAnswer>,
}

impl ModelAnswer {
    /// Makes an answer; the host does.
    pub fn new(model: impl Into<String>, completion: Completion) -> Self {
        Self { model: model.into(), completion }
    }

    /// Returns the text of the answer.
    pub fn text(&self) -> String {
        Message::model(self.completion.parts.clone()).text()
    }
}

impl ModelPiece {
    /// Makes a piece of an answer; the host does.
    pub fn delta(delta: Delta) -> Self {
        Self { delta: Some(delta), answer: None }
    }

    /// Makes the last piece; the host does.
    pub fn answer(answer: ModelAnswer) -> Self {
        Self { delta: None, answer: Some(answer) }
    }
}
