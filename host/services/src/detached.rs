//! Work of the session on behalf of a service. It runs on the session's runtime, not on a plugin
//! thread.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use jaato_session::Cancel;
use jaato_types::{Error, ErrorKind, Result};
use tokio::task::JoinHandle;

/// Started work. Dropping it cancels the work, which then ends on its own and reports that.
pub struct DetachedWork<T> {
    cancel: Cancel,
    work: JoinHandle<Result<T>>,
}

impl<T: Send + 'static> DetachedWork<T> {
    /// Starts the work and passes it the cancel flag.
    pub fn start<F>(work: impl FnOnce(Cancel) -> F) -> Self
    where
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let cancel = Cancel::new();
        let work = tokio::spawn(work(cancel.clone()));
        Self { cancel, work }
    }
}

impl<T> Future for DetachedWork<T> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.work).poll(cx).map(|ended| {
            ended.unwrap_or_else(|error| Err(Error::new(ErrorKind::HostBug, error.to_string())))
        })
    }
}

impl<T> Drop for DetachedWork<T> {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}
