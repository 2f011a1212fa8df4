//! Text that plugins add before a prompt.
//!
//! It is a part of the prompt's message, never of the system text, so earlier requests stay the
//! same. It is data that names its plugin, so that neither the model nor the user takes it for the
//! user's words.

use futures_util::future::join_all;
use jaato_types::hooks::{BeforePrompt, Hook, PromptAddition};
use jaato_types::{DataContent, DataPart, Event, Part, Result};
use serde_json::json;

use super::{HookAsker, HookPlugin, truncate_to_tokens};
use crate::{Cancel, estimate_tokens};

/// The maximum number of estimated tokens that one plugin adds to a prompt: a page or two.
pub const ADDITION_TOKENS_MAX: u64 = 2_000;
/// The maximum number of tokens that all plugins add to one prompt.
pub const ADDITIONS_TOKENS_MAX: u64 = 8_000;
/// All additions together may fill this fraction of the model's window, if its size is known: a
/// quarter.
const WINDOW_SHARE: u64 = 4;

/// The key that names the plugin in such a part.
const ADDED_BY: &str = "added_by_plugin";

/// A plugin's addition to a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookPromptAddition {
    /// The plugin.
    pub plugin: HookPlugin,
    /// The text.
    pub text: String,
    /// Its estimated length.
    pub tokens: u64,
    /// Whether it was truncated.
    pub is_cut: bool,
}

impl HookPromptAddition {
    /// Returns the part of the message.
    pub(crate) fn to_part(&self) -> Part {
        let mut value = json!({ ADDED_BY: self.plugin.name, "text": self.text });
        if self.is_cut {
            value["cut"] = true.into();
        }
        Part::json(value)
    }

    pub(crate) fn to_event(&self) -> Event {
        let source = self.plugin.source.clone();
        Event::PromptAdded { source, tokens: self.tokens, cut: self.is_cut }
    }
}

/// Returns true for a plugin's addition. It belongs to its prompt, and is not moved to another one.
pub(crate) fn is_addition(part: &Part) -> bool {
    let Part::Data(DataPart { content: DataContent::Json { json, .. }, .. }) = part else {
        return false;
    };
    json.get(ADDED_BY).is_some()
}

impl HookAsker {
    /// Asks what plugins add to a prompt, and before the session's first one what they add there.
    /// Returns the additions in plugin order.
    ///
    /// # Errors
    /// If a plugin refuses the prompt.
    pub(crate) async fn ask_before_turn(
        &self,
        prompt: &str,
        is_continued: bool,
        cancel: &Cancel,
    ) -> Result<Vec<HookPromptAddition>> {
        if prompt.trim().is_empty() {
            return Ok(Vec::new());
        }
        let mut texts = self.ask_session_start(is_continued, cancel).await;
        match self.ask_before_prompt(prompt, cancel).await {
            Ok(more) => texts.extend(more),
            Err(refused) => {
                self.keep_unsent_texts(texts);
                return Err(refused);
            }
        }
        Ok(self.limit_additions(texts))
    }

    /// Asks what plugins add to a prompt.
    ///
    /// # Errors
    /// If a plugin refuses the prompt.
    pub(crate) async fn prompt_additions(
        &self,
        prompt: &str,
        cancel: &Cancel,
    ) -> Result<Vec<HookPromptAddition>> {
        Ok(self.limit_additions(self.ask_before_prompt(prompt, cancel).await?))
    }

    /// Asks all plugins at the same time, because the user waits.
    async fn ask_before_prompt(
        &self,
        prompt: &str,
        cancel: &Cancel,
    ) -> Result<Vec<(HookPlugin, String)>> {
        let plugins = self.plugins_to_ask(Hook::BeforePrompt);
        if plugins.is_empty() || prompt.trim().is_empty() {
            return Ok(Vec::new());
        }
        let request = BeforePrompt::new(prompt, self.facts.snapshot());
        let answers = plugins.iter().map(|plugin| {
            let take = |answer: PromptAddition| Ok(answer);
            self.ask_hook(plugin, Hook::BeforePrompt, &request, cancel, take)
        });
        let answers = join_all(answers).await;
        let mut texts = Vec::new();
        for (plugin, answer) in plugins.into_iter().zip(answers) {
            let Ok(PromptAddition { text, refusal }) = answer else { continue };
            if let Some(refusal) = plugin.refusal_error("refused the prompt", &refusal) {
                return Err(refusal);
            }
            texts.push((plugin, text));
        }
        Ok(texts)
    }

    fn limit_additions(&self, texts: Vec<(HookPlugin, String)>) -> Vec<HookPromptAddition> {
        let limit = self.facts.snapshot().context_limit;
        let share = if limit == 0 { u64::MAX } else { limit / WINDOW_SHARE };
        let mut left = ADDITIONS_TOKENS_MAX.min(share);
        let mut additions = Vec::new();
        for (plugin, mut text) in texts {
            if text.trim().is_empty() {
                continue;
            }
            let is_cut = truncate_to_tokens(&mut text, left.min(ADDITION_TOKENS_MAX));
            let tokens = estimate_tokens(&text);
            left = left.saturating_sub(tokens);
            additions.push(HookPromptAddition { plugin, text, tokens, is_cut });
        }
        additions
    }
}
