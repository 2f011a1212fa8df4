//! Answers of a scripted model.

use serde_json::{Value, json};

/// Calls a tool.
pub fn call_answer(name: &str, arguments: Value) -> Value {
    json!({ "steps": [{ "call": { "name": name, "arguments": arguments } }] })
}

/// Returns a text.
pub fn text_answer(text: &str) -> Value {
    json!({ "steps": [{ "text": text }] })
}

/// Returns an answer with an expectation: which part of the request must contain which text.
pub fn with_expectation(what: &str, wanted: &str, then: Value) -> Value {
    let mut answer = then;
    answer["expect"] = json!({ what: wanted });
    answer
}
