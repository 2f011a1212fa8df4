//! Makes a text safe to show: characters that control a terminal, hide text or change its direction
//! are escaped as `<U+202E>`.
//!
//! Pure: it neither prints nor knows terminals. There are two measures, because honest text needs
//! some invisible characters. A text for *reading* keeps characters that join emoji and letters. An
//! *exact* text (names, calls, questions) keeps nothing invisible.
//!
//! Invariant: the output contains no control characters except line ends and tabs, nothing
//! invisible except joiners that join something, and never the mark of a question. Repeating it
//! changes nothing.

mod kinds;

use std::borrow::Cow;

use unicode_width::UnicodeWidthChar as _;

pub use kinds::is_invisible;
use kinds::{is_letter_that_joins, is_pictographic};

/// Begins every row of a question. Any other text has it escaped.
pub const QUESTION_MARK: char = '║';

/// Characters that look like [`QUESTION_MARK`].
const LOOKS_LIKE_THE_MARK: [char; 5] = [QUESTION_MARK, '‖', '∥', 'ǁ', '⫴'];

/// The maximum number of marks (accents) on one letter. No script has more than a few, and a tower
/// of them covers other lines.
const MARKS_MAX: u32 = 4;

/// How many invisible characters a text keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VisibilityMode {
    /// For reading: joined emoji and letters stay joined.
    Read,
    /// Every character is shown.
    Exact,
}

/// Makes a text visible that arrives in pieces.
#[derive(Debug, Clone)]
pub struct VisibleStream {
    measure: VisibilityMode,
    /// The last character, even of an earlier piece.
    before: Option<char>,
    /// The number of marks on the last letter.
    marks: u32,
    /// Whether the last piece ended with a carriage return, which is either half of a line end or a
    /// single one.
    half_a_line_end: bool,
}

impl VisibleStream {
    /// Starts a text.
    pub fn new(measure: VisibilityMode) -> Self {
        Self { measure, before: None, marks: 0, half_a_line_end: false }
    }

    /// Makes the next piece visible.
    pub fn escape_piece<'a>(&mut self, piece: &'a str) -> Cow<'a, str> {
        // The usual case, which needs no copy.
        if !self.half_a_line_end && piece.bytes().all(is_plain) {
            if let Some(last) = piece.chars().last() {
                (self.before, self.marks) = (Some(last), 0);
            }
            return Cow::Borrowed(piece);
        }
        let mut shown = String::with_capacity(piece.len());
        for sign in piece.chars() {
            self.push_character(sign, &mut shown);
        }
        Cow::Owned(shown)
    }

    /// Ends the text. Returns the rest that was held back from the last piece.
    pub fn end(&mut self) -> String {
        let mut rest = String::new();
        if std::mem::take(&mut self.half_a_line_end) {
            write_code_point('\r', &mut rest);
        }
        (self.before, self.marks) = (None, 0);
        rest
    }

    fn push_character(&mut self, sign: char, shown: &mut String) {
        // `\r\n` is a line end like `\n`. A single `\r` moves to the start of the line.
        if std::mem::take(&mut self.half_a_line_end) && sign != '\n' {
            write_code_point('\r', shown);
        }
        if sign == '\r' {
            self.half_a_line_end = true;
            return;
        }
        if self.is_shown(sign) {
            shown.push(sign);
        } else {
            write_code_point(sign, shown);
        }
        self.before = Some(sign);
    }

    fn is_shown(&mut self, sign: char) -> bool {
        match sign {
            '\n' | '\t' | ' '..='~' => {
                self.marks = 0;
                true
            }
            _ if sign.is_control() || LOOKS_LIKE_THE_MARK.contains(&sign) => false,
            _ if is_invisible(sign) => {
                self.measure == VisibilityMode::Read && self.is_joining(sign)
            }
            _ if sign.width() == Some(0) => self.has_base_character(),
            _ => {
                self.marks = 0;
                true
            }
        }
    }

    /// Returns true if an invisible character has its intended effect here, judging by the text
    /// before it.
    fn is_joining(&self, sign: char) -> bool {
        let Some(before) = self.before else { return false };
        match sign {
            // Zero width joiner and non-joiner.
            '\u{200d}' => {
                is_pictographic(before) || before == '\u{fe0f}' || is_letter_that_joins(before)
            }
            '\u{200c}' => is_letter_that_joins(before),
            // Selects the image or text form of the previous character.
            '\u{fe0e}' | '\u{fe0f}' => {
                is_pictographic(before) || matches!(before, '0'..='9' | '#' | '*')
            }
            _ => false,
        }
    }

    /// Returns true if a mark has a base character with room for it.
    fn has_base_character(&mut self) -> bool {
        self.marks += 1;
        let stands = self.before.is_some_and(|before| !matches!(before, '\n' | '\t'));
        stands && self.marks <= MARKS_MAX
    }
}

fn is_plain(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\t' | b' '..=b'~')
}

fn write_code_point(sign: char, shown: &mut String) {
    shown.push_str(&format!("<U+{:04X}>", u32::from(sign)));
}

fn make_visible(measure: VisibilityMode, text: &str) -> Cow<'_, str> {
    let mut visible = VisibleStream::new(measure);
    let shown = visible.escape_piece(text);
    match visible.end() {
        rest if rest.is_empty() => shown,
        rest => Cow::Owned(shown.into_owned() + &rest),
    }
}

/// Makes a text of several lines visible, for reading.
pub fn visible_text(text: &str) -> Cow<'_, str> {
    make_visible(VisibilityMode::Read, text)
}

/// Makes a text of several lines visible, without any invisible characters.
pub fn escape_lines(text: &str) -> Cow<'_, str> {
    make_visible(VisibilityMode::Exact, text)
}

/// Makes a name visible in one line, with escaped line ends and tabs.
pub fn visible_name(text: &str) -> Cow<'_, str> {
    let shown = escape_lines(text);
    if !shown.contains(['\n', '\t']) {
        return shown;
    }
    let mut name = String::with_capacity(shown.len() + 8);
    for sign in shown.chars() {
        match sign {
            '\n' | '\t' => write_code_point(sign, &mut name),
            _ => name.push(sign),
        }
    }
    Cow::Owned(name)
}

/// Makes JSON visible without changing its meaning, by escaping such characters as `\u202e` inside
/// its strings.
pub fn visible_json(text: &str) -> Cow<'_, str> {
    let is_hidden = |sign: char| {
        !sign.is_ascii() && (sign.is_control() || is_invisible(sign)) || sign == '\u{7f}'
    };
    if text.is_ascii() && !text.contains('\u{7f}') || !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 32);
    for sign in text.chars() {
        if is_hidden(sign) {
            for unit in sign.encode_utf16(&mut [0; 2]) {
                shown.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            shown.push(sign);
        }
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests;
