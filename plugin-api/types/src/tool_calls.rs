//! The service `tools.call`: a plugin calls another tool of its session.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Data, ToolName};

crate::operations::service_operations! { $ tool_call_operations, Some("tools.call"), answered;
    /// Calls a tool of the session and waits for its result, with the result's bytes.
    call TOOLS_CALL "tools.call": ToolsCall => ToolsCallAnswer + bytes;
}

/// Most calls that one call of a plugin may make: a loop that calls itself ends.
pub const CALLS_PER_CALL_MAX: u32 = 200;
/// Most calls that an instance may make in a minute outside of its own calls.
pub const CALLS_PER_MINUTE_MAX: u32 = 60;

/// A tool to call.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolsCall {
    /// The tool's name.
    pub name: ToolName,
    /// Its arguments: an object that matches its schema.
    pub arguments: Value,
}

/// What the tool gave. A tool that failed is an error of the service.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ToolsCallAnswer {
    /// The result, whole: no bound for a model was applied.
    pub content: Map<String, Value>,
    /// What the tool attached: blobs of the session.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Data>,
}

crate::operations::made_by_host!(ToolsCallAnswer(content: Map<String, Value>, attachments: Vec<Data>));
