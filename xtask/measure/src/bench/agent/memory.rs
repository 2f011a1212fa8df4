//! The memory of a running command and its helpers, looked at again and again from a thread.
//!
//! It costs time, so a run that is looked at is not one whose time is measured.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::bench::processes::{descendants_of, peak_kib, pss_kib};

/// Between two looks, which take about a millisecond each: the processor is the command's, too.
const LOOK_EVERY: Duration = Duration::from_micros(200);

/// What was seen, in KiB.
#[derive(Debug, Clone, Copy, Default)]
pub struct Seen {
    /// The most that the command and all its descendants held together at one look. What they share
    /// with other programs counts in part.
    pub together: u64,
    /// The most that the command alone ever held resident, as the system remembers it.
    pub command_alone: u64,
}

/// Looks on until it is told to stop.
pub struct Looker {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Seen>,
}

impl Looker {
    /// Starts to look at the command of that process id, a child of this process, as all its
    /// descendants are that lose their parents.
    pub fn start(root: u32) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut seen = Seen::default();
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

    /// What was seen.
    pub fn stop(self) -> Result<Seen> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().ok().context("the thread that looks at the memory panicked")
    }
}
