//! Errors of child processes, described for the user.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

/// Why a child process could not be started, watched or ended.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// The command would be invalid on any system.
    #[error("not a command: {what}")]
    InvalidCommand {
        /// The problem.
        what: &'static str,
    },
    /// Arguments and variables exceed the size limit of the guardian's protocol.
    #[error(
        "the command has {bytes} bytes of arguments and variables, but the limit is {bytes_max}"
    )]
    CommandTooLarge {
        /// Size of program, arguments and variables.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// The program does not exist, or the interpreter that a script names does not.
    #[error("cannot start `{}`: no such program", .program.display())]
    ProgramNotFound {
        /// The program as given.
        program: OsString,
    },
    /// The program exists but cannot be run.
    #[error("cannot start `{}`: not executable: {source}", .program.display())]
    NotExecutable {
        /// The program as given.
        program: OsString,
        /// The system's error.
        source: io::Error,
    },
    /// The system rejected arguments and variables because of their size.
    #[error(
        "cannot start `{}`: the system refuses {bytes} bytes of arguments and variables",
        .program.display()
    )]
    ArgumentsTooLong {
        /// The program as given.
        program: OsString,
        /// Size of program, arguments and variables.
        bytes: usize,
    },
    /// The working directory does not exist or cannot be entered.
    #[error("cannot work in `{directory}`: {source}")]
    BadDirectory {
        /// The directory as given.
        directory: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The system could not start another process (memory, number of processes).
    #[error("cannot start `{}`: {source}", .program.display())]
    CannotStart {
        /// The program as given.
        program: OsString,
        /// The system's error.
        source: io::Error,
    },
    /// No pipe or socket could be created.
    #[error("cannot connect a child process: {source}")]
    NoDescriptors {
        /// The system's error.
        source: io::Error,
    },
    /// The guardian could not be started.
    #[error("cannot start the guardian `{program}`: {source}")]
    GuardianNotStarted {
        /// The guardian's program.
        program: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The process that was started as the guardian ended immediately, because its program does not
    /// support that role.
    #[error("`{program} {}` exited immediately instead of becoming the guardian", join_arguments(.args))]
    NoGuardian {
        /// The guardian's program.
        program: PathBuf,
        /// Its arguments.
        args: Vec<OsString>,
    },
    /// This process was itself started as a guardian, but has not become one.
    #[error("this process was started to become a guardian, but starts children instead")]
    IsGuardian,
    /// The guardian (or this child's keeper) died or was ended, together with everything it
    /// watched.
    #[error("the guardian has ended together with everything that it watched")]
    GuardianLost,
    /// The guardian does not accept or answer a request.
    #[error("the guardian did not answer within {waited_ms} ms")]
    GuardianSilent {
        /// How long the host waited.
        waited_ms: u64,
    },
    /// The guardian uses another version of the protocol.
    #[error("the guardian does not support protocol version {wants}")]
    GuardianVersion {
        /// This host's version.
        wants: u8,
    },
    /// The guardian sent an invalid answer.
    #[error("the guardian misbehaves: {what}")]
    GuardianAnswer {
        /// The problem.
        what: &'static str,
    },
    /// Some descendants could not be ended in time, because we may not kill them or they are stuck
    /// in the kernel.
    #[error("could not end these processes: `{}`", join_pids(.pids))]
    Survivors {
        /// Their process ids, at most [`LEFTOVERS_MAX`](crate::LEFTOVERS_MAX).
        pids: Vec<u32>,
    },
}

impl ProcessError {
    /// Returns true if the same call may succeed later without any change.
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::CannotStart { .. }
            | Self::NoDescriptors { .. }
            | Self::GuardianLost
            | Self::GuardianSilent { .. } => true,
            Self::InvalidCommand { .. }
            | Self::CommandTooLarge { .. }
            | Self::ProgramNotFound { .. }
            | Self::NotExecutable { .. }
            | Self::ArgumentsTooLong { .. }
            | Self::BadDirectory { .. }
            | Self::GuardianNotStarted { .. }
            | Self::NoGuardian { .. }
            | Self::IsGuardian
            | Self::GuardianVersion { .. }
            | Self::GuardianAnswer { .. }
            | Self::Survivors { .. } => false,
        }
    }

    /// Returns what the user can do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::ProgramNotFound { .. } => Some(
                "check the spelling, whether it is installed, and `PATH`; for a script, its first line",
            ),
            Self::NotExecutable { .. } => Some("check that it is a program file, `chmod +x` it"),
            Self::CommandTooLarge { .. } | Self::ArgumentsTooLong { .. } => {
                Some("pass the data through standard input or a file")
            }
            Self::BadDirectory { .. } => Some("name a directory that exists and may be entered"),
            Self::CannotStart { .. } => {
                Some("end other processes, or see `ulimit -u` and free memory")
            }
            Self::NoDescriptors { .. } => Some("raise `ulimit -n`"),
            Self::GuardianVersion { .. } => Some("restart jaato: its program file was replaced"),
            Self::Survivors { .. } => {
                Some("end them with the rights of their owner: `sudo kill -9 PID`")
            }
            Self::NoGuardian { .. } | Self::IsGuardian => Some(
                "at the start of `main`, call `jaato_process::guardian_main` for that argument, or set \
                 `Setup::executable` to an installed `jaato`",
            ),
            Self::GuardianLost => Some("restart jaato; its log may show why"),
            Self::GuardianSilent { .. } => {
                Some("the machine may be overloaded: try again, or restart jaato")
            }
            Self::InvalidCommand { .. }
            | Self::GuardianNotStarted { .. }
            | Self::GuardianAnswer { .. } => None,
        }
    }
}

fn join_arguments(args: &[OsString]) -> String {
    let words: Vec<_> = args.iter().map(|word| word.to_string_lossy()).collect();
    words.join(" ")
}

fn join_pids(pids: &[u32]) -> String {
    let pids: Vec<_> = pids.iter().map(u32::to_string).collect();
    pids.join(" ")
}
