//! Thoughts that are bound to their model and to everything before them.

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::messages::JoinedMessage;
use super::models::FakeAnthropicModel;
use super::{AnthropicCheckResult, invalid_request};

/// Signs a thought with its model, its text, and everything before it.
pub(super) fn sign_thought(model: &FakeAnthropicModel, text: &str, prefix: &Value) -> String {
    let prefix = if model.binds { prefix.to_string() } else { String::new() };
    format!("{}.{}.{}", model.name, hash_texts(&[model.name, text]), hash_texts(&[&prefix]))
}

/// Returns everything before a block: the system prompt, the tools, the messages, and the blocks of
/// the answer so far. Cache marks are left out.
pub(super) fn thought_prefix(
    body: &Map<String, Value>,
    messages: &[JoinedMessage],
    blocks: &[Value],
) -> Value {
    let blocks_of = |message: &JoinedMessage| -> Vec<Value> {
        message.blocks.iter().map(|(_, block)| strip_marks(block)).collect()
    };
    let mut before: Vec<Value> =
        messages.iter().map(|message| json!([message.role, blocks_of(message)])).collect();
    let so_far: Vec<Value> = blocks.iter().map(strip_marks).collect();
    match messages.last() {
        // A paused answer continues.
        Some(last) if last.role == "assistant" => {
            let blocks: Vec<Value> = blocks_of(last).into_iter().chain(so_far).collect();
            before.pop();
            before.push(json!(["assistant", blocks]));
        }
        Some(_) | None => before.push(json!(["assistant", so_far])),
    }
    json!([
        strip_marks(&body["model"]),
        field_without_marks(body, "system"),
        field_without_marks(body, "tools"),
        before
    ])
}

fn field_without_marks(body: &Map<String, Value>, name: &str) -> Value {
    body.get(name).map_or(Value::Null, strip_marks)
}

fn strip_marks(value: &Value) -> Value {
    match value {
        Value::Array(list) => list.iter().map(strip_marks).collect(),
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(key, _)| *key != "cache_control");
            Value::Object(kept.map(|(key, value)| (key.clone(), strip_marks(value))).collect())
        }
        other => other.clone(),
    }
}

/// Checks the thoughts that come back. Returns those that are dropped.
pub(super) fn check_returned_thoughts(
    body: &Map<String, Value>,
    model: &FakeAnthropicModel,
    betas: &[String],
    messages: &[JoinedMessage],
) -> AnthropicCheckResult<Vec<Value>> {
    let behavior = body.get("thinking").map(|it| &it["block_binding"]["prefix_mismatch_behavior"]);
    let behavior = behavior.and_then(Value::as_str);
    let has_header = betas.iter().any(|beta| beta.starts_with("thinking-binding-controls"));
    if behavior.is_some() && (!has_header || !model.binds) {
        return Err(invalid_request(
            "thinking.adaptive.block_binding: Extra inputs are not permitted",
        ));
    }
    let mut dropped = Vec::new();
    for (number, message) in messages.iter().enumerate() {
        let mut so_far: Vec<Value> = Vec::new();
        for (place, block) in &message.blocks {
            if let Some((text, signature)) = thought_of_block(block) {
                let kind = block["type"].as_str().unwrap_or_default();
                let prefix = thought_prefix(body, &messages[..number], &so_far);
                let reason = match judge_returned_thought(model, text, signature, &prefix) {
                    ReturnedThoughtHandling::Valid => None,
                    ReturnedThoughtHandling::Forged => {
                        let text = format!("{place}: Invalid `signature` in `{kind}` block");
                        return Err(invalid_request(text));
                    }
                    ReturnedThoughtHandling::OfAnotherModel => Some("model_binding_mismatch"),
                    ReturnedThoughtHandling::Elsewhere if behavior == Some("drop_block") => {
                        Some("prefix_binding_mismatch")
                    }
                    ReturnedThoughtHandling::Elsewhere => {
                        return Err(invalid_request(format!(
                            "{place}: Invalid `signature` in `{kind}` block. The block is bound to \
                             a different conversation. Remove the block, or set \
                             `thinking.block_binding.prefix_mismatch_behavior` to \"drop_block\"."
                        )));
                    }
                };
                dropped.extend(reason.map(
                    |reason| json!({ "type": "thinking_dropped", "path": place, "reason": reason }),
                ));
            }
            so_far.push(block.clone());
        }
    }
    Ok(if has_header { dropped } else { Vec::new() })
}

/// How to treat a thought that comes back.
enum ReturnedThoughtHandling {
    Valid,
    Forged,
    OfAnotherModel,
    Elsewhere,
}

fn thought_of_block(block: &Value) -> Option<(Option<&str>, &str)> {
    match block["type"].as_str()? {
        "thinking" => Some((block["thinking"].as_str(), block["signature"].as_str().unwrap_or(""))),
        // Only the vendor knows its text.
        "redacted_thinking" => Some((None, block["data"].as_str().unwrap_or(""))),
        _ => None,
    }
}

fn judge_returned_thought(
    model: &FakeAnthropicModel,
    text: Option<&str>,
    signature: &str,
    prefix: &Value,
) -> ReturnedThoughtHandling {
    let words: Vec<&str> = signature.split('.').collect();
    let [name, of_text, of_prefix] = words[..] else { return ReturnedThoughtHandling::Forged };
    if text.is_some_and(|text| hash_texts(&[name, text]) != of_text) {
        return ReturnedThoughtHandling::Forged;
    }
    if name != model.name {
        return ReturnedThoughtHandling::OfAnotherModel;
    }
    let expected = if model.binds { prefix.to_string() } else { String::new() };
    if hash_texts(&[&expected]) == of_prefix {
        ReturnedThoughtHandling::Valid
    } else {
        ReturnedThoughtHandling::Elsewhere
    }
}

/// Returns a hash of texts in hexadecimal.
pub(super) fn hash_texts(texts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for text in texts {
        hash.update(text.len().to_le_bytes());
        hash.update(text.as_bytes());
    }
    hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}
