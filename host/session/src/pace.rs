//! When the next request to a provider may begin: after the user's interval since the last one, and
//! not before the server has capacity.

use parking_lot::Mutex;

use crate::{Cancel, SessionClock};

/// When the last request began or will begin, and when the next one may.
#[derive(Debug, Default)]
pub(crate) struct RequestPace(Mutex<PaceState>);

#[derive(Debug, Clone, Copy, Default)]
struct PaceState {
    last: Option<u64>,
    room_at: u64,
}

impl RequestPace {
    /// Waits until the next request may begin. Returns false if it was cancelled first.
    pub(crate) async fn wait_for_interval(
        &self,
        interval_ms: u64,
        clock: &dyn SessionClock,
        cancel: &Cancel,
    ) -> bool {
        let now = clock.monotonic_ms();
        let begins_at = {
            let mut known = self.0.lock();
            let after_last = known.last.map_or(now, |last| last.saturating_add(interval_ms));
            let begins_at = now.max(known.room_at).max(after_last);
            known.last = (interval_ms > 0).then_some(begins_at);
            begins_at
        };
        if begins_at == now {
            return true;
        }
        tokio::select! {
            biased;
            () = cancel.cancelled() => false,
            () = clock.sleep(begins_at - now) => true,
        }
    }

    /// Returns for how many milliseconds the server has no capacity for a request.
    pub(crate) fn busy_ms(&self, clock: &dyn SessionClock) -> u64 {
        self.0.lock().room_at.saturating_sub(clock.monotonic_ms())
    }

    /// Records that the server has no capacity for a request for this many milliseconds.
    pub(crate) fn record_busy_time(&self, ms: u64, clock: &dyn SessionClock) {
        self.0.lock().room_at = clock.monotonic_ms().saturating_add(ms);
    }

    /// Forgets the server's capacity, because the next request goes to another one.
    pub(crate) fn forget_busy_time(&self) {
        self.0.lock().room_at = 0;
    }
}
