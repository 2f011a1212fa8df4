//! Asks one plugin: opens it first, enforces its deadline, and counts its failures.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use jaato_types::hooks::Hook;
use jaato_types::{Error, ErrorKind, PluginName, Result, SessionId};
use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{HookPlugin, HookScope, Hooks};
use crate::clock::sleep_while_running;
use crate::events::EventEmitter;
use crate::{AnswerDeadline, Cancel, DeadlineHold, SessionClock, SessionPorts, SharedFacts};

/// The number of consecutive failures after which a session no longer asks a plugin, because each
/// failure can take the whole deadline.
pub const HOOK_FAILURES_MAX: u32 = 3;

/// The longest wait for a plugin to open before its first question. Its worker may have to start.
pub const HOOK_OPEN_MS_MAX: u64 = 5_000;

/// Asks a session's plugins.
pub(crate) struct HookAsker {
    pub(crate) port: Arc<dyn Hooks>,
    pub(crate) clock: Arc<dyn SessionClock>,
    pub(crate) emitter: EventEmitter,
    pub(crate) session: SessionId,
    pub(crate) facts: SharedFacts,
    /// The user's limit on deadlines that plugins ask for.
    deadline_ms_max: u64,
    state: Mutex<HookAskerState>,
}

#[derive(Default)]
struct HookAskerState {
    opened: HashSet<PluginName>,
    failures: HashMap<(PluginName, Hook), HookFailures>,
    /// Whether the plugins know that the session has started.
    is_started: bool,
    /// The text that plugins added at the session's start to a prompt that was refused. The next
    /// prompt gets it.
    unsent: Vec<(HookPlugin, String)>,
}

/// A plugin's consecutive failures, and the last error.
struct HookFailures {
    count: u32,
    last: Error,
}

impl HookAsker {
    pub(crate) fn new(
        ports: &SessionPorts,
        emitter: &EventEmitter,
        facts: &SharedFacts,
        session: &SessionId,
        deadline_ms_max: u64,
    ) -> Self {
        Self {
            port: Arc::clone(&ports.hooks),
            clock: Arc::clone(&ports.clock),
            emitter: emitter.clone(),
            session: session.clone(),
            facts: facts.clone(),
            deadline_ms_max,
            state: Mutex::default(),
        }
    }

    /// Lists the plugins that a hook asks, except those that have failed too often.
    pub(crate) fn plugins_to_ask(&self, hook: Hook) -> Vec<HookPlugin> {
        let mut plugins = self.port.plugins_with_hook(hook);
        plugins.retain(|plugin| self.disabled_reason(plugin, hook).is_none());
        plugins
    }

    /// Returns why a hook no longer asks a plugin.
    pub(crate) fn disabled_reason(&self, plugin: &HookPlugin, hook: Hook) -> Option<Error> {
        let state = self.state.lock();
        let failures = state.failures.get(&(plugin.name.clone(), hook))?;
        (failures.count >= HOOK_FAILURES_MAX).then(|| failures.last.clone())
    }

    /// Asks a plugin, and lets `take` judge the answer. A failure is counted and reported.
    ///
    /// # Errors
    /// If the answer is missing or unusable, or the call is `cancelled`, which does not count as a
    /// failure.
    pub(crate) async fn ask_hook<Q: Serialize, A: DeserializeOwned, T>(
        &self,
        plugin: &HookPlugin,
        hook: Hook,
        request: &Q,
        cancel: &Cancel,
        take: impl FnOnce(A) -> Result<T>,
    ) -> Result<T> {
        let answer = self.request_answer(plugin, hook, request, cancel).await;
        let taken =
            answer.and_then(|answer| {
                let read = serde_json::from_value(answer);
                take(read.map_err(|error| {
                    misbehaviour_error(&format!("its answer is invalid: {error}"))
                })?)
            });
        match &taken {
            Ok(_) => drop(self.state.lock().failures.remove(&(plugin.name.clone(), hook))),
            Err(error) if error.kind == ErrorKind::Cancelled && cancel.is_cancelled() => {}
            Err(error) => self.record_failure(plugin, hook, error),
        }
        taken
    }

    async fn request_answer<Q: Serialize>(
        &self,
        plugin: &HookPlugin,
        hook: Hook,
        request: &Q,
        cancel: &Cancel,
    ) -> Result<Value> {
        let request = serde_json::to_value(request)
            .map_err(|error| Error::new(ErrorKind::HostBug, error.to_string()))?;
        let is_open = self.state.lock().opened.contains(&plugin.name);
        if !is_open {
            let open =
                |stop, hold| self.port.open_plugin(&plugin.name, self.hook_scope(stop, hold));
            self.answer_deadline(HOOK_OPEN_MS_MAX, cancel).wait_for_answer(open).await?;
            self.state.lock().opened.insert(plugin.name.clone());
        }
        let ask = |stop, hold| {
            self.port.ask_hook(&plugin.name, hook, request, self.hook_scope(stop, hold))
        };
        let ms = hook.deadline_ms(plugin.deadline_ms, self.deadline_ms_max);
        self.answer_deadline(ms, cancel).wait_for_answer(ask).await
    }

    /// Notes that the session has started. Returns true the first time.
    pub(super) fn start_session(&self) -> bool {
        !std::mem::replace(&mut self.state.lock().is_started, true)
    }

    /// Notes that the session has ended. Returns true the first time, if it had started.
    pub(super) fn end_session(&self) -> bool {
        std::mem::take(&mut self.state.lock().is_started)
    }

    /// Keeps the texts of a start for the next prompt, because this one was refused.
    pub(super) fn keep_unsent_texts(&self, texts: Vec<(HookPlugin, String)>) {
        self.state.lock().unsent = texts;
    }

    /// Takes the texts of a start whose prompt was refused.
    pub(super) fn take_unsent_texts(&self) -> Vec<(HookPlugin, String)> {
        std::mem::take(&mut self.state.lock().unsent)
    }

    /// Becomes ready after the longest time that a question may take, paused or not.
    pub(super) async fn wait_maximum_time(&self, hook: Hook) {
        let ms = hook.deadline_ms(Some(u64::MAX), self.deadline_ms_max);
        sleep_while_running(Arc::clone(&self.clock), ms).await;
    }

    fn answer_deadline<'a>(&self, ms: u64, cancel: &'a Cancel) -> AnswerDeadline<'a> {
        let late = format!("it did not answer within {ms} ms");
        AnswerDeadline { clock: Arc::clone(&self.clock), cancel, ms, late }
    }

    fn hook_scope(&self, cancel: Cancel, hold: DeadlineHold) -> HookScope {
        HookScope {
            session: self.session.clone(),
            cancel,
            facts: self.facts.clone(),
            hold,
            notices: Some(self.emitter.clone()),
        }
    }

    fn record_failure(&self, plugin: &HookPlugin, hook: Hook, error: &Error) {
        let count = {
            let mut state = self.state.lock();
            let new = || HookFailures { count: 0, last: error.clone() };
            let failures = state.failures.entry((plugin.name.clone(), hook)).or_insert_with(new);
            failures.count += 1;
            failures.last = error.clone();
            failures.count
        };
        let (name, operation, why) = (&plugin.name, hook.name(), &error.message);
        let is_guard = hook == Hook::BeforeTool;
        let then = if is_guard { "denies the call, because it failed" } else { "is skipped" };
        self.emitter.emit_notice(format!("plugin `{name}` {then}: `{operation}`: {why}"));
        if count == HOOK_FAILURES_MAX {
            let then = if is_guard { "; every further call is denied" } else { "" };
            self.emitter.emit_notice(format!(
                "plugin `{name}` is no longer asked `{operation}` in this session, because it \
                 failed {HOOK_FAILURES_MAX} times in a row{then}; run `jaato plugin disable \
                 {name}` to disable it"
            ));
        }
    }
}

pub(super) fn misbehaviour_error(text: &str) -> Error {
    Error::new(ErrorKind::PluginMisbehaved, text)
}
