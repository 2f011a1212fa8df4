//! Formats answers like the vendor.

use serde_json::{Map, Value, json};

use super::cache::AnthropicTokenCounts;
use super::{AnthropicRequestFault, AnthropicTurn, VendorAnswer};

/// Formats a refusal.
pub(super) fn refusal_answer(refused: &AnthropicRequestFault) -> VendorAnswer {
    let error = json!({ "type": refused.kind, "message": refused.message });
    let body = json!({ "type": "error", "error": error, "request_id": "req_1" });
    VendorAnswer { status: refused.status, ..json_answer(&body) }
}

/// Formats JSON.
pub(super) fn json_answer(body: &Value) -> VendorAnswer {
    build_answer("application/json", body.to_string())
}

fn build_answer(content_type: &str, body: String) -> VendorAnswer {
    let headers = vec![
        ("content-type".to_owned(), content_type.to_owned()),
        ("request-id".to_owned(), "req_1".to_owned()),
    ];
    VendorAnswer { status: 200, headers, body: body.into_bytes() }
}

/// Creates the message of an answer.
pub(super) fn message_json(
    turn: &AnthropicTurn,
    body: &Map<String, Value>,
    content: Vec<Value>,
    counted: &AnthropicTokenCounts,
    dropped: &[Value],
) -> Value {
    let has_call = content.iter().any(|block| block["type"] == "tool_use");
    let by_itself = if has_call { "tool_use" } else { "end_turn" };
    let stop = turn.stop.as_deref().unwrap_or(by_itself);
    let output = content.iter().map(|block| block.to_string().len()).sum::<usize>() / 4;
    let usage = json!({
        "input_tokens": counted.total - counted.read - counted.written,
        "cache_read_input_tokens": counted.read,
        "cache_creation_input_tokens": counted.written,
        "output_tokens": output,
    });
    let mut message = json!({ "id": "msg_1", "type": "message", "role": "assistant",
        "model": body["model"], "content": content, "stop_reason": stop, "stop_sequence": null,
        "usage": usage });
    if let Some(text) = &turn.explanation {
        message["stop_details"] = json!({ "category": null, "explanation": text });
    }
    if !dropped.is_empty() {
        message["input_transformations"] = json!(dropped);
    }
    message
}

/// Formats an answer as a stream of events.
pub(super) fn stream_answer(turn: &AnthropicTurn, message: &Value) -> VendorAnswer {
    let mut start = message.clone();
    start["content"] = json!([]);
    start["stop_reason"] = Value::Null;
    start["usage"]["output_tokens"] = json!(1);
    let mut events = vec![json!({ "type": "message_start", "message": start })];
    events.push(json!({ "type": "ping" }));
    let blocks = message["content"].as_array().map(Vec::as_slice).unwrap_or_default();
    for (index, block) in blocks.iter().enumerate() {
        let (begun, deltas) = initial_block(block);
        events
            .push(json!({ "type": "content_block_start", "index": index, "content_block": begun }));
        let delta =
            |delta| json!({ "type": "content_block_delta", "index": index, "delta": delta });
        events.extend(deltas.into_iter().map(delta));
        events.push(json!({ "type": "content_block_stop", "index": index }));
    }
    let mut end = json!({ "stop_reason": message["stop_reason"], "stop_sequence": null });
    if let Some(details) = message.get("stop_details") {
        end["stop_details"] = details.clone();
    }
    let usage = json!({ "output_tokens": message["usage"]["output_tokens"] });
    events.push(json!({ "type": "message_delta", "delta": end, "usage": usage }));
    events.push(json!({ "type": "message_stop" }));
    if let Some(most) = turn.events_max {
        events.truncate(most);
    }
    if let Some((kind, text)) = &turn.error {
        events.truncate(events.len() - usize::from(turn.events_max.is_none()) * 2);
        events.push(json!({ "type": "error", "error": { "type": kind, "message": text } }));
    }
    let written = events.iter().map(|event| {
        let name = event["type"].as_str().unwrap_or_default();
        format!("event: {name}\ndata: {event}\n\n")
    });
    build_answer("text/event-stream; charset=utf-8", written.collect())
}

/// Returns a block's initial state, and the deltas that follow.
fn initial_block(block: &Value) -> (Value, Vec<Value>) {
    let mut begun = block.clone();
    let mut deltas = Vec::new();
    let text = |key: &str| block[key].as_str().unwrap_or_default();
    let mut pieces = |kind: &str, key: &str, text: &str| {
        let half = (0..=text.len() / 2).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        for piece in [&text[..half], &text[half..]] {
            if !piece.is_empty() {
                deltas.push(json!({ "type": kind, (key): piece }));
            }
        }
    };
    match block["type"].as_str() {
        Some("text") => {
            begun["text"] = json!("");
            pieces("text_delta", "text", text("text"));
        }
        Some("thinking") => {
            begun["thinking"] = json!("");
            begun["signature"] = json!("");
            pieces("thinking_delta", "thinking", text("thinking"));
            deltas.push(json!({ "type": "signature_delta", "signature": text("signature") }));
        }
        Some("tool_use" | "server_tool_use") => {
            begun["input"] = json!({});
            let is_empty = block["input"].as_object().is_none_or(Map::is_empty);
            deltas.push(json!({ "type": "input_json_delta", "partial_json": "" }));
            if !is_empty {
                let mut pieces = |text: &str| {
                    let (first, rest) = text.split_at(1);
                    for piece in [first, rest] {
                        deltas.push(json!({ "type": "input_json_delta", "partial_json": piece }));
                    }
                };
                pieces(&block["input"].to_string());
            }
        }
        _ => {}
    }
    (begun, deltas)
}
