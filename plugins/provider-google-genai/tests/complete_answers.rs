//! Tests that a complete answer results in the same history as a streamed one.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use expect_test::{Expect, expect};
use jaato_plugin_sdk::Result;
use jaato_plugin_sdk::serde_json::{Value, json};
use jaato_plugin_sdk::types::Completion;
use jaato_plugin_sdk_provider::{AnswerReader, ServerEventReader};

use crate::made::format_delta;
use crate::reply::{WORDS, google_reply};

const URL: &str = "http://h/v1beta/models/m:generateContent";

fn format_body(body: &str) -> String {
    let mut lines = Vec::new();
    let result = run_reader(body, &mut lines);
    lines.push(WORDS.format_result(result));
    lines.join("\n")
}

fn run_reader(body: &str, lines: &mut Vec<String>) -> Result<Completion> {
    let mut reply = google_reply();
    lines.extend(reply.handle_whole_body(URL, body.as_bytes())?.iter().map(format_delta));
    let (deltas, completion) = reply.finish()?;
    lines.extend(deltas.iter().map(format_delta));
    Ok(completion)
}

#[track_caller]
fn check_body(body: Value, expected: Expect) {
    expected.assert_eq(&format_body(&format!("{body:#}")));
}

fn example_parts() -> Vec<Value> {
    vec![
        json!({ "text": "hm", "thought": true }),
        json!({ "text": "I look.", "thoughtSignature": "s1" }),
        json!({ "executableCode": { "code": "1" } }),
        json!({ "functionCall": { "name": "look", "args": { "a": 1 }, "id": "f" }, "thoughtSignature": "s2" }),
        json!({ "functionCall": { "name": "look", "args": {} } }),
        json!({ "text": "", "thoughtSignature": "s3" }),
    ]
}

#[test]
fn unstreamed_answer_has_the_same_parts_as_a_streamed_one() {
    let usage = json!({ "promptTokenCount": 3, "candidatesTokenCount": 4 });
    let content = json!({ "role": "model", "parts": example_parts() });
    let candidate = json!({ "content": content, "finishReason": "STOP" });
    let whole = json!({ "candidates": [candidate], "usageMetadata": usage });
    let whole = run_reader(&whole.to_string(), &mut Vec::new()).unwrap();
    let (mut events, mut reply) = (ServerEventReader::new(), google_reply());
    for part in example_parts() {
        let chunk = json!({ "candidates": [{ "content": { "parts": [part] } }] });
        for event in events.push(format!("data: {chunk}\n\n").as_bytes()).unwrap() {
            reply.handle_event(&event).unwrap();
        }
    }
    let end = json!({ "candidates": [{ "finishReason": "STOP" }], "usageMetadata": usage });
    reply.read_chunk(&end).unwrap();
    let (_, streamed) = reply.finish().unwrap();
    assert_eq!(whole, streamed);
    assert_eq!(whole.parts.len(), 6);
}

#[test]
fn json_answer_without_a_finish_reason_is_complete() {
    let text = json!({ "content": { "parts": [{ "text": "a" }] } });
    check_body(
        json!({ "candidates": [text] }),
        expect![[r#"
            text "a"
            = text:"a" Stop 0+0 (0 cached, 0 thought)"#]],
    );
    // A stream that is not an event stream is a list.
    check_body(
        json!([{ "candidates": [text] }, { "candidates": [{ "content": { "parts": [{ "text": "b" }] }, "finishReason": "MAX_TOKENS" }] }]),
        expect![[r#"
            text "a"
            text "b"
            = text:"ab" MaxTokens 0+0 (0 cached, 0 thought)"#]],
    );
    check_body(
        json!({ "usageMetadata": { "promptTokenCount": 5 }, "modelVersion": "m" }),
        expect![
            "! Provider Temporary the answer from `http://h/v1beta/models/m:streamGenerateContent?…` ended early"
        ],
    );
}

#[test]
fn error_inside_a_list_is_reported() {
    let error = json!({ "error": { "code": 500, "message": "An internal error has occurred.", "status": "INTERNAL" } });
    for body in [error.clone(), json!([error])] {
        check_body(
            body,
            expect![
                "! Provider Temporary `http://h/v1beta/models/m:streamGenerateContent?…` reports an error: An internal error has occurred"
            ],
        );
    }
}

#[test]
fn body_that_is_not_a_completion_is_reported() {
    for body in [json!({}), json!([]), json!({ "hello": 1 }), json!({ "choices": [] }), json!([1])]
    {
        check_body(
            body,
            expect![
                "! Provider Permanent `http://h/v1beta/models/m:generateContent` did not answer with a completion (`application/json`)"
            ],
        );
    }
    assert!(format_body("{\"candidates\": [").starts_with("! Provider Temporary"));
}
