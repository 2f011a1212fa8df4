//! Ctrl-C, TERM and HUP stop what is going on; one more of them ends the process at once.

use jaato_runtime::session_loop::Cancel;
use tokio::signal::unix::{SignalKind, signal};

use crate::exit::Exit;

/// The first Ctrl-C (or TERM, or HUP) cancels; a second one ends the process at once.
pub fn cancel_on_signals(cancel: Cancel) {
    let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
    stop_on(kinds, move || is_first(&cancel));
}

/// Ctrl-C stops what `interrupt` stops; where that is nothing (false) it ends the process. TERM and HUP
/// end it all.
pub fn interrupt_on_signals(over: Cancel, interrupt: impl Fn() -> bool + Clone + Send + 'static) {
    stop_on([SignalKind::interrupt()], interrupt);
    stop_on([SignalKind::terminate(), SignalKind::hangup()], move || is_first(&over));
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
                    std::process::exit(Exit::Cancelled as i32);
                }
            }
        });
    }
}
