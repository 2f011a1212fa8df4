//! One edit of a file's bytes: what is replaced, and what is nearest to it where it is not there.
//! Pure.

mod nearest;
mod target;

pub use target::{Anchors, Missed};

use std::borrow::Cow;

use crate::text::{Decoded, LineView, decode};

/// Characters of a text that an error quotes.
const QUOTED_CHARS_MAX: usize = 100;

/// An edit: the one place of `old` becomes `new`.
#[derive(Debug, Clone, Copy)]
pub struct Edit<'a> {
    /// What stands there.
    pub old: &'a str,
    /// What shall stand there.
    pub new: &'a str,
    /// What stands around it.
    pub anchors: Anchors<'a>,
}

/// Why a file cannot be edited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failed {
    /// It is no text.
    NotText,
    /// Its encoding, of this name, lacks a character.
    Lacks(char, String),
    /// There is not one place; the nearest lines, where there are some.
    Missed(Missed, Option<String>),
}

/// Edits the bytes of a file; those that are not edited stay.
///
/// # Errors
/// Why it cannot be done.
pub fn edit(bytes: &[u8], edit: Edit<'_>) -> Result<Vec<u8>, Failed> {
    let decoded = decode(bytes).map_err(|_| Failed::NotText)?;
    let view = LineView::new(&decoded.text);
    let plain = |text: &str| text.replace("\r\n", "\n");
    let (old, prologue, epilogue) =
        (plain(edit.old), plain(edit.anchors.prologue), plain(edit.anchors.epilogue));
    let anchors = Anchors { prologue: &prologue, epilogue: &epilogue };
    let place = target::find(view.text(), &old, anchors).map_err(|missed| {
        let near = match missed {
            Missed::NotFound => {
                nearest::nearest(view.text(), if old.is_empty() { &prologue } else { &old })
            }
            Missed::NotBetween(_) | Missed::Ambiguous { .. } | Missed::Empty => None,
        };
        Failed::Missed(missed, near)
    })?;
    let text = view.replace(&[(place, edit.new)]);
    encode(&decoded, text.into())
}

/// Writes a whole new text as the bytes of a file: in the encoding and with the line ends of what
/// is there.
///
/// # Errors
/// The encoding lacks a character.
pub fn rewrite(bytes: &[u8], new: &str) -> Result<Vec<u8>, Failed> {
    // What is no text may become one.
    let Ok(decoded) = decode(bytes) else { return Ok(new.as_bytes().to_vec()) };
    let view = LineView::new(&decoded.text);
    encode(&decoded, view.rewrite(new))
}

fn encode(decoded: &Decoded<'_>, text: Cow<'_, str>) -> Result<Vec<u8>, Failed> {
    let name = || decoded.charset.remark().unwrap_or_default();
    decoded.charset.encode(text).map_err(|lacking| Failed::Lacks(lacking, name()))
}

/// Quotes the beginning of a text.
pub fn quoted(text: &str) -> String {
    let cut: String = text.chars().take(QUOTED_CHARS_MAX).collect();
    let more = if cut.len() < text.len() { "…" } else { "" };
    format!("'{cut}{more}'")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(bytes: &[u8], old: &str, new: &str) -> Result<Vec<u8>, Failed> {
        edit(bytes, Edit { old, new, anchors: Anchors::default() })
    }

    #[test]
    fn bytes_that_are_not_edited_stay() {
        let edited = one(b"\xEF\xBB\xBFa\r\nb\r\nc\n", "b\n", "x\ny\n").unwrap();
        assert_eq!(edited, b"\xEF\xBB\xBFa\r\nx\r\ny\r\nc\n");
        let edited = one(b"caf\xE9 au lait, d\xE9j\xE0", "lait", "th\u{e9}").unwrap();
        assert_eq!(edited, b"caf\xE9 au th\xE9, d\xE9j\xE0");
        let edited = one(b"\xFF\xFEa\0\r\0\n\0b\0", "a\nb", "1\n2").unwrap();
        assert_eq!(edited, b"\xFF\xFE1\0\r\0\n\x002\0");
    }

    #[test]
    fn a_whole_text_keeps_mark_encoding_and_line_ends() {
        assert_eq!(rewrite(b"\xEF\xBB\xBFa\r\n", "x\ny\n").unwrap(), b"\xEF\xBB\xBFx\r\ny\r\n");
        assert_eq!(rewrite(b"\0binary", "text").unwrap(), b"text");
        assert_eq!(rewrite(b"", "x\r\n").unwrap(), b"x\r\n");
    }

    #[test]
    fn what_cannot_be_done_is_said() {
        assert_eq!(one(b"\0", "a", "b"), Err(Failed::NotText));
        let lacks = Failed::Lacks('中', "windows-1252".to_owned());
        assert_eq!(one(b"caf\xE9 au lait, d\xE9j\xE0", "lait", "中"), Err(lacks));
        let Err(Failed::Missed(Missed::NotFound, Some(near))) =
            one(b"let moon = 1;", "let  moon", "")
        else {
            panic!("the nearest line is shown")
        };
        assert!(near.ends_with("1: let moon = 1;"), "{near}");
        assert_eq!(quoted(&"x".repeat(101)), format!("'{}…'", "x".repeat(100)));
    }
}
