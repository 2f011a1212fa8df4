//! Runs a plugin's blocking work on the host's pool.

use std::sync::Arc;

use jaato_plugin_api::abi::abi_stable::sabi_trait::TD_Opaque;
use jaato_plugin_api::abi::{JobAbi, JobBox};
use jaato_types::{Error, Result};
use parking_lot::Mutex;

use crate::context::Reporter;
use crate::fence::{FencedDrop, run_fenced};

type BlockingResultSlot<T> = Arc<Mutex<Option<Result<T>>>>;

struct FencedJob<W, T> {
    work: FencedDrop<W>,
    host: Reporter,
    slot: BlockingResultSlot<T>,
}

impl<W, T> JobAbi for FencedJob<W, T>
where
    W: FnOnce(&Reporter) -> T + Send + 'static,
    T: Send + 'static,
{
    fn run(&mut self) {
        let Some(work) = self.work.take_value() else { return };
        let result = run_fenced(|| work(&self.host));
        *self.slot.lock() = Some(result);
    }
}

/// Passes the work to the host and waits for its result.
pub(crate) async fn run_blocking<T: Send + 'static>(
    host: &Reporter,
    work: impl FnOnce(&Reporter) -> T + Send + 'static,
) -> Result<T> {
    let slot: BlockingResultSlot<T> = Arc::new(Mutex::new(None));
    let job =
        FencedJob { work: FencedDrop::new(work), host: host.clone(), slot: Arc::clone(&slot) };
    let done = host.context().spawn_blocking(JobBox::from_value(job, TD_Opaque)).await;
    let result = slot.lock().take();
    match result {
        Some(result) if done => result,
        Some(_) | None => Err(Error::cancelled()),
    }
}
