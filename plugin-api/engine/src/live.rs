//! Counts what plugins hold of the host, so that a test can tell that nothing stays behind.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// What plugins hold of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Live {
    /// Contexts, of calls and of instances.
    pub contexts: usize,
    /// Streams that services opened.
    pub streams: usize,
    /// Futures of the host that plugins hold.
    pub futures: usize,
    /// Pieces of blocking work that run or wait for their turn.
    pub jobs: usize,
}

/// The counters of one executor.
#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) contexts: Counter,
    pub(crate) streams: Counter,
    pub(crate) futures: Counter,
    pub(crate) jobs: Counter,
}

impl Counters {
    pub(crate) fn counts(&self) -> Live {
        Live {
            contexts: self.contexts.count(),
            streams: self.streams.count(),
            futures: self.futures.count(),
            jobs: self.jobs.count(),
        }
    }
}

/// Counts tokens that are alive.
#[derive(Default)]
pub(crate) struct Counter(Arc<AtomicUsize>);

impl Counter {
    pub(crate) fn token(&self) -> Token {
        self.0.fetch_add(1, Relaxed);
        Token(Arc::clone(&self.0))
    }

    fn count(&self) -> usize {
        self.0.load(Relaxed)
    }
}

/// Something that is counted until it is dropped.
pub(crate) struct Token(Arc<AtomicUsize>);

impl Drop for Token {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}
