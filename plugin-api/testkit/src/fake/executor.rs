//! The fake plugin executor: one thread that polls and drops everything of a plugin, and the host's
//! clock.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use jaato_types::{Error, ErrorKind, Result};
use parking_lot::{Condvar, Mutex, MutexGuard};

use super::held::{JobToken, Time, WaitToken};
use super::wanted::{Receiver, channel};
use super::{EXECUTOR_THREAD, POOL_THREAD};

/// How the host's time passes for a plugin that sleeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Clock {
    /// While the test waits for an answer, time jumps to the next alarm as soon as nothing else can
    /// happen: sleeps cost nothing. It stands still while a program runs that a call has started.
    /// Not for plugins with threads of their own, whose work the host does not see.
    #[default]
    Skipping,
    /// Time stands still until the test moves it.
    Manual,
    /// Time passes as for a person.
    Real,
}

pub(crate) type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The handle of the executor; dropping it ends the thread.
pub(crate) struct Executor {
    inbox: Arc<Inbox>,
}

/// The name of an alarm: its time in milliseconds and a number.
pub(crate) type Alarm = (u64, u64);

enum Work {
    Start(u64, Task),
    Poll(u64),
    Drop(u64),
    Run(Box<dyn FnOnce() + Send>),
    Stop,
}

/// Who waits for an alarm.
struct Sleeper {
    waker: Waker,
    /// A blocking job waits on its own thread: nothing else happens there.
    is_job: bool,
}

pub(super) struct Inbox {
    state: Mutex<State>,
    /// There is work, or time has moved.
    pub(super) changed: Condvar,
    /// The executor has nothing to do, or has ended.
    calm: Condvar,
}

pub(super) struct State {
    work: VecDeque<Work>,
    alarms: BTreeMap<Alarm, Sleeper>,
    number: u64,
    clock: Clock,
    now_ms: u64,
    epoch: Instant,
    pub(super) jobs: usize,
    /// Programs that run.
    pub(super) programs: usize,
    /// Tests that wait for an answer.
    pub(super) waits: usize,
    is_busy: bool,
    has_ended: bool,
}

impl Executor {
    pub(crate) fn start(prepare: impl FnOnce() + Send + 'static) -> Self {
        let inbox = Arc::new(Inbox {
            state: Mutex::new(State {
                work: VecDeque::new(),
                alarms: BTreeMap::new(),
                number: 0,
                clock: Clock::default(),
                now_ms: 0,
                epoch: Instant::now(),
                jobs: 0,
                programs: 0,
                waits: 0,
                is_busy: true,
                has_ended: false,
            }),
            changed: Condvar::new(),
            calm: Condvar::new(),
        });
        let own = Arc::clone(&inbox);
        let work = move || {
            prepare();
            run(&own);
        };
        let started = std::thread::Builder::new().name(EXECUTOR_THREAD.to_owned()).spawn(work);
        if started.is_err() {
            // Whoever asks the executor for something is told.
            inbox.lock().has_ended = true;
        }
        Self { inbox }
    }

    /// Adds a task; it is polled and dropped on the executor's thread only.
    pub(crate) fn spawn(&self, task: Task) -> u64 {
        let id = self.inbox.number();
        self.inbox.push(Work::Start(id, task));
        id
    }

    /// Drops a task on the executor's thread before it is polled again.
    pub(crate) fn cancel(&self, id: u64) {
        let mut state = self.inbox.lock();
        let waiting = |work: &Work| matches!(work, Work::Start(other, _) if *other == id);
        // Not before its start, or it would begin after its end.
        let at = state.work.iter().position(waiting).map_or(0, |at| at + 1);
        state.work.insert(at, Work::Drop(id));
        drop(state);
        self.inbox.changed.notify_all();
    }

    /// Runs something on the executor's thread, without waiting for it.
    pub(crate) fn post(&self, work: impl FnOnce() + Send + 'static) {
        self.inbox.push(Work::Run(Box::new(work)));
    }

    /// Runs something on the executor's thread and waits for it.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        patience: Duration,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T> {
        let (sender, receiver) = channel();
        self.post(move || sender.send(work()));
        self.receive(&receiver, patience)
    }

    /// Waits for what a task sends; time may skip until it is sent.
    pub(crate) fn receive<T>(&self, receiver: &Receiver<T>, patience: Duration) -> Result<T> {
        receiver.receive(self, patience).ok_or_else(|| hung(patience))
    }

    /// Lets time skip while the test waits.
    pub(crate) fn begin_wait(&self) -> WaitToken {
        self.inbox.lock().waits += 1;
        self.inbox.changed.notify_all();
        WaitToken(Arc::clone(&self.inbox))
    }

    /// Waits until nothing can happen any more without the test, the clock or a plugin's own
    /// thread.
    pub(crate) fn settle(&self, patience: Duration) -> Result<()> {
        let deadline = Instant::now() + patience;
        let mut state = self.inbox.lock();
        while !state.is_calm() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(hung(patience));
            }
            state = wait(&self.inbox.calm, state, left);
        }
        Ok(())
    }

    /// Ends the executor: drops what is left on its thread. A thread that a plugin blocks is left
    /// behind.
    pub(crate) fn stop(&self, patience: Duration) {
        self.inbox.push(Work::Stop);
        let deadline = Instant::now() + patience;
        let mut state = self.inbox.lock();
        while !state.has_ended && Instant::now() < deadline {
            state = wait(&self.inbox.calm, state, deadline - Instant::now());
        }
    }

    pub(crate) fn set_clock(&self, clock: Clock) {
        let mut state = self.inbox.lock();
        state.clock = clock;
        state.epoch = Instant::now() - Duration::from_millis(state.now_ms);
        drop(state);
        self.inbox.changed.notify_all();
    }

    pub(crate) fn now_ms(&self) -> u64 {
        self.inbox.lock().now()
    }

    /// Moves the clock and rings what is due.
    pub(crate) fn advance(&self, milliseconds: u64) {
        let mut state = self.inbox.lock();
        let now = state.now().saturating_add(milliseconds);
        state.now_ms = now;
        state.epoch =
            state.epoch.checked_sub(Duration::from_millis(milliseconds)).unwrap_or(state.epoch);
        let due = state.due();
        drop(state);
        due.into_iter().for_each(Waker::wake);
    }

    /// Sets an alarm, or sets it anew with another waker.
    pub(crate) fn set_alarm(&self, due_ms: u64, known: Option<Alarm>, waker: Waker) -> Alarm {
        let alarm = known.unwrap_or_else(|| (due_ms, self.inbox.number()));
        let is_job = std::thread::current().name() == Some(POOL_THREAD);
        let earlier = self.inbox.lock().alarms.insert(alarm, Sleeper { waker, is_job });
        drop(earlier);
        self.inbox.changed.notify_all();
        alarm
    }

    pub(crate) fn clear_alarm(&self, alarm: Alarm) {
        let sleeper = self.inbox.lock().alarms.remove(&alarm);
        drop(sleeper);
    }

    /// Returns the host's time, for those who must hold it.
    pub(crate) fn time(&self) -> Time {
        Time(Arc::clone(&self.inbox))
    }

    /// Counts a blocking job: time does not skip while one runs.
    pub(crate) fn begin_job(&self) -> JobToken {
        self.inbox.lock().jobs += 1;
        JobToken(Arc::clone(&self.inbox))
    }
}

impl Drop for Executor {
    fn drop(&mut self) {
        self.inbox.push(Work::Stop);
    }
}

impl State {
    fn now(&mut self) -> u64 {
        if self.clock == Clock::Real {
            let passed = self.epoch.elapsed().as_millis();
            self.now_ms = u64::try_from(passed).unwrap_or(u64::MAX);
        }
        self.now_ms
    }

    fn is_calm(&self) -> bool {
        let is_still = !self.is_busy && self.work.is_empty() && !self.a_job_works();
        self.has_ended || is_still
    }

    /// Tells whether a blocking job does something, rather than wait for an alarm.
    fn a_job_works(&self) -> bool {
        let sleeping = self.alarms.values().filter(|sleeper| sleeper.is_job).count();
        self.jobs > sleeping
    }

    /// Takes out the wakers of all alarms that are due.
    fn due(&mut self) -> Vec<Waker> {
        let now = self.now();
        let later = self.alarms.split_off(&(now.saturating_add(1), 0));
        let due = std::mem::replace(&mut self.alarms, later);
        due.into_values().map(|sleeper| sleeper.waker).collect()
    }
}

impl Inbox {
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    fn number(&self) -> u64 {
        let mut state = self.lock();
        state.number += 1;
        state.number
    }

    fn push(&self, work: Work) {
        let mut state = self.lock();
        // After the end, what is handed over is dropped by whoever hands it over.
        if !state.has_ended {
            state.work.push_back(work);
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Waits for work, and lets time pass as the clock wants it.
    fn next(&self) -> Work {
        let mut state = self.lock();
        loop {
            if let Some(work) = state.work.pop_front() {
                state.is_busy = true;
                return work;
            }
            state.is_busy = false;
            self.calm.notify_all();
            let first = state.alarms.keys().next().map(|alarm| alarm.0);
            let left = match (state.clock, first) {
                (Clock::Skipping, Some(due))
                    if !state.a_job_works() && state.programs == 0 && state.waits > 0 =>
                {
                    state.now_ms = state.now_ms.max(due);
                    Duration::ZERO
                }
                (Clock::Real, Some(due)) => Duration::from_millis(due.saturating_sub(state.now())),
                (Clock::Skipping | Clock::Manual | Clock::Real, _) => Duration::MAX,
            };
            if left.is_zero() {
                state.is_busy = true;
                let due = state.due();
                drop(state);
                due.into_iter().for_each(Waker::wake);
                state = self.lock();
            } else {
                // Bounded, because a condition variable takes no endless wait.
                state = wait(&self.changed, state, left.min(Duration::from_secs(3600)));
            }
        }
    }
}

struct TaskWaker {
    id: u64,
    is_queued: AtomicBool,
    inbox: Arc<Inbox>,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.is_queued.swap(true, SeqCst) {
            self.inbox.push(Work::Poll(self.id));
        }
    }
}

fn run(inbox: &Arc<Inbox>) {
    let mut tasks: HashMap<u64, (Task, Arc<TaskWaker>)> = HashMap::new();
    loop {
        match inbox.next() {
            Work::Start(id, task) => {
                let is_queued = AtomicBool::new(true);
                let waker = TaskWaker { id, is_queued, inbox: Arc::clone(inbox) };
                tasks.insert(id, (task, Arc::new(waker)));
                poll(&mut tasks, id);
            }
            Work::Poll(id) => poll(&mut tasks, id),
            Work::Drop(id) => guarded(|| drop(tasks.remove(&id))),
            Work::Run(work) => guarded(work),
            Work::Stop => break,
        }
    }
    guarded(|| drop(tasks));
    let left = {
        let mut state = inbox.lock();
        state.has_ended = true;
        std::mem::take(&mut state.work)
    };
    guarded(|| drop(left));
    inbox.calm.notify_all();
}

fn poll(tasks: &mut HashMap<u64, (Task, Arc<TaskWaker>)>, id: u64) {
    let Some((task, waker)) = tasks.get_mut(&id) else { return };
    waker.is_queued.store(false, SeqCst);
    let waker = Waker::from(Arc::clone(waker));
    let mut is_done = true;
    guarded(|| is_done = task.as_mut().poll(&mut Context::from_waker(&waker)) == Poll::Ready(()));
    if is_done {
        guarded(|| drop(tasks.remove(&id)));
    }
}

/// Keeps the executor alive when the test's own code panics in it; what it said is on the terminal.
fn guarded(work: impl FnOnce()) {
    let _ = catch_unwind(AssertUnwindSafe(work));
}

fn wait<'a>(
    signal: &Condvar,
    mut state: MutexGuard<'a, State>,
    time: Duration,
) -> MutexGuard<'a, State> {
    signal.wait_for(&mut state, time);
    state
}

/// Makes the error of a plugin that does not come back.
pub(crate) fn hung(patience: Duration) -> Error {
    let text = format!("the plugin has not come to an end within {patience:?} of real time");
    Error::new(ErrorKind::Timeout, text).with_hint(
        "it blocks in a poll or a drop, or waits for what never comes; a manual clock must be moved with `advance`",
    )
}
