//! Tests with misbehaving servers, on a fake host with a simulated clock.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::time::Duration;

use jaato_plugin_sdk::types::{Completion, CompletionRequest, Message, Part, Retry};
use jaato_plugin_sdk::{Error, ErrorKind};
use jaato_plugin_testkit::{FakeHost, FakeHttpAnswer, FakeStream};
use jaato_vendors::ollama::{FakeOllama, OllamaTurn};

use crate::vendor::talk_to;

const HELLO: &str = "{\"message\":{\"content\":\"hello\"},\"done\":false}\n";
const END: &str = "{\"message\":{\"content\":\"\"},\"done\":true,\"done_reason\":\"stop\"}\n";

fn host_with_server(answer: impl Fn() -> FakeHttpAnswer + Send + Sync + 'static) -> FakeHost {
    let server = FakeOllama::new([]);
    FakeHost::new(provider_ollama::__jaato::MODULE).with_http(move |request| {
        match request.head.url.ends_with("/api/chat") {
            true => Ok(answer()),
            false => server.answer_plugin(request),
        }
    })
}

fn completion_request() -> CompletionRequest {
    CompletionRequest::new("qwen3:8b", vec![Message::user("hi")])
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
    let hello = vec![Part::text("hello")];
    assert_eq!((result.unwrap().parts, took), (hello, Duration::from_millis(100)));
}

#[test]
fn an_error_in_mid_stream_has_its_kind_and_its_retry_class() {
    let failing = |lines: usize, text: &str| {
        let turn = OllamaTurn::text("half of it").cut_after(lines).with_stream_error(text);
        let mut talk = talk_to("qwen3:8b", [turn]);
        talk.request.messages = vec![Message::user("hi")];
        let error = talk.send().unwrap_err();
        (error.kind, error.retry, error.message)
    };
    for lines in [0, 1, 2] {
        let (kind, retry, text) =
            failing(lines, "an error was encountered while running the model");
        assert_eq!((kind, retry), (ErrorKind::Provider, Retry::Temporary));
        assert!(text.ends_with(": an error was encountered while running the model"), "{text}");
        let (kind, retry, _) = failing(lines, "CUDA error: out of memory");
        assert_eq!((kind, retry), (ErrorKind::Provider, Retry::Permanent));
    }
    let (kind, _, _) = failing(1, "prompt too long; exceeded max context length by 3 tokens");
    assert_eq!(kind, ErrorKind::ContextOverflow);
}

#[test]
fn invalid_line_in_a_stream_is_a_temporary_error() {
    let (result, _) = stream_pieces(&[HELLO, "nonsense\n", END], true);
    let error = result.unwrap_err();
    assert_eq!(error.retry, Retry::Temporary);
    assert!(error.message.contains("not valid JSON"), "{error}");
}
