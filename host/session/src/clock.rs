//! Time behind a trait, so that a run can be replayed and tests need not wait.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::future::{BoxFuture, FutureExt};
use tokio::time::Instant;

use crate::DeadlineHold;

/// The longest interval in which a wait is counted. The clock continues while the process is
/// stopped (Ctrl-Z) or the machine sleeps. A wait counts only the intervals that it slept, so such
/// a stop shortens it by at most one interval.
pub(crate) const PIECE_MS: u64 = 1_000;

/// The session's source of time.
pub trait SessionClock: Send + Sync {
    /// Milliseconds since some fixed moment. Never goes backwards.
    fn monotonic_ms(&self) -> u64;

    /// Milliseconds since 1970 in UTC.
    fn wall_ms(&self) -> u64;

    /// Becomes ready after this many milliseconds. Dropping the future ends the wait.
    fn sleep(&self, ms: u64) -> BoxFuture<'static, ()>;
}

/// The clock of the tokio runtime and the operating system.
#[derive(Debug)]
pub struct SystemClock {
    start: Instant,
}

impl SystemClock {
    /// Creates a clock that counts from this moment.
    pub fn new() -> Self {
        Self { start: Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl SessionClock for SystemClock {
    fn monotonic_ms(&self) -> u64 {
        whole_ms(self.start.elapsed())
    }

    fn wall_ms(&self) -> u64 {
        // A clock set before 1970 reads as 1970. Nothing here depends on the right time.
        whole_ms(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
    }

    fn sleep(&self, ms: u64) -> BoxFuture<'static, ()> {
        tokio::time::sleep(Duration::from_millis(ms)).boxed()
    }
}

/// Becomes ready after this many milliseconds in which the process ran.
pub(crate) async fn sleep_while_running(clock: Arc<dyn SessionClock>, ms: u64) {
    sleep_while_unheld(clock, ms, DeadlineHold::default()).await;
}

/// Becomes ready after this many milliseconds in which the process ran and nothing held the
/// deadline.
pub(crate) async fn sleep_while_unheld(clock: Arc<dyn SessionClock>, ms: u64, hold: DeadlineHold) {
    // A short deadline is counted in shorter pieces, so that a pause inside of it is noticed.
    let piece_ms_max = PIECE_MS.min((ms / 10).max(1));
    let mut left_ms = ms;
    loop {
        let piece_ms = left_ms.min(piece_ms_max);
        let was_held = hold.is_held();
        clock.sleep(piece_ms).await;
        if !was_held && !hold.is_held() {
            left_ms -= piece_ms;
        }
        if left_ms == 0 {
            return;
        }
    }
}

fn whole_ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn pause_that_begins_and_ends_inside_of_a_short_deadline_does_not_count() {
        let (clock, hold) = (Arc::new(SystemClock::new()), DeadlineHold::default());
        let begun = Instant::now();
        let work = async {
            clock.sleep(50).await;
            let pause = hold.pause();
            clock.sleep(900).await;
            drop(pause);
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = sleep_while_unheld(clock.clone(), 1_000, hold.clone()) => {}
            () = work => {}
        }
        let waited = begun.elapsed().as_millis();
        assert!((1_800..2_200).contains(&waited), "{waited}");
    }
}
