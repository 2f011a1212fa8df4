//! Where servers put what a chunk says. Pure.

use crate::Fragment;
use jaato_plugin_sdk::serde_json::Value;

/// Tells whether a chunk reports an error: in a field of that name, or because it says something
/// and holds nothing of an answer.
pub(crate) fn is_report(chunk: &Value) -> bool {
    let says = |key: &str| chunk[key].is_string();
    let is_bare = chunk.get("choices").is_none() && (says("message") || says("detail"));
    is_said(chunk.get("error")) || chunk["object"].as_str() == Some("error") || is_bare
}

/// Tells whether a field that reports an error does so: some servers send it empty with each chunk.
pub(crate) fn is_said(error: Option<&Value>) -> bool {
    match error {
        None | Some(Value::Null | Value::Bool(false)) => false,
        Some(Value::String(text)) => !text.is_empty(),
        Some(_) => true,
    }
}

/// The choice that counts. One alone does whatever its number: some servers number the chunks.
pub(crate) fn choice_of(chunk: &Value) -> Option<&Value> {
    match chunk["choices"].as_array()?.as_slice() {
        [only] => Some(only),
        several => several.iter().find(|choice| choice["index"].as_u64().unwrap_or(0) == 0),
    }
}

pub(crate) fn fragment<'a>(
    call: &'a Value,
    function: &'a Value,
    arguments: &'a str,
) -> Fragment<'a> {
    let text = |value: &'a Value| value.as_str().unwrap_or_default();
    let (index, id, name) = (call["index"].as_u64(), text(&call["id"]), text(&function["name"]));
    Fragment { index, id, name, arguments }
}

pub(crate) fn arguments_of(function: &Value) -> String {
    match &function["arguments"] {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        // Some servers give the object itself.
        whole => whole.to_string(),
    }
}
