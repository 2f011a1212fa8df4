//! Lets others run while an answer comes faster than it is read.

use std::future::poll_fn;
use std::task::Poll;

/// Returns at the next poll. Bytes that are always there already would make one poll of an answer
/// of many megabytes, and a poll that takes long is reported as one that blocks.
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
