//! Collects evidence from a terminal's foreground processes and ranks it.

use jaato_plugin_sdk::types::terminal::TerminalWait;
use jaato_plugin_sdk_environment::waiting::{self as sets, Call, Doing, Numbers, Timeout, Waiter};

use super::Terminal;
use super::process::{Device, Process};
use super::relays::{Memory, RELAYS};

/// Processes of a terminal to inspect. With more processes, a wait may be missed and is not
/// reported.
const PROCESSES_MAX: usize = 256;

/// How long a thread counts as working next to one that waits. It is longer than the time for which
/// a program waits for the rest of a key sequence, so a thread that works behind a prompt still
/// counts as waiting.
const WORK_MS: u64 = 150;

/// The evidence found so far in the foreground processes.
pub(super) struct Group<'a> {
    pub(super) terminal: &'a Terminal,
    numbers: &'static Numbers,
    seen: Vec<u32>,
    /// The best evidence and its source.
    pub(super) best: Option<(Evidence, Waiter)>,
    /// A process of another user, which cannot be inspected.
    hidden: Option<Waiter>,
    is_running: bool,
    pub(super) is_incomplete: bool,
}

/// Evidence for a wait, weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Evidence {
    ForAWhile,
    Relaying,
    Reading,
}

impl<'a> Group<'a> {
    pub(super) fn new(terminal: &'a Terminal, numbers: &'static Numbers) -> Self {
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

    pub(super) fn is_certain(&self) -> bool {
        self.best.as_ref().is_some_and(|best| best.0 == Evidence::Reading)
    }

    /// Adds the evidence that a process gives for a terminal.
    pub(super) fn add(&mut self, process: &Process, terminal: Device) {
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
            let Some((mut found, mut takes_ms)) = self.evidence(process, thread, terminal, doing)
            else {
                continue;
            };
            let run = process.run_of(thread);
            if found != Evidence::Relaying && !is_read(doing) {
                let works = process.works_beside(thread);
                // A thread that has just finished has woken this one, which may not run yet.
                let is_woken = self.is_woken(process, thread) || process.run_of(thread) != run;
                if (works || is_woken) && !self.terminal.is_answered {
                    // The prompt at the cursor is the previous one.
                    self.is_running = true;
                    continue;
                }
                if works || is_woken {
                    // This thread may be waiting for the other thread's result.
                    let takes = takes_ms.unwrap_or(WORK_MS).min(WORK_MS);
                    (found, takes_ms) = (Evidence::ForAWhile, Some(takes));
                }
            }
            let waiter = Waiter { pid: process.pid, thread, run, takes_ms };
            if self.best.as_ref().is_none_or(|best| best.0 < found) {
                self.best = Some((found, waiter));
            }
            if found == Evidence::Reading {
                return;
            }
        }
    }

    /// Returns the evidence that a thread waits for a terminal, and the length of its wait.
    fn evidence(
        &mut self,
        process: &Process,
        thread: u32,
        terminal: Device,
        doing: Doing,
    ) -> Option<(Evidence, Option<u64>)> {
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
        // A relay that reads a line asks for something itself, for example a password.
        let asks_itself = matches!(call, Call::Read { .. }) && self.terminal.reads_lines;
        Some(match timeout {
            _ if is_relay && !asks_itself => (Evidence::Relaying, None),
            Timeout::Endless => (Evidence::Reading, None),
            Timeout::Milliseconds(time) => (Evidence::ForAWhile, Some(time)),
            Timeout::Stands { at, parts } => {
                let time = process.memory(at, sets::TIME_BYTES);
                (Evidence::ForAWhile, time.and_then(|time| sets::milliseconds(&time, parts)))
            }
            Timeout::Unknown => (Evidence::ForAWhile, None),
        })
    }

    /// Returns true if a process runs or is about to run.
    pub(super) fn is_at_work(&self, process: &Process) -> bool {
        self.is_woken(process, process.pid)
    }

    /// Returns true if a thread runs or is about to run.
    fn is_woken(&self, process: &Process, thread: u32) -> bool {
        let call = process.call_of(thread).ok();
        call.is_some_and(|text| self.numbers.read(&text) == Some(Doing::Running))
    }

    /// Notes a process that cannot be inspected.
    fn add_hidden(&mut self, process: &Process) {
        self.is_running |= process.state == 'R';
        if process.is_foreign() {
            let (pid, run) = (process.pid, process.run_of(process.pid));
            self.hidden = Some(Waiter { pid, thread: pid, run, takes_ms: None });
        } else {
            self.is_incomplete = true;
        }
    }

    /// Adds the evidence of the program and its descendants. `leader` leads the foreground, has
    /// already been read, and may be the program itself.
    pub(super) fn add_tree(&mut self, leader: Option<Process>, memory: &mut Memory) {
        let leader = leader.filter(|leader| leader.pid == self.terminal.program);
        let program = leader.or_else(|| Process::read(self.terminal.program));
        let tree = program.map_or_else(Vec::new, |program| self.tree(program));
        let Terminal { device, foreground, .. } = *self.terminal;
        for process in members(&tree, device, foreground) {
            self.add(process, device);
            if self.is_certain() {
                return;
            }
        }
        self.go_into_relays(tree, memory);
    }

    /// Lists a process and its descendants.
    pub(super) fn tree(&mut self, program: Process) -> Vec<Process> {
        let (mut tree, mut at) = (vec![program], 0);
        while let Some(parent) = tree.get(at) {
            let children = parent.children();
            tree.extend(children.into_iter().filter_map(Process::read));
            at += 1;
            if tree.len() > PROCESSES_MAX {
                self.is_incomplete = true;
                break;
            }
        }
        tree
    }

    pub(super) fn answer(self) -> (Option<TerminalWait>, Option<Waiter>) {
        if let Some((evidence, waiter)) = self.best {
            let waits = match evidence {
                Evidence::Reading => TerminalWait::Reading,
                Evidence::Relaying => TerminalWait::Relaying,
                Evidence::ForAWhile => TerminalWait::ReadingForAWhile,
            };
            return (Some(waits), Some(waiter));
        }
        // Another user's program that sleeps while a line is typed without echo asks for a
        // password.
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

/// Returns true if the thread waits only for the terminal.
fn is_read(doing: Doing) -> bool {
    matches!(doing, Doing::Blocked(Call::Read { .. }))
}

/// Lists the processes in a terminal's foreground, and their descendants that have left its session
/// (the inside of a sandbox).
pub(super) fn members(
    tree: &[Process],
    terminal: Device,
    foreground: u32,
) -> impl Iterator<Item = &Process> + Clone {
    tree.iter().filter(move |process| {
        process.terminal.0 == 0 || (process.terminal == terminal && process.group == foreground)
    })
}

/// Returns the descriptors that a call waits for and its timeout, or `None` if it waits for no
/// descriptor.
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
        // After a stop, only the kernel knows the list. It is likely to contain a terminal that is
        // the standard input.
        Call::Restarted if process.sleeps_in(thread).contains("poll") => {
            Some((vec![0], Timeout::Unknown))
        }
        Call::Restarted | Call::Other => None,
    }
}
