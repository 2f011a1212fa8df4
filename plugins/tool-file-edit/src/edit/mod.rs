//! Edits the bytes of a file once, and finds the nearest lines if the text is missing. Pure.

mod chunks;
mod loose_match;
mod nearest;
pub mod patch;
mod target;

pub use loose_match::to_ascii_char;
pub use target::{EditAnchors, MatchFailure};

use jaato_plugin_sdk::types::text::truncate_chars;

use std::borrow::Cow;
use std::ops::Range;

use crate::text::{DecodedText, LineView, decode_bytes};

/// The maximum number of characters that an error quotes.
const QUOTED_CHARS_MAX: usize = 100;

/// An edit that replaces `old` by `new`.
#[derive(Debug, Clone, Copy)]
pub struct EditRequest<'a> {
    /// The text to replace.
    pub old: &'a str,
    /// The replacement.
    pub new: &'a str,
    /// The text around `old`.
    pub anchors: EditAnchors<'a>,
    /// Which matches to replace.
    pub places: MatchSelection,
}

/// Which matches an edit replaces.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MatchSelection {
    /// The only match.
    #[default]
    One,
    /// All matches.
    All,
}

/// The result of an edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditResult {
    /// The new bytes of the file.
    pub bytes: Vec<u8>,
    /// The number of replaced matches.
    pub replaced: usize,
    /// The differences between the file's text and the edit's, if any.
    pub forgiven: Option<String>,
}

/// The reason why an edit failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EditFailure {
    /// The file is not text.
    NotText,
    /// The file's encoding, with this name, lacks this character.
    Lacks(char, String),
    /// There is not exactly one match. The nearest lines follow, if there are any.
    Missed(MatchFailure, Option<String>),
    /// A chunk of a patch has no match. A hint may follow.
    Chunk(String, Option<String>),
}

/// Edits the bytes of a file. All other bytes stay unchanged.
///
/// # Errors
/// If the edit failed.
pub fn edit_bytes(bytes: &[u8], edit: EditRequest<'_>) -> Result<EditResult, EditFailure> {
    let decoded = decode_bytes(bytes).map_err(|_| EditFailure::NotText)?;
    let view = LineView::new(&decoded.text);
    let plain = |text: &str| text.replace("\r\n", "\n");
    let (old, prologue, epilogue) =
        (plain(edit.old), plain(edit.anchors.prologue), plain(edit.anchors.epilogue));
    let anchors = EditAnchors { prologue: &prologue, epilogue: &epilogue };
    let found = match edit.places {
        MatchSelection::One => {
            target::find_single_match(view.text(), &old, anchors).map(|place| vec![place])
        }
        MatchSelection::All => target::find_all_matches(view.text(), &old, anchors),
    };
    let missed = match found {
        Ok(places) => {
            let pieces: Vec<(Range<usize>, &str)> =
                places.into_iter().map(|place| (place, edit.new)).collect();
            let bytes = encode_text(&decoded, view.replace_pieces(&pieces).into())?;
            return Ok(EditResult { bytes, replaced: pieces.len(), forgiven: None });
        }
        Err(missed) => missed,
    };
    let missed = match missed {
        MatchFailure::NotFound | MatchFailure::NotBetween(_) => {
            let lines_end = old.ends_with('\n') || epilogue.ends_with('\n');
            let text = match lines_end && !view.text().ends_with('\n') {
                true => Cow::Owned(format!("{}\n", view.text())),
                false => Cow::Borrowed(view.text()),
            };
            let plain = EditRequest { old: &old, new: &plain(edit.new), anchors, ..edit };
            match find_tolerantly(&text, plain, missed) {
                Ok(found) => return edit_tolerantly(&decoded, &view, &text, found),
                Err(missed) => missed,
            }
        }
        MatchFailure::Ambiguous { .. } | MatchFailure::Alike { .. } | MatchFailure::Empty => missed,
    };
    let near = match missed {
        MatchFailure::NotFound | MatchFailure::Alike { .. } => {
            nearest::find_nearest_lines(view.text(), if old.is_empty() { &prologue } else { &old })
        }
        MatchFailure::NotBetween(_) | MatchFailure::Ambiguous { .. } | MatchFailure::Empty => None,
    };
    Err(EditFailure::Missed(missed, near))
}

/// A match that the file writes differently, and the texts of the edit that correspond to it.
struct TolerantEdit<'a> {
    found: loose_match::TolerantMatch,
    old: Cow<'a, str>,
    new: Cow<'a, str>,
}

/// Finds the only match that the file writes differently.
///
/// # Errors
/// If there is none: `missed`, unless several places are similar.
fn find_tolerantly<'a>(
    text: &str,
    edit: EditRequest<'a>,
    missed: MatchFailure,
) -> Result<TolerantEdit<'a>, MatchFailure> {
    let tolerant = |found| TolerantEdit { found, old: edit.old.into(), new: edit.new.into() };
    // The text matches exactly if the only difference is the line end at the end of the file.
    if let Ok(range) = target::find_single_match(text, edit.old, edit.anchors) {
        let differences = "no line end at the end of the file".to_owned();
        return Ok(tolerant(loose_match::TolerantMatch { range, differences }));
    }
    if edit.places == MatchSelection::All {
        return Err(missed);
    }
    match loose_match::find_tolerant_match(text, edit.old, edit.anchors) {
        Ok(found) => Ok(tolerant(found)),
        Err(MatchFailure::Ambiguous { count, lines }) => Err(MatchFailure::Alike { count, lines }),
        Err(_) => {
            let Some((old, new)) = swap_quotes(edit.old, edit.new) else {
                return Err(missed);
            };
            let mut found =
                loose_match::find_tolerant_match(text, &old, edit.anchors).map_err(|_| missed)?;
            found.differences = "single or double quotes".to_owned();
            Ok(TolerantEdit { found, old: old.into(), new: new.into() })
        }
    }
}

/// Returns the edit with the other kind of quotes, because models confuse them. Returns `None`
/// unless all quotes are of one kind and come in pairs.
fn swap_quotes(old: &str, new: &str) -> Option<(String, String)> {
    let (from, to) = match (old.contains('\''), old.contains('"')) {
        (true, false) => ('\'', '"'),
        (false, true) => ('"', '\''),
        (_, _) => return None,
    };
    let is_paired = |text: &str| text.matches(from).count() % 2 == 0;
    let other = |text: &str| text.replace(from, &to.to_string());
    let is_sure = is_paired(old) && is_paired(new) && !new.contains(to);
    is_sure.then(|| (other(old), other(new)))
}

/// Replaces a match that the file writes differently. `text` is the text of the view, or has a line
/// end after it.
fn edit_tolerantly(
    decoded: &DecodedText<'_>,
    view: &LineView<'_>,
    text: &str,
    edit: TolerantEdit<'_>,
) -> Result<EditResult, EditFailure> {
    let loose_match::TolerantMatch { mut range, differences } = edit.found;
    let mut new = loose_match::graft_replacement(&text[range.clone()], &edit.old, &edit.new);
    let end = view.text().len();
    if range.end > end {
        // A file without a line end at its end stays so.
        range.end = end;
        new.truncate(new.strip_suffix('\n').unwrap_or(&new).len());
    }
    let forgiven = Some(differences).filter(|it| !it.is_empty());
    let bytes = encode_text(decoded, view.replace_pieces(&[(range, &new)]).into())?;
    Ok(EditResult { bytes, replaced: 1, forgiven })
}

/// Encodes a new text with the encoding and line ends of the existing file.
///
/// # Errors
/// An error if the encoding lacks a character.
pub fn encode_new_text(bytes: &[u8], new: &str) -> Result<Vec<u8>, EditFailure> {
    // A binary file may become text.
    let Ok(decoded) = decode_bytes(bytes) else { return Ok(new.as_bytes().to_vec()) };
    let view = LineView::new(&decoded.text);
    encode_text(&decoded, view.with_original_line_ends(new))
}

fn encode_text(decoded: &DecodedText<'_>, text: Cow<'_, str>) -> Result<Vec<u8>, EditFailure> {
    let name = || decoded.charset.encoding_note().unwrap_or_default();
    decoded.charset.encode_text(text).map_err(|lacking| EditFailure::Lacks(lacking, name()))
}

/// Quotes the start of a text.
pub fn quote_start(text: &str) -> String {
    format!("'{}'", truncate_chars(text, QUOTED_CHARS_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit_once(bytes: &[u8], old: &str, new: &str) -> Result<Vec<u8>, EditFailure> {
        let edit_one =
            EditRequest { old, new, anchors: EditAnchors::default(), places: MatchSelection::One };
        edit_bytes(bytes, edit_one).map(|edited| edited.bytes)
    }

    #[test]
    fn bytes_that_are_not_edited_stay() {
        let edited = edit_once(b"\xEF\xBB\xBFa\r\nb\r\nc\n", "b\n", "x\ny\n").unwrap();
        assert_eq!(edited, b"\xEF\xBB\xBFa\r\nx\r\ny\r\nc\n");
        let edited = edit_once(b"caf\xE9 au lait, d\xE9j\xE0", "lait", "th\u{e9}").unwrap();
        assert_eq!(edited, b"caf\xE9 au th\xE9, d\xE9j\xE0");
        let edited = edit_once(b"\xFF\xFEa\0\r\0\n\0b\0", "a\nb", "1\n2").unwrap();
        assert_eq!(edited, b"\xFF\xFE1\0\r\0\n\x002\0");
    }

    #[test]
    fn rewrite_keeps_bom_encoding_and_line_ends() {
        assert_eq!(
            encode_new_text(b"\xEF\xBB\xBFa\r\n", "x\ny\n").unwrap(),
            b"\xEF\xBB\xBFx\r\ny\r\n"
        );
        assert_eq!(encode_new_text(b"\0binary", "text").unwrap(), b"text");
        assert_eq!(encode_new_text(b"", "x\r\n").unwrap(), b"x\r\n");
    }

    #[test]
    fn failed_edits_report_the_reason() {
        assert_eq!(edit_once(b"\0", "a", "b"), Err(EditFailure::NotText));
        let lacks = EditFailure::Lacks('中', "windows-1252".to_owned());
        assert_eq!(edit_once(b"caf\xE9 au lait, d\xE9j\xE0", "lait", "中"), Err(lacks));
        let Err(EditFailure::Missed(MatchFailure::NotFound, Some(near))) =
            edit_once(b"let moon = 1;", "let moons", "")
        else {
            panic!("the nearest line is shown")
        };
        assert!(near.ends_with("1: let moon = 1;"), "{near}");
        assert_eq!(quote_start(&"x".repeat(101)), format!("'{}…'", "x".repeat(100)));
    }

    /// Checks an edit of a text that the file writes differently. The expected difference comes
    /// last.
    #[track_caller]
    fn assert_tolerant_edit(file: &str, old: &str, new: &str, expected: (&str, &str)) {
        let asked =
            EditRequest { old, new, anchors: EditAnchors::default(), places: MatchSelection::One };
        let edited = edit_bytes(file.as_bytes(), asked).unwrap();
        let text = String::from_utf8(edited.bytes).unwrap();
        assert_eq!((&*text, &*edited.forgiven.unwrap_or_default()), expected);
    }

    #[test]
    fn inexact_match_is_replaced_and_the_rest_is_unchanged() {
        let ends = "whitespace at line ends";
        assert_tolerant_edit("a  \nb\t\nc\n", "a\nb\nc", "a\nx\nc", ("a  \nx\nc\n", ends));
        assert_tolerant_edit("x\n", "x \n", "y\n", ("y\n", ends));
        let indent = "tabs or spaces in the indent";
        assert_tolerant_edit(
            "\tif a:\n\t\tb()\n",
            "    if a:\n        b()",
            "    if a:\n        c()\n            d()",
            ("\tif a:\n\t\tc()\n\t\t\td()\n", indent),
        );
        assert_tolerant_edit(
            "    if a:\n        b()\n",
            "if a:\n    b()\n",
            "if a:\n    b()\n    c()\n",
            ("    if a:\n        b()\n        c()\n", indent),
        );
        let quotes = "straight or curly quotes";
        assert_tolerant_edit(
            "say \u{201C}a\u{201D} \u{2018}b\u{2019} now\n",
            "say \"a\" 'b' now",
            "say \"a\" 'b' later",
            ("say \u{201C}a\u{201D} \u{2018}b\u{2019} later\n", quotes),
        );
        let quotes = "single or double quotes";
        assert_tolerant_edit(
            "x = [\"a\"]\n",
            "x = ['a']",
            "x = ['a', 'b']",
            ("x = [\"a\", \"b\"]\n", quotes),
        );
        assert_tolerant_edit("\tv='1'\n", "  v=\"1\"", "  v=\"2\"", ("\tv='2'\n", quotes));
        assert_tolerant_edit("a \u{2013} b\n", "a - b", "a + b", ("a + b\n", "hyphens or dashes"));
        assert_tolerant_edit("a\u{A0}b c\n", "a b c", "a b d", ("a\u{A0}b d\n", "no-break spaces"));
        assert_tolerant_edit("x  =  1\n", "x = 1", "x = 2", ("x  =  2\n", "spaces between words"));
        let nfd = "decomposed letters in the file (NFD), composed ones in yours (NFC)";
        assert_tolerant_edit(
            "cafe\u{301} au lait\n",
            "caf\u{E9} au lait",
            "caf\u{E9} noir",
            ("cafe\u{301} noir\n", nfd),
        );
        assert_tolerant_edit(
            "\u{1112}\u{1161}\u{11AB} 1\n",
            "\u{D55C} 1",
            "\u{D55C} 2",
            ("\u{1112}\u{1161}\u{11AB} 2\n", nfd),
        );
        assert_tolerant_edit("a \r\nb\r\n", "a\nb\n", "a\nx\ny\n", ("a \r\nx\r\ny\r\n", ends));
    }

    #[test]
    fn a_changed_line_keeps_the_quotes_and_blanks_that_the_edit_keeps() {
        let quotes = "straight or curly quotes";
        assert_tolerant_edit(
            "t = \u{201C}x\u{201D} and \u{201C}y\u{201D}",
            "t = \"x\" and \"y\"",
            "t = \"X\" and \"Y\"",
            ("t = \u{201C}X\u{201D} and \u{201C}Y\u{201D}", quotes),
        );
        assert_tolerant_edit(
            "\tif \u{201C}x\u{201D}  =  1:\n",
            "    if \"x\" = 1:\n",
            "        while \"x\" = 2:\n",
            (
                "\t\twhile \u{201C}x\u{201D}  =  2:\n",
                "straight or curly quotes; tabs or spaces in the indent; spaces between words",
            ),
        );
        // Blanks at the end stay with the text before them.
        let ends = "whitespace at line ends";
        assert_tolerant_edit("a b  \nc\n", "a b\nc", "x b\nc", ("x b  \nc\n", ends));
        assert_tolerant_edit("a b\nc\n", "a b \nc", "x b  \nc", ("x b  \nc\n", ends));
        let nfd = "decomposed letters in the file (NFD), composed ones in yours (NFC)";
        assert_tolerant_edit(
            "e\u{301} 1 e\u{301} 2 e\u{301}\n",
            "\u{E9} 1 \u{E9} 2 \u{E9}\n",
            "\u{E9} 3 \u{E9} 4 \u{E9}\n",
            ("e\u{301} 3 e\u{301} 4 e\u{301}\n", nfd),
        );
    }

    #[test]
    fn an_edit_with_a_last_line_end_fits_a_file_without_one() {
        let end = "no line end at the end of the file";
        assert_tolerant_edit("a\nb", "a\nb\n", "a\nB\n", ("a\nB", end));
        assert_tolerant_edit("a\r\nb", "a\r\nb\r\n", "a\r\nB\r\nc\r\n", ("a\r\nB\r\nc", end));
        assert_tolerant_edit("b c\nb", "b\n", "B", ("b c\nB", end));
        assert_tolerant_edit("a\nb", "b\n", "", ("a\n", end));
        assert_tolerant_edit(
            "a\n\u{201C}b\u{201D}",
            "a\n\"b\"\n",
            "a\n\"B\"\n",
            ("a\n\u{201C}B\u{201D}", "straight or curly quotes"),
        );
        let anchored = |places| {
            let anchors = EditAnchors { prologue: "", epilogue: "b\n" };
            let asked = EditRequest { old: "a\n", new: "x\n", anchors, places };
            edit_bytes(b"a\nb", asked).map(|edited| (edited.bytes, edited.replaced))
        };
        assert_eq!(anchored(MatchSelection::One), Ok((b"x\nb".to_vec(), 1)));
        assert_eq!(anchored(MatchSelection::All), Ok((b"x\nb".to_vec(), 1)));
        // The text that occurs exactly is replaced.
        assert_eq!(edit_once(b"b\nb", "b\n", "B\n").unwrap(), b"B\nb");
    }

    #[test]
    fn quotes_are_not_converted_if_the_result_may_be_wrong() {
        let file = "say(\"it\")\n".as_bytes();
        // An apostrophe, and a text with both kinds of quotes.
        for (old, new) in [("say('it')", "say('it isn't')"), ("say('it')", "say('\"')")] {
            assert!(matches!(edit_once(file, old, new), Err(EditFailure::Missed(..))), "{new}");
        }
    }

    #[test]
    fn inexact_match_must_be_unique() {
        let Err(EditFailure::Missed(MatchFailure::Alike { count: 2, lines }, Some(near))) =
            edit_once(b"a  b\nc\na   b\n", "a b", "x")
        else {
            panic!("expected an error with both lines")
        };
        assert_eq!(lines, [1, 3]);
        assert!(near.contains("(they differ in: spaces between words)"), "{near}");
        // Exactly as written, the text occurs once.
        assert_eq!(edit_once(b"a  b\nc\na b\n", "a b", "x").unwrap(), b"a  b\nc\nx\n");
        for (file, old) in
            [("iffy\n", "if  "), ("xab\n", "  ab\n"), ("a\n", " \t"), ("ab\n", "a b")]
        {
            assert!(edit_once(file.as_bytes(), old, "").is_err(), "{old:?} in {file:?}");
        }
    }

    #[test]
    fn replace_all_replaces_every_match() {
        let all = |file: &str, old, prologue| {
            let anchors = EditAnchors { prologue, epilogue: "" };
            let edited = edit_bytes(
                file.as_bytes(),
                EditRequest { old, new: "x", anchors, places: MatchSelection::All },
            );
            edited.map(|edited| (String::from_utf8(edited.bytes).unwrap(), edited.replaced))
        };
        assert_eq!(all("aaa a\r\n", "a", ""), Ok(("xxx x\r\n".to_owned(), 4)));
        assert_eq!(all("aaaa", "aa", ""), Ok(("xx".to_owned(), 2)));
        assert_eq!(all("1a 2a 1a", "a", "1"), Ok(("1x 2a 1x".to_owned(), 2)));
        assert_eq!(all("a", "", ""), Err(EditFailure::Missed(MatchFailure::Empty, None)));
        assert!(matches!(
            all("a  b", "a b", ""),
            Err(EditFailure::Missed(MatchFailure::NotFound, Some(_)))
        ));
    }
}
