//! The executor's queue and the threads that work on it.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock, Weak};

use async_task::Runnable;
use jaato_types::PluginName;
use parking_lot::{Condvar, Mutex};

use super::PluginTaskMetadata;
use super::jobs::{JOBS_LOST_MAX, JobPool, JobState};
use super::plugin_record::{DisableReason, GuestPlugin};
use super::slot::ExecutorThread;
use super::watchdog::{self, WatchdogWaker};
use crate::fence::drop_payload;
use crate::live::LiveObjectCounters;
use crate::runtime::{EngineActivity, EngineThread, PluginRuntime};
use crate::watch::{EngineObserver, Misbehavior, MisbehaviorReport};

type RunnableTask = Runnable<PluginTaskMetadata>;

/// The shared state of the handles, tasks, threads and watchdog of one executor.
pub(super) struct ExecutorState {
    pub(super) runtime: Arc<dyn PluginRuntime>,
    pub(super) watch: Arc<dyn EngineObserver>,
    pub(super) jobs: JobPool,
    pub(super) live: LiveObjectCounters,
    pub(super) bell: WatchdogWaker,
    threads_wanted: usize,
    queue: Mutex<ExecutorQueue>,
    /// Signalled when the queue has work for an idle thread.
    ready: Condvar,
    hop_guest: OnceLock<Arc<GuestPlugin>>,
}

#[derive(Default)]
struct ExecutorQueue {
    tasks: VecDeque<RunnableTask>,
    /// Tasks of plugins that poll too often, which wait until the second ends.
    parked: Vec<RunnableTask>,
    /// The working threads, without those that were written off.
    threads: Vec<Arc<ExecutorThread>>,
    guests: Vec<Weak<GuestPlugin>>,
    /// The number of threads that wait for a task.
    idle: usize,
    threads_started: usize,
    watched: bool,
    closing: bool,
}

impl ExecutorState {
    pub(super) fn new(
        threads_wanted: usize,
        runtime: Arc<dyn PluginRuntime>,
        watch: Arc<dyn EngineObserver>,
    ) -> Self {
        Self {
            jobs: JobPool::new(Arc::clone(&runtime), Arc::clone(&watch)),
            runtime,
            watch,
            live: LiveObjectCounters::default(),
            bell: WatchdogWaker::default(),
            threads_wanted,
            queue: Mutex::default(),
            ready: Condvar::new(),
            hop_guest: OnceLock::new(),
        }
    }

    pub(super) fn add_guest(&self, name: PluginName) -> Arc<GuestPlugin> {
        let guest = Arc::new(GuestPlugin::new(name));
        let mut queue = self.queue.lock();
        queue.guests.retain(|guest| guest.strong_count() > 0);
        queue.guests.push(Arc::downgrade(&guest));
        guest
    }

    pub(super) fn internal_guest(&self) -> Arc<GuestPlugin> {
        Arc::clone(self.hop_guest.get_or_init(|| self.add_guest(PluginName::from("hop"))))
    }

    /// Lets the threads end when no work is left. A task that is woken later starts a thread again.
    pub(super) fn close(&self) {
        self.queue.lock().closing = true;
        self.ready.notify_all();
        self.jobs.close();
        self.bell.wake();
    }

    /// Adds a task that needs a poll, or whose future must be dropped.
    pub(super) fn push_task(self: &Arc<Self>, task: RunnableTask) {
        let mut queue = self.queue.lock();
        if task.metadata().guest.is_throttled() {
            queue.parked.push(task);
            return;
        }
        self.runtime.begin_activity(EngineActivity::Poll);
        queue.tasks.push_back(task);
        if queue.tasks.len() > queue.idle && queue.threads.len() < self.threads_wanted {
            self.start_thread(&mut queue);
        }
        if queue.idle > 0 {
            drop(queue);
            self.ready.notify_one();
        }
    }

    fn start_thread(self: &Arc<Self>, queue: &mut ExecutorQueue) {
        let slot = Arc::new(ExecutorThread::new(queue.threads_started + 1));
        let (shared, own) = (Arc::clone(self), Arc::clone(&slot));
        let work = Box::new(move || shared.run_tasks(&own));
        match self.runtime.start_thread(EngineThread::Executor(slot.number), work) {
            Ok(()) => {
                queue.threads_started += 1;
                queue.threads.push(slot);
            }
            // The task stays in the queue, and the next task tries again.
            Err(error) => self.watch.log_trouble(&format!("cannot start a plugin thread: {error}")),
        }
        if !queue.watched && !queue.threads.is_empty() && !self.runtime.is_patient() {
            queue.watched = watchdog::start_watchdog(self);
        }
    }

    fn run_tasks(self: &Arc<Self>, slot: &Arc<ExecutorThread>) {
        slot.bind_thread();
        while let Some(task) = self.next_task(slot) {
            self.run_task(slot, task);
        }
    }

    fn next_task(&self, slot: &Arc<ExecutorThread>) -> Option<RunnableTask> {
        let mut queue = self.queue.lock();
        loop {
            if slot.is_abandoned() {
                // Another thread has replaced it.
                return None;
            }
            if let Some(task) = queue.tasks.pop_front() {
                return Some(task);
            }
            if queue.closing {
                queue.threads.retain(|thread| !Arc::ptr_eq(thread, slot));
                self.bell.wake();
                return None;
            }
            queue.idle += 1;
            self.ready.wait(&mut queue);
            queue.idle -= 1;
        }
    }

    fn run_task(&self, slot: &Arc<ExecutorThread>, task: RunnableTask) {
        let guest = Arc::clone(&task.metadata().guest);
        if task.metadata().record_poll() && !self.runtime.is_patient() {
            guest.count_repoll();
        }
        slot.begin_poll(&guest);
        self.bell.wake_if_asleep();
        let done = catch_unwind(AssertUnwindSafe(|| {
            if guest.is_disabled() {
                // Drops the future without another poll. Waiting callers get no result.
                drop(task);
            } else {
                task.run();
            }
        }));
        slot.end_poll();
        if let Err(payload) = done {
            let name = guest.name();
            self.watch
                .log_trouble(&format!("a task of the plugin `{name}` panicked outside its fence"));
            drop_payload(payload);
        }
        self.runtime.end_activity(EngineActivity::Poll);
    }

    /// Abandons and reports jobs that continue although their context has ended.
    pub(super) fn give_up(&self, guest: &Arc<GuestPlugin>, jobs: &[Arc<JobState>]) {
        let Some(lost) = self.jobs.abandon_jobs(guest, jobs) else { return };
        let disabled = lost > JOBS_LOST_MAX;
        if disabled {
            guest.disable(DisableReason::ByJobs);
        }
        let misdeed = Misbehavior::IgnoresCancel { lost };
        let plugin = guest.name().clone();
        self.watch.report_misbehavior(&MisbehaviorReport {
            plugin,
            misdeed,
            strikes: guest.strikes(),
            disabled,
        });
    }

    // The following methods are for the watchdog.

    pub(super) fn threads(&self) -> Vec<Arc<ExecutorThread>> {
        self.queue.lock().threads.clone()
    }

    /// Returns true if the watchdog has nothing to watch and can end.
    pub(super) fn end_watch_if_closed(&self) -> bool {
        let mut queue = self.queue.lock();
        let over = queue.closing && queue.threads.is_empty() && queue.parked.is_empty();
        queue.watched = !over;
        over
    }

    pub(super) fn has_parked_tasks(&self) -> bool {
        !self.queue.lock().parked.is_empty()
    }

    /// Abandons a thread that a plugin blocks, and starts another one in its place.
    pub(super) fn replace_thread(self: &Arc<Self>, slot: &Arc<ExecutorThread>) {
        let mut queue = self.queue.lock();
        slot.abandon();
        queue.threads.retain(|thread| !Arc::ptr_eq(thread, slot));
        if !queue.closing || !queue.tasks.is_empty() {
            self.start_thread(&mut queue);
        }
    }

    /// Starts a new second. Returns the plugins that were throttled in the last one.
    pub(super) fn end_throttling_second(self: &Arc<Self>) -> Vec<Arc<GuestPlugin>> {
        let mut queue = self.queue.lock();
        let guests: Vec<_> = queue.guests.iter().filter_map(Weak::upgrade).collect();
        let throttled = guests.into_iter().filter(|guest| guest.reset_repolls()).collect();
        let parked = std::mem::take(&mut queue.parked);
        drop(queue);
        for task in parked {
            self.push_task(task);
        }
        throttled
    }
}
