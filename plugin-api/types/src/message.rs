//! Messages and their parts: the history of a session and the output of a provider.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::data::{DataContent, DataPart};
use crate::{CallId, Error, ErrorKind, ToolName, ToolSpec};

/// The sender of a message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The user.
    #[default]
    User,
    /// The model.
    Model,
    /// The host, with the results of tool calls.
    Tool,
    /// A role from a newer version. A gc may ignore such a message. A provider answers with an
    /// error, because it cannot convey the message. No history accepts it.
    #[serde(other)]
    Unknown,
}

/// One entry of the history.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// The sender.
    pub role: Role,
    /// The content, in the order in which it was produced.
    pub parts: Vec<Part>,
}

/// A typed piece of a message. New variants will be added, so end each `match` over parts with `_`.
///
/// Output of a model may carry a *signature*: opaque data that its provider needs back verbatim.
/// The host returns signatures and opaque parts only to the provider and model that created them,
/// and drops them if the history before them changed.
#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    /// Text for the user. Adjacent texts are not merged. An empty text is kept if it has a
    /// signature.
    #[non_exhaustive]
    Text {
        /// The text.
        text: String,
        /// Opaque data that the provider needs back.
        signature: Option<String>,
    },
    /// A tool call of the model.
    ToolCall(ToolCall),
    /// The result of a tool call.
    ToolResult(ToolResult),
    /// Content other than text: a blob in the session's blob store, or a JSON value from the host
    /// to the model.
    Data(DataPart),
    /// The model's reasoning, shown separately from its answer. An empty thought is kept if it has
    /// a signature.
    #[non_exhaustive]
    Thought {
        /// The text.
        text: String,
        /// Opaque data that the provider needs back.
        signature: Option<String>,
    },
    /// Data that only its creator understands, in its position in the order. It is never shown.
    Opaque(OpaqueData),
    /// The tools change from this point on. The host sends this part only to a provider that lists
    /// [`TOOLS_CHANGED`](crate::TOOLS_CHANGED) among its options. For any other provider, it
    /// changes the request's list of tools.
    ToolsChanged(ToolsChanged),
    /// A type from a newer version. It is skipped, but kept unchanged with its `type`, so that the
    /// history returns it to a reader that understands it.
    Unknown(Map<String, Value>),
}

/// The JSON of the known parts.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Part", tag = "type", rename_all = "snake_case")]
enum KnownPart {
    #[non_exhaustive]
    Text {
        text: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
    },
    ToolCall(ToolCall),
    ToolResult(ToolResult),
    Data(DataPart),
    #[non_exhaustive]
    Thought {
        text: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
    },
    Opaque(OpaqueData),
    ToolsChanged(ToolsChanged),
    #[serde(skip)]
    Unknown(Map<String, Value>),
}

/// The names of the known types.
const KNOWN_TYPES: [&str; 7] =
    ["text", "tool_call", "tool_result", "data", "thought", "opaque", "tools_changed"];

impl Serialize for Part {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Unknown(part) => part.serialize(serializer),
            Self::Text { .. }
            | Self::ToolCall(_)
            | Self::ToolResult(_)
            | Self::Data(_)
            | Self::Thought { .. }
            | Self::Opaque(_)
            | Self::ToolsChanged(_) => KnownPart::serialize(self, serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Part {
    /// A known type with a missing field is an error, not an unknown part.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let part = Map::<String, Value>::deserialize(deserializer)?;
        match part.get("type") {
            Some(Value::String(name)) if !KNOWN_TYPES.contains(&name.as_str()) => {
                Ok(Self::Unknown(part))
            }
            _ => KnownPart::deserialize(Value::Object(part)).map_err(D::Error::custom),
        }
    }
}

/// Data that only its creator understands.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OpaqueData {
    /// The provider that created it, by its plugin's name for it: `openai`. The host sets it.
    pub provider: String,
    /// The model that created it, by its provider's name for it. The host sets it.
    pub model: String,
    /// The data.
    pub item: Value,
}

/// A change to the tools of a session.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolsChanged {
    /// Tools that become available.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub added: Vec<ToolSpec>,
    /// Tools that become unavailable.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<ToolName>,
}

/// A model's request to use a tool.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The id that pairs the call with its result, unique within the session.
    pub id: CallId,
    /// The tool.
    pub name: ToolName,
    /// The arguments from the model: an object if they are valid, otherwise any value.
    pub arguments: Value,
    /// Opaque data that the provider needs back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
}

/// The result of a tool call. Each call has exactly one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The call.
    pub call_id: CallId,
    /// The tool.
    pub name: ToolName,
    /// The result, a JSON object.
    pub content: Map<String, Value>,
    /// Whether the result is an error.
    #[serde(default)]
    pub is_error: bool,
    /// The tool's attachments, in order. For a model that does not accept the media type, the host
    /// replaces an attachment by a line of text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<DataPart>,
}

impl ToolCall {
    /// Creates a call without a signature.
    pub fn new(id: impl Into<CallId>, name: impl Into<ToolName>, arguments: Value) -> Self {
        Self { id: id.into(), name: name.into(), arguments, ..Self::default() }
    }
}

impl ToolResult {
    /// Creates the result of a successful call, without attachments.
    pub fn new(
        call_id: impl Into<CallId>,
        name: impl Into<ToolName>,
        content: Map<String, Value>,
    ) -> Self {
        Self { call_id: call_id.into(), name: name.into(), content, ..Self::default() }
    }
}

impl Role {
    /// Creates the error of a provider that gets a message with an unknown role. Its kind tells the
    /// host to send the request in an older format.
    pub fn unknown_role_error() -> Error {
        let text = "a message has a role that this provider does not know";
        Error::new(ErrorKind::UnknownOperation, text).with_hint("update the provider's plugin")
    }
}

impl Message {
    /// Creates a user message with one text.
    pub fn user(text: impl Into<String>) -> Self {
        Self { role: Role::User, parts: vec![Part::text(text)], ..Self::default() }
    }

    /// Creates a model message.
    pub fn model(parts: Vec<Part>) -> Self {
        Self { role: Role::Model, parts, ..Self::default() }
    }

    /// Creates the message with the results for the tool calls of the preceding model message.
    pub fn tool(results: impl IntoIterator<Item = ToolResult>) -> Self {
        let parts = results.into_iter().map(Part::ToolResult).collect();
        Self { role: Role::Tool, parts, ..Self::default() }
    }

    /// Returns true if the message is a prompt: a user message with more than data from the host. A
    /// turn extends from one prompt to the next.
    pub fn is_prompt(&self) -> bool {
        let from_host = |part: &Part| {
            matches!(part, Part::Data(DataPart { content: DataContent::Json { .. }, .. }))
        };
        self.role == Role::User && !self.parts.iter().all(from_host)
    }

    /// Joins the text parts.
    pub fn text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            Part::Text { text, .. } => Some(text.as_str()),
            Part::ToolCall(_)
            | Part::ToolResult(_)
            | Part::Data(_)
            | Part::Thought { .. }
            | Part::Opaque(_)
            | Part::ToolsChanged(_)
            | Part::Unknown(_) => None,
        });
        texts.collect()
    }

    /// Returns the tool calls, in order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.parts.iter().filter_map(Part::as_tool_call)
    }

    /// Returns the tool results, in order.
    pub fn tool_results(&self) -> impl Iterator<Item = &ToolResult> {
        self.parts.iter().filter_map(Part::as_tool_result)
    }
}

impl Part {
    /// Creates a text part.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into(), signature: None }
    }

    /// Creates a thought part.
    pub fn thought(text: impl Into<String>) -> Self {
        Self::Thought { text: text.into(), signature: None }
    }

    /// Creates an opaque part, which only the calling provider understands. The host records the
    /// provider and model, and returns the part to no other.
    pub fn opaque(item: Value) -> Self {
        Self::Opaque(OpaqueData { item, ..OpaqueData::default() })
    }

    /// Creates a data part from a JSON value of the host for the model.
    pub fn json(json: Value) -> Self {
        Self::Data(DataPart::json(json))
    }

    /// Adds a signature to a text, a thought or a call. Other parts stay unchanged.
    #[must_use]
    pub fn with_signature(mut self, with: impl Into<String>) -> Self {
        if let Some(place) = self.signature_mut() {
            *place = Some(with.into());
        }
        self
    }

    /// Returns the signature of a text, a thought or a call.
    pub fn signature(&self) -> Option<&str> {
        match self {
            Self::Text { signature, .. } | Self::Thought { signature, .. } => signature.as_deref(),
            Self::ToolCall(call) => call.signature.as_deref(),
            Self::ToolResult(_)
            | Self::Data(_)
            | Self::Opaque(_)
            | Self::ToolsChanged(_)
            | Self::Unknown(_) => None,
        }
    }

    /// Returns the mutable signature. `None` if the part cannot have one.
    pub fn signature_mut(&mut self) -> Option<&mut Option<String>> {
        match self {
            Self::Text { signature, .. } | Self::Thought { signature, .. } => Some(signature),
            Self::ToolCall(call) => Some(&mut call.signature),
            Self::ToolResult(_)
            | Self::Data(_)
            | Self::Opaque(_)
            | Self::ToolsChanged(_)
            | Self::Unknown(_) => None,
        }
    }

    /// Returns the tool call, if the part is one.
    pub fn as_tool_call(&self) -> Option<&ToolCall> {
        match self {
            Self::ToolCall(call) => Some(call),
            Self::Text { .. }
            | Self::ToolResult(_)
            | Self::Data(_)
            | Self::Thought { .. }
            | Self::Opaque(_)
            | Self::ToolsChanged(_)
            | Self::Unknown(_) => None,
        }
    }

    /// Returns the tool result, if the part is one.
    pub fn as_tool_result(&self) -> Option<&ToolResult> {
        match self {
            Self::ToolResult(result) => Some(result),
            Self::Text { .. }
            | Self::ToolCall(_)
            | Self::Data(_)
            | Self::Thought { .. }
            | Self::Opaque(_)
            | Self::ToolsChanged(_)
            | Self::Unknown(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn round_trip(json: Value) -> Part {
        let part: Part = serde_json::from_value(json.clone()).unwrap();
        assert_eq!(serde_json::to_string(&part).unwrap(), json.to_string());
        part
    }

    #[test]
    fn unknown_part_is_kept_unchanged() {
        let smell = json!({ "type": "smell", "of": "roses", "strength": 0.5, "n": u64::MAX });
        let part = round_trip(smell.clone());
        assert_eq!(part, Part::Unknown(smell.as_object().unwrap().clone()));
        let message = json!({ "role": "model", "parts": [{ "type": "text", "text": "a" }, smell] });
        let read: Message = serde_json::from_value(message.clone()).unwrap();
        assert_eq!((read.text().as_str(), read.tool_calls().count()), ("a", 0));
        assert_eq!(serde_json::to_value(read).unwrap(), message);
    }

    #[test]
    fn signatures_opaque_parts_and_tool_changes_survive_a_round_trip() {
        let part = round_trip(json!({ "type": "text", "text": "", "signature": "sig" }));
        assert_eq!(part, Part::text("").with_signature("sig"));
        let call = json!({ "type": "tool_call", "id": "1", "name": "a", "arguments": {}, "signature": "s" });
        assert_eq!(round_trip(call).signature(), Some("s"));
        let item = json!({ "id": "rs_1", "encrypted_content": "…" });
        let opaque = json!({ "type": "opaque", "provider": "openai", "model": "m", "item": item });
        assert!(
            matches!(round_trip(opaque), Part::Opaque(OpaqueData { item: kept, .. }) if kept == item)
        );
        let changed = json!({ "type": "tools_changed", "removed": ["a"] });
        let removed = vec![ToolName::from("a")];
        let expected = ToolsChanged { removed, ..ToolsChanged::default() };
        assert_eq!(round_trip(changed), Part::ToolsChanged(expected));
    }

    #[test]
    fn data_with_unknown_content_is_kept_unchanged() {
        let place = json!({ "cloud": 9, "drop": [1] });
        let data = json!({ "type": "data", "mime_type": "image/png", "cloud": 9, "drop": [1] });
        let content = DataContent::Unknown(place.as_object().unwrap().clone());
        let expected =
            DataPart { mime_type: "image/png".to_owned(), content, ..DataPart::default() };
        assert_eq!(round_trip(data), Part::Data(expected));
    }

    #[test]
    fn a_known_part_that_is_wrong_is_an_error_and_not_unknown() {
        for (json, text) in [
            (json!({ "type": "text" }), "missing field `text`"),
            (json!({ "text": "a" }), "missing field `type`"),
            (json!({ "type": 7 }), "expected variant identifier"),
            (json!({ "type": "data", "mime_type": "a/b", "blob": 7 }), "`blob` is not a string"),
            (json!({ "type": "data", "blob": "b" }), "missing field `mime_type`"),
        ] {
            let error = serde_json::from_value::<Part>(json).unwrap_err().to_string();
            assert!(error.contains(text), "{error}");
        }
    }

    #[test]
    fn every_known_type_is_read_as_itself() {
        for name in KNOWN_TYPES {
            let part = serde_json::from_value::<Part>(json!({ "type": name }));
            assert!(!matches!(part, Ok(Part::Unknown(_))), "{name}");
        }
    }

    #[test]
    fn unknown_role_is_read_as_unknown() {
        let message: Message =
            serde_json::from_value(json!({ "role": "oracle", "parts": [] })).unwrap();
        assert_eq!(message.role, Role::Unknown);
    }
}
