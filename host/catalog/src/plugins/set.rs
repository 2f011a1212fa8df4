//! Tools and commands that plugins set while they run.
//!
//! Tools set by a session's instance apply to that session, those of a host-wide instance to all. A
//! session takes all changes when a turn begins, and new tools with each step. If a name is taken,
//! only that tool is refused.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::news::{PluginNews, WARN};
use super::{Plugins, PluginsState};
use jaato_registry::{
    DescriptionOmission, PluginFileTrust, PluginStatus, RESERVED_COMMANDS, RESERVED_TOOLS,
    Registry, RegistryRules, SchemaCheck, ToolEntry, ToolStatus, keep_usable,
};
use jaato_types::tools_set::{
    RefusedTool, TOOLS_SET_BURST, TOOLS_SET_INTERVAL_MS, ToolsSet, ToolsSetAnswer,
};
use jaato_types::{
    Annotations, Availability, CommandSpec, Description, Error, ErrorKind, PluginName, SessionId,
    ToolSpec,
};

/// Maximum number of refused tools in an answer.
const REFUSED_TOLD_MAX: usize = 20;

/// Maximum number of notices for the user per change.
const NOTICES_MAX: usize = 40;
/// Maximum number of remembered notices.
const NOTICES_KEPT_MAX: usize = 400;

/// The tools and commands that one plugin instance has set.
#[derive(Debug)]
pub struct DynamicTools {
    plugin: PluginName,
    /// The session that owns it, or `None` for the process.
    owner: Option<SessionId>,
    is_shipped: bool,
    tools: Vec<(ToolSpec, ToolStatus)>,
    commands: Vec<CommandSpec>,
    at: Instant,
    /// Number of changes without a pause before them.
    burst: u32,
}

impl DynamicTools {
    /// Lists the tools.
    pub(super) fn entries(&self) -> impl Iterator<Item = ToolEntry<'_>> {
        self.tools.iter().map(|(spec, status)| ToolEntry {
            spec,
            plugin: &self.plugin,
            is_shipped: self.is_shipped,
            status: *status,
            is_set: true,
        })
    }

    /// Returns true if it applies to a session.
    pub(super) fn is_visible_to(&self, session: &SessionId) -> bool {
        self.owner.as_ref().is_none_or(|owner| owner == session)
    }

    /// Returns true if it applies only to that session.
    pub(super) fn is_only_for(&self, session: &SessionId) -> bool {
        self.owner.as_ref() == Some(session)
    }

    /// Returns true if both belong to the same instance of a plugin.
    pub(super) fn has_same_owner(&self, other: &Self) -> bool {
        self.is_set_by(&other.plugin, other.owner.as_ref())
    }

    /// Appends the tools that are new in another set to those of this one. Returns `None` if there
    /// are none.
    pub(super) fn with_new_tools(&self, newer: &Self) -> Option<Self> {
        let is_new = |(spec, _): &&(ToolSpec, ToolStatus)| {
            self.tools.iter().all(|(known, _)| known.name != spec.name)
        };
        let added: Vec<_> = newer.tools.iter().filter(is_new).cloned().collect();
        let tools = [self.tools.clone(), added].concat();
        (tools.len() > self.tools.len()).then(|| Self {
            plugin: self.plugin.clone(),
            owner: self.owner.clone(),
            is_shipped: self.is_shipped,
            tools,
            commands: newer.commands.clone(),
            at: newer.at,
            burst: newer.burst,
        })
    }

    fn is_set_by(&self, plugin: &PluginName, owner: Option<&SessionId>) -> bool {
        self.plugin == *plugin && self.owner.as_ref() == owner
    }
}

/// Finds another plugin that declares this tool name.
fn foreign_prefix_owner<'a>(
    registry: &'a Registry,
    plugin: &PluginName,
    tool: &str,
) -> Option<&'a PluginName> {
    let plugins = registry.plugins().iter().filter(|it| it.status == PluginStatus::Active);
    let names = plugins.filter(|it| it.description().is_some_and(|known| known.can_set_tool(tool)));
    names.map(|it| &it.candidate.manifest.name).find(|name| *name != plugin)
}

/// Returns why a plugin cannot set a tool with this name, or `None` if it can.
fn refusal_reason(
    registry: &Registry,
    plugin: &PluginName,
    name: &str,
    others: &[&str],
) -> Option<String> {
    if RESERVED_TOOLS.contains(&name) {
        Some("jaato has a tool with that name".to_owned())
    } else if let Some(other) = foreign_prefix_owner(registry, plugin, name) {
        Some(format!("names with this prefix belong to plugin `{other}`"))
    } else if let Some(holder) = registry.tool(name) {
        Some(format!("plugin `{}` has a tool with that name", holder.plugin))
    } else {
        others.contains(&name).then(|| "another plugin has set a tool with that name".into())
    }
}

fn refused_tool(omission: &DescriptionOmission) -> RefusedTool {
    RefusedTool::new(omission.name.as_deref().unwrap_or(&omission.what), &omission.why)
}

/// Removes the promises of a foreign tool, because its author is not the plugin's and no one
/// vouches for them. `parallel_safe` stays because it loosens no rule.
fn clear_tool_promises(spec: &mut ToolSpec) {
    let parallel_safe = spec.annotations.parallel_safe;
    spec.annotations = Annotations { parallel_safe, ..Annotations::default() };
    spec.auto_approval = false;
    spec.traits.clear();
}

/// Returns the notices that were not shown before.
fn new_notices(
    state: &mut PluginsState,
    plugin: &PluginName,
    owner: Option<&SessionId>,
    notices: Vec<String>,
) -> Vec<PluginNews> {
    let told = state.notices.entry((plugin.clone(), owner.cloned())).or_default();
    let new = notices.iter().take(NOTICES_MAX).filter(|line| told.insert((*line).clone()));
    let new: Vec<_> = new.map(|line| PluginNews::new(Some(plugin), WARN, line.as_str())).collect();
    if told.len() > NOTICES_KEPT_MAX {
        *told = notices.into_iter().take(NOTICES_MAX).collect();
    }
    new
}

impl Plugins {
    /// Replaces the tools and commands that a plugin instance has set.
    ///
    /// # Errors
    /// `limit_reached` if the last change was too recent, `plugin_disabled` if the plugin no longer
    /// exists.
    pub fn set_tools(
        &self,
        plugin: &PluginName,
        owner: Option<&SessionId>,
        set: ToolsSet,
        rules: &RegistryRules,
    ) -> Result<ToolsSetAnswer, Error> {
        let registry = Arc::clone(&self.current().registry);
        let Some(entry) = registry.plugin(plugin.as_str()) else {
            let text = format!("plugin `{plugin}` cannot be used");
            return Err(Error::new(ErrorKind::PluginDisabled, text));
        };
        let is_shipped = entry.candidate.trust == PluginFileTrust::Shipped;
        let ToolsSet { tools, commands, notices, .. } = set;
        let mut description = Description { tools, commands, ..Description::default() };
        let left_out = keep_usable(&mut description, SchemaCheck::Compile);
        let mut refused: Vec<RefusedTool> = left_out.iter().map(refused_tool).collect();
        let mut state = self.lock_state();
        let now = Instant::now();
        let interval = Duration::from_millis(TOOLS_SET_INTERVAL_MS);
        let before = state.set.iter().find(|it| it.is_set_by(plugin, owner));
        let burst = before.filter(|it| now - it.at < interval).map_or(0, |it| it.burst + 1);
        if burst >= TOOLS_SET_BURST {
            let text = "a plugin can set its tools at most once per second";
            return Err(Error::new(ErrorKind::LimitReached, text).temporary());
        }
        let others = state.set.iter().filter(|it| {
            !it.is_set_by(plugin, owner)
                && (owner.is_none() || owner.is_some_and(|of| it.is_visible_to(of)))
        });
        let others: Vec<&str> =
            others.flat_map(|it| &it.tools).map(|(spec, _)| spec.name.as_str()).collect();
        let mut kept = Vec::new();
        for mut spec in description.tools {
            let name = spec.name.as_str();
            let why = refusal_reason(&registry, plugin, name, &others);
            if let Some(why) = why {
                refused.push(RefusedTool::new(name, why));
                continue;
            }
            let status = rules.tool_status(name);
            if spec.foreign {
                clear_tool_promises(&mut spec);
            }
            if rules.tools_only.is_some() {
                spec.availability = Availability::Core;
            }
            kept.push((spec, status));
        }
        let commands = description.commands.into_iter().filter(|command| {
            let is_taken = registry.command(&command.name).is_some()
                || RESERVED_COMMANDS.contains(&command.name.as_str());
            if is_taken {
                refused.push(RefusedTool::new(
                    &command.name,
                    "a command with this name already exists",
                ));
            }
            !is_taken
        });
        let commands = commands.collect();
        let count = kept.len() as u64;
        state.set.retain(|it| !it.is_set_by(plugin, owner));
        state.set.push(Arc::new(DynamicTools {
            plugin: plugin.clone(),
            owner: owner.cloned(),
            is_shipped,
            tools: kept,
            commands,
            at: now,
            burst,
        }));
        let new = new_notices(&mut state, plugin, owner, notices);
        state.add_news(new, &self.log);
        refused.truncate(REFUSED_TOLD_MAX);
        self.log_refused(plugin, &refused);
        Ok(ToolsSetAnswer::new(count, refused))
    }

    fn log_refused(&self, plugin: &PluginName, refused: &[RefusedTool]) {
        for RefusedTool { name, why, .. } in refused {
            self.log.write_line(WARN, plugin.as_str(), &format!("`{name}` is refused: {why}"));
        }
    }

    /// Lists the commands that plugins have set, each with its plugin: those for one session, or
    /// all.
    pub fn set_commands(&self, session: Option<&SessionId>) -> Vec<(PluginName, CommandSpec)> {
        let state = self.lock_state();
        let is_for =
            |it: &&Arc<DynamicTools>| session.is_none_or(|session| it.is_visible_to(session));
        let set = state.set.iter().filter(is_for);
        set.flat_map(|it| it.commands.iter().map(|spec| (it.plugin.clone(), spec.clone())))
            .collect()
    }
}
