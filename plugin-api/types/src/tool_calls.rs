//! The service `tools.call`, with which a plugin calls another tool of its session.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{DataPart, ToolName};

crate::operations::service_operations! { $ tool_call_operations, Some("tools.call"), answered;
    /// Calls a tool of the session and waits for its result. The bytes are the raw bytes of the
    /// result.
    call TOOLS_CALL "tools.call": ToolsCall => ToolsCallAnswer + bytes;
}

/// The maximum number of calls that one call of a plugin may make. It stops a tool that calls
/// itself in a loop.
pub const CALLS_PER_CALL_MAX: u32 = 200;
/// The maximum number of calls per minute that an instance may make outside its own calls.
pub const CALLS_PER_MINUTE_MAX: u32 = 60;

/// A request to call a tool.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolsCall {
    /// The tool's name.
    pub name: ToolName,
    /// The arguments: an object that matches the tool's schema.
    pub arguments: Value,
}

/// The result of a tool call. A failed call is an error of the service instead.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ToolsCallAnswer {
    /// The result, not truncated for a model.
    pub content: Map<String, Value>,
    /// The tool's attachments: blobs of the session.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<DataPart>,
}

crate::operations::made_by_host!(ToolsCallAnswer(content: Map<String, Value>, attachments: Vec<DataPart>));
