//! Tests streams of Responses in the servers' format and the completions that result. Each stream
//! is split at every byte.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use expect_test::{Expect, expect};
use jaato_plugin_sdk::ErrorKind;
use jaato_plugin_sdk::serde_json::{Value, json};
use jaato_plugin_sdk::types::Part;
use jaato_plugin_sdk_provider::{
    ARGUMENTS_BYTES_MAX, AnswerReader, EVENTS_MAX, PARTS_MAX, ServerEvent,
};
use provider_openai::responses::ResponsesReply;

use crate::made::{CompletionFormat, read_split_anywhere};

/// How the results are printed.
const WORDS: CompletionFormat = CompletionFormat {
    part: format_part,
    usage: |usage| {
        format!(
            "{}+{} ({} cached, {} reasoning)",
            usage.prompt_tokens, usage.output_tokens, usage.cached_tokens, usage.reasoning_tokens
        )
    },
};

fn read_pieces<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> String {
    WORDS.format_stream(ResponsesReply::new("http://h/v1/responses"), pieces)
}

fn format_part(part: &Part) -> String {
    let signed = |signature: &Option<String>| {
        signature.as_ref().map(|text| format!("~{text}")).unwrap_or_default()
    };
    match part {
        Part::Text { text, signature, .. } => format!("text:{text:?}{}", signed(signature)),
        Part::Thought { text, .. } => format!("thought:{text:?}"),
        Part::ToolCall(call) => format!("call:{}{}", call.id, signed(&call.signature)),
        Part::Opaque(opaque) => format!("opaque:{}", opaque.item),
        other => format!("{other:?}"),
    }
}

/// Writes events in the vendor's stream format.
fn format_stream(events: &[Value]) -> String {
    let event = |event: &Value| {
        format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default())
    };
    events.iter().map(event).collect()
}

/// Checks that a stream has the same result wherever it is split. Events end at blank lines.
#[track_caller]
fn check_stream(events: &[Value], expected: Expect) {
    expected.assert_eq(&read_split_anywhere(&format_stream(events), |pieces| read_pieces(pieces)));
}

fn item_added_event(at: u64, item: Value) -> Value {
    json!({ "type": "response.output_item.added", "output_index": at, "item": item })
}

fn item_done_event(at: u64, item: Value) -> Value {
    json!({ "type": "response.output_item.done", "output_index": at, "item": item })
}

fn delta_event(kind: &str, at: u64, delta: &str) -> Value {
    json!({ "type": format!("response.{kind}.delta"), "output_index": at, "delta": delta,
        "item_id": "x", "sequence_number": 9 })
}

fn message_item(text: &str) -> Value {
    json!({ "type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
        "content": [{ "type": "output_text", "text": text, "annotations": [] }] })
}

fn call_item(arguments: &str) -> Value {
    json!({ "type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "look",
        "arguments": arguments, "status": "completed" })
}

fn completed_event() -> Value {
    json!({ "type": "response.completed", "response": { "status": "completed", "error": null,
        "usage": { "input_tokens": 9, "input_tokens_details": { "cached_tokens": 8 },
            "output_tokens": 5, "output_tokens_details": { "reasoning_tokens": 3 } } } })
}

fn incomplete_event(reason: &str) -> Value {
    json!({ "type": "response.incomplete", "response": { "status": "incomplete",
        "incomplete_details": { "reason": reason } } })
}

/// Returns the example in the vendor's documentation: reasoning with two summaries, a text, a call.
fn documented_events() -> Vec<Value> {
    let created = json!({ "type": "response.created", "response": { "status": "in_progress" } });
    let summary = |index: u64, text: &str| {
        json!({ "type": "response.reasoning_summary_text.delta", "output_index": 0,
            "summary_index": index, "delta": text })
    };
    let reasoning = json!({ "type": "reasoning", "id": "rs_1", "encrypted_content": "gAA",
        "summary": [{ "type": "summary_text", "text": "hm" }, { "type": "summary_text", "text": "so" }] });
    let early =
        json!({ "type": "reasoning", "id": "rs_9", "encrypted_content": "g", "summary": [] });
    vec![
        created,
        item_added_event(0, early),
        json!({ "type": "response.reasoning_summary_part.added", "output_index": 0 }),
        summary(0, "h"),
        summary(0, "m"),
        summary(1, "so"),
        item_done_event(0, reasoning),
        item_added_event(1, message_item("")),
        delta_event("output_text", 1, "Grü"),
        delta_event("output_text", 1, "ße"),
        json!({ "type": "response.output_text.done", "output_index": 1, "text": "Grüße" }),
        item_done_event(1, message_item("Grüße")),
        item_added_event(2, call_item("")),
        delta_event("function_call_arguments", 2, "{\"x\":"),
        delta_event("function_call_arguments", 2, " 1}"),
        item_done_event(2, call_item("{\"x\": 1}")),
        completed_event(),
    ]
}

#[test]
fn reasoning_text_and_call_are_read_from_deltas() {
    check_stream(
        &documented_events(),
        expect![[r#"
        thought "h"
        thought "m"
        thought "\n\nso"
        text "Grü"
        text "ße"
        text ""
        text ""
        text ""
        call call_1 look {"x":1}
        = thought:"hm\n\nso" opaque:{"type":"reasoning","encrypted_content":"gAA","summary":[{"type":"summary_text","text":"hm"},{"type":"summary_text","text":"so"}]} text:"Grüße" call:call_1~{"arguments":"{\"x\": 1}"} ToolUse 9+5 (8 cached, 3 reasoning)"#]],
    );
}

#[test]
fn answer_without_delta_events_is_read_from_its_items() {
    let mut end = completed_event();
    end["response"]["output"] = json!([message_item("hello"), call_item("{}")]);
    check_stream(
        &[end.clone()],
        expect![[r#"
        text "hello"
        text ""
        call call_1 look {}
        = text:"hello" call:call_1 ToolUse 9+5 (8 cached, 3 reasoning)"#]],
    );
    check_stream(
        &[item_done_event(0, message_item("hello")), end],
        expect![[r#"
        text "hello"
        text ""
        call call_1 look {}
        = text:"hello" call:call_1 ToolUse 9+5 (8 cached, 3 reasoning)"#]],
    );
}

#[test]
fn answer_without_item_events_is_read_from_its_deltas() {
    check_stream(
        &[
            delta_event("output_text", 0, "hel"),
            delta_event("output_text", 0, "lo"),
            completed_event(),
        ],
        expect![[r#"
            text "hel"
            text "lo"
            = text:"hello" Stop 9+5 (8 cached, 3 reasoning)"#]],
    );
}

#[test]
fn interleaved_items_are_ordered_by_their_index() {
    check_stream(
        &[
            item_added_event(1, message_item("")),
            item_added_event(0, message_item("")),
            delta_event("output_text", 1, "b"),
            delta_event("output_text", 0, "a"),
            item_done_event(1, message_item("b")),
            item_done_event(0, message_item("a")),
            completed_event(),
        ],
        expect![[r#"
            text "b"
            text "a"
            = text:"a" text:"b" Stop 9+5 (8 cached, 3 reasoning)"#]],
    );
}

#[test]
fn items_without_an_index_are_matched_by_id_or_open_item() {
    let unnumbered = |with_ids: bool| -> Vec<Value> {
        let mut second = call_item("{}");
        second["call_id"] = json!("call_2");
        second["id"] = json!("fc_2");
        let mut events = vec![
            item_added_event(0, message_item("")),
            delta_event("output_text", 0, "hi"),
            item_done_event(0, message_item("hi")),
            item_added_event(1, call_item("")),
            delta_event("function_call_arguments", 1, "{}"),
            item_done_event(1, call_item("{}")),
            item_added_event(2, second.clone()),
            item_done_event(2, second),
            completed_event(),
        ];
        for event in &mut events {
            let fields = event.as_object_mut().unwrap();
            fields.remove("output_index");
            if !with_ids {
                fields.remove("item_id");
                if let Some(item) = fields.get_mut("item").and_then(Value::as_object_mut) {
                    item.remove("id");
                }
            }
        }
        events
    };
    for with_ids in [true, false] {
        let text = format_stream(&unnumbered(with_ids));
        let read = read_pieces([text.as_bytes()]);
        let expected = "= text:\"hi\" call:call_1 call:call_2 ToolUse";
        assert!(read.lines().last().unwrap().starts_with(expected), "{with_ids}: {read}");
    }
}

#[test]
fn plain_reasoning_text_is_read_as_a_thought() {
    let item = json!({ "type": "reasoning", "id": "rs_1", "summary": [],
        "content": [{ "type": "reasoning_text", "text": "hm so" }] });
    check_stream(
        &[
            delta_event("reasoning_text", 0, "hm "),
            delta_event("reasoning_text", 0, "so"),
            item_done_event(0, item),
            item_done_event(1, message_item("a")),
            completed_event(),
        ],
        expect![[r#"
            thought "hm "
            thought "so"
            text "a"
            = thought:"hm so" opaque:{"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"hm so"}]} text:"a" Stop 9+5 (8 cached, 3 reasoning)"#]],
    );
}

#[test]
fn answer_stopped_by_a_limit_reports_it_and_keeps_raw_call_arguments() {
    let begun = || item_added_event(0, call_item(""));
    check_stream(
        &[begun(), incomplete_event("max_output_tokens")],
        expect![[r#"
        call call_1 look ""
        = call:call_1 MaxTokens 0+0 (0 cached, 0 reasoning)"#]],
    );
    let cut = delta_event("function_call_arguments", 0, "{\"x\":");
    check_stream(
        &[begun(), cut.clone(), incomplete_event("max_output_tokens")],
        expect![[r#"
        text ""
        call call_1 look "{\"x\":"
        = call:call_1 MaxTokens 0+0 (0 cached, 0 reasoning)"#]],
    );
    check_stream(
        &[begun(), cut, incomplete_event("content_filter")],
        expect![[r#"
        text ""
        =  Safety 0+0 (0 cached, 0 reasoning)"#]],
    );
    check_stream(
        &[delta_event("output_text", 0, "so"), incomplete_event("moon")],
        expect![[r#"
        text "so"
        = text:"so" Unknown (moon) 0+0 (0 cached, 0 reasoning)"#]],
    );
}

#[test]
fn incomplete_reasoning_is_not_sent_back() {
    let early =
        json!({ "type": "reasoning", "id": "rs_9", "encrypted_content": "g", "summary": [] });
    let piece = json!({ "type": "response.reasoning_summary_text.delta", "output_index": 0,
        "summary_index": 0, "delta": "hm" });
    check_stream(
        &[item_added_event(0, early), piece, incomplete_event("max_output_tokens")],
        expect![[r#"
        thought "hm"
        = thought:"hm" MaxTokens 0+0 (0 cached, 0 reasoning)"#]],
    );
}

#[test]
fn error_events_are_reported_in_every_format() {
    let error = json!({ "code": "server_error", "message": "No" });
    let mut flat = error.clone();
    flat["type"] = json!("error");
    let failed = json!({ "type": "response.failed",
        "response": { "status": "failed", "error": error } });
    for report in [flat, json!({ "type": "error", "error": error }), failed] {
        check_stream(
            &[delta_event("output_text", 0, "so"), report],
            expect![[r#"
                text "so"
                ! Provider Temporary `http://h/v1/responses` reports an error: No"#]],
        );
    }
}

#[test]
fn stream_without_its_final_event_is_a_temporary_error() {
    check_stream(
        &documented_events()[..9],
        expect![[r#"
            thought "h"
            thought "m"
            thought "\n\nso"
            text "Grü"
            ! Provider Temporary the answer from `http://h/v1/responses` ended early"#]],
    );
    check_stream(&[], expect!["! Provider Temporary `http://h/v1/responses` sent an empty answer"]);
}

#[test]
fn unknown_events_and_the_done_mark_are_ignored() {
    let smell = json!({ "type": "response.smell.delta", "output_index": 7, "delta": "roses" });
    let mut text =
        format_stream(&[smell, item_done_event(0, message_item("a")), completed_event()]);
    text.push_str("data: [DONE]\n\n: ping\n\n");
    assert_eq!(
        read_pieces([text.as_bytes()]),
        "text \"a\"\n= text:\"a\" Stop 9+5 (8 cached, 3 reasoning)"
    );
}

/// Feeds events until one is refused. Returns the number of accepted events.
fn take_until_error(events: impl Iterator<Item = Value>) -> (usize, ErrorKind) {
    let mut reply = ResponsesReply::new("http://h");
    for (count, event) in events.enumerate() {
        let name = "message".to_owned();
        if let Err(error) = reply.handle_event(&ServerEvent { name, data: event.to_string() }) {
            return (count, error.kind);
        }
    }
    panic!("nothing was refused");
}

#[test]
fn endless_stream_stops_at_a_limit() {
    let nothing = std::iter::repeat(json!({ "type": "response.in_progress" }));
    assert_eq!(take_until_error(nothing), (EVENTS_MAX, ErrorKind::LimitReached));
    let items = (0..).map(|at| item_done_event(at, message_item("a")));
    assert_eq!(take_until_error(items), (PARTS_MAX, ErrorKind::LimitReached));
    let long = "x".repeat(64 * 1024);
    let arguments = std::iter::repeat(delta_event("function_call_arguments", 0, &long));
    let (count, kind) = take_until_error(arguments);
    assert_eq!((count, kind), (3 * ARGUMENTS_BYTES_MAX / long.len(), ErrorKind::LimitReached));
}

#[test]
fn surrogate_halves_are_joined_and_a_lone_half_is_replaced() {
    let event =
        |kind: &str, rest: &str| format!("data: {{\"type\":\"response.{kind}\",{rest}}}\n\n");
    let piece = |text: &str| {
        event(
            "output_text.delta",
            &format!("\"output_index\":0,\"content_index\":0,\"delta\":\"{text}\""),
        )
    };
    let item = r#""output_index":0,"item":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a\ud83e\udd80b\ud83dc"}]}"#;
    let all = [
        piece(r"a\ud83e"),
        piece(r"\udd80b\ud83dc"),
        event("output_item.done", item),
        event("completed", r#""response":{"status":"completed","output":[]}"#),
    ];
    let read = read_split_anywhere(&all.concat(), |pieces| read_pieces(pieces));
    assert!(read.contains("text:\"a🦀b\u{fffd}c\""), "{read}");
}
