//! Ctrl-C, TERM and HUP stop what is going on; one more of them ends the process at once.
//!
//! A plugin inside jaato can install handlers of its own, or ignore what it likes: what jaato does
//! is put in its place again, so that the next Ctrl-C works.

use std::time::Duration;

use jaato_runtime::session_loop::Cancel;
use nix::sys::signal::Signal;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::MissedTickBehavior;

use crate::exit::{self, Exit};
use crate::platform::Handlers;

/// How long a plugin can have taken a signal away: short for a person who wonders and tries once
/// more.
const RESTORE_EVERY: Duration = Duration::from_millis(500);

/// The first Ctrl-C (or TERM, or HUP) cancels; a second one ends the process at once.
pub fn cancel_on_signals(cancel: Cancel) {
    let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
    stop_on(kinds, move || is_first(&cancel));
    keep_handlers();
}

/// Ctrl-C stops what `interrupt` stops; where that is nothing (false) it ends the process. TERM and
/// HUP end it all.
pub fn interrupt_on_signals(over: Cancel, interrupt: impl Fn() -> bool + Clone + Send + 'static) {
    stop_on([SignalKind::interrupt()], interrupt);
    stop_on([SignalKind::terminate(), SignalKind::hangup()], move || is_first(&over));
    keep_handlers();
}

/// Puts what was just installed in its place again and again.
fn keep_handlers() {
    // Where the system does not say what stands there, it stays whatever it becomes.
    let Ok(handlers) = Handlers::remember(&[Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP])
    else {
        return;
    };
    tokio::spawn(async move {
        let mut ticks = tokio::time::interval(RESTORE_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            handlers.restore();
        }
    });
}

/// Cancels; false where that was done before.
fn is_first(cancel: &Cancel) -> bool {
    let is_first = !cancel.is_cancelled();
    cancel.cancel();
    is_first
}

fn stop_on<const COUNT: usize>(
    kinds: [SignalKind; COUNT],
    stop: impl Fn() -> bool + Clone + Send + 'static,
) {
    for kind in kinds {
        // Without a handler the signal ends the process, which is the next best thing.
        let Ok(mut stream) = signal(kind) else { continue };
        let stop = stop.clone();
        tokio::spawn(async move {
            while stream.recv().await.is_some() {
                if !stop() {
                    exit::now(Exit::Cancelled as i32);
                }
            }
        });
    }
}
