//! Tests the plugin's requests and its handling of each answer.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::sync::Arc;

use jaato_plugin_sdk::serde_json::{Value, json};
use jaato_plugin_sdk::types::{CompletionRequest, Message, Retry, ToolSpec};
use jaato_plugin_sdk::{Error, ErrorKind};
use jaato_plugin_testkit::{FakeHost, FakeHttpAnswer};
use jaato_vendors::github::{FakeGitHub, GitHubRequestHandling};
use jaato_vendors::openai::OpenAiTurn;

jaato_plugin_testkit::conformance!(provider_github_models: provider; |suite| suite.with_host(served));

/// A server with one model, which says hello.
fn served(host: FakeHost) -> FakeHost {
    let answer = "data: {\"choices\":[{\"delta\":{\"content\":\"hello\"},\"finish_reason\":\"stop\"}]}\n\n\
                  data: [DONE]\n\n";
    host.with_http(move |request| {
        assert_eq!(request.head.url, "https://models.github.ai/inference/chat/completions");
        Ok(FakeHttpAnswer::status(200).header("content-type", "text/event-stream").body(answer))
    })
}

fn host(vendor: &Arc<FakeGitHub>, config: Value) -> FakeHost {
    let vendor = Arc::clone(vendor);
    FakeHost::new(provider_github_models::__jaato::MODULE)
        .with_config(config)
        .with_http(move |request| vendor.answer_plugin(request))
}

fn request() -> CompletionRequest {
    let mut request = CompletionRequest::new("openai/gpt-4o", vec![Message::user("hi")]);
    let parameters = json!({ "type": "object", "properties": {} });
    request.tools = vec![ToolSpec { name: "look".into(), parameters, ..ToolSpec::default() }];
    request.options.max_output_tokens = Some(99);
    request
}

/// Sends a request with this in its way, and returns the error.
#[track_caller]
fn error_behind(way: GitHubRequestHandling, config: Value) -> Error {
    let vendor = Arc::new(FakeGitHub::new([]).behind([way]));
    host(&vendor, config).complete(&request()).result.unwrap_err()
}

#[test]
fn the_token_the_headers_and_the_organization_stand_in_their_places() {
    let vendor = Arc::new(FakeGitHub::new([OpenAiTurn::text("a"), OpenAiTurn::text("b")]));
    let with = host(&vendor, json!({ "organization": "moon" }));
    assert!(with.complete(&request()).result.is_ok());
    let [sent] = with.http_requests().try_into().unwrap();
    assert_eq!(sent.head.url, "https://models.github.ai/orgs/moon/inference/chat/completions");
    assert_eq!(sent.head.credential.as_deref(), Some("GITHUB_TOKEN"));
    assert!(!sent.head.headers.iter().any(|(name, _)| name == "authorization"));
    assert!(host(&vendor, json!({})).complete(&request()).result.is_ok());
    assert_eq!(
        vendor.paths(),
        ["/orgs/moon/inference/chat/completions", "/inference/chat/completions"]
    );
}

#[test]
fn an_endpoint_in_which_an_organization_has_no_place_is_told_in_the_log() {
    let answer = r#"{"choices":[{"message":{"content":"hello"},"finish_reason":"stop"}]}"#;
    let told = |config: Value| {
        let host = FakeHost::new(provider_github_models::__jaato::MODULE)
            .with_config(config)
            .with_http(move |_| Ok(FakeHttpAnswer::status(200).body(answer)));
        assert!(host.complete(&request()).result.is_ok());
        host.log().len()
    };
    let base = "http://localhost:1/v1";
    assert_eq!(told(json!({ "base_url": base, "organization": "moon" })), 1);
    assert_eq!(told(json!({ "base_url": base })), 0);
}

#[test]
fn the_service_is_no_more_and_the_person_is_told_what_else_works() {
    let error = error_behind(GitHubRequestHandling::Retired, json!({}));
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
fn a_host_that_is_not_found_any_more_is_told_as_what_it_is() {
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
        let error = host.complete(&request()).result.unwrap_err();
        assert_eq!(error.retry, retry, "{error}");
        let is_told = error.message.starts_with("GitHub Models was retired");
        assert_eq!(is_told, retry == Retry::Permanent, "{error}");
    }
}

#[test]
fn a_token_without_permission_is_told_with_whom_to_ask() {
    let config = json!({ "organization": "moon", "enterprise": "sky" });
    let error = error_behind(GitHubRequestHandling::Forbidden, config);
    let hint = error.hint.unwrap();
    for word in ["`models: read`", "`moon`", "`sky`"] {
        assert!(hint.contains(word), "{hint}");
    }
    assert_eq!(error.retry, Retry::Permanent);
}

#[test]
fn a_request_of_more_tokens_than_the_plan_allows_makes_the_session_make_room() {
    assert_eq!(
        error_behind(GitHubRequestHandling::TooLarge, json!({})).kind,
        ErrorKind::ContextOverflow
    );
}

#[test]
fn a_limit_says_which_it_is_and_when_to_come_again() {
    for kind in ["UserByMinute", "UserByModelByDay", "UserConcurrentRequests"] {
        let error = error_behind(GitHubRequestHandling::Limited(kind, 7), json!({}));
        assert_eq!((error.retry, error.retry_after_ms), (Retry::Temporary, Some(7_000)), "{kind}");
        assert_eq!(error.hint, Some(format!("the limit `{kind}` was reached")));
    }
}

#[test]
fn a_name_of_an_organization_that_leads_elsewhere_is_refused_before_anything_is_sent() {
    let vendor = Arc::new(FakeGitHub::new([]));
    let host = host(&vendor, json!({ "organization": "../x" }));
    assert_eq!(host.complete(&request()).result.unwrap_err().kind, ErrorKind::Configuration);
    assert!(host.http_requests().is_empty());
}

#[test]
fn there_is_no_list_of_models_and_nothing_is_asked_for_one() {
    let vendor = Arc::new(FakeGitHub::new([]));
    let host = host(&vendor, json!({}));
    assert!(host.instance().unwrap().models().unwrap().is_empty());
    assert!(host.http_requests().is_empty());
}

#[test]
fn what_is_no_completion_leads_to_the_endpoint() {
    let host = FakeHost::new(provider_github_models::__jaato::MODULE)
        .with_http(|_| Ok(FakeHttpAnswer::status(200).body("<html>hello</html>")));
    let error = host.complete(&request()).result.unwrap_err();
    assert!(error.hint.unwrap().starts_with("check `JAATO_GITHUB_ENDPOINT`"));
}
