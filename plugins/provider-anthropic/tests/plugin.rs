//! Tests the plugin on a fake host: its requests and its handling of each answer.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use jaato_plugin_sdk::serde_json::{self, Value, json};
use jaato_plugin_sdk::types::service::{BLOB_GET, BlobGet};
use jaato_plugin_sdk::types::{CompletionRequest, DataPart, Message, Part, Retry, Role};
use jaato_plugin_sdk::{Error, ErrorKind};
use jaato_plugin_testkit::{
    FakeHost, FakeHttpAnswer, FakeHttpRequest, FakeServiceReply, FakeStream,
};

const ANSWER: &str = "event: content_block_delta\n\
    data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"hello\"}}\n\n\
    event: message_delta\n\
    data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n\
    event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";

jaato_plugin_testkit::conformance!(provider_anthropic: provider; |suite| suite.with_host(|host| host.with_http(answer_request)));

/// A server with one model, which says hello.
fn answer_request(request: &FakeHttpRequest) -> Result<FakeHttpAnswer, Error> {
    let answer = FakeHttpAnswer::status(200);
    Ok(match request.head.url.as_str() {
        "https://api.anthropic.com/v1/models?limit=1000" => answer.body(r#"{"data":[{"id":"m"}]}"#),
        _ => answer.header("content-type", "text/event-stream").body(ANSWER),
    })
}

fn host_with_server(answer: impl Fn() -> FakeHttpAnswer + Send + Sync + 'static) -> FakeHost {
    FakeHost::new(provider_anthropic::__jaato::MODULE)
        .with_config(json!({ "base_url": "http://localhost:1/v1/" }))
        .with_http(move |_| Ok(answer()))
}

fn completion_request() -> CompletionRequest {
    CompletionRequest::new("claude-opus-5-5", vec![Message::user("hi")])
}

/// Answers with this status and body, and returns the error.
#[track_caller]
fn error_for_answer(status: u16, body: &'static str) -> Error {
    let host = host_with_server(move || {
        FakeHttpAnswer::status(status).header("retry-after", "3").body(body)
    });
    host.complete(&completion_request()).result.unwrap_err()
}

/// Returns the error for an answer in the vendor's error format.
#[track_caller]
fn vendors_error(status: u16, kind: &str, message: &str) -> Error {
    let body = json!({ "type": "error", "error": { "type": kind, "message": message } });
    let host = host_with_server(move || {
        FakeHttpAnswer::status(status).header("retry-after", "3").body(body.to_string())
    });
    host.complete(&completion_request()).result.unwrap_err()
}

#[test]
fn the_request_has_the_headers_of_the_api_and_names_the_credential() {
    let host = host_with_server(|| FakeHttpAnswer::status(200).body(ANSWER));
    assert_eq!(host.complete(&completion_request()).result.unwrap().parts, [Part::text("hello")]);
    let [sent] = host.http_requests().try_into().unwrap();
    assert_eq!(sent.head.method, "POST");
    assert_eq!(sent.head.url, "http://localhost:1/v1/messages");
    assert_eq!(sent.head.credential.as_deref(), Some("ANTHROPIC_API_KEY"));
    let headers: Vec<_> =
        sent.head.headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    assert_eq!(
        headers,
        [
            "content-type: application/json",
            "accept: text/event-stream, application/json",
            "anthropic-version: 2023-06-01",
            "anthropic-beta: thinking-binding-controls-2026-08-01",
        ]
    );
    let body: Value = serde_json::from_slice(&sent.body).unwrap();
    assert_eq!((&body["model"], &body["stream"]), (&json!("claude-opus-5-5"), &json!(true)));
}

#[test]
fn answer_without_a_message_is_an_error_with_a_hint() {
    for body in
        ["<html>hello</html>", r#"{"hello":1}"#, r#"{"choices":[]}"#, "hello there\n\n", "[1]"]
    {
        let host = host_with_server(move || {
            FakeHttpAnswer::status(200).header("content-type", "text/html").body(body)
        });
        let error = host.complete(&completion_request()).result.unwrap_err();
        let text = "`http://localhost:1/v1/messages` did not answer with a completion";
        assert!(error.message.starts_with(text), "{body}: {error}");
        assert_eq!((error.kind, error.retry), (ErrorKind::Provider, Retry::Permanent));
        assert!(error.hint.unwrap().starts_with("check the base url"));
    }
    let error = error_for_answer(200, "{\"type\": \"mess");
    assert!(error.message.contains("is not valid JSON"), "{error}");
    assert_eq!(error.retry, Retry::Temporary);
    assert_eq!(error_for_answer(200, "").retry, Retry::Temporary);
}

#[test]
fn http_errors_are_classified_by_status_and_message() {
    for (status, kind, message, expected, retry) in [
        (429, "rate_limit_error", "slow down", ErrorKind::Provider, Retry::Temporary),
        (529, "overloaded_error", "Overloaded", ErrorKind::Provider, Retry::Temporary),
        (500, "api_error", "Internal server error", ErrorKind::Provider, Retry::Temporary),
        (504, "timeout_error", "timed out", ErrorKind::Provider, Retry::Temporary),
        (400, "invalid_request_error", "bad", ErrorKind::Provider, Retry::Permanent),
        (402, "billing_error", "pay", ErrorKind::Provider, Retry::Permanent),
        (403, "permission_error", "no", ErrorKind::Provider, Retry::Permanent),
        (413, "request_too_large", "big", ErrorKind::ContextOverflow, Retry::Permanent),
        (
            400,
            "invalid_request_error",
            "prompt is too long: 210000 tokens > 200000 maximum",
            ErrorKind::ContextOverflow,
            Retry::Permanent,
        ),
        (
            400,
            "invalid_request_error",
            "input length and `max_tokens` exceed context limit: 190000 + 64000 > 200000",
            ErrorKind::ContextOverflow,
            Retry::Permanent,
        ),
    ] {
        let error = vendors_error(status, kind, message);
        assert_eq!((error.kind, error.retry), (expected, retry), "{status} {message}");
        let wait = (retry == Retry::Temporary).then_some(3_000);
        assert_eq!(error.retry_after_ms, wait, "{status} {message}");
        assert!(error.message.contains(message), "{error}");
    }
}

#[test]
fn error_in_an_unstreamed_answer_is_reported() {
    let error = error_for_answer(
        200,
        r#"{"type":"error","error":{"type":"overloaded_error","message":"busy"}}"#,
    );
    assert_eq!(error.retry, Retry::Temporary);
    assert!(error.message.ends_with("reports an error: busy"), "{error}");
}

#[test]
fn models_are_listed_page_by_page() {
    let host = FakeHost::new(provider_anthropic::__jaato::MODULE)
        .with_config(json!({ "base_url": "http://localhost:1" }))
        .with_http(|request| {
            let page = match request.head.url.as_str() {
                "http://localhost:1/v1/models?limit=1000" => {
                    json!({ "data": [{ "id": "a b" }], "has_more": true, "last_id": "a b" })
                }
                "http://localhost:1/v1/models?limit=1000&after_id=a%20b" => {
                    json!({ "data": [{ "id": "c" }, { "id": "a b" }], "has_more": true, "last_id": "c" })
                }
                // The same page again, without end.
                _ => json!({ "data": [{ "id": "c" }], "has_more": true, "last_id": "c" }),
            };
            Ok(FakeHttpAnswer::status(200).body(page.to_string()))
        });
    let models = host.instance().unwrap().models().unwrap();
    assert_eq!(models.iter().map(|info| info.name.as_str()).collect::<Vec<_>>(), ["a b", "c"]);
    assert_eq!(host.http_requests().len(), 3);
}

#[test]
fn model_list_failure_reports_its_cause() {
    let down = FakeHost::new(provider_anthropic::__jaato::MODULE)
        .with_http(|_| Err(Error::new(ErrorKind::Unavailable, "connection refused").temporary()));
    assert_eq!(down.instance().unwrap().models().unwrap_err().kind, ErrorKind::Provider);
    let host = host_with_server(|| FakeHttpAnswer::status(500).body("no memory"));
    let error = host.instance().unwrap().models().unwrap_err();
    let text = "`http://localhost:1/v1/models?…` answered 500 (internal server error): no memory";
    assert_eq!(error.message, text);
}

#[test]
fn images_are_fetched_and_unavailable_ones_become_a_note() {
    let host = host_with_server(|| FakeHttpAnswer::status(200).body(ANSWER)).with_service(
        BLOB_GET,
        |asked| {
            let BlobGet { blob, .. } = asked.read()?;
            let bytes = match blob.as_str() {
                "small" => 3,
                "largest" => 3_932_160,
                "large" => 3_932_161,
                _ => return Err(Error::new(ErrorKind::NotFound, "no such blob")),
            };
            let head = json!({ "mime_type": "image/png", "bytes": bytes });
            let pieces = vec![0; bytes].chunks(1 << 16).map(<[u8]>::to_vec).collect::<Vec<_>>();
            Ok(FakeServiceReply::StreamWith(head, FakeStream::from_pieces(pieces)))
        },
    );
    let image = |id: &str| Part::Data(DataPart::blob("image/png", id));
    let parts = ["small", "largest", "large", "gone", "small"].map(image).to_vec();
    let message = Message { role: Role::User, parts, ..Message::default() };
    let request = CompletionRequest::new("claude-opus-5-5", vec![message]);
    assert!(host.complete(&request).result.is_ok());
    let body: Value = serde_json::from_slice(&host.http_requests()[0].body).unwrap();
    let blocks = body["messages"][0]["content"].as_array().unwrap();
    let kinds: Vec<_> = blocks.iter().map(|block| block["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["image", "image", "text", "text", "image"]);
    assert_eq!(blocks[0]["source"]["data"], "AAAA");
    // The plugin requested each blob once.
    assert_eq!(
        host.service_requests().iter().filter(|asked| asked.operation == BLOB_GET).count(),
        4
    );
}
