//! Detects whether a program waits for input at a terminal, from the data in `/proc`.
//!
//! Pure except for the clock. Environments read the data in their own ways and interpret it with
//! this module.

mod call;
mod descriptor_sets;
mod wait_history;

use jaato_types::terminal::TerminalWait;

pub use call::{SystemCallNumbers, SystemCallTimeout, ThreadActivity, WaitingSystemCall};
pub use descriptor_sets::{
    DESCRIPTORS_MAX, POLL_ENTRY_BYTES, TIME_BYTES, epoll_descriptors, poll_descriptors,
    select_bytes, select_descriptors, terminal_index, to_milliseconds,
};
pub use wait_history::TerminalWaitHistory;

/// The result of one look at a terminal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InputWaitState {
    /// Whether a program waits, if that is known.
    pub waits: Option<TerminalWait>,
    /// The process that waits.
    pub waiter: Option<WaitingProcess>,
    /// The name of the foreground program.
    pub name: Option<String>,
}

/// A process that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingProcess {
    /// The process id.
    pub pid: u32,
    /// The thread id.
    pub thread: u32,
    /// How much the thread, and the processes that relay input to it, have run. Unchanged while
    /// they wait.
    pub run: Option<String>,
    /// The duration of the wait in milliseconds if no input arrives. `None` if it has no timeout,
    /// or if the timeout is unknown.
    pub takes_ms: Option<u64>,
}
