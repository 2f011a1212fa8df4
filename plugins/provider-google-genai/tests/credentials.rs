//! Tests which variable provides the credential.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use jaato_plugin_sdk::serde_json::{Value, json};
use jaato_plugin_sdk::{Error, ErrorKind};
use jaato_plugin_testkit::{FakeHost, FakeHttpAnswer};

use crate::plugin::{ANSWER, completion_request};

/// Returns a host on which the user has this variable and uses the vendor's server.
fn host_with_variable(config: Value, has: &'static str) -> FakeHost {
    FakeHost::new(provider_google_genai::__jaato::MODULE).with_config(config).with_http(
        move |request| {
            let asked = request.head.credential.clone().unwrap_or_default();
            if asked != has {
                return Err(Error::new(ErrorKind::NotFound, format!("`{asked}` is not set")));
            }
            Ok(FakeHttpAnswer::status(200).with_credential().body(ANSWER))
        },
    )
}

fn asked_credentials(host: &FakeHost) -> Vec<String> {
    host.http_requests().into_iter().filter_map(|request| request.head.credential).collect()
}

#[test]
fn api_key_is_found_in_three_variables_and_remembered() {
    for (has, first) in [
        ("GOOGLE_API_KEY", vec!["GOOGLE_API_KEY"]),
        ("GEMINI_API_KEY", vec!["GOOGLE_API_KEY", "GEMINI_API_KEY"]),
        ("GOOGLE_GENAI_API_KEY", vec!["GOOGLE_API_KEY", "GEMINI_API_KEY", "GOOGLE_GENAI_API_KEY"]),
    ] {
        for config in [json!({}), json!({ "vertex": true })] {
            let host = host_with_variable(config, has);
            let instance = host.instance().unwrap();
            assert!(instance.complete(&completion_request()).result.is_ok());
            assert_eq!(asked_credentials(&host), first);
            assert!(instance.complete(&completion_request()).result.is_ok());
            assert_eq!(asked_credentials(&host).len(), first.len() + 1);
            assert_eq!(asked_credentials(&host).last().map(String::as_str), Some(has));
        }
    }
}

#[test]
fn project_requests_use_an_access_token() {
    let (token, file) = ("GOOGLE_OAUTH_ACCESS_TOKEN", "GOOGLE_APPLICATION_CREDENTIALS");
    for (has, expected) in [(token, vec![token]), (file, vec![token, file])] {
        let host = host_with_variable(json!({ "project": "p" }), has);
        assert!(host.complete(&completion_request()).result.is_ok());
        assert_eq!(asked_credentials(&host), expected);
    }
    let error = host_with_variable(json!({ "project": "p" }), "nothing")
        .complete(&completion_request())
        .result
        .unwrap_err();
    assert_eq!(error.message, format!("`{file}` is not set"));
}

#[test]
fn missing_key_error_names_the_first_variable() {
    let host = host_with_variable(json!({}), "nothing");
    let error = host.complete(&completion_request()).result.unwrap_err();
    let expected = (ErrorKind::Configuration, "`GOOGLE_API_KEY` is not set");
    assert_eq!((error.kind, error.message.as_str()), expected);
    // The list of a provider that the user has not set up does not exist.
    assert_eq!(host.instance().unwrap().models().unwrap_err().kind, ErrorKind::NotFound);
}

#[test]
fn unauthorized_error_hints_at_the_missing_key_or_token() {
    for (config, status, expected) in [
        (json!({ "base_url": "http://h" }), 403, "the server requires a key: set `GOOGLE_API_KEY`"),
        (
            json!({ "base_url": "http://h", "project": "p" }),
            401,
            "the server requires a token: run `gcloud auth application-default login`, or set \
             `GOOGLE_APPLICATION_CREDENTIALS` to the key file of a service account",
        ),
    ] {
        let host = FakeHost::new(provider_google_genai::__jaato::MODULE)
            .with_config(config)
            .with_http(move |_| Ok(FakeHttpAnswer::status(status).body("{}")));
        let error = host.complete(&completion_request()).result.unwrap_err();
        assert_eq!(error.hint.as_deref(), Some(expected));
    }
}

#[test]
fn custom_server_gets_an_available_key_with_the_first_request() {
    let host = FakeHost::new(provider_google_genai::__jaato::MODULE)
        .with_config(json!({ "base_url": "http://h" }))
        .with_http(|request| {
            let has = request.head.credential.as_deref() == Some("GEMINI_API_KEY");
            match (has, request.head.credential_required) {
                (true, _) => {
                    let body = r#"{"error":{"status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}"#;
                    Ok(FakeHttpAnswer::status(400).with_credential().body(body))
                }
                (false, true) => Err(Error::new(ErrorKind::NotFound, "the key does not exist")),
                (false, false) => panic!("a request without the key"),
            }
        });
    let error = host.complete(&completion_request()).result.unwrap_err();
    assert_eq!(error.hint.as_deref(), Some("check the key in `GEMINI_API_KEY`"));
}

#[test]
fn key_bound_to_another_server_fails_without_a_second_request() {
    let host = FakeHost::new(provider_google_genai::__jaato::MODULE)
        .with_http(|_| Err(Error::new(ErrorKind::Configuration, "is not sent to `https://x`")));
    assert_eq!(
        host.complete(&completion_request()).result.unwrap_err().kind,
        ErrorKind::Configuration
    );
    assert_eq!(host.http_requests().len(), 1);
}
