//! The state of an executor thread for the watchdog: whether it polls, for which plugin, and
//! whether it runs host code.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use super::plugin_record::GuestPlugin;
use crate::running;

thread_local! {
    static OWN_SLOT: RefCell<Option<Arc<ExecutorThread>>> = const { RefCell::new(None) };
}

/// One thread of the executor.
pub(super) struct ExecutorThread {
    pub(super) number: usize,
    /// The system's thread number, set by the thread itself.
    thread: OnceLock<Option<u64>>,
    /// Odd while a plugin's code runs. A poll reads no clock, because the watchdog compares this
    /// number.
    sequence: AtomicU64,
    in_host_code: AtomicBool,
    written_off: AtomicBool,
    guest: Mutex<Option<Arc<GuestPlugin>>>,
}

impl ExecutorThread {
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

    /// Makes this the slot of the calling thread.
    pub(super) fn bind_thread(self: &Arc<Self>) {
        self.thread.get_or_init(super::clock::thread_number);
        OWN_SLOT.with(|own| own.replace(Some(Arc::clone(self))));
    }

    pub(super) fn thread_number(&self) -> Option<u64> {
        self.thread.get().copied().flatten()
    }

    pub(super) fn begin_poll(&self, guest: &Arc<GuestPlugin>) {
        *self.guest.lock() = Some(Arc::clone(guest));
        running::enter_plugin(guest.name_index());
        // Ordered with the watchdog's `asleep`: either the watchdog sees this poll, or this thread
        // sees that the watchdog sleeps.
        self.sequence.fetch_add(1, SeqCst);
    }

    pub(super) fn end_poll(&self) {
        running::leave_plugin();
        self.sequence.fetch_add(1, SeqCst);
    }

    pub(super) fn poll_sequence(&self) -> u64 {
        self.sequence.load(SeqCst)
    }

    pub(super) fn polled_guest(&self) -> Option<Arc<GuestPlugin>> {
        self.guest.lock().clone()
    }

    pub(super) fn is_in_host_code(&self) -> bool {
        self.in_host_code.load(Relaxed)
    }

    pub(super) fn abandon(&self) {
        self.written_off.store(true, SeqCst);
    }

    pub(super) fn is_abandoned(&self) -> bool {
        self.written_off.load(SeqCst)
    }
}

/// Runs work on the calling thread's slot. Returns `None` on other threads and on threads that are
/// ending.
fn with_own_slot<T>(work: impl FnOnce(&ExecutorThread) -> T) -> Option<T> {
    OWN_SLOT.try_with(|own| own.try_borrow().ok()?.as_deref().map(work)).ok().flatten()
}

/// Returns true if a sequence number means that a poll is running.
pub(super) fn is_polling(sequence: u64) -> bool {
    sequence % 2 == 1
}

/// Marks host code that a plugin's poll called, so that the watchdog does not count its time.
pub struct HostCodeGuard(bool);

impl HostCodeGuard {
    /// Sets the mark until the value is dropped.
    pub fn enter() -> Self {
        Self(mark_host_code(true))
    }
}

impl Drop for HostCodeGuard {
    fn drop(&mut self) {
        mark_host_code(self.0);
    }
}

/// Sets the mark and returns its old value. Has no effect on threads outside the executor.
fn mark_host_code(in_host_code: bool) -> bool {
    let before = with_own_slot(|slot| {
        let before = slot.in_host_code.load(Relaxed);
        slot.in_host_code.store(in_host_code, Relaxed);
        before
    });
    before.unwrap_or(false)
}
