//! Converts errors inside an answer. Pure.

use jaato_plugin_sdk::Error;
use jaato_plugin_sdk::serde_json::{Value, json};
use jaato_plugin_sdk_provider::failure;

/// Converts an error that arrives inside a successful answer. The error's code gives the status
/// that it would have had. The error is flat in the vendor's types but nested on the wire.
pub(super) fn reported_error(url: &str, report: &Value) -> Error {
    let inner = report.get("error").filter(|error| !error.is_null()).unwrap_or(report);
    let mut inner = inner.clone();
    let status = ["code", "type"].iter().find_map(|key| error_code_status(inner[*key].as_str()?));
    if let (Some(status), Some(fields)) = (status, inner.as_object_mut()) {
        fields.insert("status".to_owned(), json!(status));
    }
    failure::reported_error(url, &json!({ "error": inner }))
}

fn error_code_status(code: &str) -> Option<u16> {
    Some(match code {
        "rate_limit_exceeded" | "insufficient_quota" | "billing_hard_limit_reached" => 429,
        "server_error" | "internal_server_error" => 500,
        "server_overloaded" | "overloaded" | "slow_down" => 503,
        "vector_store_timeout" => 504,
        "invalid_api_key" => 401,
        "model_not_found" => 404,
        "context_length_exceeded" | "content_filter" | "cyber_policy" | "policy_violation" => 400,
        "invalid_request_error" => 400,
        other if other.starts_with("invalid_") || other.starts_with("unsupported_") => 400,
        other if other.contains("image") => 400,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use jaato_plugin_sdk::ErrorKind;
    use jaato_plugin_sdk::types::Retry;

    use super::*;

    #[test]
    fn stream_error_is_classified_by_its_code() {
        for (code, retry, kind) in [
            ("rate_limit_exceeded", Retry::Temporary, ErrorKind::Provider),
            ("server_error", Retry::Temporary, ErrorKind::Provider),
            ("of_the_future", Retry::Temporary, ErrorKind::Provider),
            ("insufficient_quota", Retry::Permanent, ErrorKind::Provider),
            ("invalid_prompt", Retry::Permanent, ErrorKind::Provider),
            ("image_too_large", Retry::Permanent, ErrorKind::Provider),
            ("context_length_exceeded", Retry::Permanent, ErrorKind::ContextOverflow),
        ] {
            let inner = json!({ "type": "error", "code": code, "message": "No", "param": null });
            let flat = reported_error("http://h", &inner);
            let nested = reported_error("http://h", &json!({ "type": "error", "error": inner }));
            assert_eq!(flat, nested);
            assert_eq!((flat.retry, flat.kind), (retry, kind), "{code}");
            assert_eq!(flat.message, "`http://h` reports an error: No");
        }
        for odd in [json!({ "error": "busy" }), json!({ "error": 7 }), json!({}), json!([1])] {
            assert_eq!(reported_error("http://h", &odd).retry, Retry::Temporary, "{odd}");
        }
    }
}
