//! A flag that says "stop" and wakes whoever waits for it.
//!
//! Setting it is idempotent and cannot be undone: each turn has a token of its own. A child hears its
//! parents; cancelling a child leaves them alone.

use std::sync::Arc;

use futures_util::future::{FutureExt, select_all};
use tokio::sync::watch;

/// A token that is cancelled at most once. Clones are the same token.
#[derive(Debug, Clone)]
pub struct Cancel {
    /// The token's own flag first, then those of its ancestors; never empty.
    flags: Vec<Arc<watch::Sender<bool>>>,
}

impl Cancel {
    /// Makes a token that nobody has cancelled.
    pub fn new() -> Self {
        Self { flags: vec![new_flag()] }
    }

    /// Makes a token that is cancelled together with this one, and can be cancelled alone.
    #[must_use]
    pub fn child(&self) -> Self {
        let mut flags = Vec::with_capacity(self.flags.len() + 1);
        flags.push(new_flag());
        flags.extend(self.flags.iter().cloned());
        Self { flags }
    }

    /// Cancels it; from any thread, as often as one likes.
    pub fn cancel(&self) {
        if let Some(own) = self.flags.first() {
            own.send_replace(true);
        }
    }

    /// Tells whether it or an ancestor is cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.flags.iter().any(|flag| *flag.borrow())
    }

    /// Waits until it or an ancestor is cancelled; ready at once if it already is.
    pub async fn cancelled(&self) {
        let waits = self.flags.iter().map(|flag| {
            let mut watched = flag.subscribe();
            async move {
                // The sender lives as long as this token, so the wait ends by the flag alone.
                let _flag = watched.wait_for(|set| *set).await;
            }
            .boxed()
        });
        select_all(waits).await;
    }
}

impl Default for Cancel {
    fn default() -> Self {
        Self::new()
    }
}

fn new_flag() -> Arc<watch::Sender<bool>> {
    Arc::new(watch::Sender::new(false))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_hears_its_parents_and_not_the_other_way_round() {
        let parent = Cancel::new();
        let child = parent.child();
        let grandchild = child.child();
        child.cancel();
        assert_eq!([&parent, &child, &grandchild].map(Cancel::is_cancelled), [false, true, true]);
    }

    #[tokio::test]
    async fn waiting_ends_when_an_ancestor_is_cancelled() {
        let parent = Cancel::new();
        let child = parent.child();
        let wait = child.cancelled();
        tokio::pin!(wait);
        assert!(wait.as_mut().now_or_never().is_none());
        parent.cancel();
        wait.await;
        child.cancelled().await;
    }
}
