//! The service `tools.set`: a plugin whose tools change while it runs.

use serde::{Deserialize, Serialize};

use crate::{CommandSpec, ToolSpec};

crate::operations::service_operations! { $ tools_set_operations, None, answered;
    /// Sets tools and commands that the plugin offers besides those that its code declares, and
    /// replaces those that it set before. New tools join with the next step, and all other changes
    /// with the next turn. This is for plugins with `tools: dynamic`, whose `State::call_tool` runs
    /// them. An instance of a session sets them for that session, a host-wide one for all. The
    /// error is `limit_reached` for the sixth change without a pause of a second.
    set_tools TOOLS_SET "tools.set": ToolsSet => ToolsSetAnswer, sdk [(&ToolsSet)];
}

/// How long a plugin waits between two changes, in milliseconds, once it has made
/// [`TOOLS_SET_BURST`] without such a pause.
pub const TOOLS_SET_INTERVAL_MS: u64 = 1_000;

/// Changes that a plugin may make without a pause: while it starts, several sources come up one
/// after the other.
pub const TOOLS_SET_BURST: u32 = 5;

/// Asks a plugin for tools that it has not set yet: [`ToolsAwaited`], [`ToolsMissing`]. The host
/// asks the plugins whose description has `tool_prefixes`. The answer comes when nothing is pending
/// any more, or after `wait_ms`.
pub const AWAIT_TOOLS: &str = "await_tools";

/// Which tools the host waits for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ToolsAwaited {
    /// Names of tools. A `*` at the end matches any rest. An empty list means all tools.
    pub names: Vec<String>,
    /// The longest time that the answer may take, in milliseconds.
    pub wait_ms: u64,
    /// Whether the host is about to end. The plugin starts nothing then, and reports as pending
    /// what must not be interrupted, such as an installation.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_ending: bool,
}

/// Tools that are not set yet.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ToolsMissing {
    /// Sources of tools that are still starting. The host keeps waiting for them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pending: Vec<ToolSource>,
    /// Sources of tools that failed. The host shows the reason to whoever calls their tools.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<ToolSource>,
}

/// A source of tools that a plugin sets, for example a server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolSource {
    /// The name that users know it by, such as ``MCP server `git` ``.
    pub label: String,
    /// How the names of its tools begin.
    pub prefix: String,
    /// What it does at the moment, or why it failed, in one line.
    pub note: String,
    /// What the user can do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// What a plugin offers besides what its code declares. New tools join with the next step; tools
/// that changed or went wait for the next turn. An instance of a session sets it for that session,
/// a host-wide one for all.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolsSet {
    /// Its tools, at most 1,000. A name that is taken, or that nobody could call, costs that tool
    /// alone.
    pub tools: Vec<ToolSpec>,
    /// What the model is told about them, with its next message; the same text is told once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Its commands.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<CommandSpec>,
    /// What the user is told about them, a line each, at most 40. Each line is shown once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
}

/// What became of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ToolsSetAnswer {
    /// Tools that are offered.
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

impl ToolsAwaited {
    /// Waits for the tools of these names; the host does, and tests.
    pub fn new(names: Vec<String>, wait_ms: u64) -> Self {
        Self { names, wait_ms, is_ending: false }
    }

    /// Asks for what must not be interrupted when the host ends.
    pub fn ending(wait_ms: u64) -> Self {
        Self { names: Vec::new(), wait_ms, is_ending: true }
    }

    /// Returns true if tools whose names begin so may be among those that are waited for.
    pub fn wants(&self, prefix: &str) -> bool {
        let is_wanted = |name: &String| match name.strip_suffix('*') {
            Some(beginning) => beginning.starts_with(prefix) || prefix.starts_with(beginning),
            None => name.starts_with(prefix),
        };
        self.names.is_empty() || self.names.iter().any(is_wanted)
    }
}

impl ToolsMissing {
    /// Makes an answer.
    pub fn new(pending: Vec<ToolSource>, failed: Vec<ToolSource>) -> Self {
        Self { pending, failed }
    }
}

crate::operations::made_by_host!(ToolsSetAnswer(tools: u64, refused: Vec<RefusedTool>));

crate::operations::made_by_host!(RefusedTool(name: impl Into<String>, why: impl Into<String>));
