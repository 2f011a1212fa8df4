//! The ledger of a runtime: chooses its file and feeds it from each session's events.

use std::path::PathBuf;
use std::sync::Arc;

use jaato_places::TrustedOwners;
use jaato_session::{EventSink, SessionClock, SystemClock};
use jaato_store::{DigestKey, EventRecorder, EventTime, Ledger};
use jaato_types::{Event, EventEnvelope};
use parking_lot::Mutex;

use jaato_catalog::Setup;
use jaato_log::Log;

/// Returns the ledger's file according to a setup.
///
/// # Errors
/// If the setup names no file and the system reports no home directory.
pub fn ledger_path(setup: &Setup) -> Result<PathBuf, jaato_config::NoHomeFolder> {
    setup.config.ledger.path.clone().map_or_else(|| setup.folders.ledger_file(), Ok)
}

/// Creates the ledger of a setup. Returns `None` if it is disabled, or if there is neither a home
/// directory nor a configured file. Touches no file yet.
pub(crate) fn create_ledger(setup: &Setup, log: &Log) -> Option<Ledger> {
    let path = ledger_path(setup).ok().filter(|_| setup.config.ledger.enabled)?;
    let log = log.clone();
    // Other users may write to the folder of a configured file, but not to jaato's own.
    let path = match jaato_places::check_file(&path, &TrustedOwners::this_user_and_root()) {
        Err(error) if setup.config.ledger.path.is_none() && !error.is_missing() => {
            Err(error.to_string())
        }
        Ok(()) | Err(_) => Ok(path),
    };
    Some(Ledger::new(path, Box::new(move |text| log.write_line(1, "ledger", text))))
}

/// Forwards a session's events and records them in the ledger.
pub(crate) struct LedgerEventSink {
    ledger: Ledger,
    to: Arc<dyn EventSink>,
    clock: SystemClock,
    state: Mutex<LedgerSinkState>,
}

struct LedgerSinkState {
    recorder: EventRecorder,
    /// Number of ledger notices inserted among the session's events. Later events are renumbered by
    /// it.
    inserted: u64,
}

impl LedgerEventSink {
    /// Taps a session's events.
    pub(crate) fn new(ledger: Ledger, to: Arc<dyn EventSink>) -> Self {
        let mut key = [0; 32];
        // Without a random key, a digest could be guessed, so write no digests.
        let key = getrandom::fill(&mut key).is_ok().then(|| DigestKey::new(key));
        let state = Mutex::new(LedgerSinkState { recorder: EventRecorder::new(key), inserted: 0 });
        Self { ledger, to, clock: SystemClock::new(), state }
    }
}

impl EventSink for LedgerEventSink {
    fn receive_event(&self, mut envelope: EventEnvelope) {
        // Held while the events are forwarded, so that they keep their order across threads.
        let mut state = self.state.lock();
        let now =
            EventTime { wall_ms: self.clock.wall_ms(), monotonic_ms: self.clock.monotonic_ms() };
        for record in state.recorder.records_for_event(&envelope, now) {
            self.ledger.add_record(&record);
        }
        envelope.seq += state.inserted;
        if let Some(text) = self.ledger.notice() {
            state.inserted += 1;
            let event = Event::Notice { source: "host".to_owned(), text };
            let notice = EventEnvelope { event, session: envelope.session.clone(), ..envelope };
            envelope.seq += 1;
            self.to.receive_event(notice);
        }
        self.to.receive_event(envelope);
    }
}

#[cfg(test)]
mod tests {
    use jaato_types::SessionId;

    use super::*;

    #[derive(Default)]
    struct RecordedEvents(Mutex<Vec<EventEnvelope>>);

    impl EventSink for RecordedEvents {
        fn receive_event(&self, envelope: EventEnvelope) {
            self.0.lock().push(envelope);
        }
    }

    #[test]
    fn ledger_write_failure_is_reported_once_without_a_sequence_gap() {
        let seen = Arc::new(RecordedEvents::default());
        let (told, heard) = std::sync::mpsc::channel();
        let log = Box::new(move |text: &str| told.send(text.to_owned()).unwrap());
        let ledger = Ledger::new(Ok("/dev/full".into()), log);
        let tap = LedgerEventSink::new(ledger.clone(), Arc::clone(&seen) as Arc<dyn EventSink>);
        let mut seq = 0;
        let mut send = |event: Event| {
            seq += 1;
            tap.receive_event(EventEnvelope { v: 1, seq, session: SessionId::from("s"), event });
        };
        let decided = Event::PermissionDecided {
            call_id: "c".into(),
            name: "t".into(),
            allowed: true,
            rule: "r".into(),
            place: None,
            comment: None,
            answered_by: String::new(),
            scope: String::new(),
            remembered: None,
            pattern: String::new(),
            agent_type: String::new(),
            agent_name: String::new(),
        };
        send(decided);
        heard.recv().unwrap();
        let is_notice = |envelope: &EventEnvelope| matches!(envelope.event, Event::Notice { .. });
        while !seen.0.lock().iter().any(is_notice) {
            send(Event::StepStarted { step: 1 });
        }
        send(Event::StepStarted { step: 2 });
        let seen = seen.0.lock();
        let numbers: Vec<_> = seen.iter().map(|envelope| envelope.seq).collect();
        assert_eq!(numbers, (1..=seen.len() as u64).collect::<Vec<_>>());
        assert_eq!(seen.iter().filter(|envelope| is_notice(envelope)).count(), 1);
        assert_eq!(ledger.finish(), ["1 record of this run is not in the ledger"]);
    }
}
