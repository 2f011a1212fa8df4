//! What the engine needs of the host that runs it: time, threads, and a place for its futures.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::thread;
use std::time::Duration;

/// A future of the host.
pub type Work<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The host's time and threads. Called from any thread, also while plugins are polled: must not
/// block.
pub trait Runtime: Send + Sync + 'static {
    /// Waits for this long in the host's time.
    fn sleep(&self, time: Duration) -> Work<()>;

    /// Runs something after this long, unless the host has ended by then.
    fn later(&self, time: Duration, work: Box<dyn FnOnce() + Send>);

    /// Polls or drops a future of the host where it finds its timers and sockets.
    fn enter(&self, work: &mut dyn FnMut()) {
        work();
    }

    /// Starts a thread of the engine. Nobody joins it.
    ///
    /// # Errors
    /// When the system gives none.
    fn start_thread(&self, thread: Thread, work: Box<dyn FnOnce() + Send>) -> io::Result<()> {
        thread::Builder::new().name(thread.name()).spawn(work).map(drop)
    }

    /// Returns true if the host waits for plugins as long as they take: polls are not watched,
    /// steps of a close have no limit, and blocking work is never given up. For tests, which have a
    /// deadline of their own.
    fn is_patient(&self) -> bool {
        false
    }

    /// Told before something begins that may wake whoever waits. May be called with locks of the
    /// engine held: must not wake anybody.
    fn begins(&self, _work: Activity) {}

    /// Told when it is over, and everybody whom it has woken is queued.
    fn ends(&self, _work: Activity) {}
}

/// What goes on in an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activity {
    /// A future of a plugin is queued, and polled or dropped.
    Poll,
    /// Blocking work has a thread.
    Job,
}

/// A thread of the engine, with its number among those of its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Thread {
    /// Polls and drops what plugins made.
    Executor(usize),
    /// Runs blocking work.
    Job(usize),
    /// Finds polls that block.
    Watchdog,
}

impl Thread {
    /// Returns the name that it has in the host.
    pub fn name(self) -> String {
        match self {
            Self::Executor(number) => format!("jaato-plugin-{number}"),
            Self::Job(number) => format!("jaato-job-{number}"),
            Self::Watchdog => "jaato-plugin-watchdog".to_owned(),
        }
    }
}
