//! Why a plugin is refused because of its names.

use std::fmt;
use std::path::PathBuf;

use jaato_types::{PluginKind, PluginName, ToolName};

/// Why a plugin is refused because of its names. Texts name both sides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NameRefusal {
    /// Another file has the plugin's name.
    PluginName {
        /// The name.
        name: PluginName,
        /// The file that has it.
        held_by: PathBuf,
    },
    /// Another plugin has the name of something that it offers.
    OfferedName {
        /// The kind of the offer.
        kind: PluginKind,
        /// The name.
        name: String,
        /// The file that has it.
        held_by: PathBuf,
    },
    /// Its own name precedes output lines of jaato or of a shipped plugin.
    Label(PluginName),
    /// The name of one of its tools is reserved for the host.
    ReservedTool(ToolName),
}

impl fmt::Display for NameRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PluginName { name, held_by } => {
                write!(f, "the plugin name `{name}` is held by `{}`", held_by.display())
            }
            Self::OfferedName { kind, name, held_by } => {
                let what = name_of_a(*kind);
                write!(f, "its {what} `{name}` is held by `{}`", held_by.display())
            }
            Self::Label(name) => {
                write!(
                    f,
                    "jaato or a shipped plugin uses the name `{name}` for its messages; `tool-{name}` would be valid"
                )
            }
            Self::ReservedTool(name) => {
                write!(f, "its tool name `{name}` is one of jaato's own")
            }
        }
    }
}

/// Returns the term for the name of a kind's offer.
fn name_of_a(kind: PluginKind) -> &'static str {
    match kind {
        PluginKind::Tool => "tool name",
        PluginKind::Gc => "gc name",
        PluginKind::Provider => "provider name",
        PluginKind::Environment => "execution environment's name",
        PluginKind::Hook => "hook's name",
        PluginKind::Unknown => "name",
    }
}
