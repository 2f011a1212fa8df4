//! The plugin executor: the only place that polls and drops the futures, instances and factories of
//! plugins.
//!
//! The executor has its own threads, so that a plugin that blocks occupies one of these and never a
//! thread of a session. A watchdog reports such a poll, abandons the thread and starts another one.
//! A plugin that keeps blocking is disabled. No thread is started before the first future of a
//! plugin.
//!
//! Invariant: only a thread named `jaato-plugin-N` drops the values that a plugin created.

mod clock;
mod jobs;
mod plugin_record;
mod queue;
mod slot;
mod watchdog;

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use async_task::{Builder, FallibleTask};
use jaato_types::PluginName;

use crate::live::{LiveObjectCounters, LiveObjectCounts};
use crate::runtime::PluginRuntime;
use crate::watch::EngineObserver;

pub(crate) use jobs::{BlockingJob, JobState};
pub use jobs::{JOB_OVERDUE_MAX, JOBS_LOST_MAX, JOBS_PER_PLUGIN_MAX, JOBS_WAITING_MAX};
pub use plugin_record::{GuestPlugin, REPOLLS_PER_SECOND_MAX, STRIKES_MAX};
use queue::ExecutorState;
pub use slot::HostCodeGuard;
pub use watchdog::{ABLE_TO_RUN_MAX, WALL_CLOCK_MAX};

/// The number of threads of an executor. With two, a long poll of one plugin does not delay all
/// others. More threads would not help, because polls are short.
pub const THREADS: usize = 2;

/// The plugin executor. A clone is another handle. Its threads end with the last handle and the
/// last task.
#[derive(Clone)]
pub struct Executor {
    handle: Arc<ExecutorHandle>,
}

struct ExecutorHandle(Arc<ExecutorState>);

impl Drop for ExecutorHandle {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// A task on the executor. Dropping it cancels the task: the executor drops the future.
pub type PluginTask<T> = FallibleTask<T, PluginTaskMetadata>;

/// The executor's data for a task.
pub struct PluginTaskMetadata {
    guest: Arc<GuestPlugin>,
    polled: AtomicBool,
}

impl Executor {
    /// Creates an executor with this number of threads, at least one. Starts none of them yet.
    ///
    /// The executor reports log lines and misdeeds of plugins to `watch`.
    pub fn new(
        threads: usize,
        runtime: Arc<dyn PluginRuntime>,
        watch: Arc<dyn EngineObserver>,
    ) -> Self {
        let shared = ExecutorState::new(threads.max(1), runtime, watch);
        Self { handle: Arc::new(ExecutorHandle(Arc::new(shared))) }
    }

    /// Runs an empty future on the executor and waits for it, to measure a thread hop. For
    /// benchmarks.
    #[doc(hidden)]
    pub async fn run_empty_future(&self) {
        let guest = self.executor_state().internal_guest();
        self.spawn(&guest, async {}).await;
    }

    /// Returns the counts of live objects of contexts. For leak tests.
    #[doc(hidden)]
    pub fn live(&self) -> LiveObjectCounts {
        self.executor_state().live.counts()
    }

    /// Registers a plugin, so that all its misdeeds are counted together.
    pub fn add_guest(&self, name: PluginName) -> Arc<GuestPlugin> {
        self.executor_state().add_guest(name)
    }

    pub(crate) fn runtime(&self) -> &Arc<dyn PluginRuntime> {
        &self.executor_state().runtime
    }

    /// Runs host code inside the runtime, with access to timers and sockets.
    pub fn enter<T>(&self, work: impl FnOnce() -> T) -> T {
        let (mut work, mut output) = (Some(work), None);
        self.runtime().enter(&mut || output = work.take().map(|work| work()));
        match output {
            Some(output) => output,
            None => unreachable!("a runtime runs what it is given"),
        }
    }

    /// Returns the receiver of log lines and reports.
    pub fn observer(&self) -> &Arc<dyn EngineObserver> {
        &self.executor_state().watch
    }

    pub(crate) fn live_counters(&self) -> &LiveObjectCounters {
        &self.executor_state().live
    }

    /// Runs a future of a plugin. The task returns `None` if the plugin is disabled before it is
    /// done.
    pub fn spawn<T: Send + 'static>(
        &self,
        guest: &Arc<GuestPlugin>,
        future: impl Future<Output = T> + Send + 'static,
    ) -> PluginTask<T> {
        let facts = PluginTaskMetadata { guest: Arc::clone(guest), polled: AtomicBool::new(false) };
        let shared = Arc::clone(self.executor_state());
        let (runnable, task) = Builder::new()
            .metadata(facts)
            .spawn(move |_| future, move |runnable| shared.push_task(runnable));
        runnable.schedule();
        task.fallible()
    }

    /// Submits blocking work of a plugin to the pool. Returns false if too much work is already
    /// waiting.
    pub(crate) fn submit_job(&self, guest: &Arc<GuestPlugin>, job: BlockingJob) -> bool {
        self.executor_state().jobs.submit_job(guest, job)
    }

    /// Abandons jobs whose context has ended, unless they end within [`JOB_OVERDUE_MAX`], so that
    /// other jobs can use their slots. A patient host never abandons jobs.
    pub(crate) fn give_up(&self, guest: &Arc<GuestPlugin>, jobs: Vec<Arc<JobState>>) {
        if self.runtime().is_patient() {
            return;
        }
        // A weak reference, so that an executor that ends before the delay is not kept alive.
        let (shared, guest) = (Arc::downgrade(self.executor_state()), Arc::clone(guest));
        let give_up = move || {
            if let Some(shared) = shared.upgrade() {
                shared.give_up(&guest, &jobs);
            }
        };
        self.runtime().run_later(JOB_OVERDUE_MAX, Box::new(give_up));
    }

    fn executor_state(&self) -> &Arc<ExecutorState> {
        &self.handle.0
    }
}

impl PluginTaskMetadata {
    /// Records a poll of the task. Returns false the first time.
    fn record_poll(&self) -> bool {
        self.polled.swap(true, Relaxed)
    }
}

/// A value that a plugin created. The executor drops it, even if another thread drops this
/// wrapper.
pub(crate) struct ExecutorOwned<T: Send + 'static> {
    value: Option<T>,
    guest: Arc<GuestPlugin>,
    executor: Executor,
}

impl<T: Send + 'static> ExecutorOwned<T> {
    pub(crate) fn new(executor: &Executor, guest: &Arc<GuestPlugin>, value: T) -> Self {
        Self { value: Some(value), guest: Arc::clone(guest), executor: executor.clone() }
    }

    pub(crate) fn get(&self) -> &T {
        match &self.value {
            Some(value) => value,
            None => unreachable!("taken only by the drop and by `dispose`"),
        }
    }

    /// Drops the value on the executor, and waits until that is done.
    pub(crate) async fn dispose(mut self) {
        if let Some(value) = self.value.take() {
            self.executor.spawn(&self.guest, async move { drop(value) }).await;
        }
    }
}

impl<T: Send + 'static> Drop for ExecutorOwned<T> {
    fn drop(&mut self) {
        if let Some(value) = self.value.take() {
            self.executor.spawn(&self.guest, async move { drop(value) }).detach();
        }
    }
}
