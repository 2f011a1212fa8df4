//! Counts running or waiting items, up to a limit.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// An item that is counted until it is dropped.
pub(super) struct CountedItem<'a>(&'a AtomicUsize);

impl<'a> CountedItem<'a> {
    /// Counts one more. Returns `None` if there are `max` already.
    pub(super) fn try_count(count: &'a AtomicUsize, max: usize) -> Option<Self> {
        let counted = Self(count);
        (count.fetch_add(1, Relaxed) < max).then_some(counted)
    }
}

impl Drop for CountedItem<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn item_beyond_the_limit_is_refused_and_not_counted() {
        let count = AtomicUsize::new(0);
        let first = CountedItem::try_count(&count, 1);
        assert!(first.is_some() && CountedItem::try_count(&count, 1).is_none());
        drop(first);
        assert!(CountedItem::try_count(&count, 1).is_some());
        assert_eq!(count.load(Relaxed), 0);
    }
}
