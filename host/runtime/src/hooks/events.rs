//! Reports a session's events to plugins in the background. Nothing ever waits for them.
//!
//! Each plugin has a bounded queue, and a task that passes queued events to the plugin. Events that
//! do not fit are counted, and a notice tells the user once.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::future::BoxFuture;
use jaato_session::{
    AnswerDeadline, Cancel, EventEmitter, EventSink, HOOK_FAILURES_MAX, HOOK_OPEN_MS_MAX,
    HookPlugin, HookScope, Hooks, SharedFacts, SystemClock,
};
use jaato_types::hooks::{EventBatch, Hook};
use jaato_types::{Error, ErrorKind, Event, EventEnvelope, Frame, SessionId};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::{PluginHooks, hook_plugin, plugins_with_hook};
use crate::host::{EventTap, RuntimeHost};

/// Maximum number of events queued for one plugin.
const WAITING_MAX: usize = 1_000;
/// Maximum bytes of events, as JSON, queued for one plugin.
const WAITING_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Maximum number of events in one call of a plugin.
const TOLD_MAX: usize = 64;
/// Maximum bytes of events, as JSON, in one call of a plugin. Larger events are dropped.
const TOLD_BYTES_MAX: usize = 1024 * 1024;
/// How long delivering the remaining events at a session's end may take.
const LAST_MS_MAX: u64 = 1_000;

/// Forwards a session's events and reports them to plugins.
pub(crate) struct EventHooks {
    to: Arc<dyn EventSink>,
    host: Arc<RuntimeHost>,
    session: SessionId,
    runtime: Handle,
    /// Makes an event cheap if no plugin listens.
    has_listeners: AtomicBool,
    listeners: Mutex<Vec<SessionEventListener>>,
    around: Arc<EventSessionState>,
}

/// The session's state that the tasks need, set once the session has begun.
#[derive(Default)]
struct EventSessionState {
    /// Removed at the end, because it refers back to these hooks and would form a reference cycle.
    emitter: Mutex<Option<EventEmitter>>,
    facts: OnceLock<SharedFacts>,
}

/// A plugin that listens.
struct SessionEventListener {
    plugin: HookPlugin,
    queue: Arc<EventQueue>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct EventQueue {
    waiting: Mutex<QueuedEvents>,
    news: Notify,
}

#[derive(Default)]
struct QueuedEvents {
    /// Each with its size as JSON.
    events: VecDeque<(Arc<EventEnvelope>, usize)>,
    bytes: usize,
    /// Number of events that did not fit since the last call of the plugin.
    dropped: u64,
    is_drop_told: bool,
    /// The queue takes no more events, or its plugin takes none.
    is_closed: bool,
}

impl EventHooks {
    /// Taps a session's events for the plugins that currently listen.
    pub(crate) fn new(host: Arc<RuntimeHost>, session: SessionId, to: Arc<dyn EventSink>) -> Self {
        let hooks = Self {
            to,
            host,
            session,
            runtime: Handle::current(),
            has_listeners: AtomicBool::new(false),
            listeners: Mutex::default(),
            around: Arc::default(),
        };
        hooks.find_listeners();
        hooks
    }

    /// Finds plugins that listen. A plugin that listens stays until the session ends.
    fn find_listeners(&self) {
        let registry = self.host.registry();
        let mut listeners = self.listeners.lock();
        for name in plugins_with_hook(&self.host, &registry, Hook::Event) {
            if listeners.iter().any(|listener| listener.plugin.name == name) {
                continue;
            }
            let plugin = hook_plugin(&registry, name, Hook::Event);
            let queue = Arc::<EventQueue>::default();
            let teller = EventReporter {
                port: PluginHooks::new(Arc::clone(&self.host)),
                plugin: plugin.clone(),
                session: self.session.clone(),
                queue: Arc::clone(&queue),
                around: Arc::clone(&self.around),
            };
            let task = self.runtime.spawn(teller.run());
            listeners.push(SessionEventListener { plugin, queue, task });
        }
        self.has_listeners.store(!listeners.is_empty(), Relaxed);
    }

    fn queue_for_listeners(&self, envelope: &EventEnvelope) {
        let bytes = Frame::write(envelope).map_or(usize::MAX, |frame| frame.len());
        let envelope = Arc::new(envelope.clone());
        for listener in &*self.listeners.lock() {
            listener.queue.push(&envelope, bytes);
        }
    }
}

impl EventTap for EventHooks {
    fn begin(&self, emitter: EventEmitter, facts: SharedFacts) {
        // A second call can only bring the same session's facts.
        *self.around.emitter.lock() = Some(emitter);
        let _ = self.around.facts.set(facts);
    }

    fn end(&self) -> BoxFuture<'_, ()> {
        self.has_listeners.store(false, Relaxed);
        let listeners = std::mem::take(&mut *self.listeners.lock());
        for listener in &listeners {
            listener.queue.waiting.lock().is_closed = true;
            listener.queue.news.notify_one();
        }
        Box::pin(async move {
            let deadline = tokio::time::Instant::now() + Duration::from_millis(LAST_MS_MAX);
            for mut listener in listeners {
                if tokio::time::timeout_at(deadline, &mut listener.task).await.is_err() {
                    listener.task.abort();
                }
            }
            *self.around.emitter.lock() = None;
        })
    }
}

impl EventSink for EventHooks {
    fn receive_event(&self, envelope: EventEnvelope) {
        if matches!(envelope.event, Event::TurnStarted { .. }) {
            self.find_listeners();
        }
        if self.has_listeners.load(Relaxed) {
            self.queue_for_listeners(&envelope);
        }
        self.to.receive_event(envelope);
    }
}

impl EventQueue {
    fn push(&self, envelope: &Arc<EventEnvelope>, bytes: usize) {
        let mut waiting = self.waiting.lock();
        if waiting.is_closed {
            return;
        }
        let has_room = waiting.events.len() < WAITING_MAX
            && bytes <= TOLD_BYTES_MAX
            && waiting.bytes + bytes <= WAITING_BYTES_MAX;
        if has_room {
            waiting.bytes += bytes;
            waiting.events.push_back((Arc::clone(envelope), bytes));
        } else {
            waiting.dropped += 1;
        }
        drop(waiting);
        self.news.notify_one();
    }

    /// Takes the next events to report, or `None` if the queue is empty.
    fn take_batch(&self) -> Option<EventBatch> {
        let mut waiting = self.waiting.lock();
        let (mut events, mut told_bytes) = (Vec::new(), 0);
        while let Some((envelope, bytes)) = waiting.events.front() {
            if events.len() >= TOLD_MAX || told_bytes + bytes > TOLD_BYTES_MAX {
                break;
            }
            told_bytes += bytes;
            events.push(EventEnvelope::clone(envelope));
            waiting.events.pop_front();
        }
        waiting.bytes -= told_bytes;
        let dropped = std::mem::take(&mut waiting.dropped);
        let is_nothing = events.is_empty() && dropped == 0;
        (!is_nothing).then(|| EventBatch::new(events).with_dropped(dropped))
    }

    /// Waits for events. Returns false once the queue is closed and empty.
    async fn wait_for_events(&self) -> bool {
        loop {
            let news = self.news.notified();
            {
                let waiting = self.waiting.lock();
                if !waiting.events.is_empty() || waiting.dropped > 0 {
                    return true;
                }
                if waiting.is_closed {
                    return false;
                }
            }
            news.await;
        }
    }

    fn close(&self) {
        let mut waiting = self.waiting.lock();
        *waiting = QueuedEvents { is_closed: true, ..QueuedEvents::default() };
    }
}

/// Reports events to one plugin.
struct EventReporter {
    port: PluginHooks,
    plugin: HookPlugin,
    session: SessionId,
    queue: Arc<EventQueue>,
    around: Arc<EventSessionState>,
}

impl EventReporter {
    async fn run(self) {
        let mut failures = 0;
        let mut is_open = false;
        while self.queue.wait_for_events().await {
            let Some(told) = self.queue.take_batch() else { continue };
            self.report_dropped(told.dropped);
            let told = self.report_events(&told, &mut is_open).await;
            failures = if told.is_ok() { 0 } else { failures + 1 };
            if failures >= HOOK_FAILURES_MAX {
                self.queue.close();
                self.give_up(told.err());
                return;
            }
        }
    }

    async fn report_events(&self, told: &EventBatch, is_open: &mut bool) -> Result<(), Error> {
        let cancel = Cancel::new();
        let facts = self.around.facts.get().cloned().unwrap_or_default();
        let session = &self.session;
        let scope = |cancel, hold| HookScope {
            session: session.clone(),
            cancel,
            facts: facts.clone(),
            hold,
            notices: None,
        };
        let deadline = |ms| AnswerDeadline {
            clock: Arc::new(SystemClock::new()),
            cancel: &cancel,
            ms,
            late: format!("it did not answer within {ms} ms"),
        };
        if !*is_open {
            let open = |stop, hold| self.port.open_plugin(&self.plugin.name, scope(stop, hold));
            deadline(HOOK_OPEN_MS_MAX).wait_for_answer(open).await?;
            *is_open = true;
        }
        let request = serde_json::to_value(told)
            .map_err(|error| Error::new(ErrorKind::HostBug, error.to_string()))?;
        let name = &self.plugin.name;
        let ask = |stop, hold| self.port.ask_hook(name, Hook::Event, request, scope(stop, hold));
        let limit_ms = self.port.host.setup.config.session.hook_deadline_ms;
        let ms = Hook::Event.deadline_ms(self.plugin.deadline_ms, limit_ms);
        deadline(ms).wait_for_answer(ask).await.map(drop)
    }

    /// Tells the user once that the plugin does not receive every event.
    fn report_dropped(&self, dropped: u64) {
        let is_first = {
            let mut waiting = self.queue.waiting.lock();
            dropped > 0 && !std::mem::replace(&mut waiting.is_drop_told, true)
        };
        if is_first {
            self.emit_notice(format!(
                "plugin `{}` handles events too slowly: some are skipped",
                self.plugin.name
            ));
        }
    }

    fn give_up(&self, error: Option<Error>) {
        let name = &self.plugin.name;
        let why = error.map_or_else(String::new, |error| format!(": {}", error.message));
        self.emit_notice(format!(
            "plugin `{name}` gets no more events in this session: it failed \
             {HOOK_FAILURES_MAX} times in a row{why}"
        ));
    }

    fn emit_notice(&self, text: String) {
        let emitter = self.around.emitter.lock().clone();
        if let Some(emitter) = emitter {
            emitter.emit(Event::Notice { source: "host".to_owned(), text });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notice_envelope(text: String) -> (Arc<EventEnvelope>, usize) {
        let event = Event::Notice { source: "host".to_owned(), text };
        let envelope = EventEnvelope { v: 1, seq: 1, session: "s".into(), event };
        let bytes = Frame::write(&envelope).map_or(usize::MAX, |frame| frame.len());
        (Arc::new(envelope), bytes)
    }

    #[test]
    fn events_beyond_the_queue_limit_are_counted_and_reported_as_dropped() {
        let queue = EventQueue::default();
        let (event, bytes) = notice_envelope("x".to_owned());
        for _ in 0..10_000 {
            queue.push(&event, bytes);
        }
        let mut told = Vec::new();
        while let Some(next) = queue.take_batch() {
            told.push((next.events.len(), next.dropped));
        }
        assert_eq!(told[0], (TOLD_MAX, 9_000));
        assert_eq!(told.iter().map(|(events, _)| events).sum::<usize>(), WAITING_MAX);
        assert_eq!(queue.waiting.lock().bytes, 0);
    }

    #[test]
    fn large_events_are_delivered_in_small_batches_and_huge_ones_dropped() {
        let queue = EventQueue::default();
        let (half, bytes) = notice_envelope("x".repeat(TOLD_BYTES_MAX / 2));
        for _ in 0..100 {
            queue.push(&half, bytes);
        }
        let (huge, bytes) = notice_envelope("x".repeat(TOLD_BYTES_MAX));
        queue.push(&huge, bytes);
        let first = queue.take_batch().map(|told| (told.events.len(), told.dropped));
        let held = WAITING_BYTES_MAX / (TOLD_BYTES_MAX / 2) - 1;
        assert_eq!(first, Some((1, 101 - held as u64)));
    }

    #[tokio::test]
    async fn closed_queue_delivers_waiting_events_and_accepts_no_more() {
        let queue = EventQueue::default();
        let (event, bytes) = notice_envelope("x".to_owned());
        queue.push(&event, bytes);
        queue.waiting.lock().is_closed = true;
        queue.push(&event, bytes);
        assert!(queue.wait_for_events().await);
        assert_eq!(queue.take_batch().map(|told| told.events.len()), Some(1));
        assert!(!queue.wait_for_events().await);
    }
}
