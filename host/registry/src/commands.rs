//! The plugins' commands for users: the owner of each name, and why a command is refused.
//!
//! If a command's name is taken, only that command is refused. No model ever sees commands, and a
//! user who misses one can read why, so the plugin keeps its tools.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use jaato_types::{CommandSpec, Description, PluginName, ToolName};

use crate::RESERVED_COMMANDS;
use crate::registry::Registry;

/// A command and its plugin.
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
    /// It can be run.
    Enabled,
    /// Its name is taken or cannot be typed.
    Refused(CommandRefusal),
}

/// Why a command is refused. Texts name both sides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandRefusal {
    /// Another plugin has the name, or the same plugin uses it twice.
    Held(PathBuf),
    /// The name is reserved for the host.
    Reserved,
    /// The name cannot be typed.
    BadName,
}

impl fmt::Display for CommandRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Held(path) => write!(f, "the name is taken by `{}`", path.display()),
            Self::Reserved => f.write_str("jaato itself uses the name"),
            Self::BadName => f.write_str(
                "a name has 1 to 64 letters, digits, `_` and `-`, and does not begin with `-`",
            ),
        }
    }
}

/// The positions of the commands' specs.
#[derive(Debug, Clone, Default)]
pub(crate) struct CommandIndex {
    taken: BTreeMap<String, CommandSpecPosition>,
    refused: Vec<(CommandSpecPosition, CommandRefusal)>,
}

/// A command, by the positions of its plugin and its spec.
#[derive(Debug, Clone, Copy)]
struct CommandSpecPosition {
    plugin: usize,
    command: usize,
}

impl CommandIndex {
    /// Takes the names of the plugin at a position.
    pub(crate) fn add_commands(
        &mut self,
        plugin: usize,
        description: &Description,
        path_of: impl Fn(usize) -> PathBuf,
    ) {
        for (command, spec) in description.commands.iter().enumerate() {
            let place = CommandSpecPosition { plugin, command };
            let refusal = if !is_typable_command(&spec.name) {
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
    /// Lists the commands that own their name, by name.
    pub fn commands(&self) -> impl Iterator<Item = CommandEntry<'_>> {
        self.commands.taken.values().filter_map(|place| self.command_at(*place, None))
    }

    /// Returns a command by name.
    pub fn command(&self, name: &str) -> Option<CommandEntry<'_>> {
        self.commands.taken.get(name).and_then(|place| self.command_at(*place, None))
    }

    /// Lists the refused commands, in the order of their plugins.
    pub fn refused_commands(&self) -> impl Iterator<Item = CommandEntry<'_>> {
        let refused = self.commands.refused.iter();
        refused.filter_map(|(place, refusal)| self.command_at(*place, Some(refusal)))
    }

    fn command_at(
        &self,
        place: CommandSpecPosition,
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

fn is_typable_command(name: &str) -> bool {
    ToolName::from(name).is_valid() && !name.starts_with('-')
}
