//! Tests streams in the vendor's format and the completions that result. Each stream is split at
//! every byte.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use expect_test::{Expect, expect};
use jaato_plugin_sdk::serde_json::{Value, json};
use jaato_plugin_sdk::types::Part;
use jaato_plugin_sdk_provider::{EVENTS_MAX, PARTS_MAX};
use provider_anthropic::reply::AnthropicReply;

use crate::made::{CompletionFormat, read_split_anywhere};

/// How the results are printed.
const WORDS: CompletionFormat = CompletionFormat {
    part: format_part,
    usage: |usage| {
        format!(
            "{}+{} ({} cached, {} written)",
            usage.prompt_tokens, usage.output_tokens, usage.cached_tokens, usage.cache_write_tokens
        )
    },
};

fn read_pieces<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> String {
    WORDS.format_stream(AnthropicReply::new("http://h/v1/messages"), pieces)
}

fn format_part(part: &Part) -> String {
    match part {
        Part::Text { text, .. } => format!("text:{text:?}"),
        Part::Thought { text, signature, .. } => {
            format!("thought:{text:?}/{}", signature.as_deref().unwrap_or("-"))
        }
        Part::ToolCall(call) => format!("call:{}", call.id),
        Part::Opaque(opaque) => format!("opaque:{}", opaque.item),
        other => format!("{other:?}"),
    }
}

#[track_caller]
fn read_cut_anywhere(stream: &str) -> String {
    read_split_anywhere(stream, |pieces| read_pieces(pieces))
}

#[track_caller]
fn check_stream(stream: &str, expected: Expect) {
    expected.assert_eq(&read_cut_anywhere(stream));
}

/// Writes events in the vendor's stream format.
fn format_stream(events: &[Value]) -> String {
    let written = |event: &Value| {
        format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default())
    };
    events.iter().map(written).collect()
}

fn start_event() -> Value {
    json!({ "type": "message_start", "message": { "id": "msg_1", "type": "message",
        "role": "assistant", "content": [], "model": "claude-opus-5-5", "stop_reason": null,
        "stop_sequence": null, "usage": { "input_tokens": 9, "cache_creation_input_tokens": 20,
        "cache_read_input_tokens": 100, "output_tokens": 1 } } })
}

fn begin_event(index: u64, block: Value) -> Value {
    json!({ "type": "content_block_start", "index": index, "content_block": block })
}

fn block_delta_event(index: u64, delta: Value) -> Value {
    json!({ "type": "content_block_delta", "index": index, "delta": delta })
}

fn block_stop_event(index: u64) -> Value {
    json!({ "type": "content_block_stop", "index": index })
}

fn end_events(reason: &str) -> [Value; 2] {
    let delta = json!({ "stop_reason": reason, "stop_sequence": null });
    [
        json!({ "type": "message_delta", "delta": delta, "usage": { "output_tokens": 15 } }),
        json!({ "type": "message_stop" }),
    ]
}

fn text_events(index: u64, text: &str) -> [Value; 3] {
    [
        begin_event(index, json!({ "type": "text", "text": "" })),
        block_delta_event(index, json!({ "type": "text_delta", "text": text })),
        block_stop_event(index),
    ]
}

fn call_events(index: u64, id: &str, pieces: &[&str]) -> Vec<Value> {
    let block = json!({ "type": "tool_use", "id": id, "name": "run", "input": {} });
    let fragment = |text| {
        block_delta_event(index, json!({ "type": "input_json_delta", "partial_json": text }))
    };
    let pieces = pieces.iter().map(fragment);
    [begin_event(index, block)].into_iter().chain(pieces).chain([block_stop_event(index)]).collect()
}

/// Returns the stream of a message with these blocks.
fn message_stream(blocks: &[&[Value]], reason: &str) -> String {
    format_stream(&[&[start_event()], blocks.concat().as_slice(), &end_events(reason)].concat())
}

#[test]
fn vendors_example_stream_is_read() {
    check_stream(
        r#"event: message_start
data: {"type": "message_start", "message": {"id": "msg_1nZdL29xx5MUA1yADyHTEsnR8uuvGzszyY", "type": "message", "role": "assistant", "content": [], "model": "claude-opus-5-5", "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": 25, "output_tokens": 1}}}

event: content_block_start
data: {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}

event: ping
data: {"type": "ping"}

event: content_block_delta
data: {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Grü"}}

event: content_block_delta
data: {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "ße!"}}

event: content_block_stop
data: {"type": "content_block_stop", "index": 0}

event: message_delta
data: {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence":null}, "usage": {"output_tokens": 15}}

event: message_stop
data: {"type": "message_stop"}

"#,
        expect![[r#"
            text "Grü"
            text "ße!"
            = text:"Grüße!" Stop 25+15 (0 cached, 0 written)"#]],
    );
}

#[test]
fn thoughts_keep_their_signatures_and_calls_keep_their_order() {
    let thought = |index: u64, text: &str, signature: &str| {
        [
            begin_event(index, json!({ "type": "thinking", "thinking": "", "signature": "" })),
            block_delta_event(index, json!({ "type": "thinking_delta", "thinking": text })),
            block_delta_event(index, json!({ "type": "signature_delta", "signature": signature })),
            block_stop_event(index),
        ]
    };
    let redacted = [
        begin_event(3, json!({ "type": "redacted_thinking", "data": "EmwK" })),
        block_stop_event(3),
    ];
    check_stream(
        &message_stream(
            &[
                &thought(0, "hm", "sig0"),
                &text_events(1, "I look."),
                &call_events(2, "toolu_1", &["", "{\"x\"", ":1}"]),
                &redacted,
                &thought(4, "", "sig4"),
                &call_events(5, "toolu_2", &[""]),
                &text_events(6, "And"),
                &text_events(7, "that"),
            ],
            "tool_use",
        ),
        expect![[r#"
            thought "hm"
            text "I look."
            text ""
            text ""
            text ""
            text ""
            text "And"
            text "that"
            call toolu_1 run {"x":1}
            call toolu_2 run {}
            = thought:"hm"/sig0 text:"I look." call:toolu_1 opaque:{"type":"redacted_thinking","data":"EmwK"} thought:""/sig4 call:toolu_2 text:"And" text:"that" ToolUse 129+15 (100 cached, 20 written)"#]],
    );
}

#[test]
fn server_tool_blocks_and_unknown_blocks_are_kept_unchanged() {
    let search = [
        begin_event(
            0,
            json!({ "type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {} }),
        ),
        block_delta_event(0, json!({ "type": "input_json_delta", "partial_json": "{\"query\":" })),
        block_delta_event(0, json!({ "type": "input_json_delta", "partial_json": "\"moon\"}" })),
        block_stop_event(0),
    ];
    let found =
        json!({ "type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [] });
    let found = [begin_event(1, found), block_stop_event(1)];
    let compaction = [
        begin_event(2, json!({ "type": "compaction", "content": null })),
        block_delta_event(2, json!({ "type": "compaction_delta", "content": "so " })),
        block_delta_event(2, json!({ "type": "compaction_delta", "content": "far", "n": 1 })),
        block_stop_event(2),
    ];
    check_stream(
        &message_stream(
            &[&search, &found, &compaction, &text_events(3, "It is full.")],
            "pause_turn",
        ),
        expect![[r#"
            text "It is full."
            = opaque:{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"moon"}} opaque:{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]} opaque:{"type":"compaction","content":"so far"} text:"It is full." Paused 129+15 (100 cached, 20 written)"#]],
    );
}

#[test]
fn stop_reasons_are_mapped() {
    let said = |reason: &str| {
        read_cut_anywhere(&message_stream(&[&text_events(0, "a")], reason))
            .lines()
            .last()
            .unwrap()
            .to_owned()
    };
    let lines: Vec<_> = [
        "end_turn",
        "stop_sequence",
        "max_tokens",
        "model_context_window_exceeded",
        "pause_turn",
        "refusal",
        "moon",
    ]
    .map(said)
    .into();
    expect![[r#"
        = text:"a" Stop 129+15 (100 cached, 20 written)
        = text:"a" Stop 129+15 (100 cached, 20 written)
        = text:"a" MaxTokens 129+15 (100 cached, 20 written)
        = text:"a" ContextExceeded 129+15 (100 cached, 20 written)
        = text:"a" Paused 129+15 (100 cached, 20 written)
        = text:"a" Refused 129+15 (100 cached, 20 written)
        = text:"a" Unknown (moon) 129+15 (100 cached, 20 written)"#]]
    .assert_eq(&lines.join("\n"));
}

#[test]
fn refusal_drops_calls_and_shows_the_explanation() {
    let details = json!({ "type": "message_delta", "usage": { "output_tokens": 3 },
        "delta": { "stop_reason": "refusal",
            "stop_details": { "category": "cyber", "explanation": "It may do harm." } } });
    let called = call_events(0, "toolu_1", &["{}"]);
    let events =
        [&[start_event()], called.as_slice(), &[details, json!({ "type": "message_stop" })]];
    check_stream(
        &format_stream(&events.concat()),
        expect![[r#"
        text ""
        text ""
        notice the model declined: It may do harm.
        =  Refused 129+3 (100 cached, 20 written)"#]],
    );
    // The answer may be empty.
    check_stream(
        &message_stream(&[], "refusal"),
        expect!["=  Refused 129+15 (100 cached, 20 written)"],
    );
}

#[test]
fn call_truncated_by_the_token_limit_keeps_its_partial_arguments() {
    let begun = &call_events(1, "toolu_2", &[""])[..2];
    check_stream(
        &message_stream(&[&call_events(0, "toolu_1", &["{\"x\": \"lo"]), begun], "max_tokens"),
        expect![[r#"
            text ""
            text ""
            text ""
            call toolu_1 run "{\"x\": \"lo"
            call toolu_2 run ""
            = call:toolu_1 call:toolu_2 MaxTokens 129+15 (100 cached, 20 written)"#]],
    );
}

#[test]
fn gateway_may_repeat_the_start_and_omit_ids_and_reason() {
    let mut twice = start_event();
    twice["message"]["usage"] = json!({ "input_tokens": 10, "output_tokens": 1 });
    let block = json!({ "type": "tool_use", "id": "", "name": "run", "input": { "x": 1 } });
    let called = call_events(1, "", &["{}"]);
    let events = [
        &[start_event(), twice, begin_event(0, block), block_stop_event(0)],
        called.as_slice(),
        &[json!({ "type": "message_stop" })],
    ];
    check_stream(
        &format_stream(&events.concat()),
        expect![[r#"
        text ""
        text ""
        text ""
        call call-0 run {"x":1}
        call call-1 run {}
        = call:call-0 call:call-1 ToolUse 130+1 (100 cached, 20 written)"#]],
    );
}

#[test]
fn unstarted_and_unfinished_blocks_are_kept() {
    let events = [
        block_delta_event(0, json!({ "type": "text_delta", "text": "a" })),
        begin_event(1, json!({ "type": "thinking", "thinking": "hm", "signature": "s" })),
        begin_event(2, json!({ "type": "text", "text": "b" })),
        block_delta_event(2, json!({ "type": "signature_delta", "signature": "no" })),
        begin_event(3, json!({ "type": "redacted_thinking", "data": "x" })),
        begin_event(3, json!({ "type": "text", "text": "c" })),
        end_events("end_turn")[0].clone(),
    ];
    check_stream(
        &format_stream(&events),
        expect![[r#"
        text "a"
        thought "hm"
        text "b"
        text "c"
        = text:"a" thought:"hm"/s text:"b" opaque:{"type":"redacted_thinking","data":"x"} text:"c" Stop 0+15 (0 cached, 0 written)"#]],
    );
}

#[test]
fn late_signature_is_dropped_and_never_attached_elsewhere() {
    let events = [
        begin_event(0, json!({ "type": "thinking", "thinking": "hm" })),
        begin_event(1, json!({ "type": "text", "text": "a" })),
        block_delta_event(0, json!({ "type": "signature_delta", "signature": "late" })),
        end_events("end_turn")[0].clone(),
    ];
    check_stream(
        &format_stream(&events),
        expect![[r#"
        thought "hm"
        text "a"
        = thought:"hm"/- text:"a" Stop 0+15 (0 cached, 0 written)"#]],
    );
}

#[test]
fn dropped_thoughts_are_reported_once() {
    let dropped = json!([{ "type": "thinking_dropped", "path": "messages.1.content.0",
        "reason": "prefix_binding_mismatch" }]);
    let mut first = start_event();
    first["message"]["input_transformations"] = dropped.clone();
    let mut last = end_events("end_turn");
    last[0]["input_transformations"] = dropped;
    let events = [&[first], text_events(0, "a").as_slice(), &last].concat();
    check_stream(
        &format_stream(&events),
        expect![[r#"
        notice the server dropped earlier thoughts because the history before them changed
        text "a"
        = text:"a" Stop 129+15 (100 cached, 20 written)"#]],
    );
}

#[test]
fn stream_error_ends_the_answer_with_its_kind() {
    let of = |kind: &str, said: &str| {
        let error = json!({ "type": kind, "message": said });
        let error = json!({ "type": "error", "error": error });
        read_cut_anywhere(&format_stream(&[start_event(), error]))
    };
    let lines = [
        of("overloaded_error", "Overloaded"),
        of("rate_limit_error", "Too fast."),
        of("invalid_request_error", "prompt is too long: 200001 tokens > 200000 maximum"),
        of("invalid_request_error", "bad"),
        of("authentication_error", "who?"),
    ];
    expect![[r#"
        ! Provider Temporary `http://h/v1/messages` reports an error: Overloaded
        ! Provider Temporary `http://h/v1/messages` reports an error: Too fast
        ! ContextOverflow Permanent `http://h/v1/messages` reports an error: prompt is too long: 200001 tokens > 200000 maximum
        ! Provider Permanent `http://h/v1/messages` reports an error: bad
        ! Provider Permanent `http://h/v1/messages` reports an error: who?"#]].assert_eq(&lines.join("\n"));
    for odd in [
        "event: error\ndata: busy\n\n",
        "event: error\ndata: {\"message\":\"busy\"}\n\n",
        "data: {\"error\":{\"message\":\"busy\"}}\n\n",
        "error: {\"error\":\"busy\"}\n\n",
    ] {
        let read = read_cut_anywhere(odd);
        assert!(read.starts_with("! Provider Temporary") && read.ends_with("busy"), "{read}");
    }
}

#[test]
fn stream_truncated_before_its_stop_reason_is_an_error() {
    let whole =
        message_stream(&[&text_events(0, "a"), &call_events(1, "toolu_1", &["{}"])], "tool_use");
    // After the stop reason, no content is missing.
    let told = whole.find("event: message_stop").unwrap();
    for cut in 0..=whole.len() {
        let read = read_pieces([&whole.as_bytes()[..cut]]);
        let is_error = read.lines().last().unwrap().starts_with("! Provider Temporary");
        assert_eq!(is_error, cut + 2 < told, "cut at {cut} of {told}: {read}");
    }
}

#[test]
fn events_of_unexpected_shape_are_ignored() {
    for odd in [
        json!(null),
        json!([]),
        json!("x"),
        json!({ "type": 7 }),
        json!({ "type": "of_the_future", "delta": { "text": "x" } }),
        json!({ "type": "content_block_delta", "index": "x", "delta": 7 }),
        json!({ "type": "content_block_delta", "delta": { "type": "citations_delta" } }),
        json!({ "type": "content_block_stop", "index": 9 }),
        json!({ "type": "message_delta" }),
        json!({ "type": "message_start" }),
    ] {
        let events = [&[odd], text_events(0, "a").as_slice(), &end_events("end_turn")].concat();
        let read = read_cut_anywhere(&format_stream(&events));
        assert!(read.ends_with("= text:\"a\" Stop 0+15 (0 cached, 0 written)"), "{read}");
    }
    let nameless = begin_event(0, json!({ "type": "tool_use", "id": "a" }));
    check_stream(
        &format_stream(&[nameless]),
        expect!["! Provider Temporary `http://h/v1/messages` sent a call without a name"],
    );
    check_stream(
        "data: {\"type\": oops\n\n",
        expect![[
            r#"! Provider Temporary `http://h/v1/messages` sent an event that is not valid JSON (expected value at line 1 column 10): `{"type": oops`"#
        ]],
    );
}

#[test]
fn endless_answer_stops_at_a_limit() {
    let ends_at = |most: usize, event: &dyn Fn(u64) -> Value| {
        let mut reply = AnthropicReply::new("http://h");
        let numbers = 0..u64::try_from(most + 8).unwrap();
        numbers.map(event).find_map(|event| reply.read_event(&event).err())
    };
    let endless: [(usize, &dyn Fn(u64) -> Value); 4] = [
        (EVENTS_MAX, &|_| json!({ "type": "ping" })),
        (PARTS_MAX, &|_| begin_event(0, json!({ "type": "text" }))),
        (PARTS_MAX, &|index| begin_event(index, json!({ "type": "mystery" }))),
        (64, &|_| begin_event(0, json!({ "type": "mystery", "data": "x".repeat(128 * 1024) }))),
    ];
    for (most, event) in endless {
        let error = ends_at(most, event).expect("there is a limit");
        assert_eq!(error.kind, jaato_plugin_sdk::ErrorKind::LimitReached, "{error}");
    }
    let mut reply = AnthropicReply::new("http://h");
    reply.read_event(&call_events(0, "a", &[])[0]).unwrap();
    let long = block_delta_event(
        0,
        json!({ "type": "input_json_delta", "partial_json": "x".repeat(1 << 20) }),
    );
    assert!((0..8).any(|_| reply.read_event(&long).is_err()), "arguments have a limit");
}

/// Returns the next pseudo-random number.
fn next(seed: &mut u64) -> usize {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    usize::try_from(*seed % 1_000_000).unwrap()
}

#[test]
fn damaged_stream_gives_the_same_result_however_it_is_split() {
    let thought =
        [begin_event(0, json!({ "type": "thinking", "thinking": "hm", "signature": "s" }))];
    let other = [begin_event(3, json!({ "type": "mystery", "data": "x" })), block_stop_event(3)];
    let whole = message_stream(
        &[&thought, &text_events(1, "Grü"), &call_events(2, "toolu_1", &["{\"x\"", ":1}"]), &other],
        "tool_use",
    );
    let pieces =
        ["\n", "\r", "data:", "{", "}", "\"", "null", "[1]", ",", ":", "\u{0}", "é", "1e9", "-"];
    for number in 1..=2_000_u64 {
        let mut seed = number;
        let mut bytes = whole.clone().into_bytes();
        for _ in 0..=next(&mut seed) % 4 {
            let at = next(&mut seed) % bytes.len();
            let end = (at + next(&mut seed) % 12).min(bytes.len());
            let piece = pieces[next(&mut seed) % pieces.len()];
            drop(bytes.splice(at..end, piece.bytes()));
        }
        let cut = next(&mut seed) % bytes.len();
        let read_whole = read_pieces([&bytes[..]]);
        assert_eq!(read_pieces([&bytes[..cut], &bytes[cut..]]), read_whole, "seed {number}");
    }
}

#[test]
fn split_surrogates_are_joined_and_a_lone_one_is_replaced() {
    let text = |text: &str| {
        format!(
            "data: {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{{\"type\":\"text_delta\",\"text\":\"{text}\"}}}}\n\n"
        )
    };
    let begin =
        format_stream(&[start_event(), begin_event(0, json!({ "type": "text", "text": "" }))]);
    let end = "data: {\"type\":\"message_stop\"}\n\n";
    let all = [&begin, &text(r"a\ud83e"), &text(r"\udd80b\ud83dc"), end].concat();
    let read = read_cut_anywhere(&all);
    assert!(read.contains("text:\"a🦀b\u{fffd}c\""), "{read}");
}
