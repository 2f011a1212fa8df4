//! Parses a page, removes what a user would not see, and makes its links absolute.

use dom_query::{Document, Selection};
use html_nesting::is_too_nested;
use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::types::text::visible_line;
use url::Url;

/// Elements that users do not see, and line numbers of source code as rustdoc, Pygments and Rouge
/// mark them, because they are not a part of the code. One selector, because each is a walk through
/// the whole page.
const HIDDEN: &str = "script, style, template, noscript, object, embed, applet, [hidden], \
                      [aria-hidden='true'], input[type='hidden'], pre [data-nosnippet], \
                      pre .lineno, pre .linenos, td.linenos";

/// Declarations of a style with which users do not see an element.
const HIDING_STYLES: [&str; 6] = [
    "display:none",
    "visibility:hidden",
    "visibility:collapse",
    "font-size:0",
    "opacity:0",
    "clip-path:inset(100%)",
];

/// Elements with a URL.
const WITH_URL: &str = "[href], [src], form[action], [poster]";

/// Attributes with a URL.
const URL_ATTRIBUTES: [&str; 4] = ["href", "src", "action", "poster"];

/// Parses a page.
///
/// # Errors
/// `limit_reached` if its elements are too deeply nested.
pub fn parse_page(html: &str, url: &Url) -> Result<Document> {
    if is_too_nested(html) {
        let text = "the page is too deeply nested to be parsed";
        let hint = "`mode: \"raw\"` returns its source";
        return Err(Error::new(ErrorKind::LimitReached, text).with_hint(hint));
    }
    let document = Document::from(html);
    make_urls_absolute(&document, url);
    Ok(document)
}

/// Removes elements and comments that users do not see, and line numbers.
pub fn remove_hidden_elements(document: &Document) {
    document.select(HIDDEN).remove();
    for element in document.select("[style]").nodes() {
        if element.attr("style").is_some_and(|style| is_hiding_style(&style)) {
            element.remove_from_parent();
        }
    }
    let comments: Vec<_> =
        document.root().descendants_it().filter(|node| node.is_comment()).collect();
    for comment in comments {
        comment.remove_from_parent();
    }
}

fn is_hiding_style(style: &str) -> bool {
    let style: String = style.chars().filter(|it| !it.is_whitespace()).collect();
    let style = style.to_ascii_lowercase();
    style.split(';').any(|declaration| {
        let declaration = declaration.trim_end_matches("!important");
        HIDING_STYLES.iter().any(|hiding| {
            declaration.strip_prefix(hiding).is_some_and(|unit| {
                // `font-size:0px` hides, `opacity:0.5` does not.
                unit.chars().all(|it| it.is_ascii_alphabetic() || it == '%')
            })
        })
    })
}

fn make_urls_absolute(document: &Document, url: &Url) {
    let base = document.select_single("base[href]").attr("href");
    let base = base.and_then(|base| url.join(&base).ok()).unwrap_or_else(|| url.clone());
    for element in document.select(WITH_URL).nodes() {
        for attribute in URL_ATTRIBUTES {
            let Some(value) = element.attr(attribute) else { continue };
            match base.join(value.trim()) {
                Ok(absolute) if has_shown_scheme(&absolute) => {
                    element.set_attr(attribute, absolute.as_str());
                }
                // A link that runs code or contains its own data.
                Ok(_) | Err(_) => element.remove_attr(attribute),
            }
        }
    }
    // The URLs no longer depend on it.
    document.select("base").remove();
}

fn has_shown_scheme(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https" | "mailto" | "ftp" | "tel")
}

/// Returns the text of the first element that matches, in one line.
pub fn element_text(selection: &Selection<'_>) -> String {
    let text = selection.text();
    visible_line(&text, 500)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_elements_and_comments_are_removed() {
        let html = "<p>seen</p><!-- c1 --><p hidden>h1</p><div style='Display : NONE'>h2</div>\
                    <span style='color:red;visibility:hidden !important'>h3</span><i \
                    aria-hidden=true>h4</i><b style='font-size:0px'>h5</b><script>h6</script>\
                    <u style='opacity: 0.5'>faint</u><template>h7</template>";
        let document = parse_page(html, &"https://a.example/".parse().unwrap()).unwrap();
        remove_hidden_elements(&document);
        let html = document.html();
        for hidden in ["c1", "h1", "h2", "h3", "h4", "h5", "h6", "h7"] {
            assert!(!html.contains(hidden), "{hidden}: {html}");
        }
        assert!(html.contains("seen") && html.contains("faint"));
    }

    #[test]
    fn line_numbers_of_code_are_removed() {
        let html = "<pre><a href=#1 id=1 data-nosnippet>10</a>let a;\n<span class=linenos>11</span>\
                    let b;</pre><table><td class=linenos><pre>12</pre><td>code</table>\
                    <p data-nosnippet>13";
        let document = parse_page(html, &"https://a.example/".parse().unwrap()).unwrap();
        remove_hidden_elements(&document);
        assert_eq!(document.text().split_whitespace().collect::<String>(), "leta;letb;code13");
    }

    #[test]
    fn urls_become_absolute_and_those_that_run_code_are_removed() {
        let html = "<base href='/docs/'><a href='x#y'>a</a><a href='javascript:evil()'>b</a>\
                    <img src='//cdn.example/i.png'><img src='data:image/png;base64,AAAA'>";
        let document = parse_page(html, &"https://a.example/p/q".parse().unwrap()).unwrap();
        let html = document.html();
        assert!(html.contains("https://a.example/docs/x#y"), "{html}");
        assert!(html.contains("https://cdn.example/i.png"), "{html}");
        assert!(!html.contains("javascript") && !html.contains("base64"), "{html}");
    }

    #[test]
    fn deeply_nested_page_is_refused_at_once() {
        let html = "<div>".repeat(1_000_000);
        let error = parse_page(&html, &"https://a.example/".parse().unwrap()).err().unwrap();
        assert_eq!(error.kind, ErrorKind::LimitReached);
    }
}
