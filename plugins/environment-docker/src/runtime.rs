//! The thread on which all communication with the engine runs.
//!
//! The engine's client needs tokio, which the boundary lacks. The client's futures run here, and
//! any executor may poll the futures that await their results. The thread ends with the last
//! handle.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread;
use std::time::Duration;

use jaato_plugin_sdk::types::{Error, ErrorKind, Result};
use parking_lot::Mutex;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// The maximum time for remaining work when the thread ends. Containers are removed before that, or
/// by the engine itself.
const WIND_DOWN: Duration = Duration::from_millis(100);

/// A handle to the thread.
#[derive(Clone)]
pub struct EngineRuntime {
    handle: Handle,
    thread: Arc<RuntimeThread>,
}

struct RuntimeThread {
    stop: Mutex<Option<oneshot::Sender<()>>>,
    ended: Mutex<Option<oneshot::Receiver<()>>>,
}

impl EngineRuntime {
    /// Starts the thread.
    ///
    /// # Errors
    /// `unavailable` if the system cannot create the thread or its event queue.
    pub fn start_thread() -> Result<Self> {
        let none =
            |error| Error::new(ErrorKind::Unavailable, format!("cannot start a thread: {error}"));
        let runtime = Builder::new_current_thread().enable_all().build().map_err(none)?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel();
        let (end, ended) = oneshot::channel();
        thread::Builder::new()
            .name("jaato-docker".to_owned())
            .spawn(move || {
                // The thread ends on a message as well as on a drop.
                let _ = runtime.block_on(stopped);
                runtime.shutdown_timeout(WIND_DOWN);
                // The receiver may be gone.
                let _ = end.send(());
            })
            .map_err(none)?;
        let thread = RuntimeThread { stop: Mutex::new(Some(stop)), ended: Mutex::new(Some(ended)) };
        Ok(Self { handle, thread: Arc::new(thread) })
    }

    /// Runs a future on the thread. Dropping the returned future drops it.
    ///
    /// # Errors
    /// The future's own error, `plugin_panicked` if it panicked, or `unavailable` if the thread has
    /// ended.
    pub async fn run_future<T: Send + 'static>(
        &self,
        future: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        match AbortOnDrop(self.handle.spawn(future)).await {
            Ok(answer) => answer,
            Err(error) if error.is_panic() => {
                let panic = error.into_panic();
                let text = panic
                    .downcast_ref::<String>()
                    .map(String::as_str)
                    .or_else(|| panic.downcast_ref::<&str>().copied());
                let text = format!("panicked: {}", text.unwrap_or("no words"));
                Err(Error::new(ErrorKind::PluginPanicked, text))
            }
            Err(_) => Err(Error::new(ErrorKind::Unavailable, "the environment was shut down")),
        }
    }

    /// Ends the thread and drops everything that runs on it. Returns a receiver for its end, or
    /// `None` on the second call.
    pub fn stop_thread(&self) -> Option<oneshot::Receiver<()>> {
        self.thread.stop.lock().take();
        self.thread.ended.lock().take()
    }
}

/// A task that is aborted when this is dropped.
struct AbortOnDrop<T>(JoinHandle<T>);

impl<T> Future for AbortOnDrop<T> {
    type Output = std::result::Result<T, tokio::task::JoinError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(context)
    }
}

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;
    use futures_util::future::pending;

    /// Runs a future without timers, like a plugin executor.
    fn block_on_future<T>(future: impl Future<Output = T>) -> T {
        Builder::new_current_thread().build().unwrap().block_on(future)
    }

    #[test]
    fn timers_work_without_a_tokio_executor() {
        let runtime = EngineRuntime::start_thread().unwrap();
        let answer = block_on_future(runtime.run_future(async {
            tokio::time::sleep(Duration::from_millis(1)).await;
            Ok(7)
        }));
        assert_eq!(answer.unwrap(), 7);
    }

    #[test]
    fn dropped_call_is_cancelled_on_the_runtime() {
        let runtime = EngineRuntime::start_thread().unwrap();
        let (kept, dropped) = oneshot::channel::<()>();
        let mut waiting = Box::pin(runtime.run_future(async move {
            let _kept = kept;
            pending::<Result<()>>().await
        }));
        assert!(waiting.as_mut().now_or_never().is_none());
        drop(waiting);
        assert!(block_on_future(dropped).is_err());
    }

    #[test]
    fn panic_fails_only_its_own_call() {
        let runtime = EngineRuntime::start_thread().unwrap();
        let error =
            block_on_future(runtime.run_future::<()>(async { panic!("moon") })).unwrap_err();
        assert_eq!(
            (error.kind, error.message.as_str()),
            (ErrorKind::PluginPanicked, "panicked: moon")
        );
        assert_eq!(block_on_future(runtime.run_future(async { Ok(1) })).unwrap(), 1);
    }

    #[test]
    fn stopped_runtime_refuses_later_calls() {
        let runtime = EngineRuntime::start_thread().unwrap();
        block_on_future(runtime.stop_thread().unwrap()).unwrap();
        assert!(runtime.stop_thread().is_none());
        let error = block_on_future(runtime.run_future(async { Ok(1) })).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Unavailable);
    }

    #[test]
    fn the_thread_ends_with_its_last_handle() {
        let runtime = EngineRuntime::start_thread().unwrap();
        let ended = runtime.thread.ended.lock().take().unwrap();
        drop(runtime.clone());
        assert_eq!(block_on_future(runtime.run_future(async { Ok(1) })).unwrap(), 1);
        drop(runtime);
        block_on_future(ended).unwrap();
    }
}
