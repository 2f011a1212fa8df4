//! Tests that a streamed and a complete answer result in the same history.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use jaato_plugin_sdk::serde_json::{Value, json};
use jaato_plugin_sdk::types::{Completion, CompletionRequest, Message, ToolSpec};
use jaato_plugin_testkit::{FakeHost, FinishedCall};
use jaato_vendors::joined_deltas;
use jaato_vendors::openai::{FakeOpenAi, OpenAiAnswerPiece, OpenAiTurn};

use crate::vendor::{call_piece, phase_piece, text_piece, thought_piece};

fn complete_turn(
    turn: &OpenAiTurn,
    model: &str,
    stream: Option<bool>,
    config: &Value,
) -> FinishedCall<Completion> {
    let vendor = FakeOpenAi::new([turn.clone()]);
    let host = FakeHost::new(provider_openai::__jaato::MODULE)
        .with_config(config.clone())
        .with_http(move |request| vendor.answer_plugin(request));
    let mut request = CompletionRequest::new(model, vec![Message::user("hi")]);
    let parameters = json!({ "type": "object", "properties": {} });
    request.tools = vec![ToolSpec { name: "look".into(), parameters, ..ToolSpec::default() }];
    request.options.stream = stream;
    host.complete(&request)
}

#[track_caller]
fn check_turn(turn: OpenAiTurn) {
    for (model, config) in
        [("gpt-5.2", json!({})), ("gpt-4o", json!({})), ("gpt-5.2", json!({ "api": "chat" }))]
    {
        for turn in [turn.clone(), turn.clone().with_other_ids()] {
            let pieces = complete_turn(&turn, model, None, &config);
            let whole = complete_turn(&turn, model, Some(false), &config);
            assert_eq!(
                joined_deltas(&pieces.deltas),
                joined_deltas(&whole.deltas),
                "{model} {config}"
            );
            let mut both = [pieces.result.unwrap(), whole.result.unwrap()];
            // The usage depends on the bytes of the request, which include `stream`.
            both.iter_mut().for_each(|completion| completion.usage = Default::default());
            assert_eq!(both[0], both[1], "{model} {config}");
        }
    }
}

#[test]
fn streamed_reasoning_text_and_calls_equal_the_complete_answer() {
    check_turn(OpenAiTurn::with_pieces([
        thought_piece("I should look."),
        phase_piece("commentary", "I look: Grüße, 漢字"),
        thought_piece(""),
        call_piece("{ \"x\": { \"y\": [1, \"ü\"] } }"),
        thought_piece("again"),
        call_piece(""),
        call_piece("{\"x\":"),
        text_piece("one"),
        phase_piece("final_answer", "two"),
    ]));
}

#[test]
fn streamed_vendor_items_equal_the_complete_answer() {
    let message = json!({ "type": "message", "role": "assistant", "status": "completed",
        "content": [
            { "type": "output_text", "text": "see ", "annotations": [{ "type": "url_citation" }] },
            { "type": "output_text", "text": "there", "annotations": [] },
        ] });
    let item = OpenAiAnswerPiece::Item;
    check_turn(OpenAiTurn::with_pieces([
        item(json!({ "type": "web_search_call", "id": "ws", "status": "completed" })),
        item(message),
        item(json!({ "type": "compaction", "encrypted_content": "x" })),
    ]));
}

#[test]
fn streamed_refusal_and_stop_reasons_equal_the_complete_answer() {
    check_turn(OpenAiTurn::with_pieces([OpenAiAnswerPiece::Refusal("I cannot.".to_owned())]));
    for word in ["max_output_tokens", "content_filter"] {
        check_turn(
            OpenAiTurn::with_pieces([text_piece("so"), call_piece("{\"x\":1}")])
                .with_stop_reason(word),
        );
    }
}
