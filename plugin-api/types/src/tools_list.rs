//! The service `tools.list`, which lists the session's tools.

use serde::{Deserialize, Serialize};

use crate::ToolName;

crate::operations::service_operations! { $ tools_list_operations, None, answered;
    /// Lists the tools that may be called in the session, except those of the host. Fails with
    /// `unavailable` outside of a session.
    tools TOOLS_LIST "tools.list": () => ToolsListAnswer, sdk [().tools: Vec<ToolFacts>];
}

/// The tools of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ToolsListAnswer {
    /// The tools, in the order in which a model sees them.
    pub tools: Vec<ToolFacts>,
}

/// Facts about a tool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ToolFacts {
    /// The name.
    pub name: ToolName,
    /// The plugin that provides the tool, as in events.
    pub source: String,
    /// The description.
    pub description: String,
    /// Whether the model's requests include the tool. Otherwise the model can discover it.
    pub is_active: bool,
    /// Whether a long call automatically continues as a background task.
    pub auto_background: bool,
}

crate::operations::made_by_host!(ToolsListAnswer(tools: Vec<ToolFacts>));
