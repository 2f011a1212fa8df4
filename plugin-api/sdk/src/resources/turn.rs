//! Turns: of those who want to make one thing, one does at a time, and the others wait. One that
//! would wait for itself is told so.
//!
//! What is made is known while it is polled, by a list of this thread: what waits within that poll
//! is a part of it. Work that is handed to another task is not seen.

use std::cell::RefCell;
use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Poll, Waker};

use jaato_types::{Error, ErrorKind, Result};
use parking_lot::{Mutex, MutexGuard};

thread_local! {
    /// What is being polled here that makes something: whose turns, and the name.
    static MAKING: RefCell<Vec<(usize, Arc<str>)>> = const { RefCell::new(Vec::new()) };
}

/// Whose turn it is, by name.
#[derive(Default)]
pub(super) struct Turns(Mutex<State>);

#[derive(Default)]
struct State {
    /// Who waits, by the name that is being made.
    waiting: HashMap<String, Vec<Waker>>,
    /// What is being made, and what that waits for.
    wants: Vec<(Arc<str>, String)>,
}

/// A turn. It ends when this is dropped.
pub(super) struct Turn<'a> {
    turns: &'a Turns,
    name: &'a str,
}

/// Something that is being made waits for a name. The wait ends when this is dropped.
struct Wait<'a> {
    turns: &'a Turns,
    /// All that is being made around it, the outermost first.
    makers: Vec<Arc<str>>,
    name: &'a str,
}

impl Turns {
    /// Waits for a turn. Dropping the wait gives it up.
    ///
    /// # Errors
    /// `conflict` where the turn would never come: what has it waits for the one that asks.
    pub(super) async fn wait<'a>(&'a self, name: &'a str) -> Result<Turn<'a>> {
        let mut wait = None;
        poll_fn(|cx| {
            let mut state = self.lock();
            let Some(waiting) = state.waiting.get_mut(name) else {
                state.waiting.insert(name.to_owned(), Vec::new());
                return Poll::Ready(Ok(Turn { turns: self, name }));
            };
            if !waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
                waiting.push(cx.waker().clone());
            }
            if wait.is_none() {
                let makers = self.makers();
                if let Some(circle) = makers.iter().find_map(|maker| state.circle(maker, name)) {
                    return Poll::Ready(Err(circle));
                }
                state.wants.extend(makers.iter().map(|maker| (Arc::clone(maker), name.to_owned())));
                wait = Some(Wait { turns: self, makers, name });
            }
            Poll::Pending
        })
        .await
    }

    /// Lists what is being made where this is called, the outermost first.
    fn makers(&self) -> Vec<Arc<str>> {
        let id = self.id();
        MAKING.with_borrow(|all| {
            all.iter().filter(|(of, _)| *of == id).map(|(_, name)| Arc::clone(name)).collect()
        })
    }

    fn id(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }
}

impl State {
    /// Tells what is wrong where `wanted` waits for `maker`, by whatever way.
    fn circle(&self, maker: &str, wanted: &str) -> Option<Error> {
        let (mut reached, mut next) = (vec![wanted], 0);
        while next < reached.len() {
            let making = reached[next];
            if making == maker {
                let text =
                    format!("the resource `{maker}` waits for itself: its making wants `{wanted}`");
                return Some(Error::new(ErrorKind::Conflict, text));
            }
            let wants = self.wants.iter().filter(|(of, _)| &**of == making);
            for (_, name) in wants {
                if !reached.contains(&name.as_str()) {
                    reached.push(name);
                }
            }
            next += 1;
        }
        None
    }
}

impl Turn<'_> {
    /// Makes what the turn is for.
    pub(super) async fn making<T>(&self, make: impl Future<Output = T>) -> T {
        /// Takes the last one off, also where the poll panics.
        struct Entered;
        impl Drop for Entered {
            fn drop(&mut self) {
                MAKING.with_borrow_mut(|all| drop(all.pop()));
            }
        }
        let (id, name) = (self.turns.id(), Arc::<str>::from(self.name));
        let mut make = pin!(make);
        poll_fn(|cx| {
            MAKING.with_borrow_mut(|all| all.push((id, Arc::clone(&name))));
            let _entered = Entered;
            make.as_mut().poll(cx)
        })
        .await
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let waiting = self.turns.lock().waiting.remove(self.name);
        // All of them: one may be gone meanwhile, and would not pass it on.
        waiting.into_iter().flatten().for_each(Waker::wake);
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        let mut state = self.turns.lock();
        for maker in &self.makers {
            let is_it = |(of, name): &(Arc<str>, String)| of == maker && name == self.name;
            // One of them: it may be wanted twice at a time.
            if let Some(at) = state.wants.iter().position(is_it) {
                state.wants.swap_remove(at);
            }
        }
    }
}

#[cfg(test)]
mod tests {
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
        let Poll::Ready(Ok(first)) = pin!(turns.wait("a")).poll(cx) else { panic!("it is free") };
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
        let Poll::Ready(Ok(first)) = pin!(turns.wait("a")).poll(cx) else { panic!("it is free") };
        {
            let mut gone = pin!(turns.wait("a"));
            assert!(gone.as_mut().poll(cx).is_pending());
        }
        drop(first);
        assert!(pin!(turns.wait("a")).poll(cx).is_ready());
    }

    /// Makes one name, and another within that.
    async fn make(turns: &Turns, name: &str, within: &str) -> Result<()> {
        let turn = turns.wait(name).await?;
        turn.making(async {
            yield_once().await;
            turns.wait(within).await?.making(yield_once()).await;
            Ok(())
        })
        .await
    }

    async fn yield_once() {
        let mut has_yielded = false;
        poll_fn(|cx| {
            if std::mem::replace(&mut has_yielded, true) {
                return Poll::Ready(());
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }

    #[test]
    fn one_that_wants_itself_is_told_so_at_once() {
        let turns = Turns::default();
        let cx = &mut Context::from_waker(Waker::noop());
        let mut own = pin!(make(&turns, "a", "a"));
        assert!(own.as_mut().poll(cx).is_pending());
        let Poll::Ready(Err(error)) = own.as_mut().poll(cx) else { panic!("it waits for itself") };
        assert_eq!(error.kind, ErrorKind::Conflict);
        assert_eq!(error.message, "the resource `a` waits for itself: its making wants `a`");
    }

    #[test]
    fn two_that_want_each_other_are_told_and_no_others() {
        let turns = Turns::default();
        let cx = &mut Context::from_waker(Waker::noop());
        let (mut one, mut other) = (pin!(make(&turns, "a", "b")), pin!(make(&turns, "b", "a")));
        let mut third = pin!(make(&turns, "c", "a"));
        assert!(one.as_mut().poll(cx).is_pending() && other.as_mut().poll(cx).is_pending());
        assert!(third.as_mut().poll(cx).is_pending());
        assert!(one.as_mut().poll(cx).is_pending(), "`b` is being made by the other");
        assert!(third.as_mut().poll(cx).is_pending(), "it waits for `a`, and nobody for it");
        let Poll::Ready(Err(_)) = other.as_mut().poll(cx) else { panic!("a circle") };
        // With that `b` is free again.
        let mut polls = 0;
        while one.as_mut().poll(cx).is_pending() {
            polls += 1;
            assert!(polls < 10, "it ends");
        }
        while third.as_mut().poll(cx).is_pending() {
            polls += 1;
            assert!(polls < 20, "it ends");
        }
        let state = turns.lock();
        assert!(state.wants.is_empty() && state.waiting.is_empty());
    }
}
