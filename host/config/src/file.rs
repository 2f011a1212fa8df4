//! Reads one configuration file: which keys it sets, and whether they are known.
//!
//! Types are checked later, when a key is resolved, because only that code knows the type.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use crate::error::{ConfigError, ConfigWarning};
use crate::keys::KEYS;
use crate::model_settings::{self, MODELS};
use crate::nearest::nearest_name;
use crate::origin::{ConfigLayer, ValueOrigin};
use crate::toml_tree::{self, TomlNode, TomlValue};
use crate::{CONFIG_BYTES_MAX, CONFIG_VERSION};

/// Section whose tables belong to the plugins.
pub(crate) const PLUGINS: &str = "plugins";

/// Section whose tables are providers that are configured under their own names.
pub(crate) const PROVIDERS: &str = "providers";

/// A configuration file that was read and checked for unknown keys.
#[derive(Debug)]
pub(crate) struct ConfigFile {
    pub layer: ConfigLayer,
    pub path: PathBuf,
    /// The base of relative paths in the file.
    pub base: PathBuf,
    pub values: BTreeMap<&'static str, TomlNode>,
    pub plugins: BTreeMap<String, Vec<(String, TomlNode)>>,
    /// `[providers.NAME]`.
    pub providers: BTreeMap<String, Vec<(String, TomlNode)>>,
    /// `[models."provider/model"]`, as written.
    pub models: Vec<(String, TomlNode)>,
    pub warnings: Vec<ConfigWarning>,
    is_newer: bool,
}

impl ConfigFile {
    /// Creates a file that sets nothing.
    pub(crate) fn empty(layer: ConfigLayer, path: &Path, base: &Path) -> Self {
        Self {
            layer,
            path: path.to_owned(),
            base: base.to_owned(),
            values: BTreeMap::new(),
            plugins: BTreeMap::new(),
            providers: BTreeMap::new(),
            models: Vec::new(),
            warnings: Vec::new(),
            is_newer: false,
        }
    }

    pub(crate) fn parse_config_file(
        layer: ConfigLayer,
        path: &Path,
        base: &Path,
        text: &str,
    ) -> Result<Self, ConfigError> {
        let mut entries = toml_tree::parse_toml(path, text)?;
        let mut file = Self::empty(layer, path, base);
        if let Some(at) = entries.iter().position(|(name, _)| name == "version") {
            let (_, node) = entries.remove(at);
            file.check_version(&node)?;
        }
        file.add_section("", entries)?;
        Ok(file)
    }

    fn boxed_value_origin(&self, line: usize) -> Box<ValueOrigin> {
        Box::new(self.value_origin(line))
    }

    pub(crate) fn value_origin(&self, line: usize) -> ValueOrigin {
        ValueOrigin::File { layer: self.layer, path: self.path.clone(), line }
    }

    fn check_version(&mut self, node: &TomlNode) -> Result<(), ConfigError> {
        match node.value {
            TomlValue::Integer(Ok(version)) if version >= 1 => {
                self.is_newer = version > CONFIG_VERSION;
                Ok(())
            }
            _ => Err(ConfigError::Version {
                origin: self.boxed_value_origin(node.line),
                has: node.value.describe(),
            }),
        }
    }

    fn add_section(
        &mut self,
        section: &str,
        entries: Vec<(String, TomlNode)>,
    ) -> Result<(), ConfigError> {
        for (name, node) in entries {
            let path = if section.is_empty() { name.clone() } else { format!("{section}.{name}") };
            if let Some(key) = KEYS.iter().find(|key| key.path == path) {
                self.values.insert(key.path, node);
            } else if is_section(&path) {
                match node.value {
                    TomlValue::Table(inner) => self.add_section(&path, inner)?,
                    other => return Err(self.not_a_section_error(path, node.line, &other)),
                }
            } else if section == PLUGINS
                && let TomlValue::Table(inner) = node.value
            {
                self.plugins.insert(name, inner);
            } else if path == PROVIDERS {
                match node.value {
                    TomlValue::Table(providers) => self.add_providers(providers)?,
                    other => return Err(self.not_a_section_error(path, node.line, &other)),
                }
            } else if path == MODELS {
                match node.value {
                    TomlValue::Table(models) => self.add_models(models)?,
                    other => return Err(self.not_a_section_error(path, node.line, &other)),
                }
            } else {
                self.handle_unknown_key(section, path, node.line)?;
            }
        }
        Ok(())
    }

    fn add_providers(&mut self, providers: Vec<(String, TomlNode)>) -> Result<(), ConfigError> {
        for (name, node) in providers {
            let path = format!("{PROVIDERS}.{name}");
            // It precedes the slash of `provider/model`.
            let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
            if name.is_empty() || !name.chars().all(is_plain) {
                return Err(ConfigError::WrongValue {
                    origin: self.boxed_value_origin(node.line),
                    wants: "a name of a-z, A-Z, 0-9, `-` and `_`".to_owned(),
                    has: format!("`{name}`"),
                    key: path,
                });
            }
            match node.value {
                TomlValue::Table(entries) => drop(self.providers.insert(name, entries)),
                other => return Err(self.not_a_section_error(path, node.line, &other)),
            }
        }
        Ok(())
    }

    fn add_models(&mut self, mut models: Vec<(String, TomlNode)>) -> Result<(), ConfigError> {
        for (model, node) in &mut models {
            let TomlValue::Table(entries) = &mut node.value else { continue };
            for (name, node) in
                entries.extract_if(.., |(name, _)| !model_settings::is_model_key(name))
            {
                let key = format!("{MODELS}.\"{model}\".{name}");
                if !self.is_unknown_key_tolerated(&key, node.line) {
                    let origin = self.boxed_value_origin(node.line);
                    return Err(model_settings::unknown_key_error(origin, key, &name));
                }
            }
        }
        self.models = models;
        Ok(())
    }

    /// Returns true if an unknown key only causes a warning, because the file has a newer version.
    fn is_unknown_key_tolerated(&mut self, key: &str, line: usize) -> bool {
        if self.is_newer {
            let origin = self.value_origin(line);
            let text = format!(
                "ignored unknown key `{key}` ({origin}): the file is of a newer version than \
                 {CONFIG_VERSION}, which is what this host knows"
            );
            self.warnings.push(ConfigWarning { text });
        }
        self.is_newer
    }

    fn handle_unknown_key(
        &mut self,
        section: &str,
        key: String,
        line: usize,
    ) -> Result<(), ConfigError> {
        if self.is_unknown_key_tolerated(&key, line) {
            return Ok(());
        }
        let origin = self.boxed_value_origin(line);
        let known_here = valid_key_names(section);
        let known = KEYS.iter().map(|key| key.path).chain(["version"]);
        // At the top level, section names are candidates too. Elsewhere the keys are complete
        // already.
        let sections = known_here.iter().map(String::as_str).filter(|_| section.is_empty());
        let nearest = nearest_name(&key, known.chain(sections)).map(str::to_owned);
        Err(ConfigError::UnknownKey { origin, nearest, known: known_here, key })
    }

    fn not_a_section_error(&self, key: String, line: usize, value: &TomlValue) -> ConfigError {
        ConfigError::WrongValue {
            origin: self.boxed_value_origin(line),
            wants: format!("a section `[{key}]`"),
            has: value.describe(),
            key,
        }
    }
}

/// Reads a text file of limited size. Returns `None` if it does not exist.
pub(crate) fn read_config_text(path: &Path) -> Result<Option<String>, ConfigError> {
    let failed = |cause: String| ConfigError::Read { path: path.to_owned(), cause };
    let mut bytes = Vec::new();
    let read =
        File::open(path).and_then(|file| file.take(CONFIG_BYTES_MAX + 1).read_to_end(&mut bytes));
    match read {
        Ok(_) => decode_config_text(path, bytes).map(Some),
        // A home that is not a folder (`HOME=/dev/null`) contains no configuration.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(error) => Err(failed(error.to_string())),
    }
}

/// Decodes the bytes of a configuration or variables file.
pub(crate) fn decode_config_text(path: &Path, bytes: Vec<u8>) -> Result<String, ConfigError> {
    let failed = |cause: String| ConfigError::Read { path: path.to_owned(), cause };
    if bytes.len() as u64 > CONFIG_BYTES_MAX {
        return Err(failed(format!("it is larger than {CONFIG_BYTES_MAX} bytes")));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        failed(format!("it is not utf-8 (byte {})", error.utf8_error().valid_up_to()))
    })?;
    // Editors on Windows add a byte order mark in front.
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

fn is_section(path: &str) -> bool {
    KEYS.iter().any(|key| key.path.strip_prefix(path).is_some_and(|rest| rest.starts_with('.')))
}

/// Lists the valid names in a section: its keys, and at the top level also the sections.
fn valid_key_names(section: &str) -> Vec<String> {
    let mut known: Vec<String> = Vec::new();
    for key in KEYS {
        let name = match section {
            "" => key.path.split('.').next(),
            _ => key.path.strip_prefix(section).and_then(|rest| rest.strip_prefix('.')),
        };
        if let Some(name) = name
            && !known.iter().any(|other| other == name)
        {
            known.push(name.to_owned());
        }
    }
    if section.is_empty() {
        known.extend([MODELS, PROVIDERS].map(str::to_owned));
    }
    known
}
