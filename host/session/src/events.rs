//! Numbers a session's events without gaps and passes them on.

use std::sync::Arc;

use jaato_types::{Event, EventEnvelope, SessionId};
use parking_lot::Mutex;

/// Receives a session's events, in order.
pub trait EventSink: Send + Sync {
    /// Receives one event. Called under the lock that keeps the order, from the thread that caused
    /// the event. It must return quickly and never call back into the session.
    fn receive_event(&self, envelope: EventEnvelope);
}

/// Numbers a session's events, whether a turn runs or not. Clones share the counter.
#[derive(Clone)]
pub struct EventEmitter {
    session: SessionId,
    last: Arc<Mutex<u64>>,
    sink: Arc<dyn EventSink>,
}

impl EventEmitter {
    /// Starts to count a session's events.
    pub fn new(session: SessionId, sink: Arc<dyn EventSink>) -> Self {
        Self { session, last: Arc::default(), sink }
    }

    /// Emits an event. May be called from any thread.
    pub fn emit(&self, event: Event) {
        let mut last = self.last.lock();
        *last += 1;
        let (v, seq, session) = (EventEnvelope::VERSION, *last, self.session.clone());
        self.sink.receive_event(EventEnvelope { v, seq, session, event });
    }

    /// Emits a notice in the host's own name.
    pub fn emit_notice(&self, text: impl Into<String>) {
        self.emit(Event::Notice { source: HOST.to_owned(), text: text.into() });
    }
}

/// The `source` of the host's own events.
pub(crate) const HOST: &str = "host";
/// The `source` of the model's text.
pub(crate) const MODEL: &str = "model";
