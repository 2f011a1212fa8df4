//! Commands that plugins offer to people: who has a name, and why one is refused.
//!
//! A command whose name is taken is refused alone: no model ever sees it, and a person who misses
//! it reads why, so a plugin does not lose its tools for it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use jaato_types::{CommandSpec, Description, PluginName, ToolName};

use crate::RESERVED_COMMANDS;
use crate::registry::Registry;

/// A command and whose it is.
#[derive(Debug, Clone)]
pub struct CommandEntry<'a> {
    /// Its spec.
    pub spec: &'a CommandSpec,
    /// The plugin.
    pub plugin: &'a PluginName,
    /// Whether it can be run.
    pub status: CommandStatus,
}

/// Whether a command can be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandStatus {
    /// It can.
    Enabled,
    /// Its name is taken, or none that can be typed.
    Refused(CommandRefusal),
}

/// Why a command is refused. Texts name both sides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandRefusal {
    /// Another plugin has the name, or the same one twice.
    Held(PathBuf),
    /// The host keeps the name for itself.
    Reserved,
    /// Nobody could type it.
    BadName,
}

impl fmt::Display for CommandRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Held(path) => write!(f, "the name is held by `{}`", path.display()),
            Self::Reserved => f.write_str("the name is one of jaato's own"),
            Self::BadName => f.write_str(
                "a name has 1 to 64 letters, digits, `_` and `-`, and does not begin with `-`",
            ),
        }
    }
}

/// Where the commands' specs stand.
#[derive(Debug, Clone, Default)]
pub(crate) struct Commands {
    taken: BTreeMap<String, Place>,
    refused: Vec<(Place, CommandRefusal)>,
}

/// A command by its plugin's and its own place.
#[derive(Debug, Clone, Copy)]
struct Place {
    plugin: usize,
    command: usize,
}

impl Commands {
    /// Notes the names of the plugin at a place.
    pub(crate) fn take(
        &mut self,
        plugin: usize,
        description: &Description,
        path_of: impl Fn(usize) -> PathBuf,
    ) {
        for (command, spec) in description.commands.iter().enumerate() {
            let place = Place { plugin, command };
            let refusal = if !can_be_typed(&spec.name) {
                CommandRefusal::BadName
            } else if RESERVED_COMMANDS.contains(&spec.name.as_str()) {
                CommandRefusal::Reserved
            } else if let Some(held) = self.taken.get(&spec.name) {
                CommandRefusal::Held(path_of(held.plugin))
            } else {
                self.taken.insert(spec.name.clone(), place);
                continue;
            };
            self.refused.push((place, refusal));
        }
    }
}

impl Registry {
    /// Lists the commands that have their name, by name.
    pub fn commands(&self) -> impl Iterator<Item = CommandEntry<'_>> {
        self.commands.taken.values().filter_map(|place| self.command_at(*place, None))
    }

    /// Returns a command by name.
    pub fn command(&self, name: &str) -> Option<CommandEntry<'_>> {
        self.commands.taken.get(name).and_then(|place| self.command_at(*place, None))
    }

    /// Lists the commands that were refused, in the order of their plugins.
    pub fn refused_commands(&self) -> impl Iterator<Item = CommandEntry<'_>> {
        let refused = self.commands.refused.iter();
        refused.filter_map(|(place, refusal)| self.command_at(*place, Some(refusal)))
    }

    fn command_at(
        &self,
        place: Place,
        refusal: Option<&CommandRefusal>,
    ) -> Option<CommandEntry<'_>> {
        let candidate = &self.plugins()[place.plugin].candidate;
        let status = match refusal {
            Some(refusal) => CommandStatus::Refused(refusal.clone()),
            None => CommandStatus::Enabled,
        };
        Some(CommandEntry {
            spec: candidate.description.as_ref()?.as_ref().ok()?.commands.get(place.command)?,
            plugin: &candidate.manifest.name,
            status,
        })
    }
}

fn can_be_typed(name: &str) -> bool {
    ToolName::from(name).is_valid() && !name.starts_with('-')
}
