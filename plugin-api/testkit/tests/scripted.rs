//! Tests of the scripted provider, from its source: it conforms, and plays its script.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

#[path = "../fixtures/provider-scripted/src/lib.rs"]
mod scripted;

use std::fs;

use jaato_plugin_testkit::{FakeHost, FinishedCall};
use jaato_types::{
    Completion, CompletionRequest, Delta, Error, ErrorKind, FinishReason, Message, Part, ToolCall,
    Usage,
};
use serde_json::{Value, json};

const HELLO: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/provider-scripted/scripts/hello.json");

jaato_plugin_testkit::conformance!(crate::scripted: provider; |suite| {
    suite.with_host(|host| host.with_config(json!({ "script": HELLO })))
});

/// Creates a host whose provider plays this script. It reads the script at the first request.
fn play_script(script: &Value) -> (FakeHost, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("script.json");
    fs::write(&path, script.to_string()).unwrap();
    let host = FakeHost::new(scripted::__jaato::MODULE);
    (host.with_config(json!({ "script": path })), folder)
}

fn completion_request(prompt: &str) -> CompletionRequest {
    let mut request = CompletionRequest::new("test", vec![Message::user(prompt)]);
    request.system = "Be brief.".into();
    request
}

fn complete_prompt(host: &FakeHost, prompt: &str) -> FinishedCall<Completion> {
    host.complete(&completion_request(prompt))
}

#[test]
fn scripted_answers_are_returned_in_order_with_calls_and_usage() {
    let (host, _folder) = play_script(&json!({ "answers": [
        { "steps": [{ "thought": "hm" }, { "text": "I " }, { "text": "look." },
                    { "call": { "name": "look", "arguments": { "at": "moon" } } }],
          "usage": { "prompt_tokens": 9, "output_tokens": 4 } },
        { "steps": [], "finish_reason": "max_tokens" },
    ]}));
    let first = complete_prompt(&host, "where?");
    let call = ToolCall::new("call-0-2", "look", json!({ "at": "moon" }));
    let parts = vec![Part::thought("hm"), Part::text("I look."), Part::ToolCall(call.clone())];
    let usage = Usage { prompt_tokens: 9, output_tokens: 4, ..Usage::default() };
    let expected = Completion::new(parts, FinishReason::ToolUse, usage);
    assert_eq!(first.result.unwrap(), expected);
    assert_eq!(first.deltas.last(), Some(&Delta::ToolCall(call)));
    assert_eq!(first.deltas.len(), 4);
    assert_eq!(
        complete_prompt(&host, "and?").result.unwrap().finish_reason,
        FinishReason::MaxTokens
    );
    let error = complete_prompt(&host, "and then?").result.unwrap_err();
    assert_eq!(error.message, "the script has 2 answers and this is request 3");
}

#[test]
fn a_failure_keeps_its_kind_and_retry_class() {
    let failure = Error::new(ErrorKind::Provider, "busy").temporary();
    let (host, _folder) = play_script(&json!({ "answers": [
        { "steps": [{ "text": "so" }, { "fail": failure }] },
    ]}));
    let finished = complete_prompt(&host, "now?");
    assert_eq!((finished.text(), finished.result), ("so".to_owned(), Err(failure)));
}

#[test]
fn unexpected_request_fails_with_all_reasons() {
    let (host, _folder) = play_script(&json!({ "answers": [
        { "expect": { "prompt": "moon", "system": "brief", "messages": 1, "tools": [] }, "steps": [] },
        { "expect": { "prompt": "sun", "tool_result": "dark", "tools": ["look"] }, "steps": [] },
    ]}));
    complete_prompt(&host, "the moon?").result.unwrap();
    assert_eq!(
        complete_prompt(&host, "the moon?").result.unwrap_err().message,
        "request 2 is not what the script expects: the prompt is `the moon?` and does not hold `sun`; \
         the tools' answer is `` and does not hold `dark`; the tools are [], not [\"look\"]"
    );
}

#[test]
fn hang_step_ends_only_when_cancelled() {
    let (host, _folder) =
        play_script(&json!({ "answers": [{ "steps": [{ "text": "so" }, "hang"] }] }));
    let mut call = host.instance().unwrap().start_complete(&completion_request("and?")).unwrap();
    assert_eq!(call.next_delta().unwrap(), Some(Delta::text("so")));
    assert_eq!(call.cancel().result.unwrap_err().kind, ErrorKind::Cancelled);
}

#[test]
fn the_place_in_the_script_is_saved() {
    let (host, _folder) = play_script(&json!({ "answers": [
        { "steps": [{ "text": "one" }] }, { "steps": [{ "text": "two" }] },
    ]}));
    let first = host.create(None).unwrap();
    assert_eq!(first.complete(&completion_request("")).text(), "one");
    let saved = first.close().unwrap();
    let second = host.create(saved.as_ref()).unwrap();
    assert_eq!(second.complete(&completion_request("")).text(), "two");
}

#[test]
fn missing_script_is_a_configuration_error_with_a_hint() {
    let host = FakeHost::new(scripted::__jaato::MODULE);
    let error = complete_prompt(&host, "so?").result.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Configuration);
    assert!(error.hint.unwrap().contains("[plugins.provider-scripted]"));
}
