//! Reads the rate limits that a server reports with an answer, to delay the next request instead of
//! having it refused. Pure.
//!
//! Two families of headers are known: `x-ratelimit-remaining-requests` with durations such as
//! `6m0s` (OpenAI, Groq, xAI, Cerebras, Azure and most compatible servers), and
//! `anthropic-ratelimit-requests-remaining` with RFC 3339 times.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jaato_plugin_sdk::types::Usage;

/// One limit: the header with the remaining amount, and the header with the time of its reset.
struct RateLimitHeaders {
    remaining: &'static str,
    reset: &'static str,
    counts: RateLimitUnit,
}

enum RateLimitUnit {
    Requests,
    Tokens,
}

const LIMITS: [RateLimitHeaders; 6] = [
    RateLimitHeaders {
        remaining: "x-ratelimit-remaining-requests",
        reset: "x-ratelimit-reset-requests",
        counts: RateLimitUnit::Requests,
    },
    RateLimitHeaders {
        remaining: "x-ratelimit-remaining-tokens",
        reset: "x-ratelimit-reset-tokens",
        counts: RateLimitUnit::Tokens,
    },
    RateLimitHeaders {
        remaining: "anthropic-ratelimit-requests-remaining",
        reset: "anthropic-ratelimit-requests-reset",
        counts: RateLimitUnit::Requests,
    },
    RateLimitHeaders {
        remaining: "anthropic-ratelimit-tokens-remaining",
        reset: "anthropic-ratelimit-tokens-reset",
        counts: RateLimitUnit::Tokens,
    },
    RateLimitHeaders {
        remaining: "anthropic-ratelimit-input-tokens-remaining",
        reset: "anthropic-ratelimit-input-tokens-reset",
        counts: RateLimitUnit::Tokens,
    },
    RateLimitHeaders {
        remaining: "anthropic-ratelimit-output-tokens-remaining",
        reset: "anthropic-ratelimit-output-tokens-reset",
        counts: RateLimitUnit::Requests,
    },
];

/// Returns how long the next request should wait, in milliseconds, until there is room for a
/// request as large as the last. Returns `None` if there is room, or if the server reports no
/// limits.
pub fn next_request_delay_ms<'a>(
    header: impl Fn(&str) -> Option<&'a str>,
    usage: &Usage,
) -> Option<u64> {
    // Uses the server's own date, so that its clock may differ from the local one.
    let date = header("date").and_then(|text| httpdate::parse_http_date(text.trim()).ok());
    let now = date.unwrap_or_else(SystemTime::now);
    // Most vendors hardly count cached tokens.
    let next = usage.prompt_tokens.saturating_sub(usage.cached_tokens);
    let waits = LIMITS.iter().filter_map(|limit| {
        let remaining: u64 = header(limit.remaining)?.trim().parse().ok()?;
        let has_room = match limit.counts {
            RateLimitUnit::Requests => remaining > 0,
            RateLimitUnit::Tokens => remaining > 0 && remaining >= next,
        };
        let reset = header(limit.reset).filter(|_| !has_room)?;
        let wait = parse_duration(reset).or_else(|| duration_until(reset, now))?;
        u64::try_from(wait.as_millis()).ok()
    });
    waits.max().filter(|wait| *wait > 0)
}

/// Parses `1h2m3.5s`, `17ms`, or a number of seconds.
fn parse_duration(text: &str) -> Option<Duration> {
    let text = text.trim();
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let (mut rest, mut sum) = (text, 0.0);
    while !rest.is_empty() {
        let digits = rest.find(|sign: char| !sign.is_ascii_digit() && sign != '.')?;
        let number: f64 = rest[..digits].parse().ok()?;
        let unit = &rest[digits..];
        let length = unit.find(|sign: char| !sign.is_ascii_alphabetic()).unwrap_or(unit.len());
        sum += number
            * match &unit[..length] {
                "ms" => 0.001,
                "s" => 1.0,
                "m" => 60.0,
                "h" => 3_600.0,
                "d" => 86_400.0,
                _ => return None,
            };
        rest = &unit[length..];
    }
    Duration::try_from_secs_f64(sum).ok().filter(|_| !text.is_empty())
}

/// Returns the time until `2026-11-23T14:50:00Z`, or `None` if it is past.
fn duration_until(text: &str, now: SystemTime) -> Option<Duration> {
    let text = text.trim().strip_suffix('Z')?;
    let (date, time) = text.split_once('T')?;
    let numbers = |text: &str, sign: char| -> Option<[u64; 3]> {
        let parts = text.split(sign).map(|part| part.split('.').next()?.parse().ok());
        parts.collect::<Option<Vec<u64>>>()?.try_into().ok()
    };
    let [year, month, day] = numbers(date, '-')?;
    let [hour, minute, second] = numbers(time, ':')?;
    let is_date = (1970..10_000).contains(&year) && (1..=12).contains(&month) && day > 0;
    if !is_date || day > 31 || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    // Days of the Gregorian calendar, in years that start with March.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1;
    let since = days.checked_sub(719_468)? * 86_400 + hour * 3_600 + minute * 60 + second;
    (UNIX_EPOCH + Duration::from_secs(since)).duration_since(now).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delay_ms(headers: &[(&str, &str)], prompt_tokens: u64) -> Option<u64> {
        let date = [("date", "Mon, 23 Nov 2026 14:00:00 GMT")];
        let all = || headers.iter().chain(&date);
        let find = |name: &str| all().find(|(known, _)| *known == name).map(|it| it.1);
        let usage = Usage { prompt_tokens, cached_tokens: 10, ..Usage::default() };
        next_request_delay_ms(find, &usage)
    }

    #[test]
    fn rate_limit_durations_are_parsed() {
        for (text, ms) in
            [("6m0s", 360_000), ("17ms", 17), ("1h2m3.5s", 3_723_500), ("1.5", 1_500), ("0s", 0)]
        {
            assert_eq!(parse_duration(text).map(|it| it.as_millis()), Some(ms), "{text}");
        }
        for text in ["", "soon", "5x", "m", "-1", "1s2", "é"] {
            assert_eq!(parse_duration(text), None, "{text}");
        }
    }

    #[test]
    fn no_wait_is_needed_while_the_rate_limit_has_room() {
        let requests = ("x-ratelimit-remaining-requests", "1");
        let tokens = ("x-ratelimit-remaining-tokens", "90");
        let resets = [("x-ratelimit-reset-requests", "9s"), ("x-ratelimit-reset-tokens", "5s")];
        let with = |more: &[(&'static str, &'static str)]| [&resets[..], more].concat();
        assert_eq!(delay_ms(&with(&[requests, tokens]), 100), None);
        assert_eq!(delay_ms(&with(&[requests, tokens]), 101), Some(5_000), "the next is as large");
        let used_up = ("x-ratelimit-remaining-requests", "0");
        assert_eq!(delay_ms(&with(&[used_up, tokens]), 101), Some(9_000), "the longer one counts");
        assert_eq!(delay_ms(&[used_up], 1), None, "no header says how long");
        assert_eq!(delay_ms(&[], 1), None);
    }

    #[test]
    fn rate_limit_reset_times_are_parsed() {
        let wait_until = |time: &'static str| {
            let remaining = ("anthropic-ratelimit-requests-remaining", "0");
            delay_ms(&[remaining, ("anthropic-ratelimit-requests-reset", time)], 1)
        };
        assert_eq!(wait_until("2026-11-23T14:00:09Z"), Some(9_000));
        assert_eq!(wait_until("2026-11-23T14:00:09.25Z"), Some(9_000));
        assert_eq!(wait_until("2028-03-01T00:00:00Z"), Some(40_039_200_000));
        for past in ["2026-11-23T13:59:59Z", "2026-02-30", "x", "2026-13-01T00:00:00Z"] {
            assert_eq!(wait_until(past), None, "{past}");
        }
    }
}
