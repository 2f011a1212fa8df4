//! Reads a line at the terminal that nobody may see: nothing of it is shown, kept or told.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd as _;

use jaato_runtime::session_loop::Secret;
use nix::sys::termios::{
    FlushArg, LocalFlags, SetArg, SpecialCharacterIndices, Termios, tcflush, tcgetattr, tcsetattr,
};

use crate::ask::something_is_typed;

/// Bytes of a secret: a terminal takes no longer line.
const SECRET_BYTES_MAX: usize = 4095;

/// What came of it.
pub enum Hidden {
    /// The line, without its end. It has room for that.
    Typed(Secret),
    /// The person would not.
    Declined,
}

/// Shows a question and reads the answer. Dropping the future leaves the terminal as it was.
///
/// # Errors
/// When the terminal is gone, or does not hide what is typed.
pub async fn ask(question: &str) -> io::Result<Hidden> {
    let _quiet = Quiet::begin()?;
    io::stderr().write_all(question.as_bytes())?;
    // Not the process's own buffer, which is not overwritten.
    let mut terminal = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut line = Line::new();
    loop {
        something_is_typed().await?;
        let mut byte = [0];
        match terminal.read(&mut byte) {
            Ok(0) => return Ok(Hidden::Declined),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        }
        match line.take(byte[0]) {
            Step::More => {}
            Step::Done => return Ok(Hidden::Typed(line.secret)),
            Step::Declined => return Ok(Hidden::Declined),
        }
    }
}

/// A line that is typed blindly.
struct Line {
    secret: Secret,
    /// Inside of what a key like an arrow sends.
    key: Key,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Key {
    Plain,
    Escape,
    Sequence,
}

/// What a byte comes to.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    More,
    Done,
    Declined,
}

impl Line {
    fn new() -> Self {
        // One more for the end of the line.
        Self { secret: Secret::with_capacity(SECRET_BYTES_MAX + 1), key: Key::Plain }
    }

    fn take(&mut self, byte: u8) -> Step {
        match (self.key, byte) {
            (Key::Plain, 0x1b) => self.key = Key::Escape,
            (Key::Escape, b'[' | b'O') => self.key = Key::Sequence,
            (Key::Escape, _) => self.key = Key::Plain,
            (Key::Sequence, b'@'..=b'~') => self.key = Key::Plain,
            (Key::Sequence, _) => {}
            (Key::Plain, b'\r' | b'\n') => return Step::Done,
            (Key::Plain, 0x03) => return Step::Declined,
            (Key::Plain, 0x04) if self.secret.bytes().is_empty() => return Step::Declined,
            (Key::Plain, 0x08 | 0x7f) => self.take_back(),
            (Key::Plain, 0x15) => while self.secret.pop().is_some() {},
            (Key::Plain, b' '.. | b'\t') if self.secret.bytes().len() < SECRET_BYTES_MAX => {
                // There is room: it was counted.
                let _ = self.secret.push(byte);
            }
            (Key::Plain, _) => {}
        }
        Step::More
    }

    /// Takes the last character back, with all of its bytes.
    fn take_back(&mut self) {
        while self.secret.pop().is_some_and(|byte| byte & 0xc0 == 0x80) {}
    }
}

/// A terminal that shows nothing of what is typed. Dropping it makes it as it was.
struct Quiet {
    before: Termios,
}

impl Quiet {
    fn begin() -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut quiet = before.clone();
        // Ctrl-C comes as a key: it declines, and does not end what else goes on.
        quiet.local_flags &=
            !(LocalFlags::ECHO | LocalFlags::ECHONL | LocalFlags::ICANON | LocalFlags::ISIG);
        quiet.control_chars[SpecialCharacterIndices::VMIN as usize] = 1;
        quiet.control_chars[SpecialCharacterIndices::VTIME as usize] = 0;
        // What was typed before the question was seen is no answer to it.
        tcflush(io::stdin(), FlushArg::TCIFLUSH)?;
        tcsetattr(io::stdin(), SetArg::TCSANOW, &quiet)?;
        Ok(Self { before })
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        // A terminal that is gone needs neither.
        let _ = tcsetattr(io::stdin(), SetArg::TCSANOW, &self.before);
        let _ = io::stderr().write_all(b"\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bytes: &[u8], expected: &[u8], end: Step) {
        let mut line = Line::new();
        let last = bytes.iter().map(|byte| line.take(*byte)).find(|step| *step != Step::More);
        assert_eq!((line.secret.bytes(), last.unwrap_or(Step::More)), (expected, end));
    }

    #[test]
    fn a_line_is_edited_blindly() {
        check(b"hunter2\r", b"hunter2", Step::Done);
        check(b"\n", b"", Step::Done);
        check("aé\u{7f}b\r".as_bytes(), b"ab", Step::Done);
        check(b"\x7f\x7fa\r", b"a", Step::Done);
        check(b"wrong\x15right\r", b"right", Step::Done);
        check(b"a\x1b[1;5Db\x1bOCc\x1bxd\r", b"abcd", Step::Done);
        check(b"a\x01\x02b", b"ab", Step::More);
    }

    #[test]
    fn ctrl_c_declines_and_so_does_ctrl_d_where_nothing_was_typed() {
        check(b"\x03", b"", Step::Declined);
        check(b"ab\x03", b"ab", Step::Declined);
        check(b"\x04", b"", Step::Declined);
        check(b"ab\x04", b"ab", Step::More);
    }

    #[test]
    fn a_line_has_room_for_its_end() {
        let long = vec![b'x'; SECRET_BYTES_MAX + 10];
        let mut line = Line::new();
        long.iter().for_each(|byte| assert_eq!(line.take(*byte), Step::More));
        assert_eq!(line.secret.bytes().len(), SECRET_BYTES_MAX);
        assert!(line.secret.push(b'\r'));
    }
}
