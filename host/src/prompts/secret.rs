//! Reads a secret line at the terminal, without showing, storing or reporting it.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::AsFd as _;

use jaato_runtime::session_loop::TypedSecret;
use nix::sys::termios::{
    FlushArg, LocalFlags, SetArg, SpecialCharacterIndices, Termios, tcflush, tcgetattr, tcsetattr,
};

use crate::terminal::{Keyboard, OpenQuestion, Text, keyboard, something_is_typed};

/// The maximum number of bytes of a secret. The terminal of a program that reads lines accepts no
/// longer line, and does not report what it drops.
const SECRET_BYTES_MAX: usize = 4095;

/// The result.
pub enum HiddenInput {
    /// The line, without its end, but with room for it.
    Typed(TypedSecret),
    /// The user declined.
    Declined,
}

/// Shows a question and reads the answer. Dropping the future restores the terminal.
///
/// # Errors
/// When the terminal is gone, or does not hide the input.
pub async fn ask_secret(open: &OpenQuestion, question: &Text) -> io::Result<HiddenInput> {
    let _quiet = NoEchoGuard::begin()?;
    open.say_open(question)?;
    // Not the process's own buffer, which is not overwritten.
    let mut terminal = File::from(keyboard().as_fd().try_clone_to_owned()?);
    let mut line = SecretLine::new();
    loop {
        something_is_typed().await?;
        let mut byte = [0];
        match terminal.read(&mut byte) {
            Ok(0) => return Ok(HiddenInput::Declined),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        }
        match line.handle_byte(byte[0]) {
            SecretLineStep::More => {}
            SecretLineStep::TooLong => {
                let again = format!(
                    "\nnothing was sent: the text is longer than {SECRET_BYTES_MAX} bytes, the \
                     limit for one line in a terminal"
                );
                open.say(&Text::new().plain(&again))?;
                open.say_open(question)?;
                line = SecretLine::new();
            }
            SecretLineStep::Done => return Ok(HiddenInput::Typed(line.secret)),
            SecretLineStep::Declined => return Ok(HiddenInput::Declined),
        }
    }
}

/// A line that is typed without echo.
struct SecretLine {
    secret: TypedSecret,
    /// The state within the sequence of a key such as an arrow.
    key: KeySequenceState,
    /// Whether more was typed than fits, so that the text is incomplete.
    is_too_long: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum KeySequenceState {
    Plain,
    Escape,
    Sequence,
}

/// The result of a byte.
#[derive(Debug, PartialEq, Eq)]
enum SecretLineStep {
    More,
    Done,
    /// The line is complete, but not valid.
    TooLong,
    Declined,
}

impl SecretLine {
    fn new() -> Self {
        // One more for the end of the line.
        let secret = TypedSecret::with_capacity(SECRET_BYTES_MAX + 1);
        Self { secret, key: KeySequenceState::Plain, is_too_long: false }
    }

    fn handle_byte(&mut self, byte: u8) -> SecretLineStep {
        match (self.key, byte) {
            (KeySequenceState::Plain, 0x1b) => self.key = KeySequenceState::Escape,
            (KeySequenceState::Escape, b'[' | b'O') => self.key = KeySequenceState::Sequence,
            (KeySequenceState::Escape, _) => self.key = KeySequenceState::Plain,
            (KeySequenceState::Sequence, b'@'..=b'~') => self.key = KeySequenceState::Plain,
            (KeySequenceState::Sequence, _) => {}
            (KeySequenceState::Plain, b'\r' | b'\n') if self.is_too_long => {
                return SecretLineStep::TooLong;
            }
            (KeySequenceState::Plain, b'\r' | b'\n') => return SecretLineStep::Done,
            (KeySequenceState::Plain, 0x03) => return SecretLineStep::Declined,
            (KeySequenceState::Plain, 0x04) if self.secret.bytes().is_empty() => {
                return SecretLineStep::Declined;
            }
            (KeySequenceState::Plain, 0x08 | 0x7f) if self.is_too_long => {}
            (KeySequenceState::Plain, 0x08 | 0x7f) => self.delete_last_character(),
            (KeySequenceState::Plain, 0x15) => {
                while self.secret.pop().is_some() {}
                self.is_too_long = false;
            }
            (KeySequenceState::Plain, b' '.. | b'\t')
                if self.secret.bytes().len() < SECRET_BYTES_MAX =>
            {
                // This cannot fail, because the room was checked.
                let _ = self.secret.push(byte);
            }
            // The position of the end is unknown now, so only the whole line can be deleted.
            (KeySequenceState::Plain, b' '.. | b'\t') => self.is_too_long = true,
            (KeySequenceState::Plain, _) => {}
        }
        SecretLineStep::More
    }

    /// Deletes the last character, with all its bytes.
    fn delete_last_character(&mut self) {
        while self.secret.pop().is_some_and(|byte| byte & 0xc0 == 0x80) {}
    }
}

/// A terminal without echo. Dropping it restores the terminal.
struct NoEchoGuard {
    keyboard: Keyboard,
    before: Termios,
}

impl NoEchoGuard {
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

impl Drop for NoEchoGuard {
    fn drop(&mut self) {
        // A terminal that is gone needs no restoring.
        let _ = tcsetattr(&self.keyboard, SetArg::TCSANOW, &self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_secret_line(bytes: &[u8], expected: &[u8], end: SecretLineStep) {
        let mut line = SecretLine::new();
        let last = bytes
            .iter()
            .map(|byte| line.handle_byte(*byte))
            .find(|step| *step != SecretLineStep::More);
        assert_eq!((line.secret.bytes(), last.unwrap_or(SecretLineStep::More)), (expected, end));
    }

    #[test]
    fn secret_line_supports_basic_editing_keys() {
        check_secret_line(b"hunter2\r", b"hunter2", SecretLineStep::Done);
        check_secret_line(b"\n", b"", SecretLineStep::Done);
        check_secret_line("aé\u{7f}b\r".as_bytes(), b"ab", SecretLineStep::Done);
        check_secret_line(b"\x7f\x7fa\r", b"a", SecretLineStep::Done);
        check_secret_line(b"wrong\x15right\r", b"right", SecretLineStep::Done);
        check_secret_line(b"a\x1b[1;5Db\x1bOCc\x1bxd\r", b"abcd", SecretLineStep::Done);
        check_secret_line(b"a\x01\x02b", b"ab", SecretLineStep::More);
    }

    #[test]
    fn ctrl_c_always_declines_and_ctrl_d_only_on_an_empty_line() {
        check_secret_line(b"\x03", b"", SecretLineStep::Declined);
        check_secret_line(b"ab\x03", b"ab", SecretLineStep::Declined);
        check_secret_line(b"\x04", b"", SecretLineStep::Declined);
        check_secret_line(b"ab\x04", b"ab", SecretLineStep::More);
    }

    #[test]
    fn secret_of_maximum_length_can_be_submitted() {
        let longest = vec![b'x'; SECRET_BYTES_MAX];
        check_secret_line(&[&longest[..], b"\r"].concat(), &longest, SecretLineStep::Done);
        let mut line = SecretLine::new();
        longest.iter().for_each(|byte| assert_eq!(line.handle_byte(*byte), SecretLineStep::More));
        assert!(line.secret.push(b'\r'));
    }

    #[test]
    fn too_long_secret_is_refused_until_it_is_typed_again() {
        let longer = vec![b'x'; SECRET_BYTES_MAX + 1];
        let check_end = |keys: &[u8], expected: &[u8], end| {
            check_secret_line(&[&longer[..], keys].concat(), expected, end);
        };
        check_end(b"\r", &longer[1..], SecretLineStep::TooLong);
        check_end(b"\x7f\x7f\r", &longer[1..], SecretLineStep::TooLong);
        check_end(b"\x15right\r", b"right", SecretLineStep::Done);
        check_end(b"\x03", &longer[1..], SecretLineStep::Declined);
    }
}
