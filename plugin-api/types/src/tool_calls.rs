//! The service `tools.call`: a plugin calls another tool of its session.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Data, ToolName};

/// Calls a tool of the session and waits for its result: [`ToolsCall`], [`ToolsCallAnswer`]. Raw
/// bytes of the result are the answer's bytes.
pub const TOOLS_CALL: &str = "tools.call";

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

impl ToolsCallAnswer {
    /// Makes an answer; the host does.
    pub fn new(content: Map<String, Value>, attachments: Vec<Data>) -> Self {
        Self { content, attachments }
    }
}
