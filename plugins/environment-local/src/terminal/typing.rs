//! Typing at a terminal: one after the other, and no longer than it may take.
//!
//! Invariant: a key that interrupts never stands behind what nobody took. Where the terminal makes
//! a signal of it, the system would throw away what was typed before, but only once the key gets
//! through to it, and a program that reads nothing keeps it from that. So it is thrown away first,
//! what others still wait to type too.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::task::Poll;
use std::time::Instant;

use jaato_plugin_sdk::prelude::*;

use super::pty::Pty;
use super::readiness::{Readiness, Wanted};
use super::turns::{Turn, Turns};

/// Who types at one terminal.
#[derive(Default)]
pub(super) struct Typing {
    turns: Turns,
    /// Counts interrupts. What was to be typed before one is not typed any more.
    interrupts: AtomicU64,
}

impl Typing {
    /// Types until all is taken, that time has come, or somebody interrupts; returns how many bytes
    /// were taken.
    pub(super) async fn put(
        &self,
        (pty, readiness): (&Arc<Pty>, &Readiness),
        home: &Home,
        bytes: &[u8],
        until: Option<Instant>,
    ) -> Result<usize> {
        // What stands before such a key is thrown away for it, and would keep it back where nobody
        // takes it.
        let keeps_back = |key: &usize| *key == 0 || pty.has_input().unwrap_or(false);
        let key = pty.interrupt_in(bytes).filter(keeps_back);
        if key.is_some() {
            self.interrupts.fetch_add(1, SeqCst);
            // Whoever waits for room finds it, and that this is no longer for them.
            pty.discard_input().map_err(|error| lost(&error))?;
        }
        let (turn, before) = (self.turns.join(), self.interrupts.load(SeqCst));
        if !comes(&turn, home, until).await? {
            return Ok(0);
        }
        if key.is_some() {
            // They may have typed until now.
            pty.discard_input().map_err(|error| lost(&error))?;
        }
        let mut taken = key.unwrap_or(0);
        poll_fn(|cx| {
            while taken < bytes.len() && self.interrupts.load(SeqCst) == before {
                if pty.is_closed() {
                    return Poll::Ready(Err(closed()));
                }
                let rest = &bytes[taken..];
                match pty.write(rest) {
                    Ok(0) if let Some(key) = pty.interrupt_in(rest) => {
                        pty.discard_input().map_err(|error| lost(&error))?;
                        taken += key;
                    }
                    Ok(0) if until.is_some_and(|until| until <= Instant::now()) => break,
                    Ok(0) => {
                        let waits = readiness.wake(pty, Wanted::ToWrite, until, cx.waker());
                        return match waits {
                            Ok(()) => Poll::Pending,
                            Err(error) => Poll::Ready(Err(lost(&error))),
                        };
                    }
                    Ok(more) => taken += more,
                    Err(error) => return Poll::Ready(Err(lost(&error))),
                }
            }
            Poll::Ready(Ok(taken))
        })
        .await
    }
}

/// Waits for a turn; false where that takes too long.
async fn comes(turn: &Turn<'_>, home: &Home, until: Option<Instant>) -> Result<bool> {
    let Some(until) = until else {
        turn.come().await;
        return Ok(true);
    };
    let mut comes = pin!(turn.come());
    let mut is_late = pin!(home.sleep(until.saturating_duration_since(Instant::now())));
    poll_fn(|cx| {
        if comes.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Ok(true));
        }
        is_late.as_mut().poll(cx).map_ok(|()| false)
    })
    .await
}

pub(super) fn lost(error: &io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("the terminal is lost: {error}"))
}

pub(super) fn closed() -> Error {
    let text = "the terminal is closed";
    Error::new(ErrorKind::Io, text).with_hint("its program has ended")
}
