//! Writes the history in the vendor's format. Pure.
//!
//! Invariants: user and model contents alternate, starting with the user. All results for an answer
//! come first, in one content and in the order of the calls. No content is empty. The written form
//! of a message does not depend on later messages.

use jaato_plugin_sdk::Result;
use jaato_plugin_sdk::serde_json::{Value, json};
use jaato_plugin_sdk::types::{CompletionRequest, Message, Part, Role, ToolResult};

use crate::content::{GooglePartWriter, write_text};

/// The text of a content that must exist but is empty.
const NOTHING: &str = "(nothing)";

/// The signature of a call without one, for example a call by another vendor's model. Some models
/// refuse a history without signatures. The vendor documents this value:
/// <https://ai.google.dev/gemini-api/docs/thought-signatures>.
pub const UNSIGNED: &str = "skip_thought_signature_validator";

/// A content in progress.
#[derive(Debug)]
enum GoogleContentDraft {
    /// A user content: tool results, then text and media.
    User { results: Vec<Value>, said: Vec<Value> },
    /// A model content.
    Model(Vec<Value>),
}

/// Groups the messages of a request into contents. `first` precedes everything else, for a model
/// without a separate system text.
///
/// # Errors
/// `unknown_operation` if a message has an unknown role.
pub(crate) fn group_into_contents(
    request: &CompletionRequest,
    first: &str,
    writing: &GooglePartWriter<'_>,
) -> Result<Vec<Value>> {
    let mut turns = vec![GoogleContentDraft::User {
        results: Vec::new(),
        said: write_text(first).into_iter().collect(),
    }];
    let mut calls: Vec<&str> = Vec::new();
    for message in &request.messages {
        match message.role {
            Role::User | Role::Tool => add_user_message(&mut turns, message, &calls, writing),
            Role::Model => {
                calls = message.tool_calls().map(|call| call.id.as_str()).collect();
                add_model_message(&mut turns, message, writing);
            }
            Role::Unknown => return Err(Role::unknown_role_error()),
        }
    }
    Ok(turns.into_iter().map(write_content).collect())
}

fn add_user_message(
    turns: &mut Vec<GoogleContentDraft>,
    message: &Message,
    calls: &[&str],
    writing: &GooglePartWriter<'_>,
) {
    if !matches!(turns.last(), Some(GoogleContentDraft::User { .. })) {
        turns.push(GoogleContentDraft::User { results: Vec::new(), said: Vec::new() });
    }
    let Some(GoogleContentDraft::User { results, said }) = turns.last_mut() else { return };
    // Without ids, the vendor matches results to calls by order.
    let mut ordered: Vec<&ToolResult> = message.tool_results().collect();
    let place = |result: &&ToolResult| calls.iter().position(|id| *id == result.call_id.as_str());
    ordered.sort_by_key(|result| place(result).unwrap_or(calls.len()));
    for result in ordered {
        results.push(writing.write_result(result));
        said.extend(writing.attachments_after(result));
    }
    for part in &message.parts {
        match part {
            Part::Text { text: words, .. } => said.extend(write_text(words)),
            Part::Data(data) => said.extend(writing.write_data(data)),
            _ => {}
        }
    }
}

/// Adds a model message. An empty one is left out, so that its neighbours become one content.
fn add_model_message(
    turns: &mut Vec<GoogleContentDraft>,
    message: &Message,
    writing: &GooglePartWriter<'_>,
) {
    let mut parts: Vec<Value> =
        message.parts.iter().filter_map(|part| writing.write_model_part(part)).collect();
    if parts.is_empty() {
        return;
    }
    if writing.facts.checks_signatures {
        sign_first_call(&mut parts);
    }
    match turns.last_mut() {
        Some(GoogleContentDraft::Model(known)) => known.extend(parts),
        Some(GoogleContentDraft::User { .. }) | None => {
            turns.push(GoogleContentDraft::Model(parts))
        }
    }
}

/// Signs the first of several calls. The vendor signs and checks no other.
fn sign_first_call(parts: &mut [Value]) {
    let first = parts.iter_mut().find(|part| part.get("functionCall").is_some());
    if let Some(call) = first.filter(|call| call.get("thoughtSignature").is_none()) {
        call["thoughtSignature"] = json!(UNSIGNED);
    }
}

fn write_content(turn: GoogleContentDraft) -> Value {
    match turn {
        GoogleContentDraft::Model(parts) => json!({ "role": "model", "parts": parts }),
        GoogleContentDraft::User { mut results, said } => {
            results.extend(said);
            if results.is_empty() {
                results.extend(write_text(NOTHING));
            }
            json!({ "role": "user", "parts": results })
        }
    }
}
