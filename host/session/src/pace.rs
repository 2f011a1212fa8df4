//! So long lies between the beginnings of two requests to a provider, where a person wants it so.

use parking_lot::Mutex;

use crate::{Cancel, Clock};

/// When the last request began, or will begin.
#[derive(Debug, Default)]
pub(crate) struct Pace(Mutex<Option<u64>>);

impl Pace {
    /// Waits until the next request may begin; false where it was cancelled before.
    pub(crate) async fn wait(&self, interval_ms: u64, clock: &dyn Clock, cancel: &Cancel) -> bool {
        if interval_ms == 0 {
            return true;
        }
        let now = clock.monotonic_ms();
        let begins_at = {
            let mut last = self.0.lock();
            let earliest = last.map_or(now, |last| last.saturating_add(interval_ms));
            *last.insert(earliest.max(now))
        };
        tokio::select! {
            biased;
            () = cancel.cancelled() => false,
            () = clock.sleep(begins_at - now) => true,
        }
    }
}
