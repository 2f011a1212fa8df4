//! Settings as they are sent, byte by byte.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use expect_test::{Expect, expect};
use jaato_plugin_sdk::serde_json::{self, Value, json};
use jaato_plugin_sdk::types::{Effort, Message, Request, RequestOptions, ToolChoice, ToolSpec};
use provider_openai::content::Blobs;
use provider_openai::options::NAMES;
use provider_openai::request::{Dialect, Habits, body};

const DIALECTS: [Dialect; 3] = [Dialect::Vendor, Dialect::Router, Dialect::Common];

fn request(options: Value) -> Request {
    let mut request = Request::new("m", vec![]);
    request.options = serde_json::from_value(options).unwrap();
    request
}

fn written(request: &Request, dialect: Dialect) -> Value {
    let bytes = body(request, dialect, Habits::default(), &Blobs::new()).unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

/// Checks a whole body.
#[track_caller]
fn check(options: Value, dialect: Dialect, expected: Expect) {
    expected.assert_eq(&written(&request(options), dialect).to_string());
}

fn all() -> Value {
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
    })
}

#[test]
fn every_setting_has_its_place_before_the_messages() {
    let expected = expect![[
        r#"{"model":"m","stream":false,"temperature":0.5,"max_completion_tokens":16,"reasoning_effort":"xhigh","response_format":{"type":"json_schema","json_schema":{"name":"answer","schema":{"type":"object","additionalProperties":false,"properties":{}},"strict":true}},"stop":["END","\n\n"],"seed":7,"prompt_cache_key":"s-1","messages":[]}"#
    ]];
    check(all(), Dialect::Vendor, expected);
    let expected = expect![[
        r#"{"model":"m","stream":false,"temperature":0.5,"max_tokens":16,"reasoning_effort":"high","response_format":{"type":"json_schema","json_schema":{"name":"answer","schema":{"type":"object","additionalProperties":false,"properties":{}},"strict":true}},"stop":["END","\n\n"],"seed":7,"messages":[]}"#
    ]];
    check(all(), Dialect::Common, expected);
    assert_eq!(written(&request(all()), Dialect::Router)["reasoning_effort"], "xhigh");
}

#[test]
fn what_is_listed_is_what_is_sent() {
    let mut names: Vec<_> = all().as_object().unwrap().keys().cloned().collect();
    names.sort();
    let mut listed = NAMES.to_vec();
    listed.sort_unstable();
    assert_eq!(names, listed);
}

#[test]
fn an_answer_that_is_streamed_is_asked_for_in_the_same_words_as_ever() {
    let plain = written(&request(json!({})), Dialect::Common).to_string();
    for options in [json!({ "stream": true }), json!({ "stop": [] }), json!({ "stop": [""] })] {
        assert_eq!(written(&request(options), Dialect::Common).to_string(), plain);
    }
}

#[test]
fn how_much_a_model_thinks_is_said_in_words_that_the_server_knows() {
    for (effort, word) in [
        (Effort::None, json!("none")),
        (Effort::Minimal, json!("minimal")),
        (Effort::Low, json!("low")),
        (Effort::Medium, json!("medium")),
        (Effort::High, json!("high")),
        (Effort::Unknown, json!(null)),
    ] {
        for dialect in DIALECTS {
            let mut request = request(json!({}));
            request.options.effort = Some(effort);
            assert_eq!(written(&request, dialect)["reasoning_effort"], word, "{effort:?}");
        }
    }
}

#[test]
fn a_choice_of_tools_is_sent_where_there_are_some() {
    for (choice, word) in [
        (ToolChoice::Auto, json!("auto")),
        (ToolChoice::Required, json!("required")),
        (ToolChoice::None, json!("none")),
        (ToolChoice::Unknown, json!(null)),
    ] {
        let mut request = request(json!({}));
        request.options.tool_choice = Some(choice);
        assert_eq!(written(&request, Dialect::Common)["tool_choice"], json!(null), "{choice:?}");
        request.tools = vec![ToolSpec { name: "a".into(), ..ToolSpec::default() }];
        assert_eq!(written(&request, Dialect::Common)["tool_choice"], word, "{choice:?}");
    }
}

#[test]
fn numbers_keep_within_what_servers_can_read() {
    let seed =
        |seed: u64| written(&request(json!({ "seed": seed })), Dialect::Common)["seed"].clone();
    assert_eq!(seed(u64::MAX), json!(i64::MAX));
    assert_eq!(seed(i64::MAX as u64), json!(i64::MAX));
    assert_eq!(seed(0), json!(0));
}

#[test]
fn settings_change_nothing_of_the_messages() {
    let mut request = request(all());
    request.messages = vec![Message::user("hi")];
    let with = written(&request, Dialect::Vendor);
    request.options = RequestOptions::default();
    assert_eq!(with["messages"], written(&request, Dialect::Vendor)["messages"]);
}
