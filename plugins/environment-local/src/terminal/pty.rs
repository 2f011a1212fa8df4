//! A pseudo-terminal: its two descriptors and the system calls on them.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, FdFlags, fcntl_setfd, ioctl_fionbio, read, retry_on_intr, write};
use rustix::process::{Pid, Signal, kill_process_group};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{
    InputModes, LocalModes, OptionalActions, QueueSelector, SpecialCodeIndex, Winsize, tcflush,
    tcgetattr, tcgetpgrp, tcsetattr, tcsetwinsize,
};

use crate::waiting::TerminalDevice;

/// A pseudo-terminal.
pub(super) struct PseudoTerminal {
    /// The controlling side, in non-blocking mode.
    own: OwnedFd,
    /// The programs' side, held until the program has ended. Without it the terminal would seem
    /// closed whenever one program has closed it and the next has not opened it yet. Pending input
    /// is checked here, too.
    theirs: Mutex<Option<OwnedFd>>,
    path: PathBuf,
    device: TerminalDevice,
}

/// The result of a read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PtyReadResult {
    /// This many bytes were read.
    Bytes(usize),
    /// No output is pending.
    Nothing,
    /// No process holds the other side.
    End,
}

/// The terminal's input modes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TerminalInputModes {
    pub(super) echoes: bool,
    pub(super) reads_lines: bool,
}

impl PseudoTerminal {
    /// Opens a terminal of the given size.
    pub(super) fn open(rows: u16, columns: u16) -> io::Result<Self> {
        let own = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
        fcntl_setfd(&own, FdFlags::CLOEXEC)?;
        grantpt(&own)?;
        unlockpt(&own)?;
        let path = PathBuf::from(OsString::from_vec(ptsname(&own, Vec::new())?.into_bytes()));
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let theirs = open(&path, flags, Mode::empty())?;
        ioctl_fionbio(&own, true)?;
        let mut modes = tcgetattr(&theirs)?;
        // A backspace must delete a whole character.
        modes.input_modes |= InputModes::IUTF8;
        tcsetattr(&theirs, OptionalActions::Now, &modes)?;
        let device = TerminalDevice::from_metadata(&fs::metadata(&path)?);
        let pty = Self { own, theirs: Mutex::new(Some(theirs)), path, device };
        pty.resize(rows, columns)?;
        Ok(pty)
    }

    /// Returns the path of the programs' side.
    pub(super) fn path(&self) -> &PathBuf {
        &self.path
    }

    pub(super) fn device(&self) -> TerminalDevice {
        self.device
    }

    /// Reads output. The system returns a few KiB at most, even if more is pending.
    pub(super) fn read_output(&self, buffer: &mut [u8]) -> io::Result<PtyReadResult> {
        loop {
            return match read(&self.own, &mut *buffer) {
                Ok(0) | Err(Errno::IO) => Ok(PtyReadResult::End),
                Ok(bytes) => Ok(PtyReadResult::Bytes(bytes)),
                Err(Errno::AGAIN) => Ok(PtyReadResult::Nothing),
                Err(Errno::INTR) => continue,
                Err(error) => Err(error.into()),
            };
        }
    }

    /// Writes as much input as fits, and returns the number of bytes, which may be 0.
    pub(super) fn write_input(&self, bytes: &[u8]) -> io::Result<usize> {
        match write(&self.own, bytes) {
            Ok(written) => Ok(written),
            Err(Errno::AGAIN | Errno::INTR) => Ok(0),
            Err(error) => Err(error.into()),
        }
    }

    pub(super) fn resize(&self, rows: u16, columns: u16) -> io::Result<()> {
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        Ok(tcsetwinsize(&self.own, size)?)
    }

    pub(super) fn input_modes(&self) -> io::Result<TerminalInputModes> {
        let modes = tcgetattr(&self.own)?.local_modes;
        let (echoes, reads_lines) =
            (modes.contains(LocalModes::ECHO), modes.contains(LocalModes::ICANON));
        Ok(TerminalInputModes { echoes, reads_lines })
    }

    /// Returns the foreground process group, if there is one.
    pub(super) fn foreground_pid(&self) -> Option<u32> {
        u32::try_from(self.foreground_group()?.as_raw_pid()).ok()
    }

    /// Signals the foreground process group. Returns false if there is none.
    pub(super) fn signal_foreground(&self, signal: Signal) -> io::Result<bool> {
        let Some(group) = self.foreground_group() else { return Ok(false) };
        match kill_process_group(group, signal) {
            Ok(()) => Ok(true),
            Err(Errno::SRCH) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn foreground_group(&self) -> Option<Pid> {
        tcgetpgrp(&self.own).ok()
    }

    /// Finds the first key that the terminal turns into a signal and for which it discards the
    /// input before it.
    pub(super) fn find_interrupt_key(&self, keys: &[u8]) -> Option<usize> {
        // If the modes cannot be read, no input can be written either.
        let modes = tcgetattr(&self.own).ok()?;
        let flags = modes.local_modes;
        if !flags.contains(LocalModes::ISIG) || flags.contains(LocalModes::NOFLSH) {
            return None;
        }
        let interrupts =
            [SpecialCodeIndex::VINTR, SpecialCodeIndex::VQUIT, SpecialCodeIndex::VSUSP]
                .map(|index| modes.special_codes[index]);
        // 0 means that the key is disabled.
        keys.iter().position(|key| *key != 0 && interrupts.contains(key))
    }

    /// Discards input that no program has read.
    pub(super) fn discard_input(&self) -> io::Result<()> {
        self.program_side()
            .as_ref()
            .map_or(Ok(()), |theirs| Ok(tcflush(theirs, QueueSelector::IFlush)?))
    }

    /// Returns true if a program has not read all its input. Polling the programs' side makes the
    /// system first deliver input that it holds back.
    pub(super) fn has_input(&self) -> io::Result<bool> {
        self.program_side().as_ref().map_or(Ok(false), is_readable)
    }

    /// Returns true if unread output is pending.
    pub(super) fn has_output(&self) -> io::Result<bool> {
        is_readable(&self.own)
    }

    /// Waits up to `pause` for output or until no process holds the other side. Blocks.
    pub(super) fn has_more_output_within(&self, pause: Duration) -> bool {
        let mut polled = [PollFd::new(&self.own, PollFlags::IN)];
        let timeout = Timespec { tv_sec: 0, tv_nsec: pause.subsec_nanos().into() };
        // If the poll fails, the next read reports the error.
        poll(&mut polled, Some(&timeout)).is_ok_and(|ready| ready > 0)
    }

    /// Closes the programs' side after the program has ended.
    pub(super) fn close_program_side(&self) {
        drop(self.program_side().take());
    }

    /// Returns true if the program has ended.
    pub(super) fn is_closed(&self) -> bool {
        self.program_side().is_none()
    }

    fn program_side(&self) -> MutexGuard<'_, Option<OwnedFd>> {
        self.theirs.lock()
    }
}

impl AsFd for PseudoTerminal {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.own.as_fd()
    }
}

fn is_readable(descriptor: &impl AsFd) -> io::Result<bool> {
    let mut polled = [PollFd::new(descriptor, PollFlags::IN)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    // A signal can interrupt even a poll that does not wait.
    retry_on_intr(|| poll(&mut polled, Some(&at_once)))?;
    Ok(polled[0].revents().contains(PollFlags::IN))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use rustix::termios::tcgetwinsize;

    use super::*;

    #[test]
    fn pty_delivers_program_output_and_reports_its_end() {
        let pty = PseudoTerminal::open(11, 22).unwrap();
        let size = tcgetwinsize(&pty).unwrap();
        assert_eq!((size.ws_row, size.ws_col), (11, 22));
        let mut buffer = [0; 64];
        assert_eq!(pty.read_output(&mut buffer).unwrap(), PtyReadResult::Nothing);
        let mut theirs = fs::OpenOptions::new().write(true).open(pty.path()).unwrap();
        theirs.write_all(b"moon\n").unwrap();
        assert_eq!(pty.read_output(&mut buffer).unwrap(), PtyReadResult::Bytes(6));
        assert_eq!(&buffer[..6], b"moon\r\n");
        drop(theirs);
        assert_eq!(
            pty.read_output(&mut buffer).unwrap(),
            PtyReadResult::Nothing,
            "its other side is open"
        );
        pty.close_program_side();
        assert_eq!(pty.read_output(&mut buffer).unwrap(), PtyReadResult::End);
    }

    #[test]
    fn unread_input_line_is_detected_immediately() {
        let pty = PseudoTerminal::open(24, 80).unwrap();
        assert_eq!(
            pty.input_modes().unwrap(),
            TerminalInputModes { echoes: true, reads_lines: true }
        );
        assert!(!pty.has_input().unwrap());
        assert_eq!(pty.write_input(b"half").unwrap(), 4);
        assert!(!pty.has_input().unwrap(), "a line is read when it is complete");
        assert_eq!(pty.write_input(b" moon\n").unwrap(), 6);
        assert!(pty.has_input().unwrap());
        assert!(pty.has_output().unwrap(), "the line is echoed");
    }

    #[test]
    fn unread_input_fills_the_terminal_and_can_be_discarded() {
        let pty = PseudoTerminal::open(24, 80).unwrap();
        let lines = [b'\n'; 64 * 1024];
        let mut taken = 0;
        while let more @ 1.. = pty.write_input(&lines).unwrap() {
            taken += more;
        }
        assert!((4096..64 * 1024).contains(&taken), "{taken}");
        assert!(pty.has_input().unwrap());
        pty.discard_input().unwrap();
        assert!(!pty.has_input().unwrap());
        assert_eq!(pty.write_input(b"moon\n").unwrap(), 5);
    }

    #[test]
    fn only_keys_that_the_terminal_turns_into_signals_interrupt() {
        let pty = PseudoTerminal::open(24, 80).unwrap();
        let interrupts =
            || [3, 0x1c, 0x1a, 0, b'y'].map(|key| pty.find_interrupt_key(&[b'x', key]));
        assert_eq!(interrupts(), [Some(1), Some(1), Some(1), None, None]);
        let mut modes = tcgetattr(&pty.own).unwrap();
        modes.local_modes |= LocalModes::NOFLSH;
        tcsetattr(&pty.own, OptionalActions::Now, &modes).unwrap();
        assert_eq!(interrupts(), [None; 5]);
        modes.local_modes &= !(LocalModes::NOFLSH | LocalModes::ISIG);
        tcsetattr(&pty.own, OptionalActions::Now, &modes).unwrap();
        assert_eq!(interrupts(), [None; 5]);
    }
}
