//! Reads from an error's details when to retry. Pure.

use jaato_plugin_sdk::serde_json::Value;

/// The longest wait that an error can ask for. A longer one is a mistake.
const WAIT_MS_MAX: u64 = 24 * 60 * 60 * 1000;

/// A part of the ids of daily limits.
const BY_THE_DAY: &str = "PerDay";

/// Reads the time to wait. The vendor writes it into the body, not into a header.
pub(crate) fn read_wait_ms(report: &Value) -> Option<u64> {
    let told = error_details(report).find_map(|detail| detail["retryDelay"].as_str())?;
    let seconds: f64 = told.strip_suffix('s')?.parse().ok()?;
    // A cast from a float saturates.
    (seconds >= 0.0).then(|| ((seconds * 1000.0).ceil() as u64).min(WAIT_MS_MAX))
}

/// Returns true if waiting does not help, even if the server suggests a wait: the quota is daily,
/// or it is zero.
pub(crate) fn is_quota_exhausted(report: &Value) -> bool {
    let violations =
        error_details(report).filter_map(|detail| detail["violations"].as_array()).flatten();
    let is_lasting = |violation: &Value| {
        let id = violation["quotaId"].as_str().unwrap_or_default();
        id.contains(BY_THE_DAY) || violation["quotaValue"] == "0"
    };
    violations.into_iter().any(is_lasting)
}

/// Finds a reason that is more specific than the status: `API_KEY_INVALID`.
pub(crate) fn specific_reason(report: &Value) -> Option<&str> {
    error_details(report).find_map(|detail| detail["reason"].as_str())
}

/// Finds the page on which the user can activate a service.
pub(crate) fn activation_url(report: &Value) -> Option<&str> {
    error_details(report).find_map(|detail| detail["metadata"]["activationUrl"].as_str())
}

fn error_details(report: &Value) -> impl Iterator<Item = &Value> {
    report["error"]["details"].as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use jaato_plugin_sdk::serde_json::json;

    use super::*;

    fn quota_report(details: Value) -> Value {
        json!({ "error": { "code": 429, "details": details } })
    }

    #[test]
    fn retry_delay_in_the_error_body_is_read_and_limited() {
        let wait = |text: &str| {
            read_wait_ms(&quota_report(json!([{ "@type": "x" }, { "retryDelay": text }])))
        };
        assert_eq!((wait("34.4s"), wait("0s"), wait("7s")), (Some(34_400), Some(0), Some(7_000)));
        assert_eq!(wait("99999999s"), Some(WAIT_MS_MAX));
        for odd in ["", "s", "5", "-1s", "NaNs", "soon"] {
            assert_eq!(wait(odd), None, "{odd}");
        }
        for odd in [
            json!(null),
            json!({ "error": "x" }),
            quota_report(json!("x")),
            quota_report(json!([1])),
        ] {
            assert_eq!(
                (read_wait_ms(&odd), is_quota_exhausted(&odd), specific_reason(&odd)),
                (None, false, None)
            );
        }
    }

    #[test]
    fn daily_quota_counts_as_used_up() {
        let violates = |violation: Value| {
            is_quota_exhausted(&quota_report(
                json!([{ "retryDelay": "2s" }, { "violations": [violation] }]),
            ))
        };
        let per_minute = "GenerateRequestsPerMinutePerProjectPerModel-FreeTier";
        assert!(!violates(json!({ "quotaId": per_minute, "quotaValue": "10" })));
        assert!(violates(json!({ "quotaId": per_minute, "quotaValue": "0" })));
        assert!(violates(
            json!({ "quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier" })
        ));
    }
}
