//! A value that tasks can watch for changes, under any executor.

use std::future::poll_fn;
use std::task::{Poll, Waker};

use parking_lot::{Mutex, MutexGuard};

/// A value and the wakers of the tasks that watch it.
pub(super) struct WatchedValue<T>(Mutex<(T, Vec<Waker>)>);

impl<T> WatchedValue<T> {
    pub(super) fn new(value: T) -> Self {
        Self(Mutex::new((value, Vec::new())))
    }

    /// Reads the value.
    pub(super) fn with_value<R>(&self, look: impl FnOnce(&T) -> R) -> R {
        look(&self.lock().0)
    }

    /// Changes the value and wakes the tasks that watch it.
    pub(super) fn change_value<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        let (changed, waiting) = {
            let mut locked = self.lock();
            let (value, waiting) = &mut *locked;
            (change(value), std::mem::take(waiting))
        };
        waiting.into_iter().for_each(Waker::wake);
        changed
    }

    /// Waits until `look` returns a result.
    pub(super) async fn wait_until<R>(&self, look: impl Fn(&T) -> Option<R>) -> R {
        poll_fn(|cx| {
            let mut locked = self.lock();
            match look(&locked.0) {
                Some(found) => Poll::Ready(found),
                None => {
                    if !locked.1.iter().any(|waker| waker.will_wake(cx.waker())) {
                        locked.1.push(cx.waker().clone());
                    }
                    Poll::Pending
                }
            }
        })
        .await
    }

    fn lock(&self) -> MutexGuard<'_, (T, Vec<Waker>)> {
        self.0.lock()
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    use std::task::{Context, Wake};

    use super::*;

    struct WakeCounter(AtomicUsize);

    impl Wake for WakeCounter {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Relaxed);
        }
    }

    #[test]
    fn waiter_is_woken_once_per_change_and_sees_the_value() {
        let (watched, woken) = (WatchedValue::new(0), Arc::new(WakeCounter(AtomicUsize::new(0))));
        let waker = Waker::from(Arc::clone(&woken));
        let mut cx = Context::from_waker(&waker);
        let mut wait = pin!(watched.wait_until(|value| (*value == 2).then_some("two")));
        assert!(wait.as_mut().poll(&mut cx).is_pending());
        assert!(wait.as_mut().poll(&mut cx).is_pending());
        watched.change_value(|value| *value = 1);
        assert_eq!(woken.0.load(Relaxed), 1);
        assert!(wait.as_mut().poll(&mut cx).is_pending());
        watched.change_value(|value| *value = 2);
        assert_eq!(woken.0.load(Relaxed), 2);
        assert_eq!(wait.as_mut().poll(&mut cx), Poll::Ready("two"));
    }
}
