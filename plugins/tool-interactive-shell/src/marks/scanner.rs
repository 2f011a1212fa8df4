//! Finds marks in a stream that may be split anywhere.

use memchr::memchr;

use super::MarkNonce;

/// The maximum length of a mark, from `133;` to before its end. Our marks have less than 100 bytes,
/// and editors add a few parameters.
pub const MARK_BYTES_MAX: usize = 256;

const ESCAPE: u8 = 0x1b;
const BELL: u8 = 0x07;

/// The beginning of all marks, after `ESC ]`.
const NUMBER: &[u8] = b"133;";

/// A mark of the session's own shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShellMark {
    /// The kind of the mark.
    pub kind: MarkKind,
    /// The offset of its first byte in the stream.
    pub start: u64,
    /// The offset of the byte after it.
    pub end: u64,
}

/// The kind of a mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MarkKind {
    /// `A`: a prompt begins.
    PromptStart,
    /// `B`: the prompt is complete, and input follows.
    InputStart,
    /// `C`: a command begins.
    CommandStart,
    /// `D`: the last command ended, with its exit code if the shell reports one. Shells send this
    /// before each prompt, including the first.
    CommandEnd(Option<i32>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MarkScanState {
    Text,
    /// After ESC.
    Escape,
    /// After `ESC ]`. The gathered bytes may become a mark.
    Mark,
    /// After ESC in a mark. `\` ends the mark.
    End,
}

/// Finds the marks with one nonce. Each stream needs its own scanner from its beginning.
#[derive(Debug)]
pub struct MarkScanner {
    parameter: String,
    state: MarkScanState,
    gathered: Vec<u8>,
    start: u64,
    offset: u64,
}

impl MarkScanner {
    /// Creates a scanner for the start of a stream.
    pub fn new(nonce: &MarkNonce) -> Self {
        Self {
            parameter: nonce.mark_parameter(),
            state: MarkScanState::Text,
            gathered: Vec::new(),
            start: 0,
            offset: 0,
        }
    }

    /// Returns the marks that end in these bytes, in order. Marks without the nonce are skipped.
    pub fn scan(&mut self, bytes: &[u8]) -> Vec<ShellMark> {
        let mut marks = Vec::new();
        let mut at = 0;
        while at < bytes.len() {
            if self.state == MarkScanState::Text {
                match memchr(ESCAPE, &bytes[at..]) {
                    Some(before) => at += before,
                    None => break,
                }
                self.start = self.offset + at as u64;
                self.state = MarkScanState::Escape;
            } else if let Some(kind) = self.scan_byte(bytes[at], self.offset + at as u64) {
                let end = self.offset + at as u64 + 1;
                marks.push(ShellMark { kind, start: self.start, end });
            }
            at += 1;
        }
        self.offset += bytes.len() as u64;
        marks
    }

    /// Handles a byte after ESC. Returns the kind of a mark if this byte ends one with the nonce.
    fn scan_byte(&mut self, byte: u8, offset: u64) -> Option<MarkKind> {
        match (self.state, byte) {
            (MarkScanState::Escape, b']') => {
                self.gathered.clear();
                self.state = MarkScanState::Mark;
            }
            (MarkScanState::Escape, ESCAPE) => self.start = offset,
            (MarkScanState::Mark, BELL) | (MarkScanState::End, b'\\') => {
                self.state = MarkScanState::Text;
                return self.parse_mark();
            }
            (MarkScanState::Mark, ESCAPE) => self.state = MarkScanState::End,
            (MarkScanState::Mark, _) if self.can_continue(byte) => self.gathered.push(byte),
            // An ESC that does not end the mark begins another sequence. The byte belongs to it.
            (MarkScanState::End, b']') => {
                self.start = offset - 1;
                self.gathered.clear();
                self.state = MarkScanState::Mark;
            }
            (MarkScanState::End, ESCAPE) => {
                self.start = offset;
                self.state = MarkScanState::Escape;
            }
            (
                MarkScanState::Text
                | MarkScanState::Escape
                | MarkScanState::Mark
                | MarkScanState::End,
                _,
            ) => {
                self.state = MarkScanState::Text;
            }
        }
        None
    }

    fn can_continue(&self, byte: u8) -> bool {
        let length = self.gathered.len();
        let fits = NUMBER.get(length).is_none_or(|expected| *expected == byte);
        fits && length < MARK_BYTES_MAX && !byte.is_ascii_control()
    }

    fn parse_mark(&self) -> Option<MarkKind> {
        let text = std::str::from_utf8(self.gathered.strip_prefix(NUMBER)?).ok()?;
        let mut parameters = text.split(';');
        let letter = parameters.next()?;
        let rest: Vec<&str> = parameters.collect();
        if !rest.contains(&self.parameter.as_str()) {
            return None;
        }
        match letter {
            "A" => Some(MarkKind::PromptStart),
            "B" => Some(MarkKind::InputStart),
            "C" => Some(MarkKind::CommandStart),
            "D" => Some(MarkKind::CommandEnd(rest.first().and_then(|code| code.parse().ok()))),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONCE: &str = "n0nce4tests";

    fn scanner() -> MarkScanner {
        MarkScanner::new(&MarkNonce::new(NONCE).unwrap())
    }

    /// Checks that the marks are found however the stream is split.
    #[track_caller]
    fn check_marks(stream: &[u8], expected: &[(MarkKind, u64, u64)]) {
        let expected: Vec<ShellMark> = expected
            .iter()
            .map(|(kind, start, end)| ShellMark { kind: *kind, start: *start, end: *end })
            .collect();
        assert_eq!(scanner().scan(stream), expected);
        for size in 1..stream.len() {
            let mut scanner = scanner();
            let found: Vec<ShellMark> =
                stream.chunks(size).flat_map(|piece| scanner.scan(piece)).collect();
            assert_eq!(found, expected, "in pieces of {size}");
        }
    }

    #[test]
    fn each_mark_kind_is_found_with_its_position() {
        use MarkKind::{CommandEnd, CommandStart, InputStart, PromptStart};
        check_marks(b"ab\x1b]133;A;jaato=n0nce4tests\x07c", &[(PromptStart, 2, 28)]);
        check_marks(b"\x1b]133;B;jaato=n0nce4tests\x1b\\", &[(InputStart, 0, 27)]);
        check_marks(b"\x1b]133;C;x=y;jaato=n0nce4tests\x07", &[(CommandStart, 0, 30)]);
        let two = b"\x1b]133;D;130;jaato=n0nce4tests\x07$\x1b]133;D;jaato=n0nce4tests\x07";
        check_marks(two, &[(CommandEnd(Some(130)), 0, 30), (CommandEnd(None), 31, 57)]);
        check_marks(b"\x1b]133;D;-1;jaato=n0nce4tests\x07", &[(CommandEnd(Some(-1)), 0, 29)]);
    }

    #[test]
    fn forged_and_broken_marks_are_ignored() {
        for stream in [
            &b"\x1b]133;D;0\x07"[..],
            b"\x1b]133;D;0;jaato=other12345\x07",
            b"\x1b]133;D;0;jaato=n0nce4tests2\x07",
            b"\x1b]133;D;0;xjaato=n0nce4tests\x07",
            b"\x1b]133;E;jaato=n0nce4tests\x07",
            b"\x1b]1337;D;jaato=n0nce4tests\x07",
            b"\x1b]133;D;0;jaato=n0nce4tests",
            b"\x1b]133;D;0\n;jaato=n0nce4tests\x07",
            b"\x1b]133;D;0\xff;jaato=n0nce4tests\x07",
            b"]133;D;0;jaato=n0nce4tests\x07",
            b"\x1b[133;D;0;jaato=n0nce4tests\x07",
            b"\x1b]133;D;0;jaato=n0nce4tests\x1b[m",
        ] {
            check_marks(stream, &[]);
        }
    }

    #[test]
    fn mark_after_a_broken_mark_is_found() {
        let kind = MarkKind::CommandEnd(Some(0));
        check_marks(b"\x1b]133;D\x1b]133;D;0;jaato=n0nce4tests\x07", &[(kind, 7, 35)]);
        check_marks(b"\x1b]133;D\x1b\x1b]133;D;0;jaato=n0nce4tests\x07", &[(kind, 8, 36)]);
        check_marks(b"\x1b\x1b]133;D;0;jaato=n0nce4tests\x07", &[(kind, 1, 29)]);
        check_marks(b"\x1b]0;title\x07\x1b]133;D;0;jaato=n0nce4tests\x07", &[(kind, 10, 38)]);
    }

    #[test]
    fn overlong_mark_is_ignored() {
        let fixed = "133;A;x=;jaato=n0nce4tests".len();
        for (extra, count) in [(MARK_BYTES_MAX - fixed, 1), (MARK_BYTES_MAX - fixed + 1, 0)] {
            let mark = format!("\x1b]133;A;x={};jaato={NONCE}\x07", "y".repeat(extra));
            assert_eq!(scanner().scan(mark.as_bytes()).len(), count, "{extra}");
        }
    }
}
