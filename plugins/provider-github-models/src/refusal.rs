//! What an error of the server means, and what a person can do about it. Pure.

use jaato_plugin_sdk::{Error, ErrorKind};
use jaato_plugin_sdk_provider::chat;

use crate::config::{Config, ENDPOINT, TOKEN};
use crate::endpoint::is_retired;

/// What is told of the service that is no more.
const RETIRED: &str = "GitHub Models was retired on 2026-07-30";

/// What to check where something answers that is no such server.
pub(crate) const CHECK_ENDPOINT: &str = "check `JAATO_GITHUB_ENDPOINT`: it ends in `/inference`, or is the whole path of another server";

/// Longest wait that a server's header can ask for, in seconds: more is a mistake.
const WAIT_S_MAX: u64 = 24 * 60 * 60;

/// Turns what kept an answer from coming into the error that says what became of the service.
pub(crate) fn of_exchange(url: &str, error: Error) -> Error {
    let is_gone = is_retired(url) && error.kind == ErrorKind::Unavailable;
    if is_gone { retired(&error.message) } else { error }
}

fn retired(said: &str) -> Error {
    Error::new(ErrorKind::Provider, format!("{RETIRED}: {said}")).with_hint(format!(
        "set `{ENDPOINT}` to a server in its place, or use another provider, such as `openai`, \
         `anthropic` or `google`"
    ))
}

/// What of a refusal's headers counts.
#[derive(Debug, Default)]
pub(crate) struct Limits {
    /// Which limit was reached: `UserByMinute`.
    pub(crate) kind: Option<String>,
    /// Seconds until there is more, where `retry-after` does not say it.
    pub(crate) seconds: Option<u64>,
}

impl Limits {
    pub(crate) fn of<'a>(header: impl Fn(&str) -> Option<&'a str>) -> Self {
        Self {
            kind: header("x-ratelimit-type").map(str::to_owned),
            seconds: header("x-ratelimit-timeremaining").and_then(|text| text.trim().parse().ok()),
        }
    }
}

/// Adds to an error what is known of this service.
pub(crate) fn explained(
    error: Error,
    status: u16,
    body: &[u8],
    had_key: bool,
    limits: &Limits,
    config: &Config,
) -> Error {
    let mut error = error;
    match status {
        410 => return retired(&error.message),
        429 => {
            if error.retry_after_ms.is_none() {
                let wait = limits.seconds.map(|seconds| seconds.min(WAIT_S_MAX) * 1000);
                error.retry_after_ms = wait;
            }
            if let Some(kind) = &limits.kind {
                let kind: String = kind.chars().take(80).collect();
                error = error.with_hint(format!("the limit `{kind}` was reached"));
            }
            return error;
        }
        _ => {}
    }
    let hint = match status {
        401 if had_key => Some(format!("check the token in `{TOKEN}`")),
        401 => Some(format!("the server wants a token: set `{TOKEN}`")),
        403 => Some(forbidden(config)),
        404 | 405 if !names_model(body) => Some(CHECK_ENDPOINT.to_owned()),
        // There is no list.
        404 => Some("models are named `publisher/name`, such as `openai/gpt-4.1`".to_owned()),
        _ => chat::hint(status, body, had_key, TOKEN),
    };
    match hint {
        Some(hint) => error.with_hint(hint),
        None => error,
    }
}

fn names_model(body: &[u8]) -> bool {
    String::from_utf8_lossy(body).to_lowercase().contains("model")
}

fn forbidden(config: &Config) -> String {
    let mut hint = format!("the token in `{TOKEN}` needs the permission `models: read`");
    let named = |name: &str| Some(name.trim().to_owned()).filter(|name| !name.is_empty());
    if let Some(organization) = named(&config.organization) {
        hint.push_str(&format!(", and the organization `{organization}` has to allow models"));
    }
    if let Some(enterprise) = named(&config.enterprise) {
        hint.push_str(&format!(", as has the enterprise `{enterprise}`"));
    }
    hint
}

#[cfg(test)]
mod tests {
    use jaato_plugin_sdk::types::Retry;

    use super::*;

    fn error() -> Error {
        Error::new(ErrorKind::Provider, "it said so").temporary()
    }

    fn hint(status: u16, body: &str, config: &Config) -> String {
        let error = explained(error(), status, body.as_bytes(), true, &Limits::default(), config);
        error.hint.unwrap_or_default()
    }

    #[test]
    fn what_is_no_more_is_one_line_that_names_what_else_works() {
        let gone = explained(error(), 410, b"", true, &Limits::default(), &Config::default());
        assert_eq!(gone.message, "GitHub Models was retired on 2026-07-30: it said so");
        assert_eq!(gone.retry, Retry::Permanent);
        assert!(gone.hint.unwrap().contains("`JAATO_GITHUB_ENDPOINT`"));
        let unknown = Error::new(ErrorKind::Unavailable, "no address").temporary();
        let told = of_exchange("https://models.github.ai/inference/x", unknown.clone());
        assert_eq!(told.retry, Retry::Permanent);
        assert!(told.message.starts_with(RETIRED));
        assert_eq!(of_exchange("http://localhost:1/inference/x", unknown.clone()), unknown);
    }

    #[test]
    fn what_to_do_is_told() {
        let config = Config {
            organization: "moon".to_owned(),
            enterprise: "sky".to_owned(),
            ..Config::default()
        };
        let expected = "the token in `GITHUB_TOKEN` needs the permission `models: read`, and the \
                        organization `moon` has to allow models, as has the enterprise `sky`";
        assert_eq!(hint(403, "", &config), expected);
        for (status, body, expected) in [
            (401, "Bad credentials", "check the token in `GITHUB_TOKEN`"),
            (403, "", "the permission `models: read`"),
            (404, "404 page not found", "check `JAATO_GITHUB_ENDPOINT`"),
            (404, "Unknown model: moon", "models are named `publisher/name`"),
            (400, "Unsupported value: 'temperature'", "the option `temperature`"),
            (500, "", ""),
        ] {
            let hint = hint(status, body, &Config::default());
            assert!(hint.contains(expected), "{status}: {hint}");
            assert_eq!(hint.is_empty(), expected.is_empty(), "{status}");
        }
    }

    #[test]
    fn a_limit_is_named_and_waited_for() {
        let limits = |seconds| Limits { kind: Some("UserByMinute".to_owned()), seconds };
        let of = |limits: &Limits| explained(error(), 429, b"", true, limits, &Config::default());
        let limited = of(&limits(Some(7)));
        assert_eq!(limited.retry_after_ms, Some(7_000));
        assert_eq!(limited.hint.as_deref(), Some("the limit `UserByMinute` was reached"));
        assert_eq!(of(&limits(Some(u64::MAX))).retry_after_ms, Some(86_400_000));
        assert_eq!(of(&limits(None)).retry_after_ms, None);
    }
}
