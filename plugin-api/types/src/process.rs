//! The service `process`: what a call asks for to run a program, and what it is told of it.
//!
//! A tool's programs run in the session's execution environment; an environment's own run on this
//! machine.
//!
//! A program is started by [`SPAWN`], whose answer holds the process's number and the handle of a
//! stream. Each piece of that stream is a frame: a [`ProcessEvent`], and behind it the bytes of an
//! output. The last one tells the exit. Closing the stream ends the program and all that it
//! started, and so does the end of the call.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

crate::operations::service_operations! { $ process_operations, None, passed_on;
    /// Starts a program. Each frame is a `ProcessEvent`.
    spawn SPAWN "process.spawn": Spawn => Spawned + stream;
    /// Starts a program on a terminal of the caller's. The stream has the exit alone. Only
    /// execution environments may ask this, because no one else has terminals of their own.
    spawn_on_terminal SPAWN_ON_TERMINAL "process.spawn_on_terminal":
        SpawnOnTerminal => Spawned + stream;
    /// Writes the bytes to a program's standard input.
    write WRITE "process.write": ProcessWrite + bytes => ();
    /// Sends a signal to a program's process group.
    signal SIGNAL "process.signal": ProcessSignal => ();
    /// Ends a program and all that it started, with a moment to clean up. The stream then has the
    /// exit. After the exit, this ends what the program left running.
    end END "process.end": ProcessRef => ();
    /// Starts a program that outlives the call. It ends with the environment, or by `process.end`.
    /// The end of its output is kept for `process.output`.
    start START "process.start": Spawn => Started;
    /// Lists the programs that `process.start` started.
    list LIST "process.list": () => (Vec<ProcessFacts>);
    /// Reads the output of a program that `process.start` started.
    output OUTPUT "process.output": ProcessOutputRead => ProcessOutput + bytes;
    /// Waits for the exit of a program that `process.start` started.
    wait WAIT "process.wait": ProcessWait => ProcessWaited;
    /// Ends and forgets a program that `process.start` started.
    forget FORGET "process.forget": ProcessRef => ();
}

/// Asks an execution environment how the host itself shall run a program of [`SPAWN`] on this
/// machine: [`Spawn`], [`Spawn`]. Asked by the host alone. An environment whose programs the host
/// cannot run does not know it, and is asked to run them.
pub const PREPARE: &str = "process.prepare";

/// Bytes that are kept of what a program that was started by [`START`] prints; older ones are
/// dropped and counted.
pub const KEPT_BYTES_MAX: usize = 1024 * 1024;

/// Programs that were started by [`START`] that an environment keeps, ended ones included.
pub const STARTED_MAX: usize = 64;

/// Most bytes of output in one frame of a stream.
pub const OUTPUT_BYTES_MAX: usize = 64 * 1024;

/// Programs that one call may have running at a time.
pub const RUNNING_PER_CALL_MAX: usize = 16;

/// A program that is to run.
///
/// It gets the host's variables without those that look like secrets, those given here, and
/// `JAATO_SESSION_ID`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Spawn {
    /// A path, or a bare name that is looked up in `PATH`. A relative path starts at the directory.
    pub program: String,
    /// Its arguments, each one word.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Where it runs; a relative path starts at the session's working directory, which is the
    /// default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// More variables; they win over the host's.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub variables: BTreeMap<String, String>,
    /// Folders that are appended to `PATH`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub extra_paths: Vec<String>,
    /// What its standard input is.
    pub stdin: Stdin,
    /// When it is ended, in milliseconds after its start. Without one a program of [`SPAWN`] is
    /// ended after the `shell_timeout_ms` of the session's execution environment, one of [`START`]
    /// never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<u64>,
    /// How a person is told of it; without one by program and arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
}

/// A program that is to run on a terminal of the caller's.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpawnOnTerminal {
    /// The program. Its standard input is the terminal, whatever stands there.
    #[serde(flatten)]
    pub spawn: Spawn,
    /// The path of the side that programs use: `/dev/pts/3`. It becomes the program's standard
    /// input, output and error, and controls its session; the caller has the other side.
    pub terminal: String,
}

/// What a program's standard input is. A host refuses a word that it does not know: a program must
/// not run with another input than it was started for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stdin {
    /// Ends at once.
    #[default]
    Closed,
    /// A pipe, written with [`WRITE`].
    Piped,
}

impl Spawn {
    /// Runs a program without arguments.
    pub fn program(program: impl Into<String>) -> Self {
        Self { program: program.into(), ..Self::default() }
    }

    /// Runs a line in `sh`.
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

    /// Sets where it runs.
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

    /// Sets when it is ended.
    #[must_use]
    pub fn deadline_ms(mut self, milliseconds: u64) -> Self {
        self.deadline_ms = Some(milliseconds);
        self
    }

    /// Sets how a person is told of it.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }
}

/// A program that was started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spawned {
    /// Its number, by which the call names it.
    pub process: u64,
    /// Its process id, and that of its process group.
    pub pid: u32,
    /// The stream of what it does.
    pub handle: u64,
}

/// A program that outlives the call which started it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Started {
    /// Its number, by which it is named.
    pub process: u64,
    /// Its process id, where that can be known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
}

/// What is known of a program that was started by [`START`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProcessFacts {
    /// Its number.
    pub process: u64,
    /// Its process id, where that can be known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// How a person is told of it.
    pub label: String,
    /// How long ago it was started, in milliseconds.
    pub age_ms: u64,
    /// Bytes that it has printed.
    pub printed: u64,
    /// Its exit; none while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit: Option<ProcessExit>,
}

/// Reads what a program has printed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProcessOutputRead {
    /// Its number.
    pub process: u64,
    /// The byte to begin with, counted from its start; the last that are kept where this is past
    /// them.
    pub from: u64,
    /// Bytes at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_max: Option<u64>,
}

/// What a program has printed, both outputs as they came; the bytes stand beside this.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProcessOutput {
    /// The first byte's number: later than asked for where older ones are no longer kept.
    pub from: u64,
    /// Bytes that it has printed in all.
    pub printed: u64,
    /// Its exit; none while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit: Option<ProcessExit>,
}

/// Waits for a program's exit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProcessWait {
    /// Its number.
    pub process: u64,
    /// How long at most, in milliseconds; for ever without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

/// What the wait brought.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProcessWaited {
    /// The exit; none where the program still runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit: Option<ProcessExit>,
}

/// Names a program of the same call, or one that was started by [`START`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessRef {
    /// Its number.
    pub process: u64,
}

/// Writes to a program's standard input.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessWrite {
    /// Its number.
    pub process: u64,
    /// Whether the input ends behind these bytes.
    #[serde(default)]
    pub close: bool,
}

/// Sends a signal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessSignal {
    /// The program's number.
    pub process: u64,
    /// The signal.
    pub signal: Signal,
}

/// A signal that a call may send. A host refuses one that it does not know.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Signal {
    /// SIGHUP.
    Hangup,
    /// SIGINT, what Ctrl-C sends.
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

/// What a program has done: the JSON of one frame of its stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum ProcessEvent {
    /// It has printed the bytes behind this JSON.
    #[non_exhaustive]
    Output {
        /// Where to.
        stream: OutputStream,
    },
    /// It has ended; nothing comes after this.
    Exited(ProcessExit),
    /// Something that this side does not know; it is passed over, with the bytes behind it.
    #[serde(other)]
    Unknown,
}

impl ProcessEvent {
    /// Makes the event of printed bytes.
    pub fn output(stream: OutputStream) -> Self {
        Self::Output { stream }
    }
}

/// Where a program prints to. There are no others: what is printed elsewhere would be an event of
/// its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// How a program ended: with a code, or by a signal.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProcessExit {
    /// Its exit code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// The number of the signal that ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// Whether its deadline had passed.
    pub timed_out: bool,
    /// What it left running: that lives on until the host ends.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_running: Vec<LeftRunning>,
}

/// A process that outlived the program which started it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftRunning {
    /// Its process id.
    pub pid: u32,
    /// Its name as `ps` shows it.
    pub name: String,
}

/// Returns the name of a signal, `SIG` and all, where it is one of those that every Unix system has
/// under the same number.
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
    fn a_request_needs_its_program_alone() {
        let spawn: Spawn = serde_json::from_value(json!({ "program": "ls" })).unwrap();
        assert_eq!(spawn, Spawn::program("ls"));
        assert_eq!(
            serde_json::to_value(spawn).unwrap(),
            json!({ "program": "ls", "stdin": "closed" })
        );
    }

    #[test]
    fn events_are_told_apart_by_their_name() {
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
    fn an_event_from_the_future_is_one_that_nobody_knows() {
        let resized = json!({ "event": "resized", "columns": 80 });
        let event: ProcessEvent = serde_json::from_value(resized).unwrap();
        assert_eq!(event, ProcessEvent::Unknown);
    }

    #[test]
    fn orders_that_a_host_does_not_know_are_errors_that_say_what_it_knows() {
        let spawn = json!({ "program": "ls", "stdin": "terminal" });
        let error = serde_json::from_value::<Spawn>(spawn).unwrap_err().to_string();
        assert_eq!(error, "unknown variant `terminal`, expected `closed` or `piped`");
        let signal = json!({ "process": 1, "signal": "winch" });
        let error = serde_json::from_value::<ProcessSignal>(signal).unwrap_err().to_string();
        assert!(error.starts_with("unknown variant `winch`, expected one of `hangup`"), "{error}");
    }
}
