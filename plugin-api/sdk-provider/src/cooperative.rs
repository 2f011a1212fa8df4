//! Lets other tasks run while an answer arrives faster than it is read.

use std::future::poll_fn;
use std::task::Poll;

/// Returns at the next poll. If bytes were always available, a single poll would read an answer of
/// many megabytes, and the host reports a long poll as blocking.
pub async fn yield_now() {
    let mut has_yielded = false;
    poll_fn(|task| {
        if has_yielded {
            return Poll::Ready(());
        }
        has_yielded = true;
        task.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
