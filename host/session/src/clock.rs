//! Time behind a trait, so that a run can be replayed and tests wait for nothing.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::future::{BoxFuture, FutureExt};
use tokio::time::Instant;

use crate::Hold;

/// Longest piece in which a wait is counted. A process that is stopped (Ctrl-Z) or a machine that
/// sleeps lets the clock go on; a wait counts the pieces that it slept, so that it grows by one
/// piece at most, however long the stop was.
pub(crate) const PIECE_MS: u64 = 1_000;

/// What a session knows of time.
pub trait Clock: Send + Sync {
    /// Milliseconds since some fixed moment; never goes back.
    fn monotonic_ms(&self) -> u64;

    /// Milliseconds since 1970 in UTC.
    fn wall_ms(&self) -> u64;

    /// Becomes ready after that many milliseconds. Dropping it ends the wait.
    fn sleep(&self, ms: u64) -> BoxFuture<'static, ()>;
}

/// The clock of the tokio runtime and the operating system.
#[derive(Debug)]
pub struct SystemClock {
    start: Instant,
}

impl SystemClock {
    /// Makes a clock that counts from this moment.
    pub fn new() -> Self {
        Self { start: Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn monotonic_ms(&self) -> u64 {
        whole_ms(self.start.elapsed())
    }

    fn wall_ms(&self) -> u64 {
        // A clock set before 1970 reads as 1970; nothing here depends on it being right.
        whole_ms(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
    }

    fn sleep(&self, ms: u64) -> BoxFuture<'static, ()> {
        tokio::time::sleep(Duration::from_millis(ms)).boxed()
    }
}

/// Becomes ready after that many milliseconds in which the process ran.
pub(crate) async fn sleep_while_running(clock: Arc<dyn Clock>, ms: u64) {
    sleep_unheld(clock, ms, Hold::default()).await;
}

/// Becomes ready after that many milliseconds in which the process ran and nobody held the
/// deadline.
pub(crate) async fn sleep_unheld(clock: Arc<dyn Clock>, ms: u64, hold: Hold) {
    let mut left_ms = ms;
    loop {
        let piece_ms = left_ms.min(PIECE_MS);
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
