//! The running token counts of all plugins.

use std::sync::atomic::AtomicUsize;

use jaato_types::count::COUNTS_AT_ONCE;
use tokio::sync::Semaphore;

/// The running token counts.
#[derive(Debug)]
pub struct CountsInWork {
    /// Limits concurrent requests to providers.
    pub at_once: Semaphore,
    /// Number of waiting counts.
    pub waiting: AtomicUsize,
}

impl Default for CountsInWork {
    fn default() -> Self {
        Self { at_once: Semaphore::new(COUNTS_AT_ONCE), waiting: AtomicUsize::new(0) }
    }
}
