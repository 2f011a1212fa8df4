//! Converts a page to Markdown: its article, or the whole page if it is not an article.

use dom_query::{Document, Selection};
use dom_smoothie::{Config, Readability, TextMode};

/// Elements around the content of a page, which are left out if the page has other content.
const AROUND: [&str; 9] =
    ["aside", "button", "footer", "form", "head", "iframe", "nav", "select", "svg"];

/// Elements without text.
const NO_TEXT: [&str; 3] = ["head", "iframe", "svg"];

/// The minimum length of an article, in bytes. Shorter ones are usually one part of a list.
const ARTICLE_MIN: usize = 500;

/// The minimum part of the page's text that an article has, as a divisor.
const ARTICLE_PART: usize = 3;

/// The maximum number of elements of a page to search for an article. The search takes as long as
/// everything else together, and pages with more are usually references instead of articles.
const ELEMENTS_MAX: usize = 10_000;

/// Converts a page without hidden elements. `url` is its absolute URL.
pub fn page_to_markdown(document: Document, url: &str) -> String {
    let whole = document_to_markdown(&document);
    let config = Config {
        text_mode: TextMode::Markdown,
        max_elements_to_parse: ELEMENTS_MAX,
        ..Config::default()
    };
    let article = Readability::with_document(document, Some(url), Some(config));
    let article = article.and_then(|mut article| article.parse());
    let Ok(article) = article else { return whole };
    let text = tidy_whitespace(&article.text_content);
    if text.len() < ARTICLE_MIN || text.len() < whole.len() / ARTICLE_PART {
        return whole;
    }
    // The search takes the title out of the article.
    let title = article.title.trim();
    if title.is_empty() || text.starts_with("# ") { text } else { format!("# {title}\n\n{text}") }
}

/// Converts the elements that match a selector.
pub fn selection_to_markdown(selection: &Selection<'_>) -> String {
    let parts = selection.nodes().iter().map(|node| tidy_whitespace(&node.md(Some(&NO_TEXT))));
    parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n")
}

fn document_to_markdown(document: &Document) -> String {
    let main = document.select_single("main, [role='main']");
    let content = selection_to_markdown(&main);
    let without_frame = || document.body().map(|body| tidy_whitespace(&body.md(Some(&AROUND))));
    let whole = || tidy_whitespace(&document.md(Some(&NO_TEXT)));
    let is_enough = |text: &String| text.len() >= ARTICLE_MIN;
    Some(content)
        .filter(is_enough)
        .or_else(|| without_frame().filter(is_enough))
        .unwrap_or_else(whole)
}

/// Removes spaces at the ends of lines, and more than one empty line.
fn tidy_whitespace(markdown: &str) -> String {
    let mut tidied = String::with_capacity(markdown.len());
    let mut empty_lines = 0;
    for line in markdown.lines().map(str::trim_end) {
        empty_lines = if line.is_empty() { empty_lines + 1 } else { 0 };
        if empty_lines < 2 {
            tidied.push_str(line);
            tidied.push('\n');
        }
    }
    tidied.trim().to_owned()
}
