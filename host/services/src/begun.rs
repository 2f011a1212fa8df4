//! What one call, or one instance, has begun and goes on with by its number: blobs that it writes,
//! bodies of requests that it puts together.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

/// Things that one context has begun. They go with it.
#[derive(Debug)]
pub struct Begun<T>(Mutex<State<T>>);

#[derive(Debug)]
struct State<T> {
    last: u64,
    /// Nothing stands for one that is being worked on.
    open: HashMap<u64, Option<T>>,
}

/// Why a thing cannot be gone on with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// This context has begun none of this number, or it is ended.
    Unknown,
    /// It is being worked on.
    Busy,
}

impl<T> Default for Begun<T> {
    fn default() -> Self {
        Self(Mutex::new(State { last: 0, open: HashMap::new() }))
    }
}

impl<T> Begun<T> {
    /// Makes a place for a new thing, or none where there are so many already.
    pub fn enter(self: &Arc<Self>, most: usize) -> Option<Place<T>> {
        let mut state = self.0.lock();
        if state.open.len() >= most {
            return None;
        }
        state.last += 1;
        let number = state.last;
        state.open.insert(number, None);
        Some(Place { begun: Arc::clone(self), number })
    }

    /// Takes a thing out of its place, to go on with it or to end it.
    pub fn take(self: &Arc<Self>, number: u64) -> Result<(Place<T>, T), Refused> {
        let mut state = self.0.lock();
        let thing = state.open.get_mut(&number).ok_or(Refused::Unknown)?;
        let thing = thing.take().ok_or(Refused::Busy)?;
        Ok((Place { begun: Arc::clone(self), number }, thing))
    }
}

/// The place of a thing. It is free again when this is dropped, unless the thing is kept: of a
/// piece that nobody waits for any more it is not known how much was written.
#[derive(Debug)]
pub struct Place<T> {
    begun: Arc<Begun<T>>,
    number: u64,
}

impl<T> Place<T> {
    /// Puts the thing back and returns its number.
    pub fn keep(self, thing: T) -> u64 {
        self.begun.0.lock().open.insert(self.number, Some(thing));
        self.number
    }
}

impl<T> Drop for Place<T> {
    fn drop(&mut self) {
        let mut state = self.begun.0.lock();
        if matches!(state.open.get(&self.number), Some(None)) {
            state.open.remove(&self.number);
        }
    }
}
