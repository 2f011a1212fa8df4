//! The counts of tokens that go on, of all plugins.

use std::sync::atomic::AtomicUsize;

use jaato_types::count::COUNTS_AT_ONCE;
use tokio::sync::Semaphore;

/// Those that go on.
#[derive(Debug)]
pub struct CountsInWork {
    /// Those that providers are asked for.
    pub at_once: Semaphore,
    /// How many wait.
    pub waiting: AtomicUsize,
}

impl Default for CountsInWork {
    fn default() -> Self {
        Self { at_once: Semaphore::new(COUNTS_AT_ONCE), waiting: AtomicUsize::new(0) }
    }
}
