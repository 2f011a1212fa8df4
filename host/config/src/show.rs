//! The output of `jaato config show`: each value with its origin, with secrets hidden.

use std::collections::BTreeMap;

use jaato_types::mask;
use serde_json::Value as Json;

use crate::file::{PLUGINS, PROVIDERS};
use crate::keys::Config;
use crate::mask::{MASK, is_secret_name, is_secret_number};
use crate::origin::ValueOrigin;

/// The setting with the name of the variable that contains a key.
const NAME_OF_KEY_VARIABLE: &str = "api_key_env";

/// Lines of at most this length have their origins in one column. The origin of a longer line
/// follows it.
const ALIGNED_CHARS_MAX: usize = 60;

/// One value as the user sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigEntry {
    /// The key with its section, dotted.
    pub key: String,
    /// The value as a configuration file would have it. Secrets among plugins' settings are masked.
    /// No key of the table is a secret.
    pub value: String,
    /// Its origin: one place, or several for lists that are joined.
    pub origins: Vec<ValueOrigin>,
}

impl Config {
    /// Lists every key with its value and origin: first the known keys in the order of the table,
    /// then the settings of models, then those of providers and plugins.
    pub fn entries(&self) -> Vec<ConfigEntry> {
        let mut entries = self.key_entries();
        for (model, settings) in &self.model_settings {
            for (key, value, origin) in settings.entries() {
                let key = format!("models.\"{model}\".{key}");
                let origins = origin.map_or(&[][..], std::slice::from_ref);
                entries.push(ConfigEntry::new(&key, value, origins));
            }
        }
        let plugins = self.plugin_settings.iter().map(|(name, it)| (PLUGINS, name, it));
        let providers = self.provider_settings.iter().map(|(name, it)| (PROVIDERS, name, it));
        for (section, owner, settings) in providers.chain(plugins) {
            // Whether the map sorts depends on a feature that any crate in the build can enable.
            let sorted: BTreeMap<_, _> = settings.values().iter().collect();
            for (name, value) in sorted {
                let pointer = format!("/{}", name.replace('~', "~0").replace('/', "~1"));
                let origins = settings.origin(&pointer).map_or(&[][..], std::slice::from_ref);
                let key = format!("{section}.{owner}.{name}");
                entries.push(ConfigEntry::new(&key, format_setting(name, value), origins));
            }
        }
        entries
    }

    /// Returns the text of `jaato config show`: one line per key, with its origin in a comment.
    pub fn show_text(&self) -> String {
        self.show_text_with(Vec::new())
    }

    /// As [`Self::show_text`], but with plugins' settings from variables, which override those of
    /// files.
    pub fn show_text_with(&self, given: Vec<ConfigEntry>) -> String {
        let mut entries = self.entries();
        for one in given {
            match entries.iter_mut().find(|entry| entry.key == one.key) {
                Some(entry) => *entry = one,
                None => entries.push(one),
            }
        }
        let lines: Vec<_> = entries
            .into_iter()
            .map(|entry| (format!("{} = {}", entry.key, entry.value), entry.origins))
            .collect();
        let widths = lines.iter().map(|(line, _)| line.chars().count());
        let width = widths.filter(|width| *width <= ALIGNED_CHARS_MAX).max().unwrap_or(0);
        let mut shown = String::new();
        for (line, origins) in lines {
            let origins: Vec<_> = origins.iter().map(ToString::to_string).collect();
            shown.push_str(&format!("{line:width$}  # {}\n", origins.join(", ")));
        }
        shown
    }
}

/// Formats a setting's value, without anything that looks like a secret.
fn format_setting(name: &str, value: &Json) -> String {
    match mask_value(name, value) {
        Json::String(text) if text == MASK => text,
        value => value.to_string(),
    }
}

impl ConfigEntry {
    /// Creates the entry of a plugin's setting.
    pub fn for_plugin(plugin: &str, name: &str, value: &Json, origin: ValueOrigin) -> Self {
        Self::new(&format!("{PLUGINS}.{plugin}.{name}"), format_setting(name, value), &[origin])
    }

    pub(crate) fn new(key: &str, value: String, origins: &[ValueOrigin]) -> Self {
        Self { key: key.to_owned(), value: mask::mask_urls(&value), origins: origins.to_vec() }
    }
}

fn mask_value(name: &str, value: &Json) -> Json {
    if name == NAME_OF_KEY_VARIABLE {
        return value.clone();
    }
    if let Some(shown) = mask_by_kind(name, value) {
        return shown;
    }
    let is_secret = match value {
        Json::Null | Json::Bool(_) => false,
        Json::Number(_) => is_secret_number(name),
        Json::String(_) | Json::Array(_) | Json::Object(_) => {
            is_secret_name(name) && contains_text(value)
        }
    };
    if is_secret {
        return Json::String(MASK.to_owned());
    }
    match value {
        Json::Array(items) => {
            Json::Array(items.iter().map(|item| mask_value(name, item)).collect())
        }
        Json::Object(entries) => Json::Object(
            entries.iter().map(|(name, value)| (name.clone(), mask_value(name, value))).collect(),
        ),
        other => other.clone(),
    }
}

/// Hides the values of settings of a kind that contains secrets under any name: headers, variables,
/// arguments, commands.
fn mask_by_kind(name: &str, value: &Json) -> Option<Json> {
    let name = name.to_ascii_lowercase();
    match value {
        Json::Object(entries) if ["headers", "env", "environment"].contains(&name.as_str()) => {
            let shown = |(key, value): (&String, &Json)| {
                let text = match value {
                    Json::String(text) => mask::mask_value(text),
                    Json::Null | Json::Bool(_) => return (key.clone(), value.clone()),
                    other => mask::mask_value(&other.to_string()),
                };
                (key.clone(), Json::String(text))
            };
            Some(Json::Object(entries.iter().map(shown).collect()))
        }
        Json::Array(words) if name == "args" || name.ends_with("command") => {
            let text = |word: &Json| word.as_str().map_or_else(|| word.to_string(), str::to_owned);
            let words: Vec<String> = words.iter().map(text).collect();
            Some(Json::from(mask_words(&name, words.iter().map(String::as_str))))
        }
        Json::String(text) if name == "args" || name.ends_with("command") => {
            let text = mask::strip_reference_defaults(text);
            Some(Json::String(mask_words(&name, text.split_whitespace()).join(" ")))
        }
        _ => None,
    }
}

fn mask_words<'a>(name: &str, words: impl Iterator<Item = &'a str>) -> Vec<String> {
    match name {
        "args" => mask::mask_arguments(words),
        _ => mask::mask_command_line(words),
    }
}

/// Returns true if a value contains a text. A table may hold limits (`max_tokens = { prompt = 5
/// }`), but a secret is a text, or next to one.
fn contains_text(value: &Json) -> bool {
    match value {
        Json::Null | Json::Bool(_) | Json::Number(_) => false,
        Json::String(_) => true,
        Json::Array(items) => items.iter().any(contains_text),
        Json::Object(entries) => entries.values().any(contains_text),
    }
}
