//! The events that wait to be written, up to a limit.
//!
//! The events of a turn itself are always queued, because the session's own limits bound them.
//! Events that only accompany a turn (live output, notices, progress) are dropped when too much
//! waits, and a line says how much was dropped.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use jaato_runtime::types::{Event, EventEnvelope, SessionId};
use parking_lot::{Condvar, Mutex, MutexGuard};
use tokio::sync::oneshot;

use crate::args::OutputForm;
use crate::terminal::OpenQuestion;

/// Bytes that may wait before events are dropped. A working terminal takes them within a second.
pub const WAITING_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Bytes that an event takes in addition to its text.
const EVENT_BYTES: usize = 512;

/// The next task of the view's thread.
pub enum Message {
    /// Write an event.
    Event(Box<EventEnvelope>),
    /// Report the dropped events at this point.
    Dropped(Dropped),
    /// Report when all earlier messages are written.
    Settle(oneshot::Sender<()>),
    /// The same, and then open a question.
    Ask(oneshot::Sender<OpenQuestion>),
    /// Remove the spinner and open a line for the user to type in. Later parts of an answer are
    /// shown above it.
    Type(oneshot::Sender<OpenQuestion>),
    /// Remove the spinner, report that, and write nothing until the other end is dropped.
    Pause(oneshot::Sender<()>, oneshot::Receiver<()>),
    /// Show the running work.
    GoOn,
    /// Store the number of attempts for each request.
    Attempts(u32),
    /// Stop reporting finished background tasks.
    HideEndsOfTasks,
}

/// Consecutive events that were dropped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dropped {
    session: SessionId,
    /// The sequence number of the first event.
    seq: u64,
    events: u64,
    bytes: usize,
}

/// Passes messages from the session's threads to the view's thread.
pub struct Queue {
    form: OutputForm,
    /// Whether thoughts are shown.
    takes_thoughts: AtomicBool,
    state: Mutex<State>,
    more: Condvar,
}

#[derive(Default)]
struct State {
    messages: VecDeque<Message>,
    bytes: usize,
    is_closed: bool,
}

impl Queue {
    /// Creates an empty queue for an output form.
    pub fn new(form: OutputForm) -> Self {
        let takes_thoughts = AtomicBool::new(form == OutputForm::Json);
        Self { form, takes_thoughts, state: Mutex::default(), more: Condvar::new() }
    }

    /// Accepts thoughts from this point.
    pub fn take_thoughts(&self) {
        self.takes_thoughts.store(true, Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Adds a message. Returns false if the queue is closed.
    pub fn push(&self, message: Message) -> bool {
        let mut state = self.lock();
        if !state.is_closed {
            state.bytes += bytes_of(&message);
            state.messages.push_back(message);
            self.more.notify_one();
        }
        !state.is_closed
    }

    /// Adds an event, or counts it as dropped if the queue is full. Never blocks.
    pub fn event(&self, envelope: EventEnvelope) {
        let is_thought = matches!(envelope.event, Event::ThoughtDelta { .. });
        let is_unwanted = is_thought && !self.takes_thoughts.load(Relaxed);
        if is_unwanted || self.form == OutputForm::Text && is_for_machines(&envelope.event) {
            return;
        }
        let mut state = self.lock();
        if state.is_closed {
            return;
        }
        if state.bytes > WAITING_BYTES_MAX {
            if accompanies(&envelope.event) {
                state.drop_event(&envelope);
                self.more.notify_one();
                return;
            }
            if self.form == OutputForm::Text && state.join(&envelope) {
                return;
            }
        }
        let message = Message::Event(Box::new(envelope));
        state.bytes += bytes_of(&message);
        state.messages.push_back(message);
        self.more.notify_one();
    }

    /// Waits for the next message. Returns `None` when the queue is closed and empty.
    pub fn next(&self) -> Option<Message> {
        let mut state = self.lock();
        loop {
            if let Some(message) = state.messages.pop_front() {
                state.bytes = state.bytes.saturating_sub(bytes_of(&message));
                return Some(message);
            }
            if state.is_closed {
                return None;
            }
            self.more.wait(&mut state);
        }
    }

    /// Closes the queue. Waiting messages are still delivered.
    pub fn close(&self) {
        self.lock().is_closed = true;
        self.more.notify_one();
    }
}

impl State {
    fn drop_event(&mut self, envelope: &EventEnvelope) {
        let bytes = text_bytes(&envelope.event);
        if let Some(Message::Dropped(last)) = self.messages.back_mut() {
            last.events += 1;
            last.bytes += bytes;
            return;
        }
        let (session, seq) = (envelope.session.clone(), envelope.seq);
        self.messages.push_back(Message::Dropped(Dropped { session, seq, events: 1, bytes }));
    }

    /// Appends a piece of the answer to the last waiting piece, because thousands of one-letter
    /// events take more memory than their text.
    fn join(&mut self, envelope: &EventEnvelope) -> bool {
        let Event::TextDelta { source, text } = &envelope.event else { return false };
        let Some(Message::Event(last)) = self.messages.back_mut() else { return false };
        if last.session != envelope.session {
            return false;
        }
        match &mut last.event {
            Event::TextDelta { source: known, text: so_far } if known == source => {
                so_far.push_str(text);
                self.bytes += text.len();
                true
            }
            _ => false,
        }
    }
}

impl Dropped {
    /// Returns an event that reports the dropped events, with the sequence number of the first.
    pub fn notice(&self) -> EventEnvelope {
        let Self { session, seq, events, bytes } = self;
        let text = format!(
            "left out: {events} pieces of output and notices ({bytes} bytes), because the output was blocked for too long"
        );
        let event = Event::Notice { source: "host".to_owned(), text };
        EventEnvelope { v: EventEnvelope::VERSION, seq: *seq, session: session.clone(), event }
    }
}

fn bytes_of(message: &Message) -> usize {
    match message {
        Message::Event(envelope) => EVENT_BYTES + text_bytes(&envelope.event),
        Message::Dropped(_)
        | Message::Settle(_)
        | Message::Ask(_)
        | Message::Type(_)
        | Message::Pause(..)
        | Message::GoOn
        | Message::Attempts(_)
        | Message::HideEndsOfTasks => 0,
    }
}

/// Counts the text of the events whose number is unlimited.
fn text_bytes(event: &Event) -> usize {
    match event {
        Event::TextDelta { text, .. }
        | Event::ThoughtDelta { text, .. }
        | Event::ToolOutput { text, .. }
        | Event::Notice { text, .. } => text.len(),
        Event::Progress { label, .. } => label.len(),
        Event::FileChanged { change, .. } => change.text_bytes(),
        Event::PlanChanged { plan, .. } => plan.text_bytes(),
        Event::TerminalScreen { lines, .. } => lines.iter().map(|line| line.len() + 1).sum(),
        _ => 0,
    }
}

/// Returns true if an event only accompanies a turn. A gap in the sequence numbers shows that it is
/// missing.
fn accompanies(event: &Event) -> bool {
    matches!(
        event,
        Event::ThoughtDelta { .. }
            | Event::ToolOutput { .. }
            | Event::Notice { .. }
            | Event::Progress { .. }
            | Event::TerminalScreen { .. }
            | Event::TerminalTyped { .. }
    )
}

/// Returns true if text output never shows an event, so that the event does not have to be queued.
fn is_for_machines(event: &Event) -> bool {
    matches!(event, Event::TerminalScreen { .. } | Event::TerminalTyped { .. })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn envelope(seq: u64, event: Event) -> EventEnvelope {
        EventEnvelope { v: EventEnvelope::VERSION, seq, session: SessionId::from("s"), event }
    }

    fn output(text: &str) -> Event {
        Event::ToolOutput { call_id: "c".into(), source: "x".to_owned(), text: text.to_owned() }
    }

    fn delta(text: &str) -> Event {
        Event::TextDelta { source: "model".to_owned(), text: text.to_owned() }
    }

    fn take_texts(queue: &Queue) -> Vec<String> {
        queue.close();
        std::iter::from_fn(|| queue.next())
            .map(|message| match message {
                Message::Event(envelope) => match envelope.event {
                    Event::TextDelta { text, .. } => text,
                    Event::ToolOutput { text, .. } => format!("{} bytes", text.len()),
                    other => format!("{other:?}"),
                },
                Message::Dropped(dropped) => {
                    format!("{} left out from {}", dropped.events, dropped.seq)
                }
                Message::Settle(_)
                | Message::Ask(_)
                | Message::Type(_)
                | Message::Pause(..)
                | Message::GoOn
                | Message::Attempts(_)
                | Message::HideEndsOfTasks => "settle".to_owned(),
            })
            .collect()
    }

    #[test]
    fn output_that_nobody_takes_is_left_out_and_counted_and_the_answer_stays() {
        let queue = Queue::new(OutputForm::Text);
        let full = "x".repeat(WAITING_BYTES_MAX);
        queue.event(envelope(1, output(&full)));
        for seq in 2..=4 {
            queue.event(envelope(seq, output("more")));
        }
        for (seq, text) in [(5, "an "), (6, "answer")] {
            queue.event(envelope(seq, delta(text)));
        }
        queue.event(envelope(7, output("again")));
        let expected = [
            &*format!("{} bytes", full.len()),
            "3 left out from 2",
            "an answer",
            "1 left out from 7",
        ];
        assert_eq!(take_texts(&queue), expected);
    }

    #[test]
    fn up_to_the_bound_everything_waits() {
        let queue = Queue::new(OutputForm::Json);
        let rest = "x".repeat(WAITING_BYTES_MAX - 2 * EVENT_BYTES);
        queue.event(envelope(1, output(&rest)));
        queue.event(envelope(2, output("")));
        queue.event(envelope(3, output("one too many fits")));
        queue.event(envelope(4, output("this does not")));
        assert_eq!(take_texts(&queue)[1..], ["0 bytes", "17 bytes", "1 left out from 4"]);
    }

    #[test]
    fn there_is_room_again_when_something_was_taken() {
        let queue = Queue::new(OutputForm::Text);
        queue.event(envelope(1, output(&"x".repeat(WAITING_BYTES_MAX))));
        assert!(matches!(queue.next(), Some(Message::Event(_))));
        queue.event(envelope(2, output("fits")));
        assert_eq!(take_texts(&queue), ["4 bytes"]);
    }

    #[test]
    fn what_was_left_out_is_told_in_its_place() {
        let dropped = Dropped { session: "s".into(), seq: 9, events: 2, bytes: 30 };
        let told = dropped.notice();
        let Event::Notice { source, text } = told.event else { panic!("{:?}", told.event) };
        assert_eq!((told.seq, &*source), (9, "host"));
        assert!(text.contains("2 pieces of output and notices (30 bytes)"), "{text}");
    }
}
