//! The history, as the vendor takes it. Pure.
//!
//! Invariants: the user's and the model's contents take turns, beginning with the user; all results
//! of an answer stand first in one content, in the order of its calls; no content is empty. What is
//! written of a message depends on nothing that comes after it.

use jaato_plugin_sdk::Result;
use jaato_plugin_sdk::serde_json::{Value, json};
use jaato_plugin_sdk::types::{Message, Part, Request, Role, ToolResult};

use crate::content::{Writing, text};

/// Stands where a content must be and has nothing to say.
const NOTHING: &str = "(nothing)";

/// The signature of a call that has none, as one that another vendor's model made, for models that
/// refuse such a history. The vendor's own word:
/// <https://ai.google.dev/gemini-api/docs/thought-signatures>.
pub const UNSIGNED: &str = "skip_thought_signature_validator";

/// A content on its way.
#[derive(Debug)]
enum Turn {
    /// The user's: results, then what else is said and shown.
    User { results: Vec<Value>, said: Vec<Value> },
    /// The model's.
    Model(Vec<Value>),
}

/// Lays the messages of a request out as contents. `first` is said before all else, where the model
/// has no other place for it.
///
/// # Errors
/// `unknown_operation` for a message of a role from the future.
pub(crate) fn contents(
    request: &Request,
    first: &str,
    writing: &Writing<'_>,
) -> Result<Vec<Value>> {
    let mut turns =
        vec![Turn::User { results: Vec::new(), said: text(first).into_iter().collect() }];
    let mut calls: Vec<&str> = Vec::new();
    for message in &request.messages {
        match message.role {
            Role::User | Role::Tool => add_user(&mut turns, message, &calls, writing),
            Role::Model => {
                calls = message.tool_calls().map(|call| call.id.as_str()).collect();
                add_model(&mut turns, message, writing);
            }
            Role::Unknown => return Err(Role::unknown_to_provider()),
        }
    }
    Ok(turns.into_iter().map(content).collect())
}

fn add_user(turns: &mut Vec<Turn>, message: &Message, calls: &[&str], writing: &Writing<'_>) {
    if !matches!(turns.last(), Some(Turn::User { .. })) {
        turns.push(Turn::User { results: Vec::new(), said: Vec::new() });
    }
    let Some(Turn::User { results, said }) = turns.last_mut() else { return };
    // Without ids the vendor pairs them by their order.
    let mut ordered: Vec<&ToolResult> = message.tool_results().collect();
    let place = |result: &&ToolResult| calls.iter().position(|id| *id == result.call_id.as_str());
    ordered.sort_by_key(|result| place(result).unwrap_or(calls.len()));
    for result in ordered {
        results.push(writing.result(result));
        said.extend(writing.beside(result));
    }
    for part in &message.parts {
        match part {
            Part::Text { text: words, .. } => said.extend(text(words)),
            Part::Data(data) => said.extend(writing.data(data)),
            _ => {}
        }
    }
}

/// Adds an answer. One that has nothing left to say has no place: its neighbours are one content.
fn add_model(turns: &mut Vec<Turn>, message: &Message, writing: &Writing<'_>) {
    let mut parts: Vec<Value> = message.parts.iter().filter_map(|part| writing.own(part)).collect();
    if parts.is_empty() {
        return;
    }
    if writing.facts.checks_signatures {
        sign_first_call(&mut parts);
    }
    match turns.last_mut() {
        Some(Turn::Model(known)) => known.extend(parts),
        Some(Turn::User { .. }) | None => turns.push(Turn::Model(parts)),
    }
}

/// Of several calls at once the vendor signs the first alone, and looks at no other.
fn sign_first_call(parts: &mut [Value]) {
    let first = parts.iter_mut().find(|part| part.get("functionCall").is_some());
    if let Some(call) = first.filter(|call| call.get("thoughtSignature").is_none()) {
        call["thoughtSignature"] = json!(UNSIGNED);
    }
}

fn content(turn: Turn) -> Value {
    match turn {
        Turn::Model(parts) => json!({ "role": "model", "parts": parts }),
        Turn::User { mut results, said } => {
            results.extend(said);
            if results.is_empty() {
                results.extend(text(NOTHING));
            }
            json!({ "role": "user", "parts": results })
        }
    }
}
