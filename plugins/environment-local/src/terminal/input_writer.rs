//! Writes input to a terminal, one caller at a time and within a time limit.
//!
//! Invariant: an interrupt key never waits behind unread input. A terminal that turns the key into
//! a signal would discard the input before it, but only when the key gets through, and a program
//! that reads nothing prevents that. So this module discards the earlier input first, including the
//! input of callers that still wait.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::task::Poll;
use std::time::Instant;

use jaato_plugin_sdk::prelude::*;

use super::pty::PseudoTerminal;
use super::readiness::{TerminalOperation, TerminalReadiness};
use super::turns::{WriterQueue, WriterQueuePosition};

/// The callers that write to one terminal.
#[derive(Default)]
pub(super) struct TerminalWriters {
    turns: WriterQueue,
    /// Counts interrupts. Input that was queued before an interrupt is not written.
    interrupts: AtomicU64,
}

impl TerminalWriters {
    /// Writes until all bytes are written, the deadline has passed or an interrupt arrives. Returns
    /// the number of bytes written.
    pub(super) async fn write_until(
        &self,
        (pty, readiness): (&Arc<PseudoTerminal>, &TerminalReadiness),
        home: &Home,
        bytes: &[u8],
        until: Option<Instant>,
    ) -> Result<usize> {
        // The terminal discards input before such a key anyway, and unread input would hold the key
        // back.
        let keeps_back = |key: &usize| *key == 0 || pty.has_input().unwrap_or(false);
        let key = pty.find_interrupt_key(bytes).filter(keeps_back);
        if key.is_some() {
            self.interrupts.fetch_add(1, SeqCst);
            // A caller that waits for room then finds it, and sees that it was interrupted.
            pty.discard_input().map_err(|error| write_error(&error))?;
        }
        let (turn, before) = (self.turns.join_queue(), self.interrupts.load(SeqCst));
        if !wait_for_turn_until(&turn, home, until).await? {
            return Ok(0);
        }
        if key.is_some() {
            // The previous caller may have written until its turn ended.
            pty.discard_input().map_err(|error| write_error(&error))?;
        }
        let mut taken = key.unwrap_or(0);
        poll_fn(|cx| {
            while taken < bytes.len() && self.interrupts.load(SeqCst) == before {
                if pty.is_closed() {
                    return Poll::Ready(Err(closed_terminal_error()));
                }
                let rest = &bytes[taken..];
                match pty.write_input(rest) {
                    Ok(0) if let Some(key) = pty.find_interrupt_key(rest) => {
                        pty.discard_input().map_err(|error| write_error(&error))?;
                        taken += key;
                    }
                    Ok(0) if until.is_some_and(|until| until <= Instant::now()) => break,
                    Ok(0) => {
                        let waits = readiness.wake_when_ready(
                            pty,
                            TerminalOperation::ToWrite,
                            until,
                            cx.waker(),
                        );
                        return match waits {
                            Ok(()) => Poll::Pending,
                            Err(error) => Poll::Ready(Err(write_error(&error))),
                        };
                    }
                    Ok(more) => taken += more,
                    Err(error) => return Poll::Ready(Err(write_error(&error))),
                }
            }
            Poll::Ready(Ok(taken))
        })
        .await
    }
}

/// Waits for a turn. Returns false if that takes too long.
async fn wait_for_turn_until(
    turn: &WriterQueuePosition<'_>,
    home: &Home,
    until: Option<Instant>,
) -> Result<bool> {
    let Some(until) = until else {
        turn.wait_for_turn().await;
        return Ok(true);
    };
    let mut comes = pin!(turn.wait_for_turn());
    let mut is_late = pin!(home.sleep(until.saturating_duration_since(Instant::now())));
    poll_fn(|cx| {
        if comes.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Ok(true));
        }
        is_late.as_mut().poll(cx).map_ok(|()| false)
    })
    .await
}

pub(super) fn write_error(error: &io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("lost the terminal: {error}"))
}

pub(super) fn closed_terminal_error() -> Error {
    let text = "the terminal is closed";
    Error::new(ErrorKind::Io, text).with_hint("its program has ended")
}
