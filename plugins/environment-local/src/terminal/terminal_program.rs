//! The two halves of a program on a terminal: control and events.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::Poll;
use std::time::{Duration, Instant};

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::process::{
    ProcessControl, ProcessEvents, ProcessExit, ProcessUpdate, Signal,
};
use jaato_plugin_sdk::terminal::TerminalUpdate;
use jaato_plugin_sdk::types::terminal::{TerminalResize, TerminalState};
use jaato_plugin_sdk_environment::waiting::TerminalWaitHistory;
use jaato_plugin_sdk_environment::{Terminal, TerminalEvents};
use parking_lot::Mutex;
use rustix::process::Signal as SystemSignal;

use super::input_writer::{TerminalWriters, closed_terminal_error, write_error};
use super::pty::{PseudoTerminal, PtyReadResult};
use super::readiness::{TerminalOperation, TerminalReadiness};
use crate::waiting::{self, RelayCache, find_waiting_process};

/// Bytes of output in one piece.
const PIECE_BYTES: usize = 64 * 1024;

/// The size of a read that starts a flood. The system buffers no more terminal output than this, so
/// a program that fills the buffer will print more.
const FLOOD_BYTES: usize = 4000;

/// How long a flood may pause before the gathered output is returned.
const GATHER_PAUSE: Duration = Duration::from_micros(200);

/// The longest time for which one piece of a flood is gathered.
const GATHER_MAX: Duration = Duration::from_millis(8);

/// Bytes in one piece of a flood.
const FLOOD_PIECE_BYTES: usize = 256 * 1024;

/// How long the thread polls for the next bytes before it sleeps. The system delivers the next few
/// KiB within this time, and a wakeup takes longer.
const LOOK_FOR: Duration = Duration::from_micros(40);

/// How long a terminal that another process still holds is read after the exit. The pipes of a
/// program have the same limit.
const DRAIN_GRACE: Duration = Duration::from_millis(20);

/// Bytes to read after the exit. A terminal buffers fewer, so no output from before the exit is
/// lost.
const DRAIN_BYTES_MAX: usize = 1024 * 1024;

/// How long a busy program that shows nothing is assumed to process its last input.
const UNANSWERED_MAX: Duration = Duration::from_secs(2);

/// The state that both halves share.
struct LocalTerminalState {
    pty: Arc<PseudoTerminal>,
    readiness: Arc<TerminalReadiness>,
    /// Bytes read so far. Locked during each read, so that every byte is either pending or counted.
    shown_bytes: Mutex<u64>,
    /// The time of the last input, and the value of `shown_bytes` at that time.
    typed: Mutex<Option<(Instant, u64)>>,
    /// The last observation, and the memory kept between observations.
    seen: Mutex<(TerminalWaitHistory, RelayCache)>,
    /// Set if the program prints more than one read returns.
    is_flood: AtomicBool,
}

impl Drop for LocalTerminalState {
    fn drop(&mut self) {
        self.readiness.remove_terminal(&self.pty);
    }
}

/// The control half of a terminal on this machine.
pub struct LocalTerminal {
    shared: Arc<LocalTerminalState>,
    program: ProcessControl,
    typing: TerminalWriters,
    home: Home,
}

/// The event half of a terminal on this machine.
pub struct LocalTerminalEvents {
    shared: Arc<LocalTerminalState>,
    program: ProcessEvents,
    phase: TerminalPhase,
    buffer: Vec<u8>,
    /// Output gathered from a program that prints faster than the caller asks for pieces. The
    /// system returns a few KiB at a time, and a wakeup for each costs more than the read. A thread
    /// that may block therefore gathers larger pieces.
    flood: Option<Arc<Mutex<Vec<u8>>>>,
    home: Home,
}

enum TerminalPhase {
    Running,
    /// The program has ended, and its remaining output is being read.
    Draining {
        exit: ProcessExit,
        until: Instant,
        bytes: usize,
    },
    Over,
}

/// Creates both halves for a program that was started on a terminal.
pub(super) fn program_halves(
    pty: Arc<PseudoTerminal>,
    readiness: Arc<TerminalReadiness>,
    (program, events): (ProcessControl, ProcessEvents),
    home: Home,
) -> (LocalTerminal, LocalTerminalEvents) {
    let (shown_bytes, seen) = (Mutex::default(), Mutex::default());
    let (typed, is_flood) = (Mutex::default(), AtomicBool::new(false));
    let shared =
        Arc::new(LocalTerminalState { pty, readiness, shown_bytes, typed, seen, is_flood });
    let events = LocalTerminalEvents {
        shared: Arc::clone(&shared),
        program: events,
        phase: TerminalPhase::Running,
        buffer: Vec::new(),
        flood: None,
        home: home.clone(),
    };
    (LocalTerminal { shared, program, typing: TerminalWriters::default(), home }, events)
}

/// The first of two awaited events.
enum FirstTerminalEvent {
    Shown(PtyReadResult),
    Did(Option<ProcessUpdate>),
}

impl TerminalEvents for LocalTerminalEvents {
    async fn next(&mut self) -> Result<Option<TerminalUpdate>> {
        if let Some(bytes) = self.next_flood_piece().await? {
            return Ok(Some(TerminalUpdate::Output(bytes)));
        }
        loop {
            match &self.phase {
                TerminalPhase::Running => match self.first_event().await? {
                    FirstTerminalEvent::Shown(PtyReadResult::Bytes(bytes)) => {
                        return Ok(Some(self.output_event(bytes)));
                    }
                    // No process holds the terminal, so the exit comes next.
                    FirstTerminalEvent::Shown(PtyReadResult::Nothing | PtyReadResult::End) => {}
                    FirstTerminalEvent::Did(Some(ProcessUpdate::Output { .. })) => {}
                    FirstTerminalEvent::Did(Some(ProcessUpdate::Exited(exit))) => {
                        self.drain_after_exit(exit)
                    }
                    FirstTerminalEvent::Did(None) => {
                        self.phase = TerminalPhase::Over;
                        return Err(Error::new(ErrorKind::HostBug, "the program has no exit"));
                    }
                },
                TerminalPhase::Draining { until, bytes, .. } => {
                    match self.drain_output(*until, *bytes).await? {
                        Some(bytes) => return Ok(Some(self.output_event(bytes))),
                        None => return Ok(self.exit_event()),
                    }
                }
                TerminalPhase::Over => return Ok(None),
            }
        }
    }
}

impl LocalTerminalEvents {
    /// Returns the gathered output of a flood, or `None` outside of a flood.
    async fn next_flood_piece(&mut self) -> Result<Option<Vec<u8>>> {
        if self.flood.is_some() {
            self.check_for_exit().await?;
        }
        let Some(flood) = &self.flood else { return Ok(None) };
        let (shared, gathered) = (Arc::clone(&self.shared), Arc::clone(flood));
        self.home.blocking(move |_| shared.gather_output(&mut gathered.lock())).await?;
        // Take the bytes only after the wait. If the caller drops this future, the next call finds
        // them.
        let bytes = std::mem::take(&mut *flood.lock());
        if bytes.is_empty() || !matches!(self.phase, TerminalPhase::Running) {
            self.flood = None;
            self.shared.is_flood.store(false, Relaxed);
        }
        if bytes.is_empty() {
            return Ok(None);
        }
        self.count_drained(bytes.len());
        Ok(Some(bytes))
    }

    /// Checks for the program's exit. The flood may come from a process that the program left
    /// running, and may never end.
    async fn check_for_exit(&mut self) -> Result<()> {
        let did = {
            let mut does = pin!(self.program.next());
            poll_fn(|cx| {
                Poll::Ready(match does.as_mut().poll(cx) {
                    Poll::Ready(did) => did,
                    Poll::Pending => Ok(None),
                })
            })
            .await?
        };
        if let Some(ProcessUpdate::Exited(exit)) = did {
            self.drain_after_exit(exit);
        }
        Ok(())
    }

    /// Waits for output or the end of the program. Output takes precedence.
    async fn first_event(&mut self) -> Result<FirstTerminalEvent> {
        let Self { shared, program, buffer, .. } = self;
        buffer.resize(PIECE_BYTES, 0);
        let mut does = pin!(program.next());
        // A terminal that no process holds is always ready and always empty.
        let mut has_ended = false;
        poll_fn(|cx| {
            if !has_ended {
                match shared.read_or_wait(buffer, None, cx.waker()) {
                    Ok(PtyReadResult::Nothing) => {}
                    Ok(PtyReadResult::End) => has_ended = true,
                    got => return Poll::Ready(got.map(FirstTerminalEvent::Shown)),
                }
            }
            does.as_mut().poll(cx).map(|did| did.map(FirstTerminalEvent::Did))
        })
        .await
    }

    fn drain_after_exit(&mut self, exit: ProcessExit) {
        self.shared.pty.close_program_side();
        self.phase =
            TerminalPhase::Draining { exit, until: Instant::now() + DRAIN_GRACE, bytes: 0 };
    }

    /// Reads the output from before the exit, and the last output of a process that still holds the
    /// terminal.
    async fn drain_output(&mut self, until: Instant, drained: usize) -> Result<Option<usize>> {
        if drained >= DRAIN_BYTES_MAX {
            return Ok(None);
        }
        let Self { shared, buffer, .. } = self;
        buffer.resize(PIECE_BYTES, 0);
        poll_fn(|cx| {
            let got = shared.read_or_wait(buffer, Some(until), cx.waker());
            Poll::Ready(match got {
                Ok(PtyReadResult::Bytes(bytes)) => Ok(Some(bytes)),
                Ok(PtyReadResult::Nothing) if Instant::now() < until => return Poll::Pending,
                Ok(PtyReadResult::Nothing | PtyReadResult::End) => Ok(None),
                Err(error) => Err(error),
            })
        })
        .await
    }

    fn output_event(&mut self, bytes: usize) -> TerminalUpdate {
        self.count_drained(bytes);
        if bytes >= FLOOD_BYTES && matches!(self.phase, TerminalPhase::Running) {
            self.flood = Some(Arc::default());
            self.shared.is_flood.store(true, Relaxed);
        }
        TerminalUpdate::Output(self.buffer[..bytes].to_vec())
    }

    fn count_drained(&mut self, bytes: usize) {
        if let TerminalPhase::Draining { bytes: drained, .. } = &mut self.phase {
            *drained += bytes;
        }
    }

    fn exit_event(&mut self) -> Option<TerminalUpdate> {
        self.buffer = Vec::new();
        match std::mem::replace(&mut self.phase, TerminalPhase::Over) {
            TerminalPhase::Draining { exit, .. } => Some(TerminalUpdate::Exited(exit)),
            TerminalPhase::Running | TerminalPhase::Over => None,
        }
    }
}

impl LocalTerminalState {
    /// Reads output and counts its bytes.
    fn try_read_output(&self, buffer: &mut [u8]) -> Result<PtyReadResult> {
        let mut shown_bytes = self.shown_bytes.lock();
        let got = self.pty.read_output(buffer).map_err(|error| write_error(&error))?;
        if let PtyReadResult::Bytes(bytes) = got {
            *shown_bytes += bytes as u64;
        }
        Ok(got)
    }

    /// Reads until the buffer is full or no output is left.
    fn read_available(&self, buffer: &mut [u8]) -> Result<PtyReadResult> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.try_read_output(&mut buffer[filled..])? {
                PtyReadResult::Bytes(bytes) => filled += bytes,
                got if filled == 0 => return Ok(got),
                // The next read finds it again.
                PtyReadResult::Nothing | PtyReadResult::End => break,
            }
        }
        Ok(PtyReadResult::Bytes(filled))
    }

    /// Gathers output until the piece is full or the flood pauses. Blocks, but only briefly.
    fn gather_output(&self, bytes: &mut Vec<u8>) {
        let begun = Instant::now();
        let mut filled = bytes.len();
        bytes.resize(FLOOD_PIECE_BYTES, 0);
        let mut last = begun;
        while filled < FLOOD_PIECE_BYTES && begun.elapsed() < GATHER_MAX {
            if last.elapsed() > LOOK_FOR && !self.pty.has_more_output_within(GATHER_PAUSE) {
                break;
            }
            match self.try_read_output(&mut bytes[filled..]) {
                Ok(PtyReadResult::Bytes(more)) => {
                    filled += more;
                    last = Instant::now();
                }
                Ok(PtyReadResult::Nothing) => std::hint::spin_loop(),
                // The next read outside of a flood reports the error.
                Ok(PtyReadResult::End) | Err(_) => break,
            }
        }
        bytes.truncate(filled);
    }

    /// Reads output. If there is none, wakes the caller when there may be some.
    fn read_or_wait(
        &self,
        buffer: &mut [u8],
        until: Option<Instant>,
        waker: &std::task::Waker,
    ) -> Result<PtyReadResult> {
        let got = self.read_available(buffer)?;
        if got != PtyReadResult::Nothing {
            return Ok(got);
        }
        self.readiness
            .wake_when_ready(&self.pty, TerminalOperation::ToRead, until, waker)
            .map_err(|error| write_error(&error))?;
        Ok(PtyReadResult::Nothing)
    }
}

impl LocalTerminal {
    async fn write_until(&self, bytes: &[u8], until: Option<Instant>) -> Result<usize> {
        let LocalTerminalState { pty, readiness, seen, shown_bytes, typed, .. } = &*self.shared;
        let before = *shown_bytes.lock();
        *typed.lock() = Some((Instant::now(), before));
        let taken = self.typing.write_until((pty, readiness), &self.home, bytes, until).await?;
        seen.lock().0.record_input(&bytes[..taken]);
        Ok(taken)
    }
}

impl Terminal for LocalTerminal {
    fn pid(&self) -> Option<u32> {
        Some(self.program.pid())
    }

    async fn write(&self, bytes: Vec<u8>) -> Result<()> {
        self.write_until(&bytes, None).await.map(drop)
    }

    async fn write_within(&self, bytes: Vec<u8>, longest: Duration) -> Result<usize> {
        self.write_until(&bytes, Instant::now().checked_add(longest)).await
    }

    async fn resize(&self, size: TerminalResize) -> Result<()> {
        self.shared
            .open_terminal()?
            .resize(size.rows, size.columns)
            .map_err(|error| write_error(&error))
    }

    async fn signal(&self, signal: Signal) -> Result<()> {
        let sent = self.shared.open_terminal()?.signal_foreground(system_signal(signal)).map_err(
            |error| {
                Error::new(
                    ErrorKind::Failed,
                    format!("cannot signal the foreground program: {error}"),
                )
            },
        )?;
        // Until it leads a session, the program is the only process on the terminal.
        if sent { Ok(()) } else { self.program.signal(signal).await }
    }

    async fn state(&self) -> Result<TerminalState> {
        self.shared.terminal_state(self.program.pid())
    }

    async fn end(&self) -> Result<()> {
        self.program.end().await
    }
}

impl LocalTerminalState {
    /// Returns the terminal if its program still runs.
    fn open_terminal(&self) -> Result<&Arc<PseudoTerminal>> {
        if self.pty.is_closed() { Err(closed_terminal_error()) } else { Ok(&self.pty) }
    }

    /// Returns true if output followed the last input, or if that input was long ago.
    fn is_input_answered(&self, shown_bytes: u64) -> bool {
        let typed = *self.typed.lock();
        typed.is_none_or(|(at, before)| shown_bytes != before || at.elapsed() > UNANSWERED_MAX)
    }

    fn terminal_state(&self, program: u32) -> Result<TerminalState> {
        let pty = self.open_terminal()?;
        let modes = pty.input_modes().map_err(|error| write_error(&error))?;
        let foreground = pty.foreground_pid();
        let has_input = pty.has_input().ok();
        let (has_output, shown_bytes) = {
            let shown_bytes = self.shown_bytes.lock();
            (pty.has_output().ok(), *shown_bytes)
        };
        let mut state = TerminalState {
            echoes: Some(modes.echoes),
            reads_lines: Some(modes.reads_lines),
            foreground_pid: foreground,
            has_input,
            has_output,
            shown_bytes: Some(shown_bytes),
            ..TerminalState::default()
        };
        let Some(foreground) = foreground else { return Ok(state) };
        if has_output == Some(true) && self.is_flood.load(Relaxed) {
            // The pending output comes first, and a closer look would delay reading it.
            return Ok(state);
        }
        let terminal = waiting::InspectedTerminal {
            device: pty.device(),
            program,
            foreground,
            reads_lines: modes.reads_lines,
            echoes: modes.echoes,
            is_answered: self.is_input_answered(shown_bytes),
        };
        let mut seen = self.seen.lock();
        let (seen, memory) = &mut *seen;
        seen.add_observation(find_waiting_process(&terminal, memory), &mut state);
        Ok(state)
    }
}

fn system_signal(signal: Signal) -> SystemSignal {
    match signal {
        Signal::Hangup => SystemSignal::HUP,
        Signal::Interrupt => SystemSignal::INT,
        Signal::Quit => SystemSignal::QUIT,
        Signal::Terminate => SystemSignal::TERM,
        Signal::Kill => SystemSignal::KILL,
        Signal::User1 => SystemSignal::USR1,
        Signal::User2 => SystemSignal::USR2,
        Signal::Stop => SystemSignal::STOP,
        Signal::Continue => SystemSignal::CONT,
    }
}
