//! Tests which of a user's credentials goes with a request.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use jaato_plugin_sdk::serde_json::json;
use jaato_plugin_sdk::types::{CompletionRequest, Message};
use jaato_plugin_sdk::{Error, ErrorKind};
use jaato_plugin_testkit::{FakeHost, FakeHttpAnswer};
use jaato_vendors::anthropic::{AnthropicTurn, FakeAnthropic};

const VENDOR: &str = "https://api.anthropic.com";
const GATEWAY: &str = "https://gateway.example";

fn host_with_credentials(base: &str, credentials: &[&str]) -> FakeHost {
    let answers = ["one", "two"].map(AnthropicTurn::text);
    let vendor = FakeAnthropic::new(answers).with_credentials(credentials);
    FakeHost::new(provider_anthropic::__jaato::MODULE)
        .with_config(json!({ "base_url": base }))
        .with_http(move |request| vendor.answer_plugin(request))
}

fn completion_request() -> CompletionRequest {
    CompletionRequest::new("claude-haiku-4-5", vec![Message::user("hi")])
}

/// Sends two requests and returns the credential that each named, with `+` if it had the token's
/// beta header.
#[track_caller]
fn named_credentials(host: &FakeHost) -> Vec<String> {
    for _ in 0..2 {
        host.complete(&completion_request()).result.unwrap();
    }
    let is_beta = |(name, value): &(String, String)| {
        name == "anthropic-beta" && value.contains("oauth-2025-04-20")
    };
    let named = host.http_requests().into_iter().map(|sent| {
        let name = sent.head.credential.unwrap();
        let name = name.strip_prefix("ANTHROPIC_").unwrap();
        if sent.head.headers.iter().any(is_beta) { format!("{name}+") } else { name.to_owned() }
    });
    named.collect()
}

#[test]
fn api_key_is_preferred_over_an_auth_token() {
    for base in [VENDOR, GATEWAY] {
        assert_eq!(
            named_credentials(&host_with_credentials(base, &["ANTHROPIC_API_KEY"])),
            ["API_KEY", "API_KEY"]
        );
        let both = host_with_credentials(base, &["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"]);
        assert_eq!(named_credentials(&both), ["API_KEY", "API_KEY"]);
    }
}

#[test]
fn auth_token_is_used_without_an_api_key_and_remembered() {
    let vendor = host_with_credentials(VENDOR, &["ANTHROPIC_AUTH_TOKEN"]);
    assert_eq!(named_credentials(&vendor), ["API_KEY", "AUTH_TOKEN+", "AUTH_TOKEN+"]);
    // A gateway does not know users who signed in at the vendor.
    let gateway = host_with_credentials(GATEWAY, &["ANTHROPIC_AUTH_TOKEN"]);
    assert_eq!(named_credentials(&gateway), ["API_KEY", "AUTH_TOKEN", "AUTH_TOKEN"]);
}

#[test]
fn missing_credentials_error_names_the_variables_to_set() {
    let vendor = host_with_credentials(VENDOR, &[]);
    let error = vendor.complete(&completion_request()).result.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Configuration);
    assert!(error.message.contains("ANTHROPIC_API_KEY"), "{error}");
    // Lists omit providers that the user has not set up. The host recognises them by this kind.
    assert_eq!(vendor.instance().unwrap().models().unwrap_err().kind, ErrorKind::NotFound);
    let error =
        host_with_credentials(GATEWAY, &[]).complete(&completion_request()).result.unwrap_err();
    let hint =
        "the server requires a key: set `ANTHROPIC_API_KEY`, or a token in `ANTHROPIC_AUTH_TOKEN`";
    assert_eq!(error.hint.as_deref(), Some(hint));
}

#[test]
fn server_that_needs_no_key_is_requested_only_once() {
    let host = FakeHost::new(provider_anthropic::__jaato::MODULE)
        .with_config(json!({ "base_url": "http://localhost:1" }))
        .with_http(|_| Ok(FakeHttpAnswer::status(400)));
    assert!(host.complete(&completion_request()).result.is_err());
    assert_eq!(host.http_requests().len(), 1);
}

#[test]
fn key_bound_to_another_server_fails_without_a_second_request() {
    let host = FakeHost::new(provider_anthropic::__jaato::MODULE)
        .with_config(json!({ "base_url": GATEWAY }))
        .with_http(|_| Err(Error::new(ErrorKind::Configuration, "it is for another server")));
    let error = host.complete(&completion_request()).result.unwrap_err();
    assert_eq!(error, Error::new(ErrorKind::Configuration, "it is for another server"));
    assert_eq!(host.http_requests().len(), 1);
}
