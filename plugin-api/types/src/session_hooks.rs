//! The hooks that accompany a session: its start and end, the end of a turn, and a gc.

use serde::{Deserialize, Serialize};

use crate::GcReason;
use crate::service::ContextFacts;

/// How often plugins may make one turn continue. A plugin that is never content must not keep the
/// model busy forever.
pub const TURN_CONTINUATIONS_MAX: u32 = 3;

/// A session, before its first prompt in this process.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct SessionStart {
    /// Whether the session continues an earlier conversation.
    pub is_continued: bool,
    /// The model and token counts of the session.
    pub context: ContextFacts,
}

impl SessionStart {
    /// Creates a request. Only the host and tests need this.
    pub fn new(is_continued: bool, context: ContextFacts) -> Self {
        Self { is_continued, context }
    }
}

/// Text to add before the first prompt, as a part of its message that names the plugin.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SessionText {
    /// The text. An empty text adds nothing. The host truncates a text that is too long.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub text: String,
}

impl SessionText {
    /// Creates an addition from a text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into() }
    }

    /// Creates an empty addition.
    pub fn nothing() -> Self {
        Self::default()
    }
}

/// The end of a session that had a prompt.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct SessionEnd {
    /// The model and token counts of the session.
    pub context: ContextFacts,
}

impl SessionEnd {
    /// Creates a request. Only the host and tests need this.
    pub fn new(context: ContextFacts) -> Self {
        Self { context }
    }
}

/// The end of a turn: the model has given its answer. A turn that fails, is cancelled or reaches a
/// limit ends without this question.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct TurnEnd {
    /// The text of the answer.
    pub text: String,
    /// How often plugins have made this turn continue. After [`TURN_CONTINUATIONS_MAX`] times it
    /// ends in any case.
    pub continuations: u32,
    /// The model and token counts of the session.
    pub context: ContextFacts,
}

impl TurnEnd {
    /// Creates a request. Only the host and tests need this.
    pub fn new(text: impl Into<String>, continuations: u32, context: ContextFacts) -> Self {
        Self { text: text.into(), continuations, context }
    }
}

/// Whether a turn ends.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TurnEndAnswer {
    /// A message to the model, with which the turn continues. If empty, the turn ends.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub continue_with: String,
}

impl TurnEndAnswer {
    /// Creates the answer that the turn ends.
    pub fn end() -> Self {
        Self::default()
    }

    /// Creates the answer that the turn continues with a message to the model.
    pub fn continue_with(text: impl Into<String>) -> Self {
        Self { continue_with: text.into() }
    }
}

/// A collection, before the gc is asked for its plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct BeforeGc {
    /// Why it collects.
    pub reason: GcReason,
    /// The model and token counts of the session.
    #[serde(default)]
    pub context: ContextFacts,
}

impl BeforeGc {
    /// Creates a request. Only the host and tests need this.
    pub fn new(reason: GcReason, context: ContextFacts) -> Self {
        Self { reason, context }
    }
}

/// Whether a collection may happen.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BeforeGcAnswer {
    /// The reason why nothing must be removed. Empty if it may.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub refusal: String,
}

impl BeforeGcAnswer {
    /// Creates the answer that the collection may happen.
    pub fn proceed() -> Self {
        Self::default()
    }

    /// Creates the answer that nothing must be removed. The user sees the reason.
    pub fn refuse(reason: impl Into<String>) -> Self {
        Self { refusal: reason.into() }
    }
}
