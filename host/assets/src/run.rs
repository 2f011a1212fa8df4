//! The one thing that needs a child process, behind a trait: the host's supervisor runs it.

use std::ffi::OsString;
use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;

/// A program to run, found by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// The program's name.
    pub program: String,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Variables beside those that whoever runs it lets through.
    pub variables: Vec<(String, OsString)>,
    /// The folder to start in, which is jaato's own.
    pub directory: PathBuf,
}

/// How a program ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// Whether it exited with 0.
    pub success: bool,
    /// What it wrote to standard error; the last 64 KiB are enough.
    pub stderr: String,
}

/// A program that runs.
pub type Running<'a> = Pin<Box<dyn Future<Output = io::Result<Ended>> + Send + 'a>>;

/// Runs programs for this crate.
pub trait Run: Send + Sync {
    /// Runs a program to its end, with no standard input. Dropping the future must end the program
    /// and what it started. An error of kind `NotFound` means that there is no such program.
    fn run(&self, command: Command) -> Running<'_>;
}

impl<F, R> Run for F
where
    F: Fn(Command) -> R + Send + Sync,
    R: Future<Output = io::Result<Ended>> + Send + 'static,
{
    fn run(&self, command: Command) -> Running<'_> {
        Box::pin(self(command))
    }
}
