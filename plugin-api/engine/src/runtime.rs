//! The [`PluginRuntime`] trait, with which a host provides time, threads, and a place for its
//! futures.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::thread;
use std::time::Duration;

/// A future of the host.
pub type BoxHostFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The host's time and threads. The engine calls it from any thread, even while it polls plugins,
/// so its methods must not block.
pub trait PluginRuntime: Send + Sync + 'static {
    /// Waits for this long in the host's time.
    fn sleep(&self, time: Duration) -> BoxHostFuture<()>;

    /// Runs work after this time, unless the host has ended by then.
    fn run_later(&self, time: Duration, work: Box<dyn FnOnce() + Send>);

    /// Runs work that polls or drops a host future, with access to the host's timers and sockets.
    fn enter(&self, work: &mut dyn FnMut()) {
        work();
    }

    /// Starts a thread of the engine. No one joins it.
    ///
    /// # Errors
    /// The system cannot start a thread.
    fn start_thread(&self, thread: EngineThread, work: Box<dyn FnOnce() + Send>) -> io::Result<()> {
        thread::Builder::new().name(thread.name()).spawn(work).map(drop)
    }

    /// Returns true if the host waits for plugins as long as they take: polls are not watched, the
    /// steps of a close have no limit, and blocking work is never abandoned. For tests, which have
    /// their own deadline.
    fn is_patient(&self) -> bool {
        false
    }

    /// Called before an activity starts that may wake waiting tasks. The engine may hold locks, so
    /// this must not wake anything.
    fn begin_activity(&self, _work: EngineActivity) {}

    /// Called when an activity is over, and all tasks that it has woken are queued.
    fn end_activity(&self, _work: EngineActivity) {}
}

/// An activity of the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EngineActivity {
    /// A plugin's future is queued, polled or dropped.
    Poll,
    /// Blocking work runs on a thread.
    Job,
}

/// A thread of the engine, with its number among the threads of the same kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EngineThread {
    /// Polls and drops the objects of plugins.
    Executor(usize),
    /// Runs blocking work.
    Job(usize),
    /// Finds blocking polls.
    Watchdog,
}

impl EngineThread {
    /// Returns the thread's name in the host.
    pub fn name(self) -> String {
        match self {
            Self::Executor(number) => format!("jaato-plugin-{number}"),
            Self::Job(number) => format!("jaato-job-{number}"),
            Self::Watchdog => "jaato-plugin-watchdog".to_owned(),
        }
    }
}
