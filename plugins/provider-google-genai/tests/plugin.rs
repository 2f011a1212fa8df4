//! Tests the plugin on a fake host: its requests and its handling of each answer.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use jaato_plugin_sdk::serde_json::{self, Value, json};
use jaato_plugin_sdk::types::service::{BLOB_GET, BlobGet};
use jaato_plugin_sdk::types::{CompletionRequest, DataPart, Message, Part, Role};
use jaato_plugin_sdk::{Error, ErrorKind};
use jaato_plugin_testkit::{
    FakeHost, FakeHttpAnswer, FakeHttpRequest, FakeServiceReply, FakeStream,
};

pub const ANSWER: &str = "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"hello\"}]},\"index\":0}]}\r\n\r\n\
    data: {\"candidates\":[{\"content\":{},\"finishReason\":\"STOP\",\"index\":0}]}\r\n\r\n";

jaato_plugin_testkit::conformance!(provider_google_genai: provider; |suite| suite.with_host(|host| host.with_http(answer_request)));

/// A server with one model, which says hello.
fn answer_request(request: &FakeHttpRequest) -> Result<FakeHttpAnswer, Error> {
    let answer = FakeHttpAnswer::status(200);
    Ok(match request.head.url.as_str() {
        "https://generativelanguage.googleapis.com/v1beta/models?pageSize=1000" => {
            answer.body(r#"{"models":[{"name":"models/gemini-4-argon"}]}"#)
        }
        _ => answer.header("content-type", "text/event-stream").body(ANSWER),
    })
}

pub fn host_with_server(answer: impl Fn() -> FakeHttpAnswer + Send + Sync + 'static) -> FakeHost {
    FakeHost::new(provider_google_genai::__jaato::MODULE)
        .with_config(json!({ "base_url": "http://localhost:1/v1beta/" }))
        .with_http(move |_| Ok(answer()))
}

pub fn completion_request() -> CompletionRequest {
    CompletionRequest::new("gemini-4-argon", vec![Message::user("hi")])
}

#[test]
fn request_url_extends_the_base_url_and_names_the_credential() {
    let host = host_with_server(|| FakeHttpAnswer::status(200).body(ANSWER));
    assert_eq!(host.complete(&completion_request()).result.unwrap().parts, [Part::text("hello")]);
    let [sent] = host.http_requests().try_into().unwrap();
    assert_eq!(sent.head.method, "POST");
    assert_eq!(
        sent.head.url,
        "http://localhost:1/v1beta/models/gemini-4-argon:streamGenerateContent?alt=sse"
    );
    assert_eq!(sent.head.credential.as_deref(), Some("GOOGLE_API_KEY"));
    let headers: Vec<_> =
        sent.head.headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    assert_eq!(
        headers,
        ["content-type: application/json", "accept: text/event-stream, application/json"]
    );
    let body: Value = serde_json::from_slice(&sent.body).unwrap();
    assert_eq!(body["contents"], json!([{ "role": "user", "parts": [{ "text": "hi" }] }]));
}

#[test]
fn unstreamed_answer_uses_the_generate_content_method() {
    let whole =
        r#"{"candidates":[{"content":{"parts":[{"text":"hello"}]},"finishReason":"STOP"}]}"#;
    let host = host_with_server(move || FakeHttpAnswer::status(200).body(whole));
    let mut request = completion_request();
    request.options.stream = Some(false);
    assert_eq!(host.complete(&request).result.unwrap().parts, [Part::text("hello")]);
    let [sent] = host.http_requests().try_into().unwrap();
    assert!(sent.head.url.ends_with("/gemini-4-argon:generateContent"), "{}", sent.head.url);
}

#[test]
fn models_are_listed_page_by_page() {
    let host = FakeHost::new(provider_google_genai::__jaato::MODULE)
        .with_config(json!({ "base_url": "http://localhost:1" }))
        .with_http(|request| {
            let of = |name: &str| json!({ "name": format!("models/{name}") });
            let page = match request.head.url.as_str() {
                "http://localhost:1/v1beta/models?pageSize=1000" => {
                    json!({ "models": [of("gemini-a")], "nextPageToken": "x y" })
                }
                // A page without models for conversations, followed by another page.
                "http://localhost:1/v1beta/models?pageSize=1000&pageToken=x%20y" => {
                    json!({ "models": [of("gemini-embedding-1")], "nextPageToken": "z" })
                }
                // The same page again, without end.
                _ => json!({ "models": [of("gemini-b"), of("gemini-a")], "nextPageToken": "z" }),
            };
            Ok(FakeHttpAnswer::status(200).body(page.to_string()))
        });
    let models = host.instance().unwrap().models().unwrap();
    let names: Vec<_> = models.iter().map(|info| info.name.as_str()).collect();
    assert_eq!(names, ["gemini-a", "gemini-b"]);
    assert_eq!(host.http_requests().len(), 4);
}

#[test]
fn model_list_stops_after_sixteen_pages() {
    let count = std::sync::atomic::AtomicUsize::new(0);
    let host = FakeHost::new(provider_google_genai::__jaato::MODULE).with_http(move |_| {
        let number = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let page = json!({ "models": [{ "name": format!("models/gemini-{number}") }],
            "nextPageToken": number.to_string() });
        Ok(FakeHttpAnswer::status(200).body(page.to_string()))
    });
    assert_eq!(host.instance().unwrap().models().unwrap().len(), 16);
}

#[test]
fn model_list_failure_reports_its_cause() {
    let down = FakeHost::new(provider_google_genai::__jaato::MODULE)
        .with_http(|_| Err(Error::new(ErrorKind::Unavailable, "connection refused").temporary()));
    assert_eq!(down.instance().unwrap().models().unwrap_err().kind, ErrorKind::Provider);
    let host = host_with_server(|| FakeHttpAnswer::status(500).body("no memory"));
    let error = host.instance().unwrap().models().unwrap_err();
    let text =
        "`http://localhost:1/v1beta/models?…` answered 500 (internal server error): no memory";
    assert_eq!(error.message, text);
}

#[test]
fn images_are_fetched_and_unavailable_ones_become_a_note() {
    const MOST: usize = 14 * 1024 * 1024;
    let host = host_with_server(|| FakeHttpAnswer::status(200).body(ANSWER)).with_service(
        BLOB_GET,
        |asked| {
            let BlobGet { blob, .. } = asked.read()?;
            let bytes = match blob.as_str() {
                "small" => 3,
                "largest" => MOST,
                "large" => MOST + 1,
                _ => return Err(Error::new(ErrorKind::NotFound, "no such blob")),
            };
            let head = json!({ "mime_type": "image/png", "bytes": bytes });
            let pieces = vec![0; bytes].chunks(1 << 20).map(<[u8]>::to_vec).collect::<Vec<_>>();
            Ok(FakeServiceReply::StreamWith(head, FakeStream::from_pieces(pieces)))
        },
    );
    let image = |id: &str| Part::Data(DataPart::blob("image/png", id));
    let parts = ["small", "largest", "large", "gone", "small"].map(image).to_vec();
    let message = Message { role: Role::User, parts, ..Message::default() };
    let request = CompletionRequest::new("gemini-4-argon", vec![message]);
    assert!(host.complete(&request).result.is_ok());
    let body: Value = serde_json::from_slice(&host.http_requests()[0].body).unwrap();
    let parts = body["contents"][0]["parts"].as_array().unwrap();
    let kinds: Vec<_> = parts.iter().map(|part| part.get("inlineData").is_some()).collect();
    assert_eq!(kinds, [true, true, false, false, true]);
    assert_eq!(parts[0]["inlineData"]["data"], "AAAA");
    // The plugin requested each blob once.
    assert_eq!(
        host.service_requests().iter().filter(|asked| asked.operation == BLOB_GET).count(),
        4
    );
}
