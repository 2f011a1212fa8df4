//! Cuts what a server prints into lines, none longer than a bound.

use std::collections::VecDeque;

/// Longest line, the largest message: longer ones are dropped, as they are cut off anyway.
pub const LINE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Cuts pieces into lines.
#[derive(Debug)]
pub struct Lines {
    /// The beginning of a line.
    begun: Vec<u8>,
    /// Whether the line that has begun is too long, and its rest is passed over.
    is_dropping: bool,
    whole: VecDeque<Line>,
    bytes_max: usize,
}

/// A line without its end.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// What it says.
    Whole(Vec<u8>),
    /// It was too long.
    TooLong,
}

impl Default for Lines {
    fn default() -> Self {
        Self::with_bytes_max(LINE_BYTES_MAX)
    }
}

impl Lines {
    /// Makes one with another bound.
    pub fn with_bytes_max(bytes_max: usize) -> Self {
        Self { begun: Vec::new(), is_dropping: false, whole: VecDeque::new(), bytes_max }
    }

    /// Takes a piece.
    pub fn take(&mut self, mut piece: &[u8]) {
        while let Some(end) = piece.iter().position(|&byte| byte == b'\n') {
            self.begin(&piece[..end]);
            piece = &piece[end + 1..];
            let line = match std::mem::take(&mut self.is_dropping) {
                true => Line::TooLong,
                false => Line::Whole(std::mem::take(&mut self.begun)),
            };
            self.whole.push_back(line);
        }
        self.begin(piece);
    }

    /// Returns the next whole line.
    pub fn next_line(&mut self) -> Option<Line> {
        self.whole.pop_front()
    }

    fn begin(&mut self, bytes: &[u8]) {
        if self.is_dropping {
            return;
        }
        if self.begun.len() + bytes.len() > self.bytes_max {
            self.is_dropping = true;
            self.begun = Vec::new();
            return;
        }
        self.begun.extend_from_slice(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(pieces: &[&[u8]]) -> Vec<Line> {
        let mut lines = Lines::with_bytes_max(4);
        for piece in pieces {
            lines.take(piece);
        }
        std::iter::from_fn(|| lines.next_line()).collect()
    }

    fn whole(text: &str) -> Line {
        Line::Whole(text.as_bytes().to_vec())
    }

    #[test]
    fn pieces_are_cut_anywhere() {
        assert_eq!(lines(&[b"a", b"b\ncd", b"\n\ne"]), [whole("ab"), whole("cd"), whole("")]);
    }

    #[test]
    fn a_line_that_is_too_long_is_dropped_alone() {
        assert_eq!(lines(&[b"abcd\nabcde\nx\n"]), [whole("abcd"), Line::TooLong, whole("x")]);
        assert_eq!(lines(&[b"abc", b"de", b"f", b"g\nx\n"]), [Line::TooLong, whole("x")]);
    }
}
