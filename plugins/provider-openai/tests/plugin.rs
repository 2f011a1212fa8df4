//! Tests the plugin on a fake host: its requests and its handling of each answer.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use jaato_plugin_sdk::serde_json::{Value, json};
use jaato_plugin_sdk::types::{CompletionRequest, Message, Retry};
use jaato_plugin_sdk::{Error, ErrorKind};
use jaato_plugin_testkit::{FakeHost, FakeHttpAnswer, FakeHttpRequest, FakeStream};

const ANSWER: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"hello\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

/// The conformance suite, on a host whose server supports chat completions.
mod chat {
    jaato_plugin_testkit::conformance!(provider_openai: provider; |suite| {
        suite.with_host(crate::plugin::with_chat)
    });
}

/// The conformance suite, on a host whose server supports Responses.
mod responses {
    jaato_plugin_testkit::conformance!(provider_openai: provider; |suite| {
        suite.with_host(crate::plugin::with_responses)
    });
}

fn with_chat(host: FakeHost) -> FakeHost {
    let config = json!({ "base_url": "http://localhost:1/v1", "api": "chat" });
    host.with_config(config).with_http(answer_request)
}

fn with_responses(host: FakeHost) -> FakeHost {
    host.with_http(answer_request)
}

const RESPONSE: &str = "event: response.output_text.delta\n\
    data: {\"type\":\"response.output_text.delta\",\"output_index\":0,\"delta\":\"hello\"}\n\n\
    event: response.completed\n\
    data: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\",\"output\":[]}}\n\n";

/// A server with one model, which says hello.
fn answer_request(request: &FakeHttpRequest) -> Result<FakeHttpAnswer, Error> {
    let answer = FakeHttpAnswer::status(200);
    let url = request.head.url.as_str();
    Ok(if url.ends_with("/v1/models") {
        answer.body(r#"{"data":[{"id":"m"}]}"#)
    } else if url == "https://api.openai.com/v1/responses" {
        answer.header("content-type", "text/event-stream").body(RESPONSE)
    } else {
        assert!(url.ends_with("/v1/chat/completions"), "{url}");
        answer.header("content-type", "text/event-stream").body(ANSWER)
    })
}

fn host_with_server(answer: impl Fn() -> FakeHttpAnswer + Send + Sync + 'static) -> FakeHost {
    FakeHost::new(provider_openai::__jaato::MODULE)
        .with_config(json!({ "base_url": "http://localhost:1/v1/" }))
        .with_http(move |_| Ok(answer()))
}

fn completion_request() -> CompletionRequest {
    CompletionRequest::new("m", vec![Message::user("hi")])
}

/// Answers with this status and body, and returns the error.
#[track_caller]
fn error_for_answer(status: u16, body: &'static str) -> Error {
    let host = host_with_server(move || {
        FakeHttpAnswer::status(status).header("retry-after", "3").body(body)
    });
    host.complete(&completion_request()).result.unwrap_err()
}

#[test]
fn openai_request_url_extends_the_base_url_and_names_the_credential() {
    let host = host_with_server(|| FakeHttpAnswer::status(200).body(ANSWER));
    assert_eq!(
        host.complete(&completion_request()).result.unwrap().parts,
        [jaato_plugin_sdk::types::Part::text("hello")]
    );
    let [sent] = host.http_requests().try_into().unwrap();
    assert_eq!(sent.head.method, "POST");
    assert_eq!(sent.head.url, "http://localhost:1/v1/chat/completions");
    assert_eq!(sent.head.credential.as_deref(), Some("OPENAI_API_KEY"));
    assert!(!sent.head.headers.iter().any(|(name, _)| name == "authorization"));
    let body: Value = jaato_plugin_sdk::serde_json::from_slice(&sent.body).unwrap();
    assert_eq!(body["model"], "m");
}

#[test]
fn broken_stream_is_an_error_unless_the_model_had_finished() {
    let broken = |text: &'static str| {
        host_with_server(move || {
            let stream = FakeStream::open();
            stream.push(text);
            stream.fail(Error::new(ErrorKind::Unavailable, "the exchange failed").temporary());
            FakeHttpAnswer::status(200).stream(stream)
        })
    };
    let error = broken("data: {\"choices\":[{\"delta\":{\"content\":\"hel\"}}]}\n\n")
        .complete(&completion_request())
        .result
        .unwrap_err();
    assert_eq!((error.kind, error.retry), (ErrorKind::Provider, Retry::Temporary));
    let whole = ANSWER.strip_suffix("data: [DONE]\n\n").unwrap();
    assert!(broken(whole).complete(&completion_request()).result.is_ok());
}

#[test]
fn complete_json_answer_is_accepted_with_any_content_type() {
    let body = r#" {"choices":[{"message":{"content":"hello"},"finish_reason":"stop"}]}"#;
    for body in [body.to_owned(), format!("\u{feff}{body}")] {
        let host = host_with_server(move || {
            FakeHttpAnswer::status(200).header("content-type", "text/plain").body(body.clone())
        });
        let finished = host.complete(&completion_request());
        assert_eq!(finished.result.unwrap().parts, [jaato_plugin_sdk::types::Part::text("hello")]);
        assert_eq!(finished.deltas.len(), 1);
    }
}

#[test]
fn body_that_is_not_a_completion_is_an_error_that_suggests_the_base_url() {
    for body in
        ["<html>hello</html>", "\u{feff}\n <!doctype html>", r#"{"hello":1}"#, "hello there\n\n"]
    {
        let host = host_with_server(move || {
            FakeHttpAnswer::status(200).header("content-type", "text/html").body(body)
        });
        let error = host.complete(&completion_request()).result.unwrap_err();
        let text = "`http://localhost:1/v1/chat/completions` did not answer with a completion";
        assert!(error.message.starts_with(text), "{body}: {error}");
        assert_eq!((error.kind, error.retry), (ErrorKind::Provider, Retry::Permanent));
        assert_eq!(error.hint.as_deref(), Some("check the base url: most end in `/v1`"));
    }
}

#[test]
fn error_object_in_a_200_answer_is_an_error() {
    let error = error_for_answer(200, r#"{"error":{"message":"busy","code":503}}"#);
    assert_eq!(error.retry, Retry::Temporary);
    assert!(error.message.ends_with("reports an error: busy"), "{error}");
}

#[test]
fn empty_answer_is_a_temporary_error() {
    let error = error_for_answer(200, "");
    assert_eq!((error.kind, error.retry), (ErrorKind::Provider, Retry::Temporary));
}

#[test]
fn refused_key_and_missing_key_have_different_hints() {
    let with_key = host_with_server(|| FakeHttpAnswer::status(401).with_credential());
    let error = with_key.complete(&completion_request()).result.unwrap_err();
    assert_eq!(error.hint.as_deref(), Some("check the key in `OPENAI_API_KEY`"));
    assert_eq!(
        error_for_answer(401, "").hint.as_deref(),
        Some("the server requires a key: set `OPENAI_API_KEY`")
    );
}

#[test]
fn unknown_model_and_unknown_path_have_different_hints() {
    let model = error_for_answer(404, r#"{"error":{"message":"model `m` not found"}}"#);
    assert!(model.message.ends_with("answered 404 (not found): model `m` not found"), "{model}");
    assert_eq!(model.hint.as_deref(), Some("`jaato model list` lists the models"));
    let path = error_for_answer(404, "404 page not found");
    assert_eq!(path.hint.as_deref(), Some("check the base url: most end in `/v1`"));
}

#[test]
fn missing_key_is_a_configuration_error_and_lists_no_models() {
    let host = FakeHost::new(provider_openai::__jaato::MODULE)
        .with_http(|_| Err(Error::new(ErrorKind::NotFound, "no key is set").with_hint("set it")));
    let error = host.complete(&completion_request()).result.unwrap_err();
    assert_eq!(error, Error::new(ErrorKind::Configuration, "no key is set").with_hint("set it"));
    // Lists omit providers that the user has not set up. The host recognises them by this kind.
    assert_eq!(host.instance().unwrap().models().unwrap_err().kind, ErrorKind::NotFound);
}

#[test]
fn models_are_listed_or_an_error_is_returned() {
    let listed = host_with_server(|| {
        FakeHttpAnswer::status(200).body(r#"{"data":[{"id":"b"},{"id":"a"}]}"#)
    });
    let names: Vec<_> =
        listed.instance().unwrap().models().unwrap().into_iter().map(|info| info.name).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(listed.http_requests()[0].head.url, "http://localhost:1/v1/models");
    let down = FakeHost::new(provider_openai::__jaato::MODULE)
        .with_http(|_| Err(Error::new(ErrorKind::Unavailable, "connection refused").temporary()));
    assert_eq!(down.instance().unwrap().models().unwrap_err().kind, ErrorKind::Provider);
}

#[test]
fn missing_http_service_is_an_unknown_operation_error() {
    let host = FakeHost::new(provider_openai::__jaato::MODULE);
    assert_eq!(
        host.complete(&completion_request()).result.unwrap_err().kind,
        ErrorKind::UnknownOperation
    );
}
