//! Exit codes, and errors for the terminal.

use std::fmt;
use std::process::ExitCode;

use jaato_runtime::config::NoHomeFolder;
use jaato_runtime::loader::mark_work_done;
use jaato_runtime::registry::nearest_name;
use jaato_runtime::types::{Error, ErrorKind};

use crate::terminal;

/// The exit code of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Everything ended successfully.
    Done = 0,
    /// The task failed.
    Failed = 1,
    /// The command line is wrong.
    Usage = 2,
    /// The configuration is wrong.
    Configuration = 3,
    /// A plugin is missing, refused or broken.
    Plugin = 4,
    /// The model's provider failed.
    Provider = 5,
    /// A limit was reached, or a permission was missing.
    Limit = 6,
    /// Cancelled.
    Cancelled = 130,
}

impl Exit {
    /// Returns the worse of two ends in one conversation: a failure is worse than a limit, and the
    /// worst is the user's cancellation.
    pub fn worse_of(self, other: Self) -> Self {
        let rank = |exit| match exit {
            Self::Done => 0,
            Self::Limit => 1,
            Self::Usage => 2,
            Self::Failed => 3,
            Self::Provider => 4,
            Self::Plugin => 5,
            Self::Configuration => 6,
            Self::Cancelled => 7,
        };
        if rank(other) > rank(self) { other } else { self }
    }

    /// Returns the exit with this code, if there is one.
    pub fn from_code(code: u8) -> Option<Self> {
        let all = [
            Self::Done,
            Self::Failed,
            Self::Usage,
            Self::Configuration,
            Self::Plugin,
            Self::Provider,
            Self::Limit,
            Self::Cancelled,
        ];
        all.into_iter().find(|exit| *exit as u8 == code)
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Ends the process immediately, from anywhere.
pub fn exit_now(code: i32) -> ! {
    mark_work_done(code);
    terminal::give_terminal_back();
    std::process::exit(code)
}

/// An error that ends the process: its exit code, its text, and a hint.
#[derive(Debug)]
pub struct CommandFailure {
    /// The exit code.
    pub exit: Exit,
    /// Lower case, without a final period.
    pub message: String,
    /// How to fix it.
    pub hint: Option<String>,
}

/// The result of a command.
pub type CommandResult = Result<Exit, CommandFailure>;

impl CommandFailure {
    /// Creates a failure without a hint.
    pub fn new(exit: Exit, message: impl fmt::Display) -> Self {
        Self { exit, message: message.to_string(), hint: None }
    }

    /// Returns the failure for an unknown name of a `what` (plugin, tool), with the most similar
    /// known name.
    pub fn unknown<'a>(what: &str, name: &str, known: impl Iterator<Item = &'a str>) -> Self {
        let failure = Self::new(Exit::Usage, format!("there is no {what} `{name}`"));
        match nearest_name(name, known) {
            Some(near) => failure.hint(format!("did you mean `{near}`?")),
            None => failure.hint(format!("`jaato {what} list` lists them")),
        }
    }

    /// Adds a hint.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds a hint, if there is one.
    pub fn maybe_hint(mut self, hint: Option<impl Into<String>>) -> Self {
        self.hint = hint.map(Into::into);
        self
    }
}

impl From<NoHomeFolder> for CommandFailure {
    fn from(error: NoHomeFolder) -> Self {
        Self::new(Exit::Configuration, error).hint(error.hint())
    }
}

impl From<Error> for CommandFailure {
    fn from(error: Error) -> Self {
        Self { exit: exit_for_error(error.kind), message: error.message, hint: error.hint }
    }
}

/// Returns the exit code for an error's kind.
pub fn exit_for_error(kind: ErrorKind) -> Exit {
    match kind {
        ErrorKind::InvalidArguments | ErrorKind::UnknownTool => Exit::Usage,
        ErrorKind::Configuration => Exit::Configuration,
        ErrorKind::PluginPanicked
        | ErrorKind::PluginMisbehaved
        | ErrorKind::PluginCrashed
        | ErrorKind::PluginDisabled
        | ErrorKind::UnknownOperation => Exit::Plugin,
        ErrorKind::Provider | ErrorKind::ContextOverflow => Exit::Provider,
        ErrorKind::LimitReached | ErrorKind::PermissionDenied => Exit::Limit,
        ErrorKind::Cancelled => Exit::Cancelled,
        ErrorKind::ToolDisabled
        | ErrorKind::NotFound
        | ErrorKind::Conflict
        | ErrorKind::Unavailable
        | ErrorKind::Timeout
        | ErrorKind::HostBug
        | ErrorKind::Io
        | ErrorKind::Failed
        | ErrorKind::Other => Exit::Failed,
    }
}
