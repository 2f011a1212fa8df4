//! Counts the host objects that plugins hold, so that tests can detect leaks.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The number of host objects that plugins hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LiveObjectCounts {
    /// Contexts of calls and instances.
    pub contexts: usize,
    /// Streams that services have opened.
    pub streams: usize,
    /// Host futures that plugins hold.
    pub futures: usize,
    /// Blocking work that runs or waits.
    pub jobs: usize,
}

/// The counters of one executor.
#[derive(Default)]
pub(crate) struct LiveObjectCounters {
    pub(crate) contexts: LiveCounter,
    pub(crate) streams: LiveCounter,
    pub(crate) futures: LiveCounter,
    pub(crate) jobs: LiveCounter,
}

impl LiveObjectCounters {
    pub(crate) fn counts(&self) -> LiveObjectCounts {
        LiveObjectCounts {
            contexts: self.contexts.count(),
            streams: self.streams.count(),
            futures: self.futures.count(),
            jobs: self.jobs.count(),
        }
    }
}

/// Counts live tokens.
#[derive(Default)]
pub(crate) struct LiveCounter(Arc<AtomicUsize>);

impl LiveCounter {
    pub(crate) fn new_token(&self) -> LiveToken {
        self.0.fetch_add(1, Relaxed);
        LiveToken(Arc::clone(&self.0))
    }

    fn count(&self) -> usize {
        self.0.load(Relaxed)
    }
}

/// A token that is counted until it is dropped.
pub(crate) struct LiveToken(Arc<AtomicUsize>);

impl Drop for LiveToken {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}
