//! Extracts some lines from a text that arrives in chunks. Pure.
//!
//! Only the shown lines are in memory.

/// The maximum number of characters shown of a line. The rest is counted.
const LINE_CHARS_MAX: usize = 2000;

/// Some lines of a text.
#[derive(Debug)]
pub struct LinePage {
    /// The number of the first wanted line, from 1.
    first: u64,
    lines_max: u64,
    /// The maximum number of bytes of the text as JSON.
    bytes_max: usize,
    text: String,
    bytes: usize,
    /// The number of lines shown.
    shown: u64,
    /// The number of lines passed.
    passed: u64,
    /// The current incomplete line, its first characters, and its length.
    line: String,
    line_chars: usize,
    is_open: bool,
    is_full: bool,
}

/// The content of a page.
#[derive(Debug, PartialEq, Eq)]
pub struct PageContent {
    /// The lines.
    pub text: String,
    /// The number of lines.
    pub lines: u64,
    /// The number of lines passed, which is the total after the whole text.
    pub total: u64,
}

impl LinePage {
    /// Creates a page that begins at line `first`, with limits for its lines and for its bytes as
    /// JSON.
    pub fn new(first: u64, lines_max: u64, bytes_max: usize) -> Self {
        Self {
            first: first.max(1),
            lines_max,
            bytes_max,
            text: String::new(),
            bytes: 0,
            shown: 0,
            passed: 0,
            line: String::new(),
            line_chars: 0,
            is_open: false,
            is_full: false,
        }
    }

    /// Returns true if no further line fits.
    pub fn is_full(&self) -> bool {
        self.is_full
    }

    /// Returns true before the first wanted line.
    pub fn is_before_first_line(&self) -> bool {
        self.passed + 1 < self.first
    }

    /// Adds a chunk. Lines after a full page are only counted.
    pub fn add_chunk(&mut self, mut piece: &str) {
        if self.is_before_first_line() || self.is_full {
            let wanted = if self.is_full { u64::MAX } else { self.first - 1 - self.passed };
            piece = self.skip_lines(piece, wanted);
        }
        while !piece.is_empty() {
            if self.is_full {
                self.skip_lines(piece, u64::MAX);
                return;
            }
            let end = memchr::memchr(b'\n', piece.as_bytes());
            let (part, rest) = piece.split_at(end.map_or(piece.len(), |end| end + 1));
            self.append_text(part);
            if end.is_some() {
                self.end_line("\n");
            }
            piece = rest;
        }
    }

    /// Ends the text.
    pub fn finish(mut self) -> PageContent {
        match self.is_open {
            true if self.is_full || self.is_before_first_line() => self.passed += 1,
            true => self.end_line(""),
            false => {}
        }
        PageContent { text: self.text, lines: self.shown, total: self.passed }
    }

    /// Skips up to `lines` lines and returns the rest.
    fn skip_lines<'a>(&mut self, piece: &'a str, lines: u64) -> &'a str {
        let (mut end, mut count) = (0, 0);
        for at in memchr::memchr_iter(b'\n', piece.as_bytes()) {
            (end, count) = (at + 1, count + 1);
            if count == lines {
                break;
            }
        }
        self.passed += count;
        if count == lines {
            self.is_open = false;
            return &piece[end..];
        }
        self.is_open = end < piece.len() || (count == 0 && self.is_open);
        ""
    }

    fn append_text(&mut self, part: &str) {
        self.is_open = true;
        let part = part.strip_suffix('\n').unwrap_or(part);
        let room = LINE_CHARS_MAX.saturating_sub(self.line_chars);
        match part.char_indices().nth(room) {
            Some((end, _)) => self.line.push_str(&part[..end]),
            None => self.line.push_str(part),
        }
        self.line_chars += part.chars().count();
    }

    fn end_line(&mut self, end: &str) {
        let mut line = std::mem::take(&mut self.line);
        let more = std::mem::take(&mut self.line_chars).saturating_sub(LINE_CHARS_MAX);
        self.is_open = false;
        if line.ends_with('\r') && more == 0 && !end.is_empty() {
            line.pop();
        }
        if more > 0 {
            line.push_str(&format!("[… {more} more characters of this line]"));
        }
        line.push_str(end);
        let bytes = json_length(&line);
        self.passed += 1;
        if self.bytes + bytes > self.bytes_max && self.shown > 0 {
            self.is_full = true;
            return;
        }
        self.bytes += bytes;
        self.text.push_str(&line);
        self.shown += 1;
        self.is_full = self.shown == self.lines_max;
    }
}

/// Returns the length of a text as JSON, without its quotes.
fn json_length(text: &str) -> usize {
    let escaped = |byte: u8| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0C => 2,
        byte if byte < 0x20 => 6,
        _ => 1,
    };
    text.bytes().map(escaped).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_page(first: u64, lines: u64, pieces: &[&str], expected: (&str, u64, u64)) {
        let mut page = LinePage::new(first, lines, 1000);
        pieces.iter().for_each(|piece| page.add_chunk(piece));
        let (text, lines, total) = expected;
        assert_eq!(page.finish(), PageContent { text: text.to_owned(), lines, total });
    }

    #[test]
    fn page_lines_are_extracted_across_chunks() {
        let pieces = ["a\nb", "b\n", "", "c\r", "\nd"];
        check_page(1, 10, &pieces, ("a\nbb\nc\nd", 4, 4));
        check_page(2, 2, &pieces, ("bb\nc\n", 2, 4));
        check_page(4, 1, &pieces, ("d", 1, 4));
        check_page(5, 1, &pieces, ("", 0, 4));
        check_page(9, 1, &["a\n"], ("", 0, 1));
        check_page(1, 1, &[], ("", 0, 0));
        check_page(1, 1, &["\n\n"], ("\n", 1, 2));
        check_page(3, 1, &["a", "a\nb", "b\nc"], ("c", 1, 3));
        check_page(1, 1, &["a\n", "b"], ("a\n", 1, 2));
        check_page(2, 1, &["a", "\n", "b", "\nc\n"], ("b\n", 1, 3));
    }

    #[test]
    fn long_lines_are_truncated_and_counted() {
        let (start, rest) = ("ä".repeat(LINE_CHARS_MAX - 1), "x".repeat(1000));
        let mut page = LinePage::new(1, 10, 10_000);
        page.add_chunk(&start);
        page.add_chunk(&rest);
        page.add_chunk("\nshort\n");
        let shown = page.finish();
        let expected = format!("{start}x[… 999 more characters of this line]\nshort\n");
        assert_eq!((shown.text, shown.lines), (expected, 2));
        let mut endless = LinePage::new(1, 10, 10_000);
        (0..1000).for_each(|_| endless.add_chunk(&rest));
        assert!(endless.line.len() <= LINE_CHARS_MAX);
        let mut exact = LinePage::new(1, 10, 10_000);
        exact.add_chunk(&format!("{}\n", "x".repeat(LINE_CHARS_MAX)));
        assert_eq!(exact.finish().text.len(), LINE_CHARS_MAX + 1);
    }

    #[test]
    fn page_size_is_measured_in_json_bytes() {
        let mut page = LinePage::new(1, 100, 12);
        page.add_chunk("\"\"\"\"\nab\ncd\n");
        assert!(page.is_full());
        assert_eq!(
            page.finish(),
            PageContent { text: "\"\"\"\"\n".to_owned(), lines: 1, total: 3 }
        );
        let mut first = LinePage::new(1, 100, 1);
        first.add_chunk("always one line\n");
        assert_eq!(first.finish().lines, 1);
        assert_eq!(json_length("a\u{1}\n\u{e4}"), 1 + 6 + 2 + 2);
    }
}
