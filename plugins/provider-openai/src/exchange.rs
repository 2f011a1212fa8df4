//! Reads refusals and adds hints.

use jaato_plugin_sdk::HttpResponse;
use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk_provider::chat;
use jaato_plugin_sdk_provider::exchange;
use jaato_plugin_sdk_provider::exchange::ErrorResponse;

use crate::config::Config;
use crate::dialect::OpenAiDialect;
use crate::state::{KEY, OpenAiState};
use crate::{endpoint, presets};

/// Reads the body of an error answer and adds a hint.
pub(crate) async fn refusal_error(
    cx: &Cx<OpenAiState>,
    config: &Config,
    url: &str,
    response: HttpResponse,
) -> ErrorResponse {
    let mut refusal = exchange::read_refusal(cx, url, response).await;
    let (status, body) = (refusal.status, &refusal.body);
    let key = presets::api_key_variable(config.base_url.trim(), KEY);
    let of_azure =
        endpoint::dialect_of_server(&config.base_url, config.dialect) == OpenAiDialect::Azure;
    let azures = (of_azure && status == 401 && refusal.had_key).then(|| azure_key_hint(&key));
    let hint = azures.or_else(|| settings_hint(url, status, body));
    let hint = hint.or_else(|| chat::refusal_hint(status, body, refusal.had_key, &key));
    let may_pass = is_broken_call(status, body);
    let is_too_long = is_unexplained_overflow(config, status, body);
    if let Some(hint) = hint {
        refusal.error = refusal.error.with_hint(hint);
    }
    if may_pass {
        refusal.error = refusal.error.temporary();
    }
    if is_too_long {
        refusal.error.kind = ErrorKind::ContextOverflow;
    }
    refusal
}

/// Returns true if a server refuses a long conversation in its own way: Cerebras sends an empty
/// body.
fn is_unexplained_overflow(config: &Config, status: u16, body: &[u8]) -> bool {
    let dialect = endpoint::dialect_of_server(&config.base_url, config.dialect);
    dialect == OpenAiDialect::Cerebras && status == 400 && body.trim_ascii().is_empty()
}

/// Returns true if the server could not parse the model's tool call. Groq reports that like a bad
/// request, but the next attempt may be better.
fn is_broken_call(status: u16, body: &[u8]) -> bool {
    status == 400 && String::from_utf8_lossy(body).contains("tool_use_failed")
}

/// Returns the hint for an API key that Azure refuses. Below `/openai/v1` Azure accepts the key as
/// a bearer token, and elsewhere only in a header of its own.
fn azure_key_hint(key: &str) -> String {
    format!(
        "check the API key in `{key}`; for an older Azure endpoint, set `key_header = \
         \"api-key\"` in the provider's section"
    )
}

/// Returns the hint for errors that only this plugin's settings can fix.
fn settings_hint(url: &str, status: u16, body: &[u8]) -> Option<String> {
    let words = String::from_utf8_lossy(body).to_lowercase();
    let path = url.split('?').next().unwrap_or(url);
    let set = |what: &str| format!("set `{what}` under `[plugins.provider-openai]`");
    match status {
        400 | 404 if words.contains("v1/responses") || words.contains("responses api") => {
            Some(set("api = \"responses\""))
        }
        404 | 405 if path.ends_with("/responses") && !words.contains("model") => Some(format!(
            "{}; or, if the server does not support Responses, {}",
            chat::CHECK_URL,
            set("api = \"chat\"")
        )),
        400 if words.contains("content_filter") || words.contains("content management policy") => {
            Some("the server's content filter blocked the request: rephrase it".to_owned())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_call_error_is_recognized() {
        let body = br#"{"error":{"code":"tool_use_failed","failed_generation":"<x>"}}"#;
        assert!(is_broken_call(400, body) && !is_broken_call(500, body));
        assert!(!is_broken_call(400, b"bad"));
    }

    #[test]
    fn empty_error_body_is_a_context_overflow_only_at_cerebras() {
        let of = |base: &str| Config { base_url: base.to_owned(), ..Config::default() };
        let cerebras = of("https://api.cerebras.ai/v1");
        assert!(is_unexplained_overflow(&cerebras, 400, b" \n"));
        assert!(
            !is_unexplained_overflow(&cerebras, 400, b"no")
                && !is_unexplained_overflow(&cerebras, 500, b"")
        );
        assert!(!is_unexplained_overflow(&of("http://h/v1"), 400, b""));
    }

    #[test]
    fn error_hints_name_the_setting_that_helps() {
        for (url, status, body, expected) in [
            ("http://h/v1/responses", 404, "not found", "api = \"chat\""),
            ("http://h/v1/responses?api-version=1", 404, "", "api = \"chat\""),
            (
                "http://h/v1/chat/completions",
                404,
                "This is not a chat model: use v1/responses instead",
                "api = \"responses\"",
            ),
            (
                "http://h/v1/responses",
                400,
                r#"{"error":{"code":"content_filter","innererror":{}}}"#,
                "content filter",
            ),
        ] {
            let hint = settings_hint(url, status, body.as_bytes()).unwrap();
            assert!(hint.contains(expected), "{hint}");
        }
        for (url, status, body) in [
            ("http://h/v1/responses", 404, "the model `x` does not exist"),
            ("http://h/v1/chat/completions", 404, "404 page not found"),
            ("http://h/v1/responses", 500, "content_filter"),
        ] {
            assert_eq!(settings_hint(url, status, body.as_bytes()), None, "{body}");
        }
    }
}
