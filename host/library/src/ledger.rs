//! Hands the ledger's records to the program.

use std::sync::Arc;

use jaato_runtime::session_loop::SessionClock;
use jaato_runtime::store::{EventRecorder, EventTime, LedgerRecord};
use jaato_runtime::types::EventEnvelope;
use parking_lot::Mutex;

/// Receives the ledger's records of a session: requests with their tokens and cost, tool calls,
/// permission decisions. They contain no text of the conversation.
pub trait LedgerRecorder: Send + Sync {
    /// Takes one record. Called from the thread that caused it, so it must return quickly, and must
    /// not call the session.
    fn record(&self, record: &LedgerRecord);
}

impl<F: Fn(&LedgerRecord) + Send + Sync> LedgerRecorder for F {
    fn record(&self, record: &LedgerRecord) {
        self(record);
    }
}

/// Makes records from a session's events.
pub(crate) struct LedgerTap {
    recorder: Mutex<EventRecorder>,
    clock: Arc<dyn SessionClock>,
    to: Arc<dyn LedgerRecorder>,
}

impl LedgerTap {
    pub(crate) fn new(clock: Arc<dyn SessionClock>, to: Arc<dyn LedgerRecorder>) -> Self {
        // Without a key there are no digests of arguments.
        Self { recorder: Mutex::new(EventRecorder::new(None)), clock, to }
    }

    pub(crate) fn record(&self, envelope: &EventEnvelope) {
        let now =
            EventTime { wall_ms: self.clock.wall_ms(), monotonic_ms: self.clock.monotonic_ms() };
        let mut recorder = self.recorder.lock();
        for record in recorder.records_for_event(envelope, now) {
            self.to.record(&record);
        }
    }
}
