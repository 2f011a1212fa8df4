//! Markdown of a message as HTML that cannot do anything: HTML in it is text, and links lead only
//! to the web and to mail.

use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd, html};

use super::html::escape_html;

/// The longest Markdown that is rendered. A longer text is shown as it is, because rendering takes
/// more time for each nested block.
const MARKDOWN_BYTES_MAX: usize = 1024 * 1024;

/// Renders Markdown. The text has no control characters.
pub fn markdown_html(text: &str) -> String {
    if text.len() > MARKDOWN_BYTES_MAX {
        return format!("<pre>{}</pre>", escape_html(text));
    }
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut open_links = Vec::new();
    let events =
        Parser::new_ext(text, options).filter_map(|event| sanitize_event(event, &mut open_links));
    let mut page = String::new();
    html::push_html(&mut page, events);
    page
}

/// Replaces HTML by text, images by links, and removes links to other places. `open_links` applies
/// to each open link whether it is kept.
fn sanitize_event<'a>(event: Event<'a>, open_links: &mut Vec<bool>) -> Option<Event<'a>> {
    match event {
        Event::Html(text) | Event::InlineHtml(text) => Some(Event::Text(text)),
        // An HTML block has no tags of its own, so its text needs a paragraph.
        Event::Start(Tag::HtmlBlock) => Some(Event::Start(Tag::Paragraph)),
        Event::End(TagEnd::HtmlBlock) => Some(Event::End(TagEnd::Paragraph)),
        // A page that loads an image tells its server who reads it.
        Event::Start(
            Tag::Link { link_type, dest_url, title, id }
            | Tag::Image { link_type, dest_url, title, id },
        ) => {
            let is_kept = is_web_or_mail(&dest_url) && !open_links.contains(&true);
            open_links.push(is_kept);
            is_kept.then_some(Event::Start(Tag::Link { link_type, dest_url, title, id }))
        }
        Event::End(TagEnd::Link | TagEnd::Image) => {
            open_links.pop().unwrap_or_default().then_some(Event::End(TagEnd::Link))
        }
        // The writer's own line breaks are usually meant.
        Event::SoftBreak => Some(Event::Text(CowStr::Borrowed("\n"))),
        other => Some(other),
    }
}

fn is_web_or_mail(target: &str) -> bool {
    let target = target.to_ascii_lowercase();
    ["https://", "http://", "mailto:"].iter().any(|scheme| target.starts_with(scheme))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn html_scripts_and_foreign_images_are_text_or_links() {
        for (markdown, expected) in [
            ("a **b**", "<p>a <strong>b</strong></p>\n"),
            ("<script>x</script>", "<p>&lt;script&gt;x&lt;/script&gt;</p>\n"),
            ("a <b onclick=x>c", "<p>a &lt;b onclick=x&gt;c</p>\n"),
            ("[a](javascript:x)", "<p>a</p>\n"),
            ("[a](JavaScript:x) [b](data:text/html,x)", "<p>a b</p>\n"),
            ("[a](https://a.example/\"x)", "<p><a href=\"https://a.example/%22x\">a</a></p>\n"),
            ("![a](https://a.example)", "<p><a href=\"https://a.example\">a</a></p>\n"),
            (
                "[![a](https://b.example)](https://a.example)",
                "<p><a href=\"https://a.example\">a</a></p>\n",
            ),
            (
                "```a\" onx=\"\n<\n```",
                "<pre><code class=\"language-a&quot;\">&lt;\n</code></pre>\n",
            ),
        ] {
            assert_eq!(markdown_html(markdown), expected, "{markdown}");
        }
        let long = "<".repeat(MARKDOWN_BYTES_MAX + 1);
        assert!(markdown_html(&long).starts_with("<pre>&lt;&lt;"));
        assert!(markdown_html(&long[..MARKDOWN_BYTES_MAX]).starts_with("<p>"));
    }
}
