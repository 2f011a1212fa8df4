//! Does somebody wait for what is typed? Found by what the kernel tells of a terminal's foreground processes.
//!
//! Whoever waits is blocked in a `read` of the terminal, or in a `poll`, `select` or `epoll` that has it in its
//! set. `/proc` tells that of processes of the same user, and nothing is stopped for it. One look may meet a
//! program between two steps; [`Waiting::waiter`] tells whether another look saw the same wait.
//!
//! Linux alone, on x86-64 and 64-bit ARM: elsewhere nothing is known, and nothing is said. What it cannot see:
//! io_uring, 32-bit programs, and what waits behind a connection (`ssh`, `docker exec`).

mod call;
mod process;
mod sets;

use call::{Call, Doing, Numbers, Timeout};
use jaato_plugin_sdk::types::terminal::TerminalWait;
use process::{Process, children};

pub use process::Device;

/// Processes of a terminal that are looked at. Where there are more, a wait may be missed, and nothing is said.
const PROCESSES_MAX: usize = 256;

/// Terminals inside of terminals (`sudo` in `script`) that are gone into.
const DEPTH_MAX: usize = 4;

/// Programs that pass on what is typed: that they wait for it says nothing of who gets it.
const RELAYS: [&str; 10] = [
    "ssh",
    "docker",
    "podman",
    "kubectl",
    "sudo",
    "su",
    "script",
    "screen",
    "rlwrap",
    "tmux: client",
];

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
}

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
    /// How much it has run: the same as long as it has not.
    pub run: Option<String>,
}

/// Looks who waits.
pub fn look(terminal: &Terminal) -> Waiting {
    if !cfg!(target_os = "linux") {
        return Waiting::default();
    }
    let leader = Process::read(terminal.foreground);
    let name = leader.as_ref().map(|leader| leader.name.clone());
    let Some(numbers) = Numbers::own() else { return Waiting { name, ..Waiting::default() } };
    let mut group = Group::new(terminal, numbers);
    if let Some(leader) = leader.filter(|leader| leader.group == terminal.foreground) {
        group.add(&leader, terminal.device);
    }
    if !group.is_certain() {
        group.add_tree(terminal.program);
    }
    let (waits, waiter) = group.answer();
    Waiting { waits, waiter, name }
}

/// What was found so far, of the processes in the foreground.
struct Group<'a> {
    terminal: &'a Terminal,
    numbers: &'static Numbers,
    seen: Vec<u32>,
    /// The best evidence, and who gave it.
    best: Option<(Evidence, Waiter)>,
    /// Somebody of another user, who may not be looked into.
    hidden: Option<Waiter>,
    is_running: bool,
    is_incomplete: bool,
}

/// What speaks for a wait, the weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Evidence {
    ForAWhile,
    Relaying,
    Reading,
}

impl<'a> Group<'a> {
    fn new(terminal: &'a Terminal, numbers: &'static Numbers) -> Self {
        Self {
            terminal,
            numbers,
            seen: Vec::new(),
            best: None,
            hidden: None,
            is_running: false,
            is_incomplete: false,
        }
    }

    fn is_certain(&self) -> bool {
        self.best.as_ref().is_some_and(|best| best.0 == Evidence::Reading)
    }

    /// Adds what a process tells of a terminal.
    fn add(&mut self, process: &Process, terminal: Device) {
        if process.has_ended() || self.seen.contains(&process.pid) {
            return;
        }
        self.seen.push(process.pid);
        for thread in process.threads() {
            let text = match process.call_of(thread) {
                Ok(text) => text,
                Err(error) => {
                    let is_refused = error.kind() == std::io::ErrorKind::PermissionDenied;
                    return if is_refused {
                        self.add_hidden(process)
                    };
                }
            };
            let Some(doing) = self.numbers.read(&text) else { continue };
            let Some(found) = self.evidence(process, thread, terminal, doing) else { continue };
            let run = process.run_of(thread);
            let waiter = Waiter { pid: process.pid, thread, run };
            if self.best.as_ref().is_none_or(|best| best.0 < found) {
                self.best = Some((found, waiter));
            }
            if found == Evidence::Reading {
                return;
            }
        }
    }

    /// Tells whether a thread waits for a terminal.
    fn evidence(
        &mut self,
        process: &Process,
        thread: u32,
        terminal: Device,
        doing: Doing,
    ) -> Option<Evidence> {
        let call = match doing {
            Doing::Running => {
                self.is_running = true;
                return None;
            }
            Doing::Blocked(call) => call,
        };
        let (waited_for, timeout) = waited_for(process, thread, call)?;
        if !waited_for.iter().any(|number| process.is_terminal(*number, terminal)) {
            return None;
        }
        let is_relay = RELAYS.contains(&process.name.as_str());
        // A relay that reads a line asks for something itself: a password.
        let asks_itself = matches!(call, Call::Read { .. }) && self.terminal.reads_lines;
        Some(match timeout {
            _ if is_relay && !asks_itself => Evidence::Relaying,
            Timeout::Endless => Evidence::Reading,
            Timeout::Timed => Evidence::ForAWhile,
        })
    }

    /// Notes somebody who may not be looked into.
    fn add_hidden(&mut self, process: &Process) {
        self.is_running |= process.state == 'R';
        if process.is_foreign() {
            let (pid, run) = (process.pid, process.run_of(process.pid));
            self.hidden = Some(Waiter { pid, thread: pid, run });
        } else {
            self.is_incomplete = true;
        }
    }

    /// Adds what the program and its descendants tell.
    fn add_tree(&mut self, program: u32) {
        let tree = self.tree(program);
        let foreground = self.terminal.foreground;
        for process in members(&tree, self.terminal.device, foreground) {
            self.add(process, self.terminal.device);
            if self.is_certain() {
                return;
            }
        }
        self.go_into_relays(&tree);
    }

    /// Where a relay has a terminal of its own for whom it relays to, that one tells who waits.
    fn go_into_relays(&mut self, tree: &[Process]) {
        let mut terminal = (self.terminal.device, self.terminal.foreground);
        for _ in 0..DEPTH_MAX {
            let relays = members(tree, terminal.0, terminal.1)
                .filter(|process| RELAYS.contains(&process.name.as_str()));
            let inner = relays.flat_map(Process::inner_terminals).find_map(|inner| {
                let member = tree.iter().find(|process| process.terminal == inner)?;
                Some((inner, member.foreground))
            });
            let Some(inner) = inner else { return };
            // What the relay itself waits for counts no more.
            self.best = None;
            for process in members(tree, inner.0, inner.1) {
                self.add(process, inner.0);
            }
            terminal = inner;
        }
    }

    /// Lists a process and its descendants.
    fn tree(&mut self, program: u32) -> Vec<Process> {
        let (mut tree, mut at) = (Vec::from_iter(Process::read(program)), 0);
        while let Some(parent) = tree.get(at).map(|process| process.pid) {
            tree.extend(children(parent).into_iter().filter_map(Process::read));
            at += 1;
            if tree.len() > PROCESSES_MAX {
                self.is_incomplete = true;
                break;
            }
        }
        tree
    }

    fn answer(self) -> (Option<TerminalWait>, Option<Waiter>) {
        if let Some((evidence, waiter)) = self.best {
            let waits = match evidence {
                Evidence::Reading => TerminalWait::Reading,
                Evidence::Relaying => TerminalWait::Relaying,
                Evidence::ForAWhile => TerminalWait::ReadingForAWhile,
            };
            return (Some(waits), Some(waiter));
        }
        // Another user's program that sleeps while a line is typed unseen asks for a password.
        let is_secret = self.terminal.reads_lines && !self.terminal.echoes;
        match self.hidden {
            Some(waiter) if is_secret && !self.is_running => {
                (Some(TerminalWait::Reading), Some(waiter))
            }
            Some(_) => (None, None),
            None if self.is_incomplete => (None, None),
            None => (Some(TerminalWait::Busy), None),
        }
    }
}

/// Lists who is in a terminal's foreground, and who left its session below them (a sandbox's inside).
fn members(
    tree: &[Process],
    terminal: Device,
    foreground: u32,
) -> impl Iterator<Item = &Process> + Clone {
    tree.iter().filter(move |process| {
        process.terminal.0 == 0 || (process.terminal == terminal && process.group == foreground)
    })
}

/// Lists the descriptors that a call waits for, and for how long; nothing where it waits for none.
fn waited_for(process: &Process, thread: u32, call: Call) -> Option<(Vec<u32>, Timeout)> {
    match call {
        Call::Read { descriptor } => Some((vec![descriptor], Timeout::Endless)),
        Call::Poll { list, length, timeout } => {
            let entries = usize::try_from(length).ok()?.min(sets::DESCRIPTORS_MAX);
            let list = process.memory(list, entries * sets::POLL_ENTRY_BYTES)?;
            Some((sets::of_poll(&list), timeout))
        }
        Call::Select { set: 0, .. } => None,
        Call::Select { set, descriptors, timeout } => {
            let set = process.memory(set, sets::select_bytes(descriptors))?;
            Some((sets::of_select(&set, descriptors), timeout))
        }
        Call::Epoll { descriptor, timeout } => {
            Some((sets::of_epoll(&process.descriptor(descriptor)?), timeout))
        }
        // After a stop only the kernel knows the list: a terminal as standard input is likely in it.
        Call::Restarted if process.sleeps_in(thread).contains("poll") => {
            Some((vec![0], Timeout::Timed))
        }
        Call::Restarted | Call::Other => None,
    }
}
