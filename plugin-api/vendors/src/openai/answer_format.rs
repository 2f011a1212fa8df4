//! Formats answers of Responses like the vendor, and refusals of both protocols.

use serde_json::{Map, Value, json};

use super::{OpenAiRequestFault, OpenAiTurn, StreamErrorPlacement, VendorAnswer};

/// Formats a refusal.
pub(super) fn refusal_answer(refused: &OpenAiRequestFault) -> VendorAnswer {
    let kind = if refused.status == 401 { "authentication_error" } else { "invalid_request_error" };
    let error = json!({ "message": refused.message, "type": kind, "param": refused.param,
        "code": refused.code });
    VendorAnswer { status: refused.status, ..json_answer(&json!({ "error": error })) }
}

/// Formats JSON.
pub(super) fn json_answer(body: &Value) -> VendorAnswer {
    build_answer("application/json", body.to_string())
}

/// Formats an answer with the common headers.
pub(super) fn build_answer(content_type: &str, body: String) -> VendorAnswer {
    let headers = [
        ("content-type", content_type),
        ("x-request-id", "req_1"),
        ("openai-processing-ms", "7"),
        ("x-ratelimit-remaining-requests", "99"),
        ("x-ratelimit-reset-requests", "17ms"),
    ];
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
    VendorAnswer { status: 200, headers: headers.to_vec(), body: body.into_bytes() }
}

/// Counts the tokens of an answer, at four bytes per token.
pub(super) fn count_tokens(value: &Value) -> u64 {
    value.to_string().len() as u64 / 4
}

/// Creates the response object of an answer.
pub(super) fn response_json(
    turn: &OpenAiTurn,
    body: &Map<String, Value>,
    output: Vec<Value>,
    cached: u64,
) -> Value {
    let status = if turn.stop.is_some() { "incomplete" } else { "completed" };
    let details = turn.stop.as_ref().map(|word| json!({ "reason": word }));
    let of_reasoning = output.iter().filter(|item| item["type"] == "reasoning").map(count_tokens);
    let of_reasoning: u64 = of_reasoning.sum();
    let input = count_tokens(&body["input"]) + body.get("tools").map_or(0, count_tokens);
    let output_tokens = output.iter().map(count_tokens).sum::<u64>();
    let usage = json!({
        "input_tokens": input,
        "input_tokens_details": { "cached_tokens": cached },
        "output_tokens": output_tokens,
        "output_tokens_details": { "reasoning_tokens": of_reasoning },
        "total_tokens": input + output_tokens,
    });
    json!({ "id": "resp_1", "object": "response", "created_at": 1_767_225_600, "status": status,
        "error": null, "incomplete_details": details, "model": body["model"], "output": output,
        "store": false, "usage": usage })
}

/// Formats an answer that is not streamed.
pub(super) fn complete_answer(turn: &OpenAiTurn, response: &Value) -> VendorAnswer {
    let mut response = response.clone();
    if let Some((code, message, _)) = &turn.error {
        response["status"] = json!("failed");
        response["error"] = json!({ "code": code, "message": message });
    }
    json_answer(&response)
}

/// Formats an answer as a stream of events.
pub(super) fn stream_answer(turn: &OpenAiTurn, response: &Value) -> VendorAnswer {
    let mut begun = response.clone();
    begun["status"] = json!("in_progress");
    begun["output"] = json!([]);
    begun["usage"] = Value::Null;
    begun["incomplete_details"] = Value::Null;
    let mut events = vec![
        json!({ "type": "response.created", "response": begun }),
        json!({ "type": "response.in_progress", "response": begun }),
    ];
    let items = response["output"].as_array().map(Vec::as_slice).unwrap_or_default();
    for (at, item) in items.iter().enumerate() {
        events.extend(item_events(at, item));
    }
    let end = if response["status"] == "incomplete" { "incomplete" } else { "completed" };
    events.push(json!({ "type": format!("response.{end}"), "response": response }));
    if let Some(most) = turn.events_max {
        events.truncate(most);
    }
    if let Some((code, message, nesting)) = &turn.error {
        if turn.events_max.is_none() {
            events.pop();
        }
        let error = json!({ "code": code, "message": message, "param": null });
        events.push(match nesting {
            StreamErrorPlacement::Flat => {
                json!({ "type": "error", "code": code, "message": message, "param": null })
            }
            StreamErrorPlacement::Nested => json!({ "type": "error", "error": error }),
            StreamErrorPlacement::Failed => {
                begun["status"] = json!("failed");
                begun["error"] = json!({ "code": code, "message": message });
                json!({ "type": "response.failed", "response": begun })
            }
        });
    }
    let written = events.into_iter().enumerate().map(|(number, mut event)| {
        event["sequence_number"] = json!(number);
        if turn.has_other_ids {
            replace_item_ids(&mut event, number);
        }
        let name = event["type"].as_str().unwrap_or_default();
        format!("event: {name}\ndata: {event}\n\n")
    });
    build_answer("text/event-stream; charset=utf-8", written.collect())
}

fn replace_item_ids(event: &mut Value, number: usize) {
    if event.get("item_id").is_some() {
        event["item_id"] = json!(format!("other_{number}"));
    }
    if event["item"].get("id").is_some() {
        event["item"]["id"] = json!(format!("other_{number}"));
    }
}

/// Returns the events of one item.
fn item_events(at: usize, item: &Value) -> Vec<Value> {
    let mut begun = item.clone();
    begun["status"] = json!("in_progress");
    let mut events = Vec::new();
    let id = &item["id"];
    let event = |kind: &str, more: Value| {
        let mut event =
            json!({ "type": format!("response.{kind}"), "item_id": id, "output_index": at });
        if let (Some(fields), Value::Object(more)) = (event.as_object_mut(), more) {
            fields.extend(more);
        }
        event
    };
    match item["type"].as_str() {
        Some("message") => {
            begun["content"] = json!([]);
            for (number, piece) in slice_or_empty(&item["content"]).iter().enumerate() {
                let (kind, key) = match piece["type"].as_str() {
                    Some("refusal") => ("refusal", "refusal"),
                    _ => ("output_text", "text"),
                };
                let mut empty = piece.clone();
                empty[key] = json!("");
                let index = json!({ "content_index": number });
                let with = |key: &str, value: Value| {
                    let mut more = index.clone();
                    more[key] = value;
                    more
                };
                events.push(event("content_part.added", with("part", empty)));
                for half in split_in_half(&piece[key]) {
                    events.push(event(&format!("{kind}.delta"), with("delta", json!(half))));
                }
                events.push(event(&format!("{kind}.done"), with(key, piece[key].clone())));
                events.push(event("content_part.done", with("part", piece.clone())));
            }
        }
        Some("reasoning") => {
            begun["summary"] = json!([]);
            // At its start, the encrypted content may be incomplete.
            if begun.get("encrypted_content").is_some() {
                begun["encrypted_content"] = json!("gAAAA-unfinished");
            }
            for (number, piece) in slice_or_empty(&item["summary"]).iter().enumerate() {
                let with =
                    |key: &str, value: Value| json!({ "summary_index": number, (key): value });
                let empty = json!({ "type": "summary_text", "text": "" });
                events.push(event("reasoning_summary_part.added", with("part", empty)));
                for half in split_in_half(&piece["text"]) {
                    let delta = with("delta", json!(half));
                    events.push(event("reasoning_summary_text.delta", delta));
                }
                let text = with("text", piece["text"].clone());
                events.push(event("reasoning_summary_text.done", text));
                events.push(event("reasoning_summary_part.done", with("part", piece.clone())));
            }
        }
        Some("function_call") => {
            begun["arguments"] = json!("");
            for half in split_in_half(&item["arguments"]) {
                let delta = json!({ "delta": half, "obfuscation": "x" });
                events.push(event("function_call_arguments.delta", delta));
            }
            let arguments = json!({ "arguments": item["arguments"] });
            events.push(event("function_call_arguments.done", arguments));
        }
        _ => {}
    }
    let whole = |kind: &str, item: &Value| json!({ "type": format!("response.output_item.{kind}"), "output_index": at, "item": item });
    events.insert(0, whole("added", &begun));
    events.push(whole("done", item));
    events
}

fn slice_or_empty(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Splits a text in two.
pub(super) fn split_in_half(text: &Value) -> Vec<&str> {
    let text = text.as_str().unwrap_or_default();
    let half = (0..=text.len() / 2).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    [&text[..half], &text[half..]].into_iter().filter(|half| !half.is_empty()).collect()
}
