//! Tests OpenAI's models at Azure: deployments instead of models, an older API, a content filter.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use jaato_plugin_sdk::serde_json::json;
use jaato_plugin_sdk::types::{CompletionRequest, FinishReason, Message, Retry};
use jaato_plugin_testkit::{FakeHost, FakeHttpAnswer};
use jaato_vendors::openai::FakeOpenAi;

use crate::vendor::{example_turns, talk_with};

const BASE: &str = "https://moon.openai.azure.com/openai/v1";

#[test]
fn azure_deployment_holds_a_conversation() {
    let vendor = FakeOpenAi::new(example_turns()).with_azure_deployment("mine", "gpt-5.2");
    let mut talk = talk_with("mine", json!({ "base_url": BASE }), vendor);
    let first = talk.ask(Message::user("look"));
    let second = talk.answer(&first);
    assert_eq!(talk.answer(&second).finish_reason, FinishReason::Stop);
    assert_eq!(talk.host.http_requests()[0].head.url, format!("{BASE}/responses"));
}

#[test]
fn deployment_without_reasoning_is_requested_without_it_from_then_on() {
    let vendor = FakeOpenAi::new(example_turns()).with_azure_deployment("mine", "gpt-4o");
    let mut talk = talk_with("mine", json!({ "base_url": BASE }), vendor);
    let instance = talk.host.instance().unwrap();
    talk.request.messages.push(Message::user("hi"));
    for requests in [3, 4] {
        // The name does not identify the model. The plugin asks for reasoning, then for summaries,
        // and then for neither.
        assert!(instance.complete(&talk.request).result.is_ok());
        assert_eq!(talk.host.http_requests().len(), requests);
    }
}

#[test]
fn older_azure_deployment_url_uses_chat_completions() {
    let base = "https://moon.openai.azure.com/openai/deployments/d?api-version=2024-10-21";
    let filtered = "data: {\"choices\":[],\"prompt_filter_results\":[{\"prompt_index\":0}]}\n\n\
        data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hi\"}}]}\n\n\
        data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"content_filter\"}]}\n\n\
        data: [DONE]\n\n";
    let host = FakeHost::new(provider_openai::__jaato::MODULE)
        .with_config(json!({ "base_url": base }))
        .with_http(move |_| Ok(FakeHttpAnswer::status(200).body(filtered)));
    let request = CompletionRequest::new("d", vec![Message::user("hi")]);
    let completion = host.complete(&request).result.unwrap();
    assert_eq!(completion.finish_reason, FinishReason::Safety);
    let expected = "https://moon.openai.azure.com/openai/deployments/d/chat/completions\
                    ?api-version=2024-10-21";
    assert_eq!(host.http_requests()[0].head.url, expected);
}

#[test]
fn refused_key_error_suggests_the_key_header_setting() {
    let base = "https://moon.openai.azure.com/openai/deployments/d?api-version=2024-10-21";
    let host = FakeHost::new(provider_openai::__jaato::MODULE)
        .with_config(json!({ "base_url": base }))
        .with_http(|_| Ok(FakeHttpAnswer::status(401).with_credential()));
    let request = CompletionRequest::new("d", vec![Message::user("hi")]);
    let hint = host.complete(&request).result.unwrap_err().hint.unwrap();
    assert!(hint.contains("`key_header = \"api-key\"`"), "{hint}");
}

#[test]
fn azure_content_filter_error_is_permanent_with_a_hint() {
    let body = r#"{"error":{"message":"The response was filtered due to the prompt triggering
        content management policy.","type":null,"param":"prompt","code":"content_filter","status":400,
        "innererror":{"code":"ResponsibleAIPolicyViolation"}}}"#
        .replace('\n', " ");
    let host = FakeHost::new(provider_openai::__jaato::MODULE)
        .with_config(json!({ "base_url": BASE }))
        .with_http(move |_| Ok(FakeHttpAnswer::status(400).body(body.clone())));
    let error =
        host.complete(&CompletionRequest::new("d", vec![Message::user("hi")])).result.unwrap_err();
    assert_eq!(error.retry, Retry::Permanent);
    assert!(error.hint.unwrap().contains("content filter"));
}

#[test]
fn azure_no_capacity_error_is_temporary_with_retry_after() {
    let body = r#"{"error":{"code":"NoCapacity","message":"try later"}}"#;
    let host = FakeHost::new(provider_openai::__jaato::MODULE)
        .with_config(json!({ "base_url": BASE }))
        .with_http(move |_| Ok(FakeHttpAnswer::status(429).header("retry-after", "2").body(body)));
    let error =
        host.complete(&CompletionRequest::new("d", vec![Message::user("hi")])).result.unwrap_err();
    assert_eq!((error.retry, error.retry_after_ms), (Retry::Temporary, Some(2_000)));
}
