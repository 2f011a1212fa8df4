//! Bounds the work of the HTML parser, before it begins.
//!
//! The parser's time grows with the depth of the elements, and with the open formatting elements,
//! which it repeats in each block. Both are estimated here in one pass over the text. The estimate
//! is exact enough for usual pages, and too high for unusual ones.
//!
//! A library of the web tools, not a plugin.
#![forbid(unsafe_code)]

use std::borrow::Cow;
use std::collections::HashMap;

/// The maximum depth of open elements. Browsers stop at 512.
const DEPTH_MAX: usize = 512;

/// The maximum number of formatting elements that the parser may repeat in all blocks.
const REPEATED_MAX: usize = 500_000;

/// Elements without an end tag.
const VOID: [&str; 16] = [
    "area", "base", "basefont", "bgsound", "br", "col", "embed", "frame", "hr", "img", "input",
    "link", "meta", "param", "source", "track",
];

/// Elements whose end tag may be missing. The parser ends them itself.
const OPTIONAL_END: [&str; 17] = [
    "body", "colgroup", "dd", "dt", "head", "html", "li", "optgroup", "option", "p", "rp", "rt",
    "tbody", "td", "tfoot", "thead", "tr",
];

/// Formatting elements, which the parser opens again in the next block.
const FORMATTING: [&str; 14] = [
    "a", "b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u",
];

/// Elements whose content is text.
const TEXT: [&str; 7] = ["iframe", "noframes", "script", "style", "textarea", "title", "xmp"];

/// Elements of drawings and formulas, in which `<x/>` ends an element.
const FOREIGN: [&str; 2] = ["svg", "math"];

/// Elements that end a drawing or formula in which they occur.
const BREAKS_OUT: [&str; 45] = [
    "b",
    "big",
    "blockquote",
    "body",
    "br",
    "center",
    "code",
    "dd",
    "div",
    "dl",
    "dt",
    "em",
    "embed",
    "font",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "head",
    "hr",
    "i",
    "img",
    "li",
    "listing",
    "menu",
    "meta",
    "nobr",
    "ol",
    "p",
    "pre",
    "ruby",
    "s",
    "small",
    "span",
    "strike",
    "strong",
    "sub",
    "sup",
    "table",
    "tt",
    "u",
    "ul",
    "var",
];

/// The elements that are open at a place of the text.
#[derive(Default)]
struct OpenElements {
    counts: HashMap<String, usize>,
    total: usize,
    formatting: usize,
    /// Open drawings and formulas.
    foreign: usize,
    /// Whether the parser is certainly inside of one.
    is_inside_foreign: bool,
    repeated: usize,
}

/// Returns true if the HTML is too deeply nested to parse.
pub fn is_too_nested(html: &str) -> bool {
    let mut open = OpenElements::default();
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        if let Some(comment) = rest.strip_prefix("!--") {
            rest = text_after_comment(comment);
            continue;
        }
        let Some((tag, after)) = read_tag(rest) else { continue };
        rest = after;
        if tag.is_end {
            open.end_element(&tag.name);
        } else {
            open.begin_element(&tag);
            // In a drawing, such elements contain elements.
            if TEXT.contains(&&*tag.name) && open.foreign == 0 {
                rest = text_after_element(rest, &tag.name);
                open.end_element(&tag.name);
            }
        }
        if open.total > DEPTH_MAX || open.repeated > REPEATED_MAX {
            return true;
        }
    }
    false
}

impl OpenElements {
    fn begin_element(&mut self, tag: &Tag<'_>) {
        let name = &*tag.name;
        if BREAKS_OUT.contains(&name) {
            self.is_inside_foreign = false;
        }
        // Each element may be the block in which the parser repeats the formatting.
        self.repeated += self.formatting;
        let is_whole = VOID.contains(&name) || (self.is_inside_foreign && tag.is_self_closing);
        if is_whole || OPTIONAL_END.contains(&name) {
            return;
        }
        self.total += 1;
        self.formatting += usize::from(FORMATTING.contains(&name));
        if FOREIGN.contains(&name) {
            self.foreign += 1;
            self.is_inside_foreign = true;
        }
        match self.counts.get_mut(name) {
            Some(count) => *count += 1,
            None => {
                self.counts.insert(name.to_owned(), 1);
            }
        }
    }

    fn end_element(&mut self, name: &str) {
        let Some(count) = self.counts.get_mut(name).filter(|count| **count > 0) else { return };
        *count -= 1;
        self.total -= 1;
        self.formatting -= usize::from(FORMATTING.contains(&name));
        if FOREIGN.contains(&name) {
            self.foreign -= 1;
            self.is_inside_foreign = self.is_inside_foreign && self.foreign > 0;
        }
    }
}

struct Tag<'a> {
    /// In lower case.
    name: Cow<'a, str>,
    is_end: bool,
    is_self_closing: bool,
}

/// Reads a tag after its `<`. Returns the tag and the text after it, or `None` if the text is not a
/// tag.
fn read_tag(text: &str) -> Option<(Tag<'_>, &str)> {
    let (is_end, text) = match text.strip_prefix('/') {
        Some(text) => (true, text),
        None => (false, text),
    };
    if !text.starts_with(|letter: char| letter.is_ascii_alphabetic()) {
        return None;
    }
    let is_boundary = |letter: char| letter.is_ascii_whitespace() || letter == '/' || letter == '>';
    let name_end = text.find(is_boundary).unwrap_or(text.len());
    let mut name = Cow::Borrowed(&text[..name_end]);
    if name.bytes().any(|byte| byte.is_ascii_uppercase()) {
        name.to_mut().make_ascii_lowercase();
    }
    let mut place = TagPlace::BeforeName;
    let mut is_self_closing = false;
    for (at, byte) in text.bytes().enumerate().skip(name_end) {
        if byte == b'>' && !matches!(place, TagPlace::Quoted(_)) {
            return Some((Tag { name, is_end, is_self_closing }, &text[at + 1..]));
        }
        is_self_closing = byte == b'/' && place.is_outside_value();
        place = place.state_after_byte(byte);
    }
    Some((Tag { name, is_end, is_self_closing: false }, ""))
}

/// A place in a tag, as the parser distinguishes them.
#[derive(Clone, Copy)]
enum TagPlace {
    BeforeName,
    Name,
    AfterName,
    BeforeValue,
    Unquoted,
    Quoted(u8),
}

impl TagPlace {
    fn is_outside_value(self) -> bool {
        matches!(self, Self::BeforeName | Self::Name | Self::AfterName)
    }

    fn state_after_byte(self, byte: u8) -> Self {
        let is_space = byte.is_ascii_whitespace();
        match (self, byte) {
            (Self::Quoted(quote), _) if quote == byte => Self::BeforeName,
            (Self::Quoted(quote), _) => Self::Quoted(quote),
            (Self::BeforeValue, b'"' | b'\'') => Self::Quoted(byte),
            (Self::BeforeValue, _) if is_space => Self::BeforeValue,
            (Self::Unquoted, _) if is_space => Self::BeforeName,
            (Self::BeforeValue | Self::Unquoted, _) => Self::Unquoted,
            (Self::BeforeName, _) if is_space => Self::BeforeName,
            (_, b'/') => Self::BeforeName,
            (Self::Name | Self::AfterName, b'=') => Self::BeforeValue,
            (Self::Name | Self::AfterName, _) if is_space => Self::AfterName,
            (Self::BeforeName | Self::Name | Self::AfterName, _) => Self::Name,
        }
    }
}

/// Returns the text after a comment that has begun.
fn text_after_comment(text: &str) -> &str {
    if let Some(rest) = text.strip_prefix('>').or_else(|| text.strip_prefix("->")) {
        return rest;
    }
    let mut rest = text;
    while let Some(at) = rest.find("--") {
        let after = &rest[at + 2..];
        if let Some(after) = after.strip_prefix('>').or_else(|| after.strip_prefix("!>")) {
            return after;
        }
        // The second dash may begin the end.
        rest = &rest[at + 1..];
    }
    ""
}

/// Returns the text after the end tag of an element whose content is text.
fn text_after_element<'a>(text: &'a str, name: &str) -> &'a str {
    let mut rest = text;
    while let Some(at) = rest.find("</") {
        rest = &rest[at + 2..];
        let is_name = rest.get(..name.len()).is_some_and(|it| it.eq_ignore_ascii_case(name));
        if is_name {
            return rest.find('>').map_or("", |end| &rest[end + 1..]);
        }
    }
    ""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_pages_are_not_too_nested() {
        let page = "<!doctype html><html><body><!-- <div> --><p>a<p>b<br><img src='a>b'>";
        assert!(!is_too_nested(&page.repeat(2000)));
        let list = format!("<ul>{}</ul>", "<li><a href=x>y</a> <b>z</b>".repeat(5000));
        assert!(!is_too_nested(&list));
        let drawing = format!("<svg>{}</svg>", "<path d='M0 0'/>".repeat(5000));
        assert!(!is_too_nested(&drawing));
        let script = format!("<script>{}</script><p>x", "'<div>' + ".repeat(5000));
        assert!(!is_too_nested(&script));
        assert!(!is_too_nested(&"<div>".repeat(DEPTH_MAX)));
    }

    #[test]
    fn deep_elements_are_found_in_every_form() {
        for hostile in [
            "<div>",
            "<div/>",
            "<DIV a='>'>",
            "<div></span>",
            "<svg><foreignObject>",
            "<x-y>",
            "<table><td>",
            "<svg><div/>",
            "<b a=1><i>",
            "<!--><div>",
            "<!----!><div>",
            "<p a=b=\"><div>",
            "<p =\"><div>",
            "<svg><title><g>",
            "<svg><foreignObject><div></div></foreignObject><style><g>",
        ] {
            assert!(is_too_nested(&hostile.repeat(2000)), "{hostile}");
        }
    }

    #[test]
    fn open_formatting_is_not_repeated_too_often() {
        let page = format!("{}{}", "<b a=1>".repeat(200), "<p>x".repeat(10_000));
        assert!(is_too_nested(&page));
        assert!(!is_too_nested(&format!("<b><i>{}", "<p>x".repeat(10_000))));
    }
}
