//! Tests what a strict fake of the vendor refuses, and answers that end badly.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use jaato_plugin_sdk::ErrorKind;
use jaato_plugin_sdk::serde_json::{self, Map, json};
use jaato_plugin_sdk::types::{
    Completion, FinishReason, Message, OpaqueData, Part, Retry, ToolCall, ToolResult,
};
use jaato_vendors::openai::{FakeOpenAi, OpenAiAnswerPiece, OpenAiTurn, StreamErrorPlacement};

use crate::vendor::{
    MODELS, call_piece, example_turns, last_input_items, phase_piece, talk_to, talk_with,
    text_piece, thought_piece,
};

#[test]
fn reasoning_of_another_account_is_left_out_after_a_refusal() {
    let mut talk = talk_to("gpt-5.2", example_turns());
    let first = talk.ask(Message::user("look"));
    // Another API key: its server cannot read what the first account's server encrypted.
    let other = talk_with(
        "gpt-5.2",
        json!({}),
        FakeOpenAi::new(example_turns().into_iter().skip(1)).with_first_item_number(100),
    );
    let instance = other.host.instance().unwrap();
    let mut request = talk.request.clone();
    let mut last = first;
    for requests in [2, 3] {
        request.messages.push(empty_results(&last));
        last = instance.complete(&request).result.unwrap();
        request.messages.push(Message::model(last.parts.clone()));
        // The server refuses the reasoning once, and the plugin then leaves it out.
        assert_eq!(other.host.http_requests().len(), requests);
    }
    let items = last_input_items(&other);
    let reasoning = items.iter().filter(|item| item["type"] == "reasoning");
    assert_eq!(reasoning.count(), 1, "this account's reasoning is sent back: {items:?}");
}

/// Answers all calls of an answer with empty results.
fn empty_results(completion: &Completion) -> Message {
    let calls = completion.parts.iter().filter_map(Part::as_tool_call);
    let result = |call: &ToolCall| ToolResult::new(call.id.clone(), call.name.clone(), Map::new());
    Message::tool(calls.map(result).collect::<Vec<_>>())
}

#[test]
fn opaque_items_are_sent_only_to_the_model_that_made_them() {
    let mut talk = talk_to("gpt-5.2", example_turns());
    let item = json!({ "type": "reasoning", "summary": [], "encrypted_content": "gAAAA-other" });
    let opaque = OpaqueData {
        provider: "openai".to_owned(),
        model: "o4-mini".to_owned(),
        item,
        ..OpaqueData::default()
    };
    let answer = Message::model(vec![Part::Opaque(opaque), Part::text("so")]);
    talk.request.messages = vec![Message::user("hi"), answer];
    talk.ask(Message::user("continue"));
    assert_eq!(talk.host.http_requests().len(), 1);
}

#[test]
fn summaries_are_not_requested_again_after_a_refusal() {
    let mut talk =
        talk_with("gpt-5.2", json!({}), FakeOpenAi::new(example_turns()).without_verification());
    let instance = talk.host.instance().unwrap();
    talk.request.messages.push(Message::user("hi"));
    for requests in [2, 3] {
        assert!(instance.complete(&talk.request).result.is_ok());
        assert_eq!(talk.host.http_requests().len(), requests);
    }
}

#[test]
fn non_reasoning_model_is_asked_without_reasoning() {
    let vendor = FakeOpenAi::new([OpenAiTurn::text("a")]);
    let talk = talk_with("gpt-4o", json!({}), vendor);
    let mut request = talk.request.clone();
    request.messages.push(Message::user("hi"));
    assert!(talk.host.complete(&request).result.is_ok());
    let body = talk.vendor.accepted_requests().pop().unwrap();
    assert_eq!((body.get("include"), body.get("reasoning")), (None, None));
}

#[test]
fn mid_stream_error_has_its_retry_class_in_every_placement() {
    for (code, retry, kind) in [
        ("server_error", Retry::Temporary, ErrorKind::Provider),
        ("rate_limit_exceeded", Retry::Temporary, ErrorKind::Provider),
        ("insufficient_quota", Retry::Permanent, ErrorKind::Provider),
        ("invalid_prompt", Retry::Permanent, ErrorKind::Provider),
        ("context_length_exceeded", Retry::Permanent, ErrorKind::ContextOverflow),
    ] {
        for nesting in
            [StreamErrorPlacement::Flat, StreamErrorPlacement::Nested, StreamErrorPlacement::Failed]
        {
            for stream in [None, Some(false)] {
                let failing = OpenAiTurn::text("so").with_stream_error(code, "No", nesting);
                let mut talk = talk_to("gpt-5.2", [failing.cut_after(2)]);
                talk.request.options.stream = stream;
                talk.request.messages.push(Message::user("hi"));
                let error = talk.send().unwrap_err();
                assert_eq!((error.retry, error.kind), (retry, kind), "{code} {nesting:?}");
                assert!(error.message.ends_with("reports an error: No"), "{error}");
            }
        }
    }
}

#[test]
fn vendor_accepts_truncated_or_filtered_answers_in_the_history() {
    for (stop, expected) in
        [("max_output_tokens", FinishReason::MaxTokens), ("content_filter", FinishReason::Safety)]
    {
        for said in [
            vec![thought_piece("hm")],
            vec![thought_piece("hm"), phase_piece("commentary", "so ")],
            vec![thought_piece("hm"), call_piece("{}")],
            vec![],
        ] {
            for model in MODELS {
                let has_call = said.iter().any(|said| matches!(said, OpenAiAnswerPiece::Call(..)));
                if has_call && stop == "max_output_tokens" {
                    continue;
                }
                let cut = OpenAiTurn::with_pieces(said.clone()).with_stop_reason(stop);
                let next = OpenAiTurn::with_pieces([thought_piece("hm"), text_piece("done")]);
                let mut talk = talk_to(model, [cut, next, OpenAiTurn::text("b")]);
                assert_eq!(talk.ask(Message::user("hi")).finish_reason, expected, "{model}");
                talk.ask(Message::user("continue"));
                talk.ask(Message::user("again"));
            }
        }
    }
}

#[test]
fn refusal_has_its_finish_reason_and_is_accepted_in_the_history() {
    for config in [json!({}), json!({ "api": "chat" })] {
        let declined =
            OpenAiTurn::with_pieces([OpenAiAnswerPiece::Refusal("I cannot.".to_owned())]);
        let vendor = FakeOpenAi::new([declined, OpenAiTurn::text("fine")]);
        let mut talk = talk_with("gpt-5.2", config, vendor);
        let completion = talk.ask(Message::user("hi"));
        assert_eq!(completion.finish_reason, FinishReason::Refused);
        assert_eq!(Message::model(completion.parts).text(), "I cannot.");
        talk.ask(Message::user("and now?"));
    }
}

#[test]
fn parallel_wrapper_call_is_unpacked_into_its_calls() {
    for config in [json!({}), json!({ "api": "chat" })] {
        let uses = json!({ "tool_uses": [
            { "recipient_name": "functions.look", "parameters": { "at": "a" } },
            { "recipient_name": "functions.look", "parameters": { "at": "b" } },
        ] });
        let wrapper =
            OpenAiAnswerPiece::Call("multi_tool_use.parallel".to_owned(), uses.to_string());
        let turns =
            [OpenAiTurn::with_pieces([thought_piece("both"), wrapper]), OpenAiTurn::text("done")];
        let mut talk = talk_with("gpt-5.2", config, FakeOpenAi::new(turns));
        let first = talk.ask(Message::user("look"));
        let calls = first.parts.iter().filter_map(Part::as_tool_call);
        let calls: Vec<&str> = calls.map(|call| call.name.as_str()).collect();
        assert_eq!(calls, ["look", "look"]);
        talk.answer(&first);
    }
}

#[test]
fn unsupported_option_error_names_the_option() {
    for (model, options, option) in [
        ("gpt-5.2", json!({ "temperature": 0.5 }), "temperature"),
        ("gpt-4o", json!({ "effort": "low" }), "effort"),
        ("o4-mini", json!({ "effort": "minimal" }), "effort"),
        ("o4-mini", json!({ "stop": ["a"] }), "stop"),
    ] {
        let mut talk = talk_to(model, []);
        talk.request.messages.push(Message::user("hi"));
        talk.request.options = serde_json::from_value(options).unwrap();
        let error = talk.send().unwrap_err();
        let hint = error.hint.clone().unwrap_or_default();
        assert!(hint.contains(&format!("the option `{option}`")), "{model}: {error:?}");
        assert_eq!(error.retry, Retry::Permanent);
    }
}

#[test]
fn unknown_model_and_wrong_protocol_errors_suggest_a_fix() {
    let mut talk = talk_to("gpt-9", []);
    talk.request.messages.push(Message::user("hi"));
    let error = talk.send().unwrap_err();
    assert_eq!(error.hint.as_deref(), Some("`jaato model list` lists the models"));
    let mut talk = talk_with("gpt-5.3-codex", json!({ "api": "chat" }), FakeOpenAi::new([]));
    talk.request.messages.push(Message::user("hi"));
    let error = talk.send().unwrap_err();
    let expected = "set `api = \"responses\"` under `[plugins.provider-openai]`";
    assert_eq!(error.hint.as_deref(), Some(expected));
}

#[test]
fn option_unsupported_by_the_configured_protocol_fails_before_sending() {
    let config = json!({ "api": "responses" });
    let mut talk = talk_with("gpt-4o", config, FakeOpenAi::new([]));
    talk.request.messages.push(Message::user("hi"));
    talk.request.options.seed = Some(7);
    let error = talk.send().unwrap_err();
    assert_eq!(error.kind, ErrorKind::Configuration);
    assert_eq!(error.message, "Responses does not support the option `seed`");
    assert!(talk.host.http_requests().is_empty());
}
