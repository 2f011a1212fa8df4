//! Reads typed input directly from the terminal, without a buffer in the process. A buffered line
//! would not show when it was typed.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::termios::{
    _POSIX_VDISABLE, FlushArg, SetArg, SpecialCharacterIndices, Termios, tcflush, tcgetattr,
    tcsetattr,
};

use super::keyboard::{Keyboard, keyboard};

/// How often the terminal is checked for input.
const LOOKED_AT_EVERY: Duration = Duration::from_millis(20);

/// Bytes to read at a time. A terminal delivers no longer line.
const LINE_BYTES: usize = 4096;

/// Limit on lines that were typed too early. A terminal holds as many bytes as one line may have.
const EARLY_LINES_MAX: usize = LINE_BYTES;

/// The character of Ctrl-C when it is a key.
pub const CTRL_C: char = '\u{3}';

/// Returns true if the terminal has input. In line mode, this is a whole line.
///
/// # Errors
/// If the terminal is gone.
pub(super) fn is_typed() -> io::Result<bool> {
    let keyboard = keyboard();
    let mut terminal = [PollFd::new(keyboard.as_fd(), PollFlags::POLLIN)];
    // A signal that arrives now interrupts even a poll that does not wait.
    match poll(&mut terminal, PollTimeout::ZERO) {
        Err(Errno::EINTR) => Ok(false),
        polled => Ok(polled? > 0),
    }
}

/// Blocks until the terminal has input or the other end of a pipe is closed.
///
/// # Errors
/// If the terminal is gone.
pub(super) fn until_typed(withdrawn: BorrowedFd<'_>) -> io::Result<()> {
    let keyboard = keyboard();
    loop {
        let terminal = PollFd::new(keyboard.as_fd(), PollFlags::POLLIN);
        let withdrawn = PollFd::new(withdrawn, PollFlags::POLLIN);
        match poll(&mut [terminal, withdrawn], PollTimeout::NONE) {
            Err(Errno::EINTR) => {}
            polled => return Ok(polled.map(drop)?),
        }
    }
}

/// Waits until the next check. Does not wait on a thread that reads, because after a cancellation
/// that thread would remain and take the next input.
pub(super) async fn until_next_look() {
    tokio::time::sleep(LOOKED_AT_EVERY).await;
}

/// Waits until the terminal has input.
///
/// # Errors
/// If the terminal is gone.
pub async fn something_is_typed() -> io::Result<()> {
    while !is_typed()? {
        until_next_look().await;
    }
    Ok(())
}

/// Reads one line with its end, which is a line end, or [`CTRL_C`] when that is a key. Blocks until
/// the line is complete. Returns an empty text at the end of the input.
///
/// # Errors
/// If the terminal cannot be read.
pub fn read_line() -> io::Result<Vec<u8>> {
    let mut terminal = File::from(keyboard().as_fd().try_clone_to_owned()?);
    let mut line = Vec::new();
    let mut buffer = [0; LINE_BYTES];
    loop {
        match terminal.read(&mut buffer) {
            Ok(0) => return Ok(line),
            Ok(read) => line.extend_from_slice(&buffer[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if line.ends_with(b"\n") || line.ends_with(&[CTRL_C as u8]) {
            return Ok(line);
        }
    }
}

/// Reads typed bytes. Returns an empty vector at the end of the input.
///
/// # Errors
/// If the terminal cannot be read.
pub(super) fn read_some() -> io::Result<Vec<u8>> {
    let mut terminal = File::from(keyboard().as_fd().try_clone_to_owned()?);
    let mut buffer = [0; LINE_BYTES];
    loop {
        match terminal.read(&mut buffer) {
            Ok(read) => return Ok(buffer[..read].to_vec()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Removes the input that was typed so far from the terminal. Returns whole lines and drops an
/// incomplete one.
///
/// # Errors
/// If the terminal is gone.
pub(super) fn take_early() -> io::Result<Vec<String>> {
    let mut lines = Vec::new();
    while lines.len() < EARLY_LINES_MAX && is_typed()? {
        let line = read_line()?;
        if line.is_empty() {
            break;
        }
        let line = String::from_utf8_lossy(&line);
        let line: String = line.chars().filter(|sign| !sign.is_control()).collect();
        if !line.trim().is_empty() {
            lines.push(line);
        }
    }
    tcflush(keyboard(), FlushArg::TCIFLUSH)?;
    Ok(lines)
}

/// A terminal on which Ctrl-C ends the typed line as its last character and sends no signal.
/// Dropping it restores the terminal.
pub(super) struct CtrlCAsKey {
    keyboard: Keyboard,
    before: Termios,
}

impl CtrlCAsKey {
    pub(super) fn begin() -> io::Result<Self> {
        let keyboard = keyboard();
        let before = tcgetattr(&keyboard)?;
        let mut changed = before.clone();
        changed.control_chars[SpecialCharacterIndices::VINTR as usize] = _POSIX_VDISABLE;
        changed.control_chars[SpecialCharacterIndices::VEOL as usize] = CTRL_C as u8;
        tcsetattr(&keyboard, SetArg::TCSANOW, &changed)?;
        Ok(Self { keyboard, before })
    }
}

impl Drop for CtrlCAsKey {
    fn drop(&mut self) {
        // A terminal that is gone needs no cleanup.
        let _ = tcsetattr(&self.keyboard, SetArg::TCSANOW, &self.before);
    }
}
