//! Reads the original's `.jaato/gc.json` as the section `gc` of a configuration file.
//!
//! Keys that this host does not have become warnings, because files of the original may have any.

use std::path::Path;

use serde_json::{Map, Value};

use crate::error::{ConfigError, ConfigWarning};
use crate::file::ConfigFile;
use crate::keys::KEYS;
use crate::origin::ConfigLayer;
use crate::toml_tree::{TomlNode, TomlValue};

/// The file's path in a workspace.
pub(crate) const GC_FILE: &str = ".jaato/gc.json";

/// The key of the gc's name.
const TYPE: &str = "type";

/// The key of the settings for one gc, which have the names of the others.
const PLUGIN_CONFIG: &str = "plugin_config";

/// Parses a file.
///
/// # Errors
/// If it is not a JSON object. Values of the wrong type are found later, as in any file.
pub(crate) fn parse_gc_file(
    layer: ConfigLayer,
    path: &Path,
    base: &Path,
    text: &str,
) -> Result<ConfigFile, ConfigError> {
    let mut settings: Map<String, Value> = serde_json::from_str(text).map_err(|error| {
        let cause = format!("it is not a JSON object: {error}");
        ConfigError::Read { path: path.to_owned(), cause }
    })?;
    let own = match settings.remove(PLUGIN_CONFIG) {
        Some(Value::Object(own)) => own,
        _ => Map::new(),
    };
    let mut file = ConfigFile::empty(layer, path, base);
    for (name, value) in settings.into_iter().chain(own) {
        let line = line_of_key(text, &name);
        let known = if name == TYPE { "plugin" } else { name.as_str() };
        let key = KEYS.iter().find(|key| key.path.strip_prefix("gc.") == Some(known));
        let Some(key) = key else {
            let text = format!("`{name}` ({}:{line}) has no effect here", path.display());
            file.warnings.push(ConfigWarning { text });
            continue;
        };
        if let Some(value) = json_to_toml(known, value, line) {
            file.values.entry(key.path).or_insert(TomlNode { line, value });
        }
    }
    Ok(file)
}

/// Returns the value, or nothing for `null`, which means the default. A `pressure_percent` of
/// `null` means 0 instead: the continuous mode.
fn json_to_toml(name: &str, value: Value, line: usize) -> Option<TomlValue> {
    Some(match value {
        Value::Null if name == "pressure_percent" => TomlValue::Integer(Ok(0)),
        Value::Null => return None,
        Value::Bool(flag) => TomlValue::Boolean(flag),
        Value::String(text) => TomlValue::Text(text),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => TomlValue::Integer(Ok(whole)),
            // The original writes whole percentages as `80.0`.
            (None, Some(float)) if float.fract() == 0.0 && float.abs() < 1e9 => {
                TomlValue::Integer(Ok(float as i64))
            }
            (None, float) => TomlValue::Float(float.unwrap_or(f64::NAN)),
        },
        Value::Array(values) => {
            let values = values.into_iter().filter_map(|value| json_to_toml(name, value, line));
            TomlValue::Array(values.map(|value| TomlNode { line, value }).collect())
        }
        Value::Object(object) => {
            let entries = object.into_iter().filter_map(|(name, value)| {
                let value = json_to_toml(&name, value, line)?;
                Some((name, TomlNode { line, value }))
            });
            TomlValue::Table(entries.collect())
        }
    })
}

/// Returns the line of a key, counted from 1.
fn line_of_key(text: &str, key: &str) -> usize {
    let quoted = format!("\"{key}\"");
    1 + text.lines().position(|line| line.contains(&quoted)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_gc_text(text: &str) -> ConfigFile {
        let path = Path::new("/w/.jaato/gc.json");
        parse_gc_file(ConfigLayer::Workspace, path, Path::new("/w"), text).unwrap()
    }

    #[test]
    fn settings_of_the_original_become_settings_of_gc() {
        let file = parse_gc_text(
            "{\n\"type\": \"hybrid\",\n\"threshold_percent\": 75.0,\n\"max_turns\": null,\n\
             \"pressure_percent\": null,\n\"plugin_config\": {\"preserve_recent_turns\": 3, \
             \"notification_template\": \"x\"}\n}",
        );
        let values: Vec<(&str, usize, &TomlValue)> =
            file.values.iter().map(|(path, node)| (*path, node.line, &node.value)).collect();
        let expected = [
            ("gc.plugin", 2, &TomlValue::Text("hybrid".to_owned())),
            ("gc.preserve_recent_turns", 6, &TomlValue::Integer(Ok(3))),
            ("gc.pressure_percent", 5, &TomlValue::Integer(Ok(0))),
            ("gc.threshold_percent", 3, &TomlValue::Integer(Ok(75))),
        ];
        assert_eq!(values, expected);
        let warnings: Vec<&str> = file.warnings.iter().map(|it| it.text.as_str()).collect();
        assert_eq!(warnings, ["`notification_template` (/w/.jaato/gc.json:6) has no effect here"]);
    }

    #[test]
    fn broken_file_is_an_error() {
        let path = Path::new("/w/.jaato/gc.json");
        let error =
            parse_gc_file(ConfigLayer::Workspace, path, path, "[1]").unwrap_err().to_string();
        assert!(error.starts_with("cannot read `/w/.jaato/gc.json`: it is not a JSON object"));
    }
}
