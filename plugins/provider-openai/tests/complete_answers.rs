//! Tests that a streamed and a complete answer result in the same history, and that reasoning goes
//! back unchanged.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use jaato_plugin_sdk::serde_json::{self, Value, json};
use jaato_plugin_sdk::types::{
    Completion, CompletionRequest, FinishReason, Message, Part, ToolCall, Usage,
};
use jaato_plugin_sdk_provider::ServerEventReader;
use jaato_plugin_sdk_provider::chat::{
    ChatReply, ChatRequestStyle, ChatServerQuirks, request_body,
};
use jaato_plugin_sdk_provider::shown::BlobContents;
use jaato_plugin_testkit::{FakeHost, FakeHttpAnswer};

fn streamed_completion(deltas: &[Value], end: Value) -> Completion {
    let (mut events, mut reply) = (ServerEventReader::new(), ChatReply::new("http://h"));
    let chunk = |delta: &Value| json!({ "choices": [{ "delta": delta }] });
    let chunks = deltas.iter().map(chunk).chain([end]);
    let text: String = chunks.map(|chunk| format!("data: {chunk}\n\n")).collect();
    for event in events.push(text.as_bytes()).unwrap() {
        reply.read_event(&event).unwrap();
    }
    reply.finish().unwrap().1
}

fn whole_completion(message: Value, mut end: Value) -> Completion {
    end["choices"][0]["message"] = message;
    let mut reply = ChatReply::new("http://h");
    reply.read_complete_answer(&[end]).unwrap();
    reply.finish().unwrap().1
}

/// Checks that both ways result in the same answer, and returns it.
#[track_caller]
fn check_completion(deltas: &[Value], message: Value, finish: &str) -> Completion {
    let end = json!({
        "choices": [{ "index": 0, "finish_reason": finish }],
        "usage": { "prompt_tokens": 9, "completion_tokens": 5, "cost": 0.25,
            "completion_tokens_details": { "reasoning_tokens": 2 } },
    });
    let pieces = streamed_completion(deltas, end.clone());
    assert_eq!(pieces, whole_completion(message, end));
    let expected = Usage {
        prompt_tokens: 9,
        output_tokens: 5,
        reasoning_tokens: 2,
        cost_micro_usd: Some(250_000),
        ..Usage::default()
    };
    assert_eq!(pieces.usage, expected);
    pieces
}

/// Returns the model's message in the next request.
fn next_request_message(completion: Completion) -> Value {
    let request = CompletionRequest::new("m", vec![Message::model(completion.parts)]);
    let body = request_body(
        &request,
        &ChatServerQuirks::COMMON,
        ChatRequestStyle::default(),
        &BlobContents::new(),
    )
    .unwrap();
    let mut body: Value = serde_json::from_slice(&body).unwrap();
    body["messages"][0].take()
}

fn call_json(index: u64, id: &str, arguments: &str) -> Value {
    json!({ "index": index, "id": id, "type": "function",
        "function": { "name": "run", "arguments": arguments } })
}

#[test]
fn call_signature_is_sent_back_with_the_call() {
    let google = json!({ "google": { "thought_signature": "c2ln" } });
    let gateway = json!({ "thought_signature": "c2ln" });
    let first = json!({ "index": 0, "id": "a", "type": "function", "extra_content": google,
        "function": { "name": "run", "arguments": "{" } });
    let rest = json!({ "index": 0, "extra_content": {}, "function": { "arguments": "}" } });
    let mut one = call_json(0, "a", "{}");
    one["extra_content"] = google.clone();
    let mut two = call_json(1, "b", "{}");
    two["provider_specific_fields"] = gateway.clone();
    let lists = [json!([first]), json!([rest]), json!([two]), json!([call_json(2, "c", "{}")])];
    let pieces = lists.map(|list| json!({ "tool_calls": list }));
    let whole = json!({ "content": null, "tool_calls": [one, two, call_json(2, "c", "{}")] });
    let sent = next_request_message(check_completion(&pieces, whole, "tool_calls"));
    let expected = [
        json!({ "id": "a", "type": "function", "extra_content": google,
            "function": { "name": "run", "arguments": "{}" } }),
        json!({ "id": "b", "type": "function", "provider_specific_fields": gateway,
            "function": { "name": "run", "arguments": "{}" } }),
        json!({ "id": "c", "type": "function",
            "function": { "name": "run", "arguments": "{}" } }),
    ];
    assert_eq!(sent["tool_calls"], json!(expected));
    // A signature of another protocol is ignored.
    for signature in ["c2ln", "{\"role\":\"user\"}", "[1]"] {
        let signed = Part::ToolCall(ToolCall::new("a", "run", json!({}))).with_signature(signature);
        let request = CompletionRequest::new("m", vec![Message::model(vec![signed])]);
        let body = request_body(
            &request,
            &ChatServerQuirks::COMMON,
            ChatRequestStyle::default(),
            &BlobContents::new(),
        )
        .unwrap();
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(body["messages"][0]["tool_calls"][0].as_object().unwrap().len(), 3);
    }
}

#[test]
fn streamed_text_and_calls_equal_the_complete_answer() {
    let completion = check_completion(
        &[
            json!({ "role": "assistant", "content": "I " }),
            json!({ "content": "look." }),
            json!({ "tool_calls": [call_json(0, "a", "{\"x\"")] }),
            json!({ "tool_calls": [{ "index": 0, "function": { "arguments": ":1}" } }] }),
            json!({ "tool_calls": [call_json(1, "b", "")] }),
        ],
        json!({ "content": "I look.", "tool_calls": [call_json(0, "a", "{\"x\":1}"), call_json(1, "b", "")] }),
        "tool_calls",
    );
    assert_eq!(completion.finish_reason, FinishReason::ToolUse);
    assert_eq!(completion.parts.len(), 3);
}

#[test]
fn reasoning_is_read_from_every_field_and_from_think_tags() {
    for name in ["reasoning_content", "reasoning"] {
        let completion = check_completion(
            &[json!({ (name): "h" }), json!({ (name): "m" }), json!({ "content": "yes" })],
            json!({ (name): "hm", "content": "yes" }),
            "stop",
        );
        let back = next_request_message(completion);
        let expected = if name == "reasoning" { json!(null) } else { json!("hm") };
        assert_eq!((&back["reasoning_content"], &back["content"]), (&expected, &json!("yes")));
    }
    check_completion(
        &[json!({ "content": "<thi" }), json!({ "content": "nk>hm</think>yes" })],
        json!({ "content": "<think>hm</think>yes" }),
        "stop",
    );
}

#[test]
fn refusal_and_limits_have_their_finish_reasons() {
    let refused = check_completion(
        &[json!({ "refusal": "I can" }), json!({ "refusal": "not." })],
        json!({ "refusal": "I cannot." }),
        "stop",
    );
    assert_eq!(refused.finish_reason, FinishReason::Refused);
    assert_eq!(refused.parts, [Part::text("I cannot.")]);
    let cut =
        check_completion(&[json!({ "content": "I" })], json!({ "content": "I" }), "model_length");
    assert_eq!(cut.finish_reason, FinishReason::ContextExceeded);
    let filtered =
        check_completion(&[json!({ "content": "I" })], json!({ "content": "I" }), "content_filter");
    assert_eq!(filtered.finish_reason, FinishReason::Safety);
}

#[test]
fn reasoning_details_are_sent_back_unchanged_in_order() {
    let text = |text: &str| {
        json!({ "type": "reasoning.text", "text": text, "index": 0,
        "format": "anthropic-claude-v1", "signature": null })
    };
    let signed = json!({ "type": "reasoning.text", "signature": "sig", "index": 0,
        "format": "anthropic-claude-v1" });
    let encrypted = json!({ "type": "reasoning.encrypted", "data": "…", "id": "rs_1", "index": 1 });
    let mut joined = text("hm so");
    joined["signature"] = json!("sig");
    let details = json!([joined, encrypted]);
    let completion = check_completion(
        &[
            json!({ "reasoning": "hm", "reasoning_details": [text("hm")] }),
            json!({ "reasoning": " so", "reasoning_details": [text(" so")] }),
            json!({ "reasoning_details": [signed] }),
            json!({ "content": "yes", "reasoning_details": [] }),
            json!({ "reasoning_details": [encrypted], "tool_calls": [call_json(0, "a", "{}")] }),
        ],
        json!({ "reasoning": "hm so", "content": "yes", "reasoning_details": details,
            "tool_calls": [call_json(0, "a", "{}")] }),
        "tool_calls",
    );
    let [thought, said, opaque, _call] = &completion.parts[..] else {
        panic!("{:?}", completion.parts)
    };
    assert_eq!((thought, said), (&Part::thought("hm so"), &Part::text("yes")));
    assert_eq!(opaque, &Part::opaque(json!({ "reasoning_details": details })));
    let back = next_request_message(completion);
    assert_eq!(back["reasoning_details"], details);
    assert_eq!((&back["content"], &back["reasoning_content"]), (&json!("yes"), &json!(null)));
}

#[test]
fn reasoning_details_without_text_are_shown_as_thoughts() {
    let detail = json!({ "type": "reasoning.summary", "summary": "hm", "index": 0 });
    let completion = check_completion(
        &[json!({ "reasoning_details": [detail] }), json!({ "content": "yes" })],
        json!({ "reasoning_details": [detail], "content": "yes" }),
        "stop",
    );
    assert_eq!(completion.parts[..2], [Part::thought("hm"), Part::text("yes")]);
}

#[test]
fn foreign_opaque_items_are_not_sent() {
    for item in [json!({ "id": "rs_1" }), json!({ "reasoning_details": "x" }), json!("x")] {
        let parts = vec![Part::opaque(item), Part::text("so").with_signature("s")];
        let completion = Completion::new(parts, FinishReason::Stop, Usage::default());
        assert_eq!(
            next_request_message(completion),
            json!({ "role": "assistant", "content": "so" })
        );
    }
}

#[test]
fn complete_answer_is_requested_if_streaming_is_off() {
    let answer = r#"{"choices":[{"message":{"content":"hello"},"finish_reason":"stop"}]}"#;
    let host = FakeHost::new(provider_openai::__jaato::MODULE)
        .with_config(json!({ "base_url": "http://localhost:1/v1" }))
        .with_http(move |_| Ok(FakeHttpAnswer::status(200).body(answer)));
    let mut request = CompletionRequest::new("m", vec![Message::user("hi")]);
    request.options.stream = Some(false);
    assert_eq!(host.complete(&request).result.unwrap().parts, [Part::text("hello")]);
    let [sent] = host.http_requests().try_into().unwrap();
    let body: Value = serde_json::from_slice(&sent.body).unwrap();
    assert_eq!((&body["stream"], &body["stream_options"]), (&json!(false), &json!(null)));
}
