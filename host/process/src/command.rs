//! What to start: the command that a caller describes and the supervisor checks.
//!
//! Not here: starting it. Nothing in this module touches the system.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use crate::error::ProcessError;

/// A command to start. It gets exactly these variables and descriptors and nothing of the host's.
#[derive(Debug)]
pub struct Command {
    /// Program: a path, or a bare name that is looked up in the `PATH` among [`Command::variables`]
    /// (without one, in the system's default path). A relative path starts at the directory.
    pub program: OsString,
    /// Arguments, without the program's own name.
    pub args: Vec<OsString>,
    /// Working directory, as an absolute path: the guardian's own is `/`.
    pub directory: PathBuf,
    /// The complete environment variables: nothing is inherited.
    pub variables: BTreeMap<OsString, OsString>,
    /// Where the command reads from.
    pub stdin: Input,
    /// Where its output goes.
    pub stdout: Output,
    /// Where its error output goes.
    pub stderr: ErrorOutput,
    /// The terminal that it runs on: its standard input, output and error, and what controls its
    /// session. The three are [`Null`](Input::Null) then. [`open_terminal`](crate::open_terminal)
    /// opens one.
    pub terminal: Option<OwnedFd>,
    /// What it finds as descriptor 3, for example its end of a socket pair.
    pub descriptor3: Option<OwnedFd>,
    /// Bounds that the kernel holds for it and for each of its descendants.
    pub limits: Limits,
}

/// What a command's standard input is.
#[derive(Debug, Default)]
pub enum Input {
    /// Ends at once.
    #[default]
    Null,
    /// A pipe: [`Child::stdin`](crate::Child::stdin) writes into it, dropping that ends it.
    Piped,
    /// A descriptor of the caller's, for example a file.
    Descriptor(OwnedFd),
}

/// What a command's standard output is.
#[derive(Debug, Default)]
pub enum Output {
    /// Thrown away.
    #[default]
    Null,
    /// A pipe, to be read: a command whose pipe nobody reads stands still when it is full.
    Piped,
    /// A descriptor of the caller's, for example a log file.
    Descriptor(OwnedFd),
}

/// What a command's error output is.
#[derive(Debug)]
pub enum ErrorOutput {
    /// The same as standard output, in the order in which it is written.
    Merged,
    /// One of its own.
    Separate(Output),
}

impl Default for ErrorOutput {
    fn default() -> Self {
        Self::Separate(Output::Null)
    }
}

/// Bounds that the kernel enforces. They are inherited and counted for each process by itself;
/// a bound above what the host itself may use is lowered to that.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of address space. Runtimes that reserve much more than they use (Node, Go, Java) need
    /// gigabytes here.
    pub memory_bytes: Option<u64>,
    /// Open descriptors.
    pub open_files: Option<u64>,
    /// Seconds of processor time, after which the kernel ends the process by a signal.
    pub cpu_seconds: Option<u64>,
}

impl Command {
    /// Describes a command without arguments, variables, input or output.
    pub fn new(program: impl Into<OsString>, directory: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            directory: directory.into(),
            variables: BTreeMap::new(),
            stdin: Input::default(),
            stdout: Output::default(),
            stderr: ErrorOutput::default(),
            terminal: None,
            descriptor3: None,
            limits: Limits::default(),
        }
    }

    /// Refuses what no system could start.
    pub(crate) fn check(&self) -> Result<(), ProcessError> {
        if self.program.is_empty() {
            return Err(ProcessError::InvalidCommand { what: "the program's name is empty" });
        }
        if !self.directory.is_absolute() {
            let what = "the working directory is no absolute path";
            return Err(ProcessError::InvalidCommand { what });
        }
        if self.terminal.is_some() && !self.is_silent() {
            let what = "a command on a terminal has no other input and output";
            return Err(ProcessError::InvalidCommand { what });
        }
        let names = self.variables.keys();
        if names.clone().any(|name| name.is_empty() || name.as_bytes().contains(&b'=')) {
            let what = "a variable's name is empty or contains `=`";
            return Err(ProcessError::InvalidCommand { what });
        }
        let texts = std::iter::once(&self.program).chain(&self.args).chain(names);
        let texts = texts.chain(self.variables.values()).map(|text| text.as_bytes());
        let mut texts = texts.chain(std::iter::once(self.directory.as_os_str().as_bytes()));
        if texts.any(|text| text.contains(&0)) {
            return Err(ProcessError::InvalidCommand { what: "a text contains a zero byte" });
        }
        Ok(())
    }

    /// Whether it has neither input nor output by itself.
    fn is_silent(&self) -> bool {
        matches!(
            (&self.stdin, &self.stdout, &self.stderr),
            (Input::Null, Output::Null, ErrorOutput::Separate(Output::Null))
        )
    }
}
