//! Tests of the errors for statuses and bodies of servers.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use jaato_plugin_sdk::serde_json::{self, Value, json};
use jaato_plugin_sdk::types::Retry;
use jaato_plugin_sdk::{Error, ErrorKind};
use jaato_plugin_sdk_provider::failure::{
    answer_error, event_error, exchange_error, invalid_event_error, is_compressed,
    is_context_overflow, reported_error, retry_after_ms, truncated_answer_error, url_for_errors,
};

const URL: &str = "http://me:hunter2@h:1/v1/chat/completions?key=hunter2";
const SHOWN: &str = "http://…@h:1/v1/chat/completions?…";

fn error_for_answer(status: u16, body: &str) -> Error {
    answer_error(URL, status, |_| None, body.as_bytes())
}

/// Checks the kind, the retry class, and the text after the URL.
#[track_caller]
fn check_error(status: u16, body: &str, kind: ErrorKind, retry: Retry, text: &str) {
    let error = error_for_answer(status, body);
    assert_eq!((error.kind, error.retry), (kind, retry), "{error}");
    assert_eq!(error.message, format!("`{SHOWN}` answered {text}"));
}

#[test]
fn error_message_is_found_in_every_known_body_format() {
    let (kind, retry) = (ErrorKind::Provider, Retry::Permanent);
    for body in [
        r#"{"error":{"message":"no such model","code":"model_not_found"}}"#,
        r#"{"error":"no such model"}"#,
        r#"[{"error":{"message":"no such model"}}]"#,
        r#"{"object":"error","message":"no such model","code":404}"#,
        r#"{"detail":"no such model."}"#,
        "no such\nmodel\n",
    ] {
        check_error(404, body, kind, retry, "404 (not found): no such model");
    }
    check_error(
        404,
        r#"{"detail":[{"loc":["x"]}]}"#,
        kind,
        retry,
        r#"404 (not found): [{"loc":["x"]}]"#,
    );
}

#[test]
fn html_and_empty_bodies_leave_only_the_status() {
    for body in ["", " \n", "<html><body>nginx</body></html>", "{}", "null"] {
        check_error(503, body, ErrorKind::Provider, Retry::Temporary, "503 (service unavailable)");
    }
}

#[test]
fn status_decides_whether_an_error_is_temporary() {
    for status in [408, 409, 425, 429, 500, 502, 503, 504, 529, 599] {
        assert_eq!(error_for_answer(status, "").retry, Retry::Temporary, "{status}");
    }
    for status in [400, 401, 403, 404, 405, 422, 300, 418] {
        assert_eq!(error_for_answer(status, "").retry, Retry::Permanent, "{status}");
        assert_eq!(error_for_answer(status, "").kind, ErrorKind::Provider, "{status}");
    }
}

#[test]
fn exhausted_quota_is_a_permanent_error() {
    let body =
        r#"{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}"#;
    let text = "429 (too many requests): You exceeded your current quota";
    check_error(429, body, ErrorKind::Provider, Retry::Permanent, text);
}

#[test]
fn context_overflow_is_recognized_in_vendor_messages() {
    for (status, said) in [
        (400, "This model's maximum context length is 4096 tokens. However, you requested 9000"),
        (400, "the request exceeds the available context size. try increasing the context size"),
        (400, "Trying to keep the first 5000 tokens when context the overflows."),
        (400, "Please reduce the length of the messages or completion."),
        (
            400,
            "Prompt contains 40000 tokens, too large for model with 32768 maximum context length",
        ),
        (400, "Your input exceeds the context window of this model."),
        (422, "`inputs` tokens + `max_new_tokens` must be <= 4096"),
        (500, "the input length exceeds the context length"),
        (429, "Request too large for gpt-x on tokens per min (TPM): Limit 10000, Requested 40000"),
        (
            400,
            "This model's maximum prompt length is 131072 but the request contains 537812 tokens",
        ),
        (400, "The input (2000 tokens) is longer than the model's context length (1024 tokens)."),
        (422, "Input validation error: `inputs` must have less than 1024 tokens. Given: 2000"),
        (400, "Invalid request: Your request exceeded model token limit: 8192"),
        (
            400,
            "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 30720]",
        ),
        (400, "Prompt exceeds max length"),
        (400, "too many tokens: total number of tokens in the prompt exceeds the limit of 4081"),
        (400, "Input is too long for requested model."),
        (400, "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000"),
        (
            500,
            "The number of tokens to keep from the initial prompt is greater than the context length",
        ),
        (400, "prompt token count of 70000 exceeds the limit of 64000"),
    ] {
        let error = error_for_answer(status, &json!({ "error": { "message": said } }).to_string());
        assert_eq!(
            (error.kind, error.retry),
            (ErrorKind::ContextOverflow, Retry::Permanent),
            "{said}"
        );
    }
    let by_code = r#"{"error":{"message":"no","code":"context_length_exceeded"}}"#;
    assert_eq!(error_for_answer(400, by_code).kind, ErrorKind::ContextOverflow);
    let by_number = r#"{"error":{"message":"输入过长","code":"1261"}}"#;
    assert_eq!(error_for_answer(400, by_number).kind, ErrorKind::ContextOverflow);
    let by_type = r#"{"error":{"message":"no","type":"exceed_context_size_error","code":400}}"#;
    assert_eq!(error_for_answer(400, by_type).kind, ErrorKind::ContextOverflow);
    assert_eq!(error_for_answer(413, "").kind, ErrorKind::ContextOverflow);
}

#[test]
fn other_messages_about_tokens_and_limits_are_not_an_overflow() {
    for said in [
        "invalid token",
        "rate limit reached for requests",
        "max_tokens is too large",
        "token expired",
        "too many tokens, please wait before trying again",
        "max_tokens 9000 exceeds the limit of 8192",
        "the batch must have less than 9 images",
        "1261 tools are too many",
    ] {
        assert!(!is_context_overflow(said), "{said}");
        assert_eq!(error_for_answer(400, said).kind, ErrorKind::Provider, "{said}");
    }
    // Bedrock uses this text when it throttles, and Cohere with another status when the prompt is
    // too long.
    let throttled = error_for_answer(429, "Too many tokens.");
    assert_eq!((throttled.kind, throttled.retry), (ErrorKind::Provider, Retry::Temporary));
    // The text does not count if the status is unrelated to the request's length.
    assert_eq!(error_for_answer(401, "maximum context length").kind, ErrorKind::Provider);
}

#[test]
fn error_in_an_answer_is_classified_by_its_own_code() {
    let report = |body| reported_error(URL, &body);
    let passes = report(json!({ "error": { "code": 502, "message": "upstream" } }));
    assert_eq!((passes.kind, passes.retry), (ErrorKind::Provider, Retry::Temporary));
    assert_eq!(passes.message, format!("`{SHOWN}` reports an error: upstream"));
    let stays = report(json!({ "error": { "code": "400", "message": "bad" } }));
    assert_eq!(stays.retry, Retry::Permanent);
    let unknown = report(json!({ "error": {} }));
    assert_eq!(unknown.retry, Retry::Temporary);
    let long = report(json!({ "error": "maximum context length is 10" }));
    assert_eq!(long.kind, ErrorKind::ContextOverflow);
}

#[test]
fn error_event_may_hold_plain_text() {
    let error = event_error(URL, "out of\nmemory.");
    assert_eq!((error.kind, error.retry), (ErrorKind::Provider, Retry::Temporary));
    assert_eq!(error.message, format!("`{SHOWN}` reports an error: out of memory"));
    let error = event_error(URL, r#"{"error":{"message":"bad","code":400}}"#);
    assert_eq!(error.retry, Retry::Permanent);
    assert!(event_error(URL, "").message.ends_with("reports an error: it gave no reason"));
}

#[test]
fn compressed_error_body_is_not_shown() {
    let error = answer_error(URL, 500, |_| None, b"\x1f\x8b\x08\x00too many tokens");
    assert_eq!(error.message, format!("`{SHOWN}` answered 500 (internal server error)"));
    assert!(is_compressed(b"\x1f\x8b") && !is_compressed(b"\x1f"));
}

#[test]
fn retry_delay_is_read_from_every_header_format() {
    let wait = |headers: &[(&'static str, &'static str)]| {
        retry_after_ms(|name| headers.iter().find(|(known, _)| *known == name).map(|it| it.1))
    };
    assert_eq!(wait(&[]), None);
    assert_eq!(wait(&[("retry-after", "20")]), Some(20_000));
    assert_eq!(wait(&[("retry-after", " 1.5 ")]), Some(1_500));
    assert_eq!(wait(&[("retry-after-ms", "30"), ("retry-after", "20")]), Some(30));
    let later = ("retry-after", "Wed, 21 Oct 2015 07:28:30 GMT");
    assert_eq!(wait(&[later, ("date", "Wed, 21 Oct 2015 07:28:00 GMT")]), Some(30_000));
    assert_eq!(wait(&[later, ("date", "Wed, 21 Oct 2015 07:29:00 GMT")]), Some(0));
    assert_eq!(wait(&[later]), None);
    for odd in ["soon", "-1", "NaN", ""] {
        assert_eq!(wait(&[("retry-after", odd)]), None, "{odd}");
    }
    assert_eq!(wait(&[("retry-after", "1e30")]), Some(86_400_000));
    let of = |name: &str| (name == "retry-after").then_some("7");
    assert_eq!(answer_error(URL, 429, of, b"").retry_after_ms, Some(7_000));
    assert_eq!(answer_error(URL, 401, of, b"").retry_after_ms, None);
}

#[test]
fn x_should_retry_header_decides_the_retry_class() {
    let of = |status: u16, word: &'static str| {
        let header = |name: &str| match name {
            "x-should-retry" => Some(word),
            "retry-after" => Some("2"),
            _ => None,
        };
        let error = answer_error("http://h", status, header, b"");
        (error.retry, error.retry_after_ms)
    };
    assert_eq!(of(500, "false"), (Retry::Permanent, None));
    assert_eq!(of(400, "true"), (Retry::Temporary, Some(2_000)));
    assert_eq!(of(500, "perhaps"), (Retry::Temporary, Some(2_000)));
    // A request that is too large stays too large.
    assert_eq!(of(413, "true"), (Retry::Permanent, None));
}

#[test]
fn truncated_and_unreadable_answers_are_temporary_errors() {
    let [begun, nothing] =
        [true, false].map(|has_begun| truncated_answer_error("http://u:p@h/v1", has_begun));
    assert_eq!(begun.message, "the answer from `http://…@h/v1` ended early");
    assert_eq!(nothing.message, "`http://…@h/v1` sent an empty answer");
    let data = "x".repeat(200);
    let error = serde_json::from_str::<Value>(&data).unwrap_err();
    let unreadable = invalid_event_error("http://h", &data, &error);
    assert!(unreadable.message.ends_with(&format!("`{}`", "x".repeat(120))), "{unreadable}");
    for error in [begun, nothing, unreadable] {
        assert_eq!((error.kind, error.retry), (ErrorKind::Provider, Retry::Temporary));
    }
}

#[test]
fn network_errors_become_provider_errors_and_configuration_errors_stay() {
    for kind in [ErrorKind::Unavailable, ErrorKind::Timeout, ErrorKind::Io, ErrorKind::LimitReached]
    {
        let error = exchange_error(Error::new(kind, "x").with_hint("h").temporary());
        assert_eq!(error, Error::new(ErrorKind::Provider, "x").with_hint("h").temporary());
    }
    for kind in [ErrorKind::Configuration, ErrorKind::Cancelled, ErrorKind::HostBug] {
        assert_eq!(exchange_error(Error::new(kind, "x")).kind, kind);
    }
    assert_eq!(exchange_error(Error::new(ErrorKind::NotFound, "x")).kind, ErrorKind::Configuration);
}

#[test]
fn urls_are_shown_without_their_secrets() {
    assert_eq!(url_for_errors(URL), SHOWN);
    assert_eq!(url_for_errors("http://h:1/a@b"), "http://h:1/a@b");
    assert_eq!(url_for_errors("http://a:b@c@h"), "http://…@h");
}

#[test]
fn long_error_text_is_truncated() {
    let error = error_for_answer(400, &"é".repeat(5000));
    assert!(error.message.ends_with("é…") && error.message.chars().count() < 1100, "{error}");
}
