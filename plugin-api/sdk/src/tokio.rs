//! Runs futures of libraries that need tokio, such as database clients. Needs the feature `tokio`.
//!
//! The host polls a plugin on its own executor, where tokio has no runtime. [`run`] moves a future
//! to a runtime that belongs only to the plugin, and waits for it there.

use std::future::Future;
use std::pin::Pin;
use std::sync::OnceLock;
use std::task::{Context, Poll};

use ::tokio::runtime::{Builder, Runtime};
use ::tokio::task::JoinHandle;
use jaato_types::{Error, ErrorKind, Result};

use crate::fence::FencedFuture;

/// The threads of a plugin's runtime. They only drive futures, because blocking work has its own.
const THREADS: usize = 2;

/// Runs a future on the plugin's tokio runtime, which starts with the first one. Dropping the
/// returned future, for example when the user cancels the call, cancels it.
///
/// ```
/// # #[cfg(feature = "tokio")] {
/// use jaato_plugin_sdk::prelude::*;
///
/// async fn first_byte(address: String) -> Result<u8> {
///     jaato_plugin_sdk::tokio::run(async move {
///         let failed = |error: std::io::Error| Error::failed(error.to_string());
///         let stream = tokio::net::TcpStream::connect(address).await.map_err(failed)?;
///         stream.readable().await.map_err(failed)?;
///         let mut byte = [0];
///         stream.try_read(&mut byte).map_err(failed)?;
///         Ok(byte[0])
///     })
///     .await
/// }
/// # }
/// ```
///
/// # Errors
/// The future's error, or `plugin_panicked` if it panics.
pub async fn run<T: Send + 'static>(
    work: impl Future<Output = Result<T>> + Send + 'static,
) -> Result<T> {
    TokioTask(plugin_runtime()?.spawn(FencedFuture::new(work))).await
}

/// A future on the runtime. Dropping it cancels it.
struct TokioTask<T>(JoinHandle<Result<Result<T>>>);

impl<T> Future for TokioTask<T> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // The fence has caught a panic, and no one but this future cancels the task.
        let cancelled = |_| Err(Error::cancelled());
        let answer = Pin::new(&mut self.0).poll(cx);
        answer.map(|ended| ended.unwrap_or_else(cancelled).and_then(|answer| answer))
    }
}

impl<T> Drop for TokioTask<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Returns the plugin's runtime. It lasts as long as the process, as the plugin does.
fn plugin_runtime() -> Result<&'static Runtime> {
    static RUNTIME: OnceLock<std::result::Result<Runtime, String>> = OnceLock::new();
    let started = RUNTIME.get_or_init(|| {
        let mut builder = Builder::new_multi_thread();
        let builder = builder.worker_threads(THREADS).thread_name("jaato-plugin-tokio");
        builder.enable_all().build().map_err(|error| error.to_string())
    });
    started.as_ref().map_err(|why| {
        let text = format!("cannot start the plugin's tokio runtime: {why}");
        Error::new(ErrorKind::Unavailable, text)
    })
}
