//! Time behind a trait, so that a run can be replayed and tests wait for nothing.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::future::{BoxFuture, FutureExt};
use tokio::time::Instant;

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

fn whole_ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
