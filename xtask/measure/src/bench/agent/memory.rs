//! Observes the memory of a running command and its helpers, repeatedly from a thread.
//!
//! This takes time, so observed runs are not used for time measurements.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::bench::processes::{descendants_of, peak_kib, pss_kib};

/// The pause between two samples. Each sample takes about a millisecond of the shared processor.
const LOOK_EVERY: Duration = Duration::from_micros(200);

/// The observed memory, in KiB.
#[derive(Debug, Clone, Copy, Default)]
pub struct ObservedMemory {
    /// The highest total of the command and all its descendants in one sample. Memory shared
    /// with other programs counts proportionally.
    pub together: u64,
    /// The peak resident memory of the command alone, as the system reports it.
    pub command_alone: u64,
}

/// Observes until it is stopped.
pub struct MemoryObserver {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<ObservedMemory>,
}

impl MemoryObserver {
    /// Starts to observe the command with this process id, a child of this process. Orphaned
    /// descendants also become children of this process.
    pub fn start_observing(root: u32) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut seen = ObservedMemory::default();
            while !stopped.load(Ordering::Relaxed) {
                let together = pss_kib(&descendants_of(std::process::id()));
                seen.together = seen.together.max(together);
                seen.command_alone = seen.command_alone.max(peak_kib(root).unwrap_or(0));
                std::thread::sleep(LOOK_EVERY);
            }
            seen
        });
        Self { stop, thread }
    }

    /// Stops and returns the observed memory.
    pub fn stop_observing(self) -> Result<ObservedMemory> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().ok().context("the thread that looks at the memory panicked")
    }
}
