//! System calls for starting a program that std does not offer.

use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use nix::libc;
use nix::sys::signal::{SigHandler, Signal, signal};
use nix::unistd::setsid;

/// Runs a program on a terminal: its three streams are the terminal, which controls the program's
/// new session.
pub(super) fn run_on_terminal(command: &mut Command, terminal: &Path) -> io::Result<()> {
    let mut options = File::options();
    let file = options.read(true).write(true).custom_flags(libc::O_NOCTTY).open(terminal)?;
    command.stdin(file.try_clone()?).stdout(file.try_clone()?).stderr(file);
    let take_terminal = || {
        setsid()?;
        // SAFETY: this request takes an integer, which is given, and reads no memory. Standard
        // input is the terminal.
        let done = unsafe { libc::ioctl(0, libc::TIOCSCTTY as _, 0) };
        if done == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
    };
    // SAFETY: between fork and exec it makes two calls of the system, and neither allocates nor
    // locks.
    unsafe { command.pre_exec(take_terminal) };
    Ok(())
}

/// Resets a program's signals to their defaults. Otherwise it inherits the signals that the tests
/// ignore, and a shell without job control makes its `&` commands ignore Ctrl-C.
pub(super) fn default_signals(command: &mut Command) {
    let restore = || {
        for number in [Signal::SIGINT, Signal::SIGQUIT, Signal::SIGHUP, Signal::SIGTERM] {
            // SAFETY: the default action is not a handler, so it runs no code here.
            unsafe { signal(number, SigHandler::SigDfl) }?;
        }
        Ok(())
    };
    // SAFETY: between fork and exec, `restore` makes only system calls, which neither allocate nor
    // lock.
    unsafe { command.pre_exec(restore) };
}
