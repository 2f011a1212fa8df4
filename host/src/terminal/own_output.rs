//! The program's own standard output, kept apart from the output of plugins inside jaato.
//!
//! If standard output is not a terminal, a program may read the answer, and text that plugins and
//! their libraries print to descriptor 1 would be mixed into it. So descriptor 1 becomes a pipe,
//! and its lines go to the log, as a worker's output does.

use std::fs::File;
use std::io::{self, IsTerminal as _, Write};
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::OnceLock;

use jaato_runtime::{Log, log_worker_output};
use nix::unistd::dup2_stdout;
use parking_lot::Mutex;
use tokio::net::unix::pipe;

/// The real standard output, if descriptor 1 was replaced.
static OWN: OnceLock<File> = OnceLock::new();

/// The reading end of the pipe, until [`log_what_is_printed`] takes it.
static PRINTED: Mutex<Option<OwnedFd>> = Mutex::new(None);

/// Keeps the real standard output for the program itself, unless it is a terminal. A command with
/// plugins inside jaato calls this first if a program may read its answer.
///
/// If the system refuses, the output of plugins is mixed into the answer, as on a terminal.
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
    // This function is called once, so the value is not set yet.
    let _ = OWN.set(own);
    Ok(())
}

/// Writes the output of plugins inside jaato to the log. Must run on the runtime.
pub fn log_what_is_printed(log: &Log) {
    let reading = PRINTED.lock().take();
    let Some(reading) = reading.and_then(|end| pipe::Receiver::from_owned_fd(end).ok()) else {
        return;
    };
    tokio::spawn(log_worker_output(log.clone(), "inside".to_owned(), reading));
}

/// Returns the program's standard output, locked against other threads of this program.
pub(super) fn stdout() -> Box<dyn Write> {
    match OWN.get() {
        Some(own) => Box::new(own),
        None => Box::new(io::stdout().lock()),
    }
}
