//! The tools of a request, and how they change on the way. Pure.
//!
//! Where a model takes changes in mid-conversation, the list stays as it was first sent and a
//! change stands at its place in the history. For any other model what was added stands behind the
//! list, and what was removed stays listed: the host answers a call of it with the reason.

use std::collections::BTreeSet;

use jaato_plugin_sdk::serde_json::{Value, json};
use jaato_plugin_sdk::types::{Part, Request, ToolSpec, ToolsChanged};

use crate::facts::Facts;

/// The header by which tools change in mid-conversation.
pub(crate) const CHANGES_BETA: &str = "inline-tools-2026-09-15";

/// Writes the list of tools.
pub(crate) fn list(request: &Request, facts: &Facts) -> Vec<Value> {
    let mut listed: Vec<&ToolSpec> = request.tools.iter().collect();
    if !facts.changes_tools {
        for added in changes(request).flat_map(|changed| &changed.added) {
            match listed.iter_mut().find(|known| known.name == added.name) {
                Some(known) => *known = added,
                None => listed.push(added),
            }
        }
    }
    listed.into_iter().map(definition).collect()
}

fn changes(request: &Request) -> impl Iterator<Item = &ToolsChanged> {
    let parts = request.messages.iter().flat_map(|message| &message.parts);
    parts.filter_map(|part| match part {
        Part::ToolsChanged(changed) => Some(changed),
        _ => None,
    })
}

fn definition(spec: &ToolSpec) -> Value {
    let schema = if spec.parameters.is_object() {
        spec.parameters.clone()
    } else {
        json!({ "type": "object" })
    };
    json!({ "name": spec.name, "description": spec.description, "input_schema": schema })
}

/// The tools that a model was told of, so far in its history.
#[derive(Debug)]
pub(crate) struct Told<'a> {
    names: BTreeSet<&'a str>,
    takes_changes: bool,
}

impl<'a> Told<'a> {
    /// Begins with the list.
    pub(crate) fn new(request: &'a Request, facts: &Facts) -> Self {
        let names = request.tools.iter().map(|spec| spec.name.as_str()).collect();
        Self { names, takes_changes: facts.changes_tools }
    }

    /// Writes the blocks of a change; none where the model takes none.
    pub(crate) fn change(&mut self, changed: &'a ToolsChanged) -> Vec<Value> {
        if !self.takes_changes {
            return Vec::new();
        }
        let mut blocks = Vec::new();
        for name in &changed.removed {
            // The vendor refuses a name of which it was never told.
            if self.names.contains(name.as_str()) {
                let tool = json!({ "type": "tool_reference", "name": name });
                blocks.push(json!({ "type": "tool_removal", "tool": tool }));
            }
        }
        for spec in &changed.added {
            self.names.insert(spec.name.as_str());
            let tool = json!({ "type": "tool_definition", "definition": definition(spec) });
            blocks.push(json!({ "type": "tool_addition", "tool": tool }));
        }
        blocks
    }
}
