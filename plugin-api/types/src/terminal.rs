//! The services `terminal.*`: programs on a terminal of the session's execution environment.
//!
//! A terminal belongs to the environment and outlives the call that made it: it ends with [`END`],
//! with its stream, and with the environment. Its stream's frames are [`TerminalEvent`]s, the
//! output as bytes beside them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::process::{ProcessExit, Signal};

crate::operations::service_operations! { $ terminal_operations, None, passed_on;
    /// Starts a program on a new terminal. Each frame is a `TerminalEvent`.
    spawn SPAWN "terminal.spawn": TerminalSpawn => TerminalSpawned + stream;
    /// Types the bytes. The answer has JSON only if the request limits the time.
    write WRITE "terminal.write": TerminalWrite + bytes => TerminalWritten;
    /// Sets the size.
    resize RESIZE "terminal.resize": TerminalResize => ();
    /// Sends a signal to the terminal's foreground processes.
    signal SIGNAL "terminal.signal": TerminalSignal => ();
    /// Reads what the system knows of the terminal at this moment.
    state STATE "terminal.state": TerminalRef => TerminalState;
    /// Ends the program and all that it started. The stream then has the exit. After the exit, and
    /// until the stream is closed, this ends what the program left running.
    end END "terminal.end": TerminalRef => ();
    /// Shows the user the screen of the plugin's terminal. The bytes are the same screen as ANSI
    /// text.
    show SHOW "terminal.show": TerminalScreen + bytes => TerminalShown;
    /// Asks the user to type something that no one else may see, straight into the terminal.
    ask ASK "terminal.ask": TerminalAsk => TerminalAsked;
    /// Follows what users do with the plugin's terminals. Each frame is a `TerminalNews`.
    terminal_news WATCH "terminal.watch": () => StreamAnswer + stream, sdk [() as TerminalWatch];
}

/// Rows and columns of a terminal, where nothing is said.
pub const SIZE: (u16, u16) = (24, 80);

/// A program that is to run on a terminal.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TerminalSpawn {
    /// As in [`Spawn`](crate::process::Spawn).
    pub program: String,
    /// Its arguments, each one word.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Where it runs; the environment's working directory without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// More variables. `TERM` is `xterm-256color` unless it stands here.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub variables: BTreeMap<String, String>,
    /// Lines of the terminal; 24 where it is 0.
    pub rows: u16,
    /// Columns of the terminal; 80 where it is 0.
    pub columns: u16,
    /// How a person is told of it; without one by program and arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
}

/// A program that was started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalSpawned {
    /// The terminal's number, by which it is named.
    pub terminal: u64,
    /// The program's process id, where that can be known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// The stream of what happens there.
    pub handle: u64,
}

/// Names a terminal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalRef {
    /// Its number.
    pub terminal: u64,
}

/// What is to be typed: the bytes stand beside it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalWrite {
    /// The terminal's number.
    pub terminal: u64,
    /// How long that may take where nobody reads; without it, as long as it takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u64>,
}

/// How much was typed in that time. What was not is never typed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalWritten {
    /// Bytes that the terminal took.
    pub bytes: u64,
}

/// Sets a terminal's size.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalResize {
    /// Its number.
    pub terminal: u64,
    /// Lines, at least 1.
    pub rows: u16,
    /// Columns, at least 1.
    pub columns: u16,
}

/// Sends a signal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalSignal {
    /// The terminal's number.
    pub terminal: u64,
    /// The signal.
    pub signal: Signal,
}

/// What has happened on a terminal: the JSON of one frame of its stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum TerminalEvent {
    /// The bytes behind this JSON were shown, the echo of what was typed among them.
    Output,
    /// The program has ended; nothing comes after this.
    Exited(ProcessExit),
    /// Something that this side does not know; it is passed over, with the bytes behind it.
    #[serde(other)]
    Unknown,
}

/// What the system knows of a terminal at one moment. What cannot be known is absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TerminalState {
    /// Whether somebody in the foreground waits for what is typed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits: Option<TerminalWait>,
    /// Whether what is typed is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub echoes: Option<bool>,
    /// Whether what is typed is read line by line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reads_lines: Option<bool>,
    /// Who is in the foreground: its process id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub foreground_pid: Option<u32>,
    /// Who is in the foreground: its name as `ps` shows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub foreground_name: Option<String>,
    /// Who waits for what is typed: its process id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiter_pid: Option<u32>,
    /// How long the same wait has been seen, in microseconds: 0 for whoever asks first. A wait of
    /// which nothing else was seen for half a millisecond is one; a single look may have met a
    /// program between two steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waited_us: Option<u64>,
    /// How often a wait that ends by itself was seen to begin anew, while nothing was shown and
    /// nothing typed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waited_again: Option<u32>,
    /// How many milliseconds a wait takes that ends by itself: the longest of those of which
    /// `waited_again` counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u64>,
    /// Whether a wait that ends by itself is a pause (between two keys after an escape, before an
    /// end) rather than that for what is typed next: the same program was seen in longer ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_pause: Option<bool>,
    /// Whether something that was typed was not taken yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub has_input: Option<bool>,
    /// Whether something was shown that the stream did not tell yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub has_output: Option<bool>,
    /// Bytes that the stream has told: more than a reader has means that some are on their way to
    /// it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shown_bytes: Option<u64>,
}

/// What is on a terminal's screen.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TerminalScreen {
    /// The terminal's number.
    pub terminal: u64,
    /// What the plugin calls it: `session_0`.
    pub name: String,
    /// What runs on it.
    pub command: String,
    /// Lines of the terminal.
    pub rows: u16,
    /// Columns of the terminal.
    pub columns: u16,
    /// Row and column of the cursor, each counted from 0; none where it is hidden.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<(u16, u16)>,
    /// Whether a full-screen program draws it.
    pub is_full_screen: bool,
    /// The lines, without what is blank at their ends and below.
    pub lines: Vec<String>,
    /// Whether the program still runs. Nothing is shown of a terminal after a screen where it does
    /// not.
    pub is_alive: bool,
}

/// What became of a screen that was shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TerminalShown {
    /// How many people look at it at this moment: with none, the next one is wanted only after the
    /// next call.
    pub watchers: u32,
}

/// Asks the person to type.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TerminalAsk {
    /// The terminal's number.
    pub terminal: u64,
    /// What the plugin calls it.
    pub name: String,
    /// What runs on it.
    pub command: String,
    /// What the program asks for: the line where the cursor stands.
    pub prompt: String,
}

/// What became of the question. What was typed is told to nobody.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum TerminalAsked {
    /// The person typed, and it was handed to the program with a line end.
    Typed,
    /// The person would not.
    Declined,
    /// There is nobody to ask.
    Nobody {
        /// Why.
        reason: String,
    },
    /// Something that this side does not know.
    #[serde(other)]
    Unknown,
}

/// What people do with a terminal: the JSON of one frame of [`WATCH`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum TerminalNews {
    /// How many people look at it changed.
    Watched {
        /// The terminal's number.
        terminal: u64,
        /// How many do.
        watchers: u32,
    },
    /// A person typed into it.
    Typed {
        /// The terminal's number.
        terminal: u64,
        /// How many bytes of those that the terminal showed: 0 where it hides what is typed, and
        /// where how much it took is not known yet. The rest is told later.
        bytes: u64,
    },
    /// Something that this side does not know; it is passed over.
    #[serde(other)]
    Unknown,
}

/// How somebody waits for what is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TerminalWait {
    /// Nobody does: what is in the foreground is busy.
    Busy,
    /// Somebody does, without end.
    Reading,
    /// Somebody does, and goes on by itself after a while: weak evidence.
    ReadingForAWhile,
    /// Somebody does, to pass it on (`ssh`, `docker`, `tmux`): whether it is waited for there
    /// cannot be seen.
    Relaying,
    /// Something that this side does not know.
    #[serde(other)]
    Unknown,
}
