//! Does somebody wait for what is typed? Found by what the kernel tells of a terminal's foreground
//! processes.
//!
//! Whoever waits is blocked in a `read` of the terminal, or in a `poll`, `select` or `epoll` that
//! has it in its set. `/proc` tells that of processes of the same user, and nothing is stopped for
//! it. One look may meet a program between two steps; [`Waiting::waiter`] tells whether another
//! look saw the same wait.
//!
//! Who passes on what is typed is looked behind: `sudo` and `script` have a terminal of their own
//! for whom they start, `tmux` and `screen` a server that has many ([`relays`]).
//!
//! Linux alone, on x86-64 and 64-bit ARM: elsewhere nothing is known, and nothing is said. What it
//! cannot see: io_uring, 32-bit programs, and what waits behind a connection (`ssh`, `docker
//! exec`).

mod group;
mod process;
mod relays;

use group::Group;
use jaato_plugin_sdk_environment::waiting::{Numbers, Waiting};
use process::Process;

pub use process::Device;
pub use relays::Memory;

/// A terminal that is looked at.
#[derive(Debug, Clone, Copy)]
pub struct Terminal {
    /// Its device.
    pub device: Device,
    /// The program that runs on it.
    pub program: u32,
    /// The process group in its foreground.
    pub foreground: u32,
    /// Whether what is typed is read line by line.
    pub reads_lines: bool,
    /// Whether what is typed is shown.
    pub echoes: bool,
    /// Whether something was shown since somebody typed there, or that is long ago.
    pub is_answered: bool,
}

/// Looks who waits. The memory is the terminal's, from look to look.
pub fn look(terminal: &Terminal, memory: &mut Memory) -> Waiting {
    if !cfg!(target_os = "linux") {
        return Waiting::default();
    }
    let leader = Process::read(terminal.foreground);
    let name = leader.as_ref().map(|leader| leader.name.clone());
    let Some(numbers) = Numbers::own() else { return Waiting { name, ..Waiting::default() } };
    let mut group = Group::new(terminal, numbers);
    let leader = leader.filter(|leader| leader.group == terminal.foreground);
    if let Some(leader) = &leader {
        group.add(leader, terminal.device);
    }
    if !group.is_certain() {
        group.add_tree(leader, memory);
    }
    let (waits, waiter) = group.answer();
    Waiting { waits, waiter, name }
}
