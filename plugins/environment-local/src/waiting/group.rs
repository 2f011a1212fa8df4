//! Collects evidence from a terminal's foreground processes and ranks it.

use jaato_plugin_sdk::types::terminal::TerminalWait;
use jaato_plugin_sdk_environment::waiting::{
    self as sets, SystemCallNumbers, SystemCallTimeout, ThreadActivity, WaitingProcess,
    WaitingSystemCall,
};

use super::InspectedTerminal;
use super::process::{ProcessStat, TerminalDevice};
use super::relays::{RELAYS, RelayCache};

/// Processes of a terminal to inspect. With more processes, a wait may be missed and is not
/// reported.
const PROCESSES_MAX: usize = 256;

/// How long a thread counts as working next to one that waits. It is longer than the time for which
/// a program waits for the rest of a key sequence, so a thread that works behind a prompt still
/// counts as waiting.
const WORK_MS: u64 = 150;

/// The evidence found so far in the foreground processes.
pub(super) struct ForegroundGroup<'a> {
    pub(super) terminal: &'a InspectedTerminal,
    numbers: &'static SystemCallNumbers,
    seen: Vec<u32>,
    /// The best evidence and its source.
    pub(super) best: Option<(WaitEvidence, WaitingProcess)>,
    /// A process of another user, which cannot be inspected.
    hidden: Option<WaitingProcess>,
    is_running: bool,
    pub(super) is_incomplete: bool,
}

/// Evidence for a wait, weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum WaitEvidence {
    ForAWhile,
    Relaying,
    Reading,
}

impl<'a> ForegroundGroup<'a> {
    pub(super) fn new(
        terminal: &'a InspectedTerminal,
        numbers: &'static SystemCallNumbers,
    ) -> Self {
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
        self.best.as_ref().is_some_and(|best| best.0 == WaitEvidence::Reading)
    }

    /// Adds the evidence that a process gives for a terminal.
    pub(super) fn add_process(&mut self, process: &ProcessStat, terminal: TerminalDevice) {
        if process.has_ended() || self.seen.contains(&process.pid) {
            return;
        }
        self.seen.push(process.pid);
        for thread in process.list_threads() {
            let text = match process.system_call(thread) {
                Ok(text) => text,
                Err(error) => {
                    let is_refused = error.kind() == std::io::ErrorKind::PermissionDenied;
                    return if is_refused {
                        self.add_hidden_process(process)
                    };
                }
            };
            let Some(doing) = self.numbers.parse_activity(&text) else { continue };
            let Some((mut found, mut takes_ms)) =
                self.thread_evidence(process, thread, terminal, doing)
            else {
                continue;
            };
            let run = process.run_time(thread);
            if found != WaitEvidence::Relaying && !is_waiting_only_for_terminal(doing) {
                let works = process.has_other_working_thread(thread);
                // A thread that has just finished has woken this one, which may not run yet.
                let is_woken =
                    self.is_thread_running(process, thread) || process.run_time(thread) != run;
                if (works || is_woken) && !self.terminal.is_answered {
                    // The prompt at the cursor is the previous one.
                    self.is_running = true;
                    continue;
                }
                if works || is_woken {
                    // This thread may be waiting for the other thread's result.
                    let takes = takes_ms.unwrap_or(WORK_MS).min(WORK_MS);
                    (found, takes_ms) = (WaitEvidence::ForAWhile, Some(takes));
                }
            }
            let waiter = WaitingProcess { pid: process.pid, thread, run, takes_ms };
            if self.best.as_ref().is_none_or(|best| best.0 < found) {
                self.best = Some((found, waiter));
            }
            if found == WaitEvidence::Reading {
                return;
            }
        }
    }

    /// Returns the evidence that a thread waits for a terminal, and the length of its wait.
    fn thread_evidence(
        &mut self,
        process: &ProcessStat,
        thread: u32,
        terminal: TerminalDevice,
        doing: ThreadActivity,
    ) -> Option<(WaitEvidence, Option<u64>)> {
        let call = match doing {
            ThreadActivity::Running => {
                self.is_running = true;
                return None;
            }
            ThreadActivity::Blocked(call) => call,
        };
        let (waited_for, timeout) = parse_wait_call(process, thread, call)?;
        if !waited_for.iter().any(|number| process.is_terminal(*number, terminal)) {
            return None;
        }
        let is_relay = RELAYS.contains(&process.name.as_str());
        // A relay that reads a line asks for something itself, for example a password.
        let asks_itself =
            matches!(call, WaitingSystemCall::Read { .. }) && self.terminal.reads_lines;
        Some(match timeout {
            _ if is_relay && !asks_itself => (WaitEvidence::Relaying, None),
            SystemCallTimeout::Endless => (WaitEvidence::Reading, None),
            SystemCallTimeout::Milliseconds(time) => (WaitEvidence::ForAWhile, Some(time)),
            SystemCallTimeout::Stands { at, parts } => {
                let time = process.read_memory(at, sets::TIME_BYTES);
                (WaitEvidence::ForAWhile, time.and_then(|time| sets::to_milliseconds(&time, parts)))
            }
            SystemCallTimeout::Unknown => (WaitEvidence::ForAWhile, None),
        })
    }

    /// Returns true if a process runs or is about to run.
    pub(super) fn is_process_running(&self, process: &ProcessStat) -> bool {
        self.is_thread_running(process, process.pid)
    }

    /// Returns true if a thread runs or is about to run.
    fn is_thread_running(&self, process: &ProcessStat, thread: u32) -> bool {
        let call = process.system_call(thread).ok();
        call.is_some_and(|text| self.numbers.parse_activity(&text) == Some(ThreadActivity::Running))
    }

    /// Records a process that cannot be inspected.
    fn add_hidden_process(&mut self, process: &ProcessStat) {
        self.is_running |= process.state == 'R';
        if process.is_owned_by_other_user() {
            let (pid, run) = (process.pid, process.run_time(process.pid));
            self.hidden = Some(WaitingProcess { pid, thread: pid, run, takes_ms: None });
        } else {
            self.is_incomplete = true;
        }
    }

    /// Adds the evidence of the program and its descendants. `leader` leads the foreground, has
    /// already been read, and may be the program itself.
    pub(super) fn add_process_tree(
        &mut self,
        leader: Option<ProcessStat>,
        memory: &mut RelayCache,
    ) {
        let leader = leader.filter(|leader| leader.pid == self.terminal.program);
        let program = leader.or_else(|| ProcessStat::read_stat(self.terminal.program));
        let tree = program.map_or_else(Vec::new, |program| self.process_tree(program));
        let InspectedTerminal { device, foreground, .. } = *self.terminal;
        for process in foreground_members(&tree, device, foreground) {
            self.add_process(process, device);
            if self.is_certain() {
                return;
            }
        }
        self.follow_relays(tree, memory);
    }

    /// Lists a process and its descendants.
    pub(super) fn process_tree(&mut self, program: ProcessStat) -> Vec<ProcessStat> {
        let (mut tree, mut at) = (vec![program], 0);
        while let Some(parent) = tree.get(at) {
            let children = parent.list_children();
            tree.extend(children.into_iter().filter_map(ProcessStat::read_stat));
            at += 1;
            if tree.len() > PROCESSES_MAX {
                self.is_incomplete = true;
                break;
            }
        }
        tree
    }

    pub(super) fn into_result(self) -> (Option<TerminalWait>, Option<WaitingProcess>) {
        if let Some((evidence, waiter)) = self.best {
            let waits = match evidence {
                WaitEvidence::Reading => TerminalWait::Reading,
                WaitEvidence::Relaying => TerminalWait::Relaying,
                WaitEvidence::ForAWhile => TerminalWait::ReadingForAWhile,
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
fn is_waiting_only_for_terminal(doing: ThreadActivity) -> bool {
    matches!(doing, ThreadActivity::Blocked(WaitingSystemCall::Read { .. }))
}

/// Lists the processes in a terminal's foreground, and their descendants that have left its session
/// (the inside of a sandbox).
pub(super) fn foreground_members(
    tree: &[ProcessStat],
    terminal: TerminalDevice,
    foreground: u32,
) -> impl Iterator<Item = &ProcessStat> + Clone {
    tree.iter().filter(move |process| {
        process.terminal.0 == 0 || (process.terminal == terminal && process.group == foreground)
    })
}

/// Returns the descriptors that a call waits for and its timeout, or `None` if it waits for no
/// descriptor.
fn parse_wait_call(
    process: &ProcessStat,
    thread: u32,
    call: WaitingSystemCall,
) -> Option<(Vec<u32>, SystemCallTimeout)> {
    match call {
        WaitingSystemCall::Read { descriptor } => {
            Some((vec![descriptor], SystemCallTimeout::Endless))
        }
        WaitingSystemCall::Poll { list, length, timeout } => {
            let entries = usize::try_from(length).ok()?.min(sets::DESCRIPTORS_MAX);
            let list = process.read_memory(list, entries * sets::POLL_ENTRY_BYTES)?;
            Some((sets::poll_descriptors(&list), timeout))
        }
        WaitingSystemCall::Select { set: 0, .. } => None,
        WaitingSystemCall::Select { set, descriptors, timeout } => {
            let set = process.read_memory(set, sets::select_bytes(descriptors))?;
            Some((sets::select_descriptors(&set, descriptors), timeout))
        }
        WaitingSystemCall::Epoll { descriptor, timeout } => {
            Some((sets::epoll_descriptors(&process.descriptor_info(descriptor)?), timeout))
        }
        // After a stop, only the kernel knows the list. It is likely to contain a terminal that is
        // the standard input.
        WaitingSystemCall::Restarted if process.sleep_function(thread).contains("poll") => {
            Some((vec![0], SystemCallTimeout::Unknown))
        }
        WaitingSystemCall::Restarted | WaitingSystemCall::Other => None,
    }
}
