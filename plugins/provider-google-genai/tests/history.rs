//! Tests the written history.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use expect_test::{Expect, expect};
use jaato_plugin_sdk::serde_json::{self, Map, Value, json};
use jaato_plugin_sdk::types::{
    CompletionRequest, DataPart, Message, OpaqueData, Part, Role, ToolCall, ToolResult,
};
use jaato_plugin_sdk_provider::shown::BlobContents;
use provider_google_genai::content::wanted_blobs;
use provider_google_genai::endpoint::GoogleEndpoint;
use provider_google_genai::request::{GoogleRequestStyle, write_request_body};

use crate::request::{studio_endpoint, vertex_endpoint};

const NEW: &str = "gemini-4-argon";
const OLD: &str = "gemini-2.5-flash";

fn blob_contents() -> BlobContents {
    ["b-1", "b-2"].map(|id| (id.to_owned(), id.as_bytes().to_vec())).into()
}

fn user_message(parts: Vec<Part>) -> Message {
    Message { role: Role::User, parts, ..Message::default() }
}

fn call_part(id: &str) -> Part {
    Part::ToolCall(ToolCall::new(id, "look", json!({ "at": id })))
}

fn tool_result(id: &str) -> ToolResult {
    ToolResult::new(id, "look", Map::from_iter([("seen".to_owned(), json!(id))]))
}

/// Checks the contents, one per line.
#[track_caller]
fn check_contents_at(
    endpoint: &GoogleEndpoint,
    model: &str,
    messages: Vec<Message>,
    expected: Expect,
) {
    let body = write_request_body(
        &CompletionRequest::new(model, messages),
        endpoint,
        GoogleRequestStyle::default(),
        &blob_contents(),
    )
    .unwrap();
    let body: Value = serde_json::from_slice(&body).unwrap();
    let lines: Vec<_> = body["contents"].as_array().unwrap().iter().map(Value::to_string).collect();
    expected.assert_eq(&lines.join("\n"));
}

#[track_caller]
fn check_contents(model: &str, messages: Vec<Message>, expected: Expect) {
    check_contents_at(&studio_endpoint(), model, messages, expected);
}

#[test]
fn signatures_are_sent_back_on_their_own_parts() {
    check_contents(
        NEW,
        vec![
            Message::user("go"),
            Message::model(vec![
                Part::thought("summary"),
                Part::thought("signed").with_signature("s1"),
                Part::text("a"),
                Part::text("b").with_signature("s2"),
                call_part("1").with_signature("s3"),
                call_part("2"),
                Part::text("").with_signature("s4"),
                Part::text(""),
            ]),
            Message::tool([tool_result("1"), tool_result("2")]),
        ],
        expect![[r#"
            {"role":"user","parts":[{"text":"go"}]}
            {"role":"model","parts":[{"text":"signed","thought":true,"thoughtSignature":"s1"},{"text":"a"},{"text":"b","thoughtSignature":"s2"},{"functionCall":{"name":"look","args":{"at":"1"},"id":"1"},"thoughtSignature":"s3"},{"functionCall":{"name":"look","args":{"at":"2"},"id":"2"}},{"text":"","thoughtSignature":"s4"}]}
            {"role":"user","parts":[{"functionResponse":{"name":"look","response":{"output":{"seen":"1"}},"id":"1"}},{"functionResponse":{"name":"look","response":{"output":{"seen":"2"}},"id":"2"}}]}"#]],
    );
}

#[test]
fn unsigned_calls_get_a_placeholder_signature_if_required() {
    let messages = || {
        vec![
            Message::user("go"),
            Message::model(vec![Part::text("a"), call_part("1"), call_part("2")]),
            Message::tool([tool_result("1"), tool_result("2")]),
            Message::model(vec![call_part("3")]),
            Message::tool([tool_result("3")]),
        ]
    };
    check_contents(
        NEW,
        messages(),
        expect![[r#"
            {"role":"user","parts":[{"text":"go"}]}
            {"role":"model","parts":[{"text":"a"},{"functionCall":{"name":"look","args":{"at":"1"},"id":"1"},"thoughtSignature":"skip_thought_signature_validator"},{"functionCall":{"name":"look","args":{"at":"2"},"id":"2"}}]}
            {"role":"user","parts":[{"functionResponse":{"name":"look","response":{"output":{"seen":"1"}},"id":"1"}},{"functionResponse":{"name":"look","response":{"output":{"seen":"2"}},"id":"2"}}]}
            {"role":"model","parts":[{"functionCall":{"name":"look","args":{"at":"3"},"id":"3"},"thoughtSignature":"skip_thought_signature_validator"}]}
            {"role":"user","parts":[{"functionResponse":{"name":"look","response":{"output":{"seen":"3"}},"id":"3"}}]}"#]],
    );
    // Models that do not check signatures get none, and Vertex AI gets no call ids.
    check_contents_at(
        &vertex_endpoint(),
        OLD,
        messages(),
        expect![[r#"
            {"role":"user","parts":[{"text":"go"}]}
            {"role":"model","parts":[{"text":"a"},{"functionCall":{"name":"look","args":{"at":"1"}}},{"functionCall":{"name":"look","args":{"at":"2"}}}]}
            {"role":"user","parts":[{"functionResponse":{"name":"look","response":{"output":{"seen":"1"}}}},{"functionResponse":{"name":"look","response":{"output":{"seen":"2"}}}}]}
            {"role":"model","parts":[{"functionCall":{"name":"look","args":{"at":"3"}}}]}
            {"role":"user","parts":[{"functionResponse":{"name":"look","response":{"output":{"seen":"3"}}}}]}"#]],
    );
}

#[test]
fn tool_results_follow_the_call_order_and_precede_other_parts() {
    let mut failed = ToolResult { is_error: true, ..tool_result("1") };
    let mut tool = Message::tool([tool_result("2"), failed.clone()]);
    tool.parts.insert(1, Part::json(json!({ "task": "done" })));
    check_contents(
        OLD,
        vec![
            Message::user("go"),
            Message::model(vec![call_part("1"), call_part("2")]),
            tool,
            Message::user("and?"),
            Message::model(vec![call_part("1")]),
            {
                failed.content = Map::from_iter([("error".to_owned(), json!("no"))]);
                Message::tool([failed])
            },
        ],
        expect![[r#"
            {"role":"user","parts":[{"text":"go"}]}
            {"role":"model","parts":[{"functionCall":{"name":"look","args":{"at":"1"}}},{"functionCall":{"name":"look","args":{"at":"2"}}}]}
            {"role":"user","parts":[{"functionResponse":{"name":"look","response":{"error":{"seen":"1"}}}},{"functionResponse":{"name":"look","response":{"output":{"seen":"2"}}}},{"text":"{\"task\":\"done\"}"},{"text":"and?"}]}
            {"role":"model","parts":[{"functionCall":{"name":"look","args":{"at":"1"}}}]}
            {"role":"user","parts":[{"functionResponse":{"name":"look","response":{"error":"no"}}}]}"#]],
    );
}

#[test]
fn images_and_files_are_sent_or_replaced_by_a_note() {
    check_contents(
        NEW,
        vec![user_message(vec![
            Part::text("look"),
            Part::Data(DataPart::blob("image/png", "b-1")),
            Part::Data(DataPart::blob("application/pdf", "b-2").with_name("plan.pdf")),
            Part::Data(DataPart::blob("image/gif", "b-1")),
            Part::Data(DataPart::blob("image/png", "gone")),
        ])],
        expect![[
            r#"{"role":"user","parts":[{"text":"look"},{"inlineData":{"mimeType":"image/png","data":"Yi0x"}},{"inlineData":{"mimeType":"application/pdf","data":"Yi0y"}},{"text":"[image/gif: cannot be sent to this model]"},{"text":"[image/png: cannot be sent to this model]"}]}"#
        ]],
    );
    check_contents(
        "gemma-3-27b-it",
        vec![user_message(vec![Part::Data(DataPart::blob("application/pdf", "b-2"))])],
        expect![[
            r#"{"role":"user","parts":[{"text":"[application/pdf: cannot be sent to this model]"}]}"#
        ]],
    );
}

fn history_with_attachment() -> Vec<Message> {
    let attachments =
        ["image/png", "image/heic", "text/csv"].map(|name| DataPart::blob(name, "b-1"));
    vec![
        Message::user("go"),
        Message::model(vec![call_part("1"), call_part("2")]),
        Message::tool([
            ToolResult { attachments: attachments.to_vec(), ..tool_result("1") },
            tool_result("2"),
        ]),
    ]
}

#[test]
fn attachments_are_sent_inside_results_if_the_model_allows() {
    check_contents(
        NEW,
        history_with_attachment(),
        expect![[r#"
            {"role":"user","parts":[{"text":"go"}]}
            {"role":"model","parts":[{"functionCall":{"name":"look","args":{"at":"1"},"id":"1"},"thoughtSignature":"skip_thought_signature_validator"},{"functionCall":{"name":"look","args":{"at":"2"},"id":"2"}}]}
            {"role":"user","parts":[{"functionResponse":{"name":"look","response":{"output":{"seen":"1"}},"id":"1","parts":[{"inlineData":{"mimeType":"image/png","data":"Yi0x"}}]}},{"functionResponse":{"name":"look","response":{"output":{"seen":"2"}},"id":"2"}},{"text":"[attached to the result of look, 1]"},{"inlineData":{"mimeType":"image/heic","data":"Yi0x"}},{"text":"[text/csv: cannot be sent to this model]"}]}"#]],
    );
    check_contents(
        OLD,
        history_with_attachment(),
        expect![[r#"
            {"role":"user","parts":[{"text":"go"}]}
            {"role":"model","parts":[{"functionCall":{"name":"look","args":{"at":"1"}}},{"functionCall":{"name":"look","args":{"at":"2"}}}]}
            {"role":"user","parts":[{"functionResponse":{"name":"look","response":{"output":{"seen":"1"}}}},{"functionResponse":{"name":"look","response":{"output":{"seen":"2"}}}},{"text":"[attached to the result of look, 1]"},{"inlineData":{"mimeType":"image/png","data":"Yi0x"}},{"inlineData":{"mimeType":"image/heic","data":"Yi0x"}},{"text":"[text/csv: cannot be sent to this model]"}]}"#]],
    );
}

#[test]
fn opaque_parts_are_sent_back_only_to_their_own_model() {
    let opaque = |provider: &str, model: &str, item: Value| {
        let (provider, model) = (provider.to_owned(), model.to_owned());
        Part::Opaque(OpaqueData { provider, model, item, ..OpaqueData::default() })
    };
    let code = json!({ "executableCode": { "code": "1" }, "thoughtSignature": "s" });
    check_contents(
        NEW,
        vec![
            Message::user("go"),
            Message::model(vec![
                opaque("google", NEW, code.clone()),
                opaque("", "", code.clone()),
                opaque("openai", NEW, json!({ "encrypted_content": "…" })),
                opaque("google", OLD, code),
                opaque("google", NEW, json!("odd")),
                opaque("google", NEW, json!({})),
            ]),
            Message::user("so?"),
        ],
        expect![[r#"
            {"role":"user","parts":[{"text":"go"}]}
            {"role":"model","parts":[{"executableCode":{"code":"1"},"thoughtSignature":"s"},{"executableCode":{"code":"1"},"thoughtSignature":"s"}]}
            {"role":"user","parts":[{"text":"so?"}]}"#]],
    );
}

#[test]
fn placeholder_replaces_missing_and_empty_user_content() {
    check_contents(
        OLD,
        vec![
            Message::model(vec![Part::text("hello")]),
            user_message(vec![Part::text("")]),
            Message::model(vec![Part::thought("only this")]),
            Message::user("so"),
            Message::model(vec![Part::text("a")]),
            Message::model(vec![Part::text("b")]),
            user_message(vec![Part::Unknown(Map::new())]),
        ],
        expect![[r#"
            {"role":"user","parts":[{"text":"(nothing)"}]}
            {"role":"model","parts":[{"text":"hello"}]}
            {"role":"user","parts":[{"text":"so"}]}
            {"role":"model","parts":[{"text":"a"},{"text":"b"}]}
            {"role":"user","parts":[{"text":"(nothing)"}]}"#]],
    );
}

#[test]
fn invalid_call_arguments_and_tool_names_are_rewritten() {
    check_contents(
        OLD,
        vec![
            Message::user("go"),
            Message::model(vec![Part::ToolCall(ToolCall::new(
                "1",
                "7up now",
                json!("{\"x\": tru"),
            ))]),
            Message::tool([ToolResult::new("1", "7up now", Map::new())]),
        ],
        expect![[r#"
            {"role":"user","parts":[{"text":"go"}]}
            {"role":"model","parts":[{"functionCall":{"name":"_7up_now","args":{"invalid_arguments":"{\"x\": tru"}}}]}
            {"role":"user","parts":[{"functionResponse":{"name":"_7up_now","response":{"output":{}}}}]}"#]],
    );
}

#[test]
fn only_blobs_that_the_model_supports_are_fetched() {
    let request = CompletionRequest::new(NEW, history_with_attachment());
    assert_eq!(wanted_blobs(&request).into_iter().collect::<Vec<_>>(), [("b-1", 14 * 1024 * 1024)]);
    let text = CompletionRequest::new(
        NEW,
        vec![user_message(vec![Part::Data(DataPart::blob("image/gif", "b-1"))])],
    );
    assert!(wanted_blobs(&text).is_empty());
}
