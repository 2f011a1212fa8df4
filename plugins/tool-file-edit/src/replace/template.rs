//! The replacement of a match: text and groups as `\1`, `\g<name>`, `$1` or `${name}`.
//!
//! A backslash before an unknown group is an error, because models always mean a group by it. A
//! dollar sign before an unknown group is literal, as in prices and shell variables.

use regex::{Captures, Regex};

use super::group_text;

/// A parsed replacement.
#[derive(Debug)]
pub(super) struct ReplacementTemplate(Vec<ReplacementPiece>);

#[derive(Debug)]
enum ReplacementPiece {
    Text(String),
    Group(usize),
}

impl ReplacementTemplate {
    pub(super) fn parse_template(replacement: &str, regex: &Regex) -> Result<Self, String> {
        let mut template = Self(Vec::new());
        let mut rest = replacement;
        while let Some(at) = rest.find(['\\', '$']) {
            template.push_text(&rest[..at]);
            let (piece, length) = match rest[at..].starts_with('$') {
                true => parse_dollar(&rest[at..], regex),
                false => parse_backslash(&rest[at..], regex)?,
            };
            match piece {
                ReplacementPiece::Text(text) => template.push_text(&text),
                ReplacementPiece::Group(_) => template.0.push(piece),
            }
            rest = &rest[at + length..];
        }
        template.push_text(rest);
        Ok(template)
    }

    /// Creates a replacement from plain text.
    pub(super) fn from_plain_text(replacement: &str) -> Self {
        Self(vec![ReplacementPiece::Text(replacement.to_owned())])
    }

    pub(super) fn expand_groups(&self, captures: &Captures<'_>) -> String {
        self.0.iter().fold(String::new(), |text, piece| match piece {
            ReplacementPiece::Text(piece) => text + piece,
            ReplacementPiece::Group(number) => text + group_text(captures, *number),
        })
    }

    fn push_text(&mut self, text: &str) {
        match self.0.last_mut() {
            Some(ReplacementPiece::Text(before)) => before.push_str(text),
            _ if text.is_empty() => {}
            _ => self.0.push(ReplacementPiece::Text(text.to_owned())),
        }
    }
}

/// Parses a dollar sign and the text after it. Returns the number of bytes too.
fn parse_dollar(text: &str, regex: &Regex) -> (ReplacementPiece, usize) {
    let literal = |text: &str, length| (ReplacementPiece::Text(text.to_owned()), length);
    let behind = &text[1..];
    if behind.starts_with('$') && parse_named_group(&behind[1..], regex).is_some() {
        return literal("$", 2);
    }
    match parse_named_group(behind, regex) {
        Some((number, length)) => (ReplacementPiece::Group(number), length + 1),
        None => literal("$", 1),
    }
}

/// Returns the group named after a dollar sign, with the length of its name.
fn parse_named_group(text: &str, regex: &Regex) -> Option<(usize, usize)> {
    if let Some(inside) = text.strip_prefix('{') {
        let name = &inside[..inside.find('}')?];
        return Some((find_group(name, regex)?, name.len() + 2));
    }
    parse_numbered_group(text, regex)
}

/// Returns the group with the most digits, at most two, that exists.
fn parse_numbered_group(text: &str, regex: &Regex) -> Option<(usize, usize)> {
    let digits = text.bytes().take(2).take_while(u8::is_ascii_digit).count();
    let found = |length: usize| Some((find_group(text.get(..length)?, regex)?, length));
    (1..=digits).rev().find_map(found)
}

fn find_group(name: &str, regex: &Regex) -> Option<usize> {
    match name.parse::<usize>() {
        Ok(number) => (number < regex.captures_len()).then_some(number),
        Err(_) => regex.capture_names().position(|known| known == Some(name)),
    }
}

/// Parses a backslash and the text after it. Returns the number of bytes too.
fn parse_backslash(text: &str, regex: &Regex) -> Result<(ReplacementPiece, usize), String> {
    let unknown =
        |name: &str| Err(format!("`{name}` in the replacement is not a group of the pattern"));
    let literal = |text: &str, length| Ok((ReplacementPiece::Text(text.to_owned()), length));
    let behind = &text[1..];
    let Some(first) = behind.chars().next() else { return literal("\\", 1) };
    match first {
        '\\' => literal("\\", 2),
        'n' => literal("\n", 2),
        't' => literal("\t", 2),
        'r' => literal("\r", 2),
        '0'..='9' => match parse_numbered_group(behind, regex) {
            Some((number, length)) => Ok((ReplacementPiece::Group(number), length + 1)),
            None => unknown(&text[..2]),
        },
        'g' => {
            let name = behind.strip_prefix("g<").and_then(|inside| inside.split_once('>'));
            let Some((name, _)) = name else { return unknown(&text[..2]) };
            let length = name.len() + "\\g<>".len();
            match find_group(name, regex) {
                Some(number) => Ok((ReplacementPiece::Group(number), length)),
                None => unknown(&text[..length]),
            }
        }
        first if first.is_ascii_alphabetic() => {
            Err(format!("`\\{first}` in the replacement is not valid: write `\\\\{first}`"))
        }
        first => literal(&text[..1 + first.len_utf8()], 1 + first.len_utf8()),
    }
}
