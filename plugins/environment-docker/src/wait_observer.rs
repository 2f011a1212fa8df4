//! A second shell in the container, which finds out which process waits for a terminal. It starts
//! with the first look.
//!
//! It runs as the same user as commands, because the kernel shows only to that user what a process
//! waits for. It needs only `sh` and `/proc` in the image, and gives more information if the image
//! has `stty`, `dd` and `od`. The shell only reads data, and this module interprets it. It ends
//! when its input closes with the last handle.

use std::sync::Arc;

use jaato_plugin_sdk::types::terminal::TerminalWait;
use jaato_plugin_sdk::types::{Error, ErrorKind, Result};
use jaato_plugin_sdk_environment::waiting::{
    self as sets, InputWaitState, POLL_ENTRY_BYTES, SystemCallNumbers, SystemCallTimeout,
    ThreadActivity, WaitingProcess, WaitingSystemCall,
};
use tokio::sync::{Mutex, mpsc, oneshot};

use crate::container_context::{self, ContainerContext, ExecRequest};
use crate::link::{self, HelperShellRequest};

/// The maximum number of bytes read from a `poll` list. A terminal is among the first entries.
const LIST_BYTES_MAX: u64 = 128;

/// The shell's script. `MAX` is replaced by [`LIST_BYTES_MAX`].
const SCRIPT: &str = include_str!("onlooker.sh");

/// A handle to the shell, which may not be started yet. All terminals of a container share it.
#[derive(Clone, Default)]
pub struct TerminalObserver(Arc<Mutex<Option<mpsc::UnboundedSender<HelperShellRequest>>>>);

/// The observed state of a terminal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TerminalObservation {
    /// The waiting process.
    pub waiting: InputWaitState,
    /// The foreground process group.
    pub foreground: Option<u32>,
    /// Whether the terminal echoes input, and reads it line by line. `None` without `stty`, or if
    /// no process waits.
    pub modes: Option<(bool, bool)>,
}

impl TerminalObserver {
    /// Looks at the terminal of a session. Returns `None` if its program has ended.
    ///
    /// # Errors
    /// `unavailable` if the shell cannot be started or has ended.
    pub async fn observe_terminal(
        &self,
        place: &ContainerContext,
        session: u32,
    ) -> Result<Option<TerminalObservation>> {
        let asks = self.request_sender(place).await?;
        let (answer, receiver) = oneshot::channel();
        let ended = || {
            let text = "the shell in the container that looks at terminals has ended";
            Error::new(ErrorKind::Unavailable, text).temporary()
        };
        asks.send(HelperShellRequest { words: session.to_string(), answer: Some(answer) })
            .map_err(|_| ended())?;
        let told = receiver.await.map_err(|_| ended())?;
        Ok(SystemCallNumbers::for_this_architecture()
            .and_then(|numbers| TerminalObservation::parse_response(&told, numbers)))
    }

    /// Returns the channel to the shell, and starts the shell if it does not run.
    async fn request_sender(
        &self,
        place: &ContainerContext,
    ) -> Result<mpsc::UnboundedSender<HelperShellRequest>> {
        let mut own = self.0.lock().await;
        if let Some(asks) = own.as_ref().filter(|asks| !asks.is_closed()) {
            return Ok(asks.clone());
        }
        let script = SCRIPT.replace("MAX", &LIST_BYTES_MAX.to_string());
        let request = ExecRequest {
            words: ["sh", "-c", &script, "jaato"].map(str::to_owned).into(),
            variables: &[],
            has_input: true,
            has_terminal: false,
            user: place.user.as_deref(),
        };
        let exec = place.create_exec(request).await?;
        let streams = container_context::start_exec(&place.engine, &exec).await;
        let streams = streams.map_err(|error| place.explain_error(&error))?;
        let (asks, receiver) = mpsc::unbounded_channel();
        tokio::spawn(link::forward_requests(streams, receiver));
        *own = Some(asks.clone());
        Ok(asks)
    }
}

/// A thread as reported by the shell.
#[derive(Default)]
struct ObservedThread<'a> {
    number: u32,
    call: &'a str,
    run: Option<String>,
    set: String,
    memory: Option<Vec<u8>>,
}

/// A foreground process.
#[derive(Default)]
struct ForegroundProcess<'a> {
    pid: u32,
    terminals: Vec<u32>,
    threads: Vec<ObservedThread<'a>>,
}

impl TerminalObservation {
    /// Parses a response of the shell.
    fn parse_response(told: &str, numbers: &SystemCallNumbers) -> Option<Self> {
        let mut sight = Self::default();
        let (mut processes, mut is_refused) = (Vec::<ForegroundProcess>::new(), false);
        for record in told.split('|') {
            let (kind, text) = record.split_once(' ').unwrap_or((record, ""));
            let thread = processes.last_mut().and_then(|process| process.threads.last_mut());
            match (kind, thread) {
                ("G", _) => sight.parse_group(text),
                ("P", _) => {
                    let mut words = text.split(' ').filter_map(|word| word.parse().ok());
                    let pid = words.next()?;
                    processes.push(ForegroundProcess {
                        pid,
                        terminals: words.collect(),
                        threads: Vec::new(),
                    });
                }
                ("X", _) => is_refused = true,
                ("T", _) => {
                    let (number, call) = text.split_once(' ')?;
                    let thread = ObservedThread {
                        number: number.parse().ok()?,
                        call,
                        ..ObservedThread::default()
                    };
                    processes.last_mut()?.threads.push(thread);
                }
                ("R", Some(thread)) => thread.run = Some(text.to_owned()),
                ("E", Some(thread)) => thread.set += &format!("{text}\n"),
                ("M", Some(thread)) => thread.memory = parse_hexadecimal(text),
                ("S", _) => sight.modes = parse_modes(text),
                // A process name may contain the record separator.
                _ => {}
            }
        }
        sight.foreground?;
        sight.decide_wait(&processes, is_refused, numbers);
        Some(sight)
    }

    /// Parses `GROUP STATE NAME`.
    fn parse_group(&mut self, text: &str) {
        let mut words = text.splitn(3, ' ');
        self.foreground = words.next().and_then(|group| group.parse().ok());
        self.waiting.name = words.nth(1).map(str::to_owned);
    }

    fn decide_wait(
        &mut self,
        processes: &[ForegroundProcess],
        is_refused: bool,
        numbers: &SystemCallNumbers,
    ) {
        let mut is_known = !is_refused && !processes.is_empty();
        for process in processes {
            for thread in &process.threads {
                let Some(ThreadActivity::Blocked(call)) = numbers.parse_activity(thread.call)
                else {
                    continue;
                };
                let Some((descriptors, timeout)) = thread.waited_descriptors(call) else {
                    // Without `dd` and `od`, the content of a list is unknown.
                    is_known &= matches!(call, WaitingSystemCall::Other);
                    continue;
                };
                if !descriptors.iter().any(|number| process.terminals.contains(number)) {
                    continue;
                }
                let (waits, takes_ms) = match timeout {
                    SystemCallTimeout::Endless => (TerminalWait::Reading, None),
                    SystemCallTimeout::Milliseconds(time) => {
                        (TerminalWait::ReadingForAWhile, Some(time))
                    }
                    SystemCallTimeout::Stands { .. } | SystemCallTimeout::Unknown => {
                        (TerminalWait::ReadingForAWhile, None)
                    }
                };
                let run = thread.run.clone();
                let waiter =
                    WaitingProcess { pid: process.pid, thread: thread.number, run, takes_ms };
                (self.waiting.waits, self.waiting.waiter) = (Some(waits), Some(waiter));
                if waits == TerminalWait::Reading {
                    return;
                }
            }
        }
        if self.waiting.waits.is_none() && is_known {
            self.waiting.waits = Some(TerminalWait::Busy);
        }
    }
}

impl ObservedThread<'_> {
    /// Returns the descriptors that a call waits for, and its timeout. `None` if they are unknown.
    fn waited_descriptors(&self, call: WaitingSystemCall) -> Option<(Vec<u32>, SystemCallTimeout)> {
        match call {
            WaitingSystemCall::Read { descriptor } => {
                Some((vec![descriptor], SystemCallTimeout::Endless))
            }
            WaitingSystemCall::Poll { timeout, .. } => {
                let list = self.memory.as_ref().filter(|list| list.len() >= POLL_ENTRY_BYTES)?;
                Some((sets::poll_descriptors(list), timeout))
            }
            WaitingSystemCall::Select { set: 0, .. } => {
                Some((Vec::new(), SystemCallTimeout::Endless))
            }
            WaitingSystemCall::Select { descriptors: 1, timeout, .. } => Some((vec![0], timeout)),
            WaitingSystemCall::Select { descriptors, timeout, .. } => {
                Some((sets::select_descriptors(self.memory.as_ref()?, descriptors), timeout))
            }
            WaitingSystemCall::Epoll { timeout, .. } => {
                let set = (!self.set.is_empty()).then_some(&self.set)?;
                Some((sets::epoll_descriptors(set), timeout))
            }
            WaitingSystemCall::Restarted | WaitingSystemCall::Other => None,
        }
    }
}

/// Parses bytes in the format of `od`.
fn parse_hexadecimal(text: &str) -> Option<Vec<u8>> {
    let bytes = text.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).ok());
    bytes.collect::<Option<Vec<u8>>>().filter(|bytes| !bytes.is_empty())
}

/// Parses whether `stty` reports echo and line mode.
fn parse_modes(text: &str) -> Option<(bool, bool)> {
    let is = |name: &str| {
        text.split([' ', ';']).find_map(|word| match word.strip_prefix('-') {
            Some(off) if off == name => Some(false),
            None if word == name => Some(true),
            _ => None,
        })
    };
    Some((is("echo")?, is("icanon")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_observation(told: &str, waits: Option<TerminalWait>, waiter: Option<u32>) {
        let Some(numbers) =
            SystemCallNumbers::for_this_architecture().filter(|_| cfg!(target_arch = "x86_64"))
        else {
            return;
        };
        let sight = TerminalObservation::parse_response(told, numbers).unwrap();
        let found = sight.waiting.waiter.as_ref().map(|waiter| waiter.thread);
        assert_eq!((sight.waiting.waits, found), (waits, waiter), "{told}");
    }

    #[test]
    fn terminal_wait_state_is_read_from_the_shell_report() {
        let busy = Some(TerminalWait::Busy);
        let reading = Some(TerminalWait::Reading);
        let cat = "G 12 S my cat|P 12 0 1 2|T 12 0 0x0 0x7f 0x20000 0x0 0x0 0x0 0x7 0x7|R 1 2 3|S speed 38400; -echo icanon";
        check_observation(cat, reading, Some(12));
        let sight = TerminalObservation::parse_response(
            cat,
            SystemCallNumbers::for_this_architecture().unwrap(),
        )
        .unwrap();
        assert_eq!((sight.foreground, sight.modes), (Some(12), Some((false, true))));
        assert_eq!(sight.waiting.name.as_deref(), Some("my cat"));
        let other = cat.replace("|T 12 0 0x0", "|T 12 0 0x3");
        check_observation(&other, busy, None);
        check_observation(
            "G 12 S sleep|P 12 0 1 2|T 12 230 0x0 0x0 0x7f 0x0 0x0 0x0 0x7 0x7|R 1 2 3",
            busy,
            None,
        );
        check_observation("G 12 R sh|P 12 0 1 2|T 12 running|R 1 2 3", busy, None);
        let bash = "G 9 S bash|P 9 0 1 2 255|T 9 270 0x1 0x7f 0x0 0x0 0x0 0x7e 0x7 0x7|R 1 2 3";
        check_observation(bash, reading, Some(9));
        let gdb = "G 9 S gdb|P 9 0|T 9 7 0x7f 0x2 0xffffffff 0x0 0x0 0x0 0x7 0x7|R 1|M 03 00 00 00 01 00 00 00 00 00 00 00 01 00 00 00";
        check_observation(gdb, reading, Some(9));
        let node = "G 9 S node|P 9 0 18|T 9 281 0xd 0x7f 0x400 0x64 0x0 0x8 0x7 0x7|R 1|E tfd:       18 events:       19 data: 12|T 10 202 0x0 0x0 0x0 0x0 0x0 0x0 0x0 0x0|R 2";
        check_observation(node, Some(TerminalWait::ReadingForAWhile), Some(9));
    }

    #[test]
    fn unclear_shell_report_gives_no_wait_state() {
        check_observation("G 12 S sh|P 12 0|X", None, None);
        check_observation(
            "G 9 S gdb|P 9 0|T 9 7 0x7f 0x2 0xffffffff 0x0 0x0 0x0 0x7 0x7|R 1|M",
            None,
            None,
        );
        check_observation("G 12 S sh", None, None);
        assert_eq!(
            TerminalObservation::parse_response(
                "",
                SystemCallNumbers::for_this_architecture().unwrap()
            ),
            None
        );
    }
}
