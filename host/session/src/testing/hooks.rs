//! Plugins with hooks whose answers a test defines.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt};
use jaato_types::hooks::Hook;
use jaato_types::{Error, PluginName, Result};
use parking_lot::Mutex;
use serde_json::Value;

use crate::{HookPlugin, HookScope, Hooks};

type ScriptedHookAnswer = Arc<dyn Fn(Value) -> BoxFuture<'static, Result<Value>> + Send + Sync>;

/// Plugins whose answers a test defines. Without any, no plugin is asked.
#[derive(Default)]
pub struct ScriptedHooks {
    plugins: Mutex<Vec<(PluginName, Hook, ScriptedHookAnswer)>>,
    asked: Mutex<Vec<(PluginName, Hook, Value)>>,
    deadlines_ms: Mutex<HashMap<Hook, u64>>,
    model_ms: Mutex<u64>,
}

impl ScriptedHooks {
    /// Adds a plugin that answers a hook with this closure. Plugins keep the order in which they
    /// are added.
    pub fn set_answer<F, B>(&self, plugin: &str, hook: Hook, answer: B) -> &Self
    where
        F: Future<Output = Result<Value>> + Send + 'static,
        B: Fn(Value) -> F + Send + Sync + 'static,
    {
        let answer: ScriptedHookAnswer = Arc::new(move |asked| answer(asked).boxed());
        self.plugins.lock().push((PluginName::from(plugin), hook, answer));
        self
    }

    /// Adds a plugin that answers a hook with this value.
    pub fn add_answering_plugin(&self, plugin: &str, hook: Hook, answer: Value) -> &Self {
        self.set_answer(plugin, hook, move |_| std::future::ready(Ok(answer.clone())))
    }

    /// Adds a plugin that never answers a hook.
    pub fn add_hanging_plugin(&self, plugin: &str, hook: Hook) -> &Self {
        self.set_answer(plugin, hook, |_| std::future::pending())
    }

    /// Makes all plugins ask for this deadline of a hook.
    pub fn set_deadline(&self, hook: Hook, ms: u64) -> &Self {
        self.deadlines_ms.lock().insert(hook, ms);
        self
    }

    /// Makes all plugins wait for a model this long before they answer.
    pub fn set_model_wait(&self, ms: u64) -> &Self {
        *self.model_ms.lock() = ms;
        self
    }

    /// Returns the questions so far, in order.
    pub fn asked_hooks(&self) -> Vec<(PluginName, Hook, Value)> {
        self.asked.lock().clone()
    }
}

impl Hooks for ScriptedHooks {
    fn plugins_with_hook(&self, hook: Hook) -> Vec<HookPlugin> {
        let plugins = self.plugins.lock();
        let asked = plugins.iter().filter(|(_, known, _)| *known == hook);
        let deadline_ms = self.deadlines_ms.lock().get(&hook).copied();
        asked
            .map(|(name, ..)| HookPlugin {
                name: name.clone(),
                source: name.to_string(),
                deadline_ms,
            })
            .collect()
    }

    fn open_plugin(
        &self,
        _plugin: &PluginName,
        _scope: HookScope,
    ) -> BoxFuture<'static, Result<()>> {
        async { Ok(()) }.boxed()
    }

    fn ask_hook(
        &self,
        plugin: &PluginName,
        hook: Hook,
        request: Value,
        scope: HookScope,
    ) -> BoxFuture<'static, Result<Value>> {
        self.asked.lock().push((plugin.clone(), hook, request.clone()));
        let plugins = self.plugins.lock();
        let mut found = plugins.iter().filter(|(name, known, _)| name == plugin && *known == hook);
        match found.next() {
            Some((_, _, answer)) => {
                let (answer, model_ms) = (answer(request), *self.model_ms.lock());
                async move {
                    let held = scope.hold.pause();
                    tokio::time::sleep(Duration::from_millis(model_ms)).await;
                    drop(held);
                    answer.await
                }
                .boxed()
            }
            None => async { Err(Error::failed("the test has no such plugin")) }.boxed(),
        }
    }
}
