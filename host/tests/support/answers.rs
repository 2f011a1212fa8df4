//! Answers of a scripted model.

use serde_json::{Value, json};

/// Calls a tool.
pub fn call(name: &str, arguments: Value) -> Value {
    json!({ "steps": [{ "call": { "name": name, "arguments": arguments } }] })
}

/// Says a text.
pub fn says(text: &str) -> Value {
    json!({ "steps": [{ "text": text }] })
}

/// An answer to a request that must hold something: what of it, and what there.
pub fn told(what: &str, wanted: &str, then: Value) -> Value {
    let mut answer = then;
    answer["expect"] = json!({ what: wanted });
    answer
}
