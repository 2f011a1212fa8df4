//! The items of a Responses request: their kinds, their pairs, and the owner of reasoning.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::{
    OpenAiCheckResult, OpenAiRequestFault, check_fields, check_name, check_text, invalid_request,
};

/// The longest call id.
const CALL_ID_CHARS_MAX: usize = 64;

/// The encrypted reasoning and its models.
#[derive(Debug, Default)]
pub(super) struct EncryptedReasoning {
    given: BTreeSet<String>,
}

impl EncryptedReasoning {
    /// Encrypts a model's reasoning.
    pub(super) fn encrypt(&mut self, model: &str, number: usize) -> String {
        let text = format!("gAAAA-{number:04}-{model}");
        self.given.insert(text.clone());
        text
    }

    fn has_encrypted(&self, text: &str, model: &str) -> bool {
        self.given.contains(text) && text.ends_with(&format!("-{model}"))
    }
}

/// Checks the items. Refuses reasoning that was encrypted by another server or for another model.
pub(super) fn check_items(
    body: &Map<String, Value>,
    model: &str,
    sealed: &EncryptedReasoning,
) -> OpenAiCheckResult {
    let input = match body.get("input") {
        Some(Value::String(_)) => return Ok(()),
        Some(Value::Array(items)) => items,
        _ => {
            let message = "Missing required parameter: 'input'.";
            return Err(invalid_request("missing_required_parameter", "input", message));
        }
    };
    if input.is_empty() {
        let message = "One of \"input\" or \"previous_response_id\" must be provided.";
        return Err(invalid_request("missing_required_parameter", "input", message));
    }
    for (at, item) in input.iter().enumerate() {
        check_item(&format!("input[{at}]"), item, model, sealed)?;
    }
    check_reasoning_pairs(input)?;
    check_call_pairs(input)
}

fn check_item(
    place: &str,
    item: &Value,
    model: &str,
    sealed: &EncryptedReasoning,
) -> OpenAiCheckResult {
    let fields = item.as_object().ok_or_else(|| {
        invalid_request(
            "invalid_type",
            place,
            format!("Invalid type for '{place}': expected an object."),
        )
    })?;
    for key in ["id", "status"] {
        if fields.get(key).is_some_and(Value::is_null) {
            let place = format!("{place}.{key}");
            let message = format!("Invalid type for '{place}': expected a string, but got null.");
            return Err(invalid_request("invalid_type", &place, message));
        }
    }
    if let Some(id) = fields.get("id") {
        let message = format!(
            "Item with id {id} not found. Items are not persisted when `store` is set to false. Try \
             again with `store` set to true, or remove this item from your input."
        );
        return Err(OpenAiRequestFault {
            status: 404,
            code: None,
            param: Some("input".to_owned()),
            message,
        });
    }
    match item["type"].as_str().unwrap_or("message") {
        "message" => check_message(place, item, fields),
        "function_call" => {
            let known = ["type", "call_id", "name", "arguments", "status", "namespace"];
            check_fields(place, fields, &known)?;
            check_call_id(place, item)?;
            check_name(&format!("{place}.name"), &item["name"])?;
            check_text(&format!("{place}.arguments"), &item["arguments"], usize::MAX).map(drop)
        }
        "function_call_output" => {
            check_fields(place, fields, &["type", "call_id", "output", "status"])?;
            check_call_id(place, item)?;
            check_content(&format!("{place}.output"), &item["output"], &INPUT)
        }
        "reasoning" => {
            check_fields(place, fields, &["type", "summary", "content", "encrypted_content"])?;
            if !item["summary"].is_array() {
                let place = format!("{place}.summary");
                let message = format!("Missing required parameter: '{place}'.");
                return Err(invalid_request("missing_required_parameter", &place, message));
            }
            check_encrypted_reasoning(item, model, sealed)
        }
        // It goes back unchanged.
        "compaction" => Ok(()),
        other => {
            let place = format!("{place}.type");
            Err(invalid_request("invalid_value", &place, format!("Invalid value: '{other}'.")))
        }
    }
}

fn check_encrypted_reasoning(
    item: &Value,
    model: &str,
    sealed: &EncryptedReasoning,
) -> OpenAiCheckResult {
    let given = item["encrypted_content"].as_str().unwrap_or_default();
    if sealed.has_encrypted(given, model) {
        return Ok(());
    }
    let shown: String = given.chars().take(8).collect();
    let message = format!(
        "The encrypted content {shown}... could not be verified. Reason: Encrypted content could \
         not be decrypted or parsed."
    );
    Err(invalid_request("invalid_encrypted_content", "", message))
}

fn check_call_id(place: &str, item: &Value) -> OpenAiCheckResult {
    let place = format!("{place}.call_id");
    let id = check_text(&place, &item["call_id"], CALL_ID_CHARS_MAX)?;
    if id.is_empty() {
        let message = format!("Invalid '{place}': empty string.");
        return Err(invalid_request("empty_string", &place, message));
    }
    Ok(())
}

/// Content types of users and tools.
const INPUT: [&str; 3] = ["input_text", "input_image", "input_file"];

/// Content types of models.
const OUTPUT: [&str; 2] = ["output_text", "refusal"];

fn check_message(place: &str, item: &Value, fields: &Map<String, Value>) -> OpenAiCheckResult {
    check_fields(place, fields, &["type", "role", "content", "status", "phase"])?;
    let kinds: &[&str] = match item["role"].as_str() {
        Some("assistant") => &OUTPUT,
        Some("user" | "system" | "developer") => &INPUT,
        _ => {
            let place = format!("{place}.role");
            return Err(invalid_request("invalid_value", &place, format!("Invalid '{place}'.")));
        }
    };
    if fields.contains_key("phase") && item["role"] != "assistant" {
        let place = format!("{place}.phase");
        return Err(invalid_request(
            "unknown_parameter",
            &place,
            format!("Unknown parameter: '{place}'."),
        ));
    }
    check_content(&format!("{place}.content"), &item["content"], kinds)
}

fn check_content(place: &str, content: &Value, kinds: &[&str]) -> OpenAiCheckResult {
    let pieces = match content {
        Value::String(_) => return Ok(()),
        Value::Array(pieces) => pieces,
        _ => {
            let message = format!("Invalid type for '{place}': expected a string or a list.");
            return Err(invalid_request("invalid_type", place, message));
        }
    };
    for (at, piece) in pieces.iter().enumerate() {
        let place = format!("{place}[{at}]");
        let kind = piece["type"].as_str().unwrap_or_default();
        let fields = piece.as_object().filter(|_| kinds.contains(&kind)).ok_or_else(|| {
            let message = format!("Invalid value: '{kind}'. Supported values are: {kinds:?}.");
            invalid_request("invalid_value", &format!("{place}.type"), message)
        })?;
        let known: &[&str] = match kind {
            "input_text" => &["type", "text"],
            "output_text" => &["type", "text", "annotations", "logprobs"],
            "refusal" => &["type", "refusal"],
            "input_image" => &["type", "image_url", "detail"],
            _ => &["type", "filename", "file_data"],
        };
        check_fields(&place, fields, known)?;
        let is_url = |key: &str, begin: &str| {
            piece[key]
                .as_str()
                .is_some_and(|url| url.starts_with(begin) && url.contains(";base64,"))
        };
        let is_good = match kind {
            "input_image" => is_url("image_url", "data:image/"),
            "input_file" => {
                is_url("file_data", "data:application/pdf") && piece["filename"].is_string()
            }
            "refusal" => piece["refusal"].is_string(),
            _ => piece["text"].is_string(),
        };
        if !is_good {
            return Err(invalid_request("invalid_value", &place, format!("Invalid '{place}'.")));
        }
    }
    Ok(())
}

/// Checks that reasoning is followed by the item that it led to.
fn check_reasoning_pairs(input: &[Value]) -> OpenAiCheckResult {
    for (at, item) in input.iter().enumerate().filter(|(_, item)| item["type"] == "reasoning") {
        let next = input.get(at + 1).unwrap_or(&Value::Null);
        let is_answers = matches!(next["type"].as_str(), Some("reasoning" | "function_call"))
            || next["role"] == "assistant";
        if !is_answers {
            let id = item["id"].as_str().unwrap_or("rs_unknown");
            let message = format!(
                "Item '{id}' of type 'reasoning' was provided without its required following item."
            );
            return Err(invalid_request("invalid_request", "input", message));
        }
    }
    Ok(())
}

/// Checks that calls and results are paired.
fn check_call_pairs(input: &[Value]) -> OpenAiCheckResult {
    let mut open: BTreeMap<&str, usize> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for (at, item) in input.iter().enumerate() {
        let id = item["call_id"].as_str().unwrap_or_default();
        match item["type"].as_str() {
            Some("function_call") => {
                if !seen.insert(id) {
                    let message = format!("Duplicate item found with call_id {id}.");
                    return Err(invalid_request("invalid_request", "input", message));
                }
                open.insert(id, at);
            }
            Some("function_call_output") if open.remove(id).is_none() => {
                let message =
                    format!("No tool call found for function call output with call_id {id}.");
                return Err(invalid_request("invalid_request", "input", message));
            }
            // All calls must be answered before the model continues.
            _ if item["role"] == "user" && !open.is_empty() => break,
            _ => {}
        }
    }
    match open.keys().next() {
        Some(id) => {
            let message = format!("No tool output found for function call {id}.");
            Err(invalid_request("invalid_request", "input", message))
        }
        None => Ok(()),
    }
}
