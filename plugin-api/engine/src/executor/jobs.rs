//! The blocking pool: runs what plugins hand over because it blocks.
//!
//! Its threads are its own and nobody joins them, so a job that hangs blocks neither shutdown nor
//! the runtime's pool; a plugin that fills its lane waits for itself alone. A job that goes on long
//! after its context has ended is given up: its place is another's, up to a bound.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering::SeqCst};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::guest::Guest;
use crate::fence::bury;
use crate::running;
use crate::runtime::{Activity, Runtime, Thread};
use crate::watch::Watch;

/// Jobs of one plugin that run at a time. As many as a session runs tool calls at once.
pub const JOBS_PER_PLUGIN_MAX: usize = 8;

/// Jobs of one plugin that wait for those; more are refused.
pub const JOBS_WAITING_MAX: usize = 1024;

/// How long a job may go on after its context has ended before it is given up.
pub const JOB_OVERDUE_MAX: Duration = Duration::from_secs(2);

/// Jobs of one plugin that were given up and have not ended: each keeps a thread. One more, and the
/// plugin is disabled.
pub const JOBS_LOST_MAX: usize = 32;

/// How long a thread waits for another job before it ends.
const IDLE_MAX: Duration = Duration::from_secs(10);

/// Blocking work, with all that is to be dropped on the pool.
pub(crate) struct Job {
    pub(crate) work: Box<dyn FnOnce() + Send>,
    pub(crate) state: Arc<JobState>,
}

/// Whether a job runs, as whoever may give it up sees it.
#[derive(Debug, Default)]
pub(crate) struct JobState(AtomicU8);

// It waits where it is none of these.
const RUNS: u8 = 1;
const OVER: u8 = 2;
const LOST: u8 = 3;

impl JobState {
    pub(crate) fn is_over(&self) -> bool {
        self.0.load(SeqCst) == OVER
    }

    /// Notes that nothing of the plugin runs any more, before anybody is told so. One that was
    /// given up stays that.
    pub(crate) fn finish(&self) {
        let _ = self.0.compare_exchange(RUNS, OVER, SeqCst, SeqCst);
    }

    /// Tells whether it ran until now, and is given up by this.
    fn lose(&self) -> bool {
        self.0.compare_exchange(RUNS, LOST, SeqCst, SeqCst).is_ok()
    }
}

/// The jobs of one plugin.
#[derive(Default)]
pub(super) struct Lane {
    running: usize,
    /// Jobs that were given up and go on.
    lost: usize,
    waiting: VecDeque<Job>,
}

/// The pool of one executor.
pub(super) struct Jobs {
    pool: Arc<Pool>,
    watch: Arc<dyn Watch>,
}

struct Pool {
    runtime: Arc<dyn Runtime>,
    state: Mutex<State>,
    more: Condvar,
}

#[derive(Default)]
struct State {
    ready: VecDeque<(Arc<Guest>, Job)>,
    idle: usize,
    threads_started: usize,
    closing: bool,
}

impl Jobs {
    pub(super) fn new(runtime: Arc<dyn Runtime>, watch: Arc<dyn Watch>) -> Self {
        let pool = Pool { runtime, state: Mutex::default(), more: Condvar::new() };
        Self { pool: Arc::new(pool), watch }
    }

    /// Has a thread of the pool run a job as soon as its plugin's lane has room. Returns false if
    /// too much waits for that, or the system gives no thread.
    pub(super) fn submit(&self, guest: &Arc<Guest>, job: Job) -> bool {
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
        self.start(guest, job)
    }

    /// Has an admitted job run by a thread of the pool; false where the system gives none.
    fn start(&self, guest: &Arc<Guest>, job: Job) -> bool {
        let started = self.pool_up(guest, job);
        if !started {
            guest.lane.lock().running -= 1;
        }
        started
    }

    /// Gives up those of a plugin's jobs that run; others that wait have their places. Returns how
    /// many are lost by now, where any is.
    pub(super) fn give_up(&self, guest: &Arc<Guest>, jobs: &[Arc<JobState>]) -> Option<usize> {
        let count = jobs.iter().filter(|job| job.lose()).count();
        let lost = (count > 0).then(|| {
            let mut lane = guest.lane.lock();
            lane.lost += count;
            lane.lost
        });
        for _ in 0..count {
            if let Some(next) = next_of(guest) {
                self.start(guest, next);
            }
        }
        lost
    }

    /// Lets idle threads end.
    pub(super) fn close(&self) {
        self.pool.state.lock().closing = true;
        self.pool.more.notify_all();
    }

    fn pool_up(&self, guest: &Arc<Guest>, job: Job) -> bool {
        let mut state = self.pool.state.lock();
        if state.ready.len() >= state.idle {
            let pool = Arc::clone(&self.pool);
            let thread = Thread::Job(state.threads_started + 1);
            let started = self.pool.runtime.start_thread(thread, Box::new(move || pool.work()));
            if let Err(error) = started {
                self.watch.trouble(&format!("cannot start a thread for blocking work: {error}"));
                return false;
            }
            state.threads_started += 1;
        }
        state.ready.push_back((Arc::clone(guest), job));
        self.pool.runtime.begins(Activity::Job);
        drop(state);
        self.pool.more.notify_one();
        true
    }
}

impl Pool {
    fn work(&self) {
        while let Some((guest, job)) = self.next() {
            let mut job = Some(job);
            while let Some(next) = job {
                job = run(&guest, next);
            }
            self.runtime.ends(Activity::Job);
        }
    }

    fn next(&self) -> Option<(Arc<Guest>, Job)> {
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

/// Runs a job and gives the plugin's next one that waits.
fn run(guest: &Guest, job: Job) -> Option<Job> {
    let Job { work, state } = job;
    state.0.store(RUNS, SeqCst);
    running::begin(guest.name_place());
    if let Err(payload) = catch_unwind(AssertUnwindSafe(work)) {
        bury(payload);
    }
    running::end();
    if state.0.swap(OVER, SeqCst) == LOST {
        // Its place is another's.
        guest.lane.lock().lost -= 1;
        return None;
    }
    next_of(guest)
}

/// Takes the plugin's next waiting job, or gives its place back.
fn next_of(guest: &Guest) -> Option<Job> {
    let mut lane = guest.lane.lock();
    let next = lane.waiting.pop_front();
    if next.is_none() {
        lane.running -= 1;
    }
    next
}
