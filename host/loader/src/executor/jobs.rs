//! The blocking pool: runs what plugins hand over because it blocks.
//!
//! Its threads are its own and nobody joins them, so a job that hangs blocks neither shutdown nor the
//! runtime's pool; a plugin that fills its lane waits for itself alone.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use super::guest::Guest;
use crate::fence::bury;
use crate::lock;
use crate::watch::Watch;

/// Jobs of one plugin that run at a time. As many as a session runs tool calls at once.
pub const JOBS_PER_PLUGIN_MAX: usize = 8;

/// Jobs of one plugin that wait for those; more are refused.
pub const JOBS_WAITING_MAX: usize = 1024;

/// How long a thread waits for another job before it ends.
const IDLE_MAX: Duration = Duration::from_secs(10);

/// Blocking work, with all that is to be dropped on the pool.
pub(crate) type Job = Box<dyn FnOnce() + Send>;

/// What becomes of a job.
pub(super) enum Admitted {
    /// It is to be run now.
    ToRun(Job),
    /// It runs when one of its plugin's has ended.
    Waits,
    /// Too many wait already.
    Refused,
}

/// The jobs of one plugin.
#[derive(Default)]
pub(super) struct Lane {
    running: usize,
    waiting: VecDeque<Job>,
}

/// The pool of one executor.
pub(super) struct Jobs {
    pool: Arc<Pool>,
    watch: Arc<dyn Watch>,
}

struct Pool {
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
    pub(super) fn new(watch: Arc<dyn Watch>) -> Self {
        let pool = Pool { state: Mutex::default(), more: Condvar::new() };
        Self { pool: Arc::new(pool), watch }
    }

    /// Takes a job into its plugin's lane.
    pub(super) fn admit(guest: &Guest, job: Job) -> Admitted {
        let mut lane = lock(&guest.lane);
        if lane.running < JOBS_PER_PLUGIN_MAX {
            lane.running += 1;
            return Admitted::ToRun(job);
        }
        if lane.waiting.len() >= JOBS_WAITING_MAX {
            return Admitted::Refused;
        }
        lane.waiting.push_back(job);
        Admitted::Waits
    }

    /// Has an admitted job run by a thread of the pool; false where the system gives none.
    pub(super) fn start(&self, guest: &Arc<Guest>, job: Job) -> bool {
        let started = self.pool_up(guest, job);
        if !started {
            lock(&guest.lane).running -= 1;
        }
        started
    }

    /// Runs an admitted job on the calling thread. What waits behind it goes to the pool.
    pub(super) fn run(&self, guest: &Arc<Guest>, job: Job) {
        run(job);
        if let Some(next) = next_of(guest) {
            self.start(guest, next);
        }
    }

    /// Makes the calling thread one of the pool, until there is nothing left to do.
    pub(super) fn work(&self) {
        self.pool.work();
    }

    /// Lets idle threads end.
    pub(super) fn close(&self) {
        lock(&self.pool.state).closing = true;
        self.pool.more.notify_all();
    }

    fn pool_up(&self, guest: &Arc<Guest>, job: Job) -> bool {
        let mut state = lock(&self.pool.state);
        if state.ready.len() >= state.idle {
            let pool = Arc::clone(&self.pool);
            let name = format!("jaato-job-{}", state.threads_started + 1);
            if let Err(error) = thread::Builder::new().name(name).spawn(move || pool.work()) {
                self.watch.trouble(&format!("cannot start a thread for blocking work: {error}"));
                return false;
            }
            state.threads_started += 1;
        }
        state.ready.push_back((Arc::clone(guest), job));
        drop(state);
        self.pool.more.notify_one();
        true
    }
}

impl Pool {
    fn work(&self) {
        while let Some((guest, job)) = self.next() {
            let mut job = Some(job);
            while let Some(work) = job {
                run(work);
                job = next_of(&guest);
            }
        }
    }

    fn next(&self) -> Option<(Arc<Guest>, Job)> {
        let mut state = lock(&self.state);
        loop {
            if let Some(next) = state.ready.pop_front() {
                return Some(next);
            }
            if state.closing {
                return None;
            }
            state.idle += 1;
            let (guard, waited) =
                self.more.wait_timeout(state, IDLE_MAX).unwrap_or_else(PoisonError::into_inner);
            state = guard;
            state.idle -= 1;
            if waited.timed_out() && state.ready.is_empty() {
                return None;
            }
        }
    }
}

fn run(job: Job) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(job)) {
        bury(payload);
    }
}

/// Takes the plugin's next waiting job, or gives its place back.
fn next_of(guest: &Guest) -> Option<Job> {
    let mut lane = lock(&guest.lane);
    let next = lane.waiting.pop_front();
    if next.is_none() {
        lane.running -= 1;
    }
    next
}
