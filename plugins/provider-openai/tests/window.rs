//! Tests the reported context windows and the queries for them.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use jaato_plugin_sdk::serde_json::json;
use jaato_plugin_sdk::types::service::{ContextFacts, SessionFacts};
use jaato_plugin_testkit::{FakeHost, FakeHttpAnswer, FakeHttpRequest};

/// Returns a host whose session uses the model `m` of this server.
fn host_with_model(base: &str, answer: fn(&FakeHttpRequest) -> FakeHttpAnswer) -> FakeHost {
    let context = ContextFacts { model: "openai/m".to_owned(), ..ContextFacts::default() };
    FakeHost::new(provider_openai::__jaato::MODULE)
        .with_config(json!({ "base_url": base }))
        .with_session(SessionFacts { context: Some(context), ..SessionFacts::default() })
        .with_http(move |request| Ok(answer(request)))
}

/// Returns the reported windows and the queries for them.
fn reported_windows(host: &FakeHost) -> (Vec<(String, Option<u64>)>, Vec<String>) {
    let models = host.instance().unwrap().models().unwrap();
    let windows = models.into_iter().map(|info| (info.name, info.context_limit)).collect();
    let sent = host.http_requests();
    let asked = sent.iter().map(|sent| format!("{} {}", sent.head.method, sent.head.url));
    (windows, asked.collect())
}

fn model_window(name: &str, tokens: Option<u64>) -> (String, Option<u64>) {
    (name.to_owned(), tokens)
}

const OWN: &str = "http://localhost:1/v1";

#[test]
fn model_list_with_context_windows_needs_no_further_request() {
    let host = host_with_model(OWN, |_| {
        let list = json!({ "data": [{ "id": "m", "max_model_len": 2048 }, { "id": "n" }] });
        FakeHttpAnswer::status(200).body(list.to_string())
    });
    let (windows, asked) = reported_windows(&host);
    assert_eq!(windows, [model_window("m", Some(2048)), model_window("n", None)]);
    assert_eq!(asked, ["GET http://localhost:1/v1/models"]);
}

#[test]
fn own_server_is_queried_in_order_until_it_reports_a_window() {
    let host = host_with_model(OWN, |request| {
        let answer = FakeHttpAnswer::status(200);
        match request.head.url.as_str() {
            "http://localhost:1/v1/models" => {
                answer.body(json!({ "data": [{ "id": "m:latest" }, { "id": "n" }] }).to_string())
            }
            "http://localhost:1/api/ps" => answer.body(json!({ "models": [] }).to_string()),
            "http://localhost:1/api/show" => {
                answer.body(json!({ "parameters": "num_ctx 8192" }).to_string())
            }
            _ => FakeHttpAnswer::status(404).body("404 page not found"),
        }
    });
    let (windows, asked) = reported_windows(&host);
    assert_eq!(windows, [model_window("m:latest", Some(8192)), model_window("n", None)]);
    let paths = ["GET http://localhost:1/props", "GET http://localhost:1/api/ps"];
    assert_eq!(asked[1..3], paths);
    assert_eq!(asked[3..], ["POST http://localhost:1/api/show"]);
    let show = host.http_requests().pop().unwrap();
    assert_eq!(show.body, json!({ "model": "m" }).to_string().into_bytes());
}

#[test]
fn server_with_a_loaded_model_is_also_asked_for_accepted_media() {
    let host = host_with_model(OWN, |request| {
        let answer = FakeHttpAnswer::status(200);
        match request.head.url.as_str() {
            "http://localhost:1/v1/models" => {
                answer.body(json!({ "data": [{ "id": "m:latest" }] }).to_string())
            }
            "http://localhost:1/api/ps" => {
                let loaded = json!({ "name": "m:latest", "context_length": 4096 });
                answer.body(json!({ "models": [loaded] }).to_string())
            }
            "http://localhost:1/api/show" => {
                let more = json!({ "capabilities": ["completion"], "parameters": "num_ctx 8192" });
                answer.body(more.to_string())
            }
            _ => FakeHttpAnswer::status(404).body("404 page not found"),
        }
    });
    let info = host.instance().unwrap().models().unwrap().remove(0);
    assert_eq!((info.context_limit, info.accepts), (Some(4096), Some(Vec::new())));
}

#[test]
fn server_without_window_information_leaves_the_list_unchanged() {
    for broken in [404, 500] {
        let answer = if broken == 404 { not_found_answer } else { failed_answer };
        let (windows, asked) = reported_windows(&host_with_model(OWN, answer));
        assert_eq!(windows, [model_window("m", None)]);
        assert_eq!(asked.len(), 5);
    }
}

fn not_found_answer(request: &FakeHttpRequest) -> FakeHttpAnswer {
    list_or_answer(request, FakeHttpAnswer::status(404))
}

fn failed_answer(request: &FakeHttpRequest) -> FakeHttpAnswer {
    list_or_answer(request, FakeHttpAnswer::status(500).body("no memory"))
}

fn list_or_answer(request: &FakeHttpRequest, other: FakeHttpAnswer) -> FakeHttpAnswer {
    if request.head.url.ends_with("/v1/models") {
        return FakeHttpAnswer::status(200).body(json!({ "data": [{ "id": "m" }] }).to_string());
    }
    other
}

#[test]
fn vendor_is_queried_only_for_its_model_list() {
    let list = |_: &FakeHttpRequest| {
        let list = json!({ "data": [{ "id": "m" }, { "id": "gpt-4o-mini" }] });
        FakeHttpAnswer::status(200).body(list.to_string())
    };
    let (own, asked) = reported_windows(&host_with_model("https://api.openai.com/v1", list));
    assert_eq!(own, [model_window("gpt-4o-mini", Some(128_000)), model_window("m", None)]);
    assert_eq!(asked.len(), 1);
    let (others, asked) = reported_windows(&host_with_model("https://gateway.example/v1", list));
    assert_eq!(others, [model_window("gpt-4o-mini", None), model_window("m", None)]);
    assert_eq!(asked.len(), 1);
}
