//! Tests of a second opinion on a host in memory, and of each reason why there is none.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_testkit::FakeHost;

/// Creates a host with a shell that prints this output, and a model that repeats its prompt.
fn opinion_host(stdout: &'static str, code: i64) -> FakeHost {
    FakeHost::new(tool_second_opinion::__jaato::MODULE)
        .with_config(json!({ "model": "other/moon" }))
        .with_tool("cli_based_tool", move |arguments| {
            let stdout = stdout.replace("{command}", arguments["command"].as_str().unwrap());
            let answer =
                json!({ "stdout": stdout, "stderr": "no repository\n", "returncode": code });
            Ok(Output::json(answer))
        })
        .with_model(|request| Ok(format!("asked: {}", request.messages[0].text())))
}

fn ask_opinion(host: &FakeHost, more: Value) -> Result<Value> {
    let mut arguments = json!({ "intent": "be faster" });
    arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    host.call("second_opinion", arguments).map(|output| json!(output.content))
}

#[test]
fn other_model_gets_the_purpose_of_the_change_and_the_diff() {
    let host = opinion_host("+moon by {command}\n", 0);
    let opinion = |command: &str| {
        let text = "asked: What the change is to do:\nbe faster\n\nThe change:\n+moon by";
        json!({
            "model": "other/moon", "opinion": format!("{text} {command}\n"), "saw_the_beginning_only": false,
        })
    };
    assert_eq!(ask_opinion(&host, json!({})).unwrap(), opinion("git diff HEAD"));
    let another = json!({ "command": "git show" });
    assert_eq!(ask_opinion(&host, another).unwrap(), opinion("git show"));
}

#[track_caller]
fn check_refused(host: &FakeHost, kind: ErrorKind, message: &str, hint: &str) {
    let error = ask_opinion(host, json!({})).unwrap_err();
    assert_eq!((error.kind, error.message.as_str()), (kind, message));
    assert!(error.hint.as_deref().unwrap_or_default().contains(hint), "{error:?}");
}

#[test]
fn missing_model_or_grant_is_reported_with_a_hint() {
    let no_model = opinion_host("+moon", 0).with_config(json!({}));
    let message = "no model is set for second opinions";
    check_refused(&no_model, ErrorKind::Configuration, message, "SECOND_OPINION_MODEL");
    for (grant, message) in [
        (
            "tools.call",
            "the change was not looked at: plugin `tool-second-opinion` was not granted `tools.call` (call tools of other plugins, under your rules)",
        ),
        (
            "model.complete",
            "no model was asked: plugin `tool-second-opinion` was not granted `model.complete` (ask a model, at your cost)",
        ),
    ] {
        let host = opinion_host("+moon", 0).with_denied(grant);
        let hint = format!("jaato plugin grant tool-second-opinion {grant}");
        check_refused(&host, ErrorKind::PermissionDenied, message, &hint);
    }
}

#[test]
fn model_is_not_asked_when_there_is_no_change_to_review() {
    let without_model = |host: FakeHost| host.with_model(|_| panic!("a model was asked"));
    let nothing = without_model(opinion_host(" \n", 0));
    check_refused(&nothing, ErrorKind::NotFound, "`git diff HEAD` shows no change", "");
    let failed = without_model(opinion_host("", 128));
    let message = "`git diff HEAD` ended with code 128: no repository";
    let error = ask_opinion(&failed, json!({})).unwrap_err();
    assert_eq!(error.message, message);
    let no_shell = FakeHost::new(tool_second_opinion::__jaato::MODULE)
        .with_config(json!({ "model": "other/moon" }));
    assert_eq!(ask_opinion(&no_shell, json!({})).unwrap_err().kind, ErrorKind::UnknownTool);
}
