//! Finds the fields of a chunk where different servers put them. Pure.

use crate::CallFragment;
use jaato_plugin_sdk::serde_json::{self, Map, Value};
use jaato_plugin_sdk::types::ToolCall;

/// Returns true if a chunk reports an error: in an `error` field, or with a message but no part of
/// an answer.
pub(crate) fn is_error_report(chunk: &Value) -> bool {
    let says = |key: &str| chunk[key].is_string();
    let is_bare = chunk.get("choices").is_none() && (says("message") || says("detail"));
    is_error_reported(chunk.get("error")) || chunk["object"].as_str() == Some("error") || is_bare
}

/// Returns true if the `error` field holds an error. Some servers send it empty with each chunk.
pub(crate) fn is_error_reported(error: Option<&Value>) -> bool {
    match error {
        None | Some(Value::Null | Value::Bool(false)) => false,
        Some(Value::String(text)) => !text.is_empty(),
        Some(_) => true,
    }
}

/// Returns the choice to read. A single choice counts regardless of its index, because some servers
/// number the chunks.
pub(crate) fn chunk_choice(chunk: &Value) -> Option<&Value> {
    match chunk["choices"].as_array()?.as_slice() {
        [only] => Some(only),
        several => several.iter().find(|choice| choice["index"].as_u64().unwrap_or(0) == 0),
    }
}

/// The fields of a call that its server needs back. Google's endpoint and LiteLLM put the signature
/// of a Gemini model's thought there, and reject a conversation without it.
const KEPT: [&str; 2] = ["extra_content", "provider_specific_fields"];

/// The text fields of a call's piece.
pub(crate) struct ChunkTextFields {
    arguments: String,
    signature: String,
}

impl ChunkTextFields {
    pub(crate) fn from_call(call: &Value, function: &Value) -> Self {
        let kept = KEPT.iter().filter_map(|key| Some((*key, call.get(*key)?)));
        let kept = kept.filter(|(_, value)| value.as_object().is_some_and(|it| !it.is_empty()));
        let kept: Map<_, _> = kept.map(|(key, value)| (key.to_owned(), value.clone())).collect();
        let signature =
            if kept.is_empty() { String::new() } else { Value::Object(kept).to_string() };
        Self { arguments: arguments_text(function), signature }
    }

    pub(crate) fn call_fragment<'a>(
        &'a self,
        call: &'a Value,
        function: &'a Value,
    ) -> CallFragment<'a> {
        let text = |value: &'a Value| value.as_str().unwrap_or_default();
        CallFragment {
            index: call["index"].as_u64(),
            id: text(&call["id"]),
            name: text(&function["name"]),
            arguments: &self.arguments,
            signature: &self.signature,
        }
    }
}

/// Returns the fields to send back with a call. Signatures of other protocols contain none.
pub(crate) fn signature_fields(call: &ToolCall) -> impl Iterator<Item = (String, Value)> {
    let signature = call.signature.as_deref().unwrap_or_default();
    let kept: Map<String, Value> = serde_json::from_str(signature).unwrap_or_default();
    kept.into_iter().filter(|(key, _)| KEPT.contains(&key.as_str()))
}

fn arguments_text(function: &Value) -> String {
    match &function["arguments"] {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        // Some servers send the object itself.
        whole => whole.to_string(),
    }
}
