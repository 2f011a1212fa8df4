//! Turns: of those who want to make one thing, one does at a time, and the others wait.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

/// Whose turn it is, by name.
#[derive(Default)]
pub(super) struct Turns(Mutex<HashMap<String, Vec<Waker>>>);

/// A turn. It ends when this is dropped.
pub(super) struct Turn<'a> {
    turns: &'a Turns,
    name: &'a str,
}

impl Turns {
    /// Waits for a turn. Dropping the wait gives it up.
    pub(super) async fn wait<'a>(&'a self, name: &'a str) -> Turn<'a> {
        poll_fn(|cx| {
            let mut waiting = self.lock();
            match waiting.get_mut(name) {
                None => {
                    waiting.insert(name.to_owned(), Vec::new());
                    Poll::Ready(Turn { turns: self, name })
                }
                Some(waiting) => {
                    if !waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
                        waiting.push(cx.waker().clone());
                    }
                    Poll::Pending
                }
            }
        })
        .await
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Vec<Waker>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let waiting = self.turns.lock().remove(self.name);
        // All of them: one may be gone meanwhile, and would not pass it on.
        waiting.into_iter().flatten().for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    use std::task::{Context, Wake};

    use super::*;

    #[derive(Default)]
    struct Counter(AtomicUsize);

    impl Wake for Counter {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Relaxed);
        }
    }

    #[test]
    fn one_has_the_turn_and_all_who_wait_are_woken_at_its_end() {
        let turns = Turns::default();
        let woken = Arc::new(Counter::default());
        let waker = Waker::from(Arc::clone(&woken));
        let cx = &mut Context::from_waker(&waker);
        let Poll::Ready(first) = pin!(turns.wait("a")).poll(cx) else { panic!("it is free") };
        let mut second = pin!(turns.wait("a"));
        assert!(second.as_mut().poll(cx).is_pending());
        assert!(second.as_mut().poll(cx).is_pending());
        assert!(pin!(turns.wait("b")).poll(cx).is_ready(), "another name is another's turn");
        drop(first);
        assert_eq!(woken.0.load(Relaxed), 1);
        assert!(second.as_mut().poll(cx).is_ready());
    }

    #[test]
    fn who_gave_up_waiting_does_not_keep_the_turn() {
        let turns = Turns::default();
        let cx = &mut Context::from_waker(Waker::noop());
        let Poll::Ready(first) = pin!(turns.wait("a")).poll(cx) else { panic!("it is free") };
        {
            let mut gone = pin!(turns.wait("a"));
            assert!(gone.as_mut().poll(cx).is_pending());
        }
        drop(first);
        assert!(pin!(turns.wait("a")).poll(cx).is_ready());
    }
}
