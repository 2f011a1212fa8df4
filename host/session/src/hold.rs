//! Pauses the deadline of a call while it waits for the user or in a queue.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Pauses a call's deadline while anything holds it. Clones pause the same deadline.
#[derive(Debug, Clone, Default)]
pub struct Hold(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    held: AtomicUsize,
    /// The deadline of the call that waits for this one.
    outer: Option<Hold>,
}

/// A guard that pauses the deadline until it is dropped.
#[derive(Debug)]
#[must_use]
pub struct Held(Hold);

impl Hold {
    /// Creates one for a call that another call waits for. Holding it holds that one too.
    pub fn within(outer: &Self) -> Self {
        Self(Arc::new(Inner { outer: Some(outer.clone()), ..Inner::default() }))
    }

    /// Pauses the deadline, and that of each call that waits for this one.
    pub fn hold(&self) -> Held {
        self.take();
        Held(self.clone())
    }

    /// Returns true while anything holds it.
    pub(crate) fn is_held(&self) -> bool {
        self.0.held.load(Relaxed) > 0
    }

    fn take(&self) {
        self.0.held.fetch_add(1, Relaxed);
        if let Some(outer) = &self.0.outer {
            outer.take();
        }
    }

    fn let_go(&self) {
        self.0.held.fetch_sub(1, Relaxed);
        if let Some(outer) = &self.0.outer {
            outer.let_go();
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.let_go();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_holds_the_inner_call_holds_the_outer_one() {
        let outer = Hold::default();
        let inner = Hold::within(&outer);
        let (first, second) = (inner.hold(), inner.hold());
        assert!(inner.is_held() && outer.is_held());
        drop(first);
        assert!(inner.is_held() && outer.is_held());
        drop(second);
        assert!(!inner.is_held() && !outer.is_held());
        let _held = outer.hold();
        assert!(!inner.is_held(), "the call that waits stops nobody else");
    }
}
