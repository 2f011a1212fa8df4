//! Truncates operating system commands (`ESC ] …`) that never end.
//!
//! The emulator's parser gathers them without a limit, so one `ESC ]` before a gigabyte of text
//! would take a gigabyte of memory. All other bytes pass unchanged.

use memchr::memchr_iter;

/// The maximum length of an operating system command for the emulator. The rest of a longer one is
/// dropped, because the relevant commands (requests for colours) are short.
pub const STRING_BYTES_MAX: usize = 1024;

const ESCAPE: u8 = 0x1b;
const BELL: u8 = 0x07;
const CANCEL: u8 = 0x18;
const SUBSTITUTE: u8 = 0x1a;

/// Passes a stream on without the tails of commands that are too long.
#[derive(Debug, Default)]
pub(super) struct StringGuard {
    /// Inside a command, the number of its bytes that passed.
    passed: Option<usize>,
    /// Outside of commands, whether a `]` would begin one.
    is_escaped: bool,
}

impl StringGuard {
    /// Passes `bytes` to `sink` in as few pieces as possible.
    #[inline]
    pub(super) fn pass_strings(&mut self, bytes: &[u8], mut sink: impl FnMut(&[u8])) {
        let mut begin = 0;
        let mut at = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            let Some(passed) = self.passed else {
                at += self.skip_text(rest);
                continue;
            };
            let end = rest.iter().position(|byte| ends_command(*byte));
            let length = end.unwrap_or(rest.len());
            let room = STRING_BYTES_MAX - passed;
            if length > room {
                sink(&bytes[begin..at + room]);
                begin = at + length;
            }
            at += length;
            // The terminator belongs to the following text, because ESC may begin the next command.
            self.passed = end.is_none().then(|| STRING_BYTES_MAX.min(passed + length));
        }
        if begin < bytes.len() {
            sink(&bytes[begin..]);
        }
    }

    /// Skips to after the next beginning of a command, or to the end. Searches for `]`, because
    /// colours contain many ESC bytes.
    fn skip_text(&mut self, text: &[u8]) -> usize {
        let mut looked_at = 0;
        for bracket in memchr_iter(b']', text) {
            if is_escaped(&text[looked_at..bracket], self.is_escaped) {
                self.is_escaped = false;
                self.passed = Some(0);
                return bracket + 1;
            }
            self.is_escaped = false;
            looked_at = bracket + 1;
        }
        self.is_escaped = is_escaped(&text[looked_at..], self.is_escaped);
        text.len()
    }
}

/// Returns true if the parser is directly after an ESC at the end of `text`. In that state, it
/// executes control characters and skips non-ASCII bytes. `before` is the state at the start.
fn is_escaped(text: &[u8], before: bool) -> bool {
    for byte in text.iter().rev() {
        match *byte {
            ESCAPE => return true,
            CANCEL | SUBSTITUTE | 0x20..=0x7e => return false,
            _ => {}
        }
    }
    before
}

fn ends_command(byte: u8) -> bool {
    matches!(byte, ESCAPE | BELL | CANCEL | SUBSTITUTE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pass_pieces(pieces: &[&[u8]]) -> Vec<u8> {
        let mut guard = StringGuard::default();
        let mut out = Vec::new();
        for piece in pieces {
            guard.pass_strings(piece, |bytes| out.extend_from_slice(bytes));
        }
        out
    }

    #[test]
    fn commands_within_the_limit_pass_unchanged() {
        let full = [b"a\x1b]", &[b'x'; STRING_BYTES_MAX][..], b"\x07b"].concat();
        for stream in
            [&b"plain\n"[..], b"\x1b[1mb\x1b[m", b"\x1b]0;t\x07x", b"\x1b\x1b]\x1b\\", &full]
        {
            assert_eq!(pass_pieces(&[stream]), stream);
        }
    }

    #[test]
    fn overlong_command_is_truncated_and_its_end_is_kept() {
        for end in [&b"\x07"[..], b"\x1b\\", b"\x18", b"\x1a", b"\x1b[m"] {
            let long = vec![b'x'; STRING_BYTES_MAX + 1];
            let stream = [b"a\x1b]", &long[..], end, b"b"].concat();
            let expected = [b"a\x1b]", &long[1..], end, b"b"].concat();
            assert_eq!(pass_pieces(&[&stream]), expected);
            let bytes: Vec<&[u8]> = stream.chunks(1).collect();
            assert_eq!(pass_pieces(&bytes), expected);
        }
    }

    #[test]
    fn control_characters_in_an_escape_do_not_hide_a_command() {
        let long = vec![b'x'; STRING_BYTES_MAX + 7];
        for between in [&b"\n\r\x7f"[..], b"\x80\xff", b"\x1b", b""] {
            let stream = [b"a]\x1b", between, b"]", &long[..], b"\x07"].concat();
            assert_eq!(pass_pieces(&[&stream]).len(), stream.len() - 7);
            let bytes: Vec<&[u8]> = stream.chunks(1).collect();
            assert_eq!(pass_pieces(&bytes).len(), stream.len() - 7);
        }
        for between in [&b"["[..], b"\x18", b"\x1a\n", b" "] {
            let stream = [b"\x1b", between, b"]", &long[..], b"\x07"].concat();
            assert_eq!(pass_pieces(&[&stream]), stream);
        }
    }
}
