//! Waits for a service on a thread that may block.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use crate::context::Reporter;

/// Wakes a thread that is parked.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

impl Reporter {
    /// Waits on this thread until a future is done: for a [`SyncTool`](crate::SyncTool), and in
    /// work of [`Reporter::blocking`], where a service is wanted. After a cancel services answer
    /// `cancelled`, so the wait ends. Async code writes `.await`: it would block a thread that all
    /// plugins share.
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
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        let mut task = Context::from_waker(&waker);
        loop {
            if let Poll::Ready(value) = future.as_mut().poll(&mut task) {
                return value;
            }
            thread::park();
        }
    }
}
