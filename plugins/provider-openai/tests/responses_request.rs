//! Tests the bytes of Responses requests.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use expect_test::{Expect, expect};
use jaato_plugin_sdk::ErrorKind;
use jaato_plugin_sdk::serde_json::{self, Value, json};
use jaato_plugin_sdk::types::{
    CompletionRequest, DataPart, Message, Part, Role, ToolCall, ToolResult, ToolSpec,
};
use jaato_plugin_sdk_provider::shown::BlobContents;
use provider_openai::responses::{
    ResponsesRequestSettings, ResponsesRequestStyle, write_request_body,
};

fn encode_request(request: &CompletionRequest) -> String {
    let habits = ResponsesRequestStyle::for_model(&request.model, true);
    let asking = ResponsesRequestSettings {
        system_role: "developer",
        max_effort: "xhigh",
        has_session_key: true,
        habits: &habits,
    };
    String::from_utf8(write_request_body(request, &asking, &BlobContents::new()).unwrap()).unwrap()
}

fn completion_request(messages: Vec<Message>) -> CompletionRequest {
    let mut request = CompletionRequest::new("gpt-5.2", messages);
    request.system = "Be brief.".to_owned();
    let parameters = json!({ "type": "object", "properties": { "b": {}, "a": {} } });
    let description = "Does it.".to_owned();
    request.tools =
        vec![ToolSpec { name: "run".into(), description, parameters, ..ToolSpec::default() }];
    request
}

#[track_caller]
fn check_items(messages: Vec<Message>, expected: Expect) {
    let body: Value = serde_json::from_str(&encode_request(&completion_request(messages))).unwrap();
    let lines: Vec<_> =
        body["input"].as_array().unwrap()[1..].iter().map(Value::to_string).collect();
    expected.assert_eq(&lines.join("\n"));
}

#[test]
fn unchanging_request_fields_are_written_first() {
    let mut request = completion_request(vec![Message::user("hi")]);
    request.options = serde_json::from_value(json!({
        "max_output_tokens": 3,
        "temperature": 0.7,
        "effort": "max",
        "tool_choice": "required",
        "output_schema": { "type": "object" },
        "session_key": "s-1",
    }))
    .unwrap();
    expect![[r#"{"model":"gpt-5.2","stream":true,"store":false,"include":["reasoning.encrypted_content"],"temperature":0.7,"max_output_tokens":16,"reasoning":{"effort":"xhigh","summary":"auto"},"tool_choice":"required","text":{"format":{"type":"json_schema","name":"answer","schema":{"type":"object"},"strict":false}},"prompt_cache_key":"s-1","tools":[{"type":"function","name":"run","description":"Does it.","parameters":{"type":"object","properties":{"b":{},"a":{}}},"strict":false}],"input":[{"type":"message","role":"developer","content":"Be brief."},{"type":"message","role":"user","content":"hi"}]}"#]].assert_eq(&encode_request(&request));
}

#[test]
fn request_to_a_model_without_reasoning_omits_reasoning() {
    let mut request = CompletionRequest::new("gpt-4o", vec![Message::user("hi")]);
    request.options.stream = Some(false);
    expect![[r#"{"model":"gpt-4o","stream":false,"store":false,"input":[{"type":"message","role":"user","content":"hi"}]}"#]].assert_eq(&encode_request(&request));
}

#[test]
fn calls_and_results_are_paired_by_id_and_later_parts_become_a_user_message() {
    let call = |id: &str, arguments: Value| Part::ToolCall(ToolCall::new(id, "run", arguments));
    let result =
        |id: &str| ToolResult::new(id, "run", json!({ "n": 1 }).as_object().unwrap().clone());
    let mut results = Message::tool([result("a"), result("b")]);
    results.parts.push(Part::json(json!({ "task": "t-1" })));
    results.parts.push(Part::text("And this."));
    let image = Part::Data(DataPart::blob("image/png", "gone"));
    check_items(
        vec![
            Message { role: Role::User, parts: vec![Part::text("go"), image] },
            Message::model(vec![
                Part::thought("hm"),
                Part::text("I look."),
                call("a", json!({ "x": 1 })),
                Part::text("And more."),
                call("b", json!("{")),
            ]),
            results,
        ],
        expect![[r#"
            {"type":"message","role":"user","content":"go\n[image/png: cannot be sent to this model]"}
            {"type":"message","role":"assistant","content":[{"type":"output_text","text":"I look."}]}
            {"type":"function_call","call_id":"a","name":"run","arguments":"{\"x\":1}"}
            {"type":"message","role":"assistant","content":[{"type":"output_text","text":"And more."}]}
            {"type":"function_call","call_id":"b","name":"run","arguments":"{\"invalid_arguments\":\"{\"}"}
            {"type":"function_call_output","call_id":"a","output":"{\"n\":1}"}
            {"type":"function_call_output","call_id":"b","output":"{\"n\":1}"}
            {"type":"message","role":"user","content":"{\"task\":\"t-1\"}\nAnd this."}"#]],
    );
}

#[test]
fn successive_requests_share_their_beginning_byte_by_byte() {
    let reasoning = json!({ "type": "reasoning", "summary": [], "encrypted_content": "x" });
    let call = Part::ToolCall(ToolCall::new("1", "run", json!({ "z": 1, "a": [0.1, 1e100] })));
    let mut messages = vec![Message::user("hi")];
    let mut before = encode_request(&completion_request(messages.clone()));
    let result = json!({ "output": "é\n" }).as_object().unwrap().clone();
    for message in [
        Message::model(vec![Part::opaque(reasoning), Part::text("so"), call]),
        Message::tool([ToolResult::new("1", "run", result)]),
        Message::model(vec![Part::text("done")]),
        Message::user("again"),
    ] {
        messages.push(message);
        let next = encode_request(&completion_request(messages.clone()));
        let shared = before.strip_suffix("]}").unwrap();
        assert!(next.starts_with(shared), "{next}\ndoes not begin with\n{shared}");
        before = next;
    }
}

#[test]
fn message_with_an_unknown_role_is_refused() {
    let mut message = Message::user("a");
    message.role = Role::Unknown;
    let request = completion_request(vec![message]);
    let habits = ResponsesRequestStyle::for_model("m", true);
    let asking = ResponsesRequestSettings {
        system_role: "system",
        max_effort: "high",
        has_session_key: false,
        habits: &habits,
    };
    let error = write_request_body(&request, &asking, &BlobContents::new()).unwrap_err();
    assert_eq!(error.kind, ErrorKind::UnknownOperation);
}
