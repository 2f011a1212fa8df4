//! A trait for the only task that needs a child process, which the host's supervisor runs.

use std::ffi::OsString;
use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;

/// A program to run, found by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramCommand {
    /// The program's name.
    pub program: String,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Variables in addition to those that the runner allows.
    pub variables: Vec<(String, OsString)>,
    /// The working directory, which is jaato's own.
    pub directory: PathBuf,
}

/// How a program ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramExit {
    /// Whether it exited with 0.
    pub success: bool,
    /// Its output on standard error. The last 64 KiB are enough.
    pub stderr: String,
}

/// A running program.
pub type ProgramFuture<'a> = Pin<Box<dyn Future<Output = io::Result<ProgramExit>> + Send + 'a>>;

/// Runs programs for this crate.
pub trait ProgramRunner: Send + Sync {
    /// Runs a program to its end, with no standard input. Dropping the future must end the program
    /// and its descendants. An error of kind `NotFound` means that the program does not exist.
    fn run(&self, command: ProgramCommand) -> ProgramFuture<'_>;
}

impl<F, R> ProgramRunner for F
where
    F: Fn(ProgramCommand) -> R + Send + Sync,
    R: Future<Output = io::Result<ProgramExit>> + Send + 'static,
{
    fn run(&self, command: ProgramCommand) -> ProgramFuture<'_> {
        Box::pin(self(command))
    }
}
