//! Finds the lines of a flood that scroll off the screen and out of the history before the piece
//! ends. They become text without being drawn.
//!
//! Only the plainest lines qualify: printable ASCII and tabs that fit into one row. Each of them
//! moves the screen by exactly one row and has no other effect on the terminal.

use super::history::SLACK_ROWS;

/// The minimum size of a piece. A shorter piece can hide too few lines to be worth the check.
pub(super) const PIECE_BYTES_MIN: usize = 4 * 1024;

/// The maximum width of a tab, in columns.
const TAB_COLUMNS: usize = 8;

/// A sequence of complete plain lines.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct PlainLines {
    /// The number of lines.
    pub lines: usize,
    /// Their size in bytes.
    pub bytes: usize,
    /// The start of the last line.
    pub last: usize,
    /// The number of characters drawn. Tabs draw none.
    pub letters: usize,
}

impl PlainLines {
    /// Finds the plain lines at the start of `bytes`, up to `lines_max`. The last one has text.
    pub(super) fn find_at_start(bytes: &[u8], columns: usize, lines_max: usize) -> Self {
        let (mut all, mut with_text) = (Self::default(), Self::default());
        while all.lines < lines_max && all.add_line(bytes, columns) {
            if all.letters > with_text.letters {
                with_text = all;
            }
        }
        with_text
    }

    /// Takes exactly `lines` plain lines from the start of `bytes`.
    pub(super) fn take_exactly(bytes: &[u8], columns: usize, lines: usize) -> Self {
        let mut all = Self::default();
        while all.lines < lines && all.add_line(bytes, columns) {}
        all
    }

    /// Adds the next line. Returns false if it is not plain or not complete.
    fn add_line(&mut self, bytes: &[u8], columns: usize) -> bool {
        let rest = &bytes[self.bytes..];
        let Some(end) = memchr::memchr(b'\n', rest) else { return false };
        let Some(letters) = count_letters(&rest[..end], columns) else { return false };
        self.last = self.bytes;
        self.bytes += end + 1;
        self.lines += 1;
        self.letters += letters;
        true
    }
}

/// Adds the text of plain lines as the screen would show it, with tabs every [`TAB_COLUMNS`]
/// columns.
pub(super) fn push_plain_text(plain: &[u8], text: &mut String) {
    text.reserve(plain.len());
    for line in plain.split_inclusive(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\r\n").unwrap_or(line);
        let begin = text.len();
        for (number, part) in line.split(|byte| *byte == b'\t').enumerate() {
            if number > 0 {
                let columns = TAB_COLUMNS - (text.len() - begin) % TAB_COLUMNS;
                text.extend(std::iter::repeat_n(' ', columns));
            }
            // Plain lines are ASCII, so nothing is replaced and the text is copied once.
            text.push_str(&String::from_utf8_lossy(part));
        }
        text.truncate(begin + text[begin..].trim_end_matches(' ').len());
        text.push('\n');
    }
}

/// Returns how many of `lines` have left the history at their end, if the last `rows_kept` rows are
/// kept. Skipping that many lines leaves the history in the same state.
pub(super) fn count_scrolled_lines(lines: usize, rows_kept: usize) -> usize {
    let unseen = lines.saturating_sub(rows_kept);
    unseen - unseen % SLACK_ROWS
}

/// Counts the characters of a plain line.
fn count_letters(line: &[u8], columns: usize) -> Option<usize> {
    let text = line.strip_suffix(b"\r")?;
    let (mut tabs, mut others) = (0, false);
    for byte in text {
        let is_tab = *byte == b'\t';
        tabs += usize::from(is_tab);
        others |= !(is_tab || matches!(byte, b' '..=b'~'));
    }
    let width = text.len() + tabs * (TAB_COLUMNS - 1);
    (!others && width <= columns).then_some(text.len() - tabs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_lines_are_counted_up_to_the_last_one_with_text() {
        let plain = |text: &str| {
            let found = PlainLines::find_at_start(text.as_bytes(), 10, 100);
            (found.lines, found.bytes, found.letters)
        };
        assert_eq!(plain("one\r\n\r\n\two\r\n\r\n"), (3, 12, 5));
        assert_eq!(
            plain("0123456789\r\n0123456789a\r\n"),
            (1, 12, 10),
            "a line that wraps is not plain"
        );
        assert_eq!(plain("0\t1\r\n01\t2\r\n"), (1, 5, 2), "nor a line that might wrap");
        for other in ["\x1b[m", "\u{e9}", "\x08", "\x7f", "\r"] {
            assert_eq!(plain(&format!("a\r\nb{other}c\r\nd\r\n")), (1, 3, 1), "{other:?}");
        }
        assert_eq!(plain("a\nb\r\n"), (0, 0, 0), "a line feed alone leaves the column");
        assert_eq!(plain("a\r\nb"), (1, 3, 1));
        let two = PlainLines { lines: 2, bytes: 6, last: 3, letters: 2 };
        assert_eq!(PlainLines::find_at_start(b"a\r\nb\r\nc\r\n", 10, 2), two);
        let two = PlainLines { lines: 2, bytes: 5, last: 3, letters: 1 };
        assert_eq!(PlainLines::take_exactly(b"a\r\n\r\nc\r\n", 10, 2), two);
    }

    #[test]
    fn plain_lines_become_the_text_the_screen_would_show() {
        let mut text = String::from("before\n");
        push_plain_text(b"one  \r\n\r\na\tb\t\r\n12345678\tx\r\n", &mut text);
        assert_eq!(text, "before\none\n\na       b\n12345678        x\n");
    }

    #[test]
    fn unseen_lines_are_a_multiple_of_the_history_drop_size() {
        let unseen = |lines| count_scrolled_lines(lines, 1000);
        assert_eq!(unseen(900), 0);
        assert_eq!(unseen(1000 + SLACK_ROWS - 1), 0);
        assert_eq!(unseen(1000 + 2 * SLACK_ROWS + 1), 2 * SLACK_ROWS);
    }
}
