//! What a test waits for: a channel that lets the host's time skip for just as long.

use std::sync::{Arc, mpsc};
use std::time::Duration;

use parking_lot::Mutex;

use super::executor::Executor;
use super::held::WaitToken;

/// Whether a test waits for something that has not come yet: as long, time may skip.
#[derive(Default)]
struct Wanted(Mutex<Want>);

#[derive(Default)]
struct Want {
    is_satisfied: bool,
    token: Option<WaitToken>,
}

impl Wanted {
    fn begin(&self, executor: &Executor) {
        let mut want = self.0.lock();
        // Under the lock, so that time does not skip for what is there already.
        if !want.is_satisfied {
            want.token = Some(executor.begin_wait());
        }
    }

    fn satisfy(&self) {
        let mut want = self.0.lock();
        want.is_satisfied = true;
        want.token = None;
    }
}

/// Sends one thing from the executor to the test. Time stands still from then on, so that what a
/// test sees does not hang on how fast it wakes.
pub(crate) struct Sender<T> {
    channel: mpsc::Sender<T>,
    wanted: Arc<Wanted>,
}

pub(crate) struct Receiver<T> {
    channel: mpsc::Receiver<T>,
    wanted: Arc<Wanted>,
}

pub(crate) fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let (sender, receiver) = mpsc::channel();
    let wanted = Arc::new(Wanted::default());
    let sender = Sender { channel: sender, wanted: Arc::clone(&wanted) };
    (sender, Receiver { channel: receiver, wanted })
}

impl<T> Sender<T> {
    pub(crate) fn send(self, value: T) {
        self.wanted.satisfy();
        // Nobody waits any more after the deadline.
        let _ = self.channel.send(value);
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        self.wanted.satisfy();
    }
}

impl<T> Receiver<T> {
    /// Waits; nothing when it takes too long, or when nothing will come any more.
    pub(super) fn receive(&self, executor: &Executor, patience: Duration) -> Option<T> {
        self.wanted.begin(executor);
        let received = self.channel.recv_timeout(patience);
        self.wanted.satisfy();
        received.ok()
    }
}
