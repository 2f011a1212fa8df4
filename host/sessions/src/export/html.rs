//! A transcript as one HTML page that loads nothing and runs nothing.
//!
//! Invariants: each text of the transcript passes through [`escape_html`] or the Markdown renderer,
//! which does the same. The page has no script and no link to load, and its policy forbids both.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jaato_types::media_type::{MEDIA_TYPE_HEAD_BYTES, detect_media_type};
use jaato_types::text::{one_line, truncate_chars};
use jaato_types::{DataPart, Part, ToolCall, ToolResult};
use serde_json::Value;

use super::answer_html::markdown_html;
use super::blocks::{
    PairedResults, TextBlock, attachment_line, data_value, describe_sender, json_block,
    object_blocks, tools_line, unknown_line, value_blocks,
};
use super::transcript::{Transcript, TranscriptMessage};
use super::visible::{format_time, visible_text};

/// The look of the page, in light and dark.
const STYLE: &str = include_str!("page.css");

/// Forbids everything but the page's own style and its images.
const POLICY: &str = "default-src 'none'; img-src data:; style-src 'unsafe-inline'";

/// The largest image that the page holds. A larger one is only named.
const IMAGE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// The most characters of a call's arguments in the line that opens it.
const PREVIEW_CHARS_MAX: usize = 100;

/// The bytes of a blob, by its id.
type BlobLookup<'a> = &'a dyn Fn(&str) -> Option<Vec<u8>>;

/// Writes a transcript as an HTML page without images.
pub fn to_html(transcript: &Transcript) -> String {
    to_html_with_blobs(transcript, &|_| None)
}

/// Writes a transcript as an HTML page. `blob` returns the bytes of an attachment by the blob's id.
/// The page holds PNG, JPEG, GIF and WebP images, and names all other attachments.
pub fn to_html_with_blobs(
    transcript: &Transcript,
    blob: &dyn Fn(&str) -> Option<Vec<u8>>,
) -> String {
    let results = PairedResults::from_transcript(transcript);
    let writer = PageWriter { results, blob };
    let title = format_line(&transcript.name);
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n<header>\n<h1>{title}</h1>\n<p>\
         <span>Session <code>{}</code></span> <span>Workspace <code>{}</code></span> \
         <span>Begun {}</span></p>\n</header>\n<main>\n",
        format_line(transcript.id.as_str()),
        format_line(&transcript.workspace),
        format_time(transcript.begun_ms),
    );
    for message in &transcript.messages {
        page += &writer.message_html(message);
    }
    page + "</main>\n</body>\n</html>\n"
}

/// Escapes a text for an element or a quoted attribute.
pub fn escape_html(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\'' => escaped += "&#39;",
            other => escaped.push(other),
        }
    }
    escaped
}

fn format_line(text: &str) -> String {
    escape_html(&one_line(&visible_text(text)))
}

struct PageWriter<'a> {
    results: PairedResults<'a>,
    blob: BlobLookup<'a>,
}

impl PageWriter<'_> {
    fn message_html(&self, message: &TranscriptMessage) -> String {
        let shown = message.message.parts.iter().filter(|part| self.results.shows_part(part));
        let parts: Vec<String> = shown.map(|part| self.part_html(part)).collect();
        if parts.is_empty() {
            return String::new();
        }
        let sender = describe_sender(message);
        let class = sender.split(' ').next().unwrap_or(sender).to_lowercase();
        let state = if message.is_sent() { "" } else { " unsent" };
        let mut html = format!("<article class=\"{class}{state}\">\n<h2>{sender}");
        if let Some(model) = &message.model {
            let _ = write!(html, " <span class=\"model\">{}</span>", format_line(model));
        }
        if let Some(note) = &message.note {
            let _ = write!(html, " <span class=\"note\">{}</span>", format_line(note));
        }
        let _ = writeln!(html, " <time>{}</time></h2>", format_time(message.at_ms));
        html + &parts.concat() + "</article>\n"
    }

    fn part_html(&self, part: &Part) -> String {
        match part {
            Part::Text { text, .. } => text_html(text),
            Part::Thought { text, .. } => format!(
                "<details class=\"thought\"><summary>Reasoning</summary>\n{}</details>\n",
                text_html(text)
            ),
            Part::ToolCall(call) => self.call_html(call),
            Part::ToolResult(result) => {
                let name = format_line(result.name.as_str());
                format!(
                    "<details class=\"call\"><summary><code>{name}</code></summary>\n{}</details>\n",
                    self.result_html(result)
                )
            }
            Part::Data(data) => self.data_html(data),
            Part::ToolsChanged(changed) => format_aside(&tools_line(changed)),
            Part::Unknown(part) => format_aside(&unknown_line(part)),
            _ => String::new(),
        }
    }

    fn call_html(&self, call: &ToolCall) -> String {
        let result = self.results.result_of_call(&call.id);
        let (state, word) = match result {
            Some(result) if result.is_error => (" failed", "<b>error</b>"),
            Some(_) => ("", ""),
            None => (" failed", "<b>no result</b>"),
        };
        let mut html = format!(
            "<details class=\"call{state}\"><summary><code>{}</code> <span>{}</span>{word}\
             </summary>\n<h3>Arguments</h3>\n",
            format_line(call.name.as_str()),
            arguments_preview(&call.arguments),
        );
        html.extend(value_blocks(&call.arguments).iter().map(block_html));
        html.extend(result.map(|result| self.result_html(result)));
        html + "</details>\n"
    }

    fn result_html(&self, result: &ToolResult) -> String {
        let title = if result.is_error { "Error" } else { "Result" };
        let mut html = format!("<h3>{title}</h3>\n");
        html.extend(object_blocks(&result.content).iter().map(block_html));
        html.extend(result.attachments.iter().map(|data| self.data_html(data)));
        html
    }

    fn data_html(&self, data: &DataPart) -> String {
        if let Some(value) = data_value(data) {
            return block_html(&json_block(&value));
        }
        let name = attachment_line(data);
        let bytes = data.blob_id().and_then(|id| (self.blob)(id));
        match bytes.as_deref().and_then(image_url) {
            Some(url) => {
                format!(
                    "<p class=\"image\"><img src=\"{url}\" alt=\"{}\"></p>\n",
                    format_line(&name)
                )
            }
            None => format_aside(&name),
        }
    }
}

/// Returns the URL of an image with its bytes. Its type is the one that its bytes show.
fn image_url(bytes: &[u8]) -> Option<String> {
    let head = &bytes[..bytes.len().min(MEDIA_TYPE_HEAD_BYTES)];
    let media_type = detect_media_type(head).filter(|it| it.starts_with("image/"))?;
    let fits = bytes.len() <= IMAGE_BYTES_MAX;
    fits.then(|| format!("data:{media_type};base64,{}", STANDARD.encode(bytes)))
}

fn text_html(text: &str) -> String {
    format!("<div class=\"text\">\n{}</div>\n", markdown_html(&visible_text(text)))
}

fn block_html(block: &TextBlock) -> String {
    let label = block.label.as_deref().map(|label| format!("<h4>{}</h4>\n", format_line(label)));
    format!("{}<pre>{}</pre>\n", label.unwrap_or_default(), escape_html(&block.text))
}

fn format_aside(text: &str) -> String {
    format!("<p class=\"aside\">{}</p>\n", format_line(text))
}

/// Returns a call's arguments in a line: the only text, or the first of several, or the JSON.
fn arguments_preview(arguments: &Value) -> String {
    let first = arguments.as_object().and_then(|fields| fields.values().find_map(Value::as_str));
    let text = first.map_or_else(|| arguments.to_string(), str::to_owned);
    escape_html(&truncate_chars(&one_line(&visible_text(&text)), PREVIEW_CHARS_MAX))
}
