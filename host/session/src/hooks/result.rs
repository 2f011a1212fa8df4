//! Changes by plugins to a tool's result, before the model gets it.

use jaato_types::hooks::{AfterTool, Hook, ResultChange};
use jaato_types::{Event, PluginName, ToolCall};
use serde_json::{Map, Value};

use super::HookAsker;
use crate::Cancel;

/// A result, and whether a plugin changed it.
pub(crate) struct HookedResult {
    pub(crate) content: Map<String, Value>,
    pub(crate) is_changed: bool,
}

impl HookAsker {
    /// Asks the plugins one after the other. Each gets the previous one's result. `owner` is the
    /// plugin that the tool comes from, empty for the host's own tools. Not even a cancel stops
    /// this, because content that a plugin removes from a result must not be seen after a cancel
    /// either.
    pub(crate) async fn ask_after_tool(
        &self,
        call: &ToolCall,
        owner: &PluginName,
        content: Map<String, Value>,
        is_error: bool,
    ) -> HookedResult {
        let mut changed = HookedResult { content, is_changed: false };
        let plugins = self.plugins_to_ask(Hook::AfterTool);
        if plugins.is_empty() {
            return changed;
        }
        let never = Cancel::new();
        for plugin in plugins {
            let (name, arguments) = (call.name.clone(), call.arguments.clone());
            let request = AfterTool::new(name, arguments, changed.content.clone()).with_call(
                call.id.clone(),
                owner.clone(),
                is_error,
            );
            let take = |answer: ResultChange| Ok(answer);
            let answer = self.ask_hook(&plugin, Hook::AfterTool, &request, &never, take).await;
            let Ok(answer) = answer else { continue };
            let mut content = answer.replace.unwrap_or_else(|| changed.content.clone());
            content.extend(answer.add);
            if content == changed.content {
                continue;
            }
            changed = HookedResult { content, is_changed: true };
            self.emitter.emit(Event::ToolResultChanged {
                call_id: call.id.clone(),
                name: call.name.clone(),
                source: plugin.source,
            });
        }
        changed
    }
}
