//! Tests of streams as servers send them, each split at every byte.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use expect_test::{Expect, expect};
use jaato_plugin_sdk::serde_json;
use jaato_plugin_sdk::types::Part;
use jaato_plugin_sdk_provider::chat::ChatReply;
use jaato_plugin_sdk_provider::{EVENTS_MAX as CHUNKS_MAX, PARTS_MAX};

use crate::made::{CompletionFormat, format_delta, read_split_anywhere};

/// The format of the results.
const WORDS: CompletionFormat = CompletionFormat {
    part: format_part,
    usage: |usage| {
        format!("{}+{} ({} cached)", usage.prompt_tokens, usage.output_tokens, usage.cached_tokens)
    },
};

fn read_pieces<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> String {
    WORDS.format_stream(ChatReply::new("http://h/v1/chat/completions"), pieces)
}

fn format_part(part: &Part) -> String {
    match part {
        Part::Text { text, .. } => format!("text:{text:?}"),
        Part::Thought { text, signature: None, .. } => format!("thought:{text:?}"),
        Part::Thought { text, signature: Some(name), .. } => format!("{name}:{text:?}"),
        Part::ToolCall(call) => format!("call:{}", call.id),
        other => format!("{other:?}"),
    }
}

/// Checks the deltas of a stream, which do not depend on where it is split.
#[track_caller]
fn check_stream(stream: &str, expected: Expect) {
    expected.assert_eq(&read_split_anywhere(stream, |pieces| read_pieces(pieces)));
}

/// Creates a stream with these choices and an end mark.
fn stream_of_choices(choices: &[&str]) -> String {
    let events = choices.iter().map(|choice| format!("data: {{\"choices\":[{choice}]}}\n\n"));
    events.chain(["data: [DONE]\n\n".to_owned()]).collect()
}

#[test]
fn text_is_streamed_in_pieces_and_usage_is_read_last() {
    check_stream(
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":null}]}\n\n\
         data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Grü\"}}],\"usage\":null}\n\n\
         data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"ße\"},\"finish_reason\":\"stop\"}]}\n\n\
         data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":2,\"total_tokens\":11,\
         \"prompt_tokens_details\":{\"cached_tokens\":8}}}\n\ndata: [DONE]\n\n",
        expect![[r#"
            text "Grü"
            text "ße"
            = text:"Grüße" Stop 9+2 (8 cached)"#]],
    );
}

#[test]
fn comments_blank_lines_and_crlf_change_nothing() {
    check_stream(
        ": OPENROUTER PROCESSING\r\n\r\n\r\n\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"a\"},\
         \"finish_reason\":\"stop\"}]}\r\n\r\n: ping\r\n\r\ndata: [DONE]\r\n\r\n",
        expect![[r#"
            text "a"
            = text:"a" Stop 0+0 (0 cached)"#]],
    );
}

#[test]
fn parallel_calls_in_fragments_are_joined() {
    check_stream(
        &stream_of_choices(&[
            r#"{"delta":{"content":"I look."}}"#,
            r#"{"delta":{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"one","arguments":""}}]}}"#,
            r#"{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"x\""}},{"index":1,"id":"b","function":{"name":"two","arguments":"{}"}}]}}"#,
            r#"{"delta":{"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]}}"#,
            r#"{"delta":{},"finish_reason":"tool_calls"}"#,
        ]),
        expect![[r#"
            text "I look."
            text ""
            text ""
            text ""
            call a one {"x":1}
            call b two {}
            = text:"I look." call:a call:b ToolUse 0+0 (0 cached)"#]],
    );
}

#[test]
fn complete_call_without_id_and_index_and_with_reason_stop_is_read() {
    check_stream(
        &stream_of_choices(&[
            r#"{"delta":{"tool_calls":[{"function":{"name":"one","arguments":{"x":1}}}]},"finish_reason":"stop"}"#,
        ]),
        expect![[r#"
            text ""
            call call-0 one {"x":1}
            = call:call-0 ToolUse 0+0 (0 cached)"#]],
    );
}

#[test]
fn legacy_function_call_is_read() {
    check_stream(
        &stream_of_choices(&[
            r#"{"delta":{"function_call":{"name":"one","arguments":"{\"x\""}}}"#,
            r#"{"delta":{"function_call":{"arguments":":1}"}},"finish_reason":"function_call"}"#,
        ]),
        expect![[r#"
            text ""
            text ""
            call call-0 one {"x":1}
            = call:call-0 ToolUse 0+0 (0 cached)"#]],
    );
}

#[test]
fn invalid_json_arguments_are_kept_for_the_session_to_reject() {
    check_stream(
        &stream_of_choices(&[
            r#"{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"one","arguments":"{\"x\": tru"}}]},"finish_reason":"stop"}"#,
        ]),
        expect![[r#"
            text ""
            call a one "{\"x\": tru"
            = call:a ToolUse 0+0 (0 cached)"#]],
    );
}

#[test]
fn last_call_cut_off_by_the_token_limit_keeps_its_incomplete_arguments() {
    check_stream(
        &stream_of_choices(&[
            r#"{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"one","arguments":""}},{"index":1,"id":"b","function":{"name":"two","arguments":""}}]},"finish_reason":"length"}"#,
        ]),
        expect![[r#"
            text ""
            call a one {}
            call b two ""
            = call:a call:b MaxTokens 0+0 (0 cached)"#]],
    );
}

#[test]
fn null_or_missing_arguments_become_an_empty_object() {
    check_stream(
        &stream_of_choices(&[
            r#"{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"one","arguments":"null"}},{"index":1,"id":"b","function":{"name":"two","arguments":null}},{"index":2,"id":"c","function":{"name":"three"}}]},"finish_reason":"tool_calls"}"#,
        ]),
        expect![[r#"
            text ""
            call a one {}
            call b two {}
            call c three {}
            = call:a call:b call:c ToolUse 0+0 (0 cached)"#]],
    );
}

#[test]
fn calls_in_one_list_are_separate_calls() {
    check_stream(
        &stream_of_choices(&[
            r#"{"delta":{"tool_calls":[{"function":{"name":"get_environment"}},{"function":{"name":"list_tools"}}]},"finish_reason":"tool_calls"}"#,
        ]),
        expect![[r#"
            text ""
            call call-0 get_environment {}
            call call-1 list_tools {}
            = call:call-0 call:call-1 ToolUse 0+0 (0 cached)"#]],
    );
}

#[test]
fn empty_call_fragments_are_not_reported_as_progress() {
    check_stream(
        &stream_of_choices(&[
            r#"{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"one"}}]}}"#,
            r#"{"delta":{"tool_calls":[{"index":0,"function":{"arguments":""}}]}}"#,
            r#"{"delta":{"tool_calls":[{"index":0}]}}"#,
            r#"{"delta":{"tool_calls":[]},"finish_reason":"tool_calls"}"#,
        ]),
        expect![[r#"
            text ""
            call a one {}
            = call:a ToolUse 0+0 (0 cached)"#]],
    );
}

#[test]
fn reasoning_under_either_field_name_becomes_a_thought() {
    check_stream(
        &stream_of_choices(&[
            r#"{"delta":{"reasoning_content":"hm","content":null}}"#,
            r#"{"delta":{"reasoning":" so","reasoning_content":""}}"#,
            r#"{"delta":{"content":"yes"},"finish_reason":"stop"}"#,
        ]),
        expect![[r#"
            thought "hm"
            thought " so"
            text "yes"
            = reasoning_content:"hm" thought:" so" text:"yes" Stop 0+0 (0 cached)"#]],
    );
}

#[test]
fn content_may_be_a_list_of_typed_pieces() {
    check_stream(
        &stream_of_choices(&[
            r#"{"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"yes"}]},"finish_reason":"stop"}"#,
        ]),
        expect![[r#"
            thought "hm"
            text "yes"
            = thought:"hm" text:"yes" Stop 0+0 (0 cached)"#]],
    );
}

#[test]
fn refusal_text_is_shown_and_finishes_as_refused() {
    check_stream(
        &stream_of_choices(&[r#"{"delta":{"refusal":"I cannot."},"finish_reason":"stop"}"#]),
        expect![[r#"
            text "I cannot."
            = text:"I cannot." Refused 0+0 (0 cached)"#]],
    );
}

#[test]
fn content_filter_drops_tool_calls() {
    check_stream(
        &stream_of_choices(&[
            r#"{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"one","arguments":"{}"}}]}}"#,
            r#"{"delta":{},"finish_reason":"content_filter"}"#,
        ]),
        expect![[r#"
            text ""
            =  Safety 0+0 (0 cached)"#]],
    );
}

#[test]
fn finish_reasons_are_mapped() {
    for (reason, expected) in [
        ("stop", "Stop"),
        ("length", "MaxTokens"),
        ("tool_calls", "Stop"),
        ("content_filter", "Safety"),
        ("error", "Error"),
        ("model_length", "ContextExceeded"),
        ("refusal", "Refused"),
        ("MAX_TOKENS", "MaxTokens"),
        ("moon", "Unknown (moon)"),
    ] {
        let stream = stream_of_choices(&[&format!(
            r#"{{"delta":{{"content":"a"}},"finish_reason":"{reason}"}}"#
        )]);
        let read = read_pieces([stream.as_bytes()]);
        assert!(read.contains(&format!("= text:\"a\" {expected} ")), "{read}");
    }
}

#[test]
fn stream_ends_normally_with_either_done_mark_or_finish_reason() {
    check_stream(
        "data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\n",
        expect![[r#"
            text "a"
            = text:"a" Stop 0+0 (0 cached)"#]],
    );
    check_stream(
        "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\ndata: [DONE]\n\n",
        expect![[r#"
            text "a"
            = text:"a" Stop 0+0 (0 cached)"#]],
    );
}

#[test]
fn stream_with_only_empty_finish_reasons_counts_as_truncated() {
    for word in [r#""""#, r#""null""#, "null", r#""none""#] {
        let chunk = |text: &str| {
            let delta = format!(r#"{{"delta":{{"content":"{text}"}},"finish_reason":{word}}}"#);
            format!("data: {{\"choices\":[{delta}]}}\n\n")
        };
        check_stream(
            &format!("{}{}", chunk("one "), chunk("two ")),
            expect![[r#"
                text "one "
                text "two "
                ! Provider Temporary the answer from `http://h/v1/chat/completions` ended early"#]],
        );
    }
}

#[test]
fn last_event_without_a_blank_line_counts_if_complete() {
    let chunk = r#"data: {"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}"#;
    for end in ["", "\n", "\r\n", "\n\ndata: [DONE]"] {
        check_stream(
            &format!("{chunk}{end}"),
            expect![[r#"
                text "a"
                = text:"a" Stop 0+0 (0 cached)"#]],
        );
    }
    check_stream(
        &chunk[..chunk.len() - 1],
        expect!["! Provider Temporary the answer from `http://h/v1/chat/completions` ended early"],
    );
}

#[test]
fn surrogate_pair_split_across_events_is_joined() {
    check_stream(
        &stream_of_choices(&[
            r#"{"delta":{"reasoning_content":"\ud83e"}}"#,
            r#"{"delta":{"reasoning_content":"\udd80"}}"#,
            r#"{"delta":{"content":"a \ud83e"}}"#,
            r#"{"delta":{"content":"\udd80 b\ud83e"}}"#,
            r#"{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"one","arguments":"{\"x\":\"\ud83e"}}]}}"#,
            r#"{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\udd80\"}"}}]},"finish_reason":"tool_calls"}"#,
        ]),
        expect![[r#"
            thought ""
            thought "🦀"
            text "a "
            text "🦀 b"
            text ""
            text ""
            call a one {"x":"🦀"}
            = reasoning_content:"🦀" text:"a 🦀 b�" call:a ToolUse 0+0 (0 cached)"#]],
    );
}

#[test]
fn think_tags_become_a_thought_only_at_the_start() {
    check_stream(
        &stream_of_choices(&[
            r#"{"delta":{"content":"<thi"}}"#,
            r#"{"delta":{"content":"nk>\nI look.</"}}"#,
            r#"{"delta":{"content":"think>\n\nUse <think>"}}"#,
            r#"{"delta":{"content":" tags"},"finish_reason":"stop"}"#,
        ]),
        expect![[r#"
            thought "I look."
            text "Use <think>"
            text " tags"
            = thought:"I look." text:"Use <think> tags" Stop 0+0 (0 cached)"#]],
    );
}

#[test]
fn single_choice_is_read_whatever_its_index() {
    check_stream(
        &stream_of_choices(&[
            r#"{"index":1,"delta":{"content":"a"}}"#,
            r#"{"index":2,"delta":{"content":"b"},"finish_reason":"stop"}"#,
        ]),
        expect![[r#"
            text "a"
            text "b"
            = text:"ab" Stop 0+0 (0 cached)"#]],
    );
}

#[test]
fn reply_with_too_many_chunks_or_parts_fails() {
    let chunk = |delta: &str| {
        serde_json::from_str(&format!(r#"{{"choices":[{{"delta":{delta}}}]}}"#)).unwrap()
    };
    let mut reply = ChatReply::new("http://h");
    let empty = chunk(r#"{"tool_calls":[{"index":0,"function":{"arguments":""}}]}"#);
    assert!(
        (0..CHUNKS_MAX).all(|_| reply.read_chunk(&empty).is_ok_and(|deltas| deltas.is_empty()))
    );
    let error = reply.read_chunk(&empty).unwrap_err();
    assert_eq!(error.kind, jaato_plugin_sdk::ErrorKind::LimitReached);
    let thought = chunk(r#"{"reasoning":"a"}"#);
    for other in [r#"{"content":"b"}"#, r#"{"reasoning_content":"b"}"#] {
        let (other, mut reply) = (chunk(other), ChatReply::new("http://h"));
        for _ in 0..PARTS_MAX / 2 {
            assert!(reply.read_chunk(&thought).is_ok() && reply.read_chunk(&other).is_ok());
        }
        let error = reply.read_chunk(&thought).unwrap_err();
        assert_eq!(error.kind, jaato_plugin_sdk::ErrorKind::LimitReached);
    }
}

#[test]
fn stream_that_ends_early_is_an_error() {
    check_stream(
        "data: {\"choices\":[{\"delta\":{\"content\":\"half\"}}]}\n\ndata: {\"choices\":[{\"delta\":{\"con",
        expect![[r#"
            text "half"
            ! Provider Temporary the answer from `http://h/v1/chat/completions` ended early"#]],
    );
    check_stream(
        ": only a comment\n\n",
        expect!["! Provider Temporary `http://h/v1/chat/completions` sent an empty answer"],
    );
}

#[test]
fn errors_inside_the_stream_end_it() {
    check_stream(
        "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\ndata: {\"error\":{\"message\":\"out of memory\",\"code\":500}}\n\n",
        expect![[r#"
            text "a"
            ! Provider Temporary `http://h/v1/chat/completions` reports an error: out of memory"#]],
    );
    check_stream(
        "data: {\"object\":\"error\",\"message\":\"maximum context length is 9\",\"code\":400}\n\n",
        expect![
            "! ContextOverflow Permanent `http://h/v1/chat/completions` reports an error: maximum context length is 9"
        ],
    );
}

#[test]
fn stream_errors_are_read_in_every_known_format() {
    for event in [
        "event: error\ndata: {\"message\":\"out of memory\",\"code\":500}\n\n",
        "event: error\ndata: out of memory.\n\n",
        "error: {\"code\":500,\"message\":\"out of memory\",\"type\":\"server_error\"}\n\n",
        "error: {\"code\":500,\"message\":\"out of memory\"}",
        "data: {\"message\":\"out of memory\"}\n\n",
        "data: {\"detail\":\"out of memory\"}\n\n",
        "data: {\"choices\":[{\"error\":{\"message\":\"out of memory\"},\"finish_reason\":\"error\"}]}\n\n",
    ] {
        check_stream(
            event,
            expect![
                "! Provider Temporary `http://h/v1/chat/completions` reports an error: out of memory"
            ],
        );
    }
    check_stream(
        "data: {\"error\":\"\",\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\n",
        expect![[r#"
            text "a"
            = text:"a" Stop 0+0 (0 cached)"#]],
    );
}

#[test]
fn event_with_invalid_json_is_quoted_in_the_error() {
    check_stream(
        "data: moon\n\n",
        expect![
            "! Provider Temporary `http://h/v1/chat/completions` sent an event that is not valid JSON (expected value at line 1 column 1): `moon`"
        ],
    );
}

#[test]
fn events_after_done_and_other_choices_are_ignored() {
    check_stream(
        "data: {\"choices\":[{\"index\":1,\"delta\":{\"content\":\"other\"}},{\"index\":0,\"delta\":{\"content\":\"a\"},\
         \"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"late\"}}]}\n\n",
        expect![[r#"
            text "a"
            = text:"a" Stop 0+0 (0 cached)"#]],
    );
}

#[test]
fn unstreamed_completion_is_read_like_a_chunk() {
    let mut reply = ChatReply::new("http://h");
    let body = r#"{"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant",
        "content":"yes","tool_calls":[{"id":"a","type":"function","function":{"name":"one","arguments":"{}"}}]},
        "finish_reason":"tool_calls"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}"#;
    let deltas = reply.read_complete_answer(&[serde_json::from_str(body).unwrap()]).unwrap();
    assert_eq!(deltas.iter().map(format_delta).collect::<Vec<_>>(), ["text \"yes\""]);
    let (_, completion) = reply.finish().unwrap();
    assert_eq!(
        completion.parts.iter().map(format_part).collect::<Vec<_>>(),
        ["text:\"yes\"", "call:a"]
    );
}

#[test]
fn chunks_of_unexpected_shape_are_ignored() {
    for odd in [
        "1",
        "[]",
        "\"x\"",
        "null",
        "{}",
        r#"{"choices":{}}"#,
        r#"{"choices":[null]}"#,
        r#"{"choices":[{"delta":[]}]}"#,
        r#"{"choices":[{"delta":{"content":7,"tool_calls":{}}}]}"#,
        r#"{"choices":[{"delta":{"content":["x",{"type":"refusal"}]}}]}"#,
    ] {
        let stream = format!("data: {odd}\n\n");
        let read = read_pieces([stream.as_bytes()]);
        assert!(read.ends_with("ended early"), "{odd}: {read}");
    }
}

/// Returns the next pseudo-random number, the same in each run.
fn next_random(seed: &mut u64) -> usize {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    usize::try_from(*seed % (1 << 32)).unwrap()
}

#[test]
fn damaged_stream_gives_the_same_result_however_it_is_split() {
    let whole = stream_of_choices(&[
        r#"{"delta":{"reasoning_content":"hm","content":"Grü"}}"#,
        r#"{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"one","arguments":"{\"x\""}}]}}"#,
        r#"{"delta":{"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]},"finish_reason":"tool_calls"}"#,
    ]);
    let pieces =
        ["\n", "\r", "data:", "{", "}", "\"", "null", "[1]", ",", ":", "\u{0}", "é", "1e9", "-"];
    for number in 1..=3_000_u64 {
        let mut seed = number;
        let mut bytes = whole.clone().into_bytes();
        for _ in 0..=next_random(&mut seed) % 4 {
            let at = next_random(&mut seed) % bytes.len();
            let end = (at + next_random(&mut seed) % 12).min(bytes.len());
            let piece = pieces[next_random(&mut seed) % pieces.len()];
            drop(bytes.splice(at..end, piece.bytes()));
        }
        let cut = next_random(&mut seed) % bytes.len();
        let read_whole = read_pieces([&bytes[..]]);
        assert_eq!(read_pieces([&bytes[..cut], &bytes[cut..]]), read_whole, "seed {number}");
    }
}
