//! Converts failures to errors for the session: a kind, a retry class, and a text for the user.
//!
//! Servers of one protocol share status codes and little else. Their bodies are JSON of several
//! shapes, web pages, plain text or empty. The recognized forms were seen from OpenAI, Anthropic,
//! Bedrock, Cohere, DashScope, FastAPI, Groq, llama.cpp, LM Studio, Mistral, Moonshot, Ollama,
//! OpenRouter, SGLang, TGI, vLLM, xAI and Zhipu.

use std::time::UNIX_EPOCH;

use jaato_plugin_sdk::serde_json::{self, Value};
use jaato_plugin_sdk::types::text::{one_line, truncate_chars};
use jaato_plugin_sdk::{Error, ErrorKind};

/// The maximum number of bytes of a body to search.
pub const BODY_BYTES_MAX: usize = 64 * 1024;

/// The longest server text that an error repeats, in characters.
const SAID_CHARS_MAX: usize = 1000;

/// The longest piece of an unreadable event that an error repeats, in characters.
const SHOWN_CHARS_MAX: usize = 120;

/// The longest wait that a server's header can request. A longer one is a mistake.
const RETRY_AFTER_MS_MAX: u64 = 24 * 60 * 60 * 1000;

/// Lower-case error texts for a conversation that exceeds the model's context window.
const OVERFLOW_PHRASES: [&str; 25] = [
    "context_length_exceeded",
    "exceed_context_size",
    "maximum context length",
    "maximum model length",
    "max_model_len",
    "exceeds the context length",
    "exceeds the available context size",
    "context window",
    "context size exceeded",
    "context the overflows",
    "context length of only",
    "exceeds the maximum number of tokens",
    "prompt is too long",
    "reduce the length of the messages",
    "request too large",
    "tokens + `max_new_tokens` must be",
    "maximum prompt length",
    "longer than the model's context length",
    "greater than the context length",
    "too large for model with",
    "exceeded model token limit",
    "range of input length",
    "prompt exceeds max length",
    "input is too long",
    "exceed context limit",
];

/// The same with a number in the middle: the text before and after it.
const OVERFLOW_FRAMES: [(&str, &str); 2] =
    [("must have less than", "tokens"), ("prompt token count", "exceeds the limit of")];

/// An error text for a conversation that is too long, and also for a request that comes too soon.
const AMBIGUOUS_PHRASE: &str = "too many tokens";

/// Texts that accompany it if waiting helps.
const THROTTLE_PHRASES: [&str; 3] = ["please wait", "rate limit", "throttl"];

/// Zhipu's code for a conversation that is too long. Its text depends on the language.
const OVERFLOW_CODE: &str = "1261";

/// Error codes for which waiting does not help, regardless of the status.
const PERMANENT_CODES: [&str; 3] = ["insufficient_quota", "billing_hard_limit_reached", "billing"];

/// The first bytes of gzip data.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Returns true if a body is compressed, which no request here asks for.
pub fn is_compressed(body: &[u8]) -> bool {
    body.starts_with(&GZIP)
}

/// Converts an unsuccessful answer to an error. `url` is the URL of the request, and `header`
/// returns a header's value.
pub fn answer_error<'a>(
    url: &str,
    status: u16,
    header: impl Fn(&str) -> Option<&'a str>,
    body: &[u8],
) -> Error {
    let report = ServerErrorReport::from_body(body);
    let said = match &report.said {
        Some(said) => format!(": {said}"),
        None => String::new(),
    };
    let message =
        format!("`{}` answered {status}{}{said}", url_for_errors(url), status_name(status));
    let mut error = Error::new(report.error_kind(status), message);
    // Anthropic's header that says whether to retry.
    let may_pass = match header("x-should-retry") {
        Some("true") => true,
        Some("false") => false,
        Some(_) | None => is_temporary(status) && !report.is_final(),
    };
    if error.kind == ErrorKind::Provider && may_pass {
        error = error.temporary();
        error.retry_after_ms = retry_after_ms(header);
    }
    error
}

/// Converts an error that a server reports inside a successful answer.
pub fn reported_error(url: &str, report: &Value) -> Error {
    error_from_words(url, &ServerErrorReport::from_json(report))
}

/// Converts an error event. Its data is JSON of any shape, or text.
pub fn event_error(url: &str, data: &str) -> Error {
    error_from_words(url, &ServerErrorReport::from_body(data.as_bytes()))
}

fn error_from_words(url: &str, report: &ServerErrorReport) -> Error {
    let said = report.said.as_deref().unwrap_or("it gave no reason");
    let message = format!("`{}` reports an error: {said}", url_for_errors(url));
    // A status of 400 or above is the request's fault unless it is temporary. A missing status is
    // the server's fault.
    let status = report.status.unwrap_or(500);
    let error = Error::new(report.error_kind(status), message);
    let may_pass = is_temporary(status) && !report.is_final();
    if error.kind == ErrorKind::Provider && may_pass { error.temporary() } else { error }
}

/// Returns the error of an answer that ended before its end mark.
pub fn truncated_answer_error(url: &str, has_begun: bool) -> Error {
    let url = url_for_errors(url);
    let text = if has_begun {
        format!("the answer from `{url}` ended early")
    } else {
        format!("`{url}` sent an empty answer")
    };
    Error::new(ErrorKind::Provider, text).temporary()
}

/// Returns the error of an unreadable event.
pub fn invalid_event_error(url: &str, data: &str, error: &serde_json::Error) -> Error {
    let (url, shown) = (url_for_errors(url), text_beginning(data));
    let text = format!("`{url}` sent an event that is not valid JSON ({error}): `{shown}`");
    Error::new(ErrorKind::Provider, text).temporary()
}

/// Returns the error of an unreadable answer that is not streamed.
pub fn invalid_json_error(url: &str, error: &serde_json::Error) -> Error {
    let text = format!("the answer from `{}` is not valid JSON: {error}", url_for_errors(url));
    Error::new(ErrorKind::Provider, text).temporary()
}

/// Returns the error of an answer that exceeds a limit.
pub fn answer_limit_error(what: &str) -> Error {
    Error::new(ErrorKind::LimitReached, format!("the model's answer has more than {what}"))
}

/// Returns the start of a server's text.
pub fn text_beginning(text: &str) -> String {
    text.chars().take(SHOWN_CHARS_MAX).collect()
}

/// Converts the error of a broken or unanswered exchange to a provider error. Errors of the user's
/// configuration stay unchanged.
pub fn exchange_error(error: Error) -> Error {
    match error.kind {
        ErrorKind::Unavailable | ErrorKind::Timeout | ErrorKind::Io | ErrorKind::LimitReached => {
            Error { kind: ErrorKind::Provider, ..error }
        }
        // The vendor's own server needs a key.
        ErrorKind::NotFound => Error { kind: ErrorKind::Configuration, ..error },
        _ => error,
    }
}

/// Returns true if a server's text means that the conversation is too long for the model.
pub fn is_context_overflow(text: &str) -> bool {
    let text = text.to_lowercase();
    let has_one = |phrases: &[&str]| phrases.iter().any(|phrase| text.contains(phrase));
    let is_framed = |(begin, end): &(&str, &str)| {
        text.split_once(begin).is_some_and(|(_, rest)| rest.contains(end))
    };
    has_one(&OVERFLOW_PHRASES)
        || OVERFLOW_FRAMES.iter().any(is_framed)
        || (text.contains(AMBIGUOUS_PHRASE) && !has_one(&THROTTLE_PHRASES))
}

/// Returns how long to wait: `retry-after-ms`, or `retry-after` in seconds or as a date.
pub fn retry_after_ms<'a>(header: impl Fn(&str) -> Option<&'a str>) -> Option<u64> {
    let milliseconds = header("retry-after-ms").and_then(|text| parse_milliseconds(text, 1.0));
    let asked = milliseconds.or_else(|| {
        let text = header("retry-after")?;
        parse_milliseconds(text, 1000.0).or_else(|| seconds_until(text, header("date")?))
    });
    asked.map(|asked| asked.min(RETRY_AFTER_MS_MAX))
}

/// Returns a URL for errors, without user, password and query.
pub fn url_for_errors(url: &str) -> String {
    let cut = url.find(['?', '#']);
    let shown = cut.map_or(url, |at| &url[..at]);
    let start = shown.find("://").map_or(0, |at| at + 3);
    let end = shown[start..].find('/').map_or(shown.len(), |at| start + at);
    let host = shown[start..end].rfind('@').map_or(start, |at| start + at + 1);
    let mark = if host > start { "…@" } else { "" };
    format!("{}{mark}{}{}", &shown[..start], &shown[host..], if cut.is_some() { "?…" } else { "" })
}

fn parse_milliseconds(text: &str, unit_ms: f64) -> Option<u64> {
    let number: f64 = text.trim().parse().ok()?;
    // Casts from floats saturate.
    (number >= 0.0).then_some((number * unit_ms).ceil() as u64)
}

/// Both dates are the server's, so that its clock may differ from the local one.
fn seconds_until(then: &str, now: &str) -> Option<u64> {
    let seconds = |text: &str| {
        let time = httpdate::parse_http_date(text.trim()).ok()?;
        Some(time.duration_since(UNIX_EPOCH).ok()?.as_secs())
    };
    Some(seconds(then)?.saturating_sub(seconds(now)?).saturating_mul(1000))
}

fn is_temporary(status: u16) -> bool {
    matches!(status, 408 | 409 | 425 | 429 | 500..=599)
}

fn status_name(status: u16) -> &'static str {
    match status {
        400 => " (bad request)",
        401 => " (unauthorized)",
        403 => " (forbidden)",
        404 => " (not found)",
        405 => " (method not allowed)",
        408 => " (request timeout)",
        413 => " (payload too large)",
        422 => " (unprocessable)",
        429 => " (too many requests)",
        500 => " (internal server error)",
        502 => " (bad gateway)",
        503 => " (service unavailable)",
        504 => " (gateway timeout)",
        529 => " (overloaded)",
        _ => "",
    }
}

/// A server's description of a failure.
struct ServerErrorReport {
    /// The text for the user.
    said: Option<String>,
    /// The codes, types and text in lower case, for searching.
    words: String,
    /// The status inside the body.
    status: Option<u16>,
    has_overflow_code: bool,
}

impl ServerErrorReport {
    fn from_body(body: &[u8]) -> Self {
        if let Ok(json) = serde_json::from_slice::<Value>(body) {
            return Self::from_json(&json);
        }
        let text = String::from_utf8_lossy(body);
        let text = text.trim();
        // Web pages and binary data do not help in a one-line error.
        let is_readable = !text.starts_with('<') && !is_compressed(body);
        let said = (!text.is_empty() && is_readable).then(|| shorten_server_text(text));
        Self { said, words: text.to_lowercase(), status: None, has_overflow_code: false }
    }

    /// Reads `{"error": {"message"}}`, `{"error": "text"}`, `{"message"}`, `{"detail"}`, or a list
    /// of
    fn from_json(json: &Value) -> Self {
        let outer = json.as_array().and_then(|list| list.first()).unwrap_or(json);
        let inner = outer.get("error").filter(|error| !error.is_null()).unwrap_or(outer);
        let texts = [
            inner.as_str().map(str::to_owned),
            text_at(inner, "message"),
            text_at(inner, "detail"),
            text_at(outer, "message"),
        ];
        let said = texts.into_iter().flatten().find(|text| !text.trim().is_empty());
        let codes = ["code", "type", "status"].iter().filter_map(|key| text_at(inner, key));
        let words = codes.chain(said.clone()).collect::<Vec<_>>().join(" ").to_lowercase();
        let status = ["code", "status"].iter().find_map(|key| {
            let value = inner.get(key)?;
            let number = value.as_u64().or_else(|| value.as_str()?.parse().ok())?;
            u16::try_from(number).ok().filter(|status| (400..600).contains(status))
        });
        let has_overflow_code = text_at(inner, "code").as_deref() == Some(OVERFLOW_CODE);
        Self {
            said: said.map(|said| shorten_server_text(said.trim())),
            words,
            status,
            has_overflow_code,
        }
    }

    fn error_kind(&self, status: u16) -> ErrorKind {
        let can_overflow = matches!(status, 400 | 413 | 422 | 429 | 500);
        let is_throttled = status == 429 && self.words.contains(AMBIGUOUS_PHRASE);
        let says_so = is_context_overflow(&self.words) || self.has_overflow_code;
        if status == 413 || (can_overflow && says_so && !is_throttled) {
            return ErrorKind::ContextOverflow;
        }
        ErrorKind::Provider
    }

    fn is_final(&self) -> bool {
        PERMANENT_CODES.iter().any(|code| self.words.contains(code))
    }
}

/// Returns a text, or any other value as JSON, because some servers send objects instead of texts.
fn text_at(value: &Value, key: &str) -> Option<String> {
    match value.get(key)? {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

/// Shortens a server's text to one line without the final period, so that it fits inside another
/// sentence.
fn shorten_server_text(text: &str) -> String {
    let line = one_line(text);
    let line = match line.strip_suffix('.') {
        Some(sentence) if !sentence.ends_with('.') => sentence.to_owned(),
        Some(_) | None => line,
    };
    truncate_chars(&line, SAID_CHARS_MAX)
}
