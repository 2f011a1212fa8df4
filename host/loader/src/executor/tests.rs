//! Threads that read messages while they have no task.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{ThreadId, current};
use std::time::Duration;

use jaato_types::PluginName;
use parking_lot::Mutex;
use tokio::runtime::{Builder, Runtime};

use super::{Executor, Job};
use crate::watch::{Report, Watch};

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(30);

type Message = Box<dyn FnOnce() + Send>;

/// Keeps what the loader says went wrong.
#[derive(Default)]
struct Troubles(Mutex<Vec<String>>);

impl Watch for Troubles {
    fn log(&self, _plugin: &PluginName, _level: u8, _text: &str) {}

    fn misbehaved(&self, _report: &Report) {}

    fn trouble(&self, text: &str) {
        self.0.lock().push(text.to_owned());
    }
}

/// An executor whose threads read messages off a channel.
struct Reading {
    executor: Executor,
    messages: Sender<Message>,
    /// Told when nobody will read any more.
    over: Receiver<()>,
    troubles: Arc<Troubles>,
    _runtime: Runtime,
}

impl Reading {
    fn new() -> Self {
        let runtime = Builder::new_current_thread().build().unwrap();
        let troubles = Arc::new(Troubles::default());
        let executor =
            Executor::new(runtime.handle().clone(), Arc::clone(&troubles) as Arc<dyn Watch>);
        let (messages, came) = channel::<Message>();
        let (over_sender, over) = channel();
        executor.read(move || {
            let _over = &over_sender;
            came.recv().map(|message| message()).is_ok()
        });
        Self { executor, messages, over, troubles, _runtime: runtime }
    }

    fn say(&self, message: impl FnOnce() + Send + 'static) {
        self.messages.send(Box::new(message)).unwrap();
    }

    /// Has a message begin a task that does this in its first poll. It is told who read the
    /// message.
    fn begin(&self, poll: impl FnOnce(ThreadId) + Send + 'static) {
        let executor = self.executor.clone();
        self.say(move || {
            let (guest, reader) = (executor.shared().hop_guest(), current().id());
            executor.spawn(&guest, async move { poll(reader) }).detach();
        });
    }
}

#[test]
fn what_a_message_wakes_is_polled_by_the_thread_that_read_it() {
    let reading = Reading::new();
    let (sender, polled) = channel();
    let mut by_reader = 0;
    for _ in 0..100 {
        let sender = sender.clone();
        reading.begin(move |reader| sender.send(reader == current().id()).unwrap());
        by_reader += usize::from(polled.recv_timeout(PATIENCE).unwrap());
    }
    // Where the watchdog looks at the very moment, another thread may be faster.
    assert!(by_reader > 50, "{by_reader} of 100");
}

#[test]
fn while_a_poll_blocks_another_thread_reads() {
    let reading = Reading::new();
    // More of them than there are threads that wait for messages at the beginning.
    for _ in 0..2 {
        let (release, blocks) = channel();
        let (done, is_done) = channel();
        reading.begin(move |_| done.send(blocks.recv_timeout(PATIENCE)).unwrap());
        reading.say(move || release.send(()).unwrap());
        assert_eq!(is_done.recv_timeout(PATIENCE).unwrap(), Ok(()));
    }
}

#[test]
fn while_blocking_work_is_done_another_thread_reads() {
    let reading = Reading::new();
    for _ in 0..20 {
        let (release, blocks) = channel();
        let (done, is_done) = channel();
        let executor = reading.executor.clone();
        reading.begin(move |_| {
            let work = Box::new(move || done.send(blocks.recv_timeout(PATIENCE)).unwrap());
            let work = Job { work, state: Arc::default() };
            assert!(executor.submit(&executor.shared().hop_guest(), work));
        });
        reading.say(move || release.send(()).unwrap());
        assert_eq!(is_done.recv_timeout(PATIENCE).unwrap(), Ok(()));
    }
}

#[test]
fn after_the_end_of_messages_tasks_are_polled_as_ever() {
    let Reading { executor, messages, over, troubles, _runtime } = Reading::new();
    drop(messages);
    assert_eq!(over.recv_timeout(PATIENCE), Err(RecvTimeoutError::Disconnected));
    let (poller, polled) = channel();
    let task =
        executor.spawn(&executor.shared().hop_guest(), async move { poller.send(()).unwrap() });
    polled.recv_timeout(PATIENCE).unwrap();
    drop(task);
    assert!(troubles.0.lock().is_empty());
}

#[test]
fn a_message_that_panics_ends_the_reading_and_is_told() {
    let reading = Reading::new();
    reading.say(|| panic!("a bug of the host"));
    assert_eq!(reading.over.recv_timeout(PATIENCE), Err(RecvTimeoutError::Disconnected));
    assert_eq!(reading.troubles.0.lock().len(), 1);
}
