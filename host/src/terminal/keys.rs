//! How the terminal is while keys are read one by one, and how it was before.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use nix::sys::termios::{
    _POSIX_VDISABLE, ControlFlags, InputFlags, LocalFlags, SetArg, SpecialCharacterIndices,
    Termios, tcgetattr, tcsetattr,
};
use parking_lot::Mutex;

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
/// between lines, so that a key means the same whenever it is typed, until [`read_lines`] or
/// [`give_terminal_back`].
///
/// # Errors
/// When the terminal is gone.
pub fn read_keys(ctrl_c: CtrlC) -> io::Result<()> {
    let Some(before) = BEFORE.lock().clone() else { return Ok(()) };
    IS_KEY_BY_KEY.store(true, SeqCst);
    tcsetattr(io::stdin(), SetArg::TCSANOW, &key_by_key(&before, ctrl_c))?;
    writer::switch(PASTE_MARKED)
}

/// Has the terminal give out whole lines, and show what is typed: a question is asked.
pub fn read_lines() {
    if IS_KEY_BY_KEY.swap(false, SeqCst) {
        if let Some(before) = &*BEFORE.lock() {
            // A terminal that is gone needs nothing.
            let _ = tcsetattr(io::stdin(), SetArg::TCSANOW, before);
        }
        let _ = writer::switch(PASTE_UNMARKED);
    }
}

/// Remembers how the terminal is.
pub fn remember_terminal() {
    *BEFORE.lock() = tcgetattr(io::stdin()).ok();
}

/// Makes the terminal as it was: jaato ends.
pub fn give_terminal_back() {
    read_lines();
    if let Some(before) = &*BEFORE.lock() {
        // Its editor may still wait on its thread, and has changed it. One that is gone needs
        // nothing.
        let _ = tcsetattr(io::stdin(), SetArg::TCSANOW, before);
    }
}

/// Stops the process as Ctrl-Z does, with the terminal as it was, and returns when it goes on.
pub fn stop_here() {
    let now = tcgetattr(io::stdin());
    give_terminal_back();
    platform::stop_group();
    // A terminal that is gone needs nothing.
    if let Ok(now) = now {
        let _ = tcsetattr(io::stdin(), SetArg::TCSANOW, &now);
    }
    IS_KEY_BY_KEY.store(true, SeqCst);
    let _ = writer::switch(PASTE_MARKED);
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
