//! Detects whether a program waits for input, from what the kernel reports about a terminal's
//! foreground processes.
//!
//! A waiting process is blocked in a `read` of the terminal, or in a `poll`, `select` or `epoll`
//! whose set contains it. `/proc` shows this for processes of the same user without stopping them.
//! One look may catch a program between two steps. [`InputWaitState::waiter`] tells if another look
//! saw the same wait.
//!
//! The module also looks behind programs that relay input. `sudo` and `script` create a terminal
//! for the program that they start, and `tmux` and `screen` have a server with many terminals
//! ([`relays`]).
//!
//! This works only on Linux, on x86-64 and 64-bit ARM. On other systems the result is empty. The
//! module cannot see io_uring, 32-bit programs, or programs behind a connection (`ssh`, `docker
//! exec`).

mod group;
mod process;
mod relays;

use group::ForegroundGroup;
use jaato_plugin_sdk_environment::waiting::{InputWaitState, SystemCallNumbers};
use process::ProcessStat;

pub use process::TerminalDevice;
pub use relays::RelayCache;

/// The state of a terminal to inspect.
#[derive(Debug, Clone, Copy)]
pub struct InspectedTerminal {
    /// The terminal's device.
    pub device: TerminalDevice,
    /// The program that runs on the terminal.
    pub program: u32,
    /// The foreground process group.
    pub foreground: u32,
    /// Whether programs read input line by line.
    pub reads_lines: bool,
    /// Whether the terminal echoes input.
    pub echoes: bool,
    /// Whether output followed the last input, or that input was long ago.
    pub is_answered: bool,
}

/// Looks for a waiting process. `memory` belongs to the terminal and is kept between looks.
pub fn find_waiting_process(
    terminal: &InspectedTerminal,
    memory: &mut RelayCache,
) -> InputWaitState {
    if !cfg!(target_os = "linux") {
        return InputWaitState::default();
    }
    let leader = ProcessStat::read_stat(terminal.foreground);
    let name = leader.as_ref().map(|leader| leader.name.clone());
    let Some(numbers) = SystemCallNumbers::for_this_architecture() else {
        return InputWaitState { name, ..InputWaitState::default() };
    };
    let mut group = ForegroundGroup::new(terminal, numbers);
    let leader = leader.filter(|leader| leader.group == terminal.foreground);
    if let Some(leader) = &leader {
        group.add_process(leader, terminal.device);
    }
    if !group.is_certain() {
        group.add_process_tree(leader, memory);
    }
    let (waits, waiter) = group.into_result();
    InputWaitState { waits, waiter, name }
}
