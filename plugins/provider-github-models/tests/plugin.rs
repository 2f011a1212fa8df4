//! Tests the plugin's requests and its handling of each answer.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::sync::Arc;

use jaato_plugin_sdk::serde_json::{Value, json};
use jaato_plugin_sdk::types::{CompletionRequest, Message, Retry, ToolSpec};
use jaato_plugin_sdk::{Error, ErrorKind};
use jaato_plugin_testkit::{FakeHost, FakeHttpAnswer};
use jaato_vendors::github::{FakeGitHub, GitHubRequestHandling};
use jaato_vendors::openai::OpenAiTurn;

jaato_plugin_testkit::conformance!(provider_github_models: provider; |suite| suite.with_host(with_server));

/// A server with one model, which says hello.
fn with_server(host: FakeHost) -> FakeHost {
    let answer = "data: {\"choices\":[{\"delta\":{\"content\":\"hello\"},\"finish_reason\":\"stop\"}]}\n\n\
                  data: [DONE]\n\n";
    host.with_http(move |request| {
        assert_eq!(request.head.url, "https://models.github.ai/inference/chat/completions");
        Ok(FakeHttpAnswer::status(200).header("content-type", "text/event-stream").body(answer))
    })
}

fn host_with_vendor(vendor: &Arc<FakeGitHub>, config: Value) -> FakeHost {
    let vendor = Arc::clone(vendor);
    FakeHost::new(provider_github_models::__jaato::MODULE)
        .with_config(config)
        .with_http(move |request| vendor.answer_plugin(request))
}

fn completion_request() -> CompletionRequest {
    let mut request = CompletionRequest::new("openai/gpt-4o", vec![Message::user("hi")]);
    let parameters = json!({ "type": "object", "properties": {} });
    request.tools = vec![ToolSpec { name: "look".into(), parameters, ..ToolSpec::default() }];
    request.options.max_output_tokens = Some(99);
    request
}

/// Sends a request with this in its way, and returns the error.
#[track_caller]
fn error_for_handling(way: GitHubRequestHandling, config: Value) -> Error {
    let vendor = Arc::new(FakeGitHub::new([]).with_request_handling([way]));
    host_with_vendor(&vendor, config).complete(&completion_request()).result.unwrap_err()
}

#[test]
fn request_carries_the_token_headers_and_organization() {
    let vendor = Arc::new(FakeGitHub::new([OpenAiTurn::text("a"), OpenAiTurn::text("b")]));
    let with = host_with_vendor(&vendor, json!({ "organization": "moon" }));
    assert!(with.complete(&completion_request()).result.is_ok());
    let [sent] = with.http_requests().try_into().unwrap();
    assert_eq!(sent.head.url, "https://models.github.ai/orgs/moon/inference/chat/completions");
    assert_eq!(sent.head.credential.as_deref(), Some("GITHUB_TOKEN"));
    assert!(!sent.head.headers.iter().any(|(name, _)| name == "authorization"));
    assert!(host_with_vendor(&vendor, json!({})).complete(&completion_request()).result.is_ok());
    assert_eq!(
        vendor.request_paths(),
        ["/orgs/moon/inference/chat/completions", "/inference/chat/completions"]
    );
}

#[test]
fn endpoint_without_a_place_for_the_organization_is_logged() {
    let answer = r#"{"choices":[{"message":{"content":"hello"},"finish_reason":"stop"}]}"#;
    let told = |config: Value| {
        let host = FakeHost::new(provider_github_models::__jaato::MODULE)
            .with_config(config)
            .with_http(move |_| Ok(FakeHttpAnswer::status(200).body(answer)));
        assert!(host.complete(&completion_request()).result.is_ok());
        host.log().len()
    };
    let base = "http://localhost:1/v1";
    assert_eq!(told(json!({ "base_url": base, "organization": "moon" })), 1);
    assert_eq!(told(json!({ "base_url": base })), 0);
}

#[test]
fn retired_service_error_names_the_alternatives() {
    let error = error_for_handling(GitHubRequestHandling::Retired, json!({}));
    assert_eq!((error.kind, error.retry), (ErrorKind::Provider, Retry::Permanent));
    assert_eq!(
        error.message,
        "GitHub Models was retired on 2026-07-30: \
         `https://models.github.ai/inference/chat/completions` answered 410: GitHub Models is being \
         retired"
    );
    let hint = error.hint.unwrap();
    assert!(hint.contains("`JAATO_GITHUB_ENDPOINT`") && hint.contains("`openai`"), "{hint}");
}

#[test]
fn unresolvable_retired_host_is_reported_as_retired() {
    for (base, retry) in [
        ("https://models.inference.ai.azure.com", Retry::Permanent),
        ("https://models.github.ai/inference", Retry::Permanent),
        ("http://localhost:1/inference", Retry::Temporary),
    ] {
        let host = FakeHost::new(provider_github_models::__jaato::MODULE)
            .with_config(json!({ "base_url": base }))
            .with_http(|_| {
                let text = "cannot reach it: no address is known for its host";
                Err(Error::new(ErrorKind::Unavailable, text).temporary())
            });
        let error = host.complete(&completion_request()).result.unwrap_err();
        assert_eq!(error.retry, retry, "{error}");
        let is_told = error.message.starts_with("GitHub Models was retired");
        assert_eq!(is_told, retry == Retry::Permanent, "{error}");
    }
}

#[test]
fn missing_permission_error_names_the_organization_and_enterprise() {
    let config = json!({ "organization": "moon", "enterprise": "sky" });
    let error = error_for_handling(GitHubRequestHandling::Forbidden, config);
    let hint = error.hint.unwrap();
    for word in ["`models: read`", "`moon`", "`sky`"] {
        assert!(hint.contains(word), "{hint}");
    }
    assert_eq!(error.retry, Retry::Permanent);
}

#[test]
fn request_above_the_plans_token_limit_is_a_context_overflow() {
    assert_eq!(
        error_for_handling(GitHubRequestHandling::TooLarge, json!({})).kind,
        ErrorKind::ContextOverflow
    );
}

#[test]
fn rate_limit_error_names_the_limit_and_its_retry_delay() {
    for kind in ["UserByMinute", "UserByModelByDay", "UserConcurrentRequests"] {
        let error = error_for_handling(GitHubRequestHandling::Limited(kind, 7), json!({}));
        assert_eq!((error.retry, error.retry_after_ms), (Retry::Temporary, Some(7_000)), "{kind}");
        assert_eq!(error.hint, Some(format!("the limit `{kind}` was reached")));
    }
}

#[test]
fn invalid_organization_name_is_refused_before_anything_is_sent() {
    let vendor = Arc::new(FakeGitHub::new([]));
    let host = host_with_vendor(&vendor, json!({ "organization": "../x" }));
    assert_eq!(
        host.complete(&completion_request()).result.unwrap_err().kind,
        ErrorKind::Configuration
    );
    assert!(host.http_requests().is_empty());
}

#[test]
fn model_list_is_empty_and_sends_no_request() {
    let vendor = Arc::new(FakeGitHub::new([]));
    let host = host_with_vendor(&vendor, json!({}));
    assert!(host.instance().unwrap().models().unwrap().is_empty());
    assert!(host.http_requests().is_empty());
}

#[test]
fn answer_without_a_completion_hints_at_the_endpoint_setting() {
    let host = FakeHost::new(provider_github_models::__jaato::MODULE)
        .with_http(|_| Ok(FakeHttpAnswer::status(200).body("<html>hello</html>")));
    let error = host.complete(&completion_request()).result.unwrap_err();
    assert!(error.hint.unwrap().starts_with("check `JAATO_GITHUB_ENDPOINT`"));
}
