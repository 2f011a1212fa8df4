//! The session's tools by name: which are in requests, which may be called, which names are
//! similar.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jaato_types::tools_list::ToolFacts;
use jaato_types::tools_set::ToolSource;
use jaato_types::{
    Condition, Error, ErrorKind, Offer, PluginName, Result, ToolCall, ToolName, ToolSpec,
    fit_arguments,
};

use crate::{ArgumentChecks, KnownTool, LIST_TOOLS, ToolState, introspection, objects};

/// How similar a name must be to be suggested for an unknown one (Jaro-Winkler).
const NEAR_ENOUGH: f64 = 0.7;
/// A name that contains this many characters of the wanted one, anywhere, counts as similar.
const PART_CHARS_MIN: usize = 3;
/// The maximum number of names that an error suggests.
const NAMES_MAX: usize = 3;

/// The tools of a session.
#[derive(Debug, Clone)]
pub struct Toolbox {
    /// Shared, because each change while calls run copies the toolbox.
    pub(crate) tools: Vec<Arc<KnownTool>>,
    /// Indices of the tools in requests, in the order of the request.
    pub(crate) active: Vec<usize>,
    pub(crate) checks: ArgumentChecks,
    /// Tools whose condition does not hold. They join no request.
    pub(crate) withheld: BTreeMap<ToolName, WithheldTool>,
    /// Tools that existed before. A model may still know about them.
    pub(crate) gone: BTreeSet<ToolName>,
    /// Sources of tools that had failed at the last wait for tools.
    pub(crate) missing: Vec<ToolSource>,
}

/// A tool that is not offered because its condition does not hold.
#[derive(Debug, Clone)]
pub(crate) struct WithheldTool {
    /// The reason for the model.
    pub(crate) reason: String,
    /// Whether it is in requests once it is offered.
    pub(crate) wanted: bool,
}

/// A tool that may be called.
#[derive(Debug, Clone, Copy)]
pub struct CallableTool<'a> {
    /// The tool.
    pub tool: &'a KnownTool,
    /// Whether it is in requests.
    pub active: bool,
}

impl Toolbox {
    /// Takes the tools, in the order that requests will have.
    ///
    /// If some of them are not in requests, the host's own tools that find them come last.
    pub fn new(mut tools: Vec<KnownTool>) -> Self {
        if tools.iter().any(|tool| tool.state == ToolState::Inactive) {
            tools.extend(introspection::introspection_tools());
        }
        let active = (0..tools.len()).filter(|&index| tools[index].state == ToolState::Active);
        let active = active.collect();
        let (checks, withheld) = (ArgumentChecks::new(), BTreeMap::new());
        let tools = tools.into_iter().map(Arc::new).collect();
        let mut toolbox =
            Self { tools, active, checks, withheld, gone: BTreeSet::new(), missing: Vec::new() };
        for (name, Offer { reason, .. }) in toolbox.conditional_tools() {
            toolbox.withhold_tool(&name, reason);
        }
        toolbox
    }

    /// Lists the tools that are offered only on a condition.
    pub(crate) fn conditional_tools(&self) -> Vec<(ToolName, Offer)> {
        self.tools_declaring(|spec| spec.available_if.clone())
    }

    /// Lists the tools that run automatically on a condition.
    pub(crate) fn automatic_tools(&self) -> Vec<(ToolName, Condition)> {
        self.tools_declaring(|spec| spec.run_if.clone())
    }

    fn tools_declaring<T>(&self, read: impl Fn(&ToolSpec) -> Option<T>) -> Vec<(ToolName, T)> {
        let usable =
            self.tools.iter().filter(|tool| !matches!(tool.state, ToolState::Disabled { .. }));
        usable.filter_map(|tool| Some((tool.spec.name.clone(), read(&tool.spec)?))).collect()
    }

    /// Takes a tool out of requests until it is offered. Returns true if that changed them.
    pub(crate) fn withhold_tool(&mut self, name: &ToolName, reason: String) -> bool {
        if let Some(withheld) = self.withheld.get_mut(name) {
            withheld.reason = reason;
            return false;
        }
        let place = self.tool_index(name);
        let before = self.active.len();
        self.active.retain(|index| Some(*index) != place);
        let wanted = self.active.len() < before;
        self.withheld.insert(name.clone(), WithheldTool { reason, wanted });
        wanted
    }

    /// Adds a tool that was withheld to the end of the tools in requests, if it belongs there.
    /// Returns true if that changed them.
    pub(crate) fn offer_tool(&mut self, name: &ToolName) -> bool {
        let Some(WithheldTool { wanted: true, .. }) = self.withheld.remove(name) else {
            return false;
        };
        let place = self.tool_index(name).filter(|index| !self.active.contains(index));
        self.active.extend(place);
        place.is_some()
    }

    /// Returns true if a tool is in requests, or would be if it were offered.
    pub(crate) fn is_requested_tool(&self, name: &ToolName) -> bool {
        match self.withheld.get(name) {
            Some(withheld) => withheld.wanted,
            None => self.tool_index(name).is_some_and(|index| self.active.contains(&index)),
        }
    }

    /// Returns why a tool is not offered.
    pub(crate) fn withheld_reason(&self, name: &ToolName) -> Option<&str> {
        self.withheld.get(name).map(|withheld| withheld.reason.as_str())
    }

    /// Returns the error for a model that calls a tool that it is not offered.
    pub(crate) fn withheld_error(&self, name: &ToolName) -> Option<Error> {
        let reason = self.withheld_reason(name)?;
        let text = format!("the tool `{name}` is not available: {reason}");
        Some(
            Error::new(ErrorKind::Unavailable, text)
                .with_hint("fix that first, or continue without the tool"),
        )
    }

    /// Lists every tool.
    pub fn tools(&self) -> impl Iterator<Item = &KnownTool> {
        self.tools.iter().map(|tool| &**tool)
    }

    /// Lists the tools in requests, in their order.
    pub fn active_tools(&self) -> impl Iterator<Item = &ToolSpec> {
        self.active.iter().map(|&index| &self.tools[index].spec)
    }

    /// Returns false if a plugin has tools and all of them are disabled, because the model does not
    /// have to know how to use them.
    pub(crate) fn can_use_plugin(&self, plugin: &PluginName) -> bool {
        let mut of_plugin = self.tools.iter().filter(|tool| tool.plugin == *plugin).peekable();
        of_plugin.peek().is_none()
            || of_plugin.any(|tool| !matches!(tool.state, ToolState::Disabled { .. }))
    }

    /// Lists the tools that may be called, for plugins.
    pub(crate) fn tool_facts(&self) -> Vec<ToolFacts> {
        let may_be_called = |(index, tool): (usize, &Arc<KnownTool>)| {
            let is_disabled = matches!(tool.state, ToolState::Disabled { .. });
            let is_withheld = self.withheld.contains_key(&tool.spec.name);
            if is_disabled || is_withheld || introspection::is_host_tool(tool) {
                return None;
            }
            let mut facts = ToolFacts::default();
            facts.name = tool.spec.name.clone();
            facts.source = tool.source().to_owned();
            facts.description.clone_from(&tool.spec.description);
            facts.is_active = self.active.contains(&index);
            facts.auto_background = tool.spec.auto_background;
            Some(facts)
        };
        self.tools.iter().enumerate().filter_map(may_be_called).collect()
    }

    /// Finds a tool that may be called. The model can act on the error.
    pub fn find_tool(&self, name: &ToolName) -> Result<CallableTool<'_>> {
        let Some(index) = self.tool_index(name) else { return Err(self.unknown_tool_error(name)) };
        let tool = &self.tools[index];
        match &tool.state {
            ToolState::Active | ToolState::Inactive => {
                Ok(CallableTool { tool, active: self.active.contains(&index) })
            }
            ToolState::Disabled { by } => {
                let text = format!("the tool `{name}` is disabled {by}");
                Err(Error::new(ErrorKind::ToolDisabled, text)
                    .with_hint("continue without it, or tell the user that it is needed"))
            }
        }
    }

    /// Checks arguments against a tool's schema.
    pub fn check_arguments(&self, tool: &KnownTool, arguments: &serde_json::Value) -> Result<()> {
        self.checks.check_tool_arguments(&accepted_spec(tool), arguments)
    }

    /// Fits a call's arguments to a tool's schema, as far as their meaning is clear.
    pub(crate) fn fit_arguments(&self, tool: &KnownTool, mut call: ToolCall) -> ToolCall {
        call.arguments = fit_arguments(&accepted_spec(tool), call.arguments);
        call
    }

    /// Returns true if there is the tool that looks at objects, or a plugin's tool with its name.
    pub(crate) fn has_view_tool(&self) -> bool {
        self.tools.iter().any(|tool| tool.spec.name.as_str() == objects::VIEW_ENVIRONMENT)
    }

    /// Adds the tool that looks at objects to the end.
    pub(crate) fn add_view_tool(&mut self) {
        self.tools.push(Arc::new(objects::view_environment_tool()));
        self.active.push(self.tools.len() - 1);
    }

    /// Adds a tool to the end of those in requests. Returns true if that changed them.
    pub fn activate_tool(&mut self, name: &ToolName) -> bool {
        if let Some(withheld) = self.withheld.get_mut(name) {
            withheld.wanted = true;
            return false;
        }
        match self.tool_index(name) {
            Some(index)
                if self.tools[index].state == ToolState::Inactive
                    && !self.active.contains(&index) =>
            {
                self.active.push(index);
                true
            }
            Some(_) | None => false,
        }
    }

    fn tool_index(&self, name: &ToolName) -> Option<usize> {
        self.tools.iter().position(|tool| tool.spec.name == *name)
    }

    fn unknown_tool_error(&self, name: &ToolName) -> Error {
        if self.gone.contains(name) {
            let text =
                format!("the tool `{name}` no longer exists: its plugin was changed or removed");
            return Error::new(ErrorKind::UnknownTool, text).with_hint("continue without it");
        }
        if let Some(source) = self.missing_source(name.as_str()) {
            let ToolSource { label, note, hint, .. } = source;
            let text = format!("there is no tool `{name}`: {label} {note}");
            let error = Error::new(ErrorKind::UnknownTool, text);
            return Error { hint: hint.clone(), ..error };
        }
        let near = self.similar_names(name);
        let hint = if !near.is_empty() {
            let near: Vec<_> = near.iter().map(|name| format!("`{name}`")).collect();
            format!("did you mean {}?", near.join(" or "))
        } else if self.active.is_empty() {
            "this session has no tools: answer without one".to_owned()
        } else {
            let names: Vec<String> =
                self.active_tools().map(|spec| format!("`{}`", spec.name)).collect();
            let others = self.tools.iter().filter(|tool| introspection::may_be_offered(tool));
            let others = others.count().saturating_sub(names.len());
            match others {
                0 => format!("the tools are {}", names.join(", ")),
                _ => format!(
                    "the tools are {}, and {others} more that `{LIST_TOOLS}` lists",
                    names.join(", ")
                ),
            }
        };
        Error::new(ErrorKind::UnknownTool, format!("there is no tool `{name}`")).with_hint(hint)
    }

    /// Lists the sources of tools that had failed at the last wait for tools.
    pub fn missing_sources(&self) -> &[ToolSource] {
        &self.missing
    }

    /// Finds the failed source of tools with this name, or with names that begin this way.
    pub fn missing_source(&self, name: &str) -> Option<&ToolSource> {
        let beginning = name.trim_end_matches('*');
        let is_it = |source: &&ToolSource| {
            name.starts_with(&source.prefix)
                || (beginning != name && source.prefix.starts_with(beginning))
        };
        self.missing.iter().find(is_it)
    }

    /// Returns the most similar names of tools that may be called, best first.
    pub(crate) fn similar_names(&self, name: &ToolName) -> Vec<String> {
        let wanted = name.as_str().to_ascii_lowercase();
        let mut near: Vec<(f64, &ToolName)> = self
            .tools
            .iter()
            .filter(|tool| introspection::may_be_offered(tool))
            .map(|tool| &tool.spec.name)
            .map(|known| {
                let name = known.as_str().to_ascii_lowercase();
                let is_part = wanted.len() >= PART_CHARS_MIN && name.contains(&wanted);
                let nearness = strsim::jaro_winkler(&wanted, &name);
                (if is_part { nearness.max(NEAR_ENOUGH) } else { nearness }, known)
            })
            .filter(|(nearness, _)| *nearness >= NEAR_ENOUGH)
            .collect();
        near.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
        near.truncate(NAMES_MAX);
        near.into_iter().map(|(_, known)| known.to_string()).collect()
    }
}

/// Returns the spec against which arguments are checked. The host's own tools accept more than
/// their specs say.
fn accepted_spec(tool: &KnownTool) -> Cow<'_, ToolSpec> {
    let own = introspection::is_host_tool(tool)
        .then(|| introspection::accepted_spec(&tool.spec))
        .flatten();
    own.map_or(Cow::Borrowed(&tool.spec), Cow::Owned)
}
