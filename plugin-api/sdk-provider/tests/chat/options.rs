//! Tests of settings as they are sent, byte by byte.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use expect_test::{Expect, expect};
use jaato_plugin_sdk::serde_json::{self, Value, json};
use jaato_plugin_sdk::types::{
    CompletionRequest, Effort, Message, RequestOptions, ToolChoice, ToolSpec,
};
use jaato_plugin_sdk_provider::chat::{ChatRequestStyle, ChatServerQuirks, OPTIONS, request_body};
use jaato_plugin_sdk_provider::shown::BlobContents;

const COMMON: ChatServerQuirks = ChatServerQuirks::COMMON;

/// A server that differs in many ways.
const OTHER: ChatServerQuirks = ChatServerQuirks {
    max_tokens_field: "max_completion_tokens",
    seed_field: Some("random_seed"),
    session_key_field: Some("prompt_cache_key"),
    max_effort: "xhigh",
    any_tool: "any",
    asks_for_usage: false,
    fields_beside_tools: &[("provider", r#"{"require_parameters":true}"#)],
    ..ChatServerQuirks::COMMON
};

fn completion_request(options: Value) -> CompletionRequest {
    let mut request = CompletionRequest::new("m", vec![]);
    request.options = serde_json::from_value(options).unwrap();
    request
}

fn encode_request(request: &CompletionRequest, quirks: ChatServerQuirks) -> Value {
    let bytes =
        request_body(request, &quirks, ChatRequestStyle::default(), &BlobContents::new()).unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

/// Checks a whole body.
#[track_caller]
fn check_body(options: Value, quirks: ChatServerQuirks, expected: Expect) {
    expected.assert_eq(&encode_request(&completion_request(options), quirks).to_string());
}

fn all_options() -> Value {
    json!({
        "max_output_tokens": 16,
        "temperature": 0.5,
        "stream": false,
        "effort": "max",
        "tool_choice": "required",
        "output_schema": { "type": "object", "additionalProperties": false, "properties": {} },
        "stop": ["END", "", "\n\n"],
        "seed": 7,
        "session_key": "s-1",
        "service_tier": "flex",
        "extra_body": { "user": "ada" },
        "extra_headers": { "x-team": "moon" },
    })
}

#[test]
fn all_settings_precede_the_messages_in_fixed_order() {
    let expected = expect![[
        r#"{"model":"m","stream":false,"temperature":0.5,"max_completion_tokens":16,"reasoning_effort":"xhigh","response_format":{"type":"json_schema","json_schema":{"name":"answer","schema":{"type":"object","additionalProperties":false,"properties":{}},"strict":true}},"stop":["END","\n\n"],"random_seed":7,"prompt_cache_key":"s-1","service_tier":"flex","provider":{"require_parameters":true},"messages":[],"user":"ada"}"#
    ]];
    check_body(all_options(), OTHER, expected);
    let expected = expect![[
        r#"{"model":"m","stream":false,"temperature":0.5,"max_tokens":16,"reasoning_effort":"high","response_format":{"type":"json_schema","json_schema":{"name":"answer","schema":{"type":"object","additionalProperties":false,"properties":{}},"strict":true}},"stop":["END","\n\n"],"seed":7,"service_tier":"flex","messages":[],"user":"ada"}"#
    ]];
    check_body(all_options(), COMMON, expected);
}

#[test]
fn listed_options_are_the_options_that_are_sent() {
    let mut names: Vec<_> = all_options().as_object().unwrap().keys().cloned().collect();
    names.sort();
    let mut listed = OPTIONS.to_vec();
    listed.sort_unstable();
    assert_eq!(names, listed);
}

#[test]
fn empty_stop_and_default_streaming_do_not_change_the_request() {
    let plain = encode_request(&completion_request(json!({})), COMMON).to_string();
    for options in [json!({ "stream": true }), json!({ "stop": [] }), json!({ "stop": [""] })] {
        assert_eq!(encode_request(&completion_request(options), COMMON).to_string(), plain);
    }
}

#[test]
fn effort_is_sent_in_the_servers_words() {
    for (effort, word) in [
        (Effort::None, json!("none")),
        (Effort::Minimal, json!("minimal")),
        (Effort::Low, json!("low")),
        (Effort::Medium, json!("medium")),
        (Effort::High, json!("high")),
        (Effort::Unknown, json!(null)),
    ] {
        for quirks in [COMMON, OTHER] {
            let mut request = completion_request(json!({}));
            request.options.effort = Some(effort);
            assert_eq!(encode_request(&request, quirks)["reasoning_effort"], word, "{effort:?}");
        }
    }
}

#[test]
fn tool_choice_is_sent_only_with_tools() {
    for (choice, word) in [
        (ToolChoice::Auto, json!("auto")),
        (ToolChoice::Required, json!("required")),
        (ToolChoice::None, json!("none")),
        (ToolChoice::Unknown, json!(null)),
    ] {
        let mut request = completion_request(json!({}));
        request.options.tool_choice = Some(choice);
        assert_eq!(encode_request(&request, COMMON)["tool_choice"], json!(null), "{choice:?}");
        request.tools = vec![ToolSpec { name: "a".into(), ..ToolSpec::default() }];
        assert_eq!(encode_request(&request, COMMON)["tool_choice"], word, "{choice:?}");
        let other = if choice == ToolChoice::Required { json!("any") } else { word };
        assert_eq!(encode_request(&request, OTHER)["tool_choice"], other, "{choice:?}");
    }
}

#[test]
fn provider_requirements_are_sent_only_with_tools() {
    let mut request = completion_request(json!({}));
    assert_eq!(encode_request(&request, OTHER).get("provider"), None);
    request.tools = vec![ToolSpec { name: "a".into(), ..ToolSpec::default() }];
    assert_eq!(encode_request(&request, OTHER)["provider"], json!({ "require_parameters": true }));
    assert_eq!(encode_request(&request, COMMON).get("provider"), None);
}

#[test]
fn a_seed_that_a_server_refuses_is_left_out() {
    let without = ChatServerQuirks { seed_field: None, ..COMMON };
    assert_eq!(
        encode_request(&completion_request(json!({ "seed": 7 })), without),
        encode_request(&completion_request(json!({})), COMMON)
    );
}

#[test]
fn usage_is_requested_unless_the_server_sends_it_anyway() {
    let of = |quirks| {
        encode_request(&completion_request(json!({})), quirks).get("stream_options").cloned()
    };
    assert_eq!(of(COMMON), Some(json!({ "include_usage": true })));
    assert_eq!(of(OTHER), None);
}

#[test]
fn seed_is_limited_to_the_signed_64_bit_range() {
    let seed = |seed: u64| {
        encode_request(&completion_request(json!({ "seed": seed })), COMMON)["seed"].clone()
    };
    assert_eq!(seed(u64::MAX), json!(i64::MAX));
    assert_eq!(seed(i64::MAX as u64), json!(i64::MAX));
    assert_eq!(seed(0), json!(0));
}

#[test]
fn settings_change_nothing_of_the_messages() {
    let mut request = completion_request(all_options());
    request.messages = vec![Message::user("hi")];
    let with = encode_request(&request, OTHER);
    request.options = RequestOptions::default();
    assert_eq!(with["messages"], encode_request(&request, OTHER)["messages"]);
}
