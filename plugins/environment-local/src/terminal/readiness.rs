//! Tells when a terminal can be read or written: one thread for all terminals of an environment.
//!
//! It reads and writes nothing itself, so that nothing piles up: who waits is woken, and tries
//! again. It sleeps as long as nothing happens, and ends with the last terminal.

use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _};
use std::sync::{Arc, OnceLock};
use std::task::Waker;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, ioctl_fionbio};

use super::pty::Pty;

/// What is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    ToRead,
    ToWrite,
}

/// Tells when terminals are ready. The thread starts with the first wait.
#[derive(Default)]
pub(super) struct Readiness {
    thread: OnceLock<Arc<Shared>>,
    starting: Mutex<()>,
}

struct Shared {
    waits: Mutex<Waits>,
    /// Wakes the thread.
    bell: PipeWriter,
}

#[derive(Default)]
struct Waits {
    waits: Vec<Wait>,
    is_over: bool,
}

/// Somebody waits, once.
struct Wait {
    pty: Arc<Pty>,
    wanted: Wanted,
    until: Option<Instant>,
    waker: Waker,
}

/// A terminal, and what is waited for there.
type Watched = (Arc<Pty>, Wanted);

impl Readiness {
    /// Wakes somebody when a terminal is ready, or then at the latest. There is one wait of a kind
    /// for a terminal: another takes its place.
    pub(super) fn wake(
        &self,
        pty: &Arc<Pty>,
        wanted: Wanted,
        until: Option<Instant>,
        waker: &Waker,
    ) -> io::Result<()> {
        let shared = self.shared()?;
        let wait = Wait { pty: Arc::clone(pty), wanted, until, waker: waker.clone() };
        {
            let mut waits = shared.lock();
            waits.waits.retain(|other| !(other.wanted == wanted && Arc::ptr_eq(&other.pty, pty)));
            waits.waits.push(wait);
        }
        shared.ring();
        Ok(())
    }

    /// Forgets the waits of a terminal.
    pub(super) fn forget(&self, pty: &Arc<Pty>) {
        let Some(shared) = self.thread.get() else { return };
        shared.lock().waits.retain(|wait| !Arc::ptr_eq(&wait.pty, pty));
        shared.ring();
    }

    fn shared(&self) -> io::Result<&Arc<Shared>> {
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
        let shared = Arc::new(Shared { waits: Mutex::default(), bell });
        let own = Arc::clone(&shared);
        std::thread::Builder::new().name("terminals".to_owned()).spawn(move || own.run(heard))?;
        Ok(self.thread.get_or_init(|| shared))
    }
}

impl Drop for Readiness {
    fn drop(&mut self) {
        if let Some(shared) = self.thread.get() {
            shared.lock().is_over = true;
            shared.ring();
        }
    }
}

impl Shared {
    fn run(&self, mut heard: PipeReader) {
        let mut rung = [0; 64];
        loop {
            let Some((watched, until)) = self.watched() else { return };
            let ready = wait(&heard, &watched, until);
            // Whatever rang is looked at next.
            while matches!(heard.read(&mut rung), Ok(bytes) if bytes > 0) {}
            for waker in self.take_ready(&watched, &ready) {
                waker.wake();
            }
        }
    }

    /// Lists whom to watch, and for how long; nothing at the end.
    fn watched(&self) -> Option<(Vec<Watched>, Option<Instant>)> {
        let waits = self.lock();
        if waits.is_over {
            return None;
        }
        let watched = waits.waits.iter().map(|wait| (Arc::clone(&wait.pty), wait.wanted)).collect();
        Some((watched, waits.waits.iter().filter_map(|wait| wait.until).min()))
    }

    /// Takes the waits that are over.
    fn take_ready(&self, watched: &[Watched], ready: &[bool]) -> Vec<Waker> {
        let now = Instant::now();
        let is_ready = |wait: &Wait| {
            wait.until.is_some_and(|until| until <= now)
                || watched.iter().zip(ready).any(|((pty, wanted), ready)| {
                    *ready && *wanted == wait.wanted && Arc::ptr_eq(pty, &wait.pty)
                })
        };
        let mut waits = self.lock();
        let over = waits.waits.extract_if(.., |wait| is_ready(wait));
        over.map(|wait| wait.waker).collect()
    }

    fn ring(&self) {
        // A full pipe rings already.
        let _ = (&self.bell).write(&[0]);
    }

    fn lock(&self) -> MutexGuard<'_, Waits> {
        self.waits.lock()
    }
}

/// Sleeps until the bell rings, somebody is ready, or that time has come; tells who is ready.
fn wait(heard: &PipeReader, watched: &[Watched], until: Option<Instant>) -> Vec<bool> {
    let mut polled = vec![PollFd::new(heard, PollFlags::IN)];
    polled.extend(watched.iter().map(|(pty, wanted)| {
        let flags = match wanted {
            Wanted::ToRead => PollFlags::IN,
            Wanted::ToWrite => PollFlags::OUT,
        };
        PollFd::new(&**pty, flags)
    }));
    let timeout = until.map(|until| until.saturating_duration_since(Instant::now()));
    match poll(&mut polled, timeout.and_then(timespec).as_ref()) {
        Ok(_) => polled[1..].iter().map(|polled| !polled.revents().is_empty()).collect(),
        Err(Errno::INTR) => vec![false; watched.len()],
        // Who waits finds out by trying.
        Err(_) => vec![true; watched.len()],
    }
}

fn timespec(duration: Duration) -> Option<Timespec> {
    Timespec::try_from(duration).ok()
}
