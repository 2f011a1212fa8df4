//! Tests how images, files and attachments are sent.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use expect_test::{Expect, expect};
use jaato_plugin_sdk::serde_json::{self, Map, Value, json};
use jaato_plugin_sdk::types::service::{BLOB_GET, BlobGet};
use jaato_plugin_sdk::types::{
    CompletionRequest, DataPart, Message, Part, Role, ToolCall, ToolResult,
};
use jaato_plugin_sdk::{Error, ErrorKind};
use jaato_plugin_sdk_provider::chat::{
    ChatRequestStyle, ChatServerQuirks, OutcomePlacement, has_content_after_any_results,
    request_body, wanted_blobs as wanted,
};
use jaato_plugin_sdk_provider::shown::BlobContents;
use jaato_plugin_testkit::{FakeHost, FakeHttpAnswer, FakeServiceReply, FakeStream};

fn blob_contents() -> BlobContents {
    ["b-1", "b-2"].map(|id| (id.to_owned(), id.as_bytes().to_vec())).into()
}

fn image_part(id: &str) -> Part {
    Part::Data(DataPart::blob("image/png", id))
}

fn user_message(parts: Vec<Part>) -> Message {
    Message { role: Role::User, parts, ..Message::default() }
}

fn tool_result(id: &str, attachments: Vec<DataPart>) -> ToolResult {
    ToolResult { attachments, ..ToolResult::new(id, "look", Map::new()) }
}

/// Checks the messages, one per line.
#[track_caller]
fn check_messages(habits: ChatRequestStyle, messages: Vec<Message>, expected: Expect) {
    let body = request_body(
        &CompletionRequest::new("m", messages),
        &ChatServerQuirks::COMMON,
        habits,
        &blob_contents(),
    )
    .unwrap();
    let body: Value = serde_json::from_slice(&body).unwrap();
    let lines: Vec<_> = body["messages"].as_array().unwrap().iter().map(Value::to_string).collect();
    expected.assert_eq(&lines.join("\n"));
}

#[test]
fn images_keep_their_position_between_texts() {
    check_messages(
        ChatRequestStyle::default(),
        vec![user_message(vec![
            Part::text("look"),
            Part::text(""),
            Part::text("here"),
            image_part("b-1"),
            image_part("b-2"),
            Part::text("and say"),
        ])],
        expect![[
            r#"{"role":"user","content":[{"type":"text","text":"look\nhere"},{"type":"image_url","image_url":{"url":"data:image/png;base64,Yi0x"}},{"type":"image_url","image_url":{"url":"data:image/png;base64,Yi0y"}},{"type":"text","text":"and say"}]}"#
        ]],
    );
}

#[test]
fn image_only_message_is_sent_and_unnamed_file_gets_a_default_name() {
    check_messages(
        ChatRequestStyle::default(),
        vec![
            user_message(vec![image_part("b-1")]),
            user_message(vec![Part::Data(DataPart::blob("application/pdf", "b-2"))]),
        ],
        expect![[r#"
            {"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,Yi0x"}}]}
            {"role":"user","content":[{"type":"file","file":{"filename":"file.pdf","file_data":"data:application/pdf;base64,Yi0y"}}]}"#]],
    );
}

#[test]
fn file_is_sent_with_its_name() {
    let name = Some("plan.pdf".to_owned());
    let plan = DataPart { name, ..DataPart::blob("application/pdf", "b-1") };
    check_messages(
        ChatRequestStyle::default(),
        vec![user_message(vec![Part::Data(plan)])],
        expect![[
            r#"{"role":"user","content":[{"type":"file","file":{"filename":"plan.pdf","file_data":"data:application/pdf;base64,Yi0x"}}]}"#
        ]],
    );
}

#[test]
fn missing_and_unsupported_data_is_replaced_with_a_note() {
    check_messages(
        ChatRequestStyle::default(),
        vec![user_message(vec![
            image_part("gone"),
            Part::Data(DataPart::blob("audio/wav", "b-1")),
            Part::json(json!({ "task": "t-1" })),
        ])],
        expect![[
            r#"{"role":"user","content":"[image/png: cannot be sent to this model]\n[audio/wav: cannot be sent to this model]\n{\"task\":\"t-1\"}"}"#
        ]],
    );
    // A model message cannot contain images.
    check_messages(
        ChatRequestStyle::default(),
        vec![Message::model(vec![Part::text("so"), image_part("b-1")])],
        expect![[
            r#"{"role":"assistant","content":"so\n[image/png: cannot be sent to this model]"}"#
        ]],
    );
}

fn history_with_image() -> Vec<Message> {
    let calls = ["a", "b", "c"].map(|id| Part::ToolCall(ToolCall::new(id, "look", json!({}))));
    let png = |id: &str| DataPart::blob("image/png", id);
    let mut results = Message::tool([
        tool_result("a", vec![png("b-1"), DataPart::json(json!({ "n": 1 }))]),
        tool_result("b", vec![]),
        tool_result("c", vec![png("b-2")]),
    ]);
    results.parts.push(Part::text("And?"));
    vec![Message::model(calls.to_vec()), results]
}

#[test]
fn tool_attachments_follow_all_results_with_a_label_per_call() {
    check_messages(
        ChatRequestStyle::default(),
        history_with_image(),
        expect![[r#"
            {"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"look","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"look","arguments":"{}"}},{"id":"c","type":"function","function":{"name":"look","arguments":"{}"}}]}
            {"role":"tool","tool_call_id":"a","content":"{}"}
            {"role":"tool","tool_call_id":"b","content":"{}"}
            {"role":"tool","tool_call_id":"c","content":"{}"}
            {"role":"user","content":[{"type":"text","text":"[attached to the result of look, a]"},{"type":"image_url","image_url":{"url":"data:image/png;base64,Yi0x"}},{"type":"text","text":"{\"n\":1}\n[attached to the result of look, c]"},{"type":"image_url","image_url":{"url":"data:image/png;base64,Yi0y"}},{"type":"text","text":"And?"}]}"#]],
    );
    assert!(has_content_after_any_results(&CompletionRequest::new("m", history_with_image())));
}

#[test]
fn attachments_are_noted_in_the_last_result_if_results_must_be_last() {
    let messages =
        vec![Message::tool([tool_result("a", vec![DataPart::blob("image/png", "b-1")])])];
    assert!(has_content_after_any_results(&CompletionRequest::new("m", messages.clone())));
    check_messages(
        ChatRequestStyle {
            outcomes: OutcomePlacement::InLastResult,
            ..ChatRequestStyle::default()
        },
        messages,
        expect![[
            r#"{"role":"tool","tool_call_id":"a","content":"{}\n\n[attached to the result of look, a]\n[image/png: cannot be sent to this model]"}"#
        ]],
    );
}

#[test]
fn only_sendable_blobs_are_fetched() {
    let mut messages = history_with_image();
    messages.push(user_message(vec![
        Part::Data(DataPart::blob("application/pdf", "f")),
        Part::Data(DataPart::blob("audio/wav", "w")),
        image_part("b-1"),
    ]));
    messages.push(Message::model(vec![image_part("drawn")]));
    let request = CompletionRequest::new("m", messages);
    assert_eq!(wanted(&request).into_keys().collect::<Vec<_>>(), ["b-1", "b-2", "f"]);
}

/// Sends a request with these images on a host that has some of them. Returns the content of the
/// message.
fn request_images(ids: &[&str]) -> (Value, Vec<String>) {
    let host = FakeHost::new(provider_openai::__jaato::MODULE)
        .with_config(json!({ "base_url": "http://localhost:1/v1" }))
        .with_service(BLOB_GET, |request| {
            let BlobGet { blob, .. } = request.read()?;
            let bytes: u64 = match blob.as_str() {
                "b-1" => 3,
                "large" => u64::MAX,
                "denied" => return Err(Error::new(ErrorKind::PermissionDenied, "no")),
                "lost" => return Err(Error::new(ErrorKind::Io, "the disk is gone")),
                _ => return Err(Error::new(ErrorKind::NotFound, "there is none")),
            };
            let head = json!({ "mime_type": "image/png", "bytes": bytes });
            Ok(FakeServiceReply::StreamWith(head, FakeStream::from_pieces([blob.as_bytes()])))
        })
        .with_http(|_| {
            let answer = r#"{"choices":[{"message":{"content":"hello"},"finish_reason":"stop"}]}"#;
            Ok(FakeHttpAnswer::status(200).body(answer))
        });
    let parts = ids.iter().map(|id| image_part(id)).collect();
    let result = host.complete(&CompletionRequest::new("m", vec![user_message(parts)])).result;
    let Some(sent) = host.http_requests().pop() else {
        return (json!(result.unwrap_err().message), Vec::new());
    };
    let body: Value = serde_json::from_slice(&sent.body).unwrap();
    let log = host.log().into_iter().map(|line| line.text).collect();
    (body["messages"][0]["content"].clone(), log)
}

#[test]
fn blob_bytes_are_fetched_from_the_session() {
    let (content, log) = request_images(&["b-1"]);
    assert_eq!(content[0]["image_url"]["url"], "data:image/png;base64,Yi0x");
    assert!(log.is_empty(), "{log:?}");
}

#[test]
fn unavailable_blob_is_reported_to_the_model_and_in_the_log() {
    for id in ["gone", "large", "denied"] {
        let (content, log) = request_images(&[id]);
        assert_eq!(content, "[image/png: cannot be sent to this model]", "{id}");
        assert!(log[0].starts_with(&format!("the blob `{id}` is not shown")), "{log:?}");
    }
    assert_eq!(request_images(&["lost"]).0, "the disk is gone");
}
