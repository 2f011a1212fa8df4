//! Shows a session's events: as text for people or as JSON lines.
//!
//! The session hands its events over and goes on; a thread of the view's own writes them, so that a
//! slow terminal delays nothing but itself.

mod json;
mod people;
mod text;

use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use jaato_runtime::session_loop::{Cancel, EventSink};
use jaato_runtime::types::Envelope;

pub use text::{one_line, printable};

use crate::args::OutputForm;

/// Takes events and shows them.
pub struct View {
    sender: Mutex<Option<Sender<Message>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

enum Message {
    Event(Box<Envelope>),
    /// Everything before this is written; whoever asks may use the terminal then.
    Settled(Sender<()>),
}

/// Writes events, one after the other.
trait Writer: Send {
    /// Writes one event.
    fn event(&mut self, envelope: &Envelope) -> io::Result<()>;

    /// Ends what is half drawn (a line, a spinner).
    fn settle(&mut self) -> io::Result<()>;
}

impl View {
    /// Starts a view. When nobody reads the output any more (`| head`), it cancels.
    pub fn start(form: OutputForm, cancel: Cancel) -> Arc<Self> {
        let writer: Box<dyn Writer> = match form {
            OutputForm::Text => Box::new(people::People::new()),
            OutputForm::Json => Box::new(json::Lines),
        };
        let (sender, receiver) = channel();
        let thread = std::thread::Builder::new()
            .name("jaato-view".into())
            .spawn(move || write_all(writer, &receiver, &cancel));
        Arc::new(Self { sender: Mutex::new(Some(sender)), thread: Mutex::new(thread.ok()) })
    }

    /// Waits until everything so far is written.
    pub fn settle(&self) {
        let (done, wait) = channel();
        if self.send(Message::Settled(done)) {
            // An error means that the thread is gone: nothing is left to wait for.
            let _ = wait.recv();
        }
    }

    /// Writes what is left and ends the view.
    pub fn finish(&self) {
        drop(self.sender.lock().unwrap_or_else(PoisonError::into_inner).take());
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // A panic of the view was printed by then; the exit code is the task's.
            let _ = thread.join();
        }
    }

    fn send(&self, message: Message) -> bool {
        let sender = self.sender.lock().unwrap_or_else(PoisonError::into_inner);
        sender.as_ref().is_some_and(|sender| sender.send(message).is_ok())
    }
}

impl EventSink for View {
    fn event(&self, envelope: Envelope) {
        self.send(Message::Event(Box::new(envelope)));
    }
}

fn write_all(mut writer: Box<dyn Writer>, receiver: &Receiver<Message>, cancel: &Cancel) {
    let mut is_open = true;
    while let Ok(message) = receiver.recv() {
        let written = match message {
            Message::Event(envelope) if is_open => writer.event(&envelope),
            Message::Event(_) => Ok(()),
            Message::Settled(done) => {
                let settled = writer.settle();
                // Whoever asked may have given up.
                let _ = done.send(());
                settled
            }
        };
        if written.is_err() && is_open {
            is_open = false;
            cancel.cancel();
        }
    }
    // The last line is lost where nobody reads.
    let _ = writer.settle();
}
