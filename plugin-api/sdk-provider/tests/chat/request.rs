//! Tests of requests as they are sent, byte by byte.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use expect_test::{Expect, expect};
use jaato_plugin_sdk::ErrorKind;
use jaato_plugin_sdk::serde_json::{self, Value, json};
use jaato_plugin_sdk::types::http::HTTP_BODY_BYTES_MAX;
use jaato_plugin_sdk::types::{
    Annotations, Availability, CompletionRequest, DataContent, DataPart, Message, Part, Role,
    ToolCall, ToolResult, ToolSpec,
};
use jaato_plugin_sdk_provider::chat::{
    CallIdFormat, ChatRequestStyle, ChatServerQuirks, OutcomePlacement, ReasoningReplay,
    has_content_after_any_results, request_body,
};
use jaato_plugin_sdk_provider::shown::BlobContents;

const COMMON: ChatServerQuirks = ChatServerQuirks::COMMON;

fn completion_request(messages: Vec<Message>) -> CompletionRequest {
    let mut request = CompletionRequest::new("m", messages);
    request.system = "Be brief.".to_owned();
    request.tools = vec![tool_spec("get_time"), tool_spec("run")];
    request
}

fn tool_spec(name: &str) -> ToolSpec {
    let parameters = json!({ "type": "object", "properties": { "b": {}, "a": {} } });
    ToolSpec {
        name: name.into(),
        description: "Does it.".to_owned(),
        parameters,
        annotations: Annotations::default(),
        category: "system".to_owned(),
        availability: Availability::Core,
        auto_approval: false,
        auto_background: false,
        traits: Vec::new(),
        examples: Vec::new(),
        available_if: None,
        run_if: None,
        ..ToolSpec::default()
    }
}

fn call_part(id: &str, arguments: Value) -> Part {
    Part::ToolCall(ToolCall::new(id, "run", arguments))
}

fn tool_result(id: &str, content: Value) -> ToolResult {
    let content = content.as_object().unwrap().clone();
    ToolResult::new(id, "run", content)
}

fn encode_request(request: &CompletionRequest, quirks: ChatServerQuirks) -> String {
    String::from_utf8(
        request_body(request, &quirks, ChatRequestStyle::default(), &BlobContents::new()).unwrap(),
    )
    .unwrap()
}

/// Checks the messages after the system prompt, one per line.
#[track_caller]
fn check_messages(messages: Vec<Message>, expected: Expect) {
    check_messages_in_style(ChatRequestStyle::default(), messages, expected);
}

#[track_caller]
fn check_messages_in_style(habits: ChatRequestStyle, messages: Vec<Message>, expected: Expect) {
    let body =
        request_body(&completion_request(messages), &COMMON, habits, &BlobContents::new()).unwrap();
    let body: Value = serde_json::from_slice(&body).unwrap();
    let lines: Vec<_> =
        body["messages"].as_array().unwrap()[1..].iter().map(Value::to_string).collect();
    expected.assert_eq(&lines.join("\n"));
}

#[test]
fn constant_fields_come_first_in_the_request() {
    expect![[r#"{"model":"m","stream":true,"stream_options":{"include_usage":true},"tools":[{"type":"function","function":{"name":"get_time","description":"Does it.","parameters":{"type":"object","properties":{"b":{},"a":{}}}}},{"type":"function","function":{"name":"run","description":"Does it.","parameters":{"type":"object","properties":{"b":{},"a":{}}}}}],"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"hi"}]}"#]]
    .assert_eq(&encode_request(&completion_request(vec![Message::user("hi")]), COMMON));
}

#[test]
fn empty_system_text_and_tools_are_left_out() {
    let mut request = completion_request(vec![Message::user("hi")]);
    request.system = String::new();
    request.tools = Vec::new();
    request.options.max_output_tokens = Some(16);
    request.options.temperature = Some(0.7);
    expect![[r#"{"model":"m","stream":true,"stream_options":{"include_usage":true},"temperature":0.7,"max_tokens":16,"messages":[{"role":"user","content":"hi"}]}"#]]
    .assert_eq(&encode_request(&request, COMMON));
    expect![[r#"{"model":"m","stream":true,"stream_options":{"include_usage":true},"temperature":0.7,"max_completion_tokens":16,"messages":[{"role":"user","content":"hi"}]}"#]]
    .assert_eq(&encode_request(&request, ChatServerQuirks { max_tokens_field: "max_completion_tokens", ..COMMON }));
}

#[test]
fn successive_requests_share_their_beginning_byte_by_byte() {
    let mut messages = vec![Message::user("hi")];
    let mut before = encode_request(&completion_request(messages.clone()), COMMON);
    let steps = [
        Message::model(vec![
            Part::text("so"),
            call_part("1", json!({ "z": 1, "a": [0.1, 1e100] })),
        ]),
        Message::tool([tool_result("1", json!({ "output": "é\n" }))]),
        Message::model(vec![Part::text("done")]),
        Message::user("again"),
    ];
    for message in steps {
        messages.push(message);
        let next = encode_request(&completion_request(messages.clone()), COMMON);
        // Everything except the end of the list.
        let shared = before.strip_suffix("]}").unwrap();
        assert!(next.starts_with(shared), "{next}\ndoes not begin with\n{shared}");
        before = next;
    }
}

#[test]
fn calls_and_results_are_paired_by_id() {
    check_messages(
        vec![
            Message::user("go"),
            Message::model(vec![
                Part::thought("hm"),
                Part::text("I look."),
                call_part("a", json!({ "x": 1 })),
                call_part("b", json!({})),
            ]),
            Message::tool([
                tool_result("a", json!({ "n": 1 })),
                tool_result("b", json!({ "error": "no" })),
            ]),
        ],
        expect![[r#"
            {"role":"user","content":"go"}
            {"role":"assistant","content":"I look.","tool_calls":[{"id":"a","type":"function","function":{"name":"run","arguments":"{\"x\":1}"}},{"id":"b","type":"function","function":{"name":"run","arguments":"{}"}}]}
            {"role":"tool","tool_call_id":"a","content":"{\"n\":1}"}
            {"role":"tool","tool_call_id":"b","content":"{\"error\":\"no\"}"}"#]],
    );
}

#[test]
fn message_with_only_calls_has_null_content() {
    check_messages(
        vec![Message::model(vec![call_part("a", json!({}))])],
        expect![[
            r#"{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"run","arguments":"{}"}}]}"#
        ]],
    );
}

#[test]
fn reasoning_is_sent_back_only_in_its_original_field() {
    let thought = |signature: Option<&str>| match signature {
        Some(signature) => Part::thought("hm").with_signature(signature),
        None => Part::thought("hm"),
    };
    check_messages(
        vec![
            Message::model(vec![thought(Some("reasoning_content")), call_part("a", json!({}))]),
            Message::model(vec![thought(None), Part::text("so")]),
            Message::model(vec![thought(Some("another provider's")), Part::text("so")]),
        ],
        expect![[r#"
            {"role":"assistant","content":null,"reasoning_content":"hm","tool_calls":[{"id":"a","type":"function","function":{"name":"run","arguments":"{}"}}]}
            {"role":"assistant","content":"so"}
            {"role":"assistant","content":"so"}"#]],
    );
}

#[test]
fn answer_with_only_thoughts_is_sent_as_empty_text() {
    let thought = Part::thought("hm").with_signature("s");
    check_messages(
        vec![Message::model(vec![thought])],
        expect![[r#"{"role":"assistant","content":""}"#]],
    );
}

#[test]
fn non_object_arguments_are_sent_wrapped_in_an_object() {
    check_messages(
        vec![Message::model(vec![
            call_part("a", json!("{\"x\": tru")),
            call_part("b", json!([1])),
            call_part("c", json!(null)),
        ])],
        expect![[
            r#"{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"run","arguments":"{\"invalid_arguments\":\"{\\\"x\\\": tru\"}"}},{"id":"b","type":"function","function":{"name":"run","arguments":"{\"invalid_arguments\":[1]}"}},{"id":"c","type":"function","function":{"name":"run","arguments":"{\"invalid_arguments\":null}"}}]}"#
        ]],
    );
}

#[test]
fn parts_after_tool_results_are_sent_as_a_user_message() {
    let json = DataContent::json(json!({ "task": "t-1" }));
    let mut message = Message::tool([tool_result("a", json!({ "n": 1 }))]);
    message.parts.extend([
        Part::Data(DataPart {
            mime_type: "application/json".to_owned(),
            content: json,
            ..DataPart::default()
        }),
        Part::text("And now this."),
    ]);
    check_messages(
        vec![message.clone()],
        expect![[r#"
            {"role":"tool","tool_call_id":"a","content":"{\"n\":1}"}
            {"role":"user","content":"{\"task\":\"t-1\"}\nAnd now this."}"#]],
    );
    assert!(has_content_after_any_results(&completion_request(vec![message.clone()])));
    message.parts.insert(0, Part::ToolResult(tool_result("b", json!({ "n": 2 }))));
    check_messages_in_style(
        ChatRequestStyle {
            outcomes: OutcomePlacement::InLastResult,
            ..ChatRequestStyle::default()
        },
        vec![message],
        expect![[r#"
            {"role":"tool","tool_call_id":"b","content":"{\"n\":2}"}
            {"role":"tool","tool_call_id":"a","content":"{\"n\":1}\n\n{\"task\":\"t-1\"}\nAnd now this."}"#]],
    );
    let plain = Message::tool([tool_result("a", json!({ "n": 1 }))]);
    assert!(!has_content_after_any_results(&completion_request(vec![
        Message::user("hi"),
        plain.clone()
    ])));
    check_messages_in_style(
        ChatRequestStyle {
            outcomes: OutcomePlacement::InLastResult,
            ..ChatRequestStyle::default()
        },
        vec![plain],
        expect![[r#"{"role":"tool","tool_call_id":"a","content":"{\"n\":1}"}"#]],
    );
}

#[test]
fn body_above_the_limit_is_a_context_overflow() {
    let of = |bytes: usize| {
        let request = completion_request(vec![Message::user("x".repeat(bytes))]);
        request_body(&request, &COMMON, ChatRequestStyle::default(), &BlobContents::new())
    };
    let beside = of(0).unwrap().len();
    let more_than_a_frame = 9 * 1024 * 1024;
    assert_eq!(of(more_than_a_frame).unwrap().len(), beside + more_than_a_frame);
    let most = usize::try_from(HTTP_BODY_BYTES_MAX).unwrap();
    assert_eq!(of(most - beside + 1).unwrap_err().kind, ErrorKind::ContextOverflow);
}

#[test]
fn unknown_part_is_left_out_and_unknown_role_is_refused() {
    let smell = json!({ "type": "smell", "of": "roses" }).as_object().unwrap().clone();
    let mut message = Message::model(vec![Part::Unknown(smell), Part::text("a")]);
    check_messages(vec![message.clone()], expect![[r#"{"role":"assistant","content":"a"}"#]]);
    message.role = Role::Unknown;
    let error = request_body(
        &completion_request(vec![message]),
        &COMMON,
        ChatRequestStyle::default(),
        &BlobContents::new(),
    )
    .unwrap_err();
    assert_eq!(error.kind, ErrorKind::UnknownOperation);
    assert_eq!(error.message, "a message has a role that this provider does not know");
}

#[test]
fn blob_that_cannot_be_sent_is_replaced_by_a_note() {
    let image = Part::Data(DataPart::blob("image/png", "b-1"));
    check_messages(
        vec![Message { role: Role::User, parts: vec![Part::text("look"), image] }],
        expect![[r#"{"role":"user","content":"look\n[image/png: cannot be sent to this model]"}"#]],
    );
}

/// Returns the messages after the system prompt for a server with these quirks.
fn messages_for(
    quirks: ChatServerQuirks,
    tools: Vec<ToolSpec>,
    messages: Vec<Message>,
) -> Vec<Value> {
    let mut request = completion_request(messages);
    request.tools = tools;
    let bytes = request_body(&request, &quirks, quirks.habits, &BlobContents::new()).unwrap();
    let mut body: Value = serde_json::from_slice(&bytes).unwrap();
    body["messages"].as_array_mut().unwrap().split_off(1)
}

#[test]
fn rewritten_call_ids_fit_the_server_and_still_match() {
    let quirks = ChatServerQuirks { call_ids: CallIdFormat::Short(9), ..COMMON };
    let messages = vec![
        Message::model(vec![call_part("toolu_1", json!({})), call_part("abcDEF123", json!({}))]),
        Message::tool([tool_result("toolu_1", json!({})), tool_result("abcDEF123", json!({}))]),
    ];
    let sent = messages_for(quirks, Vec::new(), messages);
    let id = |at: usize| sent[0]["tool_calls"][at]["id"].as_str().unwrap().to_owned();
    assert_eq!((id(0).len(), id(1).as_str()), (9, "abcDEF123"));
    assert_eq!(
        (&sent[1]["tool_call_id"], &sent[2]["tool_call_id"]),
        (&json!(id(0)), &json!(id(1)))
    );
}

#[test]
fn reasoning_replay_follows_the_servers_request_style() {
    let thought = Part::thought("hm").with_signature("reasoning_content");
    let messages =
        vec![Message::model(vec![thought, Part::text("a")]), Message::model(vec![Part::text("b")])];
    let sent = |reasoning, tools: Vec<ToolSpec>| {
        let habits = ChatRequestStyle { reasoning, ..ChatRequestStyle::COMMON };
        let sent = messages_for(ChatServerQuirks { habits, ..COMMON }, tools, messages.clone());
        let of = |at: usize| sent[at].get("reasoning_content").cloned();
        [of(0), of(1)]
    };
    let (came, empty) = (Some(json!("hm")), Some(json!("")));
    for tools in [vec![], vec![tool_spec("run")]] {
        assert_eq!(sent(ReasoningReplay::AsItCame, tools.clone()), [came.clone(), None]);
        assert_eq!(sent(ReasoningReplay::Everywhere, tools.clone()), [came.clone(), empty.clone()]);
        assert_eq!(sent(ReasoningReplay::Nowhere, tools), [None, None]);
    }
    let beside = ReasoningReplay::EverywhereBesideTools;
    assert_eq!(sent(beside, vec![]), [came.clone(), None]);
    assert_eq!(sent(beside, vec![tool_spec("run")]), [came, empty]);
}

#[test]
fn invented_tool_name_is_rewritten_to_valid_characters() {
    let call = Part::ToolCall(ToolCall::new("a", "functions.run", json!({})));
    let sent = messages_for(COMMON, Vec::new(), vec![Message::model(vec![call])]);
    let name = sent[0]["tool_calls"][0]["function"]["name"].as_str().unwrap();
    assert!(name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b)), "{name}");
}
