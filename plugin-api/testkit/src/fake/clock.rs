//! The time of a fake host, and the threads of its engine.
//!
//! Time may skip to the next alarm if nothing else can happen: nothing is polled, no blocking work
//! or program runs, and the test waits for an answer. A wake counts as activity until it is done.
//! When the test's thread is woken, time stops immediately, so that the result does not depend on
//! how fast that thread runs.

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use jaato_plugin_engine::{BoxHostFuture, EngineActivity, EngineThread, PluginRuntime};
use jaato_types::{Error, ErrorKind, Result};
use parking_lot::{Condvar, Mutex, MutexGuard};

use super::log::{self, FakeLog};
use super::{EXECUTOR_THREAD, POOL_THREAD};

/// How the host's time passes for a sleeping plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FakeClockMode {
    /// While the test waits for an answer, time skips to the next alarm as soon as nothing else can
    /// happen, so sleeps take no real time. Time stops while a program of a call runs. Do not use
    /// this for plugins with their own threads, whose work the host does not see.
    #[default]
    Skipping,
    /// Time stops until the test moves it.
    Manual,
    /// Time passes as in reality.
    Real,
}

/// The key of an alarm: its time in milliseconds and a number.
type FakeAlarmKey = (u64, u64);

/// A task that waits for an alarm.
struct SleepingTask {
    waker: Waker,
    /// Whether it is a blocking job, which does nothing else on its thread while it waits.
    is_job: bool,
}

/// The host's time. Clones share it.
#[derive(Clone)]
pub(crate) struct FakeTime(Arc<FakeTimeInner>);

struct FakeTimeInner {
    state: Mutex<FakeTimeState>,
    /// Signals a new alarm or another clock to the thread of [`FakeClockMode::Real`].
    changed: Condvar,
    /// Signals the end of an activity.
    calm: Condvar,
    log: Arc<FakeLog>,
}

struct FakeTimeState {
    alarms: BTreeMap<FakeAlarmKey, SleepingTask>,
    number: u64,
    clock: FakeClockMode,
    now_ms: u64,
    epoch: Instant,
    /// Futures that are queued or polled, and alarms that are being rung.
    polls: usize,
    jobs: usize,
    programs: usize,
    /// Tests that wait for an answer.
    waits: usize,
}

impl FakeTimeState {
    fn now_ms(&mut self) -> u64 {
        if self.clock == FakeClockMode::Real {
            let passed = self.epoch.elapsed().as_millis();
            self.now_ms = u64::try_from(passed).unwrap_or(u64::MAX);
        }
        self.now_ms
    }

    /// Returns true if nothing can happen without the test, the clock or a plugin's own thread. A
    /// job that waits for an alarm does not count.
    fn is_idle(&self) -> bool {
        let sleeping = self.alarms.values().filter(|sleeper| sleeper.is_job).count();
        self.polls == 0 && self.jobs <= sleeping
    }
}

impl FakeTime {
    pub(crate) fn new(log: Arc<FakeLog>) -> Self {
        let state = FakeTimeState {
            alarms: BTreeMap::new(),
            number: 0,
            clock: FakeClockMode::default(),
            now_ms: 0,
            epoch: Instant::now(),
            polls: 0,
            jobs: 0,
            programs: 0,
            waits: 0,
        };
        let (changed, calm) = (Condvar::new(), Condvar::new());
        Self(Arc::new(FakeTimeInner { state: Mutex::new(state), changed, calm, log }))
    }

    pub(crate) fn set_clock(&self, clock: FakeClockMode) {
        let mut state = self.lock();
        let was_real = std::mem::replace(&mut state.clock, clock) == FakeClockMode::Real;
        state.epoch = Instant::now() - Duration::from_millis(state.now_ms);
        drop(state);
        self.0.changed.notify_all();
        if clock == FakeClockMode::Real && !was_real {
            let own = self.clone();
            // Without the thread no alarm rings, and the waiting test reports a timeout.
            let _ = thread::Builder::new()
                .name("fake-clock".into())
                .spawn(move || own.run_real_clock());
        }
    }

    pub(crate) fn now_ms(&self) -> u64 {
        self.lock().now_ms()
    }

    /// Moves the clock and rings the alarms that are due.
    pub(crate) fn advance(&self, milliseconds: u64) {
        let mut state = self.lock();
        state.now_ms = state.now_ms().saturating_add(milliseconds);
        state.epoch =
            state.epoch.checked_sub(Duration::from_millis(milliseconds)).unwrap_or(state.epoch);
        Self::wake_due_tasks(&mut state);
        self.let_time_skip(state);
    }

    /// Sleeps in the host's time.
    pub(crate) fn sleep_ms(&self, milliseconds: u64) -> FakeSleep {
        let due_ms = self.now_ms().saturating_add(milliseconds);
        FakeSleep { time: self.clone(), due_ms, alarm: None }
    }

    /// Counts a running program, during which time does not skip.
    pub(crate) fn hold_time(&self) -> TimeHold {
        self.lock().programs += 1;
        TimeHold(self.clone())
    }

    /// Waits until nothing can happen without the test, the clock or a plugin's own thread.
    pub(crate) fn settle(&self, patience: Duration) -> Result<()> {
        self.wait_until(patience, FakeTimeState::is_idle)
    }

    /// Waits until nothing of the plugin is polled or dropped, and ends the clock's thread.
    pub(crate) fn end_clock(&self, patience: Duration) {
        // A thread that a plugin blocks keeps running.
        let _ = self.wait_until(patience, |state| state.polls == 0);
        self.set_clock(FakeClockMode::Manual);
    }

    /// Waits on the test's thread, during which time may skip.
    pub(crate) fn wait_for<F: Future>(&self, patience: Duration, future: F) -> Result<F::Output> {
        let deadline = Instant::now() + patience;
        let waiter = Arc::new(TestThreadWaiter {
            time: self.clone(),
            thread: thread::current(),
            is_woken: AtomicBool::new(false),
            is_waiting: AtomicBool::new(false),
        });
        let waker = Waker::from(Arc::clone(&waiter));
        let mut future = pin!(future);
        loop {
            if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
                return Ok(output);
            }
            waiter.begin_waiting();
            while !waiter.is_woken.load(SeqCst) {
                let left = deadline.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    waiter.wake_by_ref();
                    return Err(hung_plugin_error(patience));
                }
                thread::park_timeout(left);
            }
            waiter.is_woken.store(false, SeqCst);
        }
    }

    fn lock(&self) -> MutexGuard<'_, FakeTimeState> {
        self.0.state.lock()
    }

    fn wait_until(&self, patience: Duration, is_so: fn(&FakeTimeState) -> bool) -> Result<()> {
        let is_not = |state: &mut FakeTimeState| !is_so(state);
        let waited = self.0.calm.wait_while_for(&mut self.lock(), is_not, patience);
        if waited.timed_out() { Err(hung_plugin_error(patience)) } else { Ok(()) }
    }

    /// Wakes the tasks whose alarms are due, without holding the lock.
    fn wake_due_tasks(state: &mut MutexGuard<'_, FakeTimeState>) {
        let now = state.now_ms();
        let later = state.alarms.split_off(&(now.saturating_add(1), 0));
        let due = std::mem::replace(&mut state.alarms, later);
        state.polls += 1;
        MutexGuard::unlocked(state, || {
            due.into_values().for_each(|sleeper| sleeper.waker.wake());
        });
        state.polls -= 1;
    }

    /// Handles the end of an activity: lets time skip if nothing else is happening.
    fn let_time_skip(&self, mut state: MutexGuard<'_, FakeTimeState>) {
        self.0.calm.notify_all();
        while state.is_idle()
            && state.clock == FakeClockMode::Skipping
            && state.programs == 0
            && state.waits > 0
        {
            let Some((due_ms, _)) = state.alarms.keys().next() else { return };
            state.now_ms = state.now_ms.max(*due_ms);
            Self::wake_due_tasks(&mut state);
            self.0.calm.notify_all();
        }
    }

    /// Rings alarms as real time passes.
    fn run_real_clock(&self) {
        let mut state = self.lock();
        while state.clock == FakeClockMode::Real {
            let now = state.now_ms();
            match state.alarms.keys().next().map(|(due_ms, _)| due_ms.saturating_sub(now)) {
                Some(0) => {
                    Self::wake_due_tasks(&mut state);
                    self.0.calm.notify_all();
                }
                Some(left) => {
                    // Limited, because a condition variable cannot wait forever.
                    let left = Duration::from_millis(left).min(Duration::from_secs(3600));
                    self.0.changed.wait_for(&mut state, left);
                }
                None => self.0.changed.wait(&mut state),
            }
        }
    }
}

impl PluginRuntime for FakeTime {
    fn sleep(&self, time: Duration) -> BoxHostFuture<()> {
        Box::pin(self.sleep_ms(u64::try_from(time.as_millis()).unwrap_or(u64::MAX)))
    }

    fn run_later(&self, _time: Duration, _work: Box<dyn FnOnce() + Send>) {
        // The engine never calls this on a patient host.
    }

    fn start_thread(&self, thread: EngineThread, work: Box<dyn FnOnce() + Send>) -> io::Result<()> {
        let name = match thread {
            EngineThread::Executor(_) => EXECUTOR_THREAD.to_owned(),
            EngineThread::Job(_) => POOL_THREAD.to_owned(),
            EngineThread::Watchdog => thread.name(),
        };
        let book = Arc::clone(&self.0.log);
        let work = move || {
            log::enter_log(&book);
            work();
        };
        thread::Builder::new().name(name).spawn(work).map(drop)
    }

    fn is_patient(&self) -> bool {
        true
    }

    fn begin_activity(&self, work: EngineActivity) {
        *self.lock().activity_count(work) += 1;
    }

    fn end_activity(&self, work: EngineActivity) {
        let mut state = self.lock();
        *state.activity_count(work) -= 1;
        self.let_time_skip(state);
    }
}

impl FakeTimeState {
    fn activity_count(&mut self, work: EngineActivity) -> &mut usize {
        match work {
            EngineActivity::Poll => &mut self.polls,
            EngineActivity::Job => &mut self.jobs,
        }
    }
}

/// A sleep in the host's time.
pub(crate) struct FakeSleep {
    time: FakeTime,
    due_ms: u64,
    alarm: Option<FakeAlarmKey>,
}

impl Future for FakeSleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let mut state = this.time.lock();
        if state.now_ms() >= this.due_ms {
            return Poll::Ready(());
        }
        state.number += 1;
        let alarm = *this.alarm.get_or_insert((this.due_ms, state.number));
        let is_job = thread::current().name() == Some(POOL_THREAD);
        let earlier =
            state.alarms.insert(alarm, SleepingTask { waker: cx.waker().clone(), is_job });
        this.time.0.changed.notify_all();
        if is_job {
            // This job may have been the last activity.
            this.time.let_time_skip(state);
        } else {
            drop(state);
        }
        drop(earlier);
        Poll::Pending
    }
}

impl Drop for FakeSleep {
    fn drop(&mut self) {
        if let Some(alarm) = self.alarm {
            let sleeper = self.time.lock().alarms.remove(&alarm);
            drop(sleeper);
        }
    }
}

/// Counts a running program until it is dropped.
pub(crate) struct TimeHold(FakeTime);

impl Drop for TimeHold {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.programs -= 1;
        self.0.let_time_skip(state);
    }
}

/// The test's thread while it waits. Both flags change only with the time locked.
struct TestThreadWaiter {
    time: FakeTime,
    thread: thread::Thread,
    is_woken: AtomicBool,
    is_waiting: AtomicBool,
}

impl TestThreadWaiter {
    /// Lets time skip until the thread is woken.
    fn begin_waiting(&self) {
        let mut state = self.time.lock();
        if !self.is_woken.load(SeqCst) {
            self.is_waiting.store(true, SeqCst);
            state.waits += 1;
            self.time.let_time_skip(state);
        }
    }
}

impl Wake for TestThreadWaiter {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let mut state = self.time.lock();
        self.is_woken.store(true, SeqCst);
        if self.is_waiting.swap(false, SeqCst) {
            state.waits -= 1;
        }
        drop(state);
        self.thread.unpark();
    }
}

/// Returns the error of a plugin that does not return.
pub(crate) fn hung_plugin_error(patience: Duration) -> Error {
    let text = format!("the plugin did not finish within {patience:?} of real time");
    Error::new(ErrorKind::Timeout, text).with_hint(
        "it blocks in a poll or a drop, or waits for what never comes; a manual clock must be moved with `advance`",
    )
}
