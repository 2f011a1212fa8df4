//! Switches the terminal to reading single keys, and restores its earlier mode.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use nix::sys::termios::{
    _POSIX_VDISABLE, ControlFlags, InputFlags, LocalFlags, SetArg, SpecialCharacterIndices,
    Termios, tcgetattr, tcsetattr,
};
use parking_lot::Mutex;

use super::keyboard::{Keyboard, keyboard};
use super::writer;
use crate::platform;

/// Makes the terminal mark pasted text, so that its line ends send nothing.
const PASTE_MARKED: &str = "\u{1b}[?2004h";
/// Ends the marking of pasted text.
const PASTE_UNMARKED: &str = "\u{1b}[?2004l";

/// The mode of the terminal before jaato first changed it.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// The meaning of Ctrl-C.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CtrlC {
    /// A key for the reader of the keys.
    Key,
    /// The signal, which stops the running work.
    Signal,
}

/// Whether keys are read one by one.
static IS_KEY_BY_KEY: AtomicBool = AtomicBool::new(false);

/// Makes the terminal deliver single keys without showing them. This mode stays on between lines
/// until [`give_terminal_back`], so that a key means the same whenever it is typed.
///
/// # Errors
/// If the terminal is gone.
pub fn read_keys(ctrl_c: CtrlC) -> io::Result<()> {
    let Some(before) = BEFORE.lock().clone() else { return Ok(()) };
    IS_KEY_BY_KEY.store(true, SeqCst);
    tcsetattr(keyboard(), SetArg::TCSANOW, &key_by_key(&before, ctrl_c))?;
    writer::switch(PASTE_MARKED)
}

/// Makes the terminal deliver whole lines and show typed text.
fn read_lines() {
    if IS_KEY_BY_KEY.swap(false, SeqCst) {
        if let Some(before) = &*BEFORE.lock() {
            // A terminal that is gone needs no cleanup.
            let _ = tcsetattr(keyboard(), SetArg::TCSANOW, before);
        }
        let _ = writer::switch(PASTE_UNMARKED);
    }
}

/// Remembers the mode of the terminal.
pub fn remember_terminal() {
    *BEFORE.lock() = tcgetattr(keyboard()).ok();
}

/// Restores the mode of the terminal before jaato ends.
pub fn give_terminal_back() {
    read_lines();
    if let Some(before) = &*BEFORE.lock() {
        // The editor may still wait on its thread and may have changed the mode. A terminal that is
        // gone needs no cleanup.
        let _ = tcsetattr(keyboard(), SetArg::TCSANOW, before);
    }
}

/// Stops the process as Ctrl-Z does, with the terminal restored. Returns when the process
/// continues.
pub fn stop_here() {
    let now = tcgetattr(keyboard());
    give_terminal_back();
    platform::stop_process_group();
    // A terminal that is gone needs no cleanup.
    if let Ok(now) = now {
        let _ = tcsetattr(keyboard(), SetArg::TCSANOW, &now);
    }
    IS_KEY_BY_KEY.store(true, SeqCst);
    let _ = writer::switch(PASTE_MARKED);
}

/// Reads single keys while a question is open. Dropping it restores the terminal.
pub(super) struct QuestionKeys {
    keyboard: Keyboard,
    found: Termios,
    was_key_by_key: bool,
    /// Whether jaato had not changed the terminal before.
    is_first: bool,
}

impl QuestionKeys {
    /// Takes the keyboard.
    ///
    /// # Errors
    /// If the terminal is gone.
    pub(super) fn begin(ctrl_c: CtrlC) -> io::Result<Self> {
        let keyboard = keyboard();
        let found = tcgetattr(&keyboard)?;
        let mut before = BEFORE.lock();
        let is_first = before.is_none();
        let original = before.get_or_insert_with(|| found.clone()).clone();
        drop(before);
        let was_key_by_key = IS_KEY_BY_KEY.swap(true, SeqCst);
        let taken = Self { keyboard, found, was_key_by_key, is_first };
        tcsetattr(&taken.keyboard, SetArg::TCSANOW, &key_by_key(&original, ctrl_c))?;
        writer::switch(PASTE_MARKED)?;
        Ok(taken)
    }
}

impl Drop for QuestionKeys {
    fn drop(&mut self) {
        // A terminal that is gone needs no cleanup.
        let _ = tcsetattr(&self.keyboard, SetArg::TCSANOW, &self.found);
        IS_KEY_BY_KEY.store(self.was_key_by_key, SeqCst);
        if !self.was_key_by_key {
            let _ = writer::switch(PASTE_UNMARKED);
        }
        if self.is_first {
            *BEFORE.lock() = None;
        }
    }
}

/// Returns the mode that an editor sets, so that keys mean the same before it begins: typed text is
/// not shown, and Ctrl-Z is a key.
fn key_by_key(before: &Termios, ctrl_c: CtrlC) -> Termios {
    let mut keys = before.clone();
    keys.input_flags &= !(InputFlags::BRKINT
        | InputFlags::ICRNL
        | InputFlags::INPCK
        | InputFlags::ISTRIP
        | InputFlags::IXON);
    keys.control_flags |= ControlFlags::CS8;
    keys.local_flags &= !(LocalFlags::ECHO | LocalFlags::ICANON | LocalFlags::IEXTEN);
    match ctrl_c {
        CtrlC::Key => keys.local_flags &= !LocalFlags::ISIG,
        CtrlC::Signal => {
            keys.local_flags |= LocalFlags::ISIG;
            keys.control_chars[SpecialCharacterIndices::VSUSP as usize] = _POSIX_VDISABLE;
        }
    }
    keys.control_chars[SpecialCharacterIndices::VMIN as usize] = 1;
    keys.control_chars[SpecialCharacterIndices::VTIME as usize] = 0;
    keys
}
