//! Whether somebody waits for what is typed at a terminal: what `/proc` tells of a thread, and what
//! it means.
//!
//! Pure but for the clock: environments look in their own ways, and read what they found with this.

mod call;
mod seen;
mod sets;

use jaato_types::terminal::TerminalWait;

pub use call::{Call, Doing, Numbers, Timeout};
pub use seen::Seen;
pub use sets::{
    DESCRIPTORS_MAX, POLL_ENTRY_BYTES, TIME_BYTES, milliseconds, of_epoll, of_poll, of_select,
    select_bytes, terminal_index,
};

/// What was seen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Waiting {
    /// Whether somebody waits, where that can be known.
    pub waits: Option<TerminalWait>,
    /// Who waits.
    pub waiter: Option<Waiter>,
    /// The name of who is in the foreground.
    pub name: Option<String>,
}

/// Somebody who waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiter {
    /// The process.
    pub pid: u32,
    /// The thread of it.
    pub thread: u32,
    /// How much it has run, and who passes on to it: the same as long as they have not.
    pub run: Option<String>,
    /// How many milliseconds the wait takes if nothing is typed; nothing for one without end, or
    /// where that cannot be known.
    pub takes_ms: Option<u64>,
}
