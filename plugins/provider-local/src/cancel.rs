//! A flag that ends a completion from another thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use jaato_plugin_sdk::types::{Error, Result};

/// A flag that a completion checks between layers and tokens. Clones share the flag.
#[derive(Debug, Clone, Default)]
pub struct CancelFlag(Arc<AtomicBool>);

impl CancelFlag {
    /// Asks the completion to end. It ends within one layer of one chunk.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Returns true if [`CancelFlag::cancel`] was called.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    /// Returns an error if the flag is set.
    ///
    /// # Errors
    /// Kind `cancelled` if the flag is set.
    pub fn check_cancelled(&self) -> Result<()> {
        if self.is_cancelled() { Err(Error::cancelled()) } else { Ok(()) }
    }
}
