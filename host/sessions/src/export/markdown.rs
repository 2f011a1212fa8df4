//! A transcript as Markdown that reads well in a terminal, too.
//!
//! A text cannot break out of its place: if it would end in an open block or contains HTML, it is
//! shown as it is, in a fence that is longer than any in the text.

use jaato_types::text::one_line;
use jaato_types::{DataPart, Part, ToolCall, ToolResult};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use super::blocks::{
    PairedResults, TextBlock, attachment_line, data_value, describe_sender, json_block,
    object_blocks, tools_line, unknown_line, value_blocks,
};
use super::transcript::{Transcript, TranscriptMessage};
use super::visible::{format_time, visible_text};

/// Writes a transcript as Markdown.
pub fn to_markdown(transcript: &Transcript) -> String {
    let results = PairedResults::from_transcript(transcript);
    let mut blocks = vec![
        format!("# {}", escape_inline(&transcript.name)),
        format!(
            "- Session: {}\n- Workspace: {}\n- Begun: {}",
            code_span(transcript.id.as_str()),
            code_span(&transcript.workspace),
            format_time(transcript.begun_ms)
        ),
    ];
    for message in &transcript.messages {
        let shown: Vec<&Part> =
            message.message.parts.iter().filter(|part| results.shows_part(part)).collect();
        if shown.is_empty() {
            continue;
        }
        blocks.push(message_heading(message));
        blocks.extend(shown.into_iter().map(|part| part_blocks(part, &results)));
    }
    blocks.join("\n\n") + "\n"
}

fn message_heading(message: &TranscriptMessage) -> String {
    let mut words = vec![describe_sender(message).to_owned()];
    words.extend(message.model.as_deref().map(escape_inline));
    words.push(format_time(message.at_ms));
    words.extend(message.note.as_deref().map(|note| format!("**{}**", escape_inline(note))));
    format!("## {}", words.join(" · "))
}

fn part_blocks(part: &Part, results: &PairedResults<'_>) -> String {
    match part {
        Part::Text { text, .. } => markdown_text(text),
        Part::Thought { text, .. } => {
            quote_block(&format!("**Reasoning**\n\n{}", markdown_text(text)))
        }
        Part::ToolCall(call) => call_blocks(call, results.result_of_call(&call.id)),
        Part::ToolResult(result) => result_blocks(result),
        Part::Data(data) => data_block(data),
        Part::ToolsChanged(changed) => format!("*{}*", escape_inline(&tools_line(changed))),
        Part::Unknown(part) => format!("*{}*", escape_inline(&unknown_line(part))),
        _ => String::new(),
    }
}

fn call_blocks(call: &ToolCall, result: Option<&ToolResult>) -> String {
    let mut blocks = vec![format!("**Tool call** {}", code_span(call.name.as_str()))];
    blocks.extend(value_blocks(&call.arguments).iter().map(text_block));
    blocks.push(result.map_or_else(|| "*No result.*".to_owned(), result_blocks));
    blocks.join("\n\n")
}

fn result_blocks(result: &ToolResult) -> String {
    let title = if result.is_error { "**Error**" } else { "**Result**" };
    let mut blocks = vec![format!("{title} {}", code_span(result.name.as_str()))];
    blocks.extend(object_blocks(&result.content).iter().map(text_block));
    blocks.extend(result.attachments.iter().map(data_block));
    blocks.join("\n\n")
}

fn data_block(data: &DataPart) -> String {
    match data_value(data) {
        Some(value) => text_block(&json_block(&value)),
        None => format!("*{}*", escape_inline(&attachment_line(data))),
    }
}

fn text_block(block: &TextBlock) -> String {
    let fenced = fenced_block(block.language, &block.text);
    match &block.label {
        Some(label) => format!("{}:\n\n{fenced}", code_span(label)),
        None => fenced,
    }
}

/// Returns a text as Markdown if it is complete, and otherwise in a fence. An answer often breaks
/// off in a block of code, which is then closed.
fn markdown_text(text: &str) -> String {
    let text = visible_text(text);
    let text = text.trim_matches('\n').trim_end();
    if is_self_contained(text) {
        return text.to_owned();
    }
    let closed = last_fence(text).map(|fence| format!("{text}\n{fence}"));
    closed.filter(|closed| is_self_contained(closed)).unwrap_or_else(|| fenced_block("text", text))
}

/// Returns the last fence that begins or ends a block of code.
fn last_fence(text: &str) -> Option<&str> {
    text.lines().rev().find_map(|line| {
        let sign = line.chars().next().filter(|sign| "`~".contains(*sign))?;
        let length = line.find(|other| other != sign).unwrap_or(line.len());
        (length >= 3).then(|| &line[..length])
    })
}

/// Returns true if a heading after the text is a heading of the document, and the text has no HTML,
/// which could hide the rest from a reader.
fn is_self_contained(text: &str) -> bool {
    let document = format!("{text}\n\n###### next\n");
    let mut depth = 0_usize;
    let mut last_heading = None;
    for (event, place) in Parser::new_ext(&document, Options::ENABLE_TABLES).into_offset_iter() {
        match event {
            Event::Start(tag) => {
                if depth == 0 && matches!(tag, Tag::Heading { .. }) {
                    last_heading = Some(place.start);
                }
                depth += 1;
            }
            Event::End(TagEnd::HtmlBlock) | Event::Html(_) | Event::InlineHtml(_) => return false,
            Event::End(_) => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    last_heading == Some(text.len() + "\n\n".len())
}

fn fenced_block(language: &str, text: &str) -> String {
    let fence = "`".repeat(longest_backtick_run(text).max(2) + 1);
    let text = text.strip_suffix('\n').unwrap_or(text);
    format!("{fence}{language}\n{text}\n{fence}")
}

/// Writes a text as code in a line.
fn code_span(text: &str) -> String {
    let text = one_line(&visible_text(text));
    let run = longest_backtick_run(&text);
    if run == 0 && !text.is_empty() {
        return format!("`{text}`");
    }
    let ticks = "`".repeat(run + 1);
    format!("{ticks} {text} {ticks}")
}

fn longest_backtick_run(text: &str) -> usize {
    text.split(|character| character != '`').map(str::len).max().unwrap_or_default()
}

/// Writes a text in a line, with its markup escaped.
fn escape_inline(text: &str) -> String {
    let text = one_line(&visible_text(text));
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if "\\`*_[]<>#&|~".contains(character) {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

fn quote_block(text: &str) -> String {
    let lines = text.lines().map(|line| format!("> {line}").trim_end().to_owned());
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_would_swallow_the_rest_is_fenced() {
        for whole in
            ["a", "```rust\nx\n```", "- a\n  - b", "| a |\n|---|\n| b |", "# title", "a\n="]
        {
            assert_eq!(markdown_text(whole), whole);
        }
        assert_eq!(markdown_text("a\n```\nx"), "a\n```\nx\n```");
        assert_eq!(markdown_text("~~~~ rust\nx"), "~~~~ rust\nx\n~~~~");
        assert_eq!(markdown_text("~~~~\n```"), "````text\n~~~~\n```\n````");
        assert_eq!(markdown_text("- a\n  ```\n  x"), "- a\n  ```\n  x");
        assert_eq!(markdown_text("<!-- a"), "```text\n<!-- a\n```");
        assert_eq!(markdown_text("a <b>c</b>"), "```text\na <b>c</b>\n```");
        assert_eq!(markdown_text("```\n<!--\n```\n<!--"), "````text\n```\n<!--\n```\n<!--\n````");
    }

    #[test]
    fn code_and_names_cannot_end_their_own_markup() {
        assert_eq!(code_span("a``b"), "``` a``b ```");
        assert_eq!(code_span("a\nb"), "`a b`");
        assert_eq!(escape_inline("# *a* <b>\n[c](d)"), "\\# \\*a\\* \\<b\\> \\[c\\](d)");
    }
}
