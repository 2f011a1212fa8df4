//! The model's back end as a trait, and the sink that takes its deltas while it works.
//!
//! The sink alone decides what the user has seen. It emits and remembers under one lock, and
//! refuses everything once the request is over.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use jaato_types::{
    Completion, CompletionRequest, Delta, Event, ModelInfo, Part, Result, SessionId,
};
use parking_lot::{Mutex, MutexGuard};

use crate::clock::PIECE_MS;
use crate::events::{EventEmitter, MODEL};
use crate::{Cancel, EventSink, Limits, SessionClock, SystemClock};

/// A stateless back end. Each request holds everything that it needs.
pub trait Provider: Send + Sync {
    /// Returns the provider's name in events: its plugin's name without the kind, `local`.
    fn source(&self) -> &str;

    /// Answers one request. Deltas go to the sink while it works, and the completion holds the
    /// whole answer. On cancel the session sets the flag and drops the future without waiting.
    /// Never retries: that is the session's job, based on the error's retry class.
    fn complete<'a>(
        &'a self,
        request: &'a CompletionRequest,
        sink: DeltaSink,
        cancel: Cancel,
    ) -> BoxFuture<'a, Result<Completion>>;

    /// Asks for facts about the model: its context window, and the media types that it accepts.
    /// Returns `None` if they are unknown. The session polls this along with its requests and drops
    /// it when it ends, so it may take its time. Its failure is not an error, because the request
    /// itself will report the problem.
    fn query_model_info(&self) -> BoxFuture<'static, Option<ModelInfo>> {
        Box::pin(std::future::ready(None))
    }
}

/// Takes a provider's deltas, from any thread. Clones share the sink.
#[derive(Clone)]
pub struct DeltaSink(Arc<DeltaSinkInner>);

struct DeltaSinkInner {
    emitter: EventEmitter,
    clock: Arc<dyn SessionClock>,
    source: String,
    answer_bytes_max: usize,
    overflow: Cancel,
    state: Mutex<DeltaSinkState>,
}

#[derive(Default)]
struct DeltaSinkState {
    closed: bool,
    /// When the last bytes arrived, on the monotonic clock.
    alive_at_ms: u64,
    /// When the last content for the user or the answer arrived.
    said_at_ms: u64,
    bytes: usize,
    seen: ReceivedDeltas,
}

/// The deltas that arrived before the request was over.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ReceivedDeltas {
    /// Text and thoughts in order, with neighbours of one kind joined. Without calls, which are not
    /// shown yet.
    pub(crate) parts: Vec<Part>,
    /// Whether any part of an answer arrived, including calls.
    pub(crate) begun: bool,
}

impl DeltaSinkState {
    /// Leaves out time that does not count as silence. After the process was stopped, one more
    /// interval is always allowed, to read the answer that is in the socket.
    fn exclude_time(&mut self, by_ms: u64, now_ms: u64, after_stop: Option<SilenceLimits>) {
        let later = |at_ms: u64, most_ms: Option<u64>| {
            let at_ms = at_ms.saturating_add(by_ms).min(now_ms);
            let one_piece_left =
                most_ms.map(|most_ms| now_ms.saturating_sub(most_ms.saturating_sub(PIECE_MS)));
            at_ms.max(one_piece_left.unwrap_or(0))
        };
        self.alive_at_ms = later(self.alive_at_ms, after_stop.map(|it| it.idle_ms));
        self.said_at_ms = later(self.said_at_ms, after_stop.map(|it| it.keep_alive_ms));
    }
}

/// How long a provider may be silent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SilenceLimits {
    /// Without any sign of life.
    pub(crate) idle_ms: u64,
    /// With signs of life that have no content.
    pub(crate) keep_alive_ms: u64,
}

/// How a provider was silent for too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SilenceTimeout {
    /// Nothing arrived.
    Dead,
    /// Only signs of life arrived.
    KeptAlive,
}

impl ReceivedDeltas {
    /// Returns true if the user saw a part of the answer.
    pub(crate) fn is_visible(&self) -> bool {
        !self.parts.is_empty()
    }
}

impl DeltaSink {
    /// Creates a sink for a request that belongs to no session. Its events reach `events`.
    pub fn without_session(events: Arc<dyn EventSink>) -> Self {
        let emitter = EventEmitter::new(SessionId::from("program"), events);
        let clock = Arc::new(SystemClock::new());
        Self::new(emitter, clock, MODEL, Limits::default().answer_bytes_max)
    }

    pub(crate) fn new(
        emitter: EventEmitter,
        clock: Arc<dyn SessionClock>,
        source: &str,
        answer_bytes_max: usize,
    ) -> Self {
        let now_ms = clock.monotonic_ms();
        let state =
            DeltaSinkState { alive_at_ms: now_ms, said_at_ms: now_ms, ..DeltaSinkState::default() };
        Self(Arc::new(DeltaSinkInner {
            emitter,
            clock,
            source: source.to_owned(),
            answer_bytes_max,
            overflow: Cancel::new(),
            state: Mutex::new(state),
        }))
    }

    /// Takes one delta. Returns false, and ignores the delta, once the request is over or the
    /// answer is too long.
    pub fn emit_delta(&self, delta: Delta) -> bool {
        let mut state = self.lock();
        if state.closed || self.0.overflow.is_cancelled() {
            return false;
        }
        state.alive_at_ms = self.0.clock.monotonic_ms();
        if has_content(&delta) {
            state.said_at_ms = state.alive_at_ms;
        }
        state.bytes = state.bytes.saturating_add(answer_bytes(&delta));
        if state.bytes > self.0.answer_bytes_max {
            self.0.overflow.cancel();
            return false;
        }
        // The lock is held while the event is sent, so that emitted and remembered content agree.
        if let Some(event) = self.accept_delta(&mut state.seen, delta) {
            self.0.emitter.emit(event);
        }
        true
    }

    /// Records that bytes of the answer arrived, regardless of their content: a comment keeps a
    /// connection alive.
    pub fn record_activity(&self) {
        self.lock().alive_at_ms = self.0.clock.monotonic_ms();
    }

    fn accept_delta(&self, seen: &mut ReceivedDeltas, delta: Delta) -> Option<Event> {
        let source = || self.0.source.clone();
        match delta {
            Delta::Text { text, .. } => (!text.is_empty()).then(|| {
                seen.begun = true;
                push_text(&mut seen.parts, &text);
                Event::TextDelta { source: MODEL.to_owned(), text }
            }),
            Delta::Thought { text, .. } => (!text.is_empty()).then(|| {
                seen.begun = true;
                push_thought(&mut seen.parts, &text);
                Event::ThoughtDelta { source: MODEL.to_owned(), text }
            }),
            // A call is announced when it runs, from the completion.
            Delta::ToolCall(_) => {
                seen.begun = true;
                None
            }
            // A provider has no tool call to which output could belong.
            Delta::Output { text, .. } | Delta::Notice { text, .. } => {
                Some(Event::Notice { source: source(), text })
            }
            Delta::Progress { label, done, total, .. } => {
                Some(Event::Progress { source: source(), label, done, total })
            }
            // A provider changes no files, and has no plan.
            Delta::FileChanged(_) | Delta::PlanChanged(_) | Delta::Alive | Delta::Unknown => None,
        }
    }

    /// Ends the request. Later deltas are ignored.
    pub(crate) fn close(&self) -> ReceivedDeltas {
        let mut state = self.lock();
        state.closed = true;
        std::mem::take(&mut state.seen)
    }

    /// Becomes ready when the provider has been silent for too long, and returns how. Only time in
    /// which the process ran counts. Data that is in the socket after a stop is read first.
    pub(crate) async fn wait_for_silence(&self, patience: SilenceLimits) -> SilenceTimeout {
        loop {
            let before_ms = self.0.clock.monotonic_ms();
            let (alive_at_ms, said_at_ms) = {
                let state = self.lock();
                (state.alive_at_ms, state.said_at_ms)
            };
            let left = |since_ms: u64, most_ms: u64| {
                most_ms.saturating_sub(before_ms.saturating_sub(since_ms))
            };
            let idle_ms = left(alive_at_ms, patience.idle_ms);
            let keep_alive_ms = left(said_at_ms, patience.keep_alive_ms);
            if idle_ms == 0 {
                return SilenceTimeout::Dead;
            }
            if keep_alive_ms == 0 {
                return SilenceTimeout::KeptAlive;
            }
            let piece_ms = idle_ms.min(keep_alive_ms).min(PIECE_MS);
            self.0.clock.sleep(piece_ms).await;
            let passed_ms = self.0.clock.monotonic_ms().saturating_sub(before_ms);
            let over_ms = passed_ms.saturating_sub(piece_ms);
            // How much of the interval was before the stop is unknown, so none of it counts.
            let was_stopped = over_ms >= PIECE_MS;
            self.lock().exclude_time(
                if was_stopped { passed_ms } else { over_ms },
                before_ms.saturating_add(passed_ms),
                was_stopped.then_some(patience),
            );
        }
    }

    /// Becomes ready when the answer is longer than allowed.
    pub(crate) async fn wait_for_overflow(&self) {
        self.0.overflow.cancelled().await;
    }

    /// Returns true if the answer is longer than allowed.
    pub(crate) fn is_overflowed(&self) -> bool {
        self.0.overflow.is_cancelled()
    }

    fn lock(&self) -> MutexGuard<'_, DeltaSinkState> {
        self.0.state.lock()
    }
}

/// Returns true if a delta is more than a sign of life. An empty text only means that a call
/// continues.
fn has_content(delta: &Delta) -> bool {
    match delta {
        Delta::Text { .. }
        | Delta::Thought { .. }
        | Delta::ToolCall(_)
        | Delta::Output { .. }
        | Delta::Notice { .. }
        | Delta::Progress { .. } => true,
        Delta::FileChanged(_) | Delta::PlanChanged(_) | Delta::Alive | Delta::Unknown => false,
    }
}

fn answer_bytes(delta: &Delta) -> usize {
    match delta {
        Delta::Text { text, .. } | Delta::Thought { text, .. } => text.len(),
        Delta::ToolCall(_)
        | Delta::Output { .. }
        | Delta::Notice { .. }
        | Delta::Progress { .. }
        | Delta::FileChanged(_)
        | Delta::PlanChanged(_)
        | Delta::Alive
        | Delta::Unknown => 0,
    }
}

fn push_text(parts: &mut Vec<Part>, piece: &str) {
    if let Some(Part::Text { text, .. }) = parts.last_mut() {
        text.push_str(piece);
    } else {
        parts.push(Part::text(piece));
    }
}

fn push_thought(parts: &mut Vec<Part>, piece: &str) {
    if let Some(Part::Thought { text, .. }) = parts.last_mut() {
        text.push_str(piece);
    } else {
        parts.push(Part::thought(piece.to_owned()));
    }
}
