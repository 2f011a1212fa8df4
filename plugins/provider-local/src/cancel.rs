//! A flag that ends a completion from another thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use jaato_plugin_sdk::types::{Error, Result};

/// A flag that a completion looks at between layers and tokens. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct CancelFlag(Arc<AtomicBool>);

impl CancelFlag {
    /// Asks the completion to end. It does so within one layer of one chunk.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Tells whether [`CancelFlag::cancel`] was called.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    /// Returns the error of a cancelled call once the flag is set.
    ///
    /// # Errors
    /// Kind `cancelled`, when it is.
    pub fn check(&self) -> Result<()> {
        if self.is_cancelled() { Err(Error::cancelled()) } else { Ok(()) }
    }
}
