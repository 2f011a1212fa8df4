//! The blocking pool, which runs blocking work of plugins.
//!
//! The pool has its own threads and no one joins them, so a job that hangs blocks neither the
//! shutdown nor the runtime's pool. Each plugin has a lane with limited slots, so that a busy
//! plugin delays only itself. If a job continues long after its context has ended, the pool gives
//! it up and frees its slot, up to a limit.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering::SeqCst};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::plugin_record::GuestPlugin;
use crate::fence::drop_payload;
use crate::running;
use crate::runtime::{EngineActivity, EngineThread, PluginRuntime};
use crate::watch::EngineObserver;

/// The maximum number of jobs of one plugin that run at a time: as many as the parallel tool calls
/// of a session.
pub const JOBS_PER_PLUGIN_MAX: usize = 8;

/// The maximum number of jobs of one plugin that wait for a slot. Further jobs are refused.
pub const JOBS_WAITING_MAX: usize = 1024;

/// How long a job may continue after its context has ended before the pool abandons it.
pub const JOB_OVERDUE_MAX: Duration = Duration::from_secs(2);

/// The maximum number of abandoned jobs of one plugin that still run. Each occupies a thread. One
/// more disables the plugin.
pub const JOBS_LOST_MAX: usize = 32;

/// How long a thread waits for another job before it ends.
const IDLE_MAX: Duration = Duration::from_secs(10);

/// Blocking work, with everything that must be dropped on the pool.
pub(crate) struct BlockingJob {
    pub(crate) work: Box<dyn FnOnce() + Send>,
    pub(crate) state: Arc<JobState>,
}

/// The state of a job, shared with the code that may abandon it.
#[derive(Debug, Default)]
pub(crate) struct JobState(AtomicU8);

// The other value, 0, means that the job waits.
const RUNS: u8 = 1;
const OVER: u8 = 2;
const LOST: u8 = 3;

impl JobState {
    pub(crate) fn is_finished(&self) -> bool {
        self.0.load(SeqCst) == OVER
    }

    /// Records that the plugin's code no longer runs, before anyone is notified. An
    /// abandoned job keeps that state.
    pub(crate) fn finish(&self) {
        let _ = self.0.compare_exchange(RUNS, OVER, SeqCst, SeqCst);
    }

    /// Abandons the job. Returns true if it was running.
    fn abandon(&self) -> bool {
        self.0.compare_exchange(RUNS, LOST, SeqCst, SeqCst).is_ok()
    }
}

/// The jobs of one plugin.
#[derive(Default)]
pub(super) struct PluginJobQueue {
    running: usize,
    /// Abandoned jobs that still run.
    lost: usize,
    waiting: VecDeque<BlockingJob>,
}

/// The pool of one executor.
pub(super) struct JobPool {
    pool: Arc<SharedJobPool>,
    watch: Arc<dyn EngineObserver>,
}

struct SharedJobPool {
    runtime: Arc<dyn PluginRuntime>,
    state: Mutex<JobPoolState>,
    more: Condvar,
}

#[derive(Default)]
struct JobPoolState {
    ready: VecDeque<(Arc<GuestPlugin>, BlockingJob)>,
    idle: usize,
    threads_started: usize,
    closing: bool,
}

impl JobPool {
    pub(super) fn new(runtime: Arc<dyn PluginRuntime>, watch: Arc<dyn EngineObserver>) -> Self {
        let pool = SharedJobPool { runtime, state: Mutex::default(), more: Condvar::new() };
        Self { pool: Arc::new(pool), watch }
    }

    /// Runs a job on a pool thread as soon as its plugin's lane has room. Returns false if too many
    /// jobs wait, or if the system cannot start a thread.
    pub(super) fn submit_job(&self, guest: &Arc<GuestPlugin>, job: BlockingJob) -> bool {
        let mut lane = guest.lane.lock();
        if lane.running >= JOBS_PER_PLUGIN_MAX {
            let has_room = lane.waiting.len() < JOBS_WAITING_MAX;
            if has_room {
                lane.waiting.push_back(job);
            }
            return has_room;
        }
        lane.running += 1;
        drop(lane);
        self.start_job(guest, job)
    }

    /// Runs an admitted job on a pool thread. Returns false if the system cannot start a thread.
    fn start_job(&self, guest: &Arc<GuestPlugin>, job: BlockingJob) -> bool {
        let started = self.queue_job(guest, job);
        if !started {
            guest.lane.lock().running -= 1;
        }
        started
    }

    /// Abandons those of a plugin's jobs that still run, and frees their slots for waiting jobs.
    /// Returns the total number of lost jobs, if any of these jobs was abandoned.
    pub(super) fn abandon_jobs(
        &self,
        guest: &Arc<GuestPlugin>,
        jobs: &[Arc<JobState>],
    ) -> Option<usize> {
        let count = jobs.iter().filter(|job| job.abandon()).count();
        let lost = (count > 0).then(|| {
            let mut lane = guest.lane.lock();
            lane.lost += count;
            lane.lost
        });
        for _ in 0..count {
            if let Some(next) = next_waiting_job(guest) {
                self.start_job(guest, next);
            }
        }
        lost
    }

    /// Lets idle threads end.
    pub(super) fn close(&self) {
        self.pool.state.lock().closing = true;
        self.pool.more.notify_all();
    }

    fn queue_job(&self, guest: &Arc<GuestPlugin>, job: BlockingJob) -> bool {
        let mut state = self.pool.state.lock();
        if state.ready.len() >= state.idle {
            let pool = Arc::clone(&self.pool);
            let thread = EngineThread::Job(state.threads_started + 1);
            let started = self.pool.runtime.start_thread(thread, Box::new(move || pool.run_jobs()));
            if let Err(error) = started {
                self.watch
                    .log_trouble(&format!("cannot start a thread for blocking work: {error}"));
                return false;
            }
            state.threads_started += 1;
        }
        state.ready.push_back((Arc::clone(guest), job));
        self.pool.runtime.begin_activity(EngineActivity::Job);
        drop(state);
        self.pool.more.notify_one();
        true
    }
}

impl SharedJobPool {
    fn run_jobs(&self) {
        while let Some((guest, job)) = self.next_job() {
            let mut job = Some(job);
            while let Some(next) = job {
                job = run_job(&guest, next);
            }
            self.runtime.end_activity(EngineActivity::Job);
        }
    }

    fn next_job(&self) -> Option<(Arc<GuestPlugin>, BlockingJob)> {
        let mut state = self.state.lock();
        loop {
            if let Some(next) = state.ready.pop_front() {
                return Some(next);
            }
            if state.closing {
                return None;
            }
            state.idle += 1;
            let waited = self.more.wait_for(&mut state, IDLE_MAX);
            state.idle -= 1;
            if waited.timed_out() && state.ready.is_empty() {
                return None;
            }
        }
    }
}

/// Runs a job and returns the plugin's next waiting job.
fn run_job(guest: &GuestPlugin, job: BlockingJob) -> Option<BlockingJob> {
    let BlockingJob { work, state } = job;
    state.0.store(RUNS, SeqCst);
    running::enter_plugin(guest.name_index());
    if let Err(payload) = catch_unwind(AssertUnwindSafe(work)) {
        drop_payload(payload);
    }
    running::leave_plugin();
    if state.0.swap(OVER, SeqCst) == LOST {
        // Another job has taken its slot.
        guest.lane.lock().lost -= 1;
        return None;
    }
    next_waiting_job(guest)
}

/// Takes the plugin's next waiting job, or frees the slot.
fn next_waiting_job(guest: &GuestPlugin) -> Option<BlockingJob> {
    let mut lane = guest.lane.lock();
    let next = lane.waiting.pop_front();
    if next.is_none() {
        lane.running -= 1;
    }
    next
}
