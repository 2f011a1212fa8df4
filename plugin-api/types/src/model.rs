//! The service `model.complete`, through which a plugin sends a request to a model outside the
//! conversation.

use serde::{Deserialize, Serialize};

use crate::{Completion, Delta, Message, RequestOptions};

crate::operations::service_operations! { $ model_operations, Some("model.complete"), answered;
    /// Sends a request without tools to the session's model or another one. With `stream`, the
    /// answer is a `StreamAnswer` and each frame is a `ModelPiece`, the last of which contains the
    /// answer.
    [hooks] complete MODEL_COMPLETE "model.complete": ModelComplete => ModelAnswer + stream;
}

/// The maximum number of simultaneous plugin requests of a session. Further ones wait.
pub const COMPLETIONS_AT_ONCE: usize = 2;
/// The maximum number of waiting plugin requests of a session. Further ones are refused.
pub const COMPLETIONS_WAITING_MAX: usize = 16;
/// The maximum number of plugin requests in a turn, if the user set no limit.
pub const COMPLETIONS_PER_TURN_MAX: u32 = 8;

/// A request from a plugin to a model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ModelComplete {
    /// The model, by any name that a user may give. If absent, the session's model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The system prompt.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub system: String,
    /// The messages, at least one, ending with a user message. They may contain tool calls and
    /// results, as in any request.
    pub messages: Vec<Message>,
    /// Settings of the request. Values that are absent come from the model's configuration. An
    /// option that the provider does not support is refused.
    pub options: RequestOptions,
    /// Which of the session's objects the model sees.
    pub objects: ObjectVisibility,
    /// Whether to stream the answer.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub stream: bool,
}

/// Which of a session's objects a model sees. Objects that are hidden from models are never
/// included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ObjectVisibility {
    /// The objects, grouped by tool.
    Contents,
    /// The objects with their names and metadata, as the session's own model sees them.
    Full,
    /// No objects. Unknown words from a newer version mean this as well.
    #[default]
    #[serde(other)]
    None,
}

/// A model's answer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ModelAnswer {
    /// `provider/model`.
    pub model: String,
    /// The answer, with its token usage.
    pub completion: Completion,
}

/// A piece of a streamed answer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ModelPiece {
    /// The next delta of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delta: Option<Delta>,
    /// The complete answer, in the last piece.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<ModelAnswer>,
}

impl ModelAnswer {
    /// Creates an answer. Only the host needs this.
    pub fn new(model: impl Into<String>, completion: Completion) -> Self {
        Self { model: model.into(), completion }
    }

    /// Returns the text of the answer.
    pub fn text(&self) -> String {
        Message::model(self.completion.parts.clone()).text()
    }
}

impl ModelPiece {
    /// Creates a piece with a delta. Only the host needs this.
    pub fn delta(delta: Delta) -> Self {
        Self { delta: Some(delta), answer: None }
    }

    /// Creates the last piece. Only the host needs this.
    pub fn answer(answer: ModelAnswer) -> Self {
        Self { delta: None, answer: Some(answer) }
    }
}
