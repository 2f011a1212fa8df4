//! Tests the plugin on a fake host: its requests and its errors.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use jaato_plugin_sdk::serde_json::{Value, json};
use jaato_plugin_sdk::types::{CompletionRequest, Delta, Message, Part, Retry};
use jaato_plugin_sdk::{Error, ErrorKind};
use jaato_plugin_testkit::{FakeHost, FakeHttpAnswer, FakeStream};
use jaato_vendors::ollama::{FakeOllama, OllamaTurn};

use crate::vendor::{talk_to, talk_with};

jaato_plugin_testkit::conformance!(provider_ollama: provider; |suite| suite.with_host(with_server));

/// Adds a server that answers any number of requests.
fn with_server(host: FakeHost) -> FakeHost {
    let hello = "{\"message\":{\"content\":\"hello\"},\"done\":false}\n{\"done\":true,\"done_reason\":\"stop\"}\n";
    let server = FakeOllama::new([]);
    host.with_http(move |request| match request.head.url.ends_with("/api/chat") {
        true => Ok(FakeHttpAnswer::status(200).body(hello)),
        false => server.answer_plugin(request),
    })
}

fn completion_request() -> CompletionRequest {
    CompletionRequest::new("qwen3:8b", vec![Message::user("hi")])
}

/// Returns a host whose server answers chats with `answer`, and other requests as a real server
/// does.
fn host_with_server(answer: impl Fn() -> FakeHttpAnswer + Send + Sync + 'static) -> FakeHost {
    let server = FakeOllama::new([]);
    FakeHost::new(provider_ollama::__jaato::MODULE).with_http(move |request| {
        match request.head.url.ends_with("/api/chat") {
            true => Ok(answer()),
            false => server.answer_plugin(request),
        }
    })
}

#[track_caller]
fn error_for_answer(status: u16, body: &'static str) -> Error {
    let host = host_with_server(move || {
        FakeHttpAnswer::status(status).header("retry-after", "3").body(body)
    });
    host.complete(&completion_request()).result.unwrap_err()
}

#[test]
fn model_facts_are_requested_only_once() {
    let mut talk = talk_to("qwen3:8b", ["a", "b"].map(OllamaTurn::text));
    talk.ask(Message::user("hi"));
    talk.ask(Message::user("ho"));
    let sent = talk.host.http_requests();
    let urls: Vec<_> =
        sent.iter().map(|it| (it.head.method.as_str(), it.head.url.as_str())).collect();
    assert_eq!(
        urls,
        [
            ("POST", "http://127.0.0.1:11434/api/show"),
            ("GET", "http://127.0.0.1:11434/api/ps"),
            ("POST", "http://127.0.0.1:11434/api/chat"),
            ("POST", "http://127.0.0.1:11434/api/chat"),
        ]
    );
    assert!(sent.iter().all(|sent| sent.head.credential.is_none()));
}

#[test]
fn api_key_is_sent_only_to_a_base_url() {
    let with = |config: Value| {
        let server = FakeOllama::new([OllamaTurn::text("hello")]).with_api_key("secret");
        talk_with("qwen3:8b", server, config)
    };
    let mut talk = with(json!({ "base_url": "https://ollama.com" }));
    talk.ask(Message::user("hi"));
    let sent = talk.host.http_requests();
    assert!(sent.iter().all(|it| it.head.credential.as_deref() == Some("OLLAMA_API_KEY")));
    assert_eq!(sent.last().unwrap().head.url, "https://ollama.com/api/chat");
    let talk = with(json!({ "host": "ollama.com" }));
    let error = talk.send().unwrap_err();
    assert!(error.message.contains("answered 401 (unauthorized)"), "{error}");
    assert!(error.hint.unwrap().contains("`base_url = \"https://ollama.com\"`"));
    assert!(talk.host.http_requests().iter().all(|sent| sent.head.credential.is_none()));
}

#[test]
fn server_that_does_not_run_hints_at_ollama_serve() {
    let refusing = |config: Value| {
        FakeHost::new(provider_ollama::__jaato::MODULE).with_config(config).with_http(|request| {
            let url = &request.head.url;
            let text = format!("cannot connect to `{url}`: connection refused");
            let error = Error::new(ErrorKind::Unavailable, text).temporary();
            Err(error.with_hint("check that the server runs"))
        })
    };
    let told = |config: Value| refusing(config).complete(&completion_request()).result.unwrap_err();
    let error = told(json!({}));
    assert_eq!((error.kind, error.retry), (ErrorKind::Provider, Retry::Permanent));
    let hint = "start Ollama with `ollama serve`; if it runs elsewhere, set `OLLAMA_HOST`";
    assert_eq!(error.hint.as_deref(), Some(hint));
    let error = told(json!({ "host": "gpu-box" }));
    assert_eq!((error.kind, error.retry), (ErrorKind::Provider, Retry::Temporary));
    assert!(error.hint.unwrap().contains("accepts remote connections"));
    // Lists omit servers that the user has not set up.
    let list = |config: Value| refusing(config).instance().unwrap().models().unwrap_err().kind;
    assert_eq!(list(json!({})), ErrorKind::NotFound);
    assert_eq!(list(json!({ "host": "localhost" })), ErrorKind::Provider);
    let error = told(json!({ "host": "a b" }));
    assert_eq!(error.kind, ErrorKind::Configuration);
}

#[test]
fn missing_model_error_hints_at_the_pull_command() {
    let mut talk = talk_to("moon:1b", [OllamaTurn::text("hello")]);
    talk.request.messages = vec![Message::user("hi")];
    let error = talk.send().unwrap_err();
    assert!(error.message.ends_with("(not found): model 'moon:1b' not found"), "{error}");
    assert_eq!(error.hint.as_deref(), Some("download it with `jaato model pull ollama/moon:1b`"));
    // Follow the hint.
    talk.host.instance().unwrap().pull_model("moon:1b").result.unwrap();
    assert_eq!(talk.send().unwrap().parts, [Part::text("hello")]);
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn server_errors_have_their_kind_and_a_hint() {
    use ErrorKind::{ContextOverflow, Provider};
    for (status, body, kind, retry, hint) in [
        (
            503,
            r#"{"error":"server busy, please try again.  maximum pending requests exceeded"}"#,
            Provider,
            Retry::Temporary,
            None,
        ),
        (
            500,
            r#"{"error":"llama runner process has terminated"}"#,
            Provider,
            Retry::Temporary,
            None,
        ),
        (
            500,
            r#"{"error":"model requires more system memory (44.0 GiB) than is available (7.6 GiB)"}"#,
            Provider,
            Retry::Permanent,
            Some("use a smaller model"),
        ),
        (
            400,
            r#"{"error":"the input length exceeds the context length"}"#,
            ContextOverflow,
            Retry::Permanent,
            None,
        ),
        (
            400,
            r#"{"error":"prompt too long; exceeded max context length by 17 tokens"}"#,
            ContextOverflow,
            Retry::Permanent,
            None,
        ),
        (
            400,
            r#"{"error":"registry.ollama.ai/library/x does not support tools"}"#,
            Provider,
            Retry::Permanent,
            Some("`--tools none`"),
        ),
        (
            400,
            r#"{"error":"\"x\" does not support thinking"}"#,
            Provider,
            Retry::Permanent,
            Some("`effort`"),
        ),
        (
            400,
            r#"{"error":"\"x\" does not support chat"}"#,
            Provider,
            Retry::Permanent,
            Some("use a chat model"),
        ),
        (
            401,
            r#"{"error":"unauthorized","signin_url":"https://ollama.com/connect"}"#,
            Provider,
            Retry::Permanent,
            Some("`ollama signin`"),
        ),
        (404, "404 page not found", Provider, Retry::Permanent, Some("names an Ollama server")),
        (404, "<html>", Provider, Retry::Permanent, Some("names an Ollama server")),
        (404, "", Provider, Retry::Permanent, Some("names an Ollama server")),
        (429, "", Provider, Retry::Temporary, None),
        (529, "busy", Provider, Retry::Temporary, None),
    ] {
        let error = error_for_answer(status, body);
        assert_eq!((error.kind, error.retry), (kind, retry), "{body}: {error}");
        let says = error.hint.as_deref().unwrap_or_default();
        assert!(says.contains(hint.unwrap_or_default()), "{body}: {says}");
        assert_eq!(error.hint.is_some(), hint.is_some(), "{body}: {error}");
    }
    assert_eq!(error_for_answer(503, "").retry_after_ms, Some(3_000));
}

#[test]
fn deltas_are_sent_immediately_and_partial_lines_count_as_alive() {
    let stream = FakeStream::open();
    let feed = stream.clone();
    let host = host_with_server(move || FakeHttpAnswer::status(200).stream(stream.clone()));
    let mut call = host.instance().unwrap().start_complete(&completion_request()).unwrap();
    feed.push("{\"message\":{\"content\":");
    assert!(matches!(call.next_delta(), Ok(Some(Delta::Alive))));
    feed.push("\"hel\"},\"done\":false}\n");
    assert!(matches!(call.next_delta(), Ok(Some(delta)) if delta == Delta::text("hel")));
    // The connection stays open, because the last line is enough.
    feed.push("{\"message\":{\"content\":\"lo\"},\"done\":false}\n{\"done\":true}\n");
    assert_eq!(call.wait().result.unwrap().parts, [Part::text("hello")]);
}

#[test]
fn broken_stream_is_an_error_unless_the_answer_was_complete() {
    let broken = |text: &'static str| {
        host_with_server(move || {
            let stream = FakeStream::open();
            stream.push(text);
            stream.fail(Error::new(ErrorKind::Unavailable, "the exchange failed").temporary());
            FakeHttpAnswer::status(200).stream(stream)
        })
    };
    let error = broken("{\"message\":{\"content\":\"a\"}}\n")
        .complete(&completion_request())
        .result
        .unwrap_err();
    assert_eq!((error.kind, error.retry), (ErrorKind::Provider, Retry::Temporary));
    let all = "{\"message\":{\"content\":\"a\"}}\n{\"done\":true}\n";
    assert!(broken(all).complete(&completion_request()).result.is_ok());
}

#[test]
fn older_server_without_show_and_ps_still_answers() {
    let host = FakeHost::new(provider_ollama::__jaato::MODULE).with_http(|request| {
        Ok(match request.head.url.ends_with("/api/chat") {
            true => FakeHttpAnswer::status(200)
                .body("{\"message\":{\"content\":\"a\"},\"done\":true}\n"),
            false => FakeHttpAnswer::status(404).body("404 page not found"),
        })
    });
    assert_eq!(host.complete(&completion_request()).result.unwrap().parts, [Part::text("a")]);
}
