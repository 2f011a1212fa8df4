//! Splits a server's output into lines of limited length.

use std::collections::VecDeque;

/// The maximum length of a line, and so of a message. Longer lines are dropped.
pub const LINE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The number of bytes kept from each end of a line that is too long. One of the ends names the
/// request that the line answers.
const END_BYTES: usize = 1024;

/// Splits chunks into lines.
#[derive(Debug)]
pub struct StdioLineSplitter {
    /// The beginning of an incomplete line.
    begun: Vec<u8>,
    /// Whether the incomplete line is too long. If so, only its two ends are kept.
    is_dropping: bool,
    whole: VecDeque<StdioLine>,
    bytes_max: usize,
}

/// A line without its line end.
#[derive(Debug, PartialEq, Eq)]
pub enum StdioLine {
    /// The whole line.
    Whole(Vec<u8>),
    /// The beginning and end of a line that was too long.
    TooLong(Vec<u8>),
}

impl Default for StdioLineSplitter {
    fn default() -> Self {
        Self::with_bytes_max(LINE_BYTES_MAX)
    }
}

impl StdioLineSplitter {
    /// Creates a splitter with another limit.
    pub fn with_bytes_max(bytes_max: usize) -> Self {
        Self { begun: Vec::new(), is_dropping: false, whole: VecDeque::new(), bytes_max }
    }

    /// Adds a chunk.
    pub fn add_chunk(&mut self, mut piece: &[u8]) {
        while let Some(end) = piece.iter().position(|&byte| byte == b'\n') {
            self.buffer_partial_line(&piece[..end]);
            piece = &piece[end + 1..];
            let begun = std::mem::take(&mut self.begun);
            let line = match std::mem::take(&mut self.is_dropping) {
                true => StdioLine::TooLong(begun),
                false => StdioLine::Whole(begun),
            };
            self.whole.push_back(line);
        }
        self.buffer_partial_line(piece);
    }

    /// Returns the next complete line.
    pub fn next_line(&mut self) -> Option<StdioLine> {
        self.whole.pop_front()
    }

    fn buffer_partial_line(&mut self, bytes: &[u8]) {
        if !self.is_dropping && self.begun.len() + bytes.len() <= self.bytes_max {
            self.begun.extend_from_slice(bytes);
            return;
        }
        if !std::mem::replace(&mut self.is_dropping, true) {
            let whole = [std::mem::take(&mut self.begun).as_slice(), bytes].concat();
            let head = whole.len().min(END_BYTES);
            let tail = whole.len().saturating_sub(END_BYTES).max(head);
            self.begun = [&whole[..head], &whole[tail..]].concat();
            return;
        }
        self.begun.extend_from_slice(bytes);
        if let Some(more) = self.begun.len().checked_sub(2 * END_BYTES) {
            self.begun.drain(END_BYTES..END_BYTES + more);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split_chunks(pieces: &[&[u8]]) -> Vec<StdioLine> {
        let mut lines = StdioLineSplitter::with_bytes_max(4);
        for piece in pieces {
            lines.add_chunk(piece);
        }
        std::iter::from_fn(|| lines.next_line()).collect()
    }

    fn whole_line(text: &str) -> StdioLine {
        StdioLine::Whole(text.as_bytes().to_vec())
    }

    fn too_long_line(ends: &str) -> StdioLine {
        StdioLine::TooLong(ends.as_bytes().to_vec())
    }

    #[test]
    fn lines_are_joined_across_chunks() {
        assert_eq!(
            split_chunks(&[b"a", b"b\ncd", b"\n\ne"]),
            [whole_line("ab"), whole_line("cd"), whole_line("")]
        );
    }

    #[test]
    fn overlong_line_is_dropped_except_for_its_ends() {
        assert_eq!(
            split_chunks(&[b"abcd\nabcde\nx\n"]),
            [whole_line("abcd"), too_long_line("abcde"), whole_line("x")]
        );
        assert_eq!(
            split_chunks(&[b"abc", b"de", b"f", b"g\nx\n"]),
            [too_long_line("abcdefg"), whole_line("x")]
        );
        let text = "a".to_owned() + &"x".repeat(5 * END_BYTES) + "z";
        let ends = "a".to_owned() + &"x".repeat(2 * END_BYTES - 2) + "z";
        for size in [1, 700, 6000] {
            let mut pieces: Vec<&[u8]> = text.as_bytes().chunks(size).collect();
            pieces.push(b"\n");
            assert_eq!(split_chunks(&pieces), [too_long_line(&ends)]);
        }
    }
}
