//! When the next request to a provider may begin: so long after the last one as a person wants, and
//! no sooner than the server says that it has room.

use parking_lot::Mutex;

use crate::{Cancel, Clock};

/// When the last request began, or will begin, and when the next may.
#[derive(Debug, Default)]
pub(crate) struct Pace(Mutex<Known>);

#[derive(Debug, Clone, Copy, Default)]
struct Known {
    last: Option<u64>,
    room_at: u64,
}

impl Pace {
    /// Waits until the next request may begin; false where it was cancelled before.
    pub(crate) async fn wait(&self, interval_ms: u64, clock: &dyn Clock, cancel: &Cancel) -> bool {
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

    /// Tells for how many milliseconds the server has no room for a request yet.
    pub(crate) fn no_room_for(&self, clock: &dyn Clock) -> u64 {
        self.0.lock().room_at.saturating_sub(clock.monotonic_ms())
    }

    /// Notes that the server has no room for a request before so many milliseconds are over.
    pub(crate) fn room_after(&self, ms: u64, clock: &dyn Clock) {
        self.0.lock().room_at = clock.monotonic_ms().saturating_add(ms);
    }

    /// Forgets what one server said: another one is asked.
    pub(crate) fn forget_room(&self) {
        self.0.lock().room_at = 0;
    }
}
