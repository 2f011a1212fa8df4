//! Ctrl-C, TERM and HUP stop the current work. A second one ends the process at once.
//!
//! A plugin inside jaato can install its own handlers, or ignore signals. jaato restores its
//! handlers, so that the next Ctrl-C works.

use std::sync::OnceLock;
use std::time::Duration;

use jaato_runtime::session_loop::Cancel;
use nix::sys::signal::Signal;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;

use crate::exit::{self, Exit};
use crate::platform::SignalHandlers;

/// How long a plugin can have replaced a handler: short enough for a user who tries again.
const RESTORE_EVERY: Duration = Duration::from_millis(500);

/// The signals that end jaato.
const SIGNALS: [Signal; 3] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];

/// jaato's own handlers. They are installed once, even if they are requested again.
static OWN: OnceLock<Option<SignalHandlers>> = OnceLock::new();

/// Lets signals end the process, until this is dropped.
pub struct SignalExitGuard {
    tasks: Vec<JoinHandle<()>>,
    /// The previous handlers: usually the system's, which end the process too.
    before: Option<SignalHandlers>,
}

/// Makes Ctrl-C, TERM and HUP end the process and restore the terminal. For a question that comes
/// before there is anything to cancel.
pub fn end_on_signals() -> SignalExitGuard {
    let before = SignalHandlers::read_handlers(&SIGNALS).ok();
    let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
    let tasks = call_on_signals(kinds, || false);
    own_handlers();
    SignalExitGuard { tasks, before }
}

impl Drop for SignalExitGuard {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            before.restore();
        }
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// Returns the handlers that were installed when it was first called.
fn own_handlers() -> Option<&'static SignalHandlers> {
    // If the system does not report the handlers, they are never restored.
    OWN.get_or_init(|| SignalHandlers::read_handlers(&SIGNALS).ok()).as_ref()
}

/// Makes the first Ctrl-C (or TERM, or HUP) cancel. A second one ends the process at once.
pub fn cancel_on_signals(cancel: Cancel) {
    let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
    call_on_signals(kinds, move || cancel_first_time(&cancel));
    restore_handlers_periodically();
}

/// Makes Ctrl-C call `interrupt`. If that had nothing to stop (false), it ends the process. TERM
/// and HUP end everything.
pub fn interrupt_on_signals(over: Cancel, interrupt: impl Fn() -> bool + Clone + Send + 'static) {
    call_on_signals([SignalKind::interrupt()], interrupt);
    call_on_signals([SignalKind::terminate(), SignalKind::hangup()], move || {
        cancel_first_time(&over)
    });
    restore_handlers_periodically();
}

/// Restores the newly installed handlers periodically.
fn restore_handlers_periodically() {
    let Some(handlers) = own_handlers() else { return };
    handlers.restore();
    tokio::spawn(async move {
        let mut ticks = tokio::time::interval(RESTORE_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            handlers.restore();
        }
    });
}

/// Cancels. Returns false if that was done before.
fn cancel_first_time(cancel: &Cancel) -> bool {
    let is_first = !cancel.is_cancelled();
    cancel.cancel();
    is_first
}

fn call_on_signals<const COUNT: usize>(
    kinds: [SignalKind; COUNT],
    stop: impl Fn() -> bool + Clone + Send + 'static,
) -> Vec<JoinHandle<()>> {
    let mut tasks = Vec::new();
    for kind in kinds {
        // Without a handler the signal ends the process, which is the next best thing.
        let Ok(mut stream) = signal(kind) else { continue };
        let stop = stop.clone();
        tasks.push(tokio::spawn(async move {
            while stream.recv().await.is_some() {
                if !stop() {
                    exit::exit_now(Exit::Cancelled as i32);
                }
            }
        }));
    }
    tasks
}
