//! Conditions of tools: when the model is offered a tool, and when a tool runs automatically.
//!
//! The host evaluates most conditions from the session's objects, without opening the plugin. For
//! [`Condition::Asked`], it asks the plugin's instance with the operation [`CONDITION`].

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ToolName;
use crate::execution::EnvironmentPart;

/// The operation that asks a plugin whether a condition of one of its tools holds. Takes a
/// [`ConditionRequest`], returns a [`ConditionAnswer`].
pub const CONDITION: &str = "condition";

/// A condition on the state of the session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "when", rename_all = "snake_case")]
pub enum Condition {
    /// The session has objects, from any tool.
    ObjectsPresent,
    /// The session has no objects.
    NoObjects,
    /// A tool has objects.
    #[non_exhaustive]
    ObjectsOf {
        /// The tool.
        tool: ToolName,
    },
    /// A tool has no objects.
    #[non_exhaustive]
    NoObjectsOf {
        /// The tool.
        tool: ToolName,
    },
    /// The session's execution environment has a certain part.
    #[non_exhaustive]
    EnvironmentHas {
        /// The part.
        part: EnvironmentPart,
    },
    /// The session's model accepts a certain kind of media.
    #[non_exhaustive]
    ModelSees {
        /// The kind.
        what: VisibleMedia,
    },
    /// A gc has left out messages of the session, or shortened them. The tool joins and leaves
    /// requests together with such a change, because their beginning changes then anyway.
    MessagesCollected,
    /// The host asks the plugin each time that the condition matters.
    #[default]
    Asked,
    /// A condition from a newer version. It never holds, so the tool is neither offered nor run
    /// automatically.
    #[serde(other)]
    Unknown,
}

/// A kind of media, other than text, that a model may accept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VisibleMedia {
    /// Images in any format.
    Images,
    /// PDF documents.
    Pdf,
    /// A kind from a newer version. No model accepts it.
    #[serde(other)]
    Unknown,
}

impl VisibleMedia {
    /// Returns true if this kind includes a media type that a model accepts, such as `image/png` or
    /// `image/*`.
    pub fn has_media_type(self, media_type: &str) -> bool {
        match self {
            Self::Images => media_type.starts_with("image/"),
            Self::Pdf => matches!(media_type, "application/pdf" | "application/*"),
            Self::Unknown => false,
        }
    }
}

impl fmt::Display for VisibleMedia {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Images => "images",
            Self::Pdf => "PDF documents",
            Self::Unknown => "something unknown to this version of jaato",
        })
    }
}

impl Condition {
    /// Returns the condition that a tool has objects.
    pub fn objects_of(tool: impl Into<ToolName>) -> Self {
        Self::ObjectsOf { tool: tool.into() }
    }

    /// Returns the condition that a tool has no objects.
    pub fn no_objects_of(tool: impl Into<ToolName>) -> Self {
        Self::NoObjectsOf { tool: tool.into() }
    }

    /// Returns the condition that the session's execution environment has a certain part.
    pub fn environment_has(part: EnvironmentPart) -> Self {
        Self::EnvironmentHas { part }
    }

    /// Returns the condition that the session's model accepts a certain kind of media.
    pub fn model_sees(what: VisibleMedia) -> Self {
        Self::ModelSees { what }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ObjectsPresent => f.write_str("there are objects"),
            Self::NoObjects => f.write_str("there are no objects"),
            Self::ObjectsOf { tool, .. } => write!(f, "there are objects of `{tool}`"),
            Self::NoObjectsOf { tool, .. } => write!(f, "there are no objects of `{tool}`"),
            Self::EnvironmentHas { part, .. } => {
                write!(f, "the session's execution environment has {part}")
            }
            Self::ModelSees { what, .. } => write!(f, "the session's model accepts {what}"),
            Self::MessagesCollected => f.write_str("messages of the session were left out"),
            Self::Asked => f.write_str("its plugin says so"),
            Self::Unknown => {
                f.write_str("a condition holds that this version of jaato does not know")
            }
        }
    }
}

/// When the model is offered a tool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    /// The condition that must hold.
    #[serde(flatten)]
    pub condition: Condition,
    /// A message to a model that wants the tool while it is unavailable. It says when the tool
    /// becomes available and what the model can do to get it.
    pub reason: String,
}

impl Offer {
    /// Creates an offer.
    pub fn new(condition: Condition, reason: impl Into<String>) -> Self {
        Self { condition, reason: reason.into() }
    }
}

/// The decision that depends on a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConditionDecision {
    /// Whether the tool is available.
    Available,
    /// Whether the tool runs automatically.
    Run,
    /// A decision from a newer version. Answer that the condition does not hold.
    #[serde(other)]
    Unknown,
}

/// A request to a plugin: does the condition of one of its tools hold?
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ConditionRequest {
    /// The tool.
    pub tool: ToolName,
    /// The decision that depends on the condition.
    pub deciding: ConditionDecision,
}

impl ConditionRequest {
    /// Creates a request. Only the host and tests need this.
    pub fn new(tool: impl Into<ToolName>, deciding: ConditionDecision) -> Self {
        Self { tool: tool.into(), deciding }
    }
}

/// A plugin's answer to a [`ConditionRequest`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ConditionAnswer {
    /// Whether the condition holds.
    pub holds: bool,
    /// The reason why the tool is unavailable. It replaces the reason from the tool spec.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The arguments with which the tool runs automatically. If absent, it runs without arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
}

impl ConditionAnswer {
    /// Returns the answer that the condition holds.
    pub fn yes() -> Self {
        Self { holds: true, ..Self::default() }
    }

    /// Returns the answer that the condition does not hold.
    pub fn no() -> Self {
        Self::default()
    }

    /// Sets the reason.
    #[must_use]
    pub fn because(self, reason: impl Into<String>) -> Self {
        Self { reason: Some(reason.into()), ..self }
    }

    /// Sets the arguments with which the tool runs automatically: a JSON object.
    #[must_use]
    pub fn with_arguments(self, arguments: Value) -> Self {
        Self { arguments: Some(arguments), ..self }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn offer_json_holds_the_condition_and_its_reason() {
        let json =
            json!({ "when": "objects_of", "tool": "search", "reason": "once it found some" });
        let offer: Offer = serde_json::from_value(json.clone()).unwrap();
        assert_eq!(offer.condition.to_string(), "there are objects of `search`");
        assert_eq!(json!(offer), json);
        let lacking = json!({ "when": "objects_of", "reason": "" });
        let error = serde_json::from_value::<Offer>(lacking).unwrap_err().to_string();
        assert!(error.contains("missing field `tool`"), "{error}");
    }
}
