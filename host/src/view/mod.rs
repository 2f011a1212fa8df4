//! Shows a session's events: as text for people or as JSON lines.
//!
//! The session hands its events over and goes on; a thread of the view's own writes them, so that a
//! slow terminal delays nothing but itself. One that takes nothing at all costs no more than a
//! bound of memory, and keeps nobody from ending jaato.

mod agents;
mod calls;
mod json;
mod people;
mod plan;
mod queue;
mod result;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use jaato_runtime::session_loop::{Cancel, EventSink};
use jaato_runtime::types::{Event, EventEnvelope};
use parking_lot::Mutex;
use tokio::sync::oneshot;

use self::queue::{Message, Queue};
use crate::args::OutputForm;
use crate::exit::{CommandFailure, Exit};
use crate::report;
use crate::terminal::{self, OpenQuestion};

/// How long a terminal that takes nothing is waited for once the person has cancelled.
const PATIENCE: Duration = Duration::from_secs(1);

/// Takes events and shows them.
pub struct View {
    queue: Arc<Queue>,
    /// What the thread ended with.
    ended: Mutex<Option<oneshot::Receiver<Option<io::Error>>>>,
    form: OutputForm,
    /// Whether a person is not told when a request is tried again.
    hides_retries: AtomicBool,
}

/// How much of what was to be shown is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// All of it, or as much as somebody read.
    Whole,
    /// The person has cancelled, and the terminal takes no more.
    Part,
}

impl Shown {
    /// Returns the exit code of what was done, which is not that where the person has cancelled the
    /// showing.
    pub fn exit(self, exit: Exit) -> Exit {
        match self {
            Self::Whole => exit,
            Self::Part => Exit::Cancelled,
        }
    }
}

/// Writes events, one after the other.
trait Writer: Send {
    /// Writes one event.
    fn event(&mut self, envelope: &EventEnvelope) -> io::Result<()>;

    /// Ends what is half drawn (a line, a spinner).
    fn settle(&mut self) -> io::Result<()>;

    /// Takes away what moves and ends the row, so that something else may be drawn; a part of an
    /// answer that is not drawn yet stays so.
    fn pause(&mut self) -> io::Result<()>;

    /// Shows what goes on, where something does.
    fn go_on(&mut self);

    /// Notes how often a request is tried in all.
    fn attempts(&mut self, attempts_max: u32);

    /// Tells a person no more how tasks end.
    fn hide_ends_of_tasks(&mut self);
}

/// The view writes nothing while this is there.
#[must_use]
pub struct Paused(#[expect(dead_code, reason = "its drop is what counts")] oneshot::Sender<()>);

impl View {
    /// Starts a view. When nobody reads the output any more (`| head`), it cancels.
    pub fn start(form: OutputForm, cancel: Cancel) -> Arc<Self> {
        let writer: Box<dyn Writer> = match form {
            OutputForm::Text => Box::new(people::People::new()),
            OutputForm::Json => Box::new(json::Lines),
        };
        let queue = Arc::new(Queue::new(form));
        let (done, ended) = oneshot::channel();
        let messages = Arc::clone(&queue);
        let thread = std::thread::Builder::new().name("jaato-view".into()).spawn(move || {
            // Nobody may be waiting for it.
            let _ = done.send(write_all(writer, &messages, &cancel));
        });
        if thread.is_err() {
            queue.close();
        }
        let ended = Mutex::new(Some(ended));
        let hides_retries = AtomicBool::new(false);
        Arc::new(Self { queue, ended, form, hides_retries })
    }

    /// Returns true if a user sees both outputs of this view on a terminal.
    pub fn is_seen(&self) -> bool {
        let is_seen = terminal::output_is_terminal() && terminal::errors_are_terminal();
        is_seen && self.form == OutputForm::Text
    }

    /// Shows a person what the model thinks too; programs are told it in any case.
    pub fn show_thoughts(&self) {
        self.queue.take_thoughts();
    }

    /// Tells how often a request is tried in all.
    pub fn tell_attempts(&self, attempts_max: u32) {
        self.queue.push(Message::Attempts(attempts_max));
    }

    /// Tells a person no more when a request is tried again; programs are told all.
    pub fn hide_retries(&self) {
        self.hides_retries.store(self.form == OutputForm::Text, Relaxed);
    }

    /// Tells a person no more how tasks end, where that is said in other words, but for the last of
    /// their output; programs are told all.
    pub fn hide_ends_of_tasks(&self) {
        self.queue.push(Message::HideEndsOfTasks);
    }

    /// Waits until everything so far is written.
    pub async fn settle(&self) {
        let (done, wait) = oneshot::channel();
        if self.queue.push(Message::Settle(done)) {
            // An error means that the thread is gone: nothing is left to wait for.
            let _ = wait.await;
        }
    }

    /// Waits until everything so far is written, and opens a question; none when the view has
    /// ended.
    pub async fn open_question(&self) -> Option<OpenQuestion> {
        let (open, opened) = oneshot::channel();
        if !self.queue.push(Message::Ask(open)) {
            return None;
        }
        opened.await.ok()
    }

    /// Takes away what moves, and opens a line that is typed while the session goes on; none when
    /// the view has ended.
    pub async fn open_line(&self) -> Option<OpenQuestion> {
        let (open, opened) = oneshot::channel();
        if !self.queue.push(Message::Type(open)) {
            return None;
        }
        opened.await.ok()
    }

    /// Has the view write nothing for as long as what is returned is there: something else is
    /// written meanwhile.
    pub async fn paused(&self) -> Paused {
        let ((done, wait), (end, ended)) = (oneshot::channel(), oneshot::channel());
        if self.queue.push(Message::Pause(done, ended)) {
            // An error means that the thread is gone: it writes nothing.
            let _ = wait.await;
        }
        Paused(end)
    }

    /// Shows what goes on, where something does.
    pub fn go_on(&self) {
        self.queue.push(Message::GoOn);
    }

    /// Writes what is left and ends the view. What takes no more is waited for until `cancel`, and
    /// a moment longer.
    ///
    /// # Errors
    /// When standard output could not be written.
    pub async fn finish(&self, cancel: &Cancel) -> Result<Shown, CommandFailure> {
        self.queue.close();
        let ended = self.ended.lock().take();
        let Some(ended) = ended else { return Ok(Shown::Whole) };
        let patience = async {
            cancel.cancelled().await;
            tokio::time::sleep(PATIENCE).await;
        };
        tokio::select! {
            biased;
            // A panic of the view was printed by then; the exit code is the task's.
            trouble = ended => match trouble.ok().flatten().and_then(report::unwritable) {
                Some(failure) => Err(failure),
                None => Ok(Shown::Whole),
            },
            () = patience => {
                terminal::give_up();
                Ok(Shown::Part)
            }
        }
    }
}

impl EventSink for View {
    fn event(&self, envelope: EventEnvelope) {
        let is_quiet = matches!(envelope.event, Event::Retry { answer_restarts: false, .. });
        if is_quiet && self.hides_retries.load(Relaxed) {
            return;
        }
        self.queue.event(envelope);
    }
}

/// Writes until the queue is closed and empty; returns why standard output took no more, where it
/// did not.
fn write_all(mut writer: Box<dyn Writer>, queue: &Queue, cancel: &Cancel) -> Option<io::Error> {
    let mut trouble = None;
    while let Some(message) = queue.next() {
        let is_open = trouble.is_none();
        let written = match message {
            Message::Event(envelope) if is_open => writer.event(&envelope),
            Message::Dropped(dropped) if is_open => writer.event(&dropped.notice()),
            Message::Event(_) | Message::Dropped(_) => Ok(()),
            Message::Settle(done) => {
                let settled = writer.settle();
                // Whoever asked may have given up.
                let _ = done.send(());
                settled
            }
            Message::Ask(open) => {
                let settled = writer.settle();
                // Opened by this thread, so that nothing of its own comes between. One that nobody
                // takes closes again.
                let _ = open.send(terminal::open_question());
                settled
            }
            Message::Type(open) => {
                let paused = writer.pause();
                let _ = open.send(terminal::open_question());
                paused
            }
            Message::Pause(done, ended) => {
                let paused = writer.pause();
                let _ = done.send(());
                // It ends by being dropped.
                let _ = ended.blocking_recv();
                writer.go_on();
                paused
            }
            Message::Attempts(attempts_max) => {
                writer.attempts(attempts_max);
                Ok(())
            }
            Message::HideEndsOfTasks => {
                writer.hide_ends_of_tasks();
                Ok(())
            }
            Message::GoOn => {
                if is_open {
                    writer.go_on();
                }
                Ok(())
            }
        };
        if let Err(error) = written
            && is_open
        {
            trouble = Some(error);
            cancel.cancel();
        }
    }
    let last = writer.settle().err();
    trouble.or(last)
}
