//! Tests of requests and answers on a host in memory.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::serde_json;
use jaato_plugin_sdk::types::{DataPart, ToolResult};
use jaato_plugin_testkit::{FakeHost, FakeHttpAnswer, FakeStream, FinishedCall};
use provider_lines::{Blobs, write_body};

fn completion_request(messages: Vec<Message>) -> CompletionRequest {
    let mut request = CompletionRequest::new("qwen3:8b", messages);
    request.system = "Be brief.".to_owned();
    request.options.max_output_tokens = Some(100);
    request.options.temperature = Some(0.5);
    request
}

fn http_host(answer: impl Fn() -> FakeHttpAnswer + Send + Sync + 'static) -> FakeHost {
    FakeHost::new(provider_lines::__jaato::MODULE)
        .with_config(json!({ "base_url": "http://box:1/", "context_tokens": 4096 }))
        .with_http(move |_| Ok(answer()))
}

fn complete_request(host: &FakeHost, request: &CompletionRequest) -> FinishedCall<Completion> {
    host.complete(request)
}

#[test]
fn request_contains_the_whole_history_and_the_context_size() {
    let host = http_host(|| FakeHttpAnswer::status(200).body("{\"done\":true}\n"));
    let call = ToolCall::new("call-1", "look", json!({ "at": "it" }));
    let content = serde_json::Map::from_iter([("seen".to_owned(), json!(true))]);
    let result = ToolResult::new("call-1", "look", content);
    let history = vec![
        Message::user("look"),
        Message::model(vec![Part::text("I look."), Part::ToolCall(call)]),
        Message::tool([result]),
    ];
    complete_request(&host, &completion_request(history)).result.unwrap();
    let requests = host.http_requests();
    assert_eq!(requests[0].head.url, "http://box:1/api/chat");
    let body: Value = serde_json::from_slice(&requests[0].body).unwrap();
    assert_eq!(
        body,
        json!({
            "model": "qwen3:8b",
            "stream": true,
            "options": { "num_ctx": 4096, "num_predict": 100, "temperature": 0.5 },
            "tools": [],
            "messages": [
                { "role": "system", "content": "Be brief." },
                { "role": "user", "content": "look" },
                { "role": "assistant", "content": "I look.", "tool_calls":
                    [{ "function": { "name": "look", "arguments": { "at": "it" } } }] },
                { "role": "tool", "tool_name": "look", "content": "{\"seen\":true}" },
            ],
        })
    );
}

#[test]
fn streamed_parts_become_deltas_and_tool_call_gets_a_unique_id() {
    let stream = "{\"message\":{\"thinking\":\"hm\"}}\n{\"message\":{\"content\":\"I \"}}\n\
        {\"message\":{\"content\":\"look.\",\"tool_calls\":[{\"function\":{\"name\":\"look\",\"arguments\":{\"at\":1}}}]}}\n\
        {\"done\":true,\"done_reason\":\"stop\",\"prompt_eval_count\":7,\"eval_count\":4}\n";
    let host = http_host(move || {
        FakeHttpAnswer::status(200).stream(FakeStream::from_pieces(stream.as_bytes().chunks(5)))
    });
    let earlier = ToolCall::new("call-2", "look", json!({}));
    let result = ToolResult::new("call-2", "look", serde_json::Map::new());
    let history = vec![
        Message::user("look"),
        Message::model(vec![Part::ToolCall(earlier)]),
        Message::tool([result]),
    ];
    let finished = complete_request(&host, &completion_request(history));
    let completion = finished.result.unwrap();
    let call = ToolCall::new("call-3", "look", json!({ "at": 1 }));
    let thought = Part::thought("hm");
    assert_eq!(completion.parts, [thought, Part::text("I look."), Part::ToolCall(call.clone())]);
    assert_eq!(completion.finish_reason, FinishReason::ToolUse);
    assert_eq!(completion.usage, Usage { prompt_tokens: 7, output_tokens: 4, ..Usage::default() });
    let text = |text: &str| Delta::text(text);
    let thought = Delta::thought("hm");
    assert_eq!(finished.deltas, [thought, text("I "), text("look."), Delta::ToolCall(call)]);
}

fn request_json(request: &CompletionRequest, blobs: &Blobs) -> Value {
    serde_json::from_slice(&write_body(request, 4096, blobs).unwrap()).unwrap()
}

#[test]
fn request_options_are_mapped_to_the_fields_of_the_server() {
    let mut request = CompletionRequest::new("m", vec![Message::user("hi")]);
    let plain = request_json(&request, &Blobs::new());
    assert!(plain.get("format").is_none() && plain.get("think").is_none());
    request.options = serde_json::from_value(json!({
        "max_output_tokens": 7, "temperature": 0.5, "stream": false, "effort": "max",
        "output_schema": { "type": "integer" }, "stop": ["END"], "seed": u64::MAX,
    }))
    .unwrap();
    let asked = request_json(&request, &Blobs::new());
    let options = json!({ "num_ctx": 4096, "num_predict": 7, "temperature": 0.5, "seed": i64::MAX,
        "stop": ["END"] });
    assert_eq!((&asked["stream"], &asked["options"]), (&json!(false), &options));
    assert_eq!((&asked["format"], &asked["think"]), (&json!({ "type": "integer" }), &json!("max")));
    assert_eq!(asked["messages"], plain["messages"]);
    for (effort, think) in [("none", json!(false)), ("minimal", json!("low")), ("x", json!(null))] {
        request.options.effort = serde_json::from_value(json!(effort)).unwrap();
        assert_eq!(request_json(&request, &Blobs::new())["think"], think, "{effort}");
    }
}

#[test]
fn images_go_with_the_message_that_shows_them() {
    let png = |id: &str| DataPart::blob("image/png", id);
    let parts = vec![
        Part::text("look"),
        Part::Data(png("a")),
        Part::Data(png("gone")),
        Part::Data(DataPart::blob("audio/wav", "a")),
    ];
    let user = Message { role: Role::User, parts, ..Message::default() };
    let result = ToolResult {
        attachments: vec![png("b")],
        ..ToolResult::new("1", "look", serde_json::Map::new())
    };
    let request = CompletionRequest::new("m", vec![user, Message::tool([result])]);
    let blobs = ["a", "b"].map(|id| (id.to_owned(), id.as_bytes().to_vec())).into();
    assert_eq!(
        request_json(&request, &blobs)["messages"],
        json!([
            { "role": "user", "content": "look", "images": ["YQ=="] },
            { "role": "tool", "tool_name": "look", "content": "{}" },
            { "role": "user", "content": "", "images": ["Yg=="] },
        ])
    );
}

#[test]
fn user_text_after_tool_results_is_sent() {
    let mut results = Message::tool([ToolResult::new("1", "look", serde_json::Map::new())]);
    let request = CompletionRequest::new("m", vec![results.clone()]);
    assert_eq!(request_json(&request, &Blobs::new())["messages"].as_array().unwrap().len(), 1);
    results.parts.push(Part::text("And?"));
    let request = CompletionRequest::new("m", vec![results]);
    let messages = &request_json(&request, &Blobs::new())["messages"];
    assert_eq!(messages[1], json!({ "role": "user", "content": "And?" }));
}

#[test]
fn unstreamed_response_gives_the_same_completion_as_a_streamed_one() {
    let whole = "{\"message\":{\"thinking\":\"hm\",\"content\":\"I look.\"},\"done\":true,\"done_reason\":\"stop\"}";
    let streamed = "{\"message\":{\"thinking\":\"hm\"}}\n{\"message\":{\"content\":\"I \"}}\n\
        {\"message\":{\"content\":\"look.\"}}\n{\"done\":true,\"done_reason\":\"stop\"}\n";
    let [whole, streamed] = [whole, streamed].map(|body| {
        let host = http_host(move || FakeHttpAnswer::status(200).body(body));
        complete_request(&host, &completion_request(vec![Message::user("a")])).result.unwrap()
    });
    assert_eq!(whole, streamed);
    check_fails(
        200,
        "{\"message\":{\"content\":\"a\"}}\n{\"done\"",
        ErrorKind::Provider,
        "is truncated",
    );
}

#[test]
fn models_with_and_without_vision_are_distinguished() {
    let body = r#"{"models":[{"name":"a","capabilities":["completion","vision"]},
        {"name":"b","capabilities":["completion"]},{"name":"c"}]}"#;
    let host = http_host(move || FakeHttpAnswer::status(200).body(body));
    let models = host.instance().unwrap().models().unwrap();
    let accepts: Vec<_> = models.iter().map(|it| it.accepts.as_ref().map(Vec::len)).collect();
    assert_eq!(accepts, [Some(2), Some(0), None]);
}

#[track_caller]
fn check_fails(status: u16, body: &'static str, kind: ErrorKind, says: &str) {
    let host = http_host(move || FakeHttpAnswer::status(status).body(body));
    let error =
        complete_request(&host, &completion_request(vec![Message::user("a")])).result.unwrap_err();
    assert_eq!(error.kind, kind, "{error:?}");
    assert!(error.message.contains(says), "{error:?}");
}

#[test]
fn server_errors_and_truncated_responses_are_reported() {
    check_fails(404, r#"{"error":"model \"a\" not found"}"#, ErrorKind::Provider, "not found");
    check_fails(200, "{\"error\":\"out of memory\"}\n", ErrorKind::Provider, "out of memory");
    check_fails(200, "<html>\n", ErrorKind::Provider, "does not answer in this protocol");
    check_fails(200, "{\"message\":{\"content\":\"a\"}}\n", ErrorKind::Provider, "is truncated");
}

#[test]
fn server_models_are_listed_with_the_configured_context_size() {
    let host = http_host(|| {
        FakeHttpAnswer::status(200).body(r#"{"models":[{"name":"a"},{"name":"b:1"}]}"#)
    });
    let models = host.instance().unwrap().models().unwrap();
    let listed: Vec<_> =
        models.iter().map(|model| (model.name.as_str(), model.context_limit)).collect();
    assert_eq!(listed, [("a", Some(4096)), ("b:1", Some(4096))]);
}
