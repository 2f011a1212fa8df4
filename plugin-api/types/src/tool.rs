//! Tool specs: the information about a tool for models and for the host's rules. Also a tool's
//! output.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::data::DataPart;
use crate::{Condition, Offer, ToolName};

/// A tool that a model may use, with the information that the host's rules need.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// The name by which a model calls it.
    pub name: ToolName,
    /// A description for the model: what the tool does, when to use it, and what it returns.
    pub description: String,
    /// JSON Schema of the arguments: an object.
    pub parameters: Value,
    /// The annotations about the tool's effects.
    #[serde(default)]
    pub annotations: Annotations,
    /// The group in lists: `filesystem`, `code`, `search`, `knowledge`, `memory`, `coordination`,
    /// `system`, `web`, `communication`, `prompt`, or the author's own.
    #[serde(default)]
    pub category: String,
    /// Whether each request includes the tool.
    #[serde(default)]
    pub availability: Availability,
    /// Requests that the tool runs without a permission prompt. The user's rules decide; the host
    /// honours it only for plugins that come with jaato.
    #[serde(default)]
    pub auto_approval: bool,
    /// Whether a call that exceeds the user's threshold continues as a background task. The model
    /// first gets a handle, and the outcome in a later message.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub auto_background: bool,
    /// Properties that other plugins look for, such as `file_writer`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub traits: Vec<String>,
    /// Phrases of users with the expected arguments. Tests run them, the documentation shows them,
    /// and the system prompt for small models contains them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<Example>,
    /// When the model is offered the tool. If absent, always. A user may call it at any time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub available_if: Option<Offer>,
    /// Whether the tool was not written by the plugin's author (it comes from a server to which the
    /// plugin connects). Its annotations then never count.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub foreign: bool,
    /// Identifies the program from which a foreign tool comes, such as a digest of an MCP server's
    /// entry. A user's permission applies as long as this, the description and the parameters stay
    /// the same.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub origin: String,
    /// When the tool runs automatically, even if the model is not offered it. If absent, never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_if: Option<Condition>,
    /// Whether the plugin can preview the changes of a call for a permission prompt
    /// ([`PREVIEW`](crate::hooks::PREVIEW)).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub previews: bool,
}

/// A tool's promises about its effects. The defaults are the cautious values, so an absent
/// annotation promises nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Annotations {
    /// The tool changes nothing.
    pub read_only: bool,
    /// The tool may destroy existing data. Has no meaning if `read_only` is set.
    pub destructive: bool,
    /// Repeating a call has no further effect.
    pub idempotent: bool,
    /// The tool interacts with the world outside this machine.
    pub open_world: bool,
    /// Calls may run in parallel. `read_only` implies this.
    pub parallel_safe: bool,
}

impl Default for Annotations {
    fn default() -> Self {
        Self {
            read_only: false,
            destructive: true,
            idempotent: false,
            open_world: true,
            parallel_safe: false,
        }
    }
}

/// Whether a tool is in each request or must be discovered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Availability {
    /// Each request includes the tool.
    Core,
    /// `list_tools` finds the tool, and `get_tool_schemas` or a call activates it.
    #[default]
    #[serde(other)]
    Discoverable,
}

/// A user's phrase with the expected arguments.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Example {
    /// The user's phrase.
    pub phrase: String,
    /// The arguments that the model should pass.
    pub arguments: Map<String, Value>,
}

/// The output of a tool call: a JSON object, and optionally raw bytes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Output {
    /// The content for the model.
    pub content: Map<String, Value>,
    /// Raw bytes. The host stores them in a file of the session and gives the model its path.
    pub bytes: Vec<u8>,
    /// Attachments in order, as blobs of the session. They do not cross the boundary with the
    /// answer: the SDK attaches them after those that the tool attached itself.
    pub attachments: Vec<DataPart>,
}

impl Output {
    /// Creates an output from a JSON value. A value that is not an object is stored under `result`.
    pub fn json(value: Value) -> Self {
        let content = match value {
            Value::Object(content) => content,
            other => Map::from_iter([("result".to_owned(), other)]),
        };
        Self { content, ..Self::default() }
    }

    /// Creates an output from a text, stored under `result`.
    pub fn text(text: impl Into<String>) -> Self {
        Self::json(Value::String(text.into()))
    }
}
