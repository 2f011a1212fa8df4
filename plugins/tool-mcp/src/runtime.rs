//! The thread on which the protocol runs. `rmcp` needs a `tokio` runtime, which plugins lack.
//!
//! Invariant: nothing outlives the instance. Dropping the runtime ends its thread and all tasks
//! spawned on it.

use std::future::Future;
use std::sync::Arc;

use futures_util::future::FutureExt as _;
use jaato_plugin_sdk::{Error, ErrorKind, Result};
use parking_lot::Mutex;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// The maximum number of threads for long work, such as parsing large messages.
const BLOCKING_THREADS_MAX: usize = 2;

/// A runtime with one thread.
pub struct McpRuntime {
    spawner: McpSpawner,
    stop: Mutex<Option<oneshot::Sender<()>>>,
    ended: Mutex<Option<oneshot::Receiver<()>>>,
}

/// Spawns tasks on the runtime. After the runtime's end, no task runs.
#[derive(Clone)]
pub struct McpSpawner(Handle);

/// A task that is aborted when this is dropped.
struct AbortOnDropTask<T>(tokio::task::JoinHandle<T>);

impl<T> Drop for AbortOnDropTask<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl McpRuntime {
    /// Starts the thread.
    ///
    /// # Errors
    /// `unavailable` if the system cannot start a thread.
    pub fn start() -> Result<Arc<Self>> {
        let refused = |error: std::io::Error| {
            let text = format!("cannot start the thread of the protocol: {error}");
            Error::new(ErrorKind::Unavailable, text)
        };
        let mut builder = Builder::new_current_thread();
        // The port to which a browser returns is the only one opened on this runtime.
        builder.enable_all().max_blocking_threads(BLOCKING_THREADS_MAX);
        let runtime = builder.build().map_err(refused)?;
        let spawner = McpSpawner(runtime.handle().clone());
        let (stop, stopped) = oneshot::channel::<()>();
        let (end, ended) = oneshot::channel::<()>();
        let thread = move || {
            // Dropping the sender stops it as well.
            let _ = runtime.block_on(stopped);
            runtime.shutdown_background();
            let _ = end.send(());
        };
        std::thread::Builder::new().name("mcp".to_owned()).spawn(thread).map_err(refused)?;
        let (stop, ended) = (Mutex::new(Some(stop)), Mutex::new(Some(ended)));
        Ok(Arc::new(Self { spawner, stop, ended }))
    }

    /// Returns the runtime's spawner.
    pub fn spawner(&self) -> McpSpawner {
        self.spawner.clone()
    }

    /// Stops the thread and waits until it has ended.
    pub async fn stop(&self) {
        drop(self.stop.lock().take());
        let ended = self.ended.lock().take();
        if let Some(ended) = ended {
            let _ = ended.await;
        }
    }
}

impl McpSpawner {
    /// Returns a spawner for the current runtime.
    pub fn from_current_runtime() -> Self {
        Self(Handle::current())
    }

    /// Runs a task in the background.
    pub fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        // The task ends with the runtime, and no one waits for it.
        drop(self.0.spawn(work));
    }

    /// Runs a task on the runtime and waits for its result on any executor. Dropping the future
    /// aborts the task.
    ///
    /// # Errors
    /// `unavailable` if the runtime has ended.
    pub async fn run_on_runtime<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T> {
        let mut waited = AbortOnDropTask(self.0.spawn(work));
        (&mut waited.0).map(|ended| ended.map_err(|_| runtime_gone_error())).await
    }
}

/// Returns the error after the runtime's end.
pub fn runtime_gone_error() -> Error {
    Error::new(ErrorKind::Unavailable, "the plugin was closed, or its work panicked")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn spawned_work_runs_and_ends_with_the_runtime() {
        let runtime = McpRuntime::start().unwrap();
        let spawner = runtime.spawner();
        let answer = futures_util::FutureExt::now_or_never(async { 1 });
        assert_eq!(answer, Some(1));
        let block = Builder::new_current_thread().build().unwrap();
        assert_eq!(block.block_on(spawner.run_on_runtime(async { 2 })).unwrap(), 2);
        let (alive, gone) = oneshot::channel::<()>();
        spawner.spawn(async move {
            let _alive = alive;
            tokio::time::sleep(Duration::from_secs(3600)).await;
        });
        block.block_on(runtime.stop());
        assert!(block.block_on(gone).is_err());
        assert!(block.block_on(spawner.run_on_runtime(async { 3 })).is_err());
    }

    #[test]
    fn dropping_a_wait_ends_the_work() {
        let runtime = McpRuntime::start().unwrap();
        let spawner = runtime.spawner();
        let (alive, gone) = oneshot::channel::<()>();
        let work = async move {
            let _alive = alive;
            std::future::pending::<()>().await;
        };
        let block = Builder::new_current_thread().build().unwrap();
        let waiting = Box::pin(spawner.run_on_runtime(work));
        block.block_on(async {
            assert!(waiting.now_or_never().is_none());
        });
        assert!(block.block_on(gone).is_err());
    }
}
