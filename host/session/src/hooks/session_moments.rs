//! The start and the end of a session, the end of a turn, and the moment before a gc.

use futures_util::future::join_all;
use jaato_types::hooks::{
    BeforeGc, BeforeGcAnswer, Hook, SessionEnd, SessionStart, SessionText, TURN_CONTINUATIONS_MAX,
    TurnEnd, TurnEndAnswer,
};
use jaato_types::{Event, GcReason, Part, Result};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{HookAsker, HookPlugin, truncate_to_tokens};
use crate::turn::{TurnProgress, host_bug_error};
use crate::{Cancel, Session};

/// The most estimated tokens of a message with which a plugin makes a turn continue.
const CONTINUE_TOKENS_MAX: u64 = 2_000;

/// The key that names the plugin in such a message.
const CONTINUED_BY: &str = "continued_by_plugin";

impl Session {
    /// Lets plugins make the turn continue after the model's answer. Returns true if one does.
    pub(crate) async fn ask_to_continue(
        &mut self,
        text: &str,
        progress: &mut TurnProgress,
        cancel: &Cancel,
    ) -> Result<bool> {
        // Without a step left, or over a cap, the message would reach the model only with the next
        // prompt.
        let is_over_cap = self.shared.spent.lock().reached_cap_error(&self.shared.caps).is_some();
        if progress.steps >= self.shared.limits.steps_max || is_over_cap {
            return Ok(false);
        }
        let plugins = self.shared.hooks.plugins_to_ask(Hook::TurnEnd);
        if plugins.is_empty() {
            return Ok(false);
        }
        // The plugins may read the answer in the record.
        self.publish_record();
        let asked = self.shared.hooks.ask_turn_end(plugins, text, progress.continuations, cancel);
        let Some(message) = asked.await else { return Ok(false) };
        progress.continuations += 1;
        self.history.append_prompt(vec![message]).map_err(host_bug_error)?;
        Ok(true)
    }
}

impl HookAsker {
    /// Asks all plugins at the same time, before the first prompt. Returns their texts in plugin
    /// order.
    pub(super) async fn ask_session_start(
        &self,
        is_continued: bool,
        cancel: &Cancel,
    ) -> Vec<(HookPlugin, String)> {
        if !self.start_session() {
            return self.take_unsent_texts();
        }
        let request = SessionStart::new(is_continued, self.facts.snapshot());
        let plugins = self.plugins_to_ask(Hook::SessionStart);
        let answers = plugins.iter().map(|plugin| {
            let take = |answer: SessionText| Ok(answer.text);
            self.ask_hook(plugin, Hook::SessionStart, &request, cancel, take)
        });
        let answers = join_all(answers).await;
        if cancel.is_cancelled() {
            // The next prompt begins the session.
            self.end_session();
            return Vec::new();
        }
        let texts = plugins.into_iter().zip(answers);
        texts.filter_map(|(plugin, text)| Some((plugin, text.ok()?))).collect()
    }

    /// Tells all plugins at the same time that the session ends, if they know that it has started.
    pub(crate) async fn notify_session_end(&self) {
        if self.end_session() {
            let request = SessionEnd::new(self.facts.snapshot());
            let cancel = Cancel::new();
            tokio::select! {
                biased;
                () = self.notify_hook(Hook::SessionEnd, &request, &cancel) => {}
                // A plugin that waits for a model must not keep the session open.
                () = self.wait_maximum_time(Hook::SessionEnd) => cancel.cancel(),
            }
        }
    }

    /// Asks all plugins at the same time whether a gc may remove messages.
    ///
    /// # Errors
    /// If a plugin refuses it.
    pub(crate) async fn ask_before_gc(&self, reason: GcReason, cancel: &Cancel) -> Result<()> {
        let request = BeforeGc::new(reason, self.facts.snapshot());
        let plugins = self.plugins_to_ask(Hook::BeforeGc);
        let take = |answer: BeforeGcAnswer| Ok(answer.refusal);
        let asked = plugins
            .iter()
            .map(|plugin| self.ask_hook(plugin, Hook::BeforeGc, &request, cancel, take));
        for (plugin, answer) in plugins.iter().zip(join_all(asked).await) {
            // `ask` has reported a failure.
            let Ok(reason) = answer else { continue };
            if let Some(refusal) = plugin.refusal_error("refused the gc", &reason) {
                return Err(refusal);
            }
        }
        Ok(())
    }

    /// Asks the plugins one after the other whether the turn ends. Returns the message of the first
    /// one that makes it continue.
    async fn ask_turn_end(
        &self,
        plugins: Vec<HookPlugin>,
        text: &str,
        continuations: u32,
        cancel: &Cancel,
    ) -> Option<Part> {
        let request = TurnEnd::new(text, continuations, self.facts.snapshot());
        for plugin in plugins {
            let take = |answer: TurnEndAnswer| Ok(answer.continue_with);
            let answer = self.ask_hook(&plugin, Hook::TurnEnd, &request, cancel, take).await;
            let Ok(mut message) = answer else { continue };
            if message.trim().is_empty() {
                continue;
            }
            if continuations >= TURN_CONTINUATIONS_MAX {
                self.emitter.emit_notice(format!(
                    "the turn ends, although plugin `{}` wants it to continue: plugins have made \
                     it continue {TURN_CONTINUATIONS_MAX} times",
                    plugin.name
                ));
                return None;
            }
            truncate_to_tokens(&mut message, CONTINUE_TOKENS_MAX);
            let part = Part::json(json!({ CONTINUED_BY: plugin.name, "text": message }));
            self.emitter.emit(Event::TurnContinued { source: plugin.source, text: message });
            return Some(part);
        }
        None
    }

    async fn notify_hook(&self, hook: Hook, request: &impl Serialize, cancel: &Cancel) {
        let plugins = self.plugins_to_ask(hook);
        let take = |_: Map<String, Value>| Ok(());
        let told = plugins.iter().map(|plugin| self.ask_hook(plugin, hook, request, cancel, take));
        // `ask` has reported each failure.
        join_all(told).await;
    }
}
