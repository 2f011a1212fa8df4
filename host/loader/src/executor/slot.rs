//! What a thread of the executor shows to the watchdog: whether it polls, for whom, and in whose
//! code.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use super::guest::Guest;
use super::jobs::Job;
use crate::running;

thread_local! {
    static OWN_SLOT: RefCell<Option<Arc<Slot>>> = const { RefCell::new(None) };
}

/// One thread of the executor.
pub(super) struct Slot {
    pub(super) number: usize,
    /// Tells executors apart.
    executor: usize,
    /// The system's number of the thread; set by the thread itself.
    thread: OnceLock<Option<u64>>,
    /// Odd while a plugin's code runs. No clock is read per poll: the watchdog compares.
    sequence: AtomicU64,
    in_host_code: AtomicBool,
    written_off: AtomicBool,
    guest: Mutex<Option<Arc<Guest>>>,
    /// Blocking work that the poll has handed over.
    job: Mutex<Option<(Arc<Guest>, Job)>>,
    /// Whether the thread looks for tasks as soon as what it does is done, though that is no poll.
    looks_next: AtomicBool,
}

impl Slot {
    pub(super) fn new(number: usize, executor: usize) -> Self {
        Self {
            number,
            executor,
            thread: OnceLock::new(),
            sequence: AtomicU64::new(0),
            in_host_code: AtomicBool::new(false),
            written_off: AtomicBool::new(false),
            guest: Mutex::new(None),
            job: Mutex::new(None),
            looks_next: AtomicBool::new(false),
        }
    }

    /// Takes the blocking work that a poll of this thread handed over.
    pub(super) fn take_job(&self) -> Option<(Arc<Guest>, Job)> {
        self.job.lock().take()
    }

    /// Makes the slot the calling thread's own.
    pub(super) fn adopt(self: &Arc<Self>) {
        self.thread.get_or_init(super::clock::thread_number);
        OWN_SLOT.with(|own| own.replace(Some(Arc::clone(self))));
    }

    /// The calling thread is the executor's no more.
    pub(super) fn leave() {
        OWN_SLOT.with(|own| own.replace(None));
    }

    pub(super) fn thread(&self) -> Option<u64> {
        self.thread.get().copied().flatten()
    }

    pub(super) fn begin(&self, guest: &Arc<Guest>) {
        *self.guest.lock() = Some(Arc::clone(guest));
        running::begin(guest.name_place());
        // In one order with the watchdog's `asleep`: it sees this, or this thread sees that it
        // sleeps.
        self.sequence.fetch_add(1, SeqCst);
    }

    pub(super) fn end(&self) {
        running::end();
        self.sequence.fetch_add(1, SeqCst);
    }

    pub(super) fn sequence(&self) -> u64 {
        self.sequence.load(SeqCst)
    }

    pub(super) fn guest(&self) -> Option<Arc<Guest>> {
        self.guest.lock().clone()
    }

    pub(super) fn is_in_host_code(&self) -> bool {
        self.in_host_code.load(Relaxed)
    }

    pub(super) fn write_off(&self) {
        self.written_off.store(true, SeqCst);
    }

    pub(super) fn is_written_off(&self) -> bool {
        self.written_off.load(SeqCst)
    }
}

/// Gives work the calling thread's slot; none on threads that are not an executor's, or that go
/// down.
fn with_own<T>(work: impl FnOnce(&Slot) -> T) -> Option<T> {
    OWN_SLOT.try_with(|own| own.try_borrow().ok()?.as_deref().map(work)).ok().flatten()
}

/// Keeps blocking work for the end of the calling thread's poll. Gives it back where that polls
/// nothing for this executor, and where work is kept already.
pub(super) fn keep_job(executor: usize, guest: &Arc<Guest>, job: Job) -> Option<Job> {
    let mut job = Some(job);
    with_own(|slot| {
        let mut kept = slot.job.lock();
        if slot.executor == executor && is_polling(slot.sequence()) && kept.is_none() {
            *kept = job.take().map(|job| (Arc::clone(guest), job));
        }
    });
    job
}

/// Tells whether the calling thread looks for tasks of this executor as soon as it is done with
/// what it does.
pub(super) fn looks_next(executor: usize) -> bool {
    let looks = with_own(|slot| {
        let is_at_it = is_polling(slot.sequence()) || slot.looks_next.load(Relaxed);
        slot.executor == executor && is_at_it && !slot.is_written_off()
    });
    looks.unwrap_or(false)
}

/// Does work after which the calling thread looks for tasks at once: the last thing of a job, or
/// what messages ask for.
pub(crate) fn before_looking<T>(work: impl FnOnce() -> T) -> T {
    /// A waker may panic.
    struct Done;
    impl Drop for Done {
        fn drop(&mut self) {
            with_own(|slot| slot.looks_next.store(false, Relaxed));
        }
    }
    with_own(|slot| slot.looks_next.store(true, Relaxed));
    let _done = Done;
    work()
}

/// Tells whether a sequence number stands for a poll that goes on.
pub(super) fn is_polling(sequence: u64) -> bool {
    !sequence.is_multiple_of(2)
}

/// Marks host code that a plugin's poll called: the watchdog does not count its time.
pub(crate) struct HostCode(bool);

impl HostCode {
    pub(crate) fn enter() -> Self {
        Self(mark(true))
    }
}

impl Drop for HostCode {
    fn drop(&mut self) {
        mark(self.0);
    }
}

/// Sets the mark and returns what it was. Without effect on threads that are not the executor's.
fn mark(in_host_code: bool) -> bool {
    let before = with_own(|slot| {
        let before = slot.in_host_code.load(Relaxed);
        slot.in_host_code.store(in_host_code, Relaxed);
        before
    });
    before.unwrap_or(false)
}
