//! Chooses the tools that requests offer from the start: the plugins' core tools in a fixed order,
//! as far as they fit the model's budget for tools. The model finds the others on demand.

use std::collections::BTreeSet;

use jaato_registry::{Registry, ToolEntry, ToolStatus};
use jaato_session::{discovery_tools, estimate_tokens};
use jaato_types::{Availability, Condition, Offer, PluginName, ToolName, ToolSpec, touches};
use serde_json::json;

/// Traits of tools that do the same job in two forms. A model gets the form that it knows.
const EDITS_BY_PATCH: &str = "edits_by_patch";
const EDITS_BY_TEXT: &str = "edits_by_text";

/// The token limit for a model's core tools.
#[derive(Debug, Clone)]
pub struct CoreBudget {
    /// Approximate tokens for the tools and the instructions of their plugins.
    pub tokens_max: u64,
    /// How the model edits files.
    pub edits: EditToolStyle,
    /// The tools that the model's configuration names. If any of them exists, they replace all
    /// others.
    pub named: Vec<ToolName>,
}

/// How a model edits files. Tools of the other form are found on demand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EditToolStyle {
    /// In all forms, because the user chose the tools.
    AllForms,
    /// By patches.
    ByPatch,
    /// By replacing text.
    ByText,
}

impl EditToolStyle {
    /// Returns how a model edits files.
    pub fn for_model(model: &str) -> Self {
        if jaato_model_facts::edits_by_patch(model) { Self::ByPatch } else { Self::ByText }
    }

    fn excludes_tool(self, tool: &ToolSpec) -> bool {
        let has = |wanted: &str| tool.traits.iter().any(|it| it == wanted);
        match self {
            Self::AllForms => false,
            Self::ByPatch => has(EDITS_BY_TEXT) && !has(EDITS_BY_PATCH),
            Self::ByText => has(EDITS_BY_PATCH) && !has(EDITS_BY_TEXT),
        }
    }
}

impl CoreBudget {
    /// All core tools.
    pub const ALL: Self =
        Self { tokens_max: u64::MAX, edits: EditToolStyle::AllForms, named: Vec::new() };

    /// Returns the core tools up to the first one that does not fit. The tools named in `first`
    /// come first, in that order, then the others by name, and finally those that a running plugin
    /// has set.
    pub fn fitting_tools<'a>(
        &self,
        tools: impl Iterator<Item = ToolEntry<'a>>,
        registry: &Registry,
        first: &[String],
    ) -> BTreeSet<ToolName> {
        let enabled = tools.filter(|tool| tool.status == ToolStatus::Enabled);
        // They cost nothing before a collection, and what it frees is more.
        let (collected, tools): (Vec<_>, Vec<ToolEntry<'_>>) =
            enabled.partition(|tool| is_core_after_collection(tool.spec));
        let collected = collected.into_iter().map(|tool| tool.spec.name.clone());
        let names = tools.iter().map(|tool| &tool.spec.name);
        let named: BTreeSet<ToolName> =
            names.filter(|name| self.named.contains(name)).cloned().collect();
        if !named.is_empty() {
            return named.into_iter().chain(collected).collect();
        }
        let place = |tool: &ToolEntry<'_>| {
            let name = tool.spec.name.as_str();
            first.iter().position(|it| it == name).unwrap_or(usize::MAX)
        };
        let is_core = |tool: &ToolEntry<'_>| {
            tool.spec.availability == Availability::Core && !self.edits.excludes_tool(tool.spec)
        };
        let mut tools: Vec<ToolEntry<'_>> = tools.into_iter().filter(is_core).collect();
        tools.sort_by(|a, b| {
            let by_name = || a.spec.name.as_str().cmp(b.spec.name.as_str());
            (place(a), a.is_set).cmp(&(place(b), b.is_set)).then_with(by_name)
        });
        // If not everything fits, requests also offer the host's own tools that find the others.
        let own: u64 = discovery_tools().iter().map(estimate_tool_tokens).sum();
        let mut left = self.tokens_max.saturating_sub(own);
        let mut instructed: BTreeSet<&PluginName> = BTreeSet::new();
        let mut fitting = BTreeSet::new();
        for tool in tools {
            let mut cost = estimate_tool_tokens(tool.spec);
            if !instructed.contains(tool.plugin) {
                cost += tool_instructions(registry, tool.plugin).map_or(0, estimate_tokens);
            }
            // Do not fill the gap with a smaller tool from further down: half of a group of tools
            // is worse than none of it.
            let Some(rest) = left.checked_sub(cost) else { break };
            left = rest;
            instructed.insert(tool.plugin);
            fitting.insert(tool.spec.name.clone());
        }
        fitting.extend(collected);
        fitting
    }
}

/// Returns true for a core tool that is offered only once messages were collected.
fn is_core_after_collection(tool: &ToolSpec) -> bool {
    let waits = |offer: &Offer| offer.condition == Condition::MessagesCollected;
    tool.availability == Availability::Core && tool.available_if.as_ref().is_some_and(waits)
}

/// Returns a plugin's instructions to the model while one of its tools is in requests.
pub fn tool_instructions<'a>(registry: &'a Registry, plugin: &PluginName) -> Option<&'a str> {
    let description = registry.plugin(plugin.as_str())?.description()?;
    description.instructions.as_deref()
}

/// Estimates the cost of a tool. Providers write tools in different ways.
fn estimate_tool_tokens(spec: &ToolSpec) -> u64 {
    let shown = json!({
        "name": spec.name,
        "description": spec.description,
        "parameters": touches::without_use_keyword(&spec.parameters),
    });
    estimate_tokens(&shown.to_string())
}
