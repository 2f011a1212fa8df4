//! Tests what the vendor's cache returns, request by request.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use jaato_plugin_sdk::serde_json::json;
use jaato_plugin_sdk::types::{Completion, Effort, Message, Part, ToolResult};
use jaato_vendors::anthropic::{AnthropicTurn, FakeAnthropic};

use crate::vendor::{
    call_piece, talk_to, talk_with, text_piece, thought_piece, tool_without_arguments,
};

/// Returns a text well above the minimum size of a cache entry, in the fake's tokens of four bytes.
fn long_text(model: &str) -> String {
    let tokens = if model == "claude-haiku-4-5" { 4_096 } else { 1_024 };
    "word ".repeat(tokens)
}

#[test]
fn each_request_reads_the_cache_written_by_the_previous_one() {
    for model in ["claude-haiku-4-5", "claude-opus-4-6", "claude-sonnet-5", "claude-opus-5-5"] {
        let turns = [
            AnthropicTurn::with_pieces([thought_piece("hm"), call_piece(json!({}))]),
            AnthropicTurn::with_pieces([thought_piece("so"), call_piece(json!({}))]),
            AnthropicTurn::with_pieces([text_piece("done")]),
            AnthropicTurn::text("bye"),
        ];
        let mut talk = talk_to(model, turns);
        talk.request.options.effort = Some(Effort::Low);
        talk.request.system = long_text("claude-haiku-4-5");
        let first = talk.ask(Message::user("look"));
        assert_eq!((first.usage.cached_tokens, first.usage.cache_write_tokens > 0), (0, true));
        let second = talk.answer(&first);
        let third = talk.answer(&second);
        let last = talk.ask(Message::user("bye"));
        for pair in [&first, &second, &third, &last].windows(2) {
            let (before, after) = (&pair[0].usage, &pair[1].usage);
            // The whole previous request, up to its last block.
            assert_eq!(after.cached_tokens, before.prompt_tokens, "{model}");
            assert!(after.prompt_tokens > before.prompt_tokens, "{model}");
        }
    }
}

#[test]
fn prompt_below_the_minimum_size_is_not_cached() {
    let mut talk = talk_to("claude-haiku-4-5", ["a", "b"].map(AnthropicTurn::text));
    let first = talk.ask(Message::user("hi"));
    let second = talk.ask(Message::user("hi"));
    for usage in [first.usage, second.usage] {
        assert_eq!((usage.cached_tokens, usage.cache_write_tokens), (0, 0));
        assert!(usage.prompt_tokens > 0);
    }
}

#[test]
fn step_longer_than_the_cache_lookback_still_hits_the_cache() {
    let many = AnthropicTurn::with_pieces((0..30).map(|number| call_piece(json!({ "n": number }))));
    let mut talk = talk_to("claude-opus-5-5", [many, AnthropicTurn::text("done")]);
    let first = talk.ask(Message::user(long_text("claude-opus-5-5")));
    let second = talk.answer(&first);
    assert_eq!(second.usage.cached_tokens, first.usage.prompt_tokens);
}

#[test]
fn tool_changes_do_not_invalidate_the_cache() {
    let turns = ["a", "b", "c"]
        .map(|said| AnthropicTurn::with_pieces([thought_piece("hm"), text_piece(said)]));
    let mut talk = talk_to("claude-opus-5-5", turns);
    let first = talk.ask(Message::user(long_text("claude-opus-5-5")));
    let changed = jaato_plugin_sdk::types::ToolsChanged {
        added: vec![tool_without_arguments("listen")],
        ..Default::default()
    };
    let mut news = Message::user("and now?");
    news.parts.push(Part::ToolsChanged(changed));
    let second = talk.ask(news);
    assert_eq!(second.usage.cached_tokens, first.usage.prompt_tokens);
    let third = talk.ask(Message::user("and now?"));
    assert!(third.usage.cached_tokens > second.usage.cached_tokens);
}

#[test]
fn second_session_reads_tools_and_system_text_from_the_cache() {
    let vendor = FakeAnthropic::new(["a", "b"].map(AnthropicTurn::text));
    let mut talk = talk_with("claude-opus-5-5", vendor);
    talk.request.system = long_text("claude-opus-5-5");
    talk.ask(Message::user("one"));
    talk.request.messages.clear();
    let other: Completion = talk.ask(Message::user("two"));
    assert!(other.usage.cached_tokens > 1_024, "{:?}", other.usage);
}

#[test]
fn each_step_of_a_long_loop_reads_the_cache() {
    let steps =
        (0..25).map(|_| AnthropicTurn::with_pieces([thought_piece("hm"), call_piece(json!({}))]));
    let mut talk = talk_to("claude-opus-5-5", steps.chain([AnthropicTurn::text("done")]));
    let mut last = talk.ask(Message::user(long_text("claude-opus-5-5")));
    while let Some(called) = last.parts.iter().find_map(Part::as_tool_call) {
        let result = ToolResult::new(called.id.clone(), "look", Default::default());
        let next = talk.ask(Message::tool([result]));
        assert_eq!(next.usage.cached_tokens, last.usage.prompt_tokens);
        last = next;
    }
    assert_eq!(talk.vendor.accepted_requests().len(), 26);
}
