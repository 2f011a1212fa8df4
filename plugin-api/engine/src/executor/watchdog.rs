//! The watchdog: finds polls that block a thread of the executor, and plugins that poll without
//! end.
//!
//! It sleeps while nothing is polled. What it reports is time in which the thread was able to run,
//! so that a busy machine makes no false report.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::clock::{Measure, Meter};
use super::guest::{Guest, STRIKES_MAX};
use super::queue::Shared;
use super::slot::{Slot, is_polling};
use crate::fence::bury;
use crate::runtime::Thread;
use crate::watch::{Misdeed, Report};

/// Longest poll: time in which the thread was able to run. Work that takes longer belongs on the
/// pool.
pub const ABLE_TO_RUN_MAX: Duration = Duration::from_millis(100);

/// Longest poll by the wall clock, where the system does not tell how long a thread had to wait.
pub const WALL_CLOCK_MAX: Duration = Duration::from_secs(1);

/// How often it looks while something is polled.
const LOOK_EVERY: Duration = Duration::from_millis(25);

const SECOND: Duration = Duration::from_secs(1);

/// Wakes the watchdog.
#[derive(Default)]
pub(super) struct Bell {
    asleep: AtomicBool,
    mutex: Mutex<()>,
    rung: Condvar,
}

impl Bell {
    /// Costs one load where the watchdog is awake.
    pub(super) fn ring_if_asleep(&self) {
        if self.asleep.load(SeqCst) {
            self.ring();
        }
    }

    pub(super) fn ring(&self) {
        let _guard = self.mutex.lock();
        self.asleep.store(false, SeqCst);
        self.rung.notify_all();
    }

    fn wait(&self) {
        let mut guard = self.mutex.lock();
        while self.asleep.load(SeqCst) {
            self.rung.wait(&mut guard);
        }
    }
}

/// Starts the watchdog of an executor; false when the system gives no thread for it.
pub(super) fn start(shared: &Arc<Shared>) -> bool {
    let own = Arc::clone(shared);
    let watchdog = Box::new(move || Watchdog::new(own).watch());
    match shared.runtime.start_thread(Thread::Watchdog, watchdog) {
        Ok(()) => true,
        Err(error) => {
            shared.watch.trouble(&format!("cannot start the watchdog of plugins: {error}"));
            false
        }
    }
}

struct Watchdog {
    shared: Arc<Shared>,
    /// By thread: the poll that was seen last, and its measure if it goes on.
    seen: HashMap<usize, Seen>,
    second_began: Instant,
}

struct Seen {
    sequence: u64,
    meter: Option<Meter>,
}

impl Watchdog {
    fn new(shared: Arc<Shared>) -> Self {
        Self { shared, seen: HashMap::new(), second_began: Instant::now() }
    }

    fn watch(mut self) {
        loop {
            let active = self.look();
            if self.second_began.elapsed() >= SECOND {
                self.begin_second();
            }
            if self.shared.unwatch_if_over() {
                return;
            }
            if active || self.shared.has_parked() {
                thread::sleep(LOOK_EVERY);
            } else {
                self.sleep();
            }
        }
    }

    /// Looks at every thread; tells whether any polls or has polled since the last look.
    fn look(&mut self) -> bool {
        let threads = self.shared.threads();
        self.seen.retain(|number, _| threads.iter().any(|slot| slot.number == *number));
        let mut active = false;
        for slot in threads {
            active |= self.look_at(&slot);
        }
        active
    }

    fn look_at(&mut self, slot: &Arc<Slot>) -> bool {
        let sequence = slot.sequence();
        let polling = is_polling(sequence);
        let seen = self.seen.entry(slot.number).or_insert(Seen { sequence: 0, meter: None });
        if seen.sequence != sequence {
            let meter = polling.then(|| Meter::start(slot.thread()));
            *seen = Seen { sequence, meter };
            return true;
        }
        let Some(meter) = &mut seen.meter else { return polling };
        let blocked_for = match meter.look(slot.is_in_host_code()) {
            Measure::AbleToRun(time) if time > ABLE_TO_RUN_MAX => time,
            Measure::WallClock(time) if time > WALL_CLOCK_MAX => time,
            Measure::AbleToRun(_) | Measure::WallClock(_) => return true,
        };
        let guest = slot.guest();
        // A poll that ended meanwhile is not the one that was measured.
        if let Some(guest) = guest.filter(|_| slot.sequence() == sequence) {
            self.shared.replace(slot);
            let number = slot.number;
            self.report(&guest, Misdeed::Blocked { thread: number, able_to_run: blocked_for });
        }
        true
    }

    fn begin_second(&mut self) {
        self.second_began = Instant::now();
        for guest in self.shared.begin_second() {
            self.report(&guest, Misdeed::PollsWithoutEnd);
        }
    }

    fn report(&self, guest: &Guest, misdeed: Misdeed) {
        let strikes = guest.strike();
        let disabled = strikes >= STRIKES_MAX;
        let report = Report { plugin: guest.name().clone(), misdeed, strikes, disabled };
        // The watchdog outlives a bug of whoever is told.
        let told = catch_unwind(AssertUnwindSafe(|| self.shared.watch.misbehaved(&report)));
        if let Err(payload) = told {
            bury(payload);
        }
    }

    /// Sleeps until a thread begins to poll.
    fn sleep(&mut self) {
        let bell = &self.shared.bell;
        bell.asleep.store(true, SeqCst);
        // Looked at once more: a poll that began before the store did not ring.
        let polling = |slot: &Arc<Slot>| is_polling(slot.sequence());
        if self.shared.threads().iter().any(polling) || self.shared.has_parked() {
            bell.asleep.store(false, SeqCst);
            return;
        }
        bell.wait();
        self.second_began = Instant::now();
        self.shared.begin_second();
    }
}
