//! Where the user types: standard input, or the process's own terminal if standard input is a pipe
//! or a file (`cat x | jaato run …`).

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::OnceLock;

use nix::unistd::{getpgrp, tcgetpgrp};

use super::writer::input_is_terminal;

/// The controlling terminal of the process, which does not depend on standard input.
const TERMINAL: &str = "/dev/tty";

/// Why the user cannot type without a terminal.
pub const NO_TERMINAL: &str = "standard input is not a terminal";

/// Where the user types answers.
#[derive(Debug)]
pub enum Keyboard {
    /// At standard input.
    Input(io::Stdin),
    /// At the process's terminal.
    Terminal(&'static File),
}

impl AsFd for Keyboard {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Input(input) => input.as_fd(),
            Self::Terminal(terminal) => terminal.as_fd(),
        }
    }
}

/// Returns the source of the user's answers. Without any terminal it is standard input, and reading
/// from it reports the problem.
pub fn keyboard() -> Keyboard {
    let terminal = if input_is_terminal() { None } else { own_terminal() };
    terminal.map_or_else(|| Keyboard::Input(io::stdin()), Keyboard::Terminal)
}

/// Returns why the user cannot type, or `None` if typing is possible.
pub fn nobody_types() -> Option<&'static str> {
    if input_is_terminal() {
        return None;
    }
    let Some(terminal) = own_terminal() else { return Some(NO_TERMINAL) };
    // A background job that reads from its terminal is stopped and would hang.
    let is_in_front = tcgetpgrp(terminal).is_ok_and(|front| front == getpgrp());
    (!is_in_front).then_some("standard input is not a terminal, and jaato runs in the background")
}

fn own_terminal() -> Option<&'static File> {
    static OPENED: OnceLock<Option<File>> = OnceLock::new();
    let open = || OpenOptions::new().read(true).write(true).open(TERMINAL).ok();
    OPENED.get_or_init(open).as_ref()
}
