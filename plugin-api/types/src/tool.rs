//! Tool specs: what a model and the host's rules know of a tool; and a tool's output.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::data::Data;
use crate::{Condition, Offer, ToolName};

/// What a model may use, and what the host's rules need to know of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// The name by which a model calls it.
    pub name: ToolName,
    /// Written for a model: what it does, when to use it, what it returns.
    pub description: String,
    /// JSON Schema of the arguments: an object.
    pub parameters: Value,
    /// What the tool promises of its effects.
    #[serde(default)]
    pub annotations: Annotations,
    /// Groups tools in lists: `filesystem`, `code`, `search`, `knowledge`, `memory`,
    /// `coordination`, `system`, `web`, `communication`, `prompt`, or an author's own.
    #[serde(default)]
    pub category: String,
    /// Whether it stands in every request.
    #[serde(default)]
    pub availability: Availability,
    /// Asks to be run without a question. The user's rules decide; the host honours it for shipped
    /// plugins.
    #[serde(default)]
    pub auto_approval: bool,
    /// Whether a call that runs longer than the user's threshold goes on as a task: the model is
    /// given a handle in its place, and the outcome in a later message.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub auto_background: bool,
    /// Properties that other plugins look for, such as `file_writer`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub traits: Vec<String>,
    /// Phrases of a person and the arguments that they should give: tests run them, docs show them,
    /// and the prompt of small models is made of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<Example>,
    /// When it is offered to the model; always where this is absent. A person may call it at any
    /// time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub available_if: Option<Offer>,
    /// Whether somebody else than the plugin's author wrote it (a server that the plugin talks to):
    /// its annotations then never count.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub foreign: bool,
    /// What tells the program apart from which a foreign tool comes, such as a digest of an MCP
    /// server's entry. A user's answer allows calls while this, the description and the parameters
    /// stay the same.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub origin: String,
    /// When it runs by itself, whether it is offered or not; never where this is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_if: Option<Condition>,
    /// Whether its plugin is asked what a call would change, before a person is asked whether it
    /// may run ([`PREVIEW`](crate::hooks::PREVIEW)).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub previews: bool,
}

/// What a tool promises of its effects. Absent means no promise, so the defaults are the careful
/// side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Annotations {
    /// Changes nothing.
    pub read_only: bool,
    /// May destroy what was there. Meaningless when read-only.
    pub destructive: bool,
    /// Doing it twice is doing it once.
    pub idempotent: bool,
    /// Reaches beyond this machine.
    pub open_world: bool,
    /// Calls may run side by side. Read-only implies it.
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

/// Whether a tool stands in every request or is found on demand.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Availability {
    /// In every request.
    Core,
    /// Found by `list_tools`, activated by `get_tool_schemas` or by a call.
    #[default]
    #[serde(other)]
    Discoverable,
}

/// A person's phrase and the arguments that it should give.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Example {
    /// What a person says.
    pub phrase: String,
    /// The arguments that the model should give.
    pub arguments: Map<String, Value>,
}

/// What a tool call gives: a JSON object, and raw bytes where there are any.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Output {
    /// What the model sees.
    pub content: Map<String, Value>,
    /// Raw bytes beside it; the host keeps them in a file of the session and tells the model where.
    pub bytes: Vec<u8>,
    /// What was attached, in order, as blobs of the session. They do not cross with the answer: the
    /// sdk attaches those that a tool leaves here, behind those that it attached itself.
    pub attachments: Vec<Data>,
}

impl Output {
    /// Makes an output of a JSON value; what is no object is put under `result`.
    pub fn json(value: Value) -> Self {
        let content = match value {
            Value::Object(content) => content,
            other => Map::from_iter([("result".to_owned(), other)]),
        };
        Self { content, ..Self::default() }
    }

    /// Makes an output of one text, under `result`.
    pub fn text(text: impl Into<String>) -> Self {
        Self::json(Value::String(text.into()))
    }
}
