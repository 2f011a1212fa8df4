//! Distributes a session's events: to its running turn, and to the program's own receivers.

use std::sync::Arc;

use jaato_runtime::session_loop::EventSink;
use jaato_runtime::types::{Event, EventEnvelope, SessionId};
use parking_lot::Mutex;
use tokio::sync::mpsc::UnboundedSender;

use crate::ledger::LedgerTap;
use crate::permission::WaitingPrompts;

/// Receives all events of a session, including those of sessions that its plugins open.
#[derive(Default)]
pub(crate) struct SessionEvents {
    turn: Mutex<Option<TurnReceiver>>,
    sinks: Vec<Arc<dyn EventSink>>,
    ledger: Option<LedgerTap>,
    prompts: Option<Arc<WaitingPrompts>>,
}

/// The receiver of a turn's events.
struct TurnReceiver {
    session: SessionId,
    to: UnboundedSender<Event>,
}

/// Sends events to a turn until it is dropped.
pub(crate) struct TurnEvents(Arc<SessionEvents>);

impl SessionEvents {
    pub(crate) fn new(
        sinks: Vec<Arc<dyn EventSink>>,
        ledger: Option<LedgerTap>,
        prompts: Option<Arc<WaitingPrompts>>,
    ) -> Arc<Self> {
        Arc::new(Self { turn: Mutex::new(None), sinks, ledger, prompts })
    }

    /// Sends the session's own events and all permission prompts to a turn from this point on.
    pub(crate) fn send_to(
        self: &Arc<Self>,
        session: SessionId,
        to: UnboundedSender<Event>,
    ) -> TurnEvents {
        *self.turn.lock() = Some(TurnReceiver { session, to });
        TurnEvents(Arc::clone(self))
    }
}

impl Drop for TurnEvents {
    fn drop(&mut self) {
        *self.0.turn.lock() = None;
    }
}

impl EventSink for SessionEvents {
    fn receive_event(&self, envelope: EventEnvelope) {
        if let (Some(prompts), Event::PermissionAsked(prompt)) = (&self.prompts, &envelope.event) {
            prompts.expect_answer(&prompt.call_id);
        }
        if let Some(ledger) = &self.ledger {
            ledger.record(&envelope);
        }
        for sink in &self.sinks {
            sink.receive_event(envelope.clone());
        }
        if let Some(turn) = &*self.turn.lock()
            && (turn.session == envelope.session || is_of_prompt(&envelope.event))
        {
            // Without a receiver, the turn is being dropped.
            let _ = turn.to.send(envelope.event);
        }
    }
}

/// Returns true for events of permission prompts. Sessions that plugins open ask the same user.
fn is_of_prompt(event: &Event) -> bool {
    matches!(event, Event::PermissionAsked(_) | Event::PermissionDecided { .. })
}

/// Calls a function for each event.
pub(crate) struct EventCallback<F>(pub(crate) F);

impl<F: Fn(EventEnvelope) + Send + Sync> EventSink for EventCallback<F> {
    fn receive_event(&self, envelope: EventEnvelope) {
        (self.0)(envelope);
    }
}
