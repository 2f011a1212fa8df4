//! Tests that the vendor counts exactly the prompt of the real request.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::sync::Arc;

use jaato_plugin_sdk::ErrorKind;
use jaato_plugin_sdk::serde_json::json;
use jaato_plugin_sdk::types::{CompletionRequest, Effort, Message, ToolSpec};
use jaato_plugin_testkit::{FakeHost, FakeHttpAnswer};
use jaato_vendors::anthropic::FakeAnthropic;

fn completion_request(model: &str, text: &str) -> CompletionRequest {
    let mut request = CompletionRequest::new(model, vec![Message::user(text)]);
    request.system = "be kind".to_owned();
    request.tools = vec![ToolSpec {
        name: "moon".into(),
        description: "tells the phase".to_owned(),
        parameters: json!({ "type": "object", "properties": {}, "additionalProperties": false }),
        ..ToolSpec::default()
    }];
    // Fields that are not part of the prompt must not be sent.
    request.options.max_output_tokens = Some(100);
    request.options.stop = vec!["end".to_owned()];
    request.options.effort = Some(Effort::Low);
    request
}

#[test]
fn token_count_is_requested_from_the_vendor() {
    for model in super::vendor::MODELS {
        let vendor = Arc::new(FakeAnthropic::new([]));
        let answering = Arc::clone(&vendor);
        let host = FakeHost::new(provider_anthropic::__jaato::MODULE)
            .with_http(move |request| answering.answer_plugin(request));
        let instance = host.instance().unwrap();
        let short = instance.count_tokens(&completion_request(model, "hi")).unwrap();
        let long = instance.count_tokens(&completion_request(model, &"moon ".repeat(400))).unwrap();
        assert!(short > 5 && long > short + 400, "{model}: {short}, {long}");
        assert!(vendor.accepted_requests().is_empty(), "the model got no request");
    }
}

#[test]
fn invalid_token_count_response_is_an_error() {
    for (status, body, kind) in [
        (200, "{}", ErrorKind::Provider),
        (200, "moon", ErrorKind::Provider),
        (200, r#"{"input_tokens":-1}"#, ErrorKind::Provider),
        (404, "{}", ErrorKind::Provider),
    ] {
        let host = FakeHost::new(provider_anthropic::__jaato::MODULE)
            .with_config(json!({ "base_url": "http://localhost:1/v1" }))
            .with_http(move |_| Ok(FakeHttpAnswer::status(status).body(body)));
        let counted =
            host.instance().unwrap().count_tokens(&completion_request("claude-opus-5-5", "hi"));
        assert_eq!(counted.map_err(|error| error.kind), Err(kind), "{status} {body}");
    }
}
