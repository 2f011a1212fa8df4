//! Tests that a streamed and a complete answer result in the same history.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use jaato_plugin_sdk::serde_json::{Value, json};
use jaato_plugin_sdk::types::{Completion, Message, Request, ToolSpec};
use jaato_plugin_testkit::{FakeHost, Finished};
use jaato_vendors::anthropic::{Anthropic, Said, Turn};
use jaato_vendors::said;

fn ask(turn: &Turn, model: &str, stream: Option<bool>) -> Finished<Completion> {
    let vendor = Anthropic::new([turn.clone()]);
    let host = FakeHost::new(provider_anthropic::__jaato::MODULE)
        .with_http(move |request| vendor.answer_plugin(request));
    let mut request = Request::new(model, vec![Message::user("hi")]);
    request.tools = vec![ToolSpec { name: "look".into(), ..ToolSpec::default() }];
    request.options.stream = stream;
    host.complete(&request)
}

#[track_caller]
fn check(turn: Turn) {
    for model in ["claude-opus-5-5", "claude-haiku-4-5"] {
        let (pieces, whole) = (ask(&turn, model, None), ask(&turn, model, Some(false)));
        assert_eq!(said(&pieces.deltas), said(&whole.deltas), "{model}");
        assert_eq!(pieces.result, whole.result, "{model}");
    }
}

fn text(text: &str) -> Said {
    Said::Text(text.to_owned())
}

fn call(input: Value) -> Said {
    Said::Call("look".to_owned(), input)
}

#[test]
fn thoughts_text_and_calls_in_any_order() {
    check(Turn::says([
        Said::Thought("I should look.".to_owned()),
        text("I look: Grüße, 漢字"),
        Said::Hidden("secret".to_owned()),
        call(json!({ "x": { "y": [1, "ü"] } })),
        Said::Thought(String::new()),
        call(json!({})),
        text("one"),
        text("two"),
    ]));
}

#[test]
fn blocks_that_only_the_vendor_understands() {
    let block = |block: Value| Said::Block(block);
    check(
        Turn::says([
            block(json!({ "type": "server_tool_use", "id": "s", "name": "web_search",
                "input": { "query": "moon" } })),
            block(json!({ "type": "web_search_tool_result", "tool_use_id": "s", "content": [] })),
        ])
        .stopping("pause_turn"),
    );
}

#[test]
fn every_reason_to_stop() {
    for word in ["max_tokens", "stop_sequence", "refusal", "model_context_window_exceeded", "moon"]
    {
        check(Turn::says([text("so"), call(json!({ "x": 1 }))]).stopping(word).explained("No."));
    }
}
