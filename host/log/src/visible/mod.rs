//! Makes a text safe to show: what drives a terminal, hides or turns text around is written out as
//! `<U+202E>`.
//!
//! Pure; it neither prints nor knows terminals. Two measures, because honest text needs some of it:
//! a text that is *read* keeps what joins emoji and letters; what is to be *exact* (names, calls,
//! questions) keeps nothing that cannot be seen.
//!
//! Invariant: what comes out holds no control character but line ends and tabs, nothing invisible
//! but joiners where they join, and never the mark of a question. Doing it twice changes nothing.

mod kinds;

use std::borrow::Cow;

use unicode_width::UnicodeWidthChar as _;

pub use kinds::is_invisible;
use kinds::{is_letter_that_joins, is_pictographic};

/// Stands at the beginning of every row of a question. No text of anybody else holds it: it is
/// written out there.
pub const QUESTION_MARK: char = '║';

/// What could pass for [`QUESTION_MARK`].
const LOOKS_LIKE_THE_MARK: [char; 5] = [QUESTION_MARK, '‖', '∥', 'ǁ', '⫴'];

/// Most marks (accents) on one letter. No script has more than a few; a tower of them covers other
/// lines.
const MARKS_MAX: u32 = 4;

/// How much a text keeps of what cannot be seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// It is read: joined emoji and letters stay joined.
    Read,
    /// What is shown is all there is.
    Exact,
}

/// Makes a text visible that comes in pieces.
#[derive(Debug, Clone)]
pub struct Visible {
    measure: Measure,
    /// The last character, whichever piece it was in.
    before: Option<char>,
    /// Marks on the last letter.
    marks: u32,
    /// The last piece ended with a carriage return, which is half of a line end or stands alone.
    half_a_line_end: bool,
}

impl Visible {
    /// Begins a text.
    pub fn new(measure: Measure) -> Self {
        Self { measure, before: None, marks: 0, half_a_line_end: false }
    }

    /// Makes the next piece visible.
    pub fn piece<'a>(&mut self, piece: &'a str) -> Cow<'a, str> {
        // Nearly all that comes: it is not copied.
        if !self.half_a_line_end && piece.bytes().all(is_plain) {
            if let Some(last) = piece.chars().last() {
                (self.before, self.marks) = (Some(last), 0);
            }
            return Cow::Borrowed(piece);
        }
        let mut shown = String::with_capacity(piece.len());
        for sign in piece.chars() {
            self.sign(sign, &mut shown);
        }
        Cow::Owned(shown)
    }

    /// Ends the text: what was kept back of the last piece.
    pub fn end(&mut self) -> String {
        let mut rest = String::new();
        if std::mem::take(&mut self.half_a_line_end) {
            write_out('\r', &mut rest);
        }
        (self.before, self.marks) = (None, 0);
        rest
    }

    fn sign(&mut self, sign: char, shown: &mut String) {
        // `\r\n` is a line end as `\n` is one. Alone it goes back to the beginning of the line.
        if std::mem::take(&mut self.half_a_line_end) && sign != '\n' {
            write_out('\r', shown);
        }
        if sign == '\r' {
            self.half_a_line_end = true;
            return;
        }
        if self.is_shown(sign) {
            shown.push(sign);
        } else {
            write_out(sign, shown);
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
            _ if is_invisible(sign) => self.measure == Measure::Read && self.joins(sign),
            _ if sign.width() == Some(0) => self.is_borne(),
            _ => {
                self.marks = 0;
                true
            }
        }
    }

    /// Tells whether an invisible sign does here what it is for, as far as the text before it
    /// tells.
    fn joins(&self, sign: char) -> bool {
        let Some(before) = self.before else { return false };
        match sign {
            // Zero width joiner and non-joiner.
            '\u{200d}' => {
                is_pictographic(before) || before == '\u{fe0f}' || is_letter_that_joins(before)
            }
            '\u{200c}' => is_letter_that_joins(before),
            // Asks for the sign before as a picture, or as text.
            '\u{fe0e}' | '\u{fe0f}' => {
                is_pictographic(before) || matches!(before, '0'..='9' | '#' | '*')
            }
            _ => false,
        }
    }

    /// Tells whether a mark has something to stand on, and room there.
    fn is_borne(&mut self) -> bool {
        self.marks += 1;
        let stands = self.before.is_some_and(|before| !matches!(before, '\n' | '\t'));
        stands && self.marks <= MARKS_MAX
    }
}

fn is_plain(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\t' | b' '..=b'~')
}

fn write_out(sign: char, shown: &mut String) {
    shown.push_str(&format!("<U+{:04X}>", u32::from(sign)));
}

fn whole(measure: Measure, text: &str) -> Cow<'_, str> {
    let mut visible = Visible::new(measure);
    let shown = visible.piece(text);
    match visible.end() {
        rest if rest.is_empty() => shown,
        rest => Cow::Owned(shown.into_owned() + &rest),
    }
}

/// Makes a text of several lines visible that is read.
pub fn text(text: &str) -> Cow<'_, str> {
    whole(Measure::Read, text)
}

/// Makes a text of several lines visible, with nothing left that cannot be seen.
pub fn exact(text: &str) -> Cow<'_, str> {
    whole(Measure::Exact, text)
}

/// Makes a name visible: one line, line ends and tabs written out too.
pub fn name(text: &str) -> Cow<'_, str> {
    let shown = exact(text);
    if !shown.contains(['\n', '\t']) {
        return shown;
    }
    let mut name = String::with_capacity(shown.len() + 8);
    for sign in shown.chars() {
        match sign {
            '\n' | '\t' => write_out(sign, &mut name),
            _ => name.push(sign),
        }
    }
    Cow::Owned(name)
}

/// Makes JSON visible without changing what it says: inside of its texts such signs are written
/// `\u202e`.
pub fn json(text: &str) -> Cow<'_, str> {
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
