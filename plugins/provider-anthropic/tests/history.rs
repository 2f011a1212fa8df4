//! Tests the written history.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use expect_test::{Expect, expect};
use jaato_plugin_sdk::serde_json::{self, Map, Value, json};
use jaato_plugin_sdk::types::{
    CompletionRequest, DataPart, Message, OpaqueData, Part, Role, ToolCall, ToolResult,
};
use jaato_plugin_sdk_provider::shown::BlobContents;
use provider_anthropic::content::wanted_blobs;
use provider_anthropic::request::write_request;

fn blob_contents() -> BlobContents {
    ["b-1", "b-2"].map(|id| (id.to_owned(), id.as_bytes().to_vec())).into()
}

/// Checks the messages without cache marks, one per line.
#[track_caller]
fn check_messages(messages: Vec<Message>, expected: Expect) {
    let written =
        write_request(&CompletionRequest::new("claude-opus-4-6", messages), &blob_contents())
            .unwrap();
    let body: Value = serde_json::from_slice(&written.body).unwrap();
    let lines: Vec<_> = body["messages"].as_array().unwrap().iter().map(Value::to_string).collect();
    let mark = r#","cache_control":{"type":"ephemeral"}"#;
    expected.assert_eq(&lines.join("\n").replace(mark, ""));
}

fn user_message(parts: Vec<Part>) -> Message {
    Message { role: Role::User, parts, ..Message::default() }
}

fn call_part(id: &str, arguments: Value) -> Part {
    Part::ToolCall(ToolCall::new(id, "run", arguments))
}

fn tool_result(id: &str, content: Value) -> ToolResult {
    ToolResult::new(id, "run", content.as_object().unwrap().clone())
}

#[test]
fn texts_stay_separate_and_blank_texts_are_left_out() {
    check_messages(
        vec![
            user_message(vec![
                Part::text("a"),
                Part::text(" \n"),
                Part::text(""),
                Part::text("b "),
            ]),
            Message::model(vec![Part::text("c"), Part::text("\n"), Part::text("d ")]),
            Message::user("e"),
        ],
        expect![[r#"
            {"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b "}]}
            {"role":"assistant","content":[{"type":"text","text":"c"},{"type":"text","text":"d "}]}
            {"role":"user","content":[{"type":"text","text":"e"}]}"#]],
    );
}

#[test]
fn only_signed_thoughts_and_opaque_blocks_are_sent_back() {
    let redacted = json!({ "type": "redacted_thinking", "data": "…" });
    check_messages(
        vec![
            Message::user("go"),
            Message::model(vec![
                Part::thought("hm").with_signature("s"),
                Part::thought("").with_signature("t"),
                Part::opaque(redacted),
                Part::thought("unsigned"),
                Part::text("I look."),
                call_part("a", json!({ "x": 1 })),
                Part::thought("so").with_signature("u"),
                call_part("b", json!({})),
            ]),
            Message::tool([
                tool_result("b", json!({ "n": 2 })),
                tool_result("a", json!({ "n": 1 })),
            ]),
        ],
        expect![[r#"
            {"role":"user","content":[{"type":"text","text":"go"}]}
            {"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"thinking","thinking":"","signature":"t"},{"type":"redacted_thinking","data":"…"},{"type":"text","text":"I look."},{"type":"tool_use","id":"a","name":"run","input":{"x":1}},{"type":"thinking","thinking":"so","signature":"u"},{"type":"tool_use","id":"b","name":"run","input":{}}]}
            {"role":"user","content":[{"type":"tool_result","tool_use_id":"b","content":"{\"n\":2}"},{"type":"tool_result","tool_use_id":"a","content":"{\"n\":1}"}]}"#]],
    );
}

#[test]
fn opaque_parts_of_other_providers_are_not_sent() {
    let opaque = |provider: &str, model: &str, item: Value| {
        let (provider, model) = (provider.to_owned(), model.to_owned());
        Part::Opaque(OpaqueData { provider, model, item, ..OpaqueData::default() })
    };
    let block = || json!({ "type": "redacted_thinking", "data": "x" });
    check_messages(
        vec![
            Message::user("go"),
            Message::model(vec![
                opaque("openai", "claude-opus-4-6", block()),
                opaque("anthropic", "claude-opus-5", block()),
                opaque("anthropic", "claude-opus-4-6", json!({ "id": "rs_1" })),
                opaque("", "", json!("x")),
                opaque("anthropic", "claude-opus-4-6", block()),
                Part::text("so").with_signature("s"),
                call_part("call_1|fc_2", json!({})),
            ]),
            Message::tool([tool_result("call_1|fc_2", json!({}))]),
        ],
        expect![[r#"
            {"role":"user","content":[{"type":"text","text":"go"}]}
            {"role":"assistant","content":[{"type":"redacted_thinking","data":"x"},{"type":"text","text":"so"},{"type":"tool_use","id":"call_1_fc_2-af9de82873fca635","name":"run","input":{}}]}
            {"role":"user","content":[{"type":"tool_result","tool_use_id":"call_1_fc_2-af9de82873fca635","content":"{}"}]}"#]],
    );
}

#[test]
fn tool_results_are_sent_before_other_parts_of_their_message() {
    let mut message = Message::tool([tool_result("a", json!({ "n": 1 }))]);
    message.parts.insert(0, Part::json(json!({ "task": "t-1" })));
    message.parts.push(Part::text("And now this."));
    let failed = ToolResult { is_error: true, ..tool_result("b", json!({ "error": "no" })) };
    message.parts.push(Part::ToolResult(failed));
    check_messages(
        vec![
            Message::user("go"),
            Message::model(vec![call_part("a", json!({})), call_part("b", json!("{\"x\": tru"))]),
            message,
            Message::user("more"),
        ],
        expect![[r#"
            {"role":"user","content":[{"type":"text","text":"go"}]}
            {"role":"assistant","content":[{"type":"tool_use","id":"a","name":"run","input":{}},{"type":"tool_use","id":"b","name":"run","input":{"invalid_arguments":"{\"x\": tru"}}]}
            {"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"{\"n\":1}"},{"type":"tool_result","tool_use_id":"b","content":"{\"error\":\"no\"}","is_error":true},{"type":"text","text":"{\"task\":\"t-1\"}"},{"type":"text","text":"And now this."},{"type":"text","text":"more"}]}"#]],
    );
}

#[test]
fn images_and_files_are_sent_in_messages_and_tool_results() {
    let plan = DataPart::blob("application/pdf", "b-2").with_name("plan.pdf");
    let attachments = vec![
        DataPart::blob("image/png", "b-1"),
        plan.clone(),
        DataPart::json(json!({ "n": 1 })),
        DataPart::blob("image/png", "gone"),
    ];
    let look = ToolResult { attachments, ..ToolResult::new("a", "look", Map::new()) };
    let image = Part::Data(DataPart::blob("image/jpeg", "b-1"));
    let messages = vec![
        user_message(vec![
            Part::text("look"),
            image.clone(),
            Part::Data(plan),
            Part::text("there"),
        ]),
        Message::model(vec![call_part("a", json!({})), image]),
        Message::tool([look]),
    ];
    let asked = CompletionRequest::new("m", messages.clone());
    assert_eq!(wanted_blobs(&asked).into_keys().collect::<Vec<_>>(), ["b-1", "b-2", "gone"]);
    check_messages(
        messages,
        expect![[r#"
            {"role":"user","content":[{"type":"text","text":"look"},{"type":"image","source":{"type":"base64","media_type":"image/jpeg","data":"Yi0x"}},{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"Yi0y"},"title":"plan.pdf"},{"type":"text","text":"there"}]}
            {"role":"assistant","content":[{"type":"tool_use","id":"a","name":"run","input":{}},{"type":"text","text":"[image/jpeg: cannot be sent to this model]"}]}
            {"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"{}"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"Yi0x"}},{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"Yi0y"},"title":"plan.pdf"},{"type":"text","text":"{\"n\":1}"},{"type":"text","text":"[image/png: cannot be sent to this model]"}]}]}"#]],
    );
}

#[test]
fn answer_with_only_thoughts_is_left_out() {
    check_messages(
        vec![
            Message::user("a"),
            Message::model(vec![Part::thought("cut").with_signature("s")]),
            Message::user("b"),
            Message::model(vec![Part::text("c"), Part::thought("cut").with_signature("s")]),
            Message::user("d"),
        ],
        expect![[r#"
            {"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}
            {"role":"assistant","content":[{"type":"text","text":"c"}]}
            {"role":"user","content":[{"type":"text","text":"d"}]}"#]],
    );
}

#[test]
fn unfinished_answer_is_sent_without_trailing_whitespace() {
    let search =
        json!({ "type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {} });
    check_messages(
        vec![Message::user("a"), Message::model(vec![Part::opaque(search), Part::text("b \n")])],
        expect![[r#"
            {"role":"user","content":[{"type":"text","text":"a"}]}
            {"role":"assistant","content":[{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}},{"type":"text","text":"b"}]}"#]],
    );
}

#[test]
fn placeholder_is_sent_for_a_missing_or_empty_user_message() {
    for messages in [vec![], vec![Message::user(" ")]] {
        let said = expect![[r#"{"role":"user","content":[{"type":"text","text":"(nothing)"}]}"#]];
        check_messages(messages, said);
    }
    check_messages(
        vec![Message::model(vec![Part::text("a")]), Message::user("")],
        expect![[r#"
            {"role":"user","content":[{"type":"text","text":"(nothing)"}]}
            {"role":"assistant","content":[{"type":"text","text":"a"}]}
            {"role":"user","content":[{"type":"text","text":"(nothing)"}]}"#]],
    );
}

#[test]
fn unknown_parts_are_left_out() {
    let smell = json!({ "type": "smell", "of": "roses" }).as_object().unwrap().clone();
    let smell = || Part::Unknown(smell.clone());
    check_messages(
        vec![
            user_message(vec![smell(), Part::text("a")]),
            Message::model(vec![smell(), Part::text("b")]),
        ],
        expect![[r#"
            {"role":"user","content":[{"type":"text","text":"a"}]}
            {"role":"assistant","content":[{"type":"text","text":"b"}]}"#]],
    );
}
