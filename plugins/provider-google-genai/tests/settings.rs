//! Tests the settings that are sent, and those that a model does not support.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use expect_test::{Expect, expect};
use jaato_plugin_sdk::ErrorKind;
use jaato_plugin_sdk::serde_json::{self, Value, json};
use jaato_plugin_sdk::types::{CompletionRequest, Message};
use jaato_plugin_sdk_provider::shown::BlobContents;
use provider_google_genai::request::{GoogleRequestStyle, write_request_body};
use provider_google_genai::settings::NAMES;

use crate::request::{studio_endpoint, tool_spec};

fn completion_request(model: &str, options: Value) -> CompletionRequest {
    let mut request = CompletionRequest::new(model, vec![Message::user("hi")]);
    request.tools = vec![tool_spec("look", json!(null))];
    request.options = serde_json::from_value(options).unwrap();
    request
}

fn encode_request(request: &CompletionRequest) -> jaato_plugin_sdk::Result<Value> {
    let body = write_request_body(
        request,
        &studio_endpoint(),
        GoogleRequestStyle::default(),
        &BlobContents::new(),
    )?;
    Ok(serde_json::from_slice(&body).unwrap())
}

#[track_caller]
fn check_settings(model: &str, options: Value, expected: Expect) {
    let body = encode_request(&completion_request(model, options)).unwrap();
    expected.assert_eq(&format!("{} {}", body["generationConfig"], body["toolConfig"]));
}

fn all_options() -> Value {
    json!({
        "max_output_tokens": 16,
        "temperature": 0.5,
        "stream": false,
        "effort": "low",
        "tool_choice": "required",
        "output_schema": { "type": "object", "properties": {}, "additionalProperties": false },
        "stop": ["END", "", "\n\n"],
        "seed": 7,
        "extra_body": { "labels": { "team": "moon" } },
        "extra_headers": { "x-team": "moon" },
    })
}

#[test]
fn every_setting_is_written_to_its_field() {
    check_settings(
        "gemini-3.8-flash",
        all_options(),
        expect![[
            r#"{"temperature":0.5,"maxOutputTokens":16,"stopSequences":["END","\n\n"],"seed":7,"thinkingConfig":{"includeThoughts":true,"thinkingLevel":"LOW"},"responseMimeType":"application/json","responseJsonSchema":{"type":"object","properties":{},"additionalProperties":false}} {"functionCallingConfig":{"mode":"ANY"}}"#
        ]],
    );
    let mut names: Vec<_> = all_options().as_object().unwrap().keys().cloned().collect();
    names.sort();
    let mut listed = NAMES.to_vec();
    listed.sort_unstable();
    assert_eq!(names, listed);
}

#[test]
fn seed_is_reduced_to_the_vendors_range() {
    let seed = |seed: u64| {
        let request = completion_request("m", json!({ "seed": seed }));
        encode_request(&request).unwrap()["generationConfig"]["seed"].clone()
    };
    assert_eq!(seed(2_147_483_647), 2_147_483_647);
    assert_eq!(seed(2_147_483_648), 0);
    assert_eq!(seed(u64::MAX), 2_147_483_647);
}

#[test]
fn tool_choice_is_sent_only_with_tools() {
    let mode = |choice: &str| {
        let body =
            encode_request(&completion_request("m", json!({ "tool_choice": choice }))).unwrap();
        body["toolConfig"]["functionCallingConfig"]["mode"].clone()
    };
    assert_eq!((mode("auto"), mode("none")), (json!("AUTO"), json!("NONE")));
    assert_eq!(mode("whatever"), Value::Null);
    let mut alone = completion_request("m", json!({ "tool_choice": "required" }));
    alone.tools.clear();
    let body = encode_request(&alone).unwrap();
    assert_eq!((body.get("toolConfig"), body.get("tools")), (None, None));
}

#[test]
fn unsupported_settings_are_refused_by_name() {
    let refused = |model: &str, options: Value| {
        let error = encode_request(&completion_request(model, options)).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Configuration);
        error.message
    };
    for model in ["gemini-2.0-flash", "gemma-3-27b-it", "gemini-2.5-flash-image"] {
        let text = format!("the model `{model}` does not accept the option `effort`");
        assert_eq!(refused(model, json!({ "effort": "high" })), text);
        assert!(encode_request(&completion_request(model, json!({ "effort": "none" }))).is_ok());
    }
    let stops = |count: usize| json!({ "stop": vec!["x"; count] });
    assert!(encode_request(&completion_request("m", stops(5))).is_ok());
    assert_eq!(refused("m", stops(6)), "too many stop sequences: the model accepts 5, found 6");
}
