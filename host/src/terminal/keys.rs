//! How the terminal is while keys are read one by one, and how it was before.

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

/// Has the terminal mark what is pasted, so that its line ends send nothing.
const PASTE_MARKED: &str = "\u{1b}[?2004h";
/// Ends that.
const PASTE_UNMARKED: &str = "\u{1b}[?2004l";

/// How the terminal was before jaato changed it first.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// What Ctrl-C is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CtrlC {
    /// A key, for who reads the keys.
    Key,
    /// The signal, which stops what goes on.
    Signal,
}

/// Whether keys are read one by one.
static IS_KEY_BY_KEY: AtomicBool = AtomicBool::new(false);

/// Has keys read one by one from here on, and shown by nobody but who reads them. It stays so
/// between lines, so that a key means the same whenever it is typed, until
/// [`give_terminal_back`].
///
/// # Errors
/// When the terminal is gone.
pub fn read_keys(ctrl_c: CtrlC) -> io::Result<()> {
    let Some(before) = BEFORE.lock().clone() else { return Ok(()) };
    IS_KEY_BY_KEY.store(true, SeqCst);
    tcsetattr(keyboard(), SetArg::TCSANOW, &key_by_key(&before, ctrl_c))?;
    writer::switch(PASTE_MARKED)
}

/// Has the terminal give out whole lines, and show what is typed.
fn read_lines() {
    if IS_KEY_BY_KEY.swap(false, SeqCst) {
        if let Some(before) = &*BEFORE.lock() {
            // A terminal that is gone needs nothing.
            let _ = tcsetattr(keyboard(), SetArg::TCSANOW, before);
        }
        let _ = writer::switch(PASTE_UNMARKED);
    }
}

/// Remembers how the terminal is.
pub fn remember_terminal() {
    *BEFORE.lock() = tcgetattr(keyboard()).ok();
}

/// Makes the terminal as it was: jaato ends.
pub fn give_terminal_back() {
    read_lines();
    if let Some(before) = &*BEFORE.lock() {
        // Its editor may still wait on its thread, and has changed it. One that is gone needs
        // nothing.
        let _ = tcsetattr(keyboard(), SetArg::TCSANOW, before);
    }
}

/// Stops the process as Ctrl-Z does, with the terminal as it was, and returns when it goes on.
pub fn stop_here() {
    let now = tcgetattr(keyboard());
    give_terminal_back();
    platform::stop_group();
    // A terminal that is gone needs nothing.
    if let Ok(now) = now {
        let _ = tcsetattr(keyboard(), SetArg::TCSANOW, &now);
    }
    IS_KEY_BY_KEY.store(true, SeqCst);
    let _ = writer::switch(PASTE_MARKED);
}

/// The keyboard key by key while a question is open. Dropping it makes the terminal as it was.
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
    /// When the terminal is gone.
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
        // A terminal that is gone needs nothing.
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

/// The terminal as an editor has it, so that keys mean the same before it begins: nothing is shown,
/// and Ctrl-Z is a key.
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
