//! Reading text, counted in characters or lines, without holding the whole file.

use std::path::Path;
use std::str;

use jaato_types::files::{FileReadText, FileText, TEXT_BYTES_MAX, TextUnit};
use jaato_types::{Error, ErrorKind, Result};
use rustix::buffer::spare_capacity;
use rustix::io::{Errno, read};

use super::errors::{self, Verb};
use super::{Confined, TEXT_SCAN_BYTES_MAX};

/// Bytes that are looked at in one go.
const CHUNK_BYTES: usize = 256 * 1024;

impl Confined {
    /// Reads text: as it is, no line end changed.
    pub fn read_text(&self, request: &FileReadText) -> Result<FileText> {
        let asked = self.roots.asked(&request.path)?;
        let shown = asked.shown();
        let (file, facts) = self.roots.open_file(&asked, Verb::Read)?;
        let mut range = Range::new(request);
        let capacity = usize::try_from(facts.size).unwrap_or(usize::MAX).min(CHUNK_BYTES) + 1;
        let mut chunk: Vec<u8> = Vec::with_capacity(capacity.max(MIN_CHUNK_BYTES));
        let (mut position, mut is_end) = (0, false);
        while !is_end && !range.is_full() {
            match read(&file, spare_capacity(&mut chunk)) {
                Ok(0) => is_end = true,
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(errors::failed(Verb::Read, &shown, errno)),
            }
            let text = match str::from_utf8(&chunk) {
                Ok(text) => text,
                Err(error) if error.error_len().is_none() && !is_end => {
                    str::from_utf8(&chunk[..error.valid_up_to()]).unwrap_or_default()
                }
                Err(error) => {
                    // Text before it that was asked for can be had.
                    let text = str::from_utf8(&chunk[..error.valid_up_to()]).unwrap_or_default();
                    range.take(text);
                    if range.is_full() {
                        break;
                    }
                    return Err(not_text(&shown, position + error.valid_up_to() as u64));
                }
            };
            range.take(text);
            let done = text.len();
            position += done as u64;
            chunk.drain(..done);
            if position > TEXT_SCAN_BYTES_MAX {
                let what = "it is too large to be counted through; read bytes by their offset";
                return Err(errors::too_large(Verb::Read, &shown, what));
            }
        }
        let size = facts.size.max(range.end);
        Ok(FileText {
            has_more: range.is_full() && range.end < size,
            text: range.text,
            size,
            version: Some(facts.version()),
            ..FileText::default()
        })
    }
}

/// Room for a character that a chunk cut, and for files whose size says nothing.
const MIN_CHUNK_BYTES: usize = 4096;

fn not_text(shown: &Path, offset: u64) -> Error {
    let text = format!("cannot read `{}` as text: byte {offset} is not UTF-8", shown.display());
    Error::new(ErrorKind::InvalidArguments, text).with_hint("read its bytes")
}

/// A range of a text that passes by in pieces.
struct Range {
    unit: TextUnit,
    /// Units that are still to be passed over.
    skip: u64,
    /// Units that are still wanted.
    wanted: u64,
    text: String,
    /// Where the text that was taken, or passed over, ends, in bytes.
    end: u64,
    is_cut: bool,
}

impl Range {
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

    fn take(&mut self, mut piece: &str) {
        if self.skip > 0 {
            let (bytes, units) = self.prefix(piece, self.skip);
            self.skip -= units;
            self.end += bytes as u64;
            piece = &piece[bytes..];
        }
        if self.skip > 0 || self.is_full() {
            return;
        }
        let (mut bytes, units) = self.prefix(piece, self.wanted);
        self.wanted -= units;
        let room = TEXT_BYTES_MAX - self.text.len();
        if bytes > room {
            bytes = (0..=room).rev().find(|at| piece.is_char_boundary(*at)).unwrap_or(0);
            self.is_cut = true;
        }
        self.text.push_str(&piece[..bytes]);
        self.end += bytes as u64;
    }

    /// The bytes of so many units, or of all that are there, and how many those are. A line without
    /// its end is none yet.
    fn prefix(&self, piece: &str, units: u64) -> (usize, u64) {
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

    fn range(unit: TextUnit, offset: u64, length: u64, pieces: &[&str]) -> (String, u64) {
        let request =
            FileReadText { offset, length: Some(length), unit, ..FileReadText::default() };
        let mut range = Range::new(&request);
        pieces.iter().for_each(|piece| range.take(piece));
        (range.text, range.end)
    }

    #[test]
    fn characters_are_counted_over_pieces() {
        let pieces = ["aä€", "𝄞b", "", "c"];
        assert_eq!(range(TextUnit::Characters, 1, 3, &pieces), ("ä€𝄞".to_owned(), 10));
        assert_eq!(range(TextUnit::Characters, 0, 9, &pieces), ("aä€𝄞bc".to_owned(), 12));
        assert_eq!(range(TextUnit::Characters, 6, 1, &pieces), (String::new(), 12));
    }

    #[test]
    fn lines_are_counted_over_pieces_each_with_its_end() {
        let pieces = ["a\r", "\nb", "b\n\nc", "c"];
        assert_eq!(range(TextUnit::Lines, 1, 2, &pieces), ("bb\n\n".to_owned(), 7));
        assert_eq!(range(TextUnit::Lines, 3, 2, &pieces), ("cc".to_owned(), 9));
        assert_eq!(range(TextUnit::Lines, 0, 1, &pieces), ("a\r\n".to_owned(), 3));
    }
}
