//! Tests the pull of a model: the request, the progress and the errors.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use jaato_plugin_sdk::serde_json::{self, Value, json};
use jaato_plugin_sdk::types::{Delta, PullModelAnswer, Retry};
use jaato_plugin_sdk::{Error, ErrorKind};
use jaato_plugin_testkit::{FakeHost, FakeHttpAnswer, FakeStream, FinishedCall};
use jaato_vendors::ollama::{FakeOllama, IN_LIBRARY};
use provider_ollama::pull::{ModelPull, check_model_name};

use crate::vendor::{talk_to, talk_with};

fn run_pull(model: &str) -> FinishedCall<PullModelAnswer> {
    talk_to("m", []).host.instance().unwrap().pull_model(model)
}

#[test]
fn pull_progress_sums_all_files_and_reports_states_once() {
    let finished = run_pull(IN_LIBRARY);
    assert_eq!(finished.result, Ok(PullModelAnswer::default()));
    let progress = |done, total| Delta::progress("fetching moon:1b", done, total);
    assert_eq!(
        finished.deltas,
        [
            Delta::notice("pulling manifest"),
            progress(0, 4_000),
            progress(2_000, 4_000),
            progress(4_000, 4_000),
            progress(4_000, 5_000),
            progress(4_500, 5_000),
            progress(5_000, 5_000),
            Delta::notice("verifying sha256 digest"),
            Delta::notice("writing manifest"),
        ]
    );
}

#[test]
fn pull_request_names_the_model_and_installs_it() {
    let talk = talk_with("m", FakeOllama::new([]), json!({ "host": "gpu-box" }));
    talk.host.instance().unwrap().pull_model(IN_LIBRARY).result.unwrap();
    let sent = talk.host.http_requests().pop().unwrap();
    assert_eq!(sent.head.url, "http://gpu-box:11434/api/pull");
    // A server that sends nothing times out.
    assert_eq!(sent.head.timeout_ms, Some(15 * 60 * 1000));
    let body: Value = serde_json::from_slice(&sent.body).unwrap();
    assert_eq!(body, json!({ "model": IN_LIBRARY, "stream": true }));
    let models = talk.host.instance().unwrap().models().unwrap();
    assert!(models.iter().any(|model| model.name == IN_LIBRARY));
}

#[test]
fn pulling_an_unknown_model_hints_at_the_search_page() {
    let error = run_pull("nothing").result.unwrap_err();
    assert!(error.message.ends_with("pull model manifest: file does not exist"), "{error}");
    assert!(error.hint.unwrap().starts_with("https://ollama.com/search"));
}

#[test]
fn invalid_model_name_is_refused_before_pulling() {
    for name in
        ["", " ", "a b", "../a", "a//b", "a/", "a:", "-a", "a/b/c/d/e", "a\nb", &"x".repeat(700)]
    {
        let talk = talk_to("m", []);
        let error = talk.host.instance().unwrap().pull_model(name).result.unwrap_err();
        assert_eq!(error.kind, ErrorKind::InvalidArguments, "{name}");
        assert!(talk.host.http_requests().is_empty());
    }
    for name in ["a", "qwen3:8b", "hf.co/owner/model-GGUF:Q4_K_M", "host:5000/n/m:t"] {
        assert_eq!(check_model_name(name), Ok(()), "{name}");
    }
}

#[test]
fn interrupted_pull_is_a_temporary_error_that_can_continue() {
    let body = "{\"status\":\"pulling manifest\"}\n{\"status\":\"pulling a\",\"digest\":\"a\",\"total\":9}\n";
    let host = FakeHost::new(provider_ollama::__jaato::MODULE)
        .with_http(move |_| Ok(FakeHttpAnswer::status(200).body(body)));
    let error = host.instance().unwrap().pull_model("a").result.unwrap_err();
    assert_eq!((error.kind, error.retry), (ErrorKind::Provider, Retry::Temporary));
    assert!(error.hint.unwrap().contains("continues where it stopped"));
}

#[test]
fn cancelled_pull_closes_the_stream() {
    let stream = FakeStream::open();
    let feed = stream.clone();
    let host = FakeHost::new(provider_ollama::__jaato::MODULE)
        .with_http(move |_| Ok(FakeHttpAnswer::status(200).stream(stream.clone())));
    let frame = jaato_plugin_sdk::types::Frame::write(&json!({ "model": "a" })).unwrap();
    let mut call = host.instance().unwrap().operation("pull_model", frame);
    feed.push("{\"status\":\"pulling manifest\"}\n");
    assert!(matches!(call.next_delta(), Ok(Some(Delta::Notice { .. }))));
    assert_eq!(call.cancel().result.unwrap_err().kind, ErrorKind::Cancelled);
    assert_eq!(host.live().streams, 0);
}

#[test]
fn invalid_pull_lines_are_errors() {
    let line = |line: &str| ModelPull::new("http://h/api/pull", "a").read_line(line.as_bytes());
    for nonsense in ["<html>", "[]", "{}", "{\"status\":7}"] {
        assert_eq!(line(nonsense).unwrap_err().kind, ErrorKind::Provider, "{nonsense}");
    }
    // Impossible numbers are limited to possible ones.
    let odd = "{\"status\":\"a\",\"digest\":\"a\",\"total\":1,\"completed\":18446744073709551615}";
    assert_eq!(line(odd), Ok::<_, Error>(vec![Delta::progress("fetching a", 1, 1)]));
    let several = "{\"status\":\"one\"}{\"status\":\"two\"} {\"status\":\"success\"}";
    assert_eq!(line(several), Ok(vec![Delta::notice("one"), Delta::notice("two")]));
    assert!(line("{\"status\":\"one\"} moon").is_err());
}
