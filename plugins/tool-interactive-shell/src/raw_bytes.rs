//! The raw bytes of a stream, with a limit. Pure.

use std::collections::VecDeque;

/// The maximum number of stored bytes, for `shell_read` with `raw`.
const BYTES_MAX: usize = 64 * 1024;

/// The last unread bytes of a stream.
#[derive(Debug, Default)]
pub struct RawOutputBuffer {
    kept: VecDeque<u8>,
    lost: u64,
}

/// A piece of the stream.
#[derive(Debug, PartialEq, Eq)]
pub struct RawOutputPiece {
    /// The text, with invalid UTF-8 replaced.
    pub text: String,
    /// The number of bytes before it that were dropped unread.
    pub lost: u64,
    /// The number of stored bytes after it.
    pub left: u64,
}

impl RawOutputBuffer {
    /// Adds received bytes.
    pub fn push_bytes(&mut self, bytes: &[u8]) {
        let kept = &bytes[bytes.len().saturating_sub(BYTES_MAX)..];
        let excess = (self.kept.len() + kept.len()).saturating_sub(BYTES_MAX);
        self.kept.drain(..excess);
        self.kept.extend(kept);
        self.lost += (excess + bytes.len() - kept.len()) as u64;
    }

    /// Returns the oldest unread bytes, up to `bytes_max`.
    pub fn take_oldest(&mut self, bytes_max: usize) -> RawOutputPiece {
        let mut count = self.kept.len().min(bytes_max);
        // Avoids splitting a character, which would give two invalid ones.
        let is_middle =
            |byte: Option<&u8>| byte.is_some_and(|byte| byte & 0b1100_0000 == 0b1000_0000);
        let back = (0..3).take_while(|&back| is_middle(self.kept.get(count - back))).count();
        if count > back {
            count -= back;
        }
        let bytes: Vec<u8> = self.kept.drain(..count).collect();
        RawOutputPiece {
            text: String::from_utf8_lossy(&bytes).into_owned(),
            lost: std::mem::take(&mut self.lost),
            left: self.kept.len() as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output_piece(text: &str, lost: u64, left: u64) -> RawOutputPiece {
        RawOutputPiece { text: text.to_owned(), lost, left }
    }

    #[test]
    fn raw_output_is_returned_once() {
        let mut raw = RawOutputBuffer::default();
        raw.push_bytes(b"\x1b[31mred");
        assert_eq!(raw.take_oldest(100), output_piece("\x1b[31mred", 0, 0));
        assert_eq!(raw.take_oldest(100), output_piece("", 0, 0));
    }

    #[test]
    fn raw_output_is_split_between_characters() {
        let mut raw = RawOutputBuffer::default();
        raw.push_bytes("a日b".as_bytes());
        assert_eq!(raw.take_oldest(3), output_piece("a", 0, 4));
        assert_eq!(raw.take_oldest(3), output_piece("日", 0, 1));
        assert_eq!(raw.take_oldest(3), output_piece("b", 0, 0));
        raw.push_bytes(&[0xff, 0x80, 0x80, 0x80]);
        assert_eq!(raw.take_oldest(2).left, 2);
    }

    #[test]
    fn raw_output_beyond_the_limit_is_dropped_and_counted() {
        let mut raw = RawOutputBuffer::default();
        raw.push_bytes(&vec![b'x'; BYTES_MAX + 10]);
        raw.push_bytes(b"yz");
        let all = raw.take_oldest(usize::MAX);
        assert_eq!((all.lost, all.left, all.text.len()), (12, 0, BYTES_MAX));
        assert!(all.text.ends_with("xyz"));
        assert_eq!(raw.take_oldest(10), output_piece("", 0, 0));
    }
}
