//! Contexts and wakers as a C plugin holds them: addresses that it passes back.

use std::sync::Arc;
use std::task;

use jaato_plugin_api::abi::ContextBox;
use jaato_plugin_api::c1::{Context, Waker};

/// A context on loan to a plugin. The plugin may keep it, but it refuses everything after its end.
pub(super) struct LentCContext(ContextBox);

impl LentCContext {
    pub(super) fn new(context: ContextBox) -> Arc<Self> {
        Arc::new(Self(context))
    }

    /// Returns the address that the plugin gets.
    pub(super) fn address(self: &Arc<Self>) -> *const Context {
        Arc::as_ptr(self).cast()
    }

    /// Returns the context at an address.
    ///
    /// # Safety
    /// Null, or an address of [`LentCContext::address`] whose context is lent or kept.
    pub(super) unsafe fn context_at<'a>(context: *const Context) -> Option<&'a ContextBox> {
        // SAFETY: the caller guarantees it.
        unsafe { context.cast::<Self>().as_ref() }.map(|lent| &lent.0)
    }

    /// Adds one owner.
    ///
    /// # Safety
    /// As [`LentCContext::context_at`].
    pub(super) unsafe fn add_owner(context: *const Context) {
        if !context.is_null() {
            // SAFETY: it came out of an `Arc`, which lives.
            unsafe { Arc::increment_strong_count(context.cast::<Self>()) };
        }
    }

    /// Removes one owner.
    ///
    /// # Safety
    /// As [`LentCContext::context_at`], and it was kept as many times as it is dropped.
    pub(super) unsafe fn drop_owner(context: *const Context) {
        if !context.is_null() {
            // SAFETY: the owner that `keep` counted.
            unsafe { Arc::decrement_strong_count(context.cast::<Self>()) };
        }
    }
}

/// Returns the address of a waker, valid for the duration of a poll.
pub(super) fn waker_address(waker: &task::Waker) -> *const Waker {
    std::ptr::from_ref(waker).cast()
}

/// Returns the waker at an address.
///
/// # Safety
/// Null, or an address of a waker that is lent or kept.
pub(super) unsafe fn waker_at<'a>(waker: *const Waker) -> Option<&'a task::Waker> {
    // SAFETY: the caller guarantees it.
    unsafe { waker.cast::<task::Waker>().as_ref() }
}
