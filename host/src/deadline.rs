//! `--deadline`: ends a turn after a time, as a limit and not as a cancellation by the user.

use std::time::Duration;

use jaato_runtime::session_loop::{Cancel, Deadline};
use jaato_runtime::types::{Error, ErrorKind};
use jiff::SignedDuration;

/// Starts the time of a task. At its end, `until` is cancelled, with an error that names the limit.
pub fn start_deadline(after: Duration, until: &Cancel) -> Deadline {
    let text = format!("the task has reached its deadline of {}", format_duration(after));
    let error = Error::new(ErrorKind::LimitReached, text);
    until.cancel_after(after, error.with_hint("allow more time with `--deadline`"))
}

/// Parses a duration such as `90s`, `10m` or `1h30m`.
///
/// # Errors
/// If it is not a duration, or not above zero.
pub fn parse_deadline(text: &str) -> Result<Duration, String> {
    let duration: Option<SignedDuration> = text.trim().parse().ok();
    let duration = duration.and_then(|duration| Duration::try_from(duration).ok());
    duration
        .filter(|duration| !duration.is_zero())
        .ok_or_else(|| "use a time such as 90s, 10m or 1h30m".to_owned())
}

/// Formats a duration as users write it: `1m 30s`.
fn format_duration(duration: Duration) -> String {
    // A parsed duration is in the range of a signed one.
    SignedDuration::try_from(duration)
        .map_or_else(|_| format!("{duration:?}"), |it| format!("{it:#}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadline_has_a_unit_and_is_above_zero() {
        for (text, expected) in [
            ("90s", Some(90_000)),
            ("10m", Some(600_000)),
            ("1h30m", Some(5_400_000)),
            ("1h 30m", Some(5_400_000)),
            ("250ms", Some(250)),
            ("90", None),
            ("0s", None),
            ("-5s", None),
            ("soon", None),
            ("", None),
        ] {
            let expected = expected.map(Duration::from_millis);
            assert_eq!(parse_deadline(text).ok(), expected, "{text}");
        }
        assert_eq!(format_duration(Duration::from_secs(90)), "1m 30s");
    }
}
