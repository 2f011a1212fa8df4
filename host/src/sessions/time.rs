//! Times of sessions, for users and for programs.

use std::time::SystemTime;

use jiff::Timestamp;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// Returns how long ago a time was, or its date if that is long ago.
pub(super) fn format_age(ms: i64) -> String {
    let now = Timestamp::try_from(SystemTime::now()).unwrap_or_default();
    format_age_at(ms, now.as_millisecond())
}

fn format_age_at(ms: i64, now_ms: i64) -> String {
    match now_ms.saturating_sub(ms) / 1000 {
        // A clock that was set back.
        ..MINUTE => "just now".to_owned(),
        seconds @ MINUTE..HOUR => format!("{} min ago", seconds / MINUTE),
        seconds @ HOUR..DAY => format!("{} h ago", seconds / HOUR),
        seconds if seconds < 30 * DAY => format!("{} d ago", seconds / DAY),
        _ => format_utc(ms).chars().take_while(|letter| *letter != 'T').collect(),
    }
}

/// Formats a time for programs, in UTC.
pub(super) fn format_utc(ms: i64) -> String {
    Timestamp::from_millisecond(ms).unwrap_or_default().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn age_has_the_unit_that_fits() {
        let now = 1_795_867_994_000;
        for (seconds, expected) in [
            (-5, "just now"),
            (59, "just now"),
            (60, "1 min ago"),
            (3599, "59 min ago"),
            (3600, "1 h ago"),
            (86_399, "23 h ago"),
            (86_400, "1 d ago"),
            (29 * 86_400, "29 d ago"),
            (30 * 86_400, "2026-10-29"),
        ] {
            assert_eq!(format_age_at(now - seconds * 1000, now), expected);
        }
        assert_eq!(format_utc(now), "2026-11-28T12:13:14Z");
    }
}
