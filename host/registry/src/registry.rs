//! Builds the registry from candidates in the order of trust, and answers which plugin has a name.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jaato_types::{
    Availability, Description, Error, Manifest, PluginKind, PluginName, ProviderPreset, ToolName,
    ToolSpec,
};

use crate::RESERVED_TOOLS;
use crate::commands::CommandIndex;
use crate::conflict::NameRefusal;
use crate::usable::{DescriptionOmission, SchemaCheck, keep_usable};

/// Words that precede jaato's own output lines. A plugin from elsewhere may not have such a name,
/// except with its kind (`tool-host`), because its lines then show the kind too.
const LABELS: [&str; 13] = [
    "cancelled",
    "error",
    "gc",
    "hint",
    "host",
    "jaato",
    "model",
    "models",
    "note",
    "question",
    "usage",
    "warning",
    "you",
];

/// A plugin file whose manifest could be read.
#[derive(Debug, Clone)]
pub struct PluginCandidate {
    /// The file.
    pub path: PathBuf,
    /// The name of its place in lists: `shipped`, `user` …
    pub place: &'static str,
    /// How far it is trusted.
    pub trust: PluginFileTrust,
    /// Its manifest.
    pub manifest: Manifest,
    /// The description from its code, or why that failed. `None` if its code must not run.
    pub description: Option<Result<Description, Error>>,
}

/// How far a plugin file is trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PluginFileTrust {
    /// Like the executable.
    Shipped,
    /// By its content hash.
    ByHash(String),
    /// Not trusted. Holds the hash by which it can be trusted. The plugin runs apart from the host.
    No(String),
    /// Its workspace is not trusted, so it was not even described.
    WorkspaceNot,
}

impl PluginFileTrust {
    /// Returns true if a plugin with this trust may run inside the host.
    pub fn is_trusted(&self) -> bool {
        match self {
            Self::Shipped | Self::ByHash(_) => true,
            Self::No(_) | Self::WorkspaceNot => false,
        }
    }
}

/// The only entry in a list of tools that allows none.
pub const NO_TOOLS: &str = "none";

/// The rules from the user's configuration and command line.
#[derive(Debug, Clone, Default)]
pub struct RegistryRules {
    /// `[plugins] disabled`.
    pub plugins_disabled: Vec<String>,
    /// `[tools] enabled`. If set, enables only these.
    pub tools_enabled: Option<Vec<String>>,
    /// `[tools] disabled`.
    pub tools_disabled: Vec<String>,
    /// `--tools`. If set, enables only these and puts all of them in each request.
    pub tools_only: Option<Vec<String>>,
}

/// A plugin in the list.
#[derive(Debug, Clone)]
pub struct PluginEntry {
    /// The candidate.
    pub candidate: PluginCandidate,
    /// Its status.
    pub status: PluginStatus,
    /// Parts of its description that were removed, because they cannot be offered.
    pub left_out: Vec<DescriptionOmission>,
}

impl PluginEntry {
    /// Returns the plugin's description, if it could be described.
    pub fn description(&self) -> Option<&Description> {
        self.candidate.description.as_ref()?.as_ref().ok()
    }

    /// Returns why the plugin cannot be used, and what to do, or `None` if it can.
    pub fn unusable_reason(&self) -> Option<(String, Option<String>)> {
        Some(match &self.status {
            PluginStatus::Active => return None,
            PluginStatus::Disabled => {
                let hint = format!("jaato plugin enable {}", self.candidate.manifest.name);
                ("it is disabled by `[plugins] disabled`".into(), Some(hint))
            }
            PluginStatus::NotTrusted => {
                ("its workspace is not trusted".into(), Some("jaato trust".into()))
            }
            PluginStatus::Refused(refusal) => (refusal.to_string(), None),
            PluginStatus::Failed(error) => (error.message.clone(), error.hint.clone()),
        })
    }
}

/// The status of a plugin.
#[derive(Debug, Clone, PartialEq)]
pub enum PluginStatus {
    /// Its tools and provider can be used.
    Active,
    /// `[plugins] disabled` names it.
    Disabled,
    /// Its workspace is not trusted, so none of its code is run.
    NotTrusted,
    /// Its names are taken.
    Refused(NameRefusal),
    /// It could not be described.
    Failed(Error),
}

/// A tool and its plugin.
#[derive(Debug, Clone, Copy)]
pub struct ToolEntry<'a> {
    /// Its spec, with the availability in this session.
    pub spec: &'a ToolSpec,
    /// The plugin.
    pub plugin: &'a PluginName,
    /// Whether the plugin is shipped. Only then do its promises count.
    pub is_shipped: bool,
    /// Whether it can be used.
    pub status: ToolStatus,
    /// Whether the plugin has set it while it runs.
    pub is_set: bool,
}

/// Whether a tool can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolStatus {
    /// It can be used.
    Enabled,
    /// `[tools] disabled` names it.
    Disabled,
    /// `[tools] enabled` or `--tools` does not name it.
    NotEnabled,
}

/// Assigns names to plugins.
#[derive(Debug, Clone, Default)]
pub struct Registry {
    plugins: Vec<PluginEntry>,
    /// The plugin of each plugin name, by position in `plugins`.
    names: BTreeMap<PluginName, usize>,
    tools: BTreeMap<ToolName, ToolSpecPosition>,
    /// The plugin of each other offered name, by position in `plugins`.
    offers: BTreeMap<PluginKind, BTreeMap<String, usize>>,
    pub(crate) commands: CommandIndex,
}

/// The position of a tool's spec. Copying all specs would cost a start with many plugins more than
/// everything else here.
#[derive(Debug, Clone, Copy)]
struct ToolSpecPosition {
    plugin: usize,
    /// Its position in the plugin's description.
    tool: usize,
    status: ToolStatus,
}

impl Registry {
    /// Builds the registry from candidates, most trusted first.
    pub fn build(
        candidates: impl IntoIterator<Item = PluginCandidate>,
        rules: &RegistryRules,
    ) -> Self {
        let mut registry = Self::default();
        for candidate in candidates {
            registry.add_candidate(candidate, rules);
        }
        registry
    }

    /// Lists all plugins regardless of their status, most trusted first.
    pub fn plugins(&self) -> &[PluginEntry] {
        &self.plugins
    }

    /// Returns the plugin with this name.
    pub fn plugin(&self, name: &str) -> Option<&PluginEntry> {
        self.names.get(name).map(|&plugin| &self.plugins[plugin])
    }

    /// Returns the name for a plugin in events: a shipped plugin's name without its kind, any
    /// other's full name.
    pub fn event_source_name<'a>(&self, name: &'a PluginName) -> &'a str {
        let entry = self.plugin(name.as_str());
        let is_shipped =
            entry.is_some_and(|entry| entry.candidate.trust == PluginFileTrust::Shipped);
        if is_shipped { name.source() } else { name.as_str() }
    }

    /// Lists all tools by name, including disabled ones.
    pub fn tools(&self) -> impl Iterator<Item = ToolEntry<'_>> {
        self.tools.values().filter_map(|place| self.tool_at(place))
    }

    /// Returns a tool by name.
    pub fn tool(&self, name: &str) -> Option<ToolEntry<'_>> {
        self.tools.get(name).and_then(|place| self.tool_at(place))
    }

    /// Returns the plugin that offers something other than a tool under this kind and name.
    pub fn plugin_offering(&self, kind: PluginKind, name: &str) -> Option<&PluginEntry> {
        self.offers.get(&kind)?.get(name).map(|&plugin| &self.plugins[plugin])
    }

    /// Lists the names under which plugins offer something of a kind other than tools.
    pub fn offered_names(&self, kind: PluginKind) -> impl Iterator<Item = &str> {
        self.offers.get(&kind).into_iter().flat_map(BTreeMap::keys).map(String::as_str)
    }

    /// Returns the plugin with this provider name.
    pub fn provider(&self, name: &str) -> Option<&PluginEntry> {
        self.plugin_offering(PluginKind::Provider, name)
    }

    /// Lists the names of the providers.
    pub fn providers(&self) -> impl Iterator<Item = &str> {
        self.offered_names(PluginKind::Provider)
    }

    /// Returns a server that a plugin knows by name, and the plugin.
    pub fn preset(&self, name: &str) -> Option<(&PluginEntry, &ProviderPreset)> {
        let mut found = self.all_presets().filter(|(_, preset)| preset.name == name);
        found.next()
    }

    /// Lists the names of the servers that plugins know.
    pub fn presets(&self) -> impl Iterator<Item = &str> {
        self.all_presets().map(|(_, preset)| preset.name.as_str())
    }

    /// Lists all presets. The most trusted plugin's come first.
    fn all_presets(&self) -> impl Iterator<Item = (&PluginEntry, &ProviderPreset)> {
        let active = self.plugins.iter().filter(|entry| entry.status == PluginStatus::Active);
        active.flat_map(|entry| {
            let provider = entry.description().and_then(|it| it.provider.as_ref());
            provider.into_iter().flat_map(|it| &it.presets).map(move |preset| (entry, preset))
        })
    }

    /// Returns the plugin with this execution environment's name.
    pub fn environment(&self, name: &str) -> Option<&PluginEntry> {
        self.plugin_offering(PluginKind::Environment, name)
    }

    /// Lists the names of the execution environments.
    pub fn environments(&self) -> impl Iterator<Item = &str> {
        self.offered_names(PluginKind::Environment)
    }

    /// Finds the execution environment that a command-line option chooses. Prefers a shipped one.
    pub fn environment_with_option(&self, option: &str) -> Option<&str> {
        let lists = |name: &&str| {
            let described = self.environment(name).and_then(PluginEntry::description);
            let spec = described.and_then(|it| it.environment.as_ref());
            spec.is_some_and(|spec| spec.options.contains_key(option))
        };
        let is_shipped = |name: &&str| {
            self.environment(name).is_some_and(|it| it.candidate.trust == PluginFileTrust::Shipped)
        };
        self.environments().filter(lists).max_by_key(is_shipped)
    }

    fn tool_at(&self, place: &ToolSpecPosition) -> Option<ToolEntry<'_>> {
        let candidate = &self.plugins[place.plugin].candidate;
        Some(ToolEntry {
            spec: candidate.description.as_ref()?.as_ref().ok()?.tools.get(place.tool)?,
            plugin: &candidate.manifest.name,
            is_shipped: candidate.trust == PluginFileTrust::Shipped,
            status: place.status,
            is_set: false,
        })
    }

    fn add_candidate(&mut self, mut candidate: PluginCandidate, rules: &RegistryRules) {
        let check = match candidate.trust {
            PluginFileTrust::Shipped => SchemaCheck::Outline,
            _ => SchemaCheck::Compile,
        };
        let mut left_out = match &mut candidate.description {
            Some(Ok(description)) => keep_usable(description, check),
            Some(Err(_)) | None => Vec::new(),
        };
        let mut status = self.status_of(&candidate, rules);
        if status == PluginStatus::Active
            && let Some(Ok(description)) = &mut candidate.description
        {
            let taken = self.list_taken_names(description);
            let offers = count_offers(&candidate.manifest, description);
            match taken.first() {
                Some(first) if taken.len() == offers => {
                    status = PluginStatus::Refused(first.clone());
                }
                _ => {
                    left_out.extend(remove_taken_offers(description, &taken));
                    self.take_names(&candidate.path, description, rules);
                }
            }
        }
        if !matches!(status, PluginStatus::Refused(NameRefusal::PluginName { .. })) {
            self.names.insert(candidate.manifest.name.clone(), self.plugins.len());
        }
        self.plugins.push(PluginEntry { candidate, status, left_out });
    }

    fn status_of(&self, candidate: &PluginCandidate, rules: &RegistryRules) -> PluginStatus {
        let name = &candidate.manifest.name;
        if let Some(held_by) = self.plugin(name.as_str()) {
            let held_by = held_by.candidate.path.clone();
            return PluginStatus::Refused(NameRefusal::PluginName { name: name.clone(), held_by });
        }
        if rules.plugins_disabled.iter().any(|disabled| disabled == name.as_str()) {
            return PluginStatus::Disabled;
        }
        if candidate.trust != PluginFileTrust::Shipped && self.is_line_label(name.as_str()) {
            return PluginStatus::Refused(NameRefusal::Label(name.clone()));
        }
        if candidate.trust == PluginFileTrust::WorkspaceNot {
            return PluginStatus::NotTrusted;
        }
        match &candidate.description {
            Some(Ok(_)) => PluginStatus::Active,
            Some(Err(error)) => PluginStatus::Failed(error.clone()),
            None => PluginStatus::Failed(Error::failed("the plugin was not described")),
        }
    }

    /// Returns true if a name precedes output lines of jaato or of a shipped plugin.
    fn is_line_label(&self, name: &str) -> bool {
        let shipped =
            self.plugins.iter().filter(|entry| entry.candidate.trust == PluginFileTrust::Shipped);
        LABELS.contains(&name)
            || shipped.map(|entry| &entry.candidate.manifest.name).any(|it| it.source() == name)
    }

    /// Lists the offered names that jaato or a more trusted plugin already uses.
    fn list_taken_names(&self, description: &Description) -> Vec<NameRefusal> {
        let tools = description.tools.iter().filter_map(|tool| {
            if RESERVED_TOOLS.contains(&tool.name.as_str()) {
                return Some(NameRefusal::ReservedTool(tool.name.clone()));
            }
            let held_by = self.tool_owner_file(&tool.name)?.to_owned();
            let (kind, name) = (PluginKind::Tool, tool.name.to_string());
            Some(NameRefusal::OfferedName { kind, name, held_by })
        });
        let others = offers_besides_tools(description).filter_map(|(kind, name)| {
            let held_by = self.plugin_offering(kind, name)?.candidate.path.clone();
            Some(NameRefusal::OfferedName { kind, name: name.to_owned(), held_by })
        });
        tools.chain(others).collect()
    }

    /// Returns the file of the plugin that owns a tool's name.
    fn tool_owner_file(&self, tool: &ToolName) -> Option<&Path> {
        let held = self.tools.get(tool)?;
        Some(&self.plugins[held.plugin].candidate.path)
    }

    /// Takes the names of the plugin that is added next.
    fn take_names(&mut self, path: &Path, description: &mut Description, rules: &RegistryRules) {
        let plugin = self.plugins.len();
        for (tool, spec) in description.tools.iter_mut().enumerate() {
            if rules.tools_only.is_some() {
                spec.availability = Availability::Core;
            }
            let status = rules.tool_status(spec.name.as_str());
            self.tools.insert(spec.name.clone(), ToolSpecPosition { plugin, tool, status });
        }
        for (kind, name) in offers_besides_tools(description) {
            self.offers.entry(kind).or_default().insert(name.to_owned(), plugin);
        }
        if !description.commands.is_empty() {
            let plugins = &self.plugins;
            let path_of = |held: usize| {
                let holder = plugins.get(held);
                holder.map_or_else(|| path.to_owned(), |holder| holder.candidate.path.clone())
            };
            self.commands.add_commands(plugin, description, path_of);
        }
    }
}

/// Counts what a plugin offers, including what has no name of its own.
fn count_offers(manifest: &Manifest, description: &Description) -> usize {
    let is_gc = manifest.kinds.contains(&PluginKind::Gc);
    description.tools.len()
        + description.commands.len()
        + description.hooks.len()
        + description.resources.len()
        + description.tool_prefixes.len()
        + offers_besides_tools(description).count()
        + usize::from(is_gc)
        + usize::from(description.at_start)
}

/// Removes the offers with taken names from a description.
fn remove_taken_offers(
    description: &mut Description,
    taken: &[NameRefusal],
) -> Vec<DescriptionOmission> {
    let is_taken =
        |kind: PluginKind, name: &str| taken.iter().any(|it| it.concerns_offer(kind, name));
    description.tools.retain(|tool| !is_taken(PluginKind::Tool, tool.name.as_str()));
    description.provider.take_if(|it| is_taken(PluginKind::Provider, &it.name));
    description.environment.take_if(|it| is_taken(PluginKind::Environment, &it.name));
    taken.iter().map(NameRefusal::as_omission).collect()
}

/// Lists a plugin's offers besides its tools, each with its name: one row for each kind with its
/// own names. A gc has its plugin's name.
fn offers_besides_tools(description: &Description) -> impl Iterator<Item = (PluginKind, &str)> {
    let offers = [
        (PluginKind::Provider, description.provider.as_ref().map(|it| it.name.as_str())),
        (PluginKind::Environment, description.environment.as_ref().map(|it| it.name.as_str())),
    ];
    offers.into_iter().filter_map(|(kind, name)| Some((kind, name?)))
}

impl RegistryRules {
    /// Returns whether a tool with this name can be used.
    pub fn tool_status(&self, name: &str) -> ToolStatus {
        let is_named = |names: &[String]| names.iter().any(|known| matches_tool(known, name));
        if is_named(&self.tools_disabled) {
            return ToolStatus::Disabled;
        }
        let only = [&self.tools_only, &self.tools_enabled];
        let is_left_out = |names: &Vec<String>| names.as_slice() == [NO_TOOLS] || !is_named(names);
        let is_left_out = only.into_iter().flatten().any(is_left_out);
        if is_left_out { ToolStatus::NotEnabled } else { ToolStatus::Enabled }
    }
}

/// Returns true if a word of a list matches a tool: its name, or a prefix followed by `*`.
pub fn matches_tool(word: &str, name: &str) -> bool {
    match word.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => word == name,
    }
}

#[cfg(test)]
mod tests;
