//! Reads a secret line at the terminal, without showing, storing or reporting it.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::AsFd as _;

use jaato_runtime::session_loop::TypedSecret;
use nix::sys::termios::{
    FlushArg, LocalFlags, SetArg, SpecialCharacterIndices, Termios, tcflush, tcgetattr, tcsetattr,
};

use crate::terminal::{Keyboard, OpenQuestion, Text, keyboard, something_is_typed};

/// The most bytes of a secret. The terminal of a program that reads lines accepts no longer line,
/// and does not report what it drops.
const SECRET_BYTES_MAX: usize = 4095;

/// The result.
pub enum Hidden {
    /// The line, without its end, but with room for it.
    Typed(TypedSecret),
    /// The user declined.
    Declined,
}

/// Shows a question and reads the answer. Dropping the future restores the terminal.
///
/// # Errors
/// When the terminal is gone, or does not hide the input.
pub async fn ask(open: &OpenQuestion, question: &Text) -> io::Result<Hidden> {
    let _quiet = Quiet::begin()?;
    open.say_open(question)?;
    // Not the process's own buffer, which is not overwritten.
    let mut terminal = File::from(keyboard().as_fd().try_clone_to_owned()?);
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
            Step::TooLong => {
                let again = format!(
                    "\nnothing was sent: the text is longer than {SECRET_BYTES_MAX} bytes, the \
                     limit for one line in a terminal"
                );
                open.say(&Text::new().plain(&again))?;
                open.say_open(question)?;
                line = Line::new();
            }
            Step::Done => return Ok(Hidden::Typed(line.secret)),
            Step::Declined => return Ok(Hidden::Declined),
        }
    }
}

/// A line that is typed without echo.
struct Line {
    secret: TypedSecret,
    /// The state within the sequence of a key such as an arrow.
    key: Key,
    /// Whether more was typed than fits, so that the text is incomplete.
    is_too_long: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Key {
    Plain,
    Escape,
    Sequence,
}

/// The result of a byte.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    More,
    Done,
    /// The line is complete, but not valid.
    TooLong,
    Declined,
}

impl Line {
    fn new() -> Self {
        // One more for the end of the line.
        let secret = TypedSecret::with_capacity(SECRET_BYTES_MAX + 1);
        Self { secret, key: Key::Plain, is_too_long: false }
    }

    fn take(&mut self, byte: u8) -> Step {
        match (self.key, byte) {
            (Key::Plain, 0x1b) => self.key = Key::Escape,
            (Key::Escape, b'[' | b'O') => self.key = Key::Sequence,
            (Key::Escape, _) => self.key = Key::Plain,
            (Key::Sequence, b'@'..=b'~') => self.key = Key::Plain,
            (Key::Sequence, _) => {}
            (Key::Plain, b'\r' | b'\n') if self.is_too_long => return Step::TooLong,
            (Key::Plain, b'\r' | b'\n') => return Step::Done,
            (Key::Plain, 0x03) => return Step::Declined,
            (Key::Plain, 0x04) if self.secret.bytes().is_empty() => return Step::Declined,
            (Key::Plain, 0x08 | 0x7f) if self.is_too_long => {}
            (Key::Plain, 0x08 | 0x7f) => self.take_back(),
            (Key::Plain, 0x15) => {
                while self.secret.pop().is_some() {}
                self.is_too_long = false;
            }
            (Key::Plain, b' '.. | b'\t') if self.secret.bytes().len() < SECRET_BYTES_MAX => {
                // This cannot fail, because the room was checked.
                let _ = self.secret.push(byte);
            }
            // The position of the end is unknown now, so only the whole line can be deleted.
            (Key::Plain, b' '.. | b'\t') => self.is_too_long = true,
            (Key::Plain, _) => {}
        }
        Step::More
    }

    /// Deletes the last character, with all its bytes.
    fn take_back(&mut self) {
        while self.secret.pop().is_some_and(|byte| byte & 0xc0 == 0x80) {}
    }
}

/// A terminal without echo. Dropping it restores the terminal.
struct Quiet {
    keyboard: Keyboard,
    before: Termios,
}

impl Quiet {
    fn begin() -> io::Result<Self> {
        let keyboard = keyboard();
        let before = tcgetattr(&keyboard)?;
        let mut quiet = before.clone();
        // Ctrl-C arrives as a key, which declines, instead of ending other work.
        quiet.local_flags &=
            !(LocalFlags::ECHO | LocalFlags::ECHONL | LocalFlags::ICANON | LocalFlags::ISIG);
        quiet.control_chars[SpecialCharacterIndices::VMIN as usize] = 1;
        quiet.control_chars[SpecialCharacterIndices::VTIME as usize] = 0;
        // Text typed before the question was visible is not an answer to it.
        tcflush(&keyboard, FlushArg::TCIFLUSH)?;
        tcsetattr(&keyboard, SetArg::TCSANOW, &quiet)?;
        Ok(Self { keyboard, before })
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        // A terminal that is gone needs no restoring.
        let _ = tcsetattr(&self.keyboard, SetArg::TCSANOW, &self.before);
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
        let longest = vec![b'x'; SECRET_BYTES_MAX];
        check(&[&longest[..], b"\r"].concat(), &longest, Step::Done);
        let mut line = Line::new();
        longest.iter().for_each(|byte| assert_eq!(line.take(*byte), Step::More));
        assert!(line.secret.push(b'\r'));
    }

    #[test]
    fn a_longer_one_is_none_until_it_is_typed_anew() {
        let longer = vec![b'x'; SECRET_BYTES_MAX + 1];
        let check_end = |keys: &[u8], expected: &[u8], end| {
            check(&[&longer[..], keys].concat(), expected, end);
        };
        check_end(b"\r", &longer[1..], Step::TooLong);
        check_end(b"\x7f\x7f\r", &longer[1..], Step::TooLong);
        check_end(b"\x15right\r", b"right", Step::Done);
        check_end(b"\x03", &longer[1..], Step::Declined);
    }
}
