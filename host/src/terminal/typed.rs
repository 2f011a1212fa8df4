//! Reads what is typed, straight from the terminal: no line waits in a buffer of the process, where
//! nobody could tell when it was typed.

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

/// How often it is looked whether something was typed.
const LOOKED_AT_EVERY: Duration = Duration::from_millis(20);

/// Bytes that are read at a time: a terminal gives out no longer line.
const LINE_BYTES: usize = 4096;

/// Lines that were typed too early, at most: a terminal holds as many bytes as one line may have.
const EARLY_LINES_MAX: usize = LINE_BYTES;

/// What Ctrl-C is where it is a key.
pub const CTRL_C: char = '\u{3}';

/// Tells whether something can be read from the terminal: a whole line, as terminals give out no
/// others.
///
/// # Errors
/// When the terminal is gone.
pub(super) fn is_typed() -> io::Result<bool> {
    let keyboard = keyboard();
    let mut terminal = [PollFd::new(keyboard.as_fd(), PollFlags::POLLIN)];
    // A signal that arrives now interrupts also a look that does not wait.
    match poll(&mut terminal, PollTimeout::ZERO) {
        Err(Errno::EINTR) => Ok(false),
        polled => Ok(polled? > 0),
    }
}

/// Blocks until something can be read from the terminal, or the other end of a pipe is closed.
///
/// # Errors
/// When the terminal is gone.
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

/// Waits for the next look. Not on a thread that reads: a cancel would leave that behind, to take
/// what is typed next.
pub(super) async fn until_next_look() {
    tokio::time::sleep(LOOKED_AT_EVERY).await;
}

/// Waits until something can be read from the terminal.
///
/// # Errors
/// When the terminal is gone.
pub async fn something_is_typed() -> io::Result<()> {
    while !is_typed()? {
        until_next_look().await;
    }
    Ok(())
}

/// Reads one line with its end (the line's, or [`CTRL_C`] where that is a key), and blocks until
/// there is one; an empty text where there are no more.
///
/// # Errors
/// When the terminal cannot be read.
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

/// Reads bytes that were typed; none if there are no more.
///
/// # Errors
/// When the terminal cannot be read.
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

/// Takes what was typed so far out of the terminal: whole lines are returned, half a one is
/// dropped.
///
/// # Errors
/// When the terminal is gone.
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

/// A terminal on which Ctrl-C ends the line that is typed, as its last sign, and is no signal.
/// Dropping it makes the terminal as it was.
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
        // A terminal that is gone needs nothing.
        let _ = tcsetattr(&self.keyboard, SetArg::TCSANOW, &self.before);
    }
}
