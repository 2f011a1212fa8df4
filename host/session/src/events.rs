//! Numbers a session's events without gaps and hands them on.

use std::sync::Arc;

use jaato_types::{Envelope, Event, SessionId};
use parking_lot::Mutex;

/// Takes a session's events, in order.
pub trait EventSink: Send + Sync {
    /// Takes one event. Called under the lock that keeps the order, from whatever thread caused the
    /// event: returns soon, and never calls back into the session.
    fn event(&self, envelope: Envelope);
}

/// The one place where a session's events get their numbers, whether a turn runs or not. Clones
/// share it.
#[derive(Clone)]
pub struct Emitter {
    session: SessionId,
    last: Arc<Mutex<u64>>,
    sink: Arc<dyn EventSink>,
}

impl Emitter {
    /// Begins to count a session's events.
    pub fn new(session: SessionId, sink: Arc<dyn EventSink>) -> Self {
        Self { session, last: Arc::default(), sink }
    }

    /// Tells whoever follows the session, from any thread.
    pub fn emit(&self, event: Event) {
        let mut last = self.last.lock();
        *last += 1;
        let (v, seq, session) = (Envelope::VERSION, *last, self.session.clone());
        self.sink.event(Envelope { v, seq, session, event });
    }

    /// Says something in the host's own name.
    pub fn notice(&self, text: impl Into<String>) {
        self.emit(Event::Notice { source: HOST.to_owned(), text: text.into() });
    }
}

/// The `source` of what the host itself says.
pub(crate) const HOST: &str = "host";
/// The `source` of what the model says.
pub(crate) const MODEL: &str = "model";
