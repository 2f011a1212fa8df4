//! Tests the bytes of requests.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use expect_test::{Expect, expect};
use jaato_plugin_sdk::ErrorKind;
use jaato_plugin_sdk::serde_json::{self, Value, json};
use jaato_plugin_sdk::types::http::HTTP_BODY_BYTES_MAX;
use jaato_plugin_sdk::types::{CompletionRequest, Message, Role, ToolSpec};
use jaato_plugin_sdk_provider::shown::BlobContents;
use provider_google_genai::config::Config;
use provider_google_genai::endpoint::GoogleEndpoint;
use provider_google_genai::request::{
    DefaultThinkingField, GoogleRequestStyle, GoogleSchemaForm, write_request_body,
};

pub fn studio_endpoint() -> GoogleEndpoint {
    GoogleEndpoint::from_config(&Config::default()).unwrap()
}

pub fn vertex_endpoint() -> GoogleEndpoint {
    GoogleEndpoint::from_config(&Config { project: "p".to_owned(), ..Config::default() }).unwrap()
}

pub fn tool_spec(name: &str, parameters: Value) -> ToolSpec {
    let description = "Does it.".to_owned();
    ToolSpec { name: name.into(), description, parameters, ..ToolSpec::default() }
}

fn completion_request(model: &str) -> CompletionRequest {
    let mut request = CompletionRequest::new(model, vec![Message::user("hi")]);
    request.system = "Be brief.".to_owned();
    request.tools = vec![
        tool_spec(
            "now",
            json!({ "type": "object", "properties": {}, "additionalProperties": false }),
        ),
        tool_spec(
            "look",
            json!({ "type": "object", "properties": { "at": { "type": "string", "pattern": "^a" } },
                "required": ["at"], "additionalProperties": false }),
        ),
    ];
    request
}

#[track_caller]
fn check_body(request: &CompletionRequest, habits: GoogleRequestStyle, expected: Expect) {
    let body =
        write_request_body(request, &studio_endpoint(), habits, &BlobContents::new()).unwrap();
    expected.assert_eq(std::str::from_utf8(&body).unwrap());
}

#[test]
fn constant_fields_come_first_in_the_request() {
    check_body(
        &completion_request("gemini-4-argon"),
        GoogleRequestStyle::default(),
        expect![[
            r#"{"systemInstruction":{"parts":[{"text":"Be brief."}]},"tools":[{"functionDeclarations":[{"name":"now","description":"Does it."},{"name":"look","description":"Does it.","parametersJsonSchema":{"type":"object","properties":{"at":{"type":"string","description":"{\"pattern\":\"^a\"}"}},"required":["at"],"additionalProperties":false}}]}],"generationConfig":{"thinkingConfig":{"includeThoughts":true}},"contents":[{"role":"user","parts":[{"text":"hi"}]}]}"#
        ]],
    );
}

#[test]
fn reduced_style_writes_the_old_schema_form() {
    let habits = GoogleRequestStyle {
        schemas: GoogleSchemaForm::Reduced,
        thoughts: DefaultThinkingField::Unsaid,
    };
    let mut request = completion_request("gemini-4-argon");
    request.options.output_schema =
        Some(json!({ "type": "object", "properties": { "n": { "type": "integer" } } }));
    check_body(
        &request,
        habits,
        expect![[
            r#"{"systemInstruction":{"parts":[{"text":"Be brief."}]},"tools":[{"functionDeclarations":[{"name":"now","description":"Does it."},{"name":"look","description":"Does it.","parameters":{"type":"OBJECT","properties":{"at":{"description":"{\"pattern\":\"^a\"}","type":"STRING"}},"required":["at"]}}]}],"generationConfig":{"responseMimeType":"application/json","responseSchema":{"type":"OBJECT","properties":{"n":{"type":"INTEGER"}}}},"contents":[{"role":"user","parts":[{"text":"hi"}]}]}"#
        ]],
    );
}

#[test]
fn unset_options_are_left_out() {
    let request = CompletionRequest::new("gemini-2.0-flash", vec![Message::user("hi")]);
    check_body(
        &request,
        GoogleRequestStyle::default(),
        expect![[r#"{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}"#]],
    );
}

#[test]
fn system_text_becomes_a_user_part_without_system_support() {
    let mut request = CompletionRequest::new("gemma-3-27b-it", vec![Message::user("hi")]);
    request.system = "Be brief.".to_owned();
    check_body(
        &request,
        GoogleRequestStyle::default(),
        expect![[r#"{"contents":[{"role":"user","parts":[{"text":"Be brief."},{"text":"hi"}]}]}"#]],
    );
}

#[test]
fn unsupported_output_schema_is_described_in_the_system_text() {
    let mut request = completion_request("gemini-2.5-flash-lite");
    request.tools.truncate(1);
    request.options.output_schema = Some(json!({ "type": "array" }));
    check_body(
        &request,
        GoogleRequestStyle::default(),
        expect![[
            r#"{"systemInstruction":{"parts":[{"text":"Be brief.\n\nAnswer with one JSON value that matches this JSON Schema, and nothing else:\n{\"type\":\"array\"}"}]},"tools":[{"functionDeclarations":[{"name":"now","description":"Does it."}]}],"contents":[{"role":"user","parts":[{"text":"hi"}]}]}"#
        ]],
    );
    request.tools.clear();
    request.system.clear();
    check_body(
        &request,
        GoogleRequestStyle::default(),
        expect![[
            r#"{"generationConfig":{"responseMimeType":"application/json","responseJsonSchema":{"type":"array"}},"contents":[{"role":"user","parts":[{"text":"hi"}]}]}"#
        ]],
    );
}

#[test]
fn successive_requests_share_a_common_prefix() {
    let mut longer = completion_request("gemini-4-argon");
    let first = write_request_body(
        &longer,
        &studio_endpoint(),
        GoogleRequestStyle::default(),
        &BlobContents::new(),
    )
    .unwrap();
    longer.messages.push(Message::model(vec![jaato_plugin_sdk::types::Part::text("hello")]));
    longer.messages.push(Message::user("bye"));
    let second = write_request_body(
        &longer,
        &studio_endpoint(),
        GoogleRequestStyle::default(),
        &BlobContents::new(),
    )
    .unwrap();
    assert!(second.starts_with(first.strip_suffix(b"]}").unwrap()));
}

#[test]
fn body_above_the_limit_is_a_context_overflow() {
    let mut large =
        CompletionRequest::new("m", vec![Message::user("x".repeat(HTTP_BODY_BYTES_MAX as usize))]);
    let error = write_request_body(
        &large,
        &studio_endpoint(),
        GoogleRequestStyle::default(),
        &BlobContents::new(),
    )
    .unwrap_err();
    assert_eq!(error.kind, ErrorKind::ContextOverflow);
    large.messages = vec![Message { role: Role::Unknown, ..Message::default() }];
    let error = write_request_body(
        &large,
        &studio_endpoint(),
        GoogleRequestStyle::default(),
        &BlobContents::new(),
    )
    .unwrap_err();
    assert_eq!(error.kind, ErrorKind::UnknownOperation);
}

#[test]
fn same_request_gives_the_same_bytes() {
    let write = || {
        write_request_body(
            &completion_request("m"),
            &vertex_endpoint(),
            GoogleRequestStyle::default(),
            &BlobContents::new(),
        )
        .unwrap()
    };
    let value: Value = serde_json::from_slice(&write()).unwrap();
    assert_eq!(write(), write());
    assert_eq!(value["contents"].as_array().unwrap().len(), 1);
}
