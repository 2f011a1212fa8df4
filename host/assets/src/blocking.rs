//! Runs disk and CPU work off the async threads, and cancels it when no one waits for it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::AssetError;

/// Sets the flag when the future that waits for the work is dropped.
struct CancelFlagOnDrop(Arc<AtomicBool>);

impl Drop for CancelFlagOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs `work` on a thread for blocking work. The work must check its flag between blocks.
pub(crate) async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce(&AtomicBool) -> T + Send + 'static,
) -> Result<T, AssetError> {
    let cancelled = Arc::new(AtomicBool::new(false));
    let _guard = CancelFlagOnDrop(cancelled.clone());
    let joined = tokio::task::spawn_blocking(move || work(&cancelled)).await;
    joined.map_err(|error| AssetError::from_io("finish", Path::new("worker"), error.into()))
}
