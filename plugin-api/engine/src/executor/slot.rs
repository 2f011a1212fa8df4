//! What a thread of the executor shows to the watchdog: whether it polls, for whom, and in whose
//! code.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use super::guest::Guest;
use crate::running;

thread_local! {
    static OWN_SLOT: RefCell<Option<Arc<Slot>>> = const { RefCell::new(None) };
}

/// One thread of the executor.
pub(super) struct Slot {
    pub(super) number: usize,
    /// The system's number of the thread; set by the thread itself.
    thread: OnceLock<Option<u64>>,
    /// Odd while a plugin's code runs. No clock is read per poll: the watchdog compares.
    sequence: AtomicU64,
    in_host_code: AtomicBool,
    written_off: AtomicBool,
    guest: Mutex<Option<Arc<Guest>>>,
}

impl Slot {
    pub(super) fn new(number: usize) -> Self {
        Self {
            number,
            thread: OnceLock::new(),
            sequence: AtomicU64::new(0),
            in_host_code: AtomicBool::new(false),
            written_off: AtomicBool::new(false),
            guest: Mutex::new(None),
        }
    }

    /// Makes the slot the calling thread's own.
    pub(super) fn adopt(self: &Arc<Self>) {
        self.thread.get_or_init(super::clock::thread_number);
        OWN_SLOT.with(|own| own.replace(Some(Arc::clone(self))));
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

/// Tells whether a sequence number stands for a poll that goes on.
pub(super) fn is_polling(sequence: u64) -> bool {
    sequence % 2 == 1
}

/// Marks host code that a plugin's poll called: the watchdog does not count its time.
pub struct HostCode(bool);

impl HostCode {
    /// Sets the mark until it is dropped.
    pub fn enter() -> Self {
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
