//! The service `tools.list`: which tools the session has.

use serde::{Deserialize, Serialize};

use crate::ToolName;

crate::operations::service_operations! { $ tools_list_operations, None, answered;
    /// Lists the tools that may be called in the session. The error is `unavailable` if there is no
    /// session.
    tools TOOLS_LIST "tools.list": () => ToolsListAnswer, sdk [().tools: Vec<ToolFacts>];
}

/// The tools of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ToolsListAnswer {
    /// In the order in which a model is shown them.
    pub tools: Vec<ToolFacts>,
}

/// What is known of a tool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ToolFacts {
    /// Its name.
    pub name: ToolName,
    /// The plugin that it comes from, as events name it.
    pub source: String,
    /// What it does.
    pub description: String,
    /// Whether the model has it in its requests; else it finds it when it looks for it.
    pub is_active: bool,
    /// Whether a call of it goes on as a task by itself when it takes long.
    pub auto_background: bool,
}

crate::operations::made_by_host!(ToolsListAnswer(tools: Vec<ToolFacts>));
