//! The plugin executor: the only place where futures, instances and factories of plugins are polled
//! and dropped.
//!
//! Its threads are its own, so that a plugin that blocks costs a thread here and never one of a
//! session. A watchdog reports such a poll, writes the thread off and starts another; a plugin that
//! does it again and again is disabled. Nothing is started before the first future of a plugin.
//!
//! Invariant: what a plugin made is dropped by a thread named `jaato-plugin-N`, whoever let go of
//! it.

mod clock;
mod guest;
mod jobs;
mod queue;
mod slot;
mod watchdog;

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use async_task::{Builder, FallibleTask};
use jaato_types::PluginName;

use crate::live::{Counters, Live};
use crate::runtime::Runtime;
use crate::watch::Watch;

pub use guest::{Guest, REPOLLS_PER_SECOND_MAX, STRIKES_MAX};
pub use jobs::{JOB_OVERDUE_MAX, JOBS_LOST_MAX, JOBS_PER_PLUGIN_MAX, JOBS_WAITING_MAX};
pub(crate) use jobs::{Job, JobState};
use queue::Shared;
pub use slot::HostCode;
pub use watchdog::{ABLE_TO_RUN_MAX, WALL_CLOCK_MAX};

/// Threads that an executor runs. Two, so that one plugin's long poll does not hold up all others;
/// more buys nothing, for polls are short.
pub const THREADS: usize = 2;

/// The plugin executor. Cloning gives another handle; its threads end with the last one and the
/// last task.
#[derive(Clone)]
pub struct Executor {
    handle: Arc<CloseOnDrop>,
}

struct CloseOnDrop(Arc<Shared>);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// A task on the executor. Dropping it cancels: the executor drops the future.
pub type PluginTask<T> = FallibleTask<T, TaskFacts>;

/// What the executor keeps beside a task.
pub struct TaskFacts {
    guest: Arc<Guest>,
    polled: AtomicBool,
}

impl Executor {
    /// Makes an executor of so many threads; at least one. Starts none yet.
    ///
    /// `watch` is told of what plugins log and of what they do wrong.
    pub fn new(threads: usize, runtime: Arc<dyn Runtime>, watch: Arc<dyn Watch>) -> Self {
        let shared = Shared::new(threads.max(1), runtime, watch);
        Self { handle: Arc::new(CloseOnDrop(Arc::new(shared))) }
    }

    /// Runs an empty future on the executor and waits for it: what a hop costs. For benchmarks.
    #[doc(hidden)]
    pub async fn hop(&self) {
        let guest = self.shared().hop_guest();
        self.spawn(&guest, async {}).await;
    }

    /// Returns how much of what contexts hold is alive. For leak tests.
    #[doc(hidden)]
    pub fn live(&self) -> Live {
        self.shared().live.counts()
    }

    /// Takes in a plugin: everything of it is counted together.
    pub fn guest(&self, name: PluginName) -> Arc<Guest> {
        self.shared().add_guest(name)
    }

    pub(crate) fn runtime(&self) -> &Arc<dyn Runtime> {
        &self.shared().runtime
    }

    /// Runs host code where it finds timers and sockets.
    pub fn enter<T>(&self, work: impl FnOnce() -> T) -> T {
        let (mut work, mut output) = (Some(work), None);
        self.runtime().enter(&mut || output = work.take().map(|work| work()));
        match output {
            Some(output) => output,
            None => unreachable!("a runtime runs what it is given"),
        }
    }

    /// Returns who is told of what plugins log and do wrong.
    pub fn watch(&self) -> &Arc<dyn Watch> {
        &self.shared().watch
    }

    pub(crate) fn live_counters(&self) -> &Counters {
        &self.shared().live
    }

    /// Runs a future of a plugin. None comes out when the plugin is disabled before it is done.
    pub fn spawn<T: Send + 'static>(
        &self,
        guest: &Arc<Guest>,
        future: impl Future<Output = T> + Send + 'static,
    ) -> PluginTask<T> {
        let facts = TaskFacts { guest: Arc::clone(guest), polled: AtomicBool::new(false) };
        let shared = Arc::clone(self.shared());
        let (runnable, task) = Builder::new()
            .metadata(facts)
            .spawn(move |_| future, move |runnable| shared.push(runnable));
        runnable.schedule();
        task.fallible()
    }

    /// Hands blocking work of a plugin to the pool. False: too much of it waits already.
    pub(crate) fn submit(&self, guest: &Arc<Guest>, job: Job) -> bool {
        self.shared().jobs.submit(guest, job)
    }

    /// Gives up jobs whose context has ended, unless they end within [`JOB_OVERDUE_MAX`]: others
    /// have their threads then. A patient host gives none up.
    pub(crate) fn give_up(&self, guest: &Arc<Guest>, jobs: Vec<Arc<JobState>>) {
        if self.runtime().is_patient() {
            return;
        }
        // Weak: what has ended meanwhile is not held for the rest of the time.
        let (shared, guest) = (Arc::downgrade(self.shared()), Arc::clone(guest));
        let give_up = move || {
            if let Some(shared) = shared.upgrade() {
                shared.give_up(&guest, &jobs);
            }
        };
        self.runtime().later(JOB_OVERDUE_MAX, Box::new(give_up));
    }

    fn shared(&self) -> &Arc<Shared> {
        &self.handle.0
    }
}

impl TaskFacts {
    /// Notes that the task is polled; false the first time.
    fn note_poll(&self) -> bool {
        self.polled.swap(true, Relaxed)
    }
}

/// A value that a plugin made: whoever drops it, the executor drops what is inside.
pub(crate) struct OnExecutor<T: Send + 'static> {
    value: Option<T>,
    guest: Arc<Guest>,
    executor: Executor,
}

impl<T: Send + 'static> OnExecutor<T> {
    pub(crate) fn new(executor: &Executor, guest: &Arc<Guest>, value: T) -> Self {
        Self { value: Some(value), guest: Arc::clone(guest), executor: executor.clone() }
    }

    pub(crate) fn get(&self) -> &T {
        match &self.value {
            Some(value) => value,
            None => unreachable!("taken only by the drop and by `dispose`"),
        }
    }

    /// Drops the value on the executor and waits for that.
    pub(crate) async fn dispose(mut self) {
        if let Some(value) = self.value.take() {
            self.executor.spawn(&self.guest, async move { drop(value) }).await;
        }
    }
}

impl<T: Send + 'static> Drop for OnExecutor<T> {
    fn drop(&mut self) {
        if let Some(value) = self.value.take() {
            self.executor.spawn(&self.guest, async move { drop(value) }).detach();
        }
    }
}
