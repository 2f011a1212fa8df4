//! Where a plugin's settings stand: in its own section, or in that of a provider which a person
//! has set up under a name of its own.

use std::fmt;
use std::sync::Arc;

use jaato_config::{Config, PluginSettings};
use jaato_types::PluginName;

/// A section of settings.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Section {
    /// `[plugins.NAME]`.
    Plugin(PluginName),
    /// `[providers.NAME]`.
    Provider(Arc<str>),
}

impl Section {
    /// Makes that of a plugin, asked under a name of `[providers]` where there is one.
    pub fn of(plugin: &PluginName, provider: Option<&Arc<str>>) -> Self {
        provider.map_or_else(|| Self::Plugin(plugin.clone()), |name| Self::Provider(name.clone()))
    }

    /// Returns what is configured there.
    pub fn settings<'a>(&self, config: &'a Config) -> Option<&'a PluginSettings> {
        match self {
            Self::Plugin(name) => config.plugin_settings.get(name.as_str()),
            Self::Provider(name) => config.provider_settings.get(&**name),
        }
    }
}

/// As it is written: `[plugins.tool-cli]`.
impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plugin(name) => write!(f, "[plugins.{name}]"),
            Self::Provider(name) => write!(f, "[providers.{name}]"),
        }
    }
}
