//! Passes complete letters to the emulator's parser, in pieces of a suitable size.
//!
//! The parser treats a letter that is split between two calls slightly differently from a whole
//! one, and it scans the rest of a piece for each invalid byte.

/// The maximum number of bytes per parser call. The time for invalid bytes grows with the square of
/// this, and plain text becomes slower with smaller pieces.
const PIECE_BYTES_MAX: usize = 512;

/// The replacement for an incomplete letter. It is passed explicitly, because the parser would wait
/// for the rest.
const REPLACEMENT: &[u8] = "\u{fffd}".as_bytes();

/// Holds the start of a letter until the rest has arrived.
#[derive(Debug, Default)]
pub(super) struct LetterGuard {
    held: [u8; 4],
    length: usize,
}

impl LetterGuard {
    /// Passes `bytes` to `sink`, never ending in the middle of a letter.
    #[inline]
    pub(super) fn pass_whole_letters(&mut self, mut bytes: &[u8], mut sink: impl FnMut(&[u8])) {
        while let Some(byte) = bytes.first() {
            if self.length > 0 {
                self.take_byte(*byte, &mut sink);
                bytes = &bytes[1..];
                continue;
            }
            let (piece, others) = bytes.split_at(bytes.len().min(PIECE_BYTES_MAX));
            let (whole, begun) = piece.split_at(complete_length(piece));
            if !whole.is_empty() {
                sink(whole);
            }
            begun.iter().for_each(|byte| self.take_byte(*byte, &mut sink));
            bytes = others;
        }
    }

    /// Handles one byte after the held ones.
    fn take_byte(&mut self, byte: u8, sink: &mut impl FnMut(&[u8])) {
        self.held[self.length] = byte;
        let letter = &self.held[..=self.length];
        if incomplete_letter_length(letter) == letter.len() {
            self.length += 1;
        } else if self.length == 0 || std::str::from_utf8(letter).is_ok() {
            self.length = 0;
            sink(letter);
        } else {
            self.length = 0;
            sink(REPLACEMENT);
            self.take_byte(byte, sink);
        }
    }
}

/// Returns how much of a piece can be passed on: all but an incomplete letter at its end. If the
/// text before that also ends with an incomplete letter, only the part before the last non-ASCII
/// letters.
fn complete_length(piece: &[u8]) -> usize {
    let length = piece.len() - incomplete_letter_length(piece);
    if incomplete_letter_length(&piece[..length]) == 0 {
        length
    } else {
        piece.iter().rposition(u8::is_ascii).map_or(0, |at| at + 1)
    }
}

/// Returns the length of an incomplete letter at the end.
fn incomplete_letter_length(bytes: &[u8]) -> usize {
    let longest = bytes.len().min(3);
    (1..=longest)
        .find(|length| {
            let tail = &bytes[bytes.len() - length..];
            std::str::from_utf8(tail)
                .is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
        })
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pass_pieces(pieces: &[&[u8]]) -> Vec<Vec<u8>> {
        let mut guard = LetterGuard::default();
        let mut out = Vec::new();
        for piece in pieces {
            guard.pass_whole_letters(piece, |bytes| out.push(bytes.to_vec()));
        }
        out
    }

    #[test]
    fn split_character_is_passed_on_complete() {
        assert_eq!(pass_pieces(&[b"a\xe6", b"\xbc", b"\xa2b"]), [&b"a"[..], b"\xe6\xbc\xa2", b"b"]);
        assert_eq!(pass_pieces(&[b"\xf0\x9f", b"\xa6\x80"]), ["🦀".as_bytes()]);
        assert_eq!(pass_pieces(&[b"\xe6"]), Vec::<Vec<u8>>::new());
    }

    #[test]
    fn incomplete_character_is_replaced_once() {
        let replaced = "\u{fffd}".as_bytes();
        assert_eq!(pass_pieces(&[b"\xe6\xbc", b"x"]), [replaced, b"x"]);
        assert_eq!(pass_pieces(&[b"\xe6", b"\xe6\xbc", b"\xa2"]), [replaced, "漢".as_bytes()]);
        assert_eq!(pass_pieces(&[b"\xe0", b"\x80"]), [replaced, b"\x80"]);
        assert_eq!(pass_pieces(&[b"a\xe5\xe4", b"b"]), [b"a", replaced, replaced, b"b"]);
    }

    #[test]
    fn long_text_is_split_between_characters() {
        let text = "漢".repeat(PIECE_BYTES_MAX);
        let pieces = pass_pieces(&[text.as_bytes()]);
        assert!(pieces.iter().all(|piece| std::str::from_utf8(piece).is_ok()));
        assert!(pieces.iter().all(|piece| piece.len() <= PIECE_BYTES_MAX));
        assert_eq!(pieces.concat(), text.as_bytes());
        let invalid = vec![0xff; PIECE_BYTES_MAX + 1];
        assert_eq!(pass_pieces(&[&invalid]).concat(), invalid);
    }
}
