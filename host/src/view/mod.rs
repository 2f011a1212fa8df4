//! Shows a session's events as text for users or as JSON lines.
//!
//! The session queues its events and continues. The view's own thread writes them, so that a slow
//! terminal delays only itself. A terminal that accepts nothing takes a bounded amount of memory
//! and does not prevent jaato from ending.

mod agents;
mod calls;
mod json;
mod plan;
mod queue;
mod result;
mod user_view;

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

/// How long to wait for a blocked terminal after the user has cancelled.
const PATIENCE: Duration = Duration::from_secs(1);

/// Receives events and shows them.
pub struct View {
    queue: Arc<Queue>,
    /// The error with which the thread ended, if any.
    ended: Mutex<Option<oneshot::Receiver<Option<io::Error>>>>,
    form: OutputForm,
    /// Whether retried requests are hidden from the user.
    hides_retries: AtomicBool,
}

/// Whether all output was shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// All output, or as much as the reader accepted.
    Whole,
    /// The user has cancelled, and the terminal accepts no more.
    Part,
}

impl Shown {
    /// Returns the exit code of the task, or `Cancelled` if the user cancelled its output.
    pub fn exit(self, exit: Exit) -> Exit {
        match self {
            Self::Whole => exit,
            Self::Part => Exit::Cancelled,
        }
    }
}

/// Writes events in sequence.
trait Writer: Send {
    /// Writes one event.
    fn event(&mut self, envelope: &EventEnvelope) -> io::Result<()>;

    /// Completes output that is half drawn (a line, a spinner).
    fn settle(&mut self) -> io::Result<()>;

    /// Removes the spinner and ends the row, so that other output may be drawn. A part of an answer
    /// that is not drawn yet is kept.
    fn pause(&mut self) -> io::Result<()>;

    /// Shows the running work, if there is any.
    fn go_on(&mut self);

    /// Sets the number of attempts for each request.
    fn attempts(&mut self, attempts_max: u32);

    /// Stops reporting finished background tasks to the user.
    fn hide_ends_of_tasks(&mut self);
}

/// The view writes nothing while this value exists.
#[must_use]
pub struct Paused(#[expect(dead_code, reason = "only its drop matters")] oneshot::Sender<()>);

impl View {
    /// Starts a view. It cancels when the reader closes the output (`| head`).
    pub fn start(form: OutputForm, cancel: Cancel) -> Arc<Self> {
        let writer: Box<dyn Writer> = match form {
            OutputForm::Text => Box::new(user_view::People::new()),
            OutputForm::Json => Box::new(json::Lines),
        };
        let queue = Arc::new(Queue::new(form));
        let (done, ended) = oneshot::channel();
        let messages = Arc::clone(&queue);
        let thread = std::thread::Builder::new().name("jaato-view".into()).spawn(move || {
            // The receiver may be gone.
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

    /// Returns true if a program reads the events.
    pub fn is_for_programs(&self) -> bool {
        self.form == OutputForm::Json
    }

    /// Shows the model's thoughts to the user, too. JSON output always contains them.
    pub fn show_thoughts(&self) {
        self.queue.take_thoughts();
    }

    /// Tells the view the number of attempts for each request.
    pub fn tell_attempts(&self, attempts_max: u32) {
        self.queue.push(Message::Attempts(attempts_max));
    }

    /// Hides retried requests from the user. JSON output contains all of them.
    pub fn hide_retries(&self) {
        self.hides_retries.store(self.form == OutputForm::Text, Relaxed);
    }

    /// Stops reporting finished background tasks to the user, except for the rest of their output,
    /// because the caller reports them in other words. JSON output contains all of them.
    pub fn hide_ends_of_tasks(&self) {
        self.queue.push(Message::HideEndsOfTasks);
    }

    /// Waits until all earlier events are written.
    pub async fn settle(&self) {
        let (done, wait) = oneshot::channel();
        if self.queue.push(Message::Settle(done)) {
            // An error means that the thread has ended, so there is nothing to wait for.
            let _ = wait.await;
        }
    }

    /// Waits until all earlier events are written, and opens a question. Returns `None` if the view
    /// has ended.
    pub async fn open_question(&self) -> Option<OpenQuestion> {
        let (open, opened) = oneshot::channel();
        if !self.queue.push(Message::Ask(open)) {
            return None;
        }
        opened.await.ok()
    }

    /// Removes the spinner and opens a line for the user to type in while the session continues.
    /// Returns `None` if the view has ended.
    pub async fn open_line(&self) -> Option<OpenQuestion> {
        let (open, opened) = oneshot::channel();
        if !self.queue.push(Message::Type(open)) {
            return None;
        }
        opened.await.ok()
    }

    /// Stops the view from writing while the returned value exists, so that other output can be
    /// written.
    pub async fn paused(&self) -> Paused {
        let ((done, wait), (end, ended)) = (oneshot::channel(), oneshot::channel());
        if self.queue.push(Message::Pause(done, ended)) {
            // An error means that the thread has ended, so it writes nothing.
            let _ = wait.await;
        }
        Paused(end)
    }

    /// Shows the running work, if there is any.
    pub fn go_on(&self) {
        self.queue.push(Message::GoOn);
    }

    /// Writes the remaining events and ends the view. Waits for a blocked terminal until `cancel`,
    /// and a moment longer.
    ///
    /// # Errors
    /// If standard output could not be written, without words if its reader is gone.
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
            // A panic of the view was printed before. The exit code is that of the task.
            trouble = ended => match trouble.ok().flatten() {
                // A closed reader (`| head`) needs no words.
                Some(error) => Err(report::output_failure(error)
                    .unwrap_or_else(|| CommandFailure::new(Exit::Failed, ""))),
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
    fn receive_event(&self, envelope: EventEnvelope) {
        let is_quiet = matches!(envelope.event, Event::Retry { answer_restarts: false, .. });
        if is_quiet && self.hides_retries.load(Relaxed) {
            return;
        }
        self.queue.event(envelope);
    }
}

/// Writes until the queue is closed and empty. Returns the error if standard output could not be
/// written.
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
                // The receiver may have given up.
                let _ = done.send(());
                settled
            }
            Message::Ask(open) => {
                let settled = writer.settle();
                // This thread opens the question, so that none of its own output comes before it. A
                // question that no receiver takes is closed again.
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
                // The other end signals by being dropped.
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
