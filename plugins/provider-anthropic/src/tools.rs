//! Writes a request's tools and their changes during a conversation. Pure.
//!
//! If a model supports changes during a conversation, the list stays as it was first sent, and each
//! change appears at its position in the history. For other models, added tools follow the list,
//! and removed tools stay listed. The host answers a call to a removed tool with the reason.

use std::collections::BTreeSet;

use jaato_plugin_sdk::serde_json::{Value, json};
use jaato_plugin_sdk::types::{CompletionRequest, Part, ToolSpec, ToolsChanged};

use crate::facts::AnthropicModelFacts;

/// The beta header for changing tools during a conversation.
pub(crate) const CHANGES_BETA: &str = "inline-tools-2026-09-15";

/// Writes the list of tools.
pub(crate) fn write_tools(request: &CompletionRequest, facts: &AnthropicModelFacts) -> Vec<Value> {
    let mut listed: Vec<&ToolSpec> = request.tools.iter().collect();
    if !facts.changes_tools {
        for added in tool_changes(request).flat_map(|changed| &changed.added) {
            match listed.iter_mut().find(|known| known.name == added.name) {
                Some(known) => *known = added,
                None => listed.push(added),
            }
        }
    }
    listed.into_iter().map(tool_definition).collect()
}

fn tool_changes(request: &CompletionRequest) -> impl Iterator<Item = &ToolsChanged> {
    let parts = request.messages.iter().flat_map(|message| &message.parts);
    parts.filter_map(|part| match part {
        Part::ToolsChanged(changed) => Some(changed),
        _ => None,
    })
}

fn tool_definition(spec: &ToolSpec) -> Value {
    let schema = if spec.parameters.is_object() {
        spec.parameters.clone()
    } else {
        json!({ "type": "object" })
    };
    json!({ "name": spec.name, "description": spec.description, "input_schema": schema })
}

/// The tools that the model knows at a point in its history.
#[derive(Debug)]
pub(crate) struct AnnouncedTools<'a> {
    names: BTreeSet<&'a str>,
    takes_changes: bool,
}

impl<'a> AnnouncedTools<'a> {
    /// Starts with the request's list.
    pub(crate) fn new(request: &'a CompletionRequest, facts: &AnthropicModelFacts) -> Self {
        let names = request.tools.iter().map(|spec| spec.name.as_str()).collect();
        Self { names, takes_changes: facts.changes_tools }
    }

    /// Writes the blocks of a change, or no blocks if the model does not support changes.
    pub(crate) fn announce_change(&mut self, changed: &'a ToolsChanged) -> Vec<Value> {
        if !self.takes_changes {
            return Vec::new();
        }
        let mut blocks = Vec::new();
        for name in &changed.removed {
            // The vendor refuses a name that it does not know.
            if self.names.contains(name.as_str()) {
                let tool = json!({ "type": "tool_reference", "name": name });
                blocks.push(json!({ "type": "tool_removal", "tool": tool }));
            }
        }
        for spec in &changed.added {
            self.names.insert(spec.name.as_str());
            let tool = json!({ "type": "tool_definition", "definition": tool_definition(spec) });
            blocks.push(json!({ "type": "tool_addition", "tool": tool }));
        }
        blocks
    }
}
