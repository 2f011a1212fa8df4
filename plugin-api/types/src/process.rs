//! The services `process.*`, which run programs for a call.
//!
//! A tool's programs run in the session's execution environment. The programs of an environment
//! plugin run on this machine.
//!
//! [`SPAWN`] starts a program and returns its number and the handle of a stream. Each piece of that
//! stream is a frame: a [`ProcessEvent`], followed by the bytes of an output. The last one reports
//! the exit. Closing the stream ends the program and all processes that it started. The end of the
//! call does the same.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

crate::operations::service_operations! { $ process_operations, None, passed_on;
    /// Starts a program. Each frame is a `ProcessEvent`.
    [hooks] spawn SPAWN "process.spawn": Spawn => SpawnAnswer + stream;
    /// Starts a program on a terminal of the caller. The stream reports only the exit. Only
    /// execution environments can use it, because no other plugin has terminals of its own.
    spawn_on_terminal SPAWN_ON_TERMINAL "process.spawn_on_terminal":
        SpawnOnTerminal => SpawnAnswer + stream;
    /// Writes the bytes to a program's standard input.
    [hooks] write WRITE "process.write": ProcessWrite + bytes => ();
    /// Sends a signal to a program's process group.
    [hooks] signal SIGNAL "process.signal": ProcessSignal => ();
    /// Ends a program and all processes that it started, after a short grace period. The stream
    /// then reports the exit. For a program that has already ended, it ends the processes that are
    /// still running.
    [hooks] end END "process.end": ProcessRef => ();
    /// Starts a program that outlives the call. It ends with the environment or by `process.end`.
    /// The end of its output is kept for `process.output`.
    start START "process.start": Spawn => ProcessStartAnswer;
    /// Lists the programs started by `process.start`.
    list LIST "process.list": () => (Vec<ProcessFacts>);
    /// Reads the output of a program started by `process.start`.
    output OUTPUT "process.output": ProcessOutputRead => ProcessOutput + bytes;
    /// Waits for the exit of a program started by `process.start`.
    wait WAIT "process.wait": ProcessWait => ProcessWaitAnswer;
    /// Ends and forgets a program started by `process.start`.
    forget FORGET "process.forget": ProcessRef => ();
}

/// Asks an execution environment how the host itself should run a program of [`SPAWN`] on this
/// machine. Takes and returns a [`Spawn`]. Only the host calls it. Environments whose programs the
/// host cannot run do not know this operation and run the programs themselves.
pub const PREPARE: &str = "process.prepare";

/// The maximum number of output bytes kept for a program started by [`START`]. Older ones are
/// dropped and counted.
pub const KEPT_BYTES_MAX: usize = 1024 * 1024;

/// The maximum number of programs started by [`START`] in an environment, including finished ones.
pub const STARTED_MAX: usize = 64;

/// The maximum number of output bytes in one frame of a stream.
pub const OUTPUT_BYTES_MAX: usize = 64 * 1024;

/// The maximum number of simultaneous programs of one call.
pub const RUNNING_PER_CALL_MAX: usize = 16;

/// A program to run.
///
/// The program gets the host's variables except those that look like secrets, the variables in this
/// request, and `JAATO_SESSION_ID`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Spawn {
    /// The program: a path, or a name to look up in `PATH`. A relative path is relative to
    /// `directory`.
    pub program: String,
    /// The arguments, one word each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// The working directory of the program, by default the session's. A relative path is relative
    /// to the session's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// Additional variables, which override those of the host.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub variables: BTreeMap<String, String>,
    /// Folders to append to `PATH`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub extra_paths: Vec<String>,
    /// The standard input.
    pub stdin: Stdin,
    /// The time limit, in milliseconds after the start. If absent, a program of [`SPAWN`] ends
    /// after the `shell_timeout_ms` of the session's execution environment, and one of [`START`]
    /// has no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<u64>,
    /// The name of the program for users. If absent, the program and its arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
}

/// A program to run on a terminal of the caller.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpawnOnTerminal {
    /// The program. Its standard input is the terminal, regardless of `stdin`.
    #[serde(flatten)]
    pub spawn: Spawn,
    /// The path of the terminal's program side: `/dev/pts/3`. It becomes the program's standard
    /// input, output and error, and its controlling terminal. The caller keeps the other side.
    pub terminal: String,
}

/// The standard input of a program. The host refuses unknown words, because a program must not run
/// with a different input than requested.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stdin {
    /// Standard input ends immediately.
    #[default]
    Closed,
    /// A pipe. Write to it with [`WRITE`].
    Piped,
}

impl Spawn {
    /// Creates a request for a program without arguments.
    pub fn program(program: impl Into<String>) -> Self {
        Self { program: program.into(), ..Self::default() }
    }

    /// Creates a request that runs a command line in `sh`.
    pub fn shell(line: impl Into<String>) -> Self {
        Self::program("sh").arg("-c").arg(line)
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<String>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Adds a variable.
    #[must_use]
    pub fn variable(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.variables.insert(name.into(), value.into());
        self
    }

    /// Sets the working directory.
    #[must_use]
    pub fn directory(mut self, directory: impl Into<String>) -> Self {
        self.directory = Some(directory.into());
        self
    }

    /// Makes standard input a pipe.
    #[must_use]
    pub fn piped_stdin(mut self) -> Self {
        self.stdin = Stdin::Piped;
        self
    }

    /// Sets the time limit.
    #[must_use]
    pub fn deadline_ms(mut self, milliseconds: u64) -> Self {
        self.deadline_ms = Some(milliseconds);
        self
    }

    /// Sets the name for users.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }
}

/// A running program.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpawnAnswer {
    /// The number by which the call refers to it.
    pub process: u64,
    /// The process id, which is also the id of its process group.
    pub pid: u32,
    /// The stream of the program's events.
    pub handle: u64,
}

/// A program that outlives the call that started it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessStartAnswer {
    /// The number that identifies it.
    pub process: u64,
    /// The process id, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
}

/// Facts about a program started by [`START`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProcessFacts {
    /// The number of the program.
    pub process: u64,
    /// The process id, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// The name of the program for users.
    pub label: String,
    /// The time since its start, in milliseconds.
    pub age_ms: u64,
    /// The number of bytes that it has printed.
    pub printed: u64,
    /// The exit. `None` while the program is running.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit: Option<ProcessExit>,
}

/// A request to read a program's output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProcessOutputRead {
    /// The number of the program.
    pub process: u64,
    /// The offset of the first byte to read, counted from the start of the output. It is clamped to
    /// the range of the bytes that are kept.
    pub from: u64,
    /// The maximum number of bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_max: Option<u64>,
}

/// The output of a program, with standard output and standard error in the order of arrival. The
/// bytes are in the same frame.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProcessOutput {
    /// The offset of the first byte. It is greater than requested if older bytes were dropped.
    pub from: u64,
    /// The total number of bytes that the program has printed.
    pub printed: u64,
    /// The exit. `None` while the program is running.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit: Option<ProcessExit>,
}

/// A request to wait for a program's exit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProcessWait {
    /// The number of the program.
    pub process: u64,
    /// The maximum wait, in milliseconds. Without a limit if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

/// The result of a wait.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProcessWaitAnswer {
    /// The exit. `None` if the program is still running.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit: Option<ProcessExit>,
}

/// The number of a program of the same call, or of one started by [`START`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessRef {
    /// The number.
    pub process: u64,
}

/// A request to write to a program's standard input.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessWrite {
    /// The number of the program.
    pub process: u64,
    /// Whether to close the input after these bytes.
    #[serde(default)]
    pub close: bool,
}

/// A request to send a signal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessSignal {
    /// The program's number.
    pub process: u64,
    /// The signal.
    pub signal: Signal,
}

/// A signal that a call may send. The host refuses unknown signals.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Signal {
    /// SIGHUP.
    Hangup,
    /// SIGINT, as sent by Ctrl-C.
    Interrupt,
    /// SIGQUIT.
    Quit,
    /// SIGTERM.
    #[default]
    Terminate,
    /// SIGKILL.
    Kill,
    /// SIGUSR1.
    User1,
    /// SIGUSR2.
    User2,
    /// SIGSTOP.
    Stop,
    /// SIGCONT.
    Continue,
}

/// An event of a program: the JSON of one frame of its stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum ProcessEvent {
    /// The program printed the bytes after this JSON.
    #[non_exhaustive]
    Output {
        /// The output stream.
        stream: OutputStream,
    },
    /// The program ended. No events follow.
    Exited(ProcessExit),
    /// An event from a newer version. It is skipped, together with its bytes.
    #[serde(other)]
    Unknown,
}

impl ProcessEvent {
    /// Creates the event for printed bytes.
    pub fn output(stream: OutputStream) -> Self {
        Self::Output { stream }
    }
}

/// An output stream of a program. There will be no others: other kinds of output would be separate
/// events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// How a program ended: by an exit code or by a signal.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProcessExit {
    /// The exit code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// The number of the signal that ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// Whether the program exceeded its time limit.
    pub timed_out: bool,
    /// The processes that it left running. They run until the host ends.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_running: Vec<LeftoverProcess>,
}

/// A process that outlived the program that started it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftoverProcess {
    /// The process id.
    pub pid: u32,
    /// The process name, as `ps` shows it.
    pub name: String,
}

/// Returns the name of a signal, including `SIG`, if all Unix systems use the same number for it.
pub fn signal_name(number: i32) -> Option<&'static str> {
    Some(match number {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        5 => "SIGTRAP",
        6 => "SIGABRT",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn spawn_request_needs_only_its_program() {
        let spawn: Spawn = serde_json::from_value(json!({ "program": "ls" })).unwrap();
        assert_eq!(spawn, Spawn::program("ls"));
        assert_eq!(
            serde_json::to_value(spawn).unwrap(),
            json!({ "program": "ls", "stdin": "closed" })
        );
    }

    #[test]
    fn process_events_are_tagged_with_their_name() {
        let output = ProcessEvent::output(OutputStream::Stderr);
        assert_eq!(
            serde_json::to_value(&output).unwrap(),
            json!({ "event": "output", "stream": "stderr" })
        );
        let exit = ProcessExit { signal: Some(9), timed_out: true, ..ProcessExit::default() };
        let written = serde_json::to_value(ProcessEvent::Exited(exit.clone())).unwrap();
        assert_eq!(written, json!({ "event": "exited", "signal": 9, "timed_out": true }));
        let read: ProcessEvent = serde_json::from_value(written).unwrap();
        assert_eq!(read, ProcessEvent::Exited(exit));
    }

    #[test]
    fn unknown_process_event_is_read_as_unknown() {
        let resized = json!({ "event": "resized", "columns": 80 });
        let event: ProcessEvent = serde_json::from_value(resized).unwrap();
        assert_eq!(event, ProcessEvent::Unknown);
    }

    #[test]
    fn unknown_stdin_mode_or_signal_error_lists_the_known_values() {
        let spawn = json!({ "program": "ls", "stdin": "terminal" });
        let error = serde_json::from_value::<Spawn>(spawn).unwrap_err().to_string();
        assert_eq!(error, "unknown variant `terminal`, expected `closed` or `piped`");
        let signal = json!({ "process": 1, "signal": "winch" });
        let error = serde_json::from_value::<ProcessSignal>(signal).unwrap_err().to_string();
        assert!(error.starts_with("unknown variant `winch`, expected one of `hangup`"), "{error}");
    }
}
