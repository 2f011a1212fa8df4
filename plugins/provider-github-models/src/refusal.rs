//! Explains the server's errors and suggests a fix. Pure.

use jaato_plugin_sdk::{Error, ErrorKind};
use jaato_plugin_sdk_provider::chat;

use crate::endpoint::is_retired_url;
use crate::{Config, ENDPOINT, TOKEN};

/// The hint if the endpoint does not answer as the API does.
const CHECK_ENDPOINT: &str = "check `JAATO_GITHUB_ENDPOINT`: it ends in `/inference`, or is the whole path of another server";

/// The longest wait that a server's header can ask for, in seconds. A longer one is a mistake.
const WAIT_S_MAX: u64 = 24 * 60 * 60;

/// An answer that refuses a request.
pub(crate) struct RefusedAnswer<'a> {
    pub(crate) status: u16,
    pub(crate) body: &'a [u8],
    /// Whether the token went with the request.
    pub(crate) had_key: bool,
    pub(crate) error: Error,
}

/// The limit that a refusal names in its headers, for example `UserByMinute`, and the seconds after
/// which it ends.
pub(crate) type GitHubRateLimit = (Option<String>, Option<u64>);

/// Replaces the error of a failed exchange with the retired service by one that says so.
pub(crate) fn exchange_error(url: &str, error: Error) -> Error {
    let is_gone = is_retired_url(url) && error.kind == ErrorKind::Unavailable;
    if is_gone { retired_error(&error.message) } else { error }
}

fn retired_error(reason: &str) -> Error {
    let text = format!("GitHub Models was retired on 2026-07-30: {reason}");
    Error::new(ErrorKind::Provider, text).with_hint(format!(
        "set `{ENDPOINT}` to a replacement server, or use another provider, such as `openai`, \
         `anthropic` or `google`"
    ))
}

/// Replaces the hint of the shared mapping, which mentions a base URL.
pub(crate) fn replace_hint(error: Error) -> Error {
    let is_shared = error.hint.as_deref() == Some(chat::CHECK_URL);
    if is_shared { error.with_hint(CHECK_ENDPOINT) } else { error }
}

/// Reads from a refusal's headers which limit was reached, and when it ends.
pub(crate) fn read_rate_limit<'a>(header: impl Fn(&str) -> Option<&'a str>) -> GitHubRateLimit {
    let kind = header("x-ratelimit-type").map(|kind| kind.chars().take(80).collect());
    let seconds = header("x-ratelimit-timeremaining").and_then(|text| text.trim().parse().ok());
    (kind, seconds)
}

/// Adds hints about this service to a refusal. The limit's time is used if there is no
/// `retry-after`.
pub(crate) fn add_hints(
    refused: RefusedAnswer<'_>,
    (kind, ends): GitHubRateLimit,
    config: &Config,
) -> Error {
    let RefusedAnswer { status, body, had_key, mut error } = refused;
    let names_model = String::from_utf8_lossy(body).to_lowercase().contains("model");
    let hint = match status {
        410 => return retired_error(&error.message),
        429 => {
            let wait = ends.map(|seconds| seconds.min(WAIT_S_MAX) * 1000);
            error.retry_after_ms = error.retry_after_ms.or(wait);
            kind.map(|kind| format!("the limit `{kind}` was reached"))
        }
        401 if had_key => Some(format!("check the token in `{TOKEN}`")),
        401 => Some(format!("the server requires a token: set `{TOKEN}`")),
        403 => Some(forbidden_hint(config)),
        404 | 405 if !names_model => Some(CHECK_ENDPOINT.to_owned()),
        // The service has no list of models.
        404 => Some("models are named `publisher/name`, such as `openai/gpt-4.1`".to_owned()),
        _ => chat::refusal_hint(status, body, had_key, TOKEN),
    };
    hint.into_iter().fold(error, Error::with_hint)
}

fn forbidden_hint(config: &Config) -> String {
    let mut hint = format!("the token in `{TOKEN}` needs the permission `models: read`");
    let (organization, enterprise) = (config.organization.trim(), config.enterprise.trim());
    if !organization.is_empty() {
        hint.push_str(&format!(", and the organization `{organization}` has to allow models"));
    }
    if !enterprise.is_empty() {
        hint.push_str(&format!(", as has the enterprise `{enterprise}`"));
    }
    hint
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused_answer(status: u16, body: &str) -> RefusedAnswer<'_> {
        let error = Error::new(ErrorKind::Provider, "it said so").temporary();
        RefusedAnswer { status, body: body.as_bytes(), had_key: true, error }
    }

    fn hint_for_answer(status: u16, body: &str, config: &Config) -> String {
        add_hints(refused_answer(status, body), GitHubRateLimit::default(), config)
            .hint
            .unwrap_or_default()
    }

    #[test]
    fn error_hints_tell_the_user_what_to_do() {
        let config = Config {
            organization: "moon".to_owned(),
            enterprise: "sky".to_owned(),
            ..Config::default()
        };
        let expected = "the token in `GITHUB_TOKEN` needs the permission `models: read`, and the \
                        organization `moon` has to allow models, as has the enterprise `sky`";
        assert_eq!(hint_for_answer(403, "", &config), expected);
        for (status, body, expected) in [
            (401, "Bad credentials", "check the token in `GITHUB_TOKEN`"),
            (403, "", "the permission `models: read`"),
            (404, "404 page not found", "check `JAATO_GITHUB_ENDPOINT`"),
            (404, "Unknown model: moon", "models are named `publisher/name`"),
            (405, "", "check `JAATO_GITHUB_ENDPOINT`"),
            (400, "Unsupported value: 'temperature'", "the option `temperature`"),
            (500, "", ""),
        ] {
            let hint = hint_for_answer(status, body, &Config::default());
            assert!(hint.contains(expected), "{status}: {hint}");
            assert_eq!(hint.is_empty(), expected.is_empty(), "{status}");
        }
    }

    #[test]
    fn rate_limit_is_named_and_sets_the_retry_delay() {
        let of = |seconds| {
            let limit = (Some("UserByMinute".to_owned()), seconds);
            add_hints(refused_answer(429, ""), limit, &Config::default())
        };
        let limited = of(Some(7));
        assert_eq!(limited.retry_after_ms, Some(7_000));
        assert_eq!(limited.hint.as_deref(), Some("the limit `UserByMinute` was reached"));
        assert_eq!(of(Some(u64::MAX)).retry_after_ms, Some(86_400_000));
        assert_eq!(of(None).retry_after_ms, None);
    }
}
