//! Waits for a future on a thread that may block.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use crate::context::Reporter;

/// Wakes a parked thread.
struct UnparkWaker(Thread);

impl Wake for UnparkWaker {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

impl Reporter {
    /// Blocks this thread until a future is done. Use it to call services from a
    /// [`SyncTool`](crate::SyncTool) or from work in [`Reporter::blocking`]. After a cancel,
    /// services answer `cancelled`, so the wait ends. In async code, use `.await` instead, because
    /// `block_on` would block a thread that all plugins share.
    ///
    /// ```
    /// use jaato_plugin_sdk::prelude::*;
    ///
    /// /// Tells which session this is.
    /// #[tool_fn(read_only, open_world = false)]
    /// fn session_name(_state: &(), host: &Reporter) -> Result<Output> {
    ///     let facts = host.block_on(host.session())?;
    ///     Ok(Output::text(facts.session_id))
    /// }
    /// # export_plugin! { state: (), tools }
    /// # fn main() {}
    /// ```
    pub fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        let mut future = pin!(future);
        let waker = Waker::from(Arc::new(UnparkWaker(thread::current())));
        let mut task = Context::from_waker(&waker);
        loop {
            if let Poll::Ready(value) = future.as_mut().poll(&mut task) {
                return value;
            }
            thread::park();
        }
    }
}
