//! Counts what a plugin holds of the host, so that a test can tell that nothing stays behind.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// What a plugin holds of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Live {
    /// Contexts, of calls and of instances.
    pub contexts: usize,
    /// Streams that are open.
    pub streams: usize,
    /// Futures of the host that are neither ready nor dropped.
    pub futures: usize,
    /// Jobs on the blocking pool.
    pub jobs: usize,
}

#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) contexts: Counter,
    pub(crate) streams: Counter,
    pub(crate) futures: Counter,
    pub(crate) jobs: Counter,
}

impl Counters {
    pub(crate) fn read(&self) -> Live {
        let count = |counter: &Counter| counter.0.load(SeqCst);
        Live {
            contexts: count(&self.contexts),
            streams: count(&self.streams),
            futures: count(&self.futures),
            jobs: count(&self.jobs),
        }
    }
}

#[derive(Default)]
pub(crate) struct Counter(Arc<AtomicUsize>);

impl Counter {
    pub(crate) fn token(&self) -> Token {
        self.0.fetch_add(1, SeqCst);
        Token(Arc::clone(&self.0))
    }
}

/// Counts as alive until it is dropped.
pub(crate) struct Token(Arc<AtomicUsize>);

impl Drop for Token {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}
