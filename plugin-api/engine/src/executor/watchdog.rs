//! The watchdog: finds polls that block an executor thread, and plugins that poll without end.
//!
//! It sleeps while nothing is polled. It reports only time in which the thread was able to run, so
//! a busy machine causes no false reports.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::clock::{PollDuration, PollMeter};
use super::plugin_record::{GuestPlugin, STRIKES_MAX};
use super::queue::ExecutorState;
use super::slot::{ExecutorThread, is_polling};
use crate::fence::drop_payload;
use crate::runtime::EngineThread;
use crate::watch::{LONG_BLOCK, Misbehavior, MisbehaviorReport};

/// The longest poll, in time that the thread was able to run. Longer work belongs on the pool.
pub const ABLE_TO_RUN_MAX: Duration = Duration::from_millis(100);

/// The longest poll by the wall clock, if the system does not report how long a thread had to wait.
pub const WALL_CLOCK_MAX: Duration = Duration::from_secs(1);

/// How often the watchdog checks the threads while something is polled.
const LOOK_EVERY: Duration = Duration::from_millis(25);

const SECOND: Duration = Duration::from_secs(1);

/// Wakes the watchdog.
#[derive(Default)]
pub(super) struct WatchdogWaker {
    asleep: AtomicBool,
    mutex: Mutex<()>,
    rung: Condvar,
}

impl WatchdogWaker {
    /// Takes only one load if the watchdog is awake.
    pub(super) fn wake_if_asleep(&self) {
        if self.asleep.load(SeqCst) {
            self.wake();
        }
    }

    pub(super) fn wake(&self) {
        let _guard = self.mutex.lock();
        self.asleep.store(false, SeqCst);
        self.rung.notify_all();
    }

    fn wait_until_woken(&self) {
        let mut guard = self.mutex.lock();
        while self.asleep.load(SeqCst) {
            self.rung.wait(&mut guard);
        }
    }
}

/// Starts the watchdog of an executor. Returns false if the system cannot start a thread.
pub(super) fn start_watchdog(shared: &Arc<ExecutorState>) -> bool {
    let own = Arc::clone(shared);
    let watchdog = Box::new(move || Watchdog::new(own).run());
    match shared.runtime.start_thread(EngineThread::Watchdog, watchdog) {
        Ok(()) => true,
        Err(error) => {
            shared.watch.log_trouble(&format!("cannot start the watchdog of plugins: {error}"));
            false
        }
    }
}

struct Watchdog {
    shared: Arc<ExecutorState>,
    /// The last poll that was seen on each thread, and its measurement while it runs.
    seen: HashMap<usize, ObservedPoll>,
    /// Polls whose threads were written off, until they end or have blocked for [`LONG_BLOCK`].
    blocked: Vec<BlockedPoll>,
    second_began: Instant,
}

struct ObservedPoll {
    sequence: u64,
    meter: Option<PollMeter>,
}

struct BlockedPoll {
    slot: Arc<ExecutorThread>,
    guest: Arc<GuestPlugin>,
    sequence: u64,
    meter: PollMeter,
}

impl Watchdog {
    fn new(shared: Arc<ExecutorState>) -> Self {
        let (seen, blocked) = (HashMap::new(), Vec::new());
        Self { shared, seen, blocked, second_began: Instant::now() }
    }

    fn run(mut self) {
        loop {
            let active = self.check_threads() | self.check_blocked();
            if self.second_began.elapsed() >= SECOND {
                self.report_throttled();
            }
            if self.shared.end_watch_if_closed() {
                return;
            }
            if active || self.shared.has_parked_tasks() {
                thread::sleep(LOOK_EVERY);
            } else {
                self.sleep_until_poll();
            }
        }
    }

    /// Checks every thread. Returns true if any thread polls or has polled since the last check.
    fn check_threads(&mut self) -> bool {
        let threads = self.shared.threads();
        self.seen.retain(|number, _| threads.iter().any(|slot| slot.number == *number));
        let mut active = false;
        for slot in threads {
            active |= self.check_thread(&slot);
        }
        active
    }

    fn check_thread(&mut self, slot: &Arc<ExecutorThread>) -> bool {
        let sequence = slot.poll_sequence();
        let polling = is_polling(sequence);
        let seen =
            self.seen.entry(slot.number).or_insert(ObservedPoll { sequence: 0, meter: None });
        if seen.sequence != sequence {
            let meter = polling.then(|| PollMeter::start(slot.thread_number()));
            *seen = ObservedPoll { sequence, meter };
            return true;
        }
        let Some(meter) = &mut seen.meter else { return polling };
        let blocked_for = match meter.measure_poll(slot.is_in_host_code()) {
            PollDuration::AbleToRun(time) if time > ABLE_TO_RUN_MAX => time,
            PollDuration::WallClock(time) if time > WALL_CLOCK_MAX => time,
            PollDuration::AbleToRun(_) | PollDuration::WallClock(_) => return true,
        };
        let (guest, meter) = (slot.polled_guest(), seen.meter.take());
        // If the poll has ended by now, it is not the measured one.
        if let Some(guest) = guest.filter(|_| slot.poll_sequence() == sequence) {
            self.shared.replace_thread(slot);
            let number = slot.number;
            let strikes = guest.count_strike();
            let misdeed = Misbehavior::Blocked { thread: number, able_to_run: blocked_for };
            self.record_misbehavior(&guest, misdeed, strikes);
            let slot = Arc::clone(slot);
            self.blocked.extend(meter.map(|meter| BlockedPoll { slot, guest, sequence, meter }));
        }
        true
    }

    /// Checks the polls that blocked their threads. Returns true if any still does.
    fn check_blocked(&mut self) -> bool {
        let mut long = Vec::new();
        self.blocked.retain_mut(|poll| {
            if poll.slot.poll_sequence() != poll.sequence {
                return false;
            }
            let (PollDuration::AbleToRun(time) | PollDuration::WallClock(time)) =
                poll.meter.measure_poll(poll.slot.is_in_host_code());
            if time >= LONG_BLOCK {
                long.push((Arc::clone(&poll.guest), time));
            }
            time < LONG_BLOCK
        });
        for (guest, able_to_run) in long {
            self.record_misbehavior(
                &guest,
                Misbehavior::StillBlocked { able_to_run },
                guest.strikes(),
            );
        }
        !self.blocked.is_empty()
    }

    fn report_throttled(&mut self) {
        self.second_began = Instant::now();
        for guest in self.shared.end_throttling_second() {
            let strikes = guest.count_strike();
            self.record_misbehavior(&guest, Misbehavior::PollsWithoutEnd, strikes);
        }
    }

    fn record_misbehavior(&self, guest: &GuestPlugin, misdeed: Misbehavior, strikes: u32) {
        let disabled = strikes >= STRIKES_MAX;
        let report = MisbehaviorReport { plugin: guest.name().clone(), misdeed, strikes, disabled };
        // The watchdog survives a panic in the receiver.
        let told = catch_unwind(AssertUnwindSafe(|| self.shared.watch.report_misbehavior(&report)));
        if let Err(payload) = told {
            drop_payload(payload);
        }
    }

    /// Sleeps until a thread starts to poll.
    fn sleep_until_poll(&mut self) {
        let bell = &self.shared.bell;
        bell.asleep.store(true, SeqCst);
        // Check again, because a poll that started before the store did not ring.
        let polling = |slot: &Arc<ExecutorThread>| is_polling(slot.poll_sequence());
        if self.shared.threads().iter().any(polling) || self.shared.has_parked_tasks() {
            bell.asleep.store(false, SeqCst);
            return;
        }
        bell.wait_until_woken();
        self.second_began = Instant::now();
        self.shared.end_throttling_second();
    }
}
