//! Why a plugin is refused for its names.

use std::fmt;
use std::path::PathBuf;

use jaato_types::{PluginName, ToolName};

/// Why a plugin is refused for its names. Texts name both sides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// Another file has the plugin's name.
    PluginName {
        /// The name.
        name: PluginName,
        /// Who has it.
        held_by: PathBuf,
    },
    /// Another plugin has the name of one of its tools.
    ToolName {
        /// The name.
        name: ToolName,
        /// Who has it.
        held_by: PathBuf,
    },
    /// Its own name stands before lines of jaato or of a shipped plugin.
    Label(PluginName),
    /// The host keeps the name of one of its tools for itself.
    ReservedTool(ToolName),
    /// Another plugin has the execution environment's name.
    EnvironmentName {
        /// The name.
        name: String,
        /// Who has it.
        held_by: PathBuf,
    },
    /// Another plugin has the provider's name.
    ProviderName {
        /// The name.
        name: String,
        /// Who has it.
        held_by: PathBuf,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PluginName { name, held_by } => {
                write!(f, "the plugin name `{name}` is held by `{}`", held_by.display())
            }
            Self::ToolName { name, held_by } => {
                write!(f, "its tool name `{name}` is held by `{}`", held_by.display())
            }
            Self::Label(name) => {
                write!(
                    f,
                    "the plugin name `{name}` stands before what jaato or a shipped plugin says; `tool-{name}` would do"
                )
            }
            Self::ReservedTool(name) => {
                write!(f, "its tool name `{name}` is one of jaato's own")
            }
            Self::EnvironmentName { name, held_by } => write!(
                f,
                "its execution environment's name `{name}` is held by `{}`",
                held_by.display()
            ),
            Self::ProviderName { name, held_by } => {
                write!(f, "its provider name `{name}` is held by `{}`", held_by.display())
            }
        }
    }
}
