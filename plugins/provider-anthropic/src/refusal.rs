//! Explains the server's errors and suggests a fix. Pure.

use jaato_plugin_sdk::Error;
use jaato_plugin_sdk::serde_json::{Value, json};
use jaato_plugin_sdk_provider::failure;

use crate::state::{AnthropicCredential, KEY, TOKEN};

/// The hint if the server does not answer as the API does.
pub(crate) const CHECK_URL: &str =
    "check the base url: it is the server's root, such as `https://api.anthropic.com`";

const LIST: &str = "`jaato model list` lists the models";

/// Converts an error that arrives inside a successful answer. The error's type gives the status
/// that it would have had.
pub(crate) fn reported_error(url: &str, report: &Value) -> Error {
    let mut report = report.clone();
    if let Some(status) = error_type_status(report["error"]["type"].as_str().unwrap_or_default()) {
        report["error"]["code"] = json!(status);
    }
    failure::reported_error(url, &report)
}

fn error_type_status(kind: &str) -> Option<u16> {
    Some(match kind {
        "invalid_request_error" => 400,
        "authentication_error" => 401,
        "billing_error" => 402,
        "permission_error" => 403,
        "not_found_error" => 404,
        "request_too_large" => 413,
        "rate_limit_error" => 429,
        "api_error" => 500,
        "timeout_error" => 504,
        "overloaded_error" => 529,
        _ => return None,
    })
}

/// Returns a hint for an error, based on its status and body.
pub(crate) fn refusal_hint(
    status: u16,
    body: &[u8],
    key: Option<AnthropicCredential>,
) -> Option<String> {
    let words = String::from_utf8_lossy(body).to_lowercase();
    let says = |phrase: &str| words.contains(phrase);
    Some(match status {
        401 => match key {
            Some(AnthropicCredential::Key) => format!("check the key in `{KEY}`"),
            Some(AnthropicCredential::Token) => format!("check the token in `{TOKEN}`"),
            None => format!("the server requires a key: set `{KEY}`, or a token in `{TOKEN}`"),
        },
        404 if says("model") => LIST.to_owned(),
        404 | 405 => CHECK_URL.to_owned(),
        400 if says("credit balance") || says("usage limits") => {
            "check your plan and its limits at https://platform.claude.com".to_owned()
        }
        400 if says("anthropic-beta") => {
            "the gateway does not support this model's features: use the vendor's own server"
                .to_owned()
        }
        400 => format!(
            "the model or its server does not accept the option `{}`: leave it out",
            find_named_option(&words)?
        ),
        _ => return None,
    })
}

/// The vendor's names of settings, with the options that set them.
const SETTINGS: [(&str, &str); 6] = [
    ("temperature", "temperature"),
    ("tool_choice", "tool_choice"),
    ("output_config.format", "output_schema"),
    ("output_config", "effort"),
    ("stop_sequences", "stop"),
    ("thinking.", "effort"),
];

/// Phrases with which the vendor refuses a setting that a model does not support.
const UNSUPPORTED: [&str; 4] =
    ["not supported", "does not support", "deprecated", "extra inputs are not permitted"];

fn find_named_option(words: &str) -> Option<&'static str> {
    UNSUPPORTED.iter().find(|phrase| words.contains(*phrase))?;
    SETTINGS.iter().find(|(name, _)| words.contains(name)).map(|(_, option)| *option)
}

#[cfg(test)]
mod tests {
    use jaato_plugin_sdk::ErrorKind;
    use jaato_plugin_sdk::types::Retry;

    use super::*;

    fn refusal_text(status: u16, message: &str) -> String {
        let body = json!({ "type": "error", "error": { "message": message } }).to_string();
        refusal_hint(status, body.as_bytes(), Some(AnthropicCredential::Key)).unwrap_or_default()
    }

    #[test]
    fn error_hints_tell_the_user_what_to_do() {
        for (status, message, expected) in [
            (401, "invalid x-api-key", "check the key in `ANTHROPIC_API_KEY`"),
            (404, "model: claude-moon", "`jaato model list`"),
            (404, "Not Found", "check the base url"),
            (400, "Your credit balance is too low to access the Anthropic API.", "check your plan"),
            (400, "`temperature` is deprecated for this model.", "the option `temperature`"),
            (400, "output_config.effort: 'max' is not supported", "the option `effort`"),
            (400, "Unexpected value(s) `x` for the `anthropic-beta` header", "the gateway"),
            (400, "messages: at least one message is required", ""),
            (500, "`temperature` is deprecated", ""),
        ] {
            assert!(
                refusal_text(status, message).contains(expected),
                "{message}: {}",
                refusal_text(status, message)
            );
            assert_eq!(refusal_text(status, message).is_empty(), expected.is_empty(), "{message}");
        }
        let token = refusal_hint(401, b"", Some(AnthropicCredential::Token)).unwrap();
        assert_eq!(token, "check the token in `ANTHROPIC_AUTH_TOKEN`");
        let without = refusal_hint(401, b"", None).unwrap();
        assert!(without.starts_with("the server requires a key"), "{without}");
    }

    #[test]
    fn stream_error_is_classified_by_its_type() {
        for (kind, retry, expected) in [
            ("overloaded_error", Retry::Temporary, ErrorKind::Provider),
            ("rate_limit_error", Retry::Temporary, ErrorKind::Provider),
            ("api_error", Retry::Temporary, ErrorKind::Provider),
            ("timeout_error", Retry::Temporary, ErrorKind::Provider),
            ("of_the_future", Retry::Temporary, ErrorKind::Provider),
            ("invalid_request_error", Retry::Permanent, ErrorKind::Provider),
            ("authentication_error", Retry::Permanent, ErrorKind::Provider),
            ("request_too_large", Retry::Permanent, ErrorKind::ContextOverflow),
        ] {
            let error = json!({ "type": kind, "message": "No" });
            let error = reported_error("http://h", &json!({ "type": "error", "error": error }));
            assert_eq!((error.retry, error.kind), (retry, expected), "{kind}");
            assert_eq!(error.message, "`http://h` reports an error: No");
        }
        let long =
            json!({ "type": "invalid_request_error", "message": "prompt is too long: 9 > 8" });
        let error = reported_error("http://h", &json!({ "error": long }));
        assert_eq!(error.kind, ErrorKind::ContextOverflow);
        for odd in [json!({ "error": "busy" }), json!({ "error": 7 }), json!({ "error": [1] })] {
            assert_eq!(reported_error("http://h", &odd).retry, Retry::Temporary, "{odd}");
        }
    }
}
