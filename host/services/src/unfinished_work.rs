//! Work in progress of one call or instance, identified by numbers: blobs being written and request
//! bodies being assembled.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

/// Work in progress of one context. Dropped with the context.
#[derive(Debug)]
pub struct UnfinishedItems<T>(Mutex<UnfinishedItemTable<T>>);

#[derive(Debug)]
struct UnfinishedItemTable<T> {
    last: u64,
    /// `None` marks an item that is in use.
    open: HashMap<u64, Option<T>>,
}

/// Why work on an item cannot continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnfinishedItemError {
    /// This context has no item with this number, or the item has ended.
    Unknown,
    /// The item is in use.
    Busy,
}

impl<T> Default for UnfinishedItems<T> {
    fn default() -> Self {
        Self(Mutex::new(UnfinishedItemTable { last: 0, open: HashMap::new() }))
    }
}

impl<T> UnfinishedItems<T> {
    /// Reserves a place for a new item. Returns `None` if there are already `most` items.
    pub fn reserve_item(self: &Arc<Self>, most: usize) -> Option<ReservedItem<T>> {
        let mut state = self.0.lock();
        if state.open.len() >= most {
            return None;
        }
        state.last += 1;
        let number = state.last;
        state.open.insert(number, None);
        Some(ReservedItem { begun: Arc::clone(self), number })
    }

    /// Takes an item out of its place, to continue or end it.
    pub fn take_item(
        self: &Arc<Self>,
        number: u64,
    ) -> Result<(ReservedItem<T>, T), UnfinishedItemError> {
        let mut state = self.0.lock();
        let thing = state.open.get_mut(&number).ok_or(UnfinishedItemError::Unknown)?;
        let thing = thing.take().ok_or(UnfinishedItemError::Busy)?;
        Ok((ReservedItem { begun: Arc::clone(self), number }, thing))
    }
}

/// The place of an item. Dropping it frees the place, unless the item is kept. After an abandoned
/// write, no one knows how much was written, so the item is lost.
#[derive(Debug)]
pub struct ReservedItem<T> {
    begun: Arc<UnfinishedItems<T>>,
    number: u64,
}

impl<T> ReservedItem<T> {
    /// Puts the item back and returns its number.
    pub fn put_back(self, thing: T) -> u64 {
        self.begun.0.lock().open.insert(self.number, Some(thing));
        self.number
    }
}

impl<T> Drop for ReservedItem<T> {
    fn drop(&mut self) {
        let mut state = self.begun.0.lock();
        if matches!(state.open.get(&self.number), Some(None)) {
            state.open.remove(&self.number);
        }
    }
}
