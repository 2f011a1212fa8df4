//! Tests the bytes of requests.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use expect_test::expect;
use jaato_plugin_sdk::ErrorKind;
use jaato_plugin_sdk::serde_json::{self, Value, json};
use jaato_plugin_sdk::types::{
    CompletionRequest, Message, Part, Role, ToolCall, ToolResult, ToolSpec, ToolsChanged,
};
use provider_anthropic::request::{AnthropicRequest, BODY_BYTES_MAX, write_request};

fn tool_spec(name: &str) -> ToolSpec {
    ToolSpec {
        name: name.into(),
        description: "Does it.".to_owned(),
        parameters: json!({ "type": "object", "properties": { "b": {}, "a": {} } }),
        ..ToolSpec::default()
    }
}

fn completion_request(model: &str, messages: Vec<Message>) -> CompletionRequest {
    let mut request = CompletionRequest::new(model, messages);
    request.system = "Be brief.".to_owned();
    request.tools = vec![tool_spec("get_time"), tool_spec("run")];
    request
}

#[track_caller]
fn encode_request(request: &CompletionRequest) -> AnthropicRequest {
    write_request(request, &Default::default()).unwrap()
}

fn request_text(request: &CompletionRequest) -> String {
    String::from_utf8(encode_request(request).body).unwrap()
}

fn request_json(request: &CompletionRequest) -> Value {
    serde_json::from_slice(&encode_request(request).body).unwrap()
}

/// Returns a body without the cache marks, which move.
fn request_without_marks(request: &CompletionRequest) -> String {
    request_text(request).replace(r#","cache_control":{"type":"ephemeral"}"#, "")
}

fn step_messages() -> Vec<Message> {
    let call = |id: &str| Part::ToolCall(ToolCall::new(id, "run", json!({ "z": 1, "a": 0.1 })));
    let result = |id: &str| {
        let content = json!({ "output": "é\n" }).as_object().unwrap().clone();
        ToolResult::new(id, "run", content)
    };
    vec![
        Message::model(vec![
            Part::thought("hm").with_signature("s"),
            Part::text("so"),
            call("1"),
            Part::thought("").with_signature("t"),
            call("2"),
        ]),
        Message::tool([result("1"), result("2")]),
        Message::model(vec![Part::text("done ")]),
        Message::user("again"),
        Message::model(vec![Part::thought("cut").with_signature("u")]),
        Message::user("and again"),
    ]
}

#[test]
fn constant_fields_come_first_and_end_with_a_cache_mark() {
    expect![[r#"{"model":"claude-haiku-4-5","max_tokens":64000,"stream":true,"tools":[{"name":"get_time","description":"Does it.","input_schema":{"type":"object","properties":{"b":{},"a":{}}}},{"name":"run","description":"Does it.","input_schema":{"type":"object","properties":{"b":{},"a":{}}},"cache_control":{"type":"ephemeral"}}],"system":[{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}}],"messages":[{"role":"user","content":[{"type":"text","text":"hi","cache_control":{"type":"ephemeral"}}]}]}"#]]
    .assert_eq(&request_text(&completion_request("claude-haiku-4-5", vec![Message::user("hi")])));
}

#[test]
fn empty_system_text_and_tools_are_left_out() {
    let mut request = completion_request("claude-haiku-4-5", vec![Message::user("hi")]);
    request.system = " \n".to_owned();
    request.tools = Vec::new();
    expect![[r#"{"model":"claude-haiku-4-5","max_tokens":64000,"stream":true,"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]}"#]]
    .assert_eq(&request_without_marks(&request));
}

#[test]
fn successive_requests_share_a_prefix_except_for_cache_marks() {
    let mut messages = vec![Message::user("hi")];
    let mut before =
        request_without_marks(&completion_request("claude-opus-5-5", messages.clone()));
    for message in step_messages() {
        messages.push(message);
        let next = request_without_marks(&completion_request("claude-opus-5-5", messages.clone()));
        // Compare everything except the ends of the lists, because the model's last message may
        // continue.
        let shared = before.strip_suffix("]}").unwrap();
        let shared = shared.strip_suffix("]}").unwrap_or(shared);
        // Ignore whitespace at the end of an answer that the model continues.
        let shared = shared.strip_suffix("\"}").unwrap_or(shared);
        assert!(next.starts_with(shared), "{next}\ndoes not begin with\n{shared}");
        before = next;
    }
}

#[test]
fn only_the_last_two_user_messages_are_marked_for_caching() {
    let mut messages = vec![Message::user("hi")];
    for message in step_messages() {
        messages.push(message);
        let body = request_json(&completion_request("claude-opus-5-5", messages.clone()));
        let count = body.to_string().matches("cache_control").count();
        let users: Vec<&Value> =
            body["messages"].as_array().unwrap().iter().filter(|it| it["role"] == "user").collect();
        assert_eq!(count, 2 + users.len().min(2), "{body}");
        for user in users.iter().rev().take(2) {
            let last = user["content"].as_array().unwrap().last().unwrap();
            assert_eq!(last["cache_control"], json!({ "type": "ephemeral" }));
        }
    }
}

#[test]
fn tool_changes_are_sent_in_place_if_the_model_allows() {
    let changed = |added: &[&str], removed: &[&str]| {
        Part::ToolsChanged(ToolsChanged {
            added: added.iter().map(|name| tool_spec(name)).collect(),
            removed: removed.iter().map(|name| (*name).into()).collect(),
            ..ToolsChanged::default()
        })
    };
    let mut news = Message::user("now");
    news.parts.insert(0, changed(&["look"], &["run", "unknown"]));
    let mut later = Message::user("later");
    later.parts.push(changed(&["run"], &["look"]));
    let said = || Message::model(vec![Part::text("so")]);
    let messages = vec![Message::user("hi"), said(), news, said(), later];
    let new = completion_request("claude-opus-5-5", messages.clone());
    let body = request_json(&new);
    let lines: Vec<_> =
        body["messages"].as_array().unwrap()[2..].iter().map(Value::to_string).collect();
    expect![[r#"
        {"role":"user","content":[{"type":"text","text":"now","cache_control":{"type":"ephemeral"}}]}
        {"role":"system","content":[{"type":"tool_removal","tool":{"type":"tool_reference","name":"run"}},{"type":"tool_addition","tool":{"type":"tool_definition","definition":{"name":"look","description":"Does it.","input_schema":{"type":"object","properties":{"b":{},"a":{}}}}}}]}
        {"role":"assistant","content":[{"type":"text","text":"so"}]}
        {"role":"user","content":[{"type":"text","text":"later","cache_control":{"type":"ephemeral"}}]}
        {"role":"system","content":[{"type":"tool_removal","tool":{"type":"tool_reference","name":"look"}},{"type":"tool_addition","tool":{"type":"tool_definition","definition":{"name":"run","description":"Does it.","input_schema":{"type":"object","properties":{"b":{},"a":{}}}}}}]}"#]]
    .assert_eq(&lines.join("\n"));
    assert_eq!(body["tools"].as_array().unwrap().len(), 2);
    assert!(encode_request(&new).betas.contains(&"inline-tools-2026-09-15"));
    // For other models, added tools follow the list, and removed tools stay.
    let old = completion_request("claude-sonnet-5", messages);
    let body = request_json(&old);
    let names: Vec<_> = body["tools"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!(names, ["get_time", "run", "look"]);
    assert!(!body.to_string().contains("tool_addition"));
    assert!(encode_request(&old).betas.is_empty());
}

#[test]
fn body_above_the_vendors_limit_is_a_context_overflow() {
    let of = |bytes: usize| {
        let request =
            CompletionRequest::new("claude-opus-5-5", vec![Message::user("x".repeat(bytes))]);
        write_request(&request, &Default::default()).map(|written| written.body.len())
    };
    let beside = of(1).unwrap() - 1;
    assert_eq!(of(BODY_BYTES_MAX - beside), Ok(BODY_BYTES_MAX));
    let error = of(BODY_BYTES_MAX - beside + 1).unwrap_err();
    assert_eq!(error.kind, ErrorKind::ContextOverflow);
}

#[test]
fn unknown_role_is_refused() {
    let message = Message { role: Role::Unknown, ..Message::user("hi") };
    let error =
        write_request(&completion_request("claude-opus-5-5", vec![message]), &Default::default())
            .unwrap_err();
    assert_eq!(error.kind, ErrorKind::UnknownOperation);
}
