//! Asks plugins questions outside of their own calls. Each question has a deadline, plugins are
//! asked one after the other, and a plugin that fails too often is skipped.
//!
//! This module does not know the plugins: they are a port ([`Hooks`]). Each hook's limits are in a
//! file of its own.
//!
//! Invariant: a plugin that fails is skipped, and the user gets a notice. A guard that fails denies
//! the call.

mod asker;
mod prompt;
mod request;
mod result;
mod session_moments;
mod tool;

use futures_util::future::BoxFuture;
use jaato_types::hooks::Hook;
use jaato_types::{Error, ErrorKind, PluginName, Result, SessionId};
use serde_json::Value;

pub(crate) use asker::HookAsker;
pub use asker::{HOOK_FAILURES_MAX, HOOK_OPEN_MS_MAX};
pub(crate) use prompt::is_addition;
pub use prompt::{ADDITION_TOKENS_MAX, ADDITIONS_TOKENS_MAX, HookPromptAddition};
pub use request::REQUEST_TEXT_TOKENS_MAX;
pub(crate) use request::RequestHook;
pub(crate) use result::HookedResult;
pub use tool::ARGUMENTS_SHOWN_BYTES_MAX;
pub(crate) use tool::{GuardedCallFacts, note_argument_change};

use crate::{Cancel, DeadlineHold, EventEmitter, SharedFacts};

/// The plugins that have hooks.
pub trait Hooks: Send + Sync {
    /// Lists the plugins that a hook asks, in order. Called often, so it must be quick and open
    /// nothing.
    fn plugins_with_hook(&self, hook: Hook) -> Vec<HookPlugin>;

    /// Makes sure that a plugin runs, so that starting it does not count against its deadline.
    /// Called once a session.
    fn open_plugin(&self, plugin: &PluginName, scope: HookScope) -> BoxFuture<'static, Result<()>>;

    /// Asks a plugin. The session drops the future at its deadline and on a cancel.
    fn ask_hook(
        &self,
        plugin: &PluginName,
        hook: Hook,
        request: Value,
        scope: HookScope,
    ) -> BoxFuture<'static, Result<Value>>;
}

/// A plugin that has a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookPlugin {
    /// Its name.
    pub name: PluginName,
    /// Its name in events.
    pub source: String,
    /// The deadline that it asks for, in milliseconds. `None` if the default is enough.
    pub deadline_ms: Option<u64>,
}

/// The longest reason of a refusal, in bytes.
const REFUSAL_BYTES_MAX: usize = 1_000;

impl HookPlugin {
    /// Returns the error of a plugin that `did` something, for example `refused the prompt`.
    /// Returns `None` if it gives no reason, which means that it did not.
    fn refusal_error(&self, did: &str, reason: &str) -> Option<Error> {
        let reason = reason.trim();
        let shown = &reason[..reason.floor_char_boundary(REFUSAL_BYTES_MAX)];
        let text = format!("plugin `{}` {did}: {shown}", self.name);
        (!reason.is_empty()).then(|| Error::new(ErrorKind::PermissionDenied, text))
    }
}

/// The context of a question.
#[derive(Clone)]
pub struct HookScope {
    /// The session.
    pub session: SessionId,
    /// Set when the session stops waiting for an answer.
    pub cancel: Cancel,
    /// Model and tokens.
    pub facts: SharedFacts,
    /// Pauses the deadline of the answer.
    pub hold: DeadlineHold,
    /// Shows the plugin's notices. `None` for events, because each notice is an event.
    pub notices: Option<EventEmitter>,
}

/// No plugin has a hook.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoHooks;

impl Hooks for NoHooks {
    fn plugins_with_hook(&self, _hook: Hook) -> Vec<HookPlugin> {
        Vec::new()
    }

    fn open_plugin(
        &self,
        plugin: &PluginName,
        _scope: HookScope,
    ) -> BoxFuture<'static, Result<()>> {
        Box::pin(std::future::ready(Err(no_hooks_error(plugin))))
    }

    fn ask_hook(
        &self,
        plugin: &PluginName,
        _hook: Hook,
        _request: Value,
        _scope: HookScope,
    ) -> BoxFuture<'static, Result<Value>> {
        Box::pin(std::future::ready(Err(no_hooks_error(plugin))))
    }
}

fn no_hooks_error(plugin: &PluginName) -> Error {
    Error::new(ErrorKind::NotFound, format!("plugin `{plugin}` has no hooks here"))
}

/// Truncates a text to this many estimated tokens. Returns true if that shortened it.
fn truncate_to_tokens(text: &mut String, tokens_max: u64) -> bool {
    let bytes_max = usize::try_from(tokens_max.saturating_mul(4)).unwrap_or(usize::MAX);
    if text.len() <= bytes_max {
        return false;
    }
    text.truncate(text.floor_char_boundary(bytes_max));
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_truncated_to_tokens_at_a_character_boundary() {
        let cut = |text: &str, tokens| {
            let mut text = text.to_owned();
            let is_cut = truncate_to_tokens(&mut text, tokens);
            (text, is_cut)
        };
        assert_eq!(cut("abcd", 1), ("abcd".to_owned(), false));
        assert_eq!(cut("abcde", 1), ("abcd".to_owned(), true));
        assert_eq!(cut("abcé", 1), ("abc".to_owned(), true));
        assert_eq!(cut("a", 0), (String::new(), true));
    }
}
