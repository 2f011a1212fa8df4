//! Tests with misbehaving servers, on a fake host with a simulated clock.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::time::Duration;

use jaato_plugin_sdk::Error;
use jaato_plugin_sdk::serde_json::json;
use jaato_plugin_sdk::types::{Completion, CompletionRequest, Message, Part, Retry};
use jaato_plugin_testkit::{FakeHost, FakeHttpAnswer, FakeStream};

const HELLO: &str = "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"hello\"}}\n\n";
const END: &str = "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n";
const STOP: &str = "data: {\"type\":\"message_stop\"}\n\n";

fn host_with_server(answer: impl Fn() -> FakeHttpAnswer + Send + Sync + 'static) -> FakeHost {
    FakeHost::new(provider_anthropic::__jaato::MODULE)
        .with_config(json!({ "base_url": "http://localhost:1" }))
        .with_http(move |_| Ok(answer()))
}

fn completion_request() -> CompletionRequest {
    CompletionRequest::new("claude-opus-5-5", vec![Message::user("hi")])
}

/// Streams these pieces, then ends the connection or leaves it open.
#[track_caller]
fn stream_pieces(pieces: &[&'static str], ends: bool) -> (Result<Completion, Error>, Duration) {
    let pieces = pieces.to_vec();
    let host = host_with_server(move || {
        let stream = FakeStream::open();
        pieces.iter().for_each(|piece| stream.push(*piece));
        if ends {
            stream.finish();
        }
        FakeHttpAnswer::status(200).stream(stream)
    });
    (host.complete(&completion_request()).result, host.elapsed())
}

#[test]
fn complete_answer_ends_soon_even_if_the_connection_stays_open() {
    let (result, took) = stream_pieces(&[HELLO, END], false);
    assert_eq!((result.unwrap().parts, took), (vec![Part::text("hello")], Duration::from_secs(2)));
    let (result, took) = stream_pieces(&[HELLO, END, STOP], false);
    assert_eq!((result.is_ok(), took), (true, Duration::from_millis(100)));
}

#[test]
fn unstreamed_answer_above_the_size_limit_is_an_error() {
    let body = format!("{{\"content\":[\"{}\"]}}", "x".repeat(9 << 20));
    let host = host_with_server(move || FakeHttpAnswer::status(200).body(body.clone()));
    let error = host.complete(&completion_request()).result.unwrap_err();
    assert!(error.message.contains("more than"), "{error}");
}

#[test]
fn x_should_retry_header_decides_the_retry_class() {
    let of = |status: u16, word: &'static str| {
        let host =
            host_with_server(move || FakeHttpAnswer::status(status).header("x-should-retry", word));
        host.complete(&completion_request()).result.unwrap_err().retry
    };
    assert_eq!((of(500, "false"), of(400, "true")), (Retry::Permanent, Retry::Temporary));
    assert_eq!((of(500, "moon"), of(400, "moon")), (Retry::Temporary, Retry::Permanent));
}
