//! Tests streams and refusals that end badly, on a fake host with a simulated clock.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::sync::Arc;
use std::time::Duration;

use jaato_plugin_sdk::serde_json::{self, Value, json};
use jaato_plugin_sdk::types::{
    Completion, CompletionRequest, Delta, FinishReason, Message, Part, Retry, ToolCall, ToolResult,
};
use jaato_plugin_sdk::{Error, ErrorKind};
use jaato_plugin_testkit::{FakeHost, FakeHttpAnswer, FakeHttpRequest, FakeStream};
use parking_lot::Mutex;

const HELLO: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"hello\"}}]}\n\n";
const STOP: &str = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
const DONE: &str = "data: [DONE]\n\n";

fn host_with_server(
    answer: impl Fn(&FakeHttpRequest) -> FakeHttpAnswer + Send + Sync + 'static,
) -> FakeHost {
    FakeHost::new(provider_openai::__jaato::MODULE)
        .with_config(json!({ "base_url": "http://localhost:1/v1" }))
        .with_http(move |request| Ok(answer(request)))
}

fn completion_request(messages: Vec<Message>) -> CompletionRequest {
    CompletionRequest::new("m", messages)
}

/// Streams these pieces, then leaves the connection open. Returns the result, the deltas and the
/// time taken.
#[track_caller]
fn read_open_stream(pieces: &[&'static str]) -> (Result<Completion, Error>, Vec<Delta>, Duration) {
    let pieces = pieces.to_vec();
    let host = host_with_server(move |_| {
        let stream = FakeStream::open();
        pieces.iter().for_each(|piece| stream.push(*piece));
        FakeHttpAnswer::status(200).stream(stream)
    });
    let finished = host.complete(&completion_request(vec![Message::user("hi")]));
    (finished.result, finished.deltas, host.elapsed())
}

/// Streams these pieces and ends.
#[track_caller]
fn read_stream_end(pieces: &[&'static str]) -> Result<Completion, Error> {
    let pieces = pieces.to_vec();
    let host = host_with_server(move |_| {
        FakeHttpAnswer::status(200).stream(FakeStream::from_pieces(pieces.clone()))
    });
    host.complete(&completion_request(vec![Message::user("hi")])).result
}

/// Answers with this status and body, and returns the error.
#[track_caller]
fn error_for_answer(status: u16, body: &'static [u8]) -> Error {
    let host = host_with_server(move |_| FakeHttpAnswer::status(status).body(body));
    host.complete(&completion_request(vec![Message::user("hi")])).result.unwrap_err()
}

#[test]
fn complete_answer_ends_soon_even_if_the_stream_stays_open() {
    let (result, _, took) = read_open_stream(&[HELLO, STOP]);
    assert_eq!(result.unwrap().parts, [Part::text("hello")]);
    assert_eq!(took, Duration::from_secs(2));
    // After the end mark, the plugin only waits briefly for the connection.
    let (result, _, took) = read_open_stream(&[HELLO, STOP, DONE]);
    assert_eq!(result.unwrap().finish_reason, FinishReason::Stop);
    assert_eq!(took, Duration::from_millis(100));
}

#[test]
fn usage_after_the_finish_reason_is_awaited() {
    let usage = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7}}\n\n";
    let (result, _, _) = read_open_stream(&[HELLO, STOP, usage]);
    assert_eq!(result.unwrap().usage.prompt_tokens, 7);
}

#[test]
fn body_is_read_to_its_end_after_the_done_mark() {
    let stream = FakeStream::open();
    let answered = stream.clone();
    let host = host_with_server(move |_| FakeHttpAnswer::status(200).stream(answered.clone()));
    let messages = vec![Message::user("hi")];
    let call = host.instance().unwrap().start_complete(&completion_request(messages)).unwrap();
    stream.push([HELLO, STOP, DONE].concat());
    stream.finish();
    assert!(call.wait().result.is_ok());
    assert_eq!(host.elapsed(), Duration::ZERO, "the end of the body is noticed at once");
    assert_eq!(host.live().streams, 0);
}

#[test]
fn pings_and_blank_lines_produce_only_alive_deltas() {
    let (_, deltas, _) = read_open_stream(&["\n", ": ping\n\n", HELLO, ": ping\n\n", STOP, DONE]);
    let text = Delta::text("hello");
    assert_eq!(deltas.iter().filter(|delta| **delta == text).count(), 1);
    assert_eq!(deltas.first(), Some(&Delta::Alive));
    assert!(deltas.iter().all(|delta| *delta == text || *delta == Delta::Alive), "{deltas:?}");
}

#[test]
fn stream_cut_within_its_first_event_is_a_temporary_error() {
    for pieces in [&["data: {\"choi"][..], &["da"], &[": ping\n\n"], &["event: x\n"]] {
        let error = read_stream_end(pieces).unwrap_err();
        assert_eq!((error.kind, error.retry), (ErrorKind::Provider, Retry::Temporary), "{error}");
        assert_eq!(error.hint, None, "{pieces:?}");
    }
    let error = read_stream_end(&["hello there"]).unwrap_err();
    assert_eq!(error.retry, Retry::Permanent, "{error}");
}

#[test]
fn last_event_is_read_without_its_blank_line() {
    let last = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}";
    assert_eq!(read_stream_end(&[HELLO, last]).unwrap().parts, [Part::text("hello")]);
    assert!(read_stream_end(&[HELLO, &last[..last.len() - 2]]).is_err());
}

#[test]
fn unknown_finish_reason_keeps_its_text() {
    let moon = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"moon\"}]}\n\n";
    let completion = read_stream_end(&[HELLO, moon]).unwrap();
    assert_eq!(completion.finish_reason, FinishReason::Unknown);
    assert_eq!(completion.finish_word.as_deref(), Some("moon"));
}

#[test]
fn error_response_without_a_body_is_reported_by_its_status() {
    let host = host_with_server(|_| FakeHttpAnswer::status(503).stream(FakeStream::open()));
    let error = host.complete(&completion_request(vec![Message::user("hi")])).result.unwrap_err();
    assert_eq!(
        error.message,
        "`http://localhost:1/v1/chat/completions` answered 503 (service unavailable)"
    );
    assert_eq!((error.retry, host.elapsed()), (Retry::Temporary, Duration::from_secs(2)));
}

#[test]
fn unrequested_compressed_answer_is_reported() {
    let error = error_for_answer(200, b"\x1f\x8b\x08\x00\x00");
    assert!(error.message.ends_with("sent a compressed answer (gzip) without being asked to"));
    assert!(error.hint.unwrap().contains("proxy or gateway"));
    assert_eq!(error.retry, Retry::Permanent);
}

#[test]
fn ollama_api_answer_suggests_the_v1_base_url() {
    let lines = b"{\"model\":\"m\",\"message\":{\"content\":\"a\"},\"done\":false}\n\
                  {\"model\":\"m\",\"message\":{\"content\":\"\"},\"done\":true}\n";
    let error = error_for_answer(200, lines);
    assert!(error.message.ends_with("answered in the format of Ollama's own API"), "{error}");
    assert!(error.hint.unwrap().contains("`http://localhost:11434/v1`"));
    assert_eq!(error.retry, Retry::Permanent);
}

#[test]
fn error_in_a_json_list_is_reported() {
    let error = error_for_answer(200, br#"[{"error":{"code":503,"message":"overloaded"}}]"#);
    assert!(error.message.ends_with("reports an error: overloaded"), "{error}");
    assert_eq!(error.retry, Retry::Temporary);
}

#[test]
fn complete_answer_without_a_finish_reason_is_accepted() {
    for reason in ["null", "\"\""] {
        let choice = format!(r#"{{"message":{{"content":"hi"}},"finish_reason":{reason}}}"#);
        let body = format!(r#"{{"choices":[{choice}]}}"#);
        let host = host_with_server(move |_| FakeHttpAnswer::status(200).body(body.clone()));
        let completion =
            host.complete(&completion_request(vec![Message::user("hi")])).result.unwrap();
        assert_eq!(completion.finish_reason, FinishReason::Stop);
    }
}

#[test]
fn newline_delimited_chunks_end_like_a_stream() {
    let line = |choice: &str| format!("{{\"choices\":[{choice}]}}\n");
    let said = line(r#"{"delta":{"content":"he"}}"#) + &line(r#"{"delta":{"content":"llo"}}"#);
    let whole = said.clone() + &line(r#"{"delta":{},"finish_reason":"stop"}"#);
    let one = line(r#"{"delta":{"content":"he"}}"#);
    for (body, is_whole) in [(whole, true), (said, false), (one, false)] {
        let host = host_with_server(move |_| FakeHttpAnswer::status(200).body(body.clone()));
        let result = host.complete(&completion_request(vec![Message::user("hi")])).result;
        if is_whole {
            assert_eq!(result.unwrap().parts, [Part::text("hello")]);
        } else {
            assert!(result.unwrap_err().message.ends_with("ended early"));
        }
    }
}

/// Returns a conversation with text after a tool's result.
fn request_with_outcome() -> CompletionRequest {
    let call = ToolCall::new("a", "run", json!({}));
    let content = json!({ "n": 1 }).as_object().unwrap().clone();
    let result = ToolResult::new("a", "run", content);
    let mut results = Message::tool([result]);
    results.parts.push(Part::text("The task is done."));
    let answer = Message::model(vec![Part::ToolCall(call)]);
    completion_request(vec![Message::user("go"), answer, results])
}

#[test]
fn server_that_refuses_user_after_tool_gets_outcomes_in_the_last_result() {
    let bodies: Arc<Mutex<Vec<Value>>> = Arc::default();
    let seen = Arc::clone(&bodies);
    let host = host_with_server(move |request| {
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        let last = body["messages"].as_array().unwrap().last().unwrap().clone();
        let is_refused = last["role"] == "user" && last["content"] != "hi";
        seen.lock().push(last);
        if is_refused {
            let refusal = r#"{"object":"error","message":"Unexpected role 'user' after role 'tool'","code":"3230"}"#;
            return FakeHttpAnswer::status(400).body(refusal);
        }
        FakeHttpAnswer::status(200).body([HELLO, STOP, DONE].concat())
    });
    let instance = host.instance().unwrap();
    for _ in 0..2 {
        assert!(instance.complete(&request_with_outcome()).result.is_ok());
    }
    assert!(instance.complete(&completion_request(vec![Message::user("hi")])).result.is_ok());
    let roles: Vec<_> = bodies.lock().iter().map(|it| it["role"].clone()).collect();
    assert_eq!(roles, ["user", "tool", "tool", "user"]);
    let told =
        json!({ "role": "tool", "tool_call_id": "a", "content": "{\"n\":1}\n\nThe task is done." });
    assert_eq!(bodies.lock()[1], told);
}

#[test]
fn empty_reasoning_is_sent_after_a_server_demands_it() {
    let bodies: Arc<Mutex<Vec<Value>>> = Arc::default();
    let seen = Arc::clone(&bodies);
    let host = host_with_server(move |request| {
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        let answer = body["messages"][1].clone();
        let is_refused = answer["reasoning_content"].is_null();
        seen.lock().push(answer["reasoning_content"].clone());
        if is_refused {
            let refusal = "The `reasoning_content` in the thinking mode must be passed back";
            return FakeHttpAnswer::status(400).body(refusal);
        }
        FakeHttpAnswer::status(200).body([HELLO, STOP, DONE].concat())
    });
    let instance = host.instance().unwrap();
    let asked = |parts: Vec<Part>| {
        let messages = vec![Message::user("a"), Message::model(parts), Message::user("b")];
        instance.complete(&completion_request(messages)).result
    };
    assert!(asked(vec![Part::text("so")]).is_ok() && asked(vec![Part::text("so")]).is_ok());
    assert!(asked(vec![Part::thought("hm").with_signature("reasoning_content")]).is_ok());
    assert_eq!(*bodies.lock(), [json!(null), json!(""), json!(""), json!("hm")]);
    // Without an answer to add it to, the refusal is reported.
    let refusal = "reasoning_content is missing";
    assert!(error_for_answer(400, refusal.as_bytes()).message.ends_with(refusal));
}

#[test]
fn role_order_error_is_reported_if_moving_outcomes_does_not_help() {
    let body = r#"{"message":"Conversation roles must alternate"}"#;
    let host = host_with_server(move |_| FakeHttpAnswer::status(400).body(body));
    for (request, times) in
        [(request_with_outcome(), 2), (completion_request(vec![Message::user("hi")]), 3)]
    {
        let error = host.instance().unwrap().complete(&request).result.unwrap_err();
        assert!(error.message.contains("roles must alternate"), "{error}");
        assert_eq!(host.http_requests().len(), times);
    }
}
