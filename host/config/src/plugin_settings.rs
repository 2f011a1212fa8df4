//! The settings of one plugin, as written: `[plugins.NAME]`, or `[providers.NAME]` for a provider
//! that is configured under a name of its own.
//!
//! Their meaning is the plugin's. The code that has its schema checks them, and looks up the place
//! of an invalid value here.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json};

use crate::error::ConfigError;
use crate::file::ConfigFile;
use crate::origin::{ConfigLayer, ValueOrigin};
use crate::toml_tree::{TomlNode, TomlValue};

/// Raw settings of a plugin. If two layers set a key, the later layer's whole value counts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PluginSettings {
    values: Map<String, Json>,
    /// By JSON pointer.
    origins: BTreeMap<String, ValueOrigin>,
    /// The values of the user's own file, even if a workspace overrides them.
    own: BTreeMap<String, (Json, ValueOrigin)>,
}

impl PluginSettings {
    /// Returns the settings as a JSON object. Dates are texts.
    pub fn values(&self) -> &Map<String, Json> {
        &self.values
    }

    /// Returns the origin of the value at a JSON pointer (`/servers/0/url`), or of the nearest
    /// value around it. Returns `None` if no layer sets it.
    pub fn origin(&self, pointer: &str) -> Option<&ValueOrigin> {
        let mut pointer = pointer;
        loop {
            if let Some(origin) = self.origins.get(pointer) {
                return Some(origin);
            }
            pointer = &pointer[..pointer.rfind('/')?];
        }
    }

    /// Returns the value and place of a key in the user's own file, ignoring workspaces. For
    /// settings that no workspace may decide, such as where secrets are sent.
    pub fn user_value(&self, key: &str) -> Option<(&Json, &ValueOrigin)> {
        self.own.get(key).map(|(value, origin)| (value, origin))
    }

    /// Removes values of a workspace that it may not set. The user's own value counts again, if
    /// there is one. Returns the names and places of the removed values.
    pub fn retain_workspace_values(
        &mut self,
        may: impl Fn(&str) -> bool,
    ) -> Vec<(String, ValueOrigin)> {
        let is_refused = |name: &String| {
            let origin = self.origins.get(&format!("/{}", escape_pointer_part(name)));
            origin.is_some_and(|origin| origin.layer() == ConfigLayer::Workspace) && !may(name)
        };
        let refused: Vec<String> =
            self.values.keys().filter(|name| is_refused(name)).cloned().collect();
        let mut dropped = Vec::new();
        for name in refused {
            let pointer = format!("/{}", escape_pointer_part(&name));
            let below = format!("{pointer}/");
            let origin = self.origins.remove(&pointer);
            self.origins.retain(|known, _| !known.starts_with(&below));
            self.values.remove(&name);
            if let Some((value, origin)) = self.own.get(&name) {
                self.values.insert(name.clone(), value.clone());
                self.origins.insert(pointer, origin.clone());
            }
            dropped.extend(origin.map(|origin| (name, origin)));
        }
        dropped
    }

    /// Sets a value from the command line, which wins over all files.
    pub fn set_by_option(&mut self, option: &'static str, name: &str, value: Json) {
        let pointer = format!("/{}", escape_pointer_part(name));
        let below = format!("{pointer}/");
        self.origins.retain(|known, _| !known.starts_with(&below));
        self.origins.insert(pointer, ValueOrigin::CommandLine { option });
        self.values.insert(name.to_owned(), value);
    }

    /// Merges the settings of a later file over these. `section` is the section that they are in.
    pub(crate) fn merge_later_settings(
        &mut self,
        section: &str,
        entries: &[(String, TomlNode)],
        file: &ConfigFile,
    ) -> Result<(), ConfigError> {
        for (name, node) in entries {
            let pointer = format!("/{}", escape_pointer_part(name));
            let below = format!("{pointer}/");
            self.origins.retain(|known, _| *known != pointer && !known.starts_with(&below));
            let mut reader = PluginSettingsReader { section, file, origins: &mut self.origins };
            let value = reader.convert_node(&pointer, node)?;
            if file.layer == ConfigLayer::User {
                self.own.insert(name.clone(), (value.clone(), file.value_origin(node.line)));
            }
            self.values.insert(name.clone(), value);
        }
        Ok(())
    }
}

struct PluginSettingsReader<'a> {
    section: &'a str,
    file: &'a ConfigFile,
    origins: &'a mut BTreeMap<String, ValueOrigin>,
}

impl PluginSettingsReader<'_> {
    /// Converts a value to JSON and records the place of each value in it. The TOML parser limits
    /// the depth.
    fn convert_node(&mut self, pointer: &str, node: &TomlNode) -> Result<Json, ConfigError> {
        self.origins.insert(pointer.to_owned(), self.file.value_origin(node.line));
        Ok(match &node.value {
            TomlValue::Array(items) => Json::Array(
                items
                    .iter()
                    .enumerate()
                    .map(|(index, item)| self.convert_node(&format!("{pointer}/{index}"), item))
                    .collect::<Result<_, _>>()?,
            ),
            TomlValue::Table(entries) => Json::Object(
                entries
                    .iter()
                    .map(|(name, inner)| {
                        let value = self.convert_node(
                            &format!("{pointer}/{}", escape_pointer_part(name)),
                            inner,
                        )?;
                        Ok((name.clone(), value))
                    })
                    .collect::<Result<_, ConfigError>>()?,
            ),
            plain => plain.to_json().ok_or_else(|| self.odd_number_error(pointer, node))?,
        })
    }

    fn odd_number_error(&self, pointer: &str, node: &TomlNode) -> ConfigError {
        ConfigError::WrongValue {
            origin: Box::new(self.file.value_origin(node.line)),
            key: format!("{}{}", self.section, pointer.replace('/', ".")),
            wants: "a number of at most 64 bits, not `inf` or `nan`".to_owned(),
            has: node.value.describe(),
        }
    }
}

/// Escapes a name as a part of a JSON pointer.
fn escape_pointer_part(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
