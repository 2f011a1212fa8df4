//! Tests answers that the strict fake refuses, breaks off or blocks.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use jaato_plugin_sdk::ErrorKind;
use jaato_plugin_sdk::serde_json::{Value, json};
use jaato_plugin_sdk::types::{Delta, Effort, FinishReason, Message, Part, Retry};
use jaato_vendors::google::GoogleTurn;
use jaato_vendors::sample_tool_results;

use crate::vendor::{call_piece, example_turns, talk_to, text_piece, thought_piece};

const MODEL: &str = "gemini-4-argon";

fn overloaded_answer() -> Value {
    json!({ "error": { "code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE" } })
}

#[test]
fn stream_error_is_temporary_before_and_after_the_first_content() {
    let begun = || GoogleTurn::text("so").cut_after(1);
    for turn in [
        begun().with_stream_error(overloaded_answer()),
        begun().with_plain_stream_error(overloaded_answer()),
    ] {
        let mut talk = talk_to(MODEL, [turn]);
        talk.request.messages.push(Message::user("hi"));
        let error = talk.send().unwrap_err();
        assert_eq!((error.kind, error.retry), (ErrorKind::Provider, Retry::Temporary));
        assert!(error.message.ends_with("reports an error: The model is overloaded"), "{error}");
    }
    // Before any content, and in a complete answer.
    for stream in [None, Some(false)] {
        let mut talk = talk_to(
            MODEL,
            [GoogleTurn::with_pieces([]).cut_after(0).with_plain_stream_error(overloaded_answer())],
        );
        talk.request.options.stream = stream;
        talk.request.messages.push(Message::user("hi"));
        assert_eq!(talk.send().unwrap_err().retry, Retry::Temporary);
    }
}

#[test]
fn stopped_answer_is_accepted_back() {
    for (word, expected) in [
        ("MAX_TOKENS", FinishReason::MaxTokens),
        ("SAFETY", FinishReason::Safety),
        ("RECITATION", FinishReason::Safety),
        ("OTHER", FinishReason::Unknown),
    ] {
        for said in
            [vec![thought_piece("hm")], vec![thought_piece("hm"), text_piece("so ")], vec![]]
        {
            for stream in [None, Some(false)] {
                let cut = GoogleTurn::with_pieces(said.clone()).with_stop_reason(word);
                let done = GoogleTurn::with_pieces([thought_piece("hm"), text_piece("done")]);
                let mut talk = talk_to(MODEL, [cut, done, GoogleTurn::text("b")]);
                talk.request.options.stream = stream;
                assert_eq!(talk.ask(Message::user("hi")).finish_reason, expected, "{word}");
                talk.ask(Message::user("continue"));
                talk.ask(Message::user("again"));
            }
        }
    }
}

#[test]
fn malformed_call_is_a_temporary_error() {
    for word in ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"] {
        let broken = GoogleTurn::with_pieces([])
            .with_stop_reason(word)
            .with_explanation("print(look(at='a')");
        let mut talk = talk_to(MODEL, [broken, GoogleTurn::text("a")]);
        talk.request.messages.push(Message::user("look"));
        let error = talk.send().unwrap_err();
        assert_eq!(error.retry, Retry::Temporary);
        assert!(error.message.contains(word) && error.message.contains("print(look"), "{error}");
        assert!(talk.send().is_ok());
    }
}

#[test]
fn blocked_prompt_is_shown_with_the_vendors_reason() {
    for (word, expected) in [
        ("SAFETY", FinishReason::Safety),
        ("PROHIBITED_CONTENT", FinishReason::Safety),
        ("OTHER", FinishReason::Refused),
    ] {
        for stream in [None, Some(false)] {
            let mut talk =
                talk_to(MODEL, [GoogleTurn::blocked_prompt(word).with_explanation("no")]);
            talk.request.options.stream = stream;
            talk.request.messages.push(Message::user("hi"));
            let finished = talk.host.complete(&talk.request);
            let completion = finished.result.unwrap();
            assert_eq!((completion.finish_reason, completion.parts.len()), (expected, 0), "{word}");
            let notice = Delta::notice(format!("the server blocked the prompt: `{word}`: no"));
            assert!(finished.deltas.contains(&notice), "{:?}", finished.deltas);
        }
    }
}

#[test]
fn calls_stopped_by_a_safety_filter_are_dropped() {
    let turn = GoogleTurn::with_pieces([text_piece("I look."), call_piece(json!({}))])
        .with_stop_reason("SAFETY");
    let mut talk = talk_to("gemini-2.5-flash-lite", [turn]);
    let completion = talk.ask(Message::user("look"));
    assert_eq!(completion.finish_reason, FinishReason::Safety);
    assert_eq!(completion.parts, [Part::text("I look.")]);
}

#[test]
fn unknown_model_error_hints_at_the_model_list() {
    let mut talk = talk_to("gemini-moon", []);
    talk.request.messages.push(Message::user("hi"));
    let error = talk.send().unwrap_err();
    assert!(error.message.contains("models/gemini-moon is not found"), "{error}");
    assert_eq!(error.hint.as_deref(), Some("`jaato model list` lists the models"));
}

#[test]
fn missing_tool_result_is_refused_by_the_vendor() {
    let mut talk = talk_to(MODEL, example_turns());
    let first = talk.ask(Message::user("look"));
    let only = sample_tool_results(&first).remove(0);
    talk.request.messages.push(Message::tool([only]));
    let error = talk.send().unwrap_err();
    assert!(error.message.contains("number of function response parts"), "{error}");
    assert_eq!(error.retry, Retry::Permanent);
}

#[test]
fn effort_for_a_model_without_thinking_is_refused_before_sending() {
    let mut talk = talk_to("gemini-2.0-flash", [GoogleTurn::text("a")]);
    talk.request.options.effort = Some(Effort::High);
    talk.request.messages.push(Message::user("hi"));
    assert_eq!(talk.send().unwrap_err().kind, ErrorKind::Configuration);
    assert!(talk.host.http_requests().is_empty());
}
