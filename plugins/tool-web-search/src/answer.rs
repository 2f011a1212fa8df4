//! Reads the answer of a backend: results, or the reason why there are none.

use dom_query::{Document, Matcher};
use html_nesting::is_too_nested;
use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::serde_json;
use jaato_plugin_sdk::types::text::visible_line;
use url::Url;

use crate::backend::Backend;

/// The longest text of a result, in characters.
const SNIPPET_LETTERS_MAX: usize = 500;
const TITLE_LETTERS_MAX: usize = 200;
const URL_BYTES_MAX: usize = 2_000;

/// The maximum size of an answer, in bytes.
pub const ANSWER_BYTES_MAX: usize = 4 * 1024 * 1024;

/// One result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchResult {
    pub title: String,
    pub url: String,
    pub snippet: String,
    pub date: String,
}

/// Why a search has no results, apart from finding nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SearchFailure {
    /// The service takes jaato for a robot.
    Blocked,
    /// Too many searches. The server may say how long to wait.
    RateLimited(Option<u64>),
    /// The account has no searches left.
    QuotaSpent,
    /// The key is wrong.
    KeyRefused,
    /// The service does not answer in the wanted form.
    NotAllowed,
    /// The engines of the service did not answer.
    EnginesFailed(String),
    /// Another status.
    Status(u16),
    /// The answer cannot be read.
    Unreadable(String),
}

/// Reads an answer.
pub fn parse_search_answer(
    backend: &Backend,
    status: u16,
    retry_after: Option<&str>,
    body: &[u8],
) -> Result<Vec<SearchResult>, SearchFailure> {
    let text = String::from_utf8_lossy(body);
    let has_key = !backend.key.is_empty();
    let failure = match status {
        200 => {
            return if backend.html {
                parse_html_answer(backend, &text)
            } else {
                parse_json_answer(backend, &text)
            };
        }
        202 if backend.html => SearchFailure::Blocked,
        401 => SearchFailure::KeyRefused,
        402 | 432 | 433 => SearchFailure::QuotaSpent,
        403 if backend.html => SearchFailure::Blocked,
        403 | 422 if has_key => SearchFailure::KeyRefused,
        403 => SearchFailure::NotAllowed,
        429 => SearchFailure::RateLimited(retry_after.and_then(|text| text.trim().parse().ok())),
        other => SearchFailure::Status(other),
    };
    Err(failure)
}

fn parse_json_answer(backend: &Backend, text: &str) -> Result<Vec<SearchResult>, SearchFailure> {
    let answer: Value = serde_json::from_str(text)
        .map_err(|_| SearchFailure::Unreadable("the answer is not JSON".to_owned()))?;
    let list = answer.pointer(&backend.results).and_then(Value::as_array);
    let fields = &backend.fields;
    let results: Vec<SearchResult> = list
        .into_iter()
        .flatten()
        .filter_map(|found| {
            let field = |pointer: &str| {
                let value = found.pointer(pointer).filter(|_| !pointer.is_empty());
                value.and_then(Value::as_str).unwrap_or_default()
            };
            let (title, snippet) = (
                strip_highlight_marks(field(&fields.title)),
                strip_highlight_marks(field(&fields.snippet)),
            );
            search_result(&title, field(&fields.url), &snippet, field(&fields.date))
        })
        .collect();
    let failed =
        answer.pointer(&backend.failed_engines).filter(|_| !backend.failed_engines.is_empty());
    let failed = failed.and_then(Value::as_array).filter(|failed| !failed.is_empty());
    match failed {
        Some(failed) if results.is_empty() => {
            let name = |it: &Value| {
                let parts: Vec<&str> = match it {
                    Value::Array(parts) => parts.iter().filter_map(Value::as_str).collect(),
                    other => other.as_str().into_iter().collect(),
                };
                visible_line(&parts.join(": "), 60)
            };
            let names: Vec<String> = failed.iter().take(10).map(name).collect();
            Err(SearchFailure::EnginesFailed(names.join(", ")))
        }
        _ => Ok(results),
    }
}

fn parse_html_answer(backend: &Backend, html: &str) -> Result<Vec<SearchResult>, SearchFailure> {
    if is_too_nested(html) {
        let text = "the page is too deeply nested to be parsed";
        return Err(SearchFailure::Unreadable(text.to_owned()));
    }
    let document = Document::from(html);
    let selects = |selector: &str| {
        Matcher::new(selector)
            .map_err(|_| SearchFailure::Unreadable(format!("`{selector}` is not a CSS selector")))
    };
    if !backend.blocked.is_empty() && document.select_matcher(&selects(&backend.blocked)?).exists()
    {
        return Err(SearchFailure::Blocked);
    }
    let fields = &backend.fields;
    let (title, url, snippet) =
        (selects(&fields.title)?, selects(&fields.url)?, selects(&fields.snippet)?);
    let mut results: Vec<SearchResult> = Vec::new();
    for found in document.select_matcher(&selects(&backend.results)?).iter() {
        let text = |matcher: &Matcher| found.select_single_matcher(matcher).text().to_string();
        let href = found.select_single_matcher(&url).attr("href").unwrap_or_default();
        let is_advertisement =
            !backend.advertisements.is_empty() && href.starts_with(&backend.advertisements);
        if is_advertisement {
            continue;
        }
        let target = unwrap_redirect_url(backend, &href);
        results.extend(search_result(&text(&title), &target, &text(&snippet), ""));
    }
    results.dedup_by(|a, b| a.url == b.url);
    Ok(results)
}

/// Returns the real URL of a result that leads through the service.
fn unwrap_redirect_url(backend: &Backend, href: &str) -> String {
    let whole = match href.strip_prefix("//") {
        Some(rest) => format!("https://{rest}"),
        None => href.to_owned(),
    };
    let inner = Url::parse(&whole).ok().filter(|_| !backend.unwrap.is_empty()).and_then(|url| {
        let mut pairs = url.query_pairs();
        pairs.find(|(name, _)| *name == backend.unwrap).map(|(_, value)| value.into_owned())
    });
    inner.unwrap_or(whole)
}

/// Returns a result, if it has a URL of the web.
fn search_result(title: &str, url: &str, snippet: &str, date: &str) -> Option<SearchResult> {
    let url = Url::parse(url.trim()).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
    let url = String::from(url);
    (url.len() <= URL_BYTES_MAX).then(|| SearchResult {
        title: visible_line(title, TITLE_LETTERS_MAX),
        url,
        snippet: visible_line(snippet, SNIPPET_LETTERS_MAX),
        date: visible_line(date, 40),
    })
}

/// Removes the marks for found words, and decodes the usual entities.
fn strip_highlight_marks(text: &str) -> String {
    let mut plain = text.to_owned();
    for mark in ["<strong>", "</strong>", "<b>", "</b>", "<em>", "</em>"] {
        plain = plain.replace(mark, "");
    }
    for (entity, letter) in [
        ("&quot;", "\""),
        ("&#x27;", "'"),
        ("&#39;", "'"),
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&amp;", "&"),
    ] {
        plain = plain.replace(entity, letter);
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::built_in_backends;

    fn parse_backend_answer(
        name: &str,
        status: u16,
        body: &str,
    ) -> Result<Vec<SearchResult>, SearchFailure> {
        parse_search_answer(
            &built_in_backends().unwrap()[name],
            status,
            Some("30"),
            body.as_bytes(),
        )
    }

    fn expected_result(title: &str, url: &str, snippet: &str, date: &str) -> SearchResult {
        let [title, url, snippet, date] = [title, url, snippet, date].map(str::to_owned);
        SearchResult { title, url, snippet, date }
    }

    #[test]
    fn results_of_each_service_are_read() {
        let brave = r#"{"web":{"results":[{"title":"T","url":"https://a.example/","description":"<strong>x</strong> &amp; y","age":"2 days ago"},{"title":"no url"},{"url":"javascript:x"}]}}"#;
        assert_eq!(
            parse_backend_answer("brave", 200, brave).unwrap(),
            [expected_result("T", "https://a.example/", "x & y", "2 days ago")]
        );
        let tavily =
            r#"{"results":[{"title":"T","url":"https://a.example/","content":"c\u200b"}]}"#;
        assert_eq!(
            parse_backend_answer("tavily", 200, tavily).unwrap(),
            [expected_result("T", "https://a.example/", "c", "")]
        );
        let duckduckgo = "<div class='result'><h2><a href='https://duckduckgo.com/y.js?ad=1'>Ad</a></h2></div>\
            <div class='result results_links'><h2><a class=result__a href='//duckduckgo.com/l/?uddg=https%3A%2F%2Fa.example%2Fx&rut=1'>A <b>b</b></a></h2>\
            <a class='result__snippet'>Some text</a></div>";
        assert_eq!(
            parse_backend_answer("duckduckgo", 200, duckduckgo).unwrap(),
            [expected_result("A b", "https://a.example/x", "Some text", "")]
        );
    }

    #[test]
    fn nothing_found_differs_from_every_failure() {
        assert_eq!(parse_backend_answer("brave", 200, "{}"), Ok(vec![]));
        assert_eq!(
            parse_backend_answer("searxng", 200, r#"{"results":[],"unresponsive_engines":[]}"#),
            Ok(vec![])
        );
        assert_eq!(parse_backend_answer("duckduckgo", 200, "<p>No results."), Ok(vec![]));
        let failed = r#"{"results":[],"unresponsive_engines":[["google","CAPTCHA"]]}"#;
        assert_eq!(
            parse_backend_answer("searxng", 200, failed),
            Err(SearchFailure::EnginesFailed("google: CAPTCHA".to_owned()))
        );
        let captcha = "<form id='challenge-form'>";
        assert_eq!(parse_backend_answer("duckduckgo", 200, captcha), Err(SearchFailure::Blocked));
        assert_eq!(parse_backend_answer("duckduckgo", 202, ""), Err(SearchFailure::Blocked));
        assert_eq!(parse_backend_answer("brave", 401, ""), Err(SearchFailure::KeyRefused));
        assert_eq!(parse_backend_answer("brave", 422, ""), Err(SearchFailure::KeyRefused));
        assert_eq!(parse_backend_answer("tavily", 432, ""), Err(SearchFailure::QuotaSpent));
        assert_eq!(
            parse_backend_answer("brave", 429, ""),
            Err(SearchFailure::RateLimited(Some(30)))
        );
        assert_eq!(parse_backend_answer("searxng", 403, ""), Err(SearchFailure::NotAllowed));
        assert_eq!(parse_backend_answer("brave", 500, ""), Err(SearchFailure::Status(500)));
        assert!(matches!(
            parse_backend_answer("brave", 200, "<html>"),
            Err(SearchFailure::Unreadable(_))
        ));
    }

    #[test]
    fn deeply_nested_page_is_refused_at_once() {
        let page = "<div>".repeat(500_000);
        let text = "the page is too deeply nested to be parsed".to_owned();
        assert_eq!(
            parse_backend_answer("duckduckgo", 200, &page),
            Err(SearchFailure::Unreadable(text))
        );
    }
}
