//! The line in which the user answers a question, if the terminal delivers single keys.

use jaato_runtime::visible;
use parking_lot::Mutex;

use super::keys::Key;

/// Limit on the characters of an answer. Further characters are dropped.
const CHARS_MAX: usize = 16 * 1024;

/// Answers that Up brings back.
const RECALLED_MAX: usize = 50;

/// The text answers in this process, the latest last.
static ANSWERED: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Remembers an answer, so that Up brings it back.
pub(super) fn remember(answer: &str) {
    let mut answered = ANSWERED.lock();
    if answer.contains(' ') && answered.last().is_none_or(|last| last != answer) {
        if answered.len() == RECALLED_MAX {
            answered.remove(0);
        }
        answered.push(answer.to_owned());
    }
}

/// A line that is edited.
#[derive(Debug, Default)]
pub(super) struct Line {
    text: Vec<char>,
    /// The index at which the next character is inserted.
    cursor: usize,
    /// How many answers the user has gone back with Up.
    back: usize,
    /// The text before the user pressed Up.
    typed: Vec<char>,
    /// Whether a part of the line was pasted.
    has_paste: bool,
}

impl Line {
    /// Creates a line from a text, with the cursor at its end.
    pub(super) fn of(text: &str) -> Self {
        let text: Vec<char> = text.chars().filter(|sign| !sign.is_control()).collect();
        Self { cursor: text.len(), text, ..Self::default() }
    }

    /// Applies an editing key. Returns true for Enter, which ends the line.
    pub(super) fn take(&mut self, key: Key) -> bool {
        match key {
            Key::Enter => return true,
            Key::Char(sign) => self.insert(sign),
            Key::Backspace if self.cursor > 0 => {
                self.cursor -= 1;
                self.text.remove(self.cursor);
            }
            Key::Delete if self.cursor < self.text.len() => _ = self.text.remove(self.cursor),
            Key::Left => self.cursor = self.cursor.saturating_sub(1),
            Key::Right => self.cursor = (self.cursor + 1).min(self.text.len()),
            Key::Home => self.cursor = 0,
            Key::End => self.cursor = self.text.len(),
            Key::KillBefore => self.kill(0),
            Key::KillAfter => self.text.truncate(self.cursor),
            Key::KillWord => self.kill(self.word_begin()),
            Key::Up => self.recall(self.back + 1),
            Key::Down => self.recall(self.back.saturating_sub(1)),
            Key::Escape => *self = Self::default(),
            Key::Pasted(sign) => {
                self.has_paste = true;
                self.insert(if sign == '\n' { ' ' } else { sign });
            }
            Key::Backspace | Key::Delete | Key::CtrlC | Key::CtrlD | Key::CtrlZ => {}
        }
        false
    }

    /// Returns the text.
    pub(super) fn text(&self) -> String {
        self.text.iter().collect()
    }

    /// Returns the typed character if there is exactly one.
    pub(super) fn only_key(&self) -> Option<char> {
        match self.text.as_slice() {
            [sign] if !self.has_paste => Some(*sign),
            _ => None,
        }
    }

    /// Returns true if the line is empty.
    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Returns the visible part of the line in at most `columns` columns, and how many of them are
    /// after the cursor.
    pub(super) fn shown(&self, columns: usize) -> (String, usize) {
        let visible = |signs: &[char]| {
            let text: String = signs.iter().collect();
            visible::escape_lines(&text).into_owned()
        };
        let width = console::measure_text_width;
        let (before, after) = self.text.split_at(self.cursor);
        // At most one character fits in each column.
        let mut before = &before[before.len().saturating_sub(columns)..];
        let mut shown = visible(before);
        // One column is for the cursor and one for the mark of the omitted part.
        let mut cut = if before.len() < self.cursor { "…" } else { "" };
        while width(&shown) + 2 > columns && !before.is_empty() {
            before = &before[1..];
            (shown, cut) = (visible(before), "…");
        }
        let room = columns.saturating_sub(width(&shown) + cut.chars().count());
        let after = console::truncate_str(&visible(after), room, "…").into_owned();
        let columns_after = width(&after);
        (format!("{cut}{shown}{after}"), columns_after)
    }

    fn insert(&mut self, sign: char) {
        if self.text.len() < CHARS_MAX {
            self.text.insert(self.cursor, sign);
            self.cursor += 1;
        }
    }

    /// Deletes the characters from `begin` to the cursor.
    fn kill(&mut self, begin: usize) {
        self.text.drain(begin..self.cursor);
        self.cursor = begin;
    }

    fn word_begin(&self) -> usize {
        let before = &self.text[..self.cursor];
        let word_end = before.iter().rposition(|sign| *sign != ' ').unwrap_or(0);
        before[..word_end].iter().rposition(|sign| *sign == ' ').map_or(0, |at| at + 1)
    }

    /// Shows the answer that is `back` answers ago. 0 is the text before the user pressed Up.
    fn recall(&mut self, back: usize) {
        let answered = ANSWERED.lock();
        if back > answered.len() {
            return;
        }
        if self.back == 0 {
            self.typed = std::mem::take(&mut self.text);
        }
        self.text = match back {
            0 => std::mem::take(&mut self.typed),
            back => answered[answered.len() - back].chars().collect(),
        };
        (self.back, self.cursor) = (back, self.text.len());
    }
}

#[cfg(test)]
mod tests {
    use super::super::keys::Decoder;
    use super::*;

    fn line_after_input(bytes: &[u8]) -> Line {
        let mut line = Line::default();
        for key in Decoder::default().keys(bytes) {
            line.take(key);
        }
        line
    }

    #[track_caller]
    fn check(bytes: &[u8], expected: &str, (shown, after): (&str, usize)) {
        let line = line_after_input(bytes);
        assert_eq!(line.text(), expected);
        assert_eq!(line.shown(12), (shown.to_owned(), after));
    }

    #[test]
    fn keys_edit_the_line() {
        check(b"abc\x1b[D\x1b[Dx", "axbc", ("axbc", 2));
        check(b"abc\x1b[Hx\x1b[Fy", "xabcy", ("xabcy", 0));
        check(b"abc\x7f\x1b[H\x1b[3~", "b", ("b", 1));
        check(b"one two\x17", "one ", ("one ", 0));
        check(b"one two\x1b[D\x15", "o", ("o", 1));
        check(b"one two\x01\x0b", "", ("", 0));
        check("日本\x1b[D".as_bytes(), "日本", ("日本", 2));
        check("a\u{202e}".as_bytes(), "a\u{202e}", ("a<U+202E>", 0));
    }

    #[test]
    fn a_long_line_shows_where_the_cursor_is() {
        check(b"0123456789abcdef", "0123456789abcdef", ("…6789abcdef", 0));
        check(b"0123456789abcdef\x01", "0123456789abcdef", ("0123456789a…", 12));
    }

    #[test]
    fn a_paste_is_text_and_no_key() {
        let line = line_after_input(b"\x1b[200~y\r\x1b[201~");
        assert_eq!((line.text().as_str(), line.only_key()), ("y ", None));
        assert_eq!(line_after_input(b"\x1b[200~y\x1b[201~").only_key(), None);
        assert_eq!(line_after_input(b"y").only_key(), Some('y'));
        let line = line_after_input(b"no\x1b[200~\x15\x04\x1b\x10y\x1b[201~");
        assert_eq!(line.text(), "noy");
    }

    #[test]
    fn up_brings_back_an_answer_and_down_what_was_typed() {
        remember("use the package");
        remember("y");
        let line = line_after_input(b"half\x10");
        assert_eq!(line.text(), "use the package");
        let line = line_after_input(b"half\x10\x0e");
        assert_eq!(line.text(), "half");
    }
}
