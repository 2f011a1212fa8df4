//! A command to start, as the caller describes it and the supervisor checks it.
//!
//! This module does not start anything and makes no system calls.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use crate::error::ProcessError;

/// A command to start. It gets exactly these variables and descriptors and inherits nothing from
/// the host.
#[derive(Debug)]
pub struct ChildCommand {
    /// The program: a path, or a bare name to look up in the `PATH` of [`ChildCommand::variables`]
    /// (or in the system's default path if that is not set). A relative path starts at the
    /// directory.
    pub program: OsString,
    /// Arguments, without the program's own name.
    pub args: Vec<OsString>,
    /// Working directory, as an absolute path, because the guardian's own is `/`.
    pub directory: PathBuf,
    /// The complete environment variables. Nothing is inherited.
    pub variables: BTreeMap<OsString, OsString>,
    /// The command's standard input.
    pub stdin: StandardInput,
    /// The command's standard output.
    pub stdout: StandardOutput,
    /// The command's error output.
    pub stderr: ErrorOutput,
    /// The terminal for the command. It becomes its standard input, output and error, and controls
    /// its session. The other three must then be [`Null`](StandardInput::Null).
    /// [`open_terminal`](crate::open_terminal) opens one.
    pub terminal: Option<OwnedFd>,
    /// Becomes the command's descriptor 3, for example its end of a socket pair.
    pub descriptor3: Option<OwnedFd>,
    /// Limits that the kernel enforces for the command and each of its descendants.
    pub limits: ProcessLimits,
}

/// A command's standard input.
#[derive(Debug, Default)]
pub enum StandardInput {
    /// Ends at once.
    #[default]
    Null,
    /// A pipe. [`ChildProcess::stdin`](crate::ChildProcess::stdin) writes to it, and dropping that
    /// ends it.
    Piped,
    /// A descriptor of the caller's, for example a file.
    Descriptor(OwnedFd),
}

/// A command's standard output.
#[derive(Debug, Default)]
pub enum StandardOutput {
    /// Discarded.
    #[default]
    Null,
    /// A pipe. A command blocks when its pipe is full and no one reads it.
    Piped,
    /// A descriptor of the caller's, for example a log file.
    Descriptor(OwnedFd),
}

/// A command's error output.
#[derive(Debug)]
pub enum ErrorOutput {
    /// The same as standard output, in the order of the writes.
    Merged,
    /// Separate from standard output.
    Separate(StandardOutput),
}

impl Default for ErrorOutput {
    fn default() -> Self {
        Self::Separate(StandardOutput::Null)
    }
}

/// Limits that the kernel enforces. They are inherited, and each process is counted on its own. A
/// limit above the host's own is lowered to that.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct ProcessLimits {
    /// Bytes of address space. Runtimes that reserve much more than they use (Node, Go, Java) need
    /// gigabytes here.
    pub memory_bytes: Option<u64>,
    /// Open descriptors.
    pub open_files: Option<u64>,
    /// Seconds of processor time, after which the kernel ends the process by a signal.
    pub cpu_seconds: Option<u64>,
}

impl ChildCommand {
    /// Creates a command without arguments, variables, input or output.
    pub fn new(program: impl Into<OsString>, directory: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            directory: directory.into(),
            variables: BTreeMap::new(),
            stdin: StandardInput::default(),
            stdout: StandardOutput::default(),
            stderr: ErrorOutput::default(),
            terminal: None,
            descriptor3: None,
            limits: ProcessLimits::default(),
        }
    }

    /// Rejects commands that no system could start.
    pub(crate) fn check_command(&self) -> Result<(), ProcessError> {
        if self.program.is_empty() {
            return Err(ProcessError::InvalidCommand { what: "the program's name is empty" });
        }
        if !self.directory.is_absolute() {
            let what = "the working directory is not an absolute path";
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

    /// Returns true if it has no input and no output of its own.
    fn is_silent(&self) -> bool {
        matches!(
            (&self.stdin, &self.stdout, &self.stderr),
            (
                StandardInput::Null,
                StandardOutput::Null,
                ErrorOutput::Separate(StandardOutput::Null)
            )
        )
    }
}
