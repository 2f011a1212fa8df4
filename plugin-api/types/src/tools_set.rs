//! The service `tools.set`: a plugin whose tools change while it runs.

use serde::{Deserialize, Serialize};

use crate::{CommandSpec, ToolSpec};

/// Replaces what the plugin has set before: [`ToolsSet`], [`ToolsSetAnswer`]. What its code
/// declares stays as it is.
pub const TOOLS_SET: &str = "tools.set";

/// How long a plugin waits between two changes, in milliseconds.
pub const TOOLS_SET_INTERVAL_MS: u64 = 1_000;

/// What a plugin offers from the next turn on, besides what its code declares. An instance of a
/// session sets it for that session, a host-wide one for all.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolsSet {
    /// Its tools, at most 1,000. A name that is taken, or that nobody could call, costs that tool
    /// alone.
    pub tools: Vec<ToolSpec>,
    /// What the model is told about them, with its next message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Its commands.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<CommandSpec>,
}

/// What became of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ToolsSetAnswer {
    /// Tools that are offered from the next turn on.
    pub tools: u64,
    /// What is left out, each with the reason; the first 20.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<RefusedTool>,
}

/// A tool or a command that is left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct RefusedTool {
    /// Its name.
    pub name: String,
    /// Why.
    pub why: String,
}

impl ToolsSetAnswer {
    /// Makes an answer; the host does.
    pub fn new(tools: u64, refused: Vec<RefusedTool>) -> Self {
        Self { tools, refused }
    }
}

impl RefusedTool {
    /// Makes one; the host does.
    pub fn new(name: impl Into<String>, why: impl Into<String>) -> Self {
        Self { name: name.into(), why: why.into() }
    }
}
