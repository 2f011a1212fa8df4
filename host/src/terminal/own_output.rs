//! Standard output: the program's own, kept apart from what plugins inside jaato print.
//!
//! Where a program reads it (it is no terminal), what plugins and their libraries print to
//! descriptor 1 would stand between the lines of an answer. So descriptor 1 is a pipe then, whose
//! lines go to the log, as those of a worker do.

use std::fs::File;
use std::io::{self, IsTerminal as _, Write};
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::OnceLock;

use jaato_runtime::{Log, log_printed};
use nix::unistd::dup2_stdout;
use parking_lot::Mutex;
use tokio::net::unix::pipe;

/// The true standard output, where descriptor 1 is not it.
static OWN: OnceLock<File> = OnceLock::new();

/// The end of the pipe at which what is printed arrives, until somebody reads it.
static PRINTED: Mutex<Option<OwnedFd>> = Mutex::new(None);

/// Keeps the true standard output for the program itself, unless that is a terminal. A command
/// whose answer a program may read calls this first when plugins run inside jaato for it.
///
/// If the system refuses, what plugins print stands in the answer, as it does on a terminal.
pub fn reserve() {
    let _ = try_reserve();
}

fn try_reserve() -> io::Result<()> {
    let stdout = io::stdout();
    if stdout.is_terminal() {
        return Ok(());
    }
    let own = File::from(stdout.as_fd().try_clone_to_owned()?);
    let (reading, writing) = io::pipe()?;
    dup2_stdout(&writing)?;
    *PRINTED.lock() = Some(reading.into());
    // Nobody has set it: this is called once.
    let _ = OWN.set(own);
    Ok(())
}

/// Has what plugins inside jaato print written to the log. On the runtime.
pub fn log_what_is_printed(log: &Log) {
    let reading = PRINTED.lock().take();
    let Some(reading) = reading.and_then(|end| pipe::Receiver::from_owned_fd(end).ok()) else {
        return;
    };
    tokio::spawn(log_printed(log.clone(), "inside".to_owned(), reading));
}

/// Returns standard output, locked against other threads of this program.
pub(super) fn stdout() -> Box<dyn Write> {
    match OWN.get() {
        Some(own) => Box::new(own),
        None => Box::new(io::stdout().lock()),
    }
}
