//! Formats answers like the vendor.

use serde_json::{Value, json};

use super::models::FakeGoogleModel;
use super::{GoogleRequestFault, GoogleTurn, TOKEN_BYTES, VendorAnswer};

/// The tokens of a request.
#[derive(Debug, Clone, Copy)]
pub(super) struct GoogleTokenCounts {
    pub(super) prompt: u64,
    pub(super) cached: u64,
}

/// Formats a refusal.
pub(super) fn refusal_answer(refused: &GoogleRequestFault) -> VendorAnswer {
    let GoogleRequestFault { code, status, message, details } = refused;
    let mut error = json!({ "code": code, "message": message, "status": status });
    if !details.is_empty() {
        error["details"] = json!(details);
    }
    VendorAnswer { status: *code, ..json_answer(&json!({ "error": error })) }
}

/// Formats JSON on many lines, like the vendor.
pub(super) fn json_answer(body: &Value) -> VendorAnswer {
    build_answer("application/json; charset=UTF-8", format!("{body:#}\n"))
}

fn build_answer(content_type: &str, body: String) -> VendorAnswer {
    let headers = vec![("content-type".to_owned(), content_type.to_owned())];
    VendorAnswer { status: 200, headers, body: body.into_bytes() }
}

/// Formats an answer that is not streamed.
pub(super) fn complete_answer(
    turn: &GoogleTurn,
    parts: &[Value],
    counted: GoogleTokenCounts,
    model: &FakeGoogleModel,
) -> VendorAnswer {
    if let Some(error) = &turn.error {
        return json_answer(&error.report);
    }
    let mut chunk = chunk_json(parts, model);
    finish_chunk(&mut chunk, turn, usage_json(parts, counted));
    json_answer(&chunk)
}

/// Formats an answer as a stream of events.
pub(super) fn stream_answer(
    turn: &GoogleTurn,
    parts: &[Value],
    counted: GoogleTokenCounts,
    model: &FakeGoogleModel,
) -> VendorAnswer {
    let mut chunks: Vec<Value> = Vec::new();
    for pieces in group_parts_by_chunk(parts) {
        let mut chunk = chunk_json(&pieces, model);
        chunk["usageMetadata"] =
            json!({ "promptTokenCount": counted.prompt, "totalTokenCount": counted.prompt });
        chunks.push(chunk);
    }
    if chunks.is_empty() {
        chunks.push(json!({ "modelVersion": model.name }));
    }
    if let Some(last) = chunks.last_mut() {
        finish_chunk(last, turn, usage_json(parts, counted));
    }
    if let Some(most) = turn.chunks_max {
        chunks.truncate(most);
    }
    let mut body: String = chunks.iter().map(|chunk| format!("data: {chunk}\r\n\r\n")).collect();
    match &turn.error {
        Some(error) if error.is_bare => body.push_str(&format!("{:#}\n", error.report)),
        Some(error) => body.push_str(&format!("data: {}\r\n\r\n", error.report)),
        None => {}
    }
    build_answer("text/event-stream", body)
}

fn chunk_json(parts: &[Value], model: &FakeGoogleModel) -> Value {
    json!({
        "candidates": [{ "content": { "parts": parts, "role": "model" }, "index": 0 }],
        "modelVersion": model.name,
        "responseId": "r-1",
    })
}

/// Adds the stop reason and the usage.
fn finish_chunk(chunk: &mut Value, turn: &GoogleTurn, usage: Value) {
    chunk["usageMetadata"] = usage;
    if let Some(word) = &turn.block {
        if let Some(fields) = chunk.as_object_mut() {
            fields.shift_remove("candidates");
        }
        chunk["promptFeedback"] = json!({ "blockReason": word });
        if let Some(text) = &turn.explanation {
            chunk["promptFeedback"]["blockReasonMessage"] = json!(text);
        }
        return;
    }
    if !chunk["candidates"].is_array() {
        chunk["candidates"] = json!([{ "index": 0 }]);
    }
    let candidate = &mut chunk["candidates"][0];
    // An answer that was stopped before its first word has no content.
    if candidate["content"]["parts"].as_array().is_some_and(Vec::is_empty) {
        candidate["content"] = json!({});
    }
    candidate["finishReason"] = json!(turn.reason);
    if let Some(text) = &turn.explanation {
        candidate["finishMessage"] = json!(text);
    }
}

/// Groups the parts as they arrive: all calls together, a text in two pieces, other parts alone.
fn group_parts_by_chunk(parts: &[Value]) -> Vec<Vec<Value>> {
    let is_call = |part: &Value| part.get("functionCall").is_some();
    let mut groups: Vec<Vec<Value>> = Vec::new();
    for part in parts {
        match groups.last_mut() {
            Some(last) if is_call(part) && last.iter().all(is_call) => last.push(part.clone()),
            _ => groups.extend(split_part(part)),
        }
    }
    groups
}

fn split_part(part: &Value) -> Vec<Vec<Value>> {
    let text = part["text"].as_str().unwrap_or_default();
    let half = (1..=text.len() / 2).rev().find(|at| text.is_char_boundary(*at));
    let Some(half) = half.filter(|_| part.get("thoughtSignature").is_none()) else {
        return vec![vec![part.clone()]];
    };
    let piece = |text: &str| {
        let mut piece = part.clone();
        piece["text"] = json!(text);
        vec![piece]
    };
    vec![piece(&text[..half]), piece(&text[half..])]
}

fn usage_json(parts: &[Value], counted: GoogleTokenCounts) -> Value {
    let tokens = |is_thought: bool| {
        let counted = parts.iter().filter(|part| (part["thought"] == true) == is_thought);
        counted.map(|part| part.to_string().len()).sum::<usize>() / TOKEN_BYTES
    };
    let (answer, thoughts) = (tokens(false), tokens(true));
    let mut usage = json!({
        "promptTokenCount": counted.prompt,
        "candidatesTokenCount": answer,
        "thoughtsTokenCount": thoughts,
        "totalTokenCount": counted.prompt + (answer + thoughts) as u64,
    });
    if counted.cached > 0 {
        usage["cachedContentTokenCount"] = json!(counted.cached);
    }
    usage
}
