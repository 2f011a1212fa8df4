//! What plugins are asked beside their own calls, as the turn loop asks it: within a deadline, one
//! after the other, and no longer once a plugin has failed too often.
//!
//! Not the plugins: they are a port ([`Hooks`]). What each hook may change stands in a file of its
//! own.
//!
//! Invariant: a plugin that fails is passed over, and the person is told; but a guard that fails
//! denies the call.

mod asker;
mod prompt;
mod request;
mod result;
mod tool;

use futures_util::future::BoxFuture;
use jaato_types::hooks::Hook;
use jaato_types::{Error, ErrorKind, PluginName, Result, SessionId};
use serde_json::Value;

pub(crate) use asker::HookAsker;
pub use asker::{HOOK_FAILURES_MAX, HOOK_OPEN_MS_MAX};
pub(crate) use prompt::is_addition;
pub use prompt::{ADDITION_TOKENS_MAX, ADDITIONS_TOKENS_MAX, Addition};
pub use request::REQUEST_TEXT_TOKENS_MAX;
pub(crate) use request::RequestHook;
pub(crate) use result::Changed;
pub use tool::ARGUMENTS_SHOWN_BYTES_MAX;
pub(crate) use tool::{AboutCall, note_change};

use crate::{Cancel, SharedFacts};

/// The plugins that want to be asked.
pub trait Hooks: Send + Sync {
    /// Lists the plugins that are asked a hook, in the order in which they are asked. Called often:
    /// it is quick and opens nothing.
    fn asked(&self, hook: Hook) -> Vec<HookPlugin>;

    /// Sees to it that a plugin runs, so that its deadline is its own. Called once a session.
    fn open(&self, plugin: &PluginName, scope: HookScope) -> BoxFuture<'static, Result<()>>;

    /// Asks a plugin. The session drops the future at its deadline and on a cancel.
    fn ask(
        &self,
        plugin: &PluginName,
        hook: Hook,
        request: Value,
        scope: HookScope,
    ) -> BoxFuture<'static, Result<Value>>;
}

/// A plugin that is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookPlugin {
    /// Its name.
    pub name: PluginName,
    /// What events call it.
    pub source: String,
}

/// Where a question stands.
#[derive(Debug, Clone)]
pub struct HookScope {
    /// The session.
    pub session: SessionId,
    /// Set when no answer is wanted any more.
    pub cancel: Cancel,
    /// Model and tokens.
    pub facts: SharedFacts,
}

/// No plugin wants to be asked.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoHooks;

impl Hooks for NoHooks {
    fn asked(&self, _hook: Hook) -> Vec<HookPlugin> {
        Vec::new()
    }

    fn open(&self, plugin: &PluginName, _scope: HookScope) -> BoxFuture<'static, Result<()>> {
        Box::pin(std::future::ready(Err(no_hooks(plugin))))
    }

    fn ask(
        &self,
        plugin: &PluginName,
        _hook: Hook,
        _request: Value,
        _scope: HookScope,
    ) -> BoxFuture<'static, Result<Value>> {
        Box::pin(std::future::ready(Err(no_hooks(plugin))))
    }
}

fn no_hooks(plugin: &PluginName) -> Error {
    Error::new(ErrorKind::NotFound, format!("plugin `{plugin}` is asked nothing here"))
}

/// Cuts a text to so many tokens, as they are estimated; tells whether that shortened it.
fn cut_to_tokens(text: &mut String, tokens_max: u64) -> bool {
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
    fn a_text_is_cut_at_its_bound_between_two_signs() {
        let cut = |text: &str, tokens| {
            let mut text = text.to_owned();
            let is_cut = cut_to_tokens(&mut text, tokens);
            (text, is_cut)
        };
        assert_eq!(cut("abcd", 1), ("abcd".to_owned(), false));
        assert_eq!(cut("abcde", 1), ("abcd".to_owned(), true));
        assert_eq!(cut("abcé", 1), ("abc".to_owned(), true));
        assert_eq!(cut("a", 0), (String::new(), true));
    }
}
