//! Messages and their parts: the history of a session and what a provider produces.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{CallId, ToolName};

/// Who a message is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The person.
    User,
    /// The model.
    Model,
    /// The results of tool calls.
    Tool,
}

/// One entry of the history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Who it is from.
    pub role: Role,
    /// What it says, in the order in which it was produced.
    pub parts: Vec<Part>,
}

/// A typed piece of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Part {
    /// Text for a person.
    Text {
        /// The text.
        text: String,
    },
    /// The model asks for a tool.
    ToolCall(ToolCall),
    /// What came of a tool call.
    ToolResult(ToolResult),
    /// What is no text: bytes in the session's blob store, or a value that the host tells the model.
    Data(Data),
    /// The model's reasoning, shown apart from its answer.
    Thought {
        /// The text.
        text: String,
        /// What the provider wants back with it, verbatim.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
    },
}

/// What is no text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Data {
    /// Media type, such as `image/png`.
    pub mime_type: String,
    /// The bytes' place, or the value.
    #[serde(flatten)]
    pub content: DataContent,
}

/// Where the content of a data part is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum DataContent {
    /// In the session's blob store.
    Blob {
        /// Its id.
        blob: String,
    },
    /// Here: what the host itself tells the model, such as the outcome of a task. A provider without data
    /// parts sends it as text.
    Json {
        /// The value.
        json: Value,
    },
}

/// A model's wish to use a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Pairs the call with its result; unique within the session.
    pub id: CallId,
    /// The tool.
    pub name: ToolName,
    /// What the model gave. An object when it is valid; whatever it was when it is not.
    pub arguments: Value,
}

/// What came of a tool call. Each call has exactly one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The call.
    pub call_id: CallId,
    /// The tool.
    pub name: ToolName,
    /// A JSON object.
    pub content: Map<String, Value>,
    /// Whether it is an error.
    #[serde(default)]
    pub is_error: bool,
}

impl Message {
    /// Makes a user's message of one text.
    pub fn user(text: impl Into<String>) -> Self {
        Self { role: Role::User, parts: vec![Part::text(text)] }
    }

    /// Makes a model's message.
    pub fn model(parts: Vec<Part>) -> Self {
        Self { role: Role::Model, parts }
    }

    /// Makes the message that answers the tool calls of the model's message before it.
    pub fn tool(results: impl IntoIterator<Item = ToolResult>) -> Self {
        Self { role: Role::Tool, parts: results.into_iter().map(Part::ToolResult).collect() }
    }

    /// Tells whether a person's prompt begins here: a user's message that holds more than what the host
    /// tells the model. A turn reaches from one prompt to the next.
    pub fn is_prompt(&self) -> bool {
        let from_host = |part: &Part| {
            matches!(part, Part::Data(Data { content: DataContent::Json { .. }, .. }))
        };
        self.role == Role::User && !self.parts.iter().all(from_host)
    }

    /// Joins the text parts.
    pub fn text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            Part::Text { text } => Some(text.as_str()),
            Part::ToolCall(_) | Part::ToolResult(_) | Part::Data(_) | Part::Thought { .. } => None,
        });
        texts.collect()
    }

    /// Lists the tool calls, in order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.parts.iter().filter_map(Part::as_tool_call)
    }

    /// Lists the tool results, in order.
    pub fn tool_results(&self) -> impl Iterator<Item = &ToolResult> {
        self.parts.iter().filter_map(Part::as_tool_result)
    }
}

impl Part {
    /// Makes a text part.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }

    /// Makes a data part of a value that the host tells the model.
    pub fn json(json: Value) -> Self {
        let mime_type = "application/json".to_owned();
        Self::Data(Data { mime_type, content: DataContent::Json { json } })
    }

    /// Returns the tool call, if it is one.
    pub fn as_tool_call(&self) -> Option<&ToolCall> {
        match self {
            Self::ToolCall(call) => Some(call),
            Self::Text { .. } | Self::ToolResult(_) | Self::Data(_) | Self::Thought { .. } => None,
        }
    }

    /// Returns the tool result, if it is one.
    pub fn as_tool_result(&self) -> Option<&ToolResult> {
        match self {
            Self::ToolResult(result) => Some(result),
            Self::Text { .. } | Self::ToolCall(_) | Self::Data(_) | Self::Thought { .. } => None,
        }
    }
}
