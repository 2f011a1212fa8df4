//! Why a plugin is refused because of its names.

use std::fmt;
use std::path::PathBuf;

use jaato_types::{PluginKind, PluginName, ToolName};

use crate::usable::DescriptionOmission;

/// Why a plugin, or one of its offers, is refused because of its name. Texts name both sides.
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

impl NameRefusal {
    /// Returns true if it concerns the offer of this kind and name.
    pub(crate) fn concerns_offer(&self, wanted: PluginKind, offered: &str) -> bool {
        match self {
            Self::OfferedName { kind, name, .. } => *kind == wanted && name == offered,
            Self::ReservedTool(name) => wanted == PluginKind::Tool && name.as_str() == offered,
            Self::PluginName { .. } | Self::Label(_) => false,
        }
    }

    /// Returns the line about an offer that is left out while its plugin stays.
    pub(crate) fn as_omission(&self) -> DescriptionOmission {
        let (kind, name, why) = match self {
            Self::OfferedName { kind, name, held_by } => (
                kind_word(*kind),
                name.as_str(),
                format!("the name is taken by `{}`", held_by.display()),
            ),
            Self::ReservedTool(name) => {
                ("tool", name.as_str(), "jaato itself uses the name".to_owned())
            }
            Self::PluginName { name, .. } | Self::Label(name) => {
                ("plugin", name.as_str(), self.to_string())
            }
        };
        DescriptionOmission::for_offer(kind, name, why)
    }
}

impl fmt::Display for NameRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PluginName { name, held_by } => {
                write!(f, "the plugin name `{name}` is taken by `{}`", held_by.display())
            }
            Self::OfferedName { kind, name, held_by } => {
                let what = name_description(*kind);
                write!(f, "its {what} `{name}` is taken by `{}`", held_by.display())
            }
            Self::Label(name) => {
                write!(
                    f,
                    "jaato or a shipped plugin uses the name `{name}` for its messages; `tool-{name}` would be valid"
                )
            }
            Self::ReservedTool(name) => {
                write!(f, "jaato itself uses its tool name `{name}`")
            }
        }
    }
}

/// Returns the word for a kind's offer.
fn kind_word(kind: PluginKind) -> &'static str {
    match kind {
        PluginKind::Tool => "tool",
        PluginKind::Gc => "gc",
        PluginKind::Provider => "provider",
        PluginKind::Environment => "environment",
        PluginKind::Hook => "hook",
        PluginKind::Unknown => "offer",
    }
}

/// Returns the term for the name of a kind's offer.
fn name_description(kind: PluginKind) -> &'static str {
    match kind {
        PluginKind::Tool => "tool name",
        PluginKind::Gc => "gc name",
        PluginKind::Provider => "provider name",
        PluginKind::Environment => "execution environment's name",
        PluginKind::Hook => "hook's name",
        PluginKind::Unknown => "name",
    }
}
