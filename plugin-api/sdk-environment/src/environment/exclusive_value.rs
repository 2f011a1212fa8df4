//! A value that one call at a time borrows. The call's end returns it, even if the call is dropped.

use std::ops::{Deref, DerefMut};

use jaato_types::{Error, ErrorKind, Result};
use parking_lot::Mutex;

/// A value for one call at a time.
pub(super) struct ExclusiveValue<T>(Mutex<Option<T>>);

/// The borrowed value. Dropping it returns the value.
pub(super) struct BorrowedValue<'a, T> {
    held: &'a ExclusiveValue<T>,
    it: Option<T>,
}

impl<T> ExclusiveValue<T> {
    pub(super) fn new(it: T) -> Self {
        Self(Mutex::new(Some(it)))
    }

    /// Lends the value.
    ///
    /// # Errors
    /// `conflict` while another call has it.
    pub(super) fn try_borrow(&self) -> Result<BorrowedValue<'_, T>> {
        let it = self.0.lock().take();
        let busy = || Error::new(ErrorKind::Conflict, "another call is using it");
        Ok(BorrowedValue { held: self, it: Some(it.ok_or_else(busy)?) })
    }
}

impl<T> BorrowedValue<'_, T> {
    /// Takes the value permanently.
    pub(super) fn into_value(mut self) -> T {
        match self.it.take() {
            Some(it) => it,
            None => unreachable!("taken only here and by the drop"),
        }
    }
}

impl<T> Deref for BorrowedValue<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        match &self.it {
            Some(it) => it,
            None => unreachable!("taken only by the drop"),
        }
    }
}

impl<T> DerefMut for BorrowedValue<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        match &mut self.it {
            Some(it) => it,
            None => unreachable!("taken only by the drop"),
        }
    }
}

impl<T> Drop for BorrowedValue<'_, T> {
    fn drop(&mut self) {
        if let Some(it) = self.it.take() {
            *self.held.0.lock() = Some(it);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exclusive_value_is_lent_to_one_caller_and_returned_on_drop() {
        let held = ExclusiveValue::new(7);
        let lent = held.try_borrow().unwrap();
        assert_eq!(held.try_borrow().err().map(|error| error.kind), Some(ErrorKind::Conflict));
        drop(lent);
        assert_eq!(held.try_borrow().unwrap().into_value(), 7);
        assert!(held.try_borrow().is_err());
    }
}
