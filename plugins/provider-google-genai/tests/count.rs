//! Tests that the vendor counts exactly the prompt of the real request.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::sync::Arc;

use jaato_plugin_sdk::ErrorKind;
use jaato_plugin_sdk::serde_json::{Value, json};
use jaato_plugin_sdk::types::{CompletionRequest, Message, ToolSpec};
use jaato_plugin_testkit::{FakeHost, FakeHttpAnswer};
use jaato_vendors::google::FakeGoogle;

fn completion_request(text: &str) -> CompletionRequest {
    let mut request = CompletionRequest::new("gemini-4-argon", vec![Message::user(text)]);
    request.system = "be kind".to_owned();
    request.tools = vec![ToolSpec {
        name: "moon".into(),
        description: "tells the phase".to_owned(),
        parameters: json!({ "type": "object", "properties": {}, "additionalProperties": false }),
        ..ToolSpec::default()
    }];
    request.options.max_output_tokens = Some(100);
    request
}

fn token_count(config: Value, text: &str) -> u64 {
    let vendor = Arc::new(FakeGoogle::new([]));
    let answering = Arc::clone(&vendor);
    let host = FakeHost::new(provider_google_genai::__jaato::MODULE)
        .with_config(config)
        .with_http(move |request| answering.answer_plugin(request));
    let counted = host.instance().unwrap().count_tokens(&completion_request(text)).unwrap();
    assert!(vendor.accepted_requests().is_empty(), "the model got no request");
    counted
}

#[test]
fn token_count_is_requested_from_ai_studio_and_vertex() {
    for config in [json!({}), json!({ "project": "p" })] {
        let (short, long) =
            (token_count(config.clone(), "hi"), token_count(config.clone(), &"moon ".repeat(400)));
        assert!(short > 5 && long > short + 400, "{config}: {short}, {long}");
    }
}

#[test]
fn invalid_token_count_response_is_an_error() {
    for (status, body) in [(200, "{}"), (200, "moon"), (404, "{}")] {
        let host = FakeHost::new(provider_google_genai::__jaato::MODULE)
            .with_config(json!({ "base_url": "http://localhost:1/v1beta" }))
            .with_http(move |_| Ok(FakeHttpAnswer::status(status).body(body)));
        let counted = host.instance().unwrap().count_tokens(&completion_request("hi"));
        assert_eq!(counted.map_err(|error| error.kind), Err(ErrorKind::Provider), "{body}");
    }
}
