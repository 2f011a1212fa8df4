//! Messages and their parts: the history of a session and what a provider produces.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::data::{Data, DataContent};
use crate::{CallId, Error, ErrorKind, ToolName, ToolSpec};

/// Who a message is from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The person.
    #[default]
    User,
    /// The model.
    Model,
    /// The results of tool calls.
    Tool,
    /// A role that this side does not know. A gc may look past it; a provider, which cannot say
    /// what such a message says, answers with an error; no history takes it.
    #[serde(other)]
    Unknown,
}

/// One entry of the history.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Who it is from.
    pub role: Role,
    /// What it says, in the order in which it was produced.
    pub parts: Vec<Part>,
}

/// A typed piece of a message. There will be more: a `match` over parts ends with `_`.
///
/// What a model made may carry a *signature*: bytes of its maker, verbatim, that the maker wants
/// back. The host gives signatures and opaque parts back to the provider and model that made them
/// and to nobody else, and drops them where the history before them changed.
#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    /// Text for a person. Two neighbours stay two. An empty one is kept where it is signed.
    #[non_exhaustive]
    Text {
        /// The text.
        text: String,
        /// What the provider wants back with it.
        signature: Option<String>,
    },
    /// The model asks for a tool.
    ToolCall(ToolCall),
    /// What came of a tool call.
    ToolResult(ToolResult),
    /// What is no text: bytes in the session's blob store, or a value that the host tells the
    /// model.
    Data(Data),
    /// The model's reasoning, shown apart from its answer. An empty one is kept where it is signed.
    #[non_exhaustive]
    Thought {
        /// The text.
        text: String,
        /// What the provider wants back with it.
        signature: Option<String>,
    },
    /// What only its maker understands, at its place in the order; never shown.
    Opaque(Opaque),
    /// The tools are others from here on. Only a provider that lists
    /// [`TOOLS_CHANGED`](crate::TOOLS_CHANGED) among its options is sent such a part; for any other
    /// the request's list of tools is the new one.
    ToolsChanged(ToolsChanged),
    /// A type that this side does not know: passed over, and kept as it is, `type` and all, so that
    /// a history gives it back to who understands it.
    Unknown(Map<String, Value>),
}

/// The JSON of those parts that this side knows.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Part", tag = "type", rename_all = "snake_case")]
enum Known {
    #[non_exhaustive]
    Text {
        text: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
    },
    ToolCall(ToolCall),
    ToolResult(ToolResult),
    Data(Data),
    #[non_exhaustive]
    Thought {
        text: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
    },
    Opaque(Opaque),
    ToolsChanged(ToolsChanged),
    #[serde(skip)]
    Unknown(Map<String, Value>),
}

/// The types that are read as parts of their own.
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
            | Self::ToolsChanged(_) => Known::serialize(self, serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Part {
    /// A known type that lacks a field is an error and not unknown.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let part = Map::<String, Value>::deserialize(deserializer)?;
        match part.get("type") {
            Some(Value::String(name)) if !KNOWN_TYPES.contains(&name.as_str()) => {
                Ok(Self::Unknown(part))
            }
            _ => Known::deserialize(Value::Object(part)).map_err(D::Error::custom),
        }
    }
}

/// What only its maker understands.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Opaque {
    /// The provider that made it, as its plugin names it: `openai`. The host writes it.
    pub provider: String,
    /// The model that made it, as its provider names it. The host writes it.
    pub model: String,
    /// The maker's own.
    pub item: Value,
}

/// How the tools of a session became others.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolsChanged {
    /// Tools that may be called from here on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub added: Vec<ToolSpec>,
    /// Tools that cannot be called any more.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<ToolName>,
}

/// A model's wish to use a tool.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Pairs the call with its result; unique within the session.
    pub id: CallId,
    /// The tool.
    pub name: ToolName,
    /// What the model gave. An object when it is valid; whatever it was when it is not.
    pub arguments: Value,
    /// What the provider wants back with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
}

/// What came of a tool call. Each call has exactly one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
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
    /// What the tool attached, in order. The host sends a model that cannot look at one a line of
    /// words in its place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Data>,
}

impl ToolCall {
    /// Makes a call without a signature.
    pub fn new(id: impl Into<CallId>, name: impl Into<ToolName>, arguments: Value) -> Self {
        Self { id: id.into(), name: name.into(), arguments, ..Self::default() }
    }
}

impl ToolResult {
    /// Makes the result of a call that worked, without attachments.
    pub fn new(
        call_id: impl Into<CallId>,
        name: impl Into<ToolName>,
        content: Map<String, Value>,
    ) -> Self {
        Self { call_id: call_id.into(), name: name.into(), content, ..Self::default() }
    }
}

impl Role {
    /// Makes the error of a provider that is given a message of a role that it does not know. Its
    /// kind tells the host to ask in older words.
    pub fn unknown_to_provider() -> Error {
        let text = "a message has a role that this provider does not know";
        Error::new(ErrorKind::UnknownOperation, text).with_hint("update the provider's plugin")
    }
}

impl Message {
    /// Makes a user's message of one text.
    pub fn user(text: impl Into<String>) -> Self {
        Self { role: Role::User, parts: vec![Part::text(text)], ..Self::default() }
    }

    /// Makes a model's message.
    pub fn model(parts: Vec<Part>) -> Self {
        Self { role: Role::Model, parts, ..Self::default() }
    }

    /// Makes the message that answers the tool calls of the model's message before it.
    pub fn tool(results: impl IntoIterator<Item = ToolResult>) -> Self {
        let parts = results.into_iter().map(Part::ToolResult).collect();
        Self { role: Role::Tool, parts, ..Self::default() }
    }

    /// Tells whether a person's prompt begins here: a user's message that holds more than what the
    /// host tells the model. A turn reaches from one prompt to the next.
    pub fn is_prompt(&self) -> bool {
        let from_host = |part: &Part| {
            matches!(part, Part::Data(Data { content: DataContent::Json { .. }, .. }))
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
        Self::Text { text: text.into(), signature: None }
    }

    /// Makes a thought.
    pub fn thought(text: impl Into<String>) -> Self {
        Self::Thought { text: text.into(), signature: None }
    }

    /// Makes a part that only the provider which calls this understands. The host writes down
    /// which provider and model that is, and gives it back to no other.
    pub fn opaque(item: Value) -> Self {
        Self::Opaque(Opaque { item, ..Opaque::default() })
    }

    /// Makes a data part of a value that the host tells the model.
    pub fn json(json: Value) -> Self {
        Self::Data(Data::json(json))
    }

    /// Signs a text, a thought or a call; other parts stay as they are.
    #[must_use]
    pub fn signed(mut self, with: impl Into<String>) -> Self {
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

    /// Returns the place of a signature; nothing where the part can have none.
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

    /// Returns the tool call, if it is one.
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

    /// Returns the tool result, if it is one.
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
    fn kept(json: Value) -> Part {
        let part: Part = serde_json::from_value(json.clone()).unwrap();
        assert_eq!(serde_json::to_string(&part).unwrap(), json.to_string());
        part
    }

    #[test]
    fn a_part_from_the_future_is_kept_as_it_is() {
        let smell = json!({ "type": "smell", "of": "roses", "strength": 0.5, "n": u64::MAX });
        let part = kept(smell.clone());
        assert_eq!(part, Part::Unknown(smell.as_object().unwrap().clone()));
        let message = json!({ "role": "model", "parts": [{ "type": "text", "text": "a" }, smell] });
        let read: Message = serde_json::from_value(message.clone()).unwrap();
        assert_eq!((read.text().as_str(), read.tool_calls().count()), ("a", 0));
        assert_eq!(serde_json::to_value(read).unwrap(), message);
    }

    #[test]
    fn signatures_opaque_parts_and_changes_of_tools_survive_the_way() {
        let part = kept(json!({ "type": "text", "text": "", "signature": "sig" }));
        assert_eq!(part, Part::text("").signed("sig"));
        let call = json!({ "type": "tool_call", "id": "1", "name": "a", "arguments": {}, "signature": "s" });
        assert_eq!(kept(call).signature(), Some("s"));
        let item = json!({ "id": "rs_1", "encrypted_content": "…" });
        let opaque = json!({ "type": "opaque", "provider": "openai", "model": "m", "item": item });
        assert!(matches!(kept(opaque), Part::Opaque(Opaque { item: kept, .. }) if kept == item));
        let changed = json!({ "type": "tools_changed", "removed": ["a"] });
        let removed = vec![ToolName::from("a")];
        let expected = ToolsChanged { removed, ..ToolsChanged::default() };
        assert_eq!(kept(changed), Part::ToolsChanged(expected));
    }

    #[test]
    fn data_in_a_place_from_the_future_is_kept_as_it_is() {
        let place = json!({ "cloud": 9, "drop": [1] });
        let data = json!({ "type": "data", "mime_type": "image/png", "cloud": 9, "drop": [1] });
        let content = DataContent::Unknown(place.as_object().unwrap().clone());
        let expected = Data { mime_type: "image/png".to_owned(), content, ..Data::default() };
        assert_eq!(kept(data), Part::Data(expected));
    }

    #[test]
    fn a_known_part_that_is_wrong_is_an_error_and_not_unknown() {
        for (json, text) in [
            (json!({ "type": "text" }), "missing field `text`"),
            (json!({ "text": "a" }), "missing field `type`"),
            (json!({ "type": 7 }), "expected variant identifier"),
            (json!({ "type": "data", "mime_type": "a/b", "blob": 7 }), "`blob` is no text"),
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
    fn a_role_from_the_future_is_one_that_nobody_knows() {
        let message: Message =
            serde_json::from_value(json!({ "role": "oracle", "parts": [] })).unwrap();
        assert_eq!(message.role, Role::Unknown);
    }
}
