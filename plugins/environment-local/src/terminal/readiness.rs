//! Watches when terminals can be read or written, with one thread for all terminals of an
//! environment.
//!
//! The thread does no reads or writes, so nothing is buffered here. It wakes the waiting caller,
//! who tries again. It sleeps until something happens, and ends with the last terminal.

use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _};
use std::sync::{Arc, OnceLock};
use std::task::Waker;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, ioctl_fionbio};

use super::pty::PseudoTerminal;

/// The operation for which a caller waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TerminalOperation {
    ToRead,
    ToWrite,
}

/// Watches which terminals are ready. The first wait starts the thread.
#[derive(Default)]
pub(super) struct TerminalReadiness {
    thread: OnceLock<Arc<ReadinessState>>,
    starting: Mutex<()>,
}

struct ReadinessState {
    waits: Mutex<PendingWaits>,
    /// Wakes the thread.
    bell: PipeWriter,
}

#[derive(Default)]
struct PendingWaits {
    waits: Vec<PendingWait>,
    is_over: bool,
}

/// One wait of one caller.
struct PendingWait {
    pty: Arc<PseudoTerminal>,
    wanted: TerminalOperation,
    until: Option<Instant>,
    waker: Waker,
}

/// A terminal and the operation for which a caller waits.
type WatchedTerminal = (Arc<PseudoTerminal>, TerminalOperation);

impl TerminalReadiness {
    /// Wakes `waker` when the terminal is ready or the time `until` has come. A terminal has one
    /// wait per operation, so another wait replaces it.
    pub(super) fn wake_when_ready(
        &self,
        pty: &Arc<PseudoTerminal>,
        wanted: TerminalOperation,
        until: Option<Instant>,
        waker: &Waker,
    ) -> io::Result<()> {
        let shared = self.shared_state()?;
        let wait = PendingWait { pty: Arc::clone(pty), wanted, until, waker: waker.clone() };
        {
            let mut waits = shared.lock_waits();
            waits.waits.retain(|other| !(other.wanted == wanted && Arc::ptr_eq(&other.pty, pty)));
            waits.waits.push(wait);
        }
        shared.wake_thread();
        Ok(())
    }

    /// Removes the waits of a terminal.
    pub(super) fn remove_terminal(&self, pty: &Arc<PseudoTerminal>) {
        let Some(shared) = self.thread.get() else { return };
        shared.lock_waits().waits.retain(|wait| !Arc::ptr_eq(&wait.pty, pty));
        shared.wake_thread();
    }

    fn shared_state(&self) -> io::Result<&Arc<ReadinessState>> {
        if let Some(shared) = self.thread.get() {
            return Ok(shared);
        }
        let _starting = self.starting.lock();
        if let Some(shared) = self.thread.get() {
            return Ok(shared);
        }
        let (heard, bell) = io::pipe()?;
        ioctl_fionbio(&heard, true)?;
        ioctl_fionbio(&bell, true)?;
        let shared = Arc::new(ReadinessState { waits: Mutex::default(), bell });
        let own = Arc::clone(&shared);
        std::thread::Builder::new()
            .name("terminals".to_owned())
            .spawn(move || own.watch_terminals(heard))?;
        Ok(self.thread.get_or_init(|| shared))
    }
}

impl Drop for TerminalReadiness {
    fn drop(&mut self) {
        if let Some(shared) = self.thread.get() {
            shared.lock_waits().is_over = true;
            shared.wake_thread();
        }
    }
}

impl ReadinessState {
    fn watch_terminals(&self, mut heard: PipeReader) {
        let mut rung = [0; 64];
        loop {
            let Some((watched, until)) = self.terminals_to_watch() else { return };
            let ready = wait_until_ready(&heard, &watched, until);
            // Drain the pipe before looking at the waits.
            while matches!(heard.read(&mut rung), Ok(bytes) if bytes > 0) {}
            for waker in self.take_ready(&watched, &ready) {
                waker.wake();
            }
        }
    }

    /// Returns the terminals to watch and the next deadline, or `None` if the thread must end.
    fn terminals_to_watch(&self) -> Option<(Vec<WatchedTerminal>, Option<Instant>)> {
        let waits = self.lock_waits();
        if waits.is_over {
            return None;
        }
        let watched = waits.waits.iter().map(|wait| (Arc::clone(&wait.pty), wait.wanted)).collect();
        Some((watched, waits.waits.iter().filter_map(|wait| wait.until).min()))
    }

    /// Removes the waits that are over and returns their wakers.
    fn take_ready(&self, watched: &[WatchedTerminal], ready: &[bool]) -> Vec<Waker> {
        let now = Instant::now();
        let is_ready = |wait: &PendingWait| {
            wait.until.is_some_and(|until| until <= now)
                || watched.iter().zip(ready).any(|((pty, wanted), ready)| {
                    *ready && *wanted == wait.wanted && Arc::ptr_eq(pty, &wait.pty)
                })
        };
        let mut waits = self.lock_waits();
        let over = waits.waits.extract_if(.., |wait| is_ready(wait));
        over.map(|wait| wait.waker).collect()
    }

    fn wake_thread(&self) {
        // If the pipe is full, the thread is already being woken.
        let _ = (&self.bell).write(&[0]);
    }

    fn lock_waits(&self) -> MutexGuard<'_, PendingWaits> {
        self.waits.lock()
    }
}

/// Sleeps until the pipe is written, a terminal is ready or the deadline has passed. Returns which
/// terminals are ready.
fn wait_until_ready(
    heard: &PipeReader,
    watched: &[WatchedTerminal],
    until: Option<Instant>,
) -> Vec<bool> {
    let mut polled = vec![PollFd::new(heard, PollFlags::IN)];
    polled.extend(watched.iter().map(|(pty, wanted)| {
        let flags = match wanted {
            TerminalOperation::ToRead => PollFlags::IN,
            TerminalOperation::ToWrite => PollFlags::OUT,
        };
        PollFd::new(&**pty, flags)
    }));
    let timeout = until.map(|until| until.saturating_duration_since(Instant::now()));
    match poll(&mut polled, timeout.and_then(to_timespec).as_ref()) {
        Ok(_) => polled[1..].iter().map(|polled| !polled.revents().is_empty()).collect(),
        Err(Errno::INTR) => vec![false; watched.len()],
        // Each waiting caller finds out by trying.
        Err(_) => vec![true; watched.len()],
    }
}

fn to_timespec(duration: Duration) -> Option<Timespec> {
    Timespec::try_from(duration).ok()
}
