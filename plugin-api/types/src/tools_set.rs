//! The service `tools.set`, for plugins whose tools change while they run.

use serde::{Deserialize, Serialize};

use crate::{CommandSpec, ToolSpec};

crate::operations::service_operations! { $ tools_set_operations, None, answered;
    /// Sets the tools and commands that the plugin offers in addition to those declared in its
    /// code, and replaces those that it set before. New tools become available with the next step,
    /// all other changes with the next turn. This is for plugins with `tools: dynamic`, whose
    /// `State::call_tool` runs the tools. An instance of a session sets them for that session, a
    /// host-wide instance for all sessions. Fails with `limit_reached` at the sixth change without
    /// a pause of one second.
    set_tools TOOLS_SET "tools.set": ToolsSet => ToolsSetAnswer, sdk [(&ToolsSet)];
}

/// The minimum time between two changes, in milliseconds, after [`TOOLS_SET_BURST`] changes without
/// such a pause.
pub const TOOLS_SET_INTERVAL_MS: u64 = 1_000;

/// The number of changes that a plugin may make without a pause, because several sources may become
/// ready one after the other while it starts.
pub const TOOLS_SET_BURST: u32 = 5;

/// Asks a plugin for tools that it has not set yet. Takes [`ToolsAwaited`], returns
/// [`ToolsMissing`]. The host calls it on plugins whose description has `tool_prefixes`. The answer
/// comes when nothing is pending, or after `wait_ms`.
pub const AWAIT_TOOLS: &str = "await_tools";

/// The tools for which the host waits.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ToolsAwaited {
    /// Names of tools. A `*` at the end matches any suffix. An empty list means all tools.
    pub names: Vec<String>,
    /// The maximum wait for the answer, in milliseconds.
    pub wait_ms: u64,
    /// Whether the host is about to exit. The plugin then starts nothing, and reports as pending
    /// only work that must not be interrupted, such as an installation.
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
    /// Sources of tools that failed. The host shows the reason to callers of their tools.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<ToolSource>,
}

/// A source of tools for a plugin, such as a server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolSource {
    /// The name for users, such as ``MCP server `git` ``.
    pub label: String,
    /// The prefix of its tool names.
    pub prefix: String,
    /// The current activity or the reason for the failure, in one line.
    pub note: String,
    /// What the user can do about the problem.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// The tools and commands of a plugin in addition to those declared in its code. New tools are
/// added with the next step; changes and removals wait for the next turn. A session's instance sets
/// them for that session, a host-wide instance for all sessions.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolsSet {
    /// The tools, at most 1,000. A tool whose name is taken or not callable is refused, without
    /// affecting the others.
    pub tools: Vec<ToolSpec>,
    /// Instructions about the tools, which the model gets with its next message. The same text is
    /// sent only once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// The commands.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<CommandSpec>,
    /// Notices for the user, one line each, at most 40. Each one is shown once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
}

/// The result of setting tools.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ToolsSetAnswer {
    /// The number of tools that are offered.
    pub tools: u64,
    /// The refused tools and commands with the reasons, at most 20.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<RefusedTool>,
}

/// A refused tool or command.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct RefusedTool {
    /// The name.
    pub name: String,
    /// The reason.
    pub why: String,
}

impl ToolsAwaited {
    /// Creates a request for the tools with these names. Only the host and tests need this.
    pub fn new(names: Vec<String>, wait_ms: u64) -> Self {
        Self { names, wait_ms, is_ending: false }
    }

    /// Creates a request for work that must not be interrupted when the host exits.
    pub fn before_exit(wait_ms: u64) -> Self {
        Self { names: Vec::new(), wait_ms, is_ending: true }
    }

    /// Returns true if the awaited tools may include some with this name prefix.
    pub fn is_awaiting_prefix(&self, prefix: &str) -> bool {
        let is_wanted = |name: &String| match name.strip_suffix('*') {
            Some(beginning) => beginning.starts_with(prefix) || prefix.starts_with(beginning),
            None => name.starts_with(prefix),
        };
        self.names.is_empty() || self.names.iter().any(is_wanted)
    }
}

impl ToolsMissing {
    /// Creates an answer.
    pub fn new(pending: Vec<ToolSource>, failed: Vec<ToolSource>) -> Self {
        Self { pending, failed }
    }
}

crate::operations::made_by_host!(ToolsSetAnswer(tools: u64, refused: Vec<RefusedTool>));

crate::operations::made_by_host!(RefusedTool(name: impl Into<String>, why: impl Into<String>));
