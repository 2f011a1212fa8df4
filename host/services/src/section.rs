//! The section of a plugin's settings: its own, or that of a provider that the user has set up
//! under another name.

use std::fmt;
use std::sync::Arc;

use jaato_config::{Config, PluginSettings};
use jaato_types::{Description, PluginName, ProviderPreset};
use serde_json::Value;

/// The key of `[providers.NAME]` that names the plugin.
pub const PLUGIN: &str = "plugin";

/// A section of settings.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum SettingsSection {
    /// `[plugins.NAME]`.
    Plugin(PluginName),
    /// `[providers.NAME]`.
    Provider(Arc<str>),
}

impl SettingsSection {
    /// Returns the section of a plugin, or of the name in `[providers]` under which it is used.
    pub fn for_plugin(plugin: &PluginName, provider: Option<&Arc<str>>) -> Self {
        provider.map_or_else(|| Self::Plugin(plugin.clone()), |name| Self::Provider(name.clone()))
    }

    /// Returns the settings in this section.
    pub fn settings<'a>(&self, config: &'a Config) -> Option<&'a PluginSettings> {
        match self {
            Self::Plugin(name) => config.plugin_settings.get(name.as_str()),
            Self::Provider(name) => config.provider_settings.get(&**name),
        }
    }

    /// Returns the provider's name in this section, or `None` if the plugin is not a provider.
    pub fn provider<'a>(&'a self, description: &'a Description) -> Option<&'a str> {
        match self {
            Self::Plugin(_) => description.provider.as_ref().map(|spec| spec.name.as_str()),
            Self::Provider(name) => Some(name),
        }
    }

    /// Returns the server that a plugin knows by this section's name, or by the value of `plugin`.
    pub fn preset<'a>(
        &self,
        config: &Config,
        description: &'a Description,
    ) -> Option<&'a ProviderPreset> {
        let Self::Provider(name) = self else { return None };
        let given = self.settings(config).and_then(|settings| settings.values().get(PLUGIN));
        let wanted = given.and_then(Value::as_str).unwrap_or(name);
        let presets = &description.provider.as_ref()?.presets;
        presets.iter().find(|preset| preset.name == wanted)
    }
}

/// As in the file: `[plugins.tool-cli]`.
impl fmt::Display for SettingsSection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plugin(name) => write!(f, "[plugins.{name}]"),
            Self::Provider(name) => write!(f, "[providers.{name}]"),
        }
    }
}
