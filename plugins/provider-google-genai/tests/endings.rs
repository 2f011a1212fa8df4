//! Tests how answers end, well and badly, and what servers send instead of an answer. Streams are
//! split at every byte.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use expect_test::expect;
use jaato_plugin_sdk::serde_json::{self, json};
use jaato_plugin_sdk_provider::{CALLS_MAX, EVENTS_MAX, PARTS_MAX};

use crate::reply::{check_stream, format_stream, google_reply, stream_of_parts};

#[test]
fn finish_reasons_are_mapped() {
    let text = r#"{"text":"a"}"#;
    for (word, expected) in [
        ("MAX_TOKENS", expect!["MaxTokens"]),
        ("SAFETY", expect!["Safety"]),
        ("RECITATION", expect!["Safety"]),
        ("PROHIBITED_CONTENT", expect!["Safety"]),
        ("IMAGE_SAFETY", expect!["Safety"]),
        ("OTHER", expect!["Unknown (OTHER)"]),
        ("NO_IMAGE", expect!["Unknown (NO_IMAGE)"]),
    ] {
        let read = format_stream([stream_of_parts(&[text], word).as_bytes()]);
        let reason = read.split("text:\"a\" ").nth(1).unwrap();
        expected.assert_eq(reason.split(" 0+0").next().unwrap());
    }
}

#[test]
fn calls_stopped_by_a_safety_filter_are_dropped() {
    let call = r#"{"functionCall":{"name":"look","args":{}}}"#;
    check_stream(
        &stream_of_parts(&[r#"{"text":"a"}"#, call], "SAFETY"),
        expect![[r#"
            text "a"
            text ""
            = text:"a" Safety 0+0 (0 cached, 0 thought)"#]],
    );
    check_stream(
        &stream_of_parts(&[call], "MAX_TOKENS"),
        expect![[r#"
            text ""
            call call-0 look {}
            = call:call-0 MaxTokens 0+0 (0 cached, 0 thought)"#]],
    );
}

#[test]
fn malformed_call_is_a_temporary_error_and_missing_signature_permanent() {
    let ended = |word: &str| {
        format_stream([format!(
            "data: {{\"candidates\":[{{\"content\":{{}},\"finishReason\":\"{word}\",\"finishMessage\":\"print(look())\"}}]}}\n\n"
        )
        .as_bytes()])
    };
    expect![[r#"! Provider Temporary `http://h/v1beta/models/m:streamGenerateContent?…` ended the answer with `MALFORMED_FUNCTION_CALL`: print(look())"#]].assert_eq(&ended("MALFORMED_FUNCTION_CALL"));
    expect![[r#"! Provider Temporary `http://h/v1beta/models/m:streamGenerateContent?…` ended the answer with `UNEXPECTED_TOOL_CALL`: print(look())"#]].assert_eq(&ended("UNEXPECTED_TOOL_CALL"));
    expect![[r#"! Provider Permanent `http://h/v1beta/models/m:streamGenerateContent?…` ended the answer with `MISSING_THOUGHT_SIGNATURE`: print(look())"#]].assert_eq(&ended("MISSING_THOUGHT_SIGNATURE"));
    expect![[r#"
        notice the server stopped the answer: `SAFETY`: print(look())
        =  Safety 0+0 (0 cached, 0 thought)"#]]
    .assert_eq(&ended("SAFETY"));
}

#[test]
fn blocked_prompt_reports_its_reason() {
    let blocked = |word: &str| {
        format!(
            "data: {{\"promptFeedback\": {{\"blockReason\": \"{word}\"}},\"usageMetadata\": {{\"promptTokenCount\": 7}}}}\r\n\r\n"
        )
    };
    check_stream(
        &blocked("PROHIBITED_CONTENT"),
        expect![[r#"
            notice the server blocked the prompt: `PROHIBITED_CONTENT`
            =  Safety 7+0 (0 cached, 0 thought)"#]],
    );
    check_stream(
        &blocked("OTHER"),
        expect![[r#"
            notice the server blocked the prompt: `OTHER`
            =  Refused 7+0 (0 cached, 0 thought)"#]],
    );
}

#[test]
fn stream_without_a_finish_reason_is_truncated() {
    let text = stream_of_parts(&[r#"{"text":"a"}"#], "STOP");
    let cut = text.find("data: {\"candidates\":[{\"content\":{},").unwrap();
    check_stream(
        &text[..cut],
        expect![[r#"
            text "a"
            ! Provider Temporary the answer from `http://h/v1beta/models/m:streamGenerateContent?…` ended early"#]],
    );
    check_stream(
        "",
        expect![
            "! Provider Temporary `http://h/v1beta/models/m:streamGenerateContent?…` sent an empty answer"
        ],
    );
    // Cut within the last event, which is then incomplete.
    let half = &text[..text.len() - 20];
    assert!(format_stream([half.as_bytes()]).ends_with("ended early"));
    // Only the blank line after the last event is missing.
    assert!(format_stream([text.trim_end().as_bytes()]).contains("= text:\"a\" Stop"));
}

#[test]
fn stream_error_is_reported_in_every_known_format() {
    let begin = stream_of_parts(&[r#"{"text":"a"}"#], "STOP");
    let begin = &begin[..begin.find("data: {\"candidates\":[{\"content\":{},").unwrap()];
    let error = json!({ "error": { "code": 503, "message": "The model is overloaded. Please try again later.", "status": "UNAVAILABLE" } });
    let list = format!("{begin}[{error:#}]\n");
    let event = format!("{begin}event: error\r\ndata: {error}\r\n\r\n");
    for stream in [
        format!("{begin}data: {error}\r\n\r\n"),
        format!("{begin}{error:#}\n"),
        format!("{begin}{error}"),
        list.replace('\n', "\r\n"),
        list,
        event,
    ] {
        check_stream(
            &stream,
            expect![[r#"
                text "a"
                ! Provider Temporary `http://h/v1beta/models/m:streamGenerateContent?…` reports an error: The model is overloaded. Please try again later"#]],
        );
    }
}

#[test]
fn retry_delay_is_read_from_a_stream_error() {
    let error = json!({ "error": { "code": 429, "message": "Resource exhausted.",
        "status": "RESOURCE_EXHAUSTED",
        "details": [{ "@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "1.5s" }] } });
    check_stream(
        &format!("data: {error}\n\n"),
        expect![
            "! Provider Temporary 1500 ms `http://h/v1beta/models/m:streamGenerateContent?…` reports an error: Resource exhausted"
        ],
    );
}

#[test]
fn error_without_a_code_is_classified_by_its_status_word() {
    for (word, expected) in [
        ("RESOURCE_EXHAUSTED", "! Provider Temporary"),
        ("UNAVAILABLE", "! Provider Temporary"),
        ("DEADLINE_EXCEEDED", "! Provider Temporary"),
        ("INTERNAL", "! Provider Temporary"),
        ("OF_THE_FUTURE", "! Provider Temporary"),
        ("INVALID_ARGUMENT", "! Provider Permanent"),
        ("FAILED_PRECONDITION", "! Provider Permanent"),
        ("PERMISSION_DENIED", "! Provider Permanent"),
        ("UNAUTHENTICATED", "! Provider Permanent"),
        ("NOT_FOUND", "! Provider Permanent"),
    ] {
        let error = json!({ "error": { "status": word, "message": "No." } });
        let read = format_stream([format!("data: {error}\n\n").as_bytes()]);
        assert!(read.starts_with(expected), "{word}: {read}");
    }
    for odd in [json!("busy"), json!(7), json!([1]), json!({}), json!(true)] {
        let read = format_stream([format!("data: {}\n\n", json!({ "error": odd })).as_bytes()]);
        assert!(read.starts_with("! Provider Temporary"), "{odd}: {read}");
    }
    let long = "The input token count (9) exceeds the maximum number of tokens allowed (8).";
    let error = json!({ "error": { "status": "INVALID_ARGUMENT", "message": long } });
    assert!(
        format_stream([format!("data: {error}\n\n").as_bytes()]).starts_with("! ContextOverflow")
    );
}

#[test]
fn values_of_unexpected_type_never_panic() {
    for chunk in [
        json!(null),
        json!(1),
        json!([]),
        json!("x"),
        json!({ "candidates": 1 }),
        json!({ "candidates": [1, null] }),
        json!({ "candidates": [{ "content": 1, "finishReason": 1 }] }),
        json!({ "candidates": [{ "content": { "parts": [1, null, "x", { "functionCall": 1 }] } }] }),
        json!({ "candidates": [{ "content": { "parts": [{ "text": 1, "thought": "x" }] } }] }),
        json!({ "usageMetadata": 1, "promptFeedback": 1 }),
    ] {
        let read = format_stream([format!("data: {chunk}\n\n").as_bytes()]);
        assert!(read.contains("ended early"), "{chunk}: {read}");
    }
    let nameless = json!({ "candidates": [{ "content": { "parts": [{ "functionCall": {} }] } }] });
    assert!(
        format_stream([format!("data: {nameless}\n\n").as_bytes()])
            .contains("a call without a name")
    );
    assert!(
        format_stream([&b"data: {\"candidates\n\n"[..]])
            .contains("sent an event that is not valid JSON")
    );
}

#[test]
fn reply_events_calls_parts_and_bytes_are_limited() {
    let chunk =
        |parts: serde_json::Value| json!({ "candidates": [{ "content": { "parts": parts } }] });
    let mut many = google_reply();
    for _ in 0..EVENTS_MAX {
        many.read_chunk(&json!({})).unwrap();
    }
    assert!(many.read_chunk(&json!({})).unwrap_err().message.contains("pieces"));
    let call = json!({ "functionCall": { "name": "look" } });
    google_reply().read_chunk(&chunk(vec![call.clone(); CALLS_MAX].into())).unwrap();
    let error = google_reply().read_chunk(&chunk(vec![call; CALLS_MAX + 1].into())).unwrap_err();
    assert!(error.message.contains("tool calls"), "{error}");
    let signed = json!({ "text": "", "thoughtSignature": "s" });
    google_reply().read_chunk(&chunk(vec![signed.clone(); PARTS_MAX].into())).unwrap();
    let error = google_reply().read_chunk(&chunk(vec![signed; PARTS_MAX + 1].into())).unwrap_err();
    assert!(error.message.contains("parts"), "{error}");
    let large = json!({ "inlineData": { "data": "x".repeat(4 * 1024 * 1024) } });
    let error = google_reply().read_chunk(&chunk(json!([large]))).unwrap_err();
    assert!(error.message.contains("bytes of tool calls"), "{error}");
}
