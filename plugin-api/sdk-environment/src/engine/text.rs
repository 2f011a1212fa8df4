//! Reads text, counted in characters or lines, without holding the whole file.

use std::str;

use jaato_types::files::{FileReadText, FileText, TEXT_BYTES_MAX, TextUnit};
use jaato_types::{Error, ErrorKind, Result};

/// The maximum number of bytes of a file in which characters or lines are counted.
const TEXT_SCAN_BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// Reads a range of a text that arrives in pieces, split anywhere.
pub(crate) struct TextReader<'a> {
    shown: &'a str,
    range: TextRange,
    /// The start of a character that a piece split.
    rest: Vec<u8>,
    /// The number of bytes processed.
    position: u64,
}

impl<'a> TextReader<'a> {
    /// Creates a reader. `shown` is the path as errors show it.
    pub(crate) fn new(request: &FileReadText, shown: &'a str) -> Self {
        Self { shown, range: TextRange::new(request), rest: Vec::new(), position: 0 }
    }

    /// Takes the next piece. An empty piece is the end. Returns true while the reader needs more.
    ///
    /// # Errors
    /// Fails if the text is not UTF-8, or is too large to count.
    pub(crate) fn push_piece(&mut self, piece: &[u8]) -> Result<bool> {
        if self.range.is_full() {
            return Ok(false);
        }
        let joined;
        let bytes = match self.rest.is_empty() {
            true => piece,
            false => {
                joined = [std::mem::take(&mut self.rest).as_slice(), piece].concat();
                &joined
            }
        };
        let (text, error) = match str::from_utf8(bytes) {
            Ok(text) => (text, None),
            Err(error) => {
                let text = str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default();
                (text, Some(error))
            }
        };
        // The valid text before an invalid byte counts.
        self.range.add_piece(text);
        self.position += text.len() as u64;
        let is_cut = error.is_some_and(|it| it.error_len().is_none()) && !piece.is_empty();
        if is_cut {
            self.rest = bytes[text.len()..].to_vec();
        } else if error.is_some() && !self.range.is_full() {
            let (shown, offset) = (self.shown, self.position);
            let text = format!("cannot read `{shown}` as text: byte {offset} is not UTF-8");
            return Err(Error::new(ErrorKind::InvalidArguments, text).with_hint("read its bytes"));
        }
        if self.position > TEXT_SCAN_BYTES_MAX {
            let shown = self.shown;
            let what = "it is too large to count characters or lines; read bytes by offset";
            let text = format!("cannot read `{shown}`: {what}");
            return Err(Error::new(ErrorKind::LimitReached, text));
        }
        Ok(!self.range.is_full() && !piece.is_empty())
    }

    /// Returns the text. `size` and `version` describe the file.
    pub(crate) fn finish(self, size: u64, version: Option<String>) -> FileText {
        let size = size.max(self.range.end);
        FileText {
            has_more: self.range.is_full() && self.range.end < size,
            text: self.range.text,
            size,
            version,
            ..FileText::default()
        }
    }
}

/// A range of a text that arrives in pieces.
struct TextRange {
    unit: TextUnit,
    /// The number of units still to skip.
    skip: u64,
    /// The number of units still to take.
    wanted: u64,
    text: String,
    /// The offset at which the text that was taken or skipped ends, in bytes.
    end: u64,
    is_cut: bool,
}

impl TextRange {
    fn new(request: &FileReadText) -> Self {
        Self {
            unit: request.unit,
            skip: request.offset,
            wanted: request.length.unwrap_or(u64::MAX),
            text: String::new(),
            end: 0,
            is_cut: false,
        }
    }

    fn is_full(&self) -> bool {
        self.wanted == 0 || self.is_cut
    }

    fn add_piece(&mut self, mut piece: &str) {
        if self.skip > 0 {
            let (bytes, units) = self.prefix_length(piece, self.skip);
            self.skip -= units;
            self.end += bytes as u64;
            piece = &piece[bytes..];
        }
        if self.skip > 0 || self.is_full() {
            return;
        }
        let (mut bytes, units) = self.prefix_length(piece, self.wanted);
        self.wanted -= units;
        let room = TEXT_BYTES_MAX - self.text.len();
        if bytes > room {
            bytes = (0..=room).rev().find(|at| piece.is_char_boundary(*at)).unwrap_or(0);
            self.is_cut = true;
        }
        self.text.push_str(&piece[..bytes]);
        self.end += bytes as u64;
    }

    /// Returns the number of bytes that hold up to this many units, and the number of units. A line
    /// counts only with its line end.
    fn prefix_length(&self, piece: &str, units: u64) -> (usize, u64) {
        let at_most = usize::try_from(units).unwrap_or(usize::MAX);
        match self.unit {
            TextUnit::Characters => {
                let count = if at_most >= piece.len() { piece.chars().count() } else { usize::MAX };
                if count <= at_most {
                    return (piece.len(), count as u64);
                }
                let end = piece.char_indices().nth(at_most).map(|(end, _)| end);
                end.map_or_else(|| (piece.len(), piece.chars().count() as u64), |end| (end, units))
            }
            TextUnit::Lines => {
                let mut count = 0;
                for end in memchr::memchr_iter(b'\n', piece.as_bytes()) {
                    count += 1;
                    if count == units {
                        return (end + 1, units);
                    }
                }
                (piece.len(), count)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_range(unit: TextUnit, offset: u64, length: u64, pieces: &[&str]) -> (String, u64) {
        let request =
            FileReadText { offset, length: Some(length), unit, ..FileReadText::default() };
        let mut range = TextRange::new(&request);
        pieces.iter().for_each(|piece| range.add_piece(piece));
        (range.text, range.end)
    }

    #[test]
    fn characters_are_counted_over_pieces() {
        let pieces = ["aä€", "𝄞b", "", "c"];
        assert_eq!(read_range(TextUnit::Characters, 1, 3, &pieces), ("ä€𝄞".to_owned(), 10));
        assert_eq!(read_range(TextUnit::Characters, 0, 9, &pieces), ("aä€𝄞bc".to_owned(), 12));
        assert_eq!(read_range(TextUnit::Characters, 6, 1, &pieces), (String::new(), 12));
    }

    #[test]
    fn lines_are_counted_over_pieces_each_with_its_end() {
        let pieces = ["a\r", "\nb", "b\n\nc", "c"];
        assert_eq!(read_range(TextUnit::Lines, 1, 2, &pieces), ("bb\n\n".to_owned(), 7));
        assert_eq!(read_range(TextUnit::Lines, 3, 2, &pieces), ("cc".to_owned(), 9));
        assert_eq!(read_range(TextUnit::Lines, 0, 1, &pieces), ("a\r\n".to_owned(), 3));
    }
}
