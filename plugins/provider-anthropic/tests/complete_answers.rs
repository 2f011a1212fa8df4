//! Tests that a streamed and a complete answer result in the same history.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use jaato_plugin_sdk::serde_json::{Value, json};
use jaato_plugin_sdk::types::{Completion, CompletionRequest, Message, ToolSpec};
use jaato_plugin_testkit::{FakeHost, FinishedCall};
use jaato_vendors::anthropic::{AnthropicAnswerPiece, AnthropicTurn, FakeAnthropic};
use jaato_vendors::joined_deltas;

fn complete_turn(
    turn: &AnthropicTurn,
    model: &str,
    stream: Option<bool>,
) -> FinishedCall<Completion> {
    let vendor = FakeAnthropic::new([turn.clone()]);
    let host = FakeHost::new(provider_anthropic::__jaato::MODULE)
        .with_http(move |request| vendor.answer_plugin(request));
    let mut request = CompletionRequest::new(model, vec![Message::user("hi")]);
    request.tools = vec![ToolSpec { name: "look".into(), ..ToolSpec::default() }];
    request.options.stream = stream;
    host.complete(&request)
}

#[track_caller]
fn check_turn(turn: AnthropicTurn) {
    for model in ["claude-opus-5-5", "claude-haiku-4-5"] {
        let (pieces, whole) =
            (complete_turn(&turn, model, None), complete_turn(&turn, model, Some(false)));
        assert_eq!(joined_deltas(&pieces.deltas), joined_deltas(&whole.deltas), "{model}");
        assert_eq!(pieces.result, whole.result, "{model}");
    }
}

fn text_piece(text: &str) -> AnthropicAnswerPiece {
    AnthropicAnswerPiece::Text(text.to_owned())
}

fn call_piece(input: Value) -> AnthropicAnswerPiece {
    AnthropicAnswerPiece::Call("look".to_owned(), input)
}

#[test]
fn unstreamed_answer_equals_the_streamed_one_for_thoughts_and_calls() {
    check_turn(AnthropicTurn::with_pieces([
        AnthropicAnswerPiece::Thought("I should look.".to_owned()),
        text_piece("I look: Grüße, 漢字"),
        AnthropicAnswerPiece::Hidden("secret".to_owned()),
        call_piece(json!({ "x": { "y": [1, "ü"] } })),
        AnthropicAnswerPiece::Thought(String::new()),
        call_piece(json!({})),
        text_piece("one"),
        text_piece("two"),
    ]));
}

#[test]
fn unstreamed_answer_equals_the_streamed_one_for_vendor_blocks() {
    let block = |block: Value| AnthropicAnswerPiece::Block(block);
    check_turn(
        AnthropicTurn::with_pieces([
            block(json!({ "type": "server_tool_use", "id": "s", "name": "web_search",
                "input": { "query": "moon" } })),
            block(json!({ "type": "web_search_tool_result", "tool_use_id": "s", "content": [] })),
        ])
        .with_stop_reason("pause_turn"),
    );
}

#[test]
fn unstreamed_answer_equals_the_streamed_one_for_every_stop_reason() {
    for word in ["max_tokens", "stop_sequence", "refusal", "model_context_window_exceeded", "moon"]
    {
        check_turn(
            AnthropicTurn::with_pieces([text_piece("so"), call_piece(json!({ "x": 1 }))])
                .with_stop_reason(word)
                .with_explanation("No."),
        );
    }
}
