//! Tests refusals and unusable answers: error kinds, retry classes and hints.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use jaato_plugin_sdk::serde_json::{Value, json};
use jaato_plugin_sdk::types::{Effort, Retry, ToolSpec};
use jaato_plugin_sdk::{Error, ErrorKind};
use jaato_plugin_testkit::{FakeHost, FakeHttpAnswer};

use crate::plugin::{ANSWER, completion_request, host_with_server};

/// Returns an error in the vendor's format.
fn error_report(code: u16, status: &str, message: &str, details: Value) -> String {
    let mut error = json!({ "code": code, "message": message, "status": status });
    if !details.is_null() {
        error["details"] = details;
    }
    format!("{:#}\n", json!({ "error": error }))
}

#[track_caller]
fn completion_error(host: &FakeHost) -> Error {
    host.complete(&completion_request()).result.unwrap_err()
}

#[track_caller]
fn error_for_report(code: u16, status: &str, message: &str, details: Value) -> Error {
    let body = error_report(code, status, message, details);
    let answer = move || FakeHttpAnswer::status(code).with_credential().body(body.clone());
    completion_error(&host_with_server(answer))
}

#[test]
fn http_errors_are_classified_by_status_and_message() {
    let (once, later) = (Retry::Permanent, Retry::Temporary);
    let (provider, overflow) = (ErrorKind::Provider, ErrorKind::ContextOverflow);
    for (code, status, message, kind, retry) in [
        (429, "RESOURCE_EXHAUSTED", "Resource exhausted.", provider, later),
        (500, "INTERNAL", "An internal error has occurred.", provider, later),
        (503, "UNAVAILABLE", "The model is overloaded.", provider, later),
        (504, "DEADLINE_EXCEEDED", "Deadline expired.", provider, later),
        (400, "INVALID_ARGUMENT", "Request contains an invalid argument.", provider, once),
        (403, "PERMISSION_DENIED", "No.", provider, once),
        (413, "INVALID_ARGUMENT", "Too large.", overflow, once),
        (
            400,
            "INVALID_ARGUMENT",
            "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
            overflow,
            once,
        ),
        (
            400,
            "INVALID_ARGUMENT",
            "Unable to submit request because the input token count is 9 but model only supports up to 8.",
            overflow,
            once,
        ),
        (
            400,
            "INVALID_ARGUMENT",
            "Request payload size exceeds the limit: 20971520 bytes.",
            overflow,
            once,
        ),
    ] {
        let error = error_for_report(code, status, message, Value::Null);
        assert_eq!((error.kind, error.retry), (kind, retry), "{message}");
        assert!(error.message.contains(message.trim_end_matches('.')), "{error}");
    }
}

#[test]
fn retry_delay_and_daily_quota_are_read_from_errors() {
    let wait = |details: Value| {
        let error =
            error_for_report(429, "RESOURCE_EXHAUSTED", "You exceeded your quota.", details);
        (error.retry, error.retry_after_ms, error.hint)
    };
    let info =
        json!({ "@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.4s" });
    let quota = |id: &str| json!({ "violations": [{ "quotaId": id }] });
    let minute = quota("GenerateRequestsPerMinutePerProjectPerModel-FreeTier");
    assert_eq!(wait(json!([minute, info])), (Retry::Temporary, Some(34_400), None));
    let day = quota("GenerateRequestsPerDayPerProjectPerModel-FreeTier");
    let (retry, wait, hint) = wait(json!([day, info]));
    assert_eq!((retry, wait), (Retry::Permanent, None));
    assert!(hint.unwrap().starts_with("the daily quota is used up"));
}

#[test]
fn error_hints_tell_the_user_what_to_do() {
    let info =
        |reason: &str| json!([{ "reason": reason, "metadata": { "activationUrl": "https://on" } }]);
    for (code, status, message, details, expected) in [
        (
            400,
            "INVALID_ARGUMENT",
            "API key not valid.",
            info("API_KEY_INVALID"),
            "check the key in `GOOGLE_API_KEY`",
        ),
        (403, "PERMISSION_DENIED", "Disabled.", info("SERVICE_DISABLED"), "https://on"),
        (403, "PERMISSION_DENIED", "Project.", info("CONSUMER_INVALID"), "check `project`"),
        (401, "UNAUTHENTICATED", "No.", Value::Null, "check the key in `GOOGLE_API_KEY`"),
        (404, "NOT_FOUND", "models/x is not found.", Value::Null, "`jaato model list`"),
        (404, "NOT_FOUND", "Nothing here.", Value::Null, "check the base url"),
        (
            400,
            "FAILED_PRECONDITION",
            "User location is not supported for the API use.",
            Value::Null,
            "to use Vertex AI",
        ),
        (
            400,
            "INVALID_ARGUMENT",
            "Function calling is not enabled for models/gemma-3-27b-it",
            Value::Null,
            "--tools none",
        ),
        (
            400,
            "INVALID_ARGUMENT",
            "Unable to submit request because Thinking level is not supported",
            Value::Null,
            "the option `effort`",
        ),
        (400, "INVALID_ARGUMENT", "Bad.", Value::Null, ""),
    ] {
        let body = error_report(code, status, message, details);
        let answer = move || FakeHttpAnswer::status(code).with_credential().body(body.clone());
        let mut request = completion_request();
        request.options.effort = Some(Effort::High);
        let error = host_with_server(answer).complete(&request).result.unwrap_err();
        let hint = error.hint.unwrap_or_default();
        assert!(hint.contains(expected), "{message}: {hint}");
        assert_eq!(hint.is_empty(), expected.is_empty(), "{message}: {hint}");
    }
}

#[test]
fn request_is_repeated_in_old_form_without_json_schema_support() {
    let refusal = error_report(
        400,
        "INVALID_ARGUMENT",
        "Invalid JSON payload received. Unknown name \"parametersJsonSchema\" at 'tools[0].function_declarations[0]': Cannot find field.",
        Value::Null,
    );
    let host = FakeHost::new(provider_google_genai::__jaato::MODULE).with_http(move |request| {
        let is_new = String::from_utf8_lossy(&request.body).contains("parametersJsonSchema");
        Ok(match is_new {
            true => FakeHttpAnswer::status(400).with_credential().body(refusal.clone()),
            false => FakeHttpAnswer::status(200).body(ANSWER),
        })
    });
    let mut asked = completion_request();
    let parameters = json!({ "type": "object", "properties": { "a": { "type": "string" } } });
    asked.tools = vec![ToolSpec { name: "look".into(), parameters, ..ToolSpec::default() }];
    let instance = host.instance().unwrap();
    for requests in [2, 3] {
        assert!(instance.complete(&asked).result.is_ok());
        assert_eq!(host.http_requests().len(), requests);
    }
    // Without schemas, the request cannot be changed.
    let body = error_report(400, "INVALID_ARGUMENT", "parameters_json_schema", Value::Null);
    let host = host_with_server(move || FakeHttpAnswer::status(400).body(body.clone()));
    assert!(host.complete(&completion_request()).result.is_err());
    assert_eq!(host.http_requests().len(), 1);
}

#[test]
fn model_without_thinking_support_is_retried_without_thinking_config() {
    let refusal =
        error_report(400, "INVALID_ARGUMENT", "Thinking is not enabled for models/m", Value::Null);
    let server = move |body: &[u8]| match String::from_utf8_lossy(body).contains("thinkingConfig") {
        true => FakeHttpAnswer::status(400).with_credential().body(refusal.clone()),
        false => FakeHttpAnswer::status(200).body(ANSWER),
    };
    let host = FakeHost::new(provider_google_genai::__jaato::MODULE)
        .with_http(move |request| Ok(server(&request.body)));
    let instance = host.instance().unwrap();
    assert!(instance.complete(&completion_request()).result.is_ok());
    assert_eq!(host.http_requests().len(), 2);
    // If the user set the effort, the refusal is an error.
    let mut asked = completion_request();
    asked.options.effort = Some(Effort::High);
    let error = instance.complete(&asked).result.unwrap_err();
    assert!(error.hint.unwrap().contains("the option `effort`"));
}

#[test]
fn answer_without_a_completion_is_an_error_with_a_hint() {
    for body in ["<html>hello</html>", r#"{"hello":1}"#, r#"{"choices":[]}"#, "hello there\n\n"] {
        let host = host_with_server(move || {
            FakeHttpAnswer::status(200).header("content-type", "text/html").body(body)
        });
        let error = completion_error(&host);
        assert!(error.message.contains("did not answer with a completion"), "{body}: {error}");
        assert_eq!((error.kind, error.retry), (ErrorKind::Provider, Retry::Permanent));
        assert!(error.hint.unwrap().starts_with("check the base url"));
    }
    for body in ["", "{\"candidates\": [", "data: {\"candidates\": ["] {
        let error =
            completion_error(&host_with_server(move || FakeHttpAnswer::status(200).body(body)));
        assert_eq!((error.kind, error.retry), (ErrorKind::Provider, Retry::Temporary), "{body}");
    }
}

#[test]
fn error_bodies_of_every_form_are_reported_with_their_status() {
    for body in ["", "<html>502</html>", "[1]", "null", "\u{1f}\u{8b}", r#"{"error":"busy"}"#] {
        let error =
            completion_error(&host_with_server(move || FakeHttpAnswer::status(502).body(body)));
        assert_eq!((error.kind, error.retry), (ErrorKind::Provider, Retry::Temporary), "{body}");
        assert!(error.message.contains("answered 502 (bad gateway)"), "{error}");
    }
    let list = format!(
        "[{}]",
        error_report(429, "RESOURCE_EXHAUSTED", "Slow down.", json!([{ "retryDelay": "2s" }]))
    );
    let error =
        completion_error(&host_with_server(move || FakeHttpAnswer::status(429).body(list.clone())));
    assert_eq!(error.retry_after_ms, Some(2_000));
    assert!(error.message.ends_with("Slow down"), "{error}");
}

#[test]
fn invalid_project_or_model_is_refused_before_anything_is_sent() {
    for config in [
        json!({ "project": "p", "location": "evil.example/" }),
        json!({ "project": "../p" }),
        json!({ "vertex": true, "project": "p q" }),
    ] {
        let host = FakeHost::new(provider_google_genai::__jaato::MODULE)
            .with_config(config.clone())
            .with_http(|_| Ok(FakeHttpAnswer::status(200)));
        assert_eq!(completion_error(&host).kind, ErrorKind::Configuration, "{config}");
        assert!(host.instance().unwrap().models().is_err());
        assert!(host.http_requests().is_empty());
    }
    let mut nowhere = completion_request();
    nowhere.model = "../../v1/models/m".to_owned();
    let host = host_with_server(|| FakeHttpAnswer::status(200));
    let error = host.complete(&nowhere).result.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Configuration);
    assert!(host.http_requests().is_empty());
}
