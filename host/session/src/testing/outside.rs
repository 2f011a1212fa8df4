//! A test's clock, ids, events and output files: simulated, counted, recorded, in memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::future::{BoxFuture, FutureExt};
use jaato_types::{CallId, Error, ErrorKind, Event, EventEnvelope, Result, SessionId};
use parking_lot::Mutex;

use crate::{EventSink, Ids, OutputStore, OutputWriter, SessionClock, SystemClock};

/// Tokio's clock, with wall time that begins at the same moment in every run.
#[derive(Debug, Default)]
pub struct SimulatedClock(SystemClock);

impl SimulatedClock {
    /// Wall time at the start, in milliseconds since 1970.
    pub const START_MS: u64 = 1_700_000_000_000;

    /// Creates a clock that starts at this moment.
    pub fn new() -> Self {
        Self::default()
    }
}

impl SessionClock for SimulatedClock {
    fn monotonic_ms(&self) -> u64 {
        self.0.monotonic_ms()
    }

    fn wall_ms(&self) -> u64 {
        Self::START_MS + self.0.monotonic_ms()
    }

    fn sleep(&self, ms: u64) -> BoxFuture<'static, ()> {
        self.0.sleep(ms)
    }
}

/// Sequential ids: `session-1`, `fresh-1`, `fresh-2` …
#[derive(Debug, Default)]
pub struct CountingIds {
    sessions: AtomicU64,
    calls: AtomicU64,
}

impl Ids for CountingIds {
    fn create_session_id(&self) -> SessionId {
        SessionId::new(format!("session-{}", self.sessions.fetch_add(1, Ordering::Relaxed) + 1))
    }

    fn create_call_id(&self) -> CallId {
        CallId::new(format!("fresh-{}", self.calls.fetch_add(1, Ordering::Relaxed) + 1))
    }
}

/// Records every event.
#[derive(Debug, Default)]
pub struct RecordedEvents(Mutex<Vec<EventEnvelope>>);

impl RecordedEvents {
    /// Returns the envelopes so far.
    pub fn envelopes(&self) -> Vec<EventEnvelope> {
        self.0.lock().clone()
    }

    /// Returns the events so far.
    pub fn events(&self) -> Vec<Event> {
        self.envelopes().into_iter().map(|envelope| envelope.event).collect()
    }

    /// Joins the text that the user has seen so far.
    pub fn shown_text(&self) -> String {
        let texts = self.events().into_iter().filter_map(|event| match event {
            Event::TextDelta { text, .. } => Some(text),
            _ => None,
        });
        texts.collect()
    }

    /// Joins the notices so far, each with its source, one per line.
    pub fn notices(&self) -> String {
        let lines = self.events().into_iter().filter_map(|event| match event {
            Event::Notice { source, text } => Some(format!("{source}: {text}\n")),
            _ => None,
        });
        lines.collect()
    }
}

impl EventSink for RecordedEvents {
    fn receive_event(&self, envelope: EventEnvelope) {
        self.0.lock().push(envelope);
    }
}

/// The files of a store in their order, each with its name.
type SharedFiles = Arc<Mutex<Vec<(String, Vec<u8>)>>>;

/// Output files, in memory.
#[derive(Debug)]
pub struct MemoryOutputStore {
    files: SharedFiles,
    bytes_max: AtomicU64,
}

impl Default for MemoryOutputStore {
    fn default() -> Self {
        Self { files: Arc::default(), bytes_max: AtomicU64::new(u64::MAX) }
    }
}

impl MemoryOutputStore {
    /// Limits the size of each further file.
    pub fn limit_file_size(&self, bytes_max: u64) {
        self.bytes_max.store(bytes_max, Ordering::Relaxed);
    }

    /// Returns the files so far, path and content.
    pub fn files(&self) -> Vec<(String, Vec<u8>)> {
        self.files.lock().clone()
    }
}

impl OutputStore for MemoryOutputStore {
    fn create<'a>(
        &'a self,
        call: &'a CallId,
        label: &'a str,
    ) -> BoxFuture<'a, Result<Box<dyn OutputWriter>>> {
        async move {
            let path = format!("/outputs/{call}-{label}");
            let mut files = self.files.lock();
            files.push((path.clone(), Vec::new()));
            let (at, files) = (files.len() - 1, Arc::clone(&self.files));
            let bytes_max = self.bytes_max.load(Ordering::Relaxed);
            Ok(Box::new(MemoryOutputFile { files, at, path, bytes_max }) as Box<dyn OutputWriter>)
        }
        .boxed()
    }
}

/// One of the files.
struct MemoryOutputFile {
    files: SharedFiles,
    at: usize,
    path: String,
    bytes_max: u64,
}

impl OutputWriter for MemoryOutputFile {
    fn path(&self) -> String {
        self.path.clone()
    }

    fn byte_count(&self) -> u64 {
        self.files.lock()[self.at].1.len() as u64
    }

    fn write<'a>(&'a mut self, bytes: &'a [u8]) -> BoxFuture<'a, Result<()>> {
        let written = match self.byte_count() + bytes.len() as u64 > self.bytes_max {
            true => Err(Error::new(ErrorKind::LimitReached, "it is too much")),
            false => {
                self.files.lock()[self.at].1.extend_from_slice(bytes);
                Ok(())
            }
        };
        std::future::ready(written).boxed()
    }
}
