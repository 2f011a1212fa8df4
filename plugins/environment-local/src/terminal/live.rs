//! A program on a terminal: its two halves.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};

use jaato_plugin_sdk::environment::{Terminal, TerminalEvents, TerminalHappened};
use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::process::{Happened, ProcessControl, ProcessEvents, ProcessExit, Signal};
use jaato_plugin_sdk::types::terminal::{TerminalResize, TerminalState};
use jaato_plugin_sdk_environment::waiting::Seen;
use rustix::process::Signal as SystemSignal;

use super::pty::{Got, Pty};
use super::readiness::{Readiness, Wanted};
use super::turns::Turns;
use crate::waiting::{self, Memory, look};

/// Bytes of one piece of what is shown.
const PIECE_BYTES: usize = 64 * 1024;

/// How long after the exit a terminal that somebody still holds is read: as long as a program's pipes are.
const DRAIN_GRACE: Duration = Duration::from_millis(20);

/// Bytes that are read after the exit. No terminal holds more, so nothing that was shown before is lost.
const DRAIN_BYTES_MAX: usize = 1024 * 1024;

/// What both halves share.
struct Shared {
    pty: Arc<Pty>,
    readiness: Arc<Readiness>,
    shown_bytes: AtomicU64,
    /// What was seen of it, and what looks keep.
    seen: Mutex<(Seen, Memory)>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.readiness.forget(&self.pty);
    }
}

/// What can be done with a terminal of this machine.
pub struct LocalTerminal {
    shared: Arc<Shared>,
    program: ProcessControl,
    turns: Turns,
}

/// What happens on a terminal of this machine.
pub struct LocalTerminalEvents {
    shared: Arc<Shared>,
    program: ProcessEvents,
    phase: Phase,
    buffer: Vec<u8>,
}

enum Phase {
    Running,
    /// It has ended; what it had shown is being read.
    Draining {
        exit: ProcessExit,
        until: Instant,
        bytes: usize,
    },
    Over,
}

/// Makes both halves of a program that was started on a terminal.
pub(super) fn halves(
    pty: Arc<Pty>,
    readiness: Arc<Readiness>,
    (program, events): (ProcessControl, ProcessEvents),
) -> (LocalTerminal, LocalTerminalEvents) {
    let (shown_bytes, seen) = (AtomicU64::new(0), Mutex::default());
    let shared = Arc::new(Shared { pty, readiness, shown_bytes, seen });
    let events = LocalTerminalEvents {
        shared: Arc::clone(&shared),
        program: events,
        phase: Phase::Running,
        buffer: Vec::new(),
    };
    (LocalTerminal { shared, program, turns: Turns::default() }, events)
}

/// What happened first.
enum First {
    Shown(Got),
    Did(Option<Happened>),
}

impl TerminalEvents for LocalTerminalEvents {
    async fn next(&mut self) -> Result<Option<TerminalHappened>> {
        loop {
            match &self.phase {
                Phase::Running => match self.first().await? {
                    First::Shown(Got::Bytes(bytes)) => return Ok(Some(self.shown(bytes))),
                    // Nobody has the terminal: the exit comes next.
                    First::Shown(Got::Nothing | Got::End) => {}
                    First::Did(Some(Happened::Output { .. })) => {}
                    First::Did(Some(Happened::Exited(exit))) => self.drain(exit),
                    First::Did(None) => {
                        self.phase = Phase::Over;
                        return Err(Error::new(ErrorKind::HostBug, "the program has no exit"));
                    }
                },
                Phase::Draining { until, bytes, .. } => match self.rest(*until, *bytes).await? {
                    Some(bytes) => return Ok(Some(self.shown(bytes))),
                    None => return Ok(self.exited()),
                },
                Phase::Over => return Ok(None),
            }
        }
    }
}

impl LocalTerminalEvents {
    /// Waits until something is shown or the program ends. What was shown comes first.
    async fn first(&mut self) -> Result<First> {
        let Self { shared, program, buffer, .. } = self;
        buffer.resize(PIECE_BYTES, 0);
        let mut does = pin!(program.next());
        // Where nobody has the terminal any more it is always ready, and always empty.
        let mut has_ended = false;
        poll_fn(|cx| {
            if !has_ended {
                match shared.read(buffer, None, cx.waker()) {
                    Ok(Got::Nothing) => {}
                    Ok(Got::End) => has_ended = true,
                    got => return Poll::Ready(got.map(First::Shown)),
                }
            }
            does.as_mut().poll(cx).map(|did| did.map(First::Did))
        })
        .await
    }

    fn drain(&mut self, exit: ProcessExit) {
        self.shared.pty.let_go();
        self.phase = Phase::Draining { exit, until: Instant::now() + DRAIN_GRACE, bytes: 0 };
    }

    /// Reads what was shown before the exit, and the last words of who still holds the terminal.
    async fn rest(&mut self, until: Instant, drained: usize) -> Result<Option<usize>> {
        if drained >= DRAIN_BYTES_MAX {
            return Ok(None);
        }
        let Self { shared, buffer, .. } = self;
        buffer.resize(PIECE_BYTES, 0);
        poll_fn(|cx| {
            let got = shared.read(buffer, Some(until), cx.waker());
            Poll::Ready(match got {
                Ok(Got::Bytes(bytes)) => Ok(Some(bytes)),
                Ok(Got::Nothing) if Instant::now() < until => return Poll::Pending,
                Ok(Got::Nothing | Got::End) => Ok(None),
                Err(error) => Err(error),
            })
        })
        .await
    }

    fn shown(&mut self, bytes: usize) -> TerminalHappened {
        if let Phase::Draining { bytes: drained, .. } = &mut self.phase {
            *drained += bytes;
        }
        self.shared.shown_bytes.fetch_add(bytes as u64, Relaxed);
        TerminalHappened::Output(self.buffer[..bytes].to_vec())
    }

    fn exited(&mut self) -> Option<TerminalHappened> {
        self.buffer = Vec::new();
        match std::mem::replace(&mut self.phase, Phase::Over) {
            Phase::Draining { exit, .. } => Some(TerminalHappened::Exited(exit)),
            Phase::Running | Phase::Over => None,
        }
    }
}

impl Shared {
    /// Reads what was shown; where that is nothing, somebody is woken when there may be something.
    fn read(
        &self,
        buffer: &mut [u8],
        until: Option<Instant>,
        waker: &std::task::Waker,
    ) -> Result<Got> {
        let got = self.pty.read(buffer).map_err(|error| lost(&error))?;
        if got != Got::Nothing {
            return Ok(got);
        }
        self.readiness
            .wake(&self.pty, Wanted::ToRead, until, waker)
            .map_err(|error| lost(&error))?;
        Ok(Got::Nothing)
    }
}

impl Terminal for LocalTerminal {
    fn pid(&self) -> Option<u32> {
        Some(self.program.pid())
    }

    async fn write(&self, bytes: Vec<u8>) -> Result<()> {
        let turn = self.turns.join();
        turn.come().await;
        let Shared { pty, readiness, seen, .. } = &*self.shared;
        let mut written = 0;
        poll_fn(|cx| {
            while written < bytes.len() {
                if pty.is_closed() {
                    return Poll::Ready(Err(closed()));
                }
                match pty.write(&bytes[written..]) {
                    Ok(0) => {
                        let waits = readiness.wake(pty, Wanted::ToWrite, None, cx.waker());
                        return match waits {
                            Ok(()) => Poll::Pending,
                            Err(error) => Poll::Ready(Err(lost(&error))),
                        };
                    }
                    Ok(more) => written += more,
                    Err(error) => return Poll::Ready(Err(lost(&error))),
                }
            }
            Poll::Ready(Ok(()))
        })
        .await?;
        seen.lock().unwrap_or_else(PoisonError::into_inner).0.typed(&bytes);
        Ok(())
    }

    async fn resize(&self, size: TerminalResize) -> Result<()> {
        self.shared.open()?.resize(size.rows, size.columns).map_err(|error| lost(&error))
    }

    async fn signal(&self, signal: Signal) -> Result<()> {
        let sent = self.shared.open()?.signal(system_signal(signal)).map_err(|error| {
            Error::new(ErrorKind::Failed, format!("cannot signal the foreground: {error}"))
        })?;
        // Before it leads a session, the program is alone there.
        if sent { Ok(()) } else { self.program.signal(signal).await }
    }

    async fn state(&self) -> Result<TerminalState> {
        self.shared.state(self.program.pid())
    }

    async fn end(&self) -> Result<()> {
        self.program.end().await
    }
}

impl Shared {
    /// Returns the terminal as long as its program lives.
    fn open(&self) -> Result<&Arc<Pty>> {
        if self.pty.is_closed() { Err(closed()) } else { Ok(&self.pty) }
    }

    fn state(&self, program: u32) -> Result<TerminalState> {
        let pty = self.open()?;
        let modes = pty.modes().map_err(|error| lost(&error))?;
        let foreground = pty.foreground();
        let mut state = TerminalState {
            echoes: Some(modes.echoes),
            reads_lines: Some(modes.reads_lines),
            foreground_pid: foreground,
            has_input: pty.has_input().ok(),
            has_output: pty.has_output().ok(),
            shown_bytes: Some(self.shown_bytes.load(Relaxed)),
            ..TerminalState::default()
        };
        let Some(foreground) = foreground else { return Ok(state) };
        let terminal = waiting::Terminal {
            device: pty.device(),
            program,
            foreground,
            reads_lines: modes.reads_lines,
            echoes: modes.echoes,
        };
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let (seen, memory) = &mut *seen;
        seen.add(look(&terminal, memory), &mut state);
        Ok(state)
    }
}

fn lost(error: &io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("the terminal is lost: {error}"))
}

fn closed() -> Error {
    let text = "the terminal is closed";
    Error::new(ErrorKind::Io, text).with_hint("its program has ended")
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
