//! The services `terminal.*`: programs on a terminal in the session's execution environment.
//!
//! A terminal belongs to the environment and outlives the call that created it. It ends with
//! [`END`], with its stream, and with the environment. The frames of its stream are
//! [`TerminalEvent`]s, with the output as bytes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::process::{ProcessExit, Signal};

crate::operations::service_operations! { $ terminal_operations, None, passed_on;
    /// Starts a program on a new terminal. Each frame is a `TerminalEvent`.
    spawn SPAWN "terminal.spawn": TerminalSpawn => TerminalSpawnAnswer + stream;
    /// Types the bytes into a terminal. The answer has JSON only if the request has a time limit.
    write WRITE "terminal.write": TerminalWrite + bytes => TerminalWriteAnswer;
    /// Sets the size.
    resize RESIZE "terminal.resize": TerminalResize => ();
    /// Sends a signal to the terminal's foreground processes.
    signal SIGNAL "terminal.signal": TerminalSignal => ();
    /// Returns the current state of the terminal, as the system reports it.
    state STATE "terminal.state": TerminalRef => TerminalState;
    /// Ends the program and all processes that it started. The stream then reports the exit. After
    /// the exit, and until the stream is closed, it ends the processes that are still running.
    end END "terminal.end": TerminalRef => ();
    /// Shows users the screen of a terminal of the plugin. The bytes are the same screen as ANSI
    /// text.
    show SHOW "terminal.show": TerminalScreen + bytes => TerminalShowAnswer;
    /// Asks the user to type a secret directly into the terminal.
    ask ASK "terminal.ask": TerminalAsk => TerminalAskOutcome;
    /// Follows users' actions on the plugin's terminals. Each frame is a `TerminalUserAction`.
    terminal_news WATCH "terminal.watch": () => StreamAnswer + stream, sdk [() as TerminalWatch];
}

/// The default rows and columns of a terminal.
pub const SIZE: (u16, u16) = (24, 80);

/// A program to run on a terminal.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TerminalSpawn {
    /// The program, as in [`Spawn`](crate::process::Spawn).
    pub program: String,
    /// The arguments, one word each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// The working directory of the program. If absent, that of the environment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// Additional variables. `TERM` is `xterm-256color` unless it is set here.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub variables: BTreeMap<String, String>,
    /// The number of lines. 0 means 24.
    pub rows: u16,
    /// The number of columns. 0 means 80.
    pub columns: u16,
    /// The name of the program for users. If absent, the program and its arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
}

/// A running program on a terminal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalSpawnAnswer {
    /// The number that identifies the terminal.
    pub terminal: u64,
    /// The program's process id, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// The stream of the terminal's events.
    pub handle: u64,
}

/// The number of a terminal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalRef {
    /// The number.
    pub terminal: u64,
}

/// A request to type the bytes of the frame into a terminal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalWrite {
    /// The terminal's number.
    pub terminal: u64,
    /// The maximum duration if no program reads the input. Without a limit if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u64>,
}

/// The amount that was typed in time. The rest is never typed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalWriteAnswer {
    /// The number of bytes that the terminal accepted.
    pub bytes: u64,
}

/// A request to set a terminal's size.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalResize {
    /// The terminal's number.
    pub terminal: u64,
    /// The number of lines, at least 1.
    pub rows: u16,
    /// The number of columns, at least 1.
    pub columns: u16,
}

/// A request to send a signal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalSignal {
    /// The terminal's number.
    pub terminal: u64,
    /// The signal.
    pub signal: Signal,
}

/// An event of a terminal: the JSON of one frame of its stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum TerminalEvent {
    /// The terminal showed the bytes after this JSON, including the echo of input.
    Output,
    /// The program ended. No events follow.
    Exited(ProcessExit),
    /// An event from a newer version. It is skipped, together with its bytes.
    #[serde(other)]
    Unknown,
}

/// The state of a terminal at one moment, as the system reports it. Unknown values are absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TerminalState {
    /// Whether a foreground process waits for input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits: Option<TerminalWait>,
    /// Whether input is echoed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub echoes: Option<bool>,
    /// Whether input is read line by line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reads_lines: Option<bool>,
    /// The process id of the foreground process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub foreground_pid: Option<u32>,
    /// The name of the foreground process, as `ps` shows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub foreground_name: Option<String>,
    /// The process id of the process that waits for input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiter_pid: Option<u32>,
    /// How long the same wait has been observed, in microseconds; 0 on the first request. Only an
    /// uninterrupted wait of at least half a millisecond counts as a wait, because a single
    /// observation may catch a program between two steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waited_us: Option<u64>,
    /// How often a wait with a timeout was observed to begin again without output or input in
    /// between.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waited_again: Option<u32>,
    /// The timeout of such a wait, in milliseconds: the longest of those that `waited_again`
    /// counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u64>,
    /// Whether a wait with a timeout is a pause (between two keys after an escape, before an exit)
    /// rather than a wait for the next input, because the same program was observed in longer
    /// waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_pause: Option<bool>,
    /// Whether there is input that no program has read yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub has_input: Option<bool>,
    /// Whether there is output that the stream has not delivered yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub has_output: Option<bool>,
    /// The number of bytes that the stream has delivered. If a reader has fewer, some are still on
    /// their way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shown_bytes: Option<u64>,
}

/// The screen of a terminal.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TerminalScreen {
    /// The terminal's number.
    pub terminal: u64,
    /// The plugin's name for the terminal: `session_0`.
    pub name: String,
    /// The command that runs on the terminal.
    pub command: String,
    /// The number of lines.
    pub rows: u16,
    /// The number of columns.
    pub columns: u16,
    /// Row and column of the cursor, counted from 0. `None` if it is hidden.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<(u16, u16)>,
    /// Whether a full-screen program draws the screen.
    pub is_full_screen: bool,
    /// The lines, without trailing blanks and without blank lines at the end.
    pub lines: Vec<String>,
    /// Whether the program is still running. A screen with `false` is the last one of a terminal.
    pub is_alive: bool,
}

/// The result of showing a screen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TerminalShowAnswer {
    /// The number of users who currently watch the terminal. If it is 0, the host needs the next
    /// screen only after the next call.
    pub watchers: u32,
}

/// A request for the user to type a secret.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TerminalAsk {
    /// The terminal's number.
    pub terminal: u64,
    /// The plugin's name for the terminal.
    pub name: String,
    /// The command that runs on the terminal.
    pub command: String,
    /// The program's prompt: the line with the cursor.
    pub prompt: String,
}

/// The result of the request. The typed text is not disclosed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum TerminalAskOutcome {
    /// The user typed, and the program got the input with a line ending.
    Typed,
    /// The user declined.
    Declined,
    /// No user could be asked.
    Nobody {
        /// The reason.
        reason: String,
    },
    /// An outcome from a newer version.
    #[serde(other)]
    Unknown,
}

/// A user's action on a terminal: the JSON of one frame of [`WATCH`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum TerminalUserAction {
    /// The number of watching users changed.
    Watched {
        /// The terminal's number.
        terminal: u64,
        /// The number of users.
        watchers: u32,
    },
    /// A user typed into the terminal.
    Typed {
        /// The terminal's number.
        terminal: u64,
        /// The number of typed bytes that the terminal echoed. 0 if it hides the input, or if the
        /// number is not known yet. Later events report the rest.
        bytes: u64,
    },
    /// An action from a newer version. It is skipped.
    #[serde(other)]
    Unknown,
}

/// How the foreground waits for input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TerminalWait {
    /// No process waits: the foreground process is busy.
    Busy,
    /// A process waits without a timeout.
    Reading,
    /// A process waits and continues after a timeout, which is weak evidence.
    ReadingForAWhile,
    /// A process waits in order to forward the input (`ssh`, `docker`, `tmux`). Whether the
    /// receiver waits is unknown.
    Relaying,
    /// A state from a newer version.
    #[serde(other)]
    Unknown,
}
