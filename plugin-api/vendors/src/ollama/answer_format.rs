//! Formats answers like the server.

use serde_json::{Value, json};

use super::models::FakeOllamaModel;
use super::{OllamaAnswerPiece, OllamaRequestFault, OllamaTurn, VendorAnswer};

/// The content of an answer.
pub(super) struct OllamaAnswerMessage<'a> {
    pub(super) model: &'a FakeOllamaModel,
    pub(super) said: Vec<&'a OllamaAnswerPiece>,
    /// The tokens of the request that were read.
    pub(super) prompt: u64,
}

/// Formats a refusal.
pub(super) fn refusal_answer(
    OllamaRequestFault { status, message }: &OllamaRequestFault,
) -> VendorAnswer {
    VendorAnswer { status: *status, ..json_answer(&json!({ "error": message })) }
}

/// Formats JSON that is not streamed.
pub(super) fn json_answer(body: &Value) -> VendorAnswer {
    build_answer("application/json; charset=utf-8", body.to_string())
}

/// Answers an unknown path.
pub(super) fn unknown_page_answer() -> VendorAnswer {
    VendorAnswer { status: 404, ..build_answer("text/plain", "404 page not found".to_owned()) }
}

/// Formats the lines of a pull.
pub(super) fn pull_answer(is_there: bool) -> VendorAnswer {
    let mut lines = vec![json!({ "status": "pulling manifest" })];
    if is_there {
        for (digest, total) in [("sha256:a3de86cd1c13", 4_000_u64), ("sha256:eb4402837c78", 1_000)]
        {
            let status = format!("pulling {}", &digest[7..]);
            lines.push(json!({ "status": status, "digest": digest, "total": total }));
            for completed in [total / 2, total] {
                let line = json!({ "status": status, "digest": digest, "total": total,
                    "completed": completed });
                lines.push(line);
            }
        }
        for status in ["verifying sha256 digest", "writing manifest", "success"] {
            lines.push(json!({ "status": status }));
        }
    } else {
        lines.push(json!({ "error": "pull model manifest: file does not exist" }));
    }
    build_answer("application/x-ndjson", json_lines(&lines))
}

/// Formats an answer that is not streamed.
pub(super) fn complete_answer(
    turn: &OllamaTurn,
    message: &OllamaAnswerMessage<'_>,
) -> VendorAnswer {
    if let Some(error) = &turn.error {
        return refusal_answer(&OllamaRequestFault { status: 500, message: error.clone() });
    }
    let (mut thinking, mut content, mut calls) = (String::new(), String::new(), Vec::new());
    for said in &message.said {
        match said {
            OllamaAnswerPiece::Thought(text) => thinking.push_str(text),
            OllamaAnswerPiece::Text(text) => content.push_str(text),
            OllamaAnswerPiece::Call(name, arguments) => {
                calls.push(tool_call_json(calls.len(), name, arguments))
            }
        }
    }
    let mut written = json!({ "role": "assistant", "content": content });
    if !thinking.is_empty() {
        written["thinking"] = json!(thinking);
    }
    if !calls.is_empty() {
        written["tool_calls"] = calls.into();
    }
    json_answer(&last_stream_line(turn, message, written))
}

/// Formats an answer as the lines of a stream.
pub(super) fn stream_answer(turn: &OllamaTurn, message: &OllamaAnswerMessage<'_>) -> VendorAnswer {
    let mut lines = Vec::new();
    let mut calls = 0;
    for said in &message.said {
        match said {
            OllamaAnswerPiece::Thought(text) => {
                let piece = |text| json!({ "role": "assistant", "content": "", "thinking": text });
                lines.extend(split_in_half(text).map(piece));
            }
            OllamaAnswerPiece::Text(text) => {
                let piece = |text| json!({ "role": "assistant", "content": text });
                lines.extend(split_in_half(text).map(piece));
            }
            OllamaAnswerPiece::Call(name, arguments) => {
                let call = tool_call_json(calls, name, arguments);
                calls += 1;
                lines.push(json!({ "role": "assistant", "content": "", "tool_calls": [call] }));
            }
        }
    }
    let mut lines: Vec<Value> =
        lines.into_iter().map(|said| stream_line(message.model, said)).collect();
    lines.push(last_stream_line(turn, message, json!({ "role": "assistant", "content": "" })));
    if let Some(most) = turn.lines_max {
        lines.truncate(most);
    } else if turn.error.is_some() {
        lines.pop();
    }
    if let Some(error) = &turn.error {
        if lines.is_empty() {
            return refusal_answer(&OllamaRequestFault { status: 500, message: error.clone() });
        }
        lines.push(json!({ "error": error }));
    }
    build_answer("application/x-ndjson", json_lines(&lines))
}

fn stream_line(model: &FakeOllamaModel, message: Value) -> Value {
    json!({ "model": model.name, "created_at": "2026-11-23T13:00:00.0Z", "message": message,
        "done": false })
}

/// Returns the last line: the stop reason and the usage.
fn last_stream_line(turn: &OllamaTurn, message: &OllamaAnswerMessage<'_>, said: Value) -> Value {
    let mut last = stream_line(message.model, said);
    let said = message.said.iter().map(|said| match said {
        OllamaAnswerPiece::Thought(text) | OllamaAnswerPiece::Text(text) => text.len(),
        OllamaAnswerPiece::Call(name, arguments) => name.len() + arguments.to_string().len(),
    });
    last["done"] = json!(true);
    last["done_reason"] = json!(turn.reason);
    last["total_duration"] = json!(4_883_583_458_u64);
    last["load_duration"] = json!(1_334_875);
    last["prompt_eval_count"] = json!(message.prompt);
    last["prompt_eval_duration"] = json!(342_546_000);
    last["eval_count"] = json!(said.sum::<usize>().div_ceil(4));
    last["eval_duration"] = json!(4_535_599_000_u64);
    last
}

fn tool_call_json(index: usize, name: &str, arguments: &Value) -> Value {
    // The same id in each answer, because servers do not promise unique ones.
    json!({ "id": format!("call_{index}"),
        "function": { "index": index, "name": name, "arguments": arguments } })
}

/// Splits a text into two pieces, as in a stream.
fn split_in_half(text: &str) -> impl Iterator<Item = &str> {
    let half = (1..=text.len() / 2).rev().find(|at| text.is_char_boundary(*at));
    let (first, rest) = text.split_at(half.unwrap_or_default());
    [first, rest].into_iter().filter(|piece| !piece.is_empty())
}

fn json_lines(lines: &[Value]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn build_answer(content_type: &str, body: String) -> VendorAnswer {
    let headers = vec![("content-type".to_owned(), content_type.to_owned())];
    VendorAnswer { status: 200, headers, body: body.into_bytes() }
}
