//! Conditions of tools: when a tool is offered to the model, and when it runs by itself.
//!
//! Most are told by the session's objects alone, and open no plugin. Where a plugin itself is to be
//! asked, the host does so by the operation [`CONDITION`] of its instance.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ToolName;
use crate::execution::EnvironmentPart;

/// The operation by which a plugin is asked whether a condition of one of its tools holds:
/// [`ConditionRequest`], [`ConditionAnswer`].
pub const CONDITION: &str = "condition";

/// What must be so.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "when", rename_all = "snake_case")]
pub enum Condition {
    /// The session has objects, of whatever tool.
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
    /// The session's execution environment has something.
    #[non_exhaustive]
    EnvironmentHas {
        /// What.
        part: EnvironmentPart,
    },
    /// The session's model can look at something beside text.
    #[non_exhaustive]
    ModelSees {
        /// What.
        what: SeenKind,
    },
    /// The plugin says whether, each time that it matters.
    #[default]
    Asked,
    /// A condition that this side does not know. It never holds: the tool is not offered, and does
    /// not run by itself.
    #[serde(other)]
    Unknown,
}

/// What a model may look at beside text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SeenKind {
    /// Images of some kind.
    Images,
    /// PDF documents.
    Pdf,
    /// Something that this side does not know. No model looks at it.
    #[serde(other)]
    Unknown,
}

impl SeenKind {
    /// Tells whether a media type that a model takes is of this kind: `image/png`, or `image/*`.
    pub fn has(self, media_type: &str) -> bool {
        match self {
            Self::Images => media_type.starts_with("image/"),
            Self::Pdf => matches!(media_type, "application/pdf" | "application/*"),
            Self::Unknown => false,
        }
    }
}

impl fmt::Display for SeenKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Images => "images",
            Self::Pdf => "PDF documents",
            Self::Unknown => "something that this version of jaato does not know",
        })
    }
}

impl Condition {
    /// A tool has objects.
    pub fn objects_of(tool: impl Into<ToolName>) -> Self {
        Self::ObjectsOf { tool: tool.into() }
    }

    /// A tool has no objects.
    pub fn no_objects_of(tool: impl Into<ToolName>) -> Self {
        Self::NoObjectsOf { tool: tool.into() }
    }

    /// The session's execution environment has something.
    pub fn environment_has(part: EnvironmentPart) -> Self {
        Self::EnvironmentHas { part }
    }

    /// The session's model can look at something beside text.
    pub fn model_sees(what: SeenKind) -> Self {
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
            Self::ModelSees { what, .. } => write!(f, "the session's model looks at {what}"),
            Self::Asked => f.write_str("its plugin says so"),
            Self::Unknown => {
                f.write_str("something holds that this version of jaato does not know")
            }
        }
    }
}

/// When a tool is offered to the model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    /// What must be so.
    #[serde(flatten)]
    pub condition: Condition,
    /// Written for a model that wants the tool before: when it will be there, and what to do for
    /// it.
    pub reason: String,
}

impl Offer {
    /// Makes an offer.
    pub fn new(condition: Condition, reason: impl Into<String>) -> Self {
        Self { condition, reason: reason.into() }
    }
}

/// What a condition decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Deciding {
    /// Whether the tool is offered.
    Available,
    /// Whether it runs by itself.
    Run,
    /// What this side does not know: to be answered that it does not hold.
    #[serde(other)]
    Unknown,
}

/// Asks a plugin whether a condition of one of its tools holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ConditionRequest {
    /// The tool.
    pub tool: ToolName,
    /// What it decides.
    pub deciding: Deciding,
}

impl ConditionRequest {
    /// Makes a request; the host does, and tests.
    pub fn new(tool: impl Into<ToolName>, deciding: Deciding) -> Self {
        Self { tool: tool.into(), deciding }
    }
}

/// A plugin's answer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ConditionAnswer {
    /// Whether it holds.
    pub holds: bool,
    /// Why, in place of the reason that the spec gives; for a tool that is not offered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// With which arguments the tool runs by itself; with none where they are absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
}

impl ConditionAnswer {
    /// The condition holds.
    pub fn yes() -> Self {
        Self { holds: true, ..Self::default() }
    }

    /// It does not.
    pub fn no() -> Self {
        Self::default()
    }

    /// Says why.
    #[must_use]
    pub fn because(self, reason: impl Into<String>) -> Self {
        Self { reason: Some(reason.into()), ..self }
    }

    /// Says with which arguments the tool is to run by itself: a JSON object.
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
    fn an_offer_is_a_condition_with_its_reason() {
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
