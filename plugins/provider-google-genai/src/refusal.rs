//! Explains the server's errors and suggests a fix. Pure.

use jaato_plugin_sdk::serde_json::{self, Value, json};
use jaato_plugin_sdk::types::Retry;
use jaato_plugin_sdk::{Error, ErrorKind};
use jaato_plugin_sdk_provider::failure;

use crate::credentials::suggested_variable;
use crate::endpoint::{GLOBAL, GoogleBackend};
use crate::quota;

/// The hint if the server does not answer as the API does.
pub(crate) const CHECK_URL: &str = "check the base url: it is the server's root, such as `https://generativelanguage.googleapis.com`";

const LIST: &str = "`jaato model list` lists the models";

/// The vendor's own phrases for a request that is too long.
const TOO_LONG: [&str; 2] = ["but model only supports up to", "request payload size exceeds"];

/// A change that a server asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GoogleRequestChange {
    /// Schemas in the older form.
    ReducedSchemas,
    /// No mention of thinking.
    NoThoughts,
}

/// An error answer.
pub(crate) struct GoogleErrorAnswer<'a> {
    pub(crate) status: u16,
    pub(crate) body: &'a [u8],
    pub(crate) had_key: bool,
    pub(crate) backend: &'a GoogleBackend,
    /// The variable of the request's credential.
    pub(crate) variable: &'a str,
}

impl GoogleErrorAnswer<'_> {
    /// Completes an error with the details in the body: the retry time and a hint.
    pub(crate) fn add_details_to(&self, error: Error) -> Error {
        let report = self.error_report();
        let error = add_report_details(error, &report);
        match self.user_hint(&report) {
            Some(hint) => error.with_hint(hint),
            None => error,
        }
    }

    /// Reads the change that the server asks for.
    pub(crate) fn requested_change(&self) -> Option<GoogleRequestChange> {
        let words = self.joined_reasons();
        let has_one = |phrases: &[&str]| phrases.iter().any(|phrase| words.contains(phrase));
        if self.status != 400 {
            return None;
        }
        if has_one(&["jsonschema", "json_schema"]) {
            return Some(GoogleRequestChange::ReducedSchemas);
        }
        let is_about_thinking = has_one(&["thinking", "include_thoughts", "includethoughts"]);
        // Any other error about thinking concerns a budget or a level that the user set.
        let is_refused = has_one(&["not enabled", "not supported", "only enabled", "unknown name"]);
        (is_about_thinking && is_refused).then_some(GoogleRequestChange::NoThoughts)
    }

    fn error_report(&self) -> Value {
        unwrap_single_entry(serde_json::from_slice(self.body).unwrap_or(Value::Null))
    }

    fn joined_reasons(&self) -> String {
        String::from_utf8_lossy(self.body).to_lowercase()
    }

    fn user_hint(&self, report: &Value) -> Option<String> {
        let words = self.joined_reasons();
        let says = |phrase: &str| words.contains(phrase);
        let variable = suggested_variable(self.backend);
        let is_vertex = matches!(self.backend, GoogleBackend::Vertex { .. });
        Some(match (self.status, quota::specific_reason(report)) {
            (_, Some("API_KEY_INVALID")) => format!("check the key in `{}`", self.variable),
            (_, Some("SERVICE_DISABLED")) => match quota::activation_url(report) {
                Some(url) => format!("enable the service at {}", failure::text_beginning(url)),
                None => "enable the service for the project".to_owned(),
            },
            (_, Some("CONSUMER_INVALID")) => {
                "check `project`: it is the project's id, not its name".to_owned()
            }
            (_, Some("BILLING_DISABLED")) => "enable billing for the project".to_owned(),
            (401 | 403, _) if !self.had_key => self.key_hint(variable),
            (401, _) if is_vertex => "the token is expired or invalid, or this machine's clock is \
                                      wrong: check `GOOGLE_OAUTH_ACCESS_TOKEN`, or run `gcloud \
                                      auth application-default login`"
                .to_owned(),
            (401, _) => format!("check the key in `{}`", self.variable),
            (403, _) if says("aiplatform.endpoints.predict") => {
                "check `project`, and that the account has the role `roles/aiplatform.user` in it: \
                 docs/gcp-setup.md"
                    .to_owned()
            }
            (404, _) => self.missing_model_hint(&words),
            (405, _) => CHECK_URL.to_owned(),
            (400, _) if says("user location is not supported") => {
                "AI Studio is not available in this country; to use Vertex AI, set `project`"
                    .to_owned()
            }
            (400, _) if says("function calling is not enabled") => {
                "choose a model that can use tools, or run without them: `--tools none`".to_owned()
            }
            (400, _) => format!(
                "the model or its server does not accept the option `{}`: leave it out",
                find_named_option(&words)?
            ),
            (429, _) if quota::is_quota_exhausted(report) => {
                "the daily quota is used up, or there is no quota for this model: check your \
                 plan, or use another model"
                    .to_owned()
            }
            _ => return None,
        })
    }

    fn key_hint(&self, variable: &str) -> String {
        match self.backend {
            GoogleBackend::Studio | GoogleBackend::Express => {
                format!("the server requires a key: set `{variable}`")
            }
            GoogleBackend::Vertex { .. } => {
                format!(
                    "the server requires a token: run `gcloud auth application-default login`, or \
                     set `{variable}` to the key file of a service account"
                )
            }
        }
    }

    /// Returns the hint for a missing model. Vertex AI also lists models in regions that do not
    /// serve them.
    fn missing_model_hint(&self, words: &str) -> String {
        match self.backend {
            GoogleBackend::Vertex { location, .. } if location != GLOBAL => format!(
                "newer models exist only in the location `{GLOBAL}`: set `location` to it, or \
                 check if `{location}` has this model"
            ),
            _ if words.contains("model") => LIST.to_owned(),
            _ => CHECK_URL.to_owned(),
        }
    }
}

/// Returns true if a value reports an error.
pub(crate) fn is_error_report(value: &Value) -> bool {
    value.get("error").is_some_and(|error| !error.is_null())
}

/// Converts an error that arrives inside a successful answer. If it has no code, its status name
/// gives the status.
pub(crate) fn reported_error(url: &str, report: &Value) -> Error {
    let mut report = report.clone();
    let error = &report["error"];
    let word = error["status"].as_str().unwrap_or_default();
    if let Some(status) = status_code(word).filter(|_| error["code"].as_u64().unwrap_or(0) < 400) {
        report["error"]["code"] = json!(status);
    }
    add_report_details(failure::reported_error(url, &report), &report)
}

/// Adds the details: a wait, an exhausted quota, a request that is too long.
fn add_report_details(mut error: Error, report: &Value) -> Error {
    let words = error.message.to_lowercase();
    if error.kind == ErrorKind::Provider && TOO_LONG.iter().any(|phrase| words.contains(phrase)) {
        error.kind = ErrorKind::ContextOverflow;
        error.retry = Retry::Permanent;
    }
    if quota::is_quota_exhausted(report) {
        error.retry = Retry::Permanent;
    }
    if error.retry == Retry::Permanent {
        error.retry_after_ms = None;
    } else if let Some(wait) = quota::read_wait_ms(report) {
        error.retry_after_ms = Some(wait);
    }
    error
}

/// Unwraps an error in a list with one entry.
pub(crate) fn unwrap_single_entry(value: Value) -> Value {
    match value {
        Value::Array(mut list) if list.len() == 1 => list.remove(0),
        value => value,
    }
}

fn status_code(word: &str) -> Option<u16> {
    Some(match word {
        "INVALID_ARGUMENT" | "FAILED_PRECONDITION" | "OUT_OF_RANGE" => 400,
        "UNAUTHENTICATED" => 401,
        "PERMISSION_DENIED" => 403,
        "NOT_FOUND" => 404,
        "ABORTED" | "ALREADY_EXISTS" => 409,
        "RESOURCE_EXHAUSTED" => 429,
        "CANCELLED" | "DATA_LOSS" | "INTERNAL" | "UNKNOWN" => 500,
        "UNAVAILABLE" => 503,
        "DEADLINE_EXCEEDED" => 504,
        _ => return None,
    })
}

/// The vendor's names of settings, with the options that set them.
const SETTINGS: [(&str, &str); 12] = [
    ("temperature", "temperature"),
    ("maxoutputtokens", "max_output_tokens"),
    ("max_output_tokens", "max_output_tokens"),
    ("thinking", "effort"),
    ("response mime type", "output_schema"),
    ("response_mime_type", "output_schema"),
    ("json mode", "output_schema"),
    ("response_schema", "output_schema"),
    ("stop_sequences", "stop"),
    ("stopsequences", "stop"),
    ("function_calling_config", "tool_choice"),
    ("seed", "seed"),
];

/// Phrases with which the vendor refuses a setting that a model does not support.
const UNSUPPORTED: [&str; 7] = [
    "unsupported",
    "not supported",
    "not enabled",
    "unable to submit request",
    "unknown name",
    "must be",
    "out of range",
];

fn find_named_option(words: &str) -> Option<&'static str> {
    UNSUPPORTED.iter().find(|phrase| words.contains(*phrase))?;
    SETTINGS.iter().find(|(name, _)| words.contains(name)).map(|(_, option)| *option)
}
