//! The model's back end as a trait, and the sink that takes its deltas while it works.
//!
//! The sink is the one place that decides what a person has seen: it emits and remembers under one
//! lock, and refuses everything once the request is over.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;
use jaato_types::{Completion, Delta, Event, Part, Request, Result};

use crate::events::{Emitter, MODEL};
use crate::{Cancel, Clock};

/// A stateless back end: a request holds everything that it needs.
pub trait Provider: Send + Sync {
    /// Returns the provider's name in events: its plugin's without the kind, `local`.
    fn source(&self) -> &str;

    /// Answers one request. Deltas go to the sink while it works; the completion holds the whole.
    /// On cancel the session sets the flag and drops the future; neither waits for the other.
    /// Never retries: that is the session's job, by the error's retry class.
    fn complete<'a>(
        &'a self,
        request: &'a Request,
        sink: DeltaSink,
        cancel: Cancel,
    ) -> BoxFuture<'a, Result<Completion>>;
}

/// Takes a provider's deltas, from any thread. Clones are the same sink.
#[derive(Clone)]
pub struct DeltaSink(Arc<Inner>);

struct Inner {
    emitter: Emitter,
    clock: Arc<dyn Clock>,
    source: String,
    answer_bytes_max: usize,
    overflow: Cancel,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    closed: bool,
    active_at_ms: u64,
    bytes: usize,
    seen: Seen,
}

/// What arrived before the request was over.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Seen {
    /// Text and thoughts in order, runs of one kind joined; no calls, which nobody sees yet.
    pub(crate) parts: Vec<Part>,
    /// Whether a part of an answer arrived at all, calls included.
    pub(crate) begun: bool,
}

impl Seen {
    /// Tells whether a person saw a part of the answer.
    pub(crate) fn is_visible(&self) -> bool {
        !self.parts.is_empty()
    }
}

impl DeltaSink {
    pub(crate) fn new(
        emitter: Emitter,
        clock: Arc<dyn Clock>,
        source: &str,
        answer_bytes_max: usize,
    ) -> Self {
        let state = State { active_at_ms: clock.monotonic_ms(), ..State::default() };
        Self(Arc::new(Inner {
            emitter,
            clock,
            source: source.to_owned(),
            answer_bytes_max,
            overflow: Cancel::new(),
            state: Mutex::new(state),
        }))
    }

    /// Takes one delta. False once the request is over or the answer too long: then nothing more is
    /// taken.
    pub fn emit(&self, delta: Delta) -> bool {
        let mut state = self.lock();
        if state.closed || self.0.overflow.is_cancelled() {
            return false;
        }
        state.active_at_ms = self.0.clock.monotonic_ms();
        state.bytes = state.bytes.saturating_add(answer_bytes(&delta));
        if state.bytes > self.0.answer_bytes_max {
            self.0.overflow.cancel();
            return false;
        }
        // The lock is held while the event goes out: what is emitted and what is remembered agree.
        if let Some(event) = self.take(&mut state.seen, delta) {
            self.0.emitter.emit(event);
        }
        true
    }

    fn take(&self, seen: &mut Seen, delta: Delta) -> Option<Event> {
        let source = || self.0.source.clone();
        match delta {
            Delta::Text { text } => (!text.is_empty()).then(|| {
                seen.begun = true;
                push_text(&mut seen.parts, &text);
                Event::TextDelta { source: MODEL.to_owned(), text }
            }),
            Delta::Thought { text } => (!text.is_empty()).then(|| {
                seen.begun = true;
                push_thought(&mut seen.parts, &text);
                Event::ThoughtDelta { source: MODEL.to_owned(), text }
            }),
            // A call is announced when it runs, from the completion.
            Delta::ToolCall(_) => {
                seen.begun = true;
                None
            }
            // A provider has no tool call that its output could belong to.
            Delta::Output { text } | Delta::Notice { text } => {
                Some(Event::Notice { source: source(), text })
            }
            Delta::Progress { label, done, total } => {
                Some(Event::Progress { source: source(), label, done, total })
            }
            Delta::Unknown => None,
        }
    }

    /// Ends the request: nothing is taken any more.
    pub(crate) fn close(&self) -> Seen {
        let mut state = self.lock();
        state.closed = true;
        std::mem::take(&mut state.seen)
    }

    /// Becomes ready after `idle_ms` without a delta of any kind.
    pub(crate) async fn stalled(&self, idle_ms: u64) {
        loop {
            let quiet_ms = self.0.clock.monotonic_ms().saturating_sub(self.lock().active_at_ms);
            if quiet_ms >= idle_ms {
                return;
            }
            self.0.clock.sleep(idle_ms - quiet_ms).await;
        }
    }

    /// Becomes ready when the answer is longer than allowed.
    pub(crate) async fn overflowed(&self) {
        self.0.overflow.cancelled().await;
    }

    /// Tells whether the answer is longer than allowed.
    pub(crate) fn is_overflowed(&self) -> bool {
        self.0.overflow.is_cancelled()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn answer_bytes(delta: &Delta) -> usize {
    match delta {
        Delta::Text { text } | Delta::Thought { text } => text.len(),
        Delta::ToolCall(_)
        | Delta::Output { .. }
        | Delta::Notice { .. }
        | Delta::Progress { .. }
        | Delta::Unknown => 0,
    }
}

fn push_text(parts: &mut Vec<Part>, piece: &str) {
    if let Some(Part::Text { text }) = parts.last_mut() {
        text.push_str(piece);
    } else {
        parts.push(Part::text(piece));
    }
}

fn push_thought(parts: &mut Vec<Part>, piece: &str) {
    if let Some(Part::Thought { text, .. }) = parts.last_mut() {
        text.push_str(piece);
    } else {
        parts.push(Part::Thought { text: piece.to_owned(), signature: None });
    }
}
