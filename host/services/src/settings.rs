//! Validates `[plugins.NAME]` and `[providers.NAME]` against the plugin's own schema, and locates
//! invalid values.

use jaato_catalog::Setup;
use jaato_config::{Config, ConfigEntry, EnvironmentVariables, PluginSettings, ValueOrigin};
use jaato_loader::PlaceKind;
use jaato_registry::{
    PluginCandidate, PluginEntry, PluginFileTrust, PluginStatus, Registry, nearest_name,
};
use jaato_types::{Description, Error, ErrorKind, PluginName, ProviderPreset};
use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind;
use serde_json::Value;

use crate::credentials::{BASE_URL, CredentialSources, HOST_KEYS, OWN_KEYS, PluginCredentials};
use crate::section::{PLUGIN, SettingsSection};
use crate::setting_paths;
use crate::setting_variables::{self, VariableSetting};
use crate::stored_keys::KeyStore;
use crate::wrong_type;

/// The schema keyword that allows a workspace to set a property: `"x-jaato-workspace": true`.
/// Without it, only the user may.
pub const WORKSPACE_MAY: &str = "x-jaato-workspace";

/// Returns a plugin's settings as the plugin sees them, and its credentials, which it does not see.
///
/// # Errors
/// `configuration`, with the place of the invalid value.
pub fn settings_of_plugin(
    entry: &PluginEntry,
    section: &SettingsSection,
    description: &Description,
    setup: &Setup,
) -> Result<(Value, PluginCredentials), Error> {
    let PluginCandidate { manifest, trust, .. } = &entry.candidate;
    let plugin = &manifest.name;
    let config = &setup.config;
    let settings =
        allowed_settings(entry, section, description, config).map(|(settings, _)| settings);
    let settings = settings.as_ref();
    let preset = section.preset(config, description);
    let (specs, variables) = (&description.credentials, &setup.variables);
    let given = settings_from_variables_of(entry, section, description, config, variables)?;
    let sources = SettingSources { settings, preset, given: &given };
    let mut values = checked_settings(plugin, section, description, &sources)?;
    complete_paths(&mut values, section, description, setup, &sources)?;
    let stored_keys = KeyStore::new(&setup.folders);
    let provider = section.provider(description);
    let stored = provider.map(|provider| (&stored_keys, provider));
    let found = CredentialSources { section, settings, preset, config, variables, stored };
    let mut credentials = PluginCredentials::from_sources(plugin, specs, &found)?;
    if matches!(trust, PluginFileTrust::No(_) | PluginFileTrust::WorkspaceNot) {
        credentials.withhold_keys();
    }
    if let (Some(url), Some(values)) = (credentials.base_url(), values.as_object_mut()) {
        // A variable overrides the files, and the plugin does not have to know the variable.
        values.insert(BASE_URL.to_owned(), url.into());
    }
    Ok((values, credentials))
}

/// Resolves the paths in a plugin's settings, each by its place.
fn complete_paths(
    values: &mut Value,
    section: &SettingsSection,
    description: &Description,
    setup: &Setup,
    sources: &SettingSources<'_>,
) -> Result<(), Error> {
    let (Some(values), Some(schema)) = (values.as_object_mut(), &description.config_schema) else {
        return Ok(());
    };
    let home = setup.variables.get("HOME").map(std::path::PathBuf::from);
    // If the working directory is gone, jaato ends before it asks any plugin.
    let here = std::env::current_dir().unwrap_or_default();
    let base = |key: &str| {
        let origin = sources.origin(&format!("/{key}"))?;
        Some(setting_paths::base_folder(origin, setup.workspace.root(), &here))
    };
    setting_paths::resolve_paths(values, schema, home.as_deref(), base)
        .map_err(|error| Error { message: format!("`{section}`: {}", error.message), ..error })
}

/// Returns a plugin's settings without those that its workspace may not set, and a line for each of
/// these. A plugin in the workspace takes all settings from it.
fn allowed_settings(
    entry: &PluginEntry,
    section: &SettingsSection,
    description: &Description,
    config: &Config,
) -> Option<(PluginSettings, Vec<String>)> {
    let mut settings = section.settings(config)?.clone();
    if entry.candidate.place == PlaceKind::Workspace.name() {
        return Some((settings, Vec::new()));
    }
    let is_hosts =
        |key: &str| is_host_setting(section, description, key) && !OWN_KEYS.contains(&key);
    let dropped = settings.retain_workspace_values(|key| {
        // The credentials decide about these keys and their owner.
        is_hosts(key) || is_allowed_in_workspace(description.config_schema.as_ref(), key)
    });
    let told = dropped.into_iter().map(|(key, place)| {
        format!(
            "`{key}` of `{section}` is not used ({place}): only your own config.toml can set it"
        )
    });
    let told = told.collect();
    Some((settings, told))
}

/// Returns true if a key belongs to the host, so that the plugin does not see it.
fn is_host_setting(section: &SettingsSection, description: &Description, key: &str) -> bool {
    let names_plugin = matches!(section, SettingsSection::Provider(_)) && key == PLUGIN;
    names_plugin || (!description.credentials.is_empty() && HOST_KEYS.contains(&key))
}

/// Returns true if a plugin's schema allows a workspace to set this key.
pub fn is_allowed_in_workspace(schema: Option<&Value>, key: &str) -> bool {
    let property = schema.and_then(|schema| schema.get("properties")?.get(key));
    property.is_some_and(|property| property.get(WORKSPACE_MAY) == Some(&Value::Bool(true)))
}

/// Reads plugin settings from variables, for a trusted plugin under its own name.
fn settings_from_variables_of(
    entry: &PluginEntry,
    section: &SettingsSection,
    description: &Description,
    config: &Config,
    variables: &EnvironmentVariables,
) -> Result<Vec<VariableSetting>, Error> {
    // A provider under another name takes nothing from the plugin's variables.
    let is_plugins = matches!(section, SettingsSection::Plugin(_));
    let schema = description.config_schema.as_ref();
    let schema = schema.filter(|_| entry.candidate.trust.is_trusted() && is_plugins);
    let Some(schema) = schema else { return Ok(Vec::new()) };
    let is_workspaces = entry.candidate.place == PlaceKind::Workspace.name();
    let may = |key: &str| is_workspaces || is_allowed_in_workspace(Some(schema), key);
    setting_variables::variable_settings(schema, config, variables, may)
        .map_err(|error| Error { message: format!("`{section}`: {}", error.message), ..error })
}

/// The sources of a plugin's settings. Later ones win.
struct SettingSources<'a> {
    preset: Option<&'a ProviderPreset>,
    settings: Option<&'a PluginSettings>,
    given: &'a [VariableSetting],
}

impl SettingSources<'_> {
    /// Returns the place of the value at a pointer, or `None` if a preset sets it.
    fn origin(&self, pointer: &str) -> Option<&ValueOrigin> {
        let key = pointer.split('/').nth(1).unwrap_or_default();
        let by_variable = self.given.iter().find(|given| given.key == key);
        let by_file = || self.settings.and_then(|settings| settings.origin(pointer));
        by_variable.map(|given| &given.origin).or_else(by_file)
    }

    /// Describes the place of the value at a pointer.
    fn describe_place(&self, plugin: &PluginName, pointer: &str) -> String {
        match self.origin(pointer) {
            Some(origin) => origin.to_string(),
            None => match (self.settings, self.preset, self.given.first()) {
                (Some(settings), _, _) if !settings.values().is_empty() => {
                    first_origin_text(settings)
                }
                (_, Some(preset), _) => {
                    format!("the preset `{}` of plugin `{plugin}`", preset.name)
                }
                (_, None, Some(given)) => given.origin.to_string(),
                (_, None, None) => "the configuration".to_owned(),
            },
        }
    }
}

/// Returns a plugin's settings as JSON, without those that belong to the host.
///
/// # Errors
/// `configuration`, with the place of the first value that the schema rejects.
fn checked_settings(
    plugin: &PluginName,
    section: &SettingsSection,
    description: &Description,
    sources: &SettingSources<'_>,
) -> Result<Value, Error> {
    let SettingSources { settings, preset, given } = *sources;
    let mut values = preset.map(|preset| preset.settings.clone()).unwrap_or_default();
    let of_files = settings.map(PluginSettings::values).into_iter().flatten();
    values.extend(of_files.map(|(name, value)| (name.clone(), value.clone())));
    values.extend(given.iter().map(|given| (given.key.clone(), given.value.clone())));
    let is_given = !values.is_empty();
    values.retain(|name, _| !is_host_setting(section, description, name));
    // The plugin has no settings, or all of them belong to the host.
    if values.is_empty() && (is_given || settings.is_none()) {
        return Ok(Value::Object(values));
    }
    let values = Value::Object(values);
    let wrong = |pointer: &str, text: &str| {
        let place = sources.describe_place(plugin, pointer);
        Error::new(ErrorKind::Configuration, format!("`{section}` {text} ({place})"))
    };
    let Some(schema) = &description.config_schema else {
        return Err(wrong("", "is set, but the plugin takes no configuration"));
    };
    let validator = jsonschema::validator_for(schema).map_err(|error| {
        let text = format!("the configuration schema of plugin `{plugin}` is broken: {error}");
        Error::new(ErrorKind::PluginMisbehaved, text)
    })?;
    if let Some(error) = validator.iter_errors(&values).next() {
        let pointer = error.instance_path().to_string();
        if let Some(key) = unknown_key(&error).filter(|_| pointer.is_empty()) {
            let pointer = format!("/{}", key.replace('~', "~0").replace('/', "~1"));
            return Err(with_known_keys(
                wrong(&pointer, &format!("has no key `{key}`")),
                key,
                schema,
            ));
        }
        let at = if pointer.is_empty() { String::new() } else { format!(" at `{pointer}`") };
        let (text, hint) = wrong_type::wrong_type_message(&error);
        let error = wrong(&pointer, &format!("is wrong{at}: {text}"));
        return Err(hint.into_iter().fold(error, Error::with_hint));
    }
    Ok(values)
}

/// Returns the first key that a schema does not know, if that is the error.
fn unknown_key<'a>(error: &'a ValidationError<'_>) -> Option<&'a str> {
    match error.kind() {
        ValidationErrorKind::AdditionalProperties { unexpected }
        | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
            unexpected.first().map(String::as_str)
        }
        _ => None,
    }
}

/// Adds a hint with the known key that is most similar to an unknown one, otherwise with all known
/// keys.
fn with_known_keys(error: Error, key: &str, schema: &Value) -> Error {
    let known = schema["properties"].as_object();
    let names = || known.into_iter().flat_map(|known| known.keys().map(String::as_str));
    let hint = match nearest_name(key, names()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("known here: `{}`", names().collect::<Vec<_>>().join("`, `")),
    };
    if known.is_none_or(serde_json::Map::is_empty) { error } else { error.with_hint(hint) }
}

/// Reads the base URL from a variable. The host uses it, and the plugin sees it.
fn variable_base_url(
    entry: &PluginEntry,
    description: &Description,
    config: &Config,
    variables: &EnvironmentVariables,
) -> Option<VariableSetting> {
    let credential = description.credentials.first();
    let name = &credential.filter(|_| entry.candidate.trust.is_trusted())?.base_url_variable;
    setting_variables::variable_text(BASE_URL, name, config, variables)
}

/// Lists the plugin settings from variables for display, which `jaato config show` adds to those
/// from files. [`list_setting_problems`] reports those that cannot be parsed.
pub fn variable_entries(
    registry: &Registry,
    config: &Config,
    variables: &EnvironmentVariables,
) -> Vec<ConfigEntry> {
    let used = registry.plugins().iter().filter(|entry| entry.status == PluginStatus::Active);
    let entries = used.flat_map(|entry| {
        let name = &entry.candidate.manifest.name;
        let section = SettingsSection::Plugin(name.clone());
        let given = entry.description().map(|description| {
            let given = settings_from_variables_of(entry, &section, description, config, variables);
            let mut given = given.unwrap_or_default();
            given.extend(variable_base_url(entry, description, config, variables));
            given
        });
        let shown = move |it: VariableSetting| {
            ConfigEntry::for_plugin(name.as_str(), &it.key, &it.value, it.origin)
        };
        given.unwrap_or_default().into_iter().map(shown)
    });
    entries.collect()
}

/// A problem with a plugin's settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingProblem {
    /// The text for the user.
    pub text: String,
    /// Whether the plugin cannot be used, because every call would fail.
    pub breaks_plugin: bool,
}

impl SettingProblem {
    fn from_note(text: String) -> Self {
        Self { text, breaks_plugin: false }
    }

    fn from_error(error: &Error) -> Self {
        Self { text: error.to_string(), breaks_plugin: true }
    }
}

/// Lists the problems with all plugins' settings: unknown plugin names, and values that a schema
/// rejects.
pub fn list_setting_problems(
    registry: &Registry,
    config: &Config,
    variables: &EnvironmentVariables,
) -> Vec<SettingProblem> {
    let slips = unknown_plugin_names(registry, config).into_iter();
    let mut problems: Vec<SettingProblem> = slips.map(SettingProblem::from_note).collect();
    for name in config.provider_settings.keys() {
        let section = SettingsSection::Provider(name.as_str().into());
        match named_plugin(registry, config, name) {
            Ok(entry) => problems.extend(section_problems(entry, &section, config, variables)),
            Err(error) => problems.push(SettingProblem::from_error(&error)),
        }
    }
    for (name, settings) in &config.plugin_settings {
        let Some(entry) = registry.plugin(name) else {
            let near = nearest_name(name, plugin_names(registry))
                .map(|near| format!("\nhint: did you mean `[plugins.{near}]`?"));
            let place = first_origin_text(settings);
            let near = near.unwrap_or_default();
            let text = format!("unknown plugin `{name}` ({place}){near}");
            problems.push(SettingProblem::from_note(text));
            continue;
        };
        let section = SettingsSection::Plugin(entry.candidate.manifest.name.clone());
        problems.extend(section_problems(entry, &section, config, variables));
    }
    // Plugins without settings in files. Variables may still set some.
    let is_silent = |entry: &&PluginEntry| {
        let name = entry.candidate.manifest.name.as_str();
        entry.status == PluginStatus::Active && !config.plugin_settings.contains_key(name)
    };
    for entry in registry.plugins().iter().filter(is_silent) {
        let section = SettingsSection::Plugin(entry.candidate.manifest.name.clone());
        problems.extend(variable_setting_problem(entry, &section, config, variables));
    }
    problems
}

/// Returns a problem with settings that come only from variables.
fn variable_setting_problem(
    entry: &PluginEntry,
    section: &SettingsSection,
    config: &Config,
    variables: &EnvironmentVariables,
) -> Option<SettingProblem> {
    let description = entry.description()?;
    let given = settings_from_variables_of(entry, section, description, config, variables);
    let checked = given.and_then(|given| {
        let sources = SettingSources { settings: None, preset: None, given: &given };
        checked_settings(&entry.candidate.manifest.name, section, description, &sources)
    });
    checked.err().map(|error| SettingProblem::from_error(&error))
}

/// Lists the problems with the settings of one section.
fn section_problems(
    entry: &PluginEntry,
    section: &SettingsSection,
    config: &Config,
    variables: &EnvironmentVariables,
) -> Vec<SettingProblem> {
    let name = &entry.candidate.manifest.name;
    let Some(description) = entry.description() else { return Vec::new() };
    let Some((settings, told)) = allowed_settings(entry, section, description, config) else {
        return Vec::new();
    };
    let mut told: Vec<SettingProblem> = told.into_iter().map(SettingProblem::from_note).collect();
    let specs = &description.credentials;
    let preset = section.preset(config, description);
    let settings = Some(&settings);
    let found = CredentialSources { section, settings, preset, config, variables, stored: None };
    let checked = settings_from_variables_of(entry, section, description, config, variables)
        .and_then(|given| {
            checked_settings(
                name,
                section,
                description,
                &SettingSources { settings, preset, given: &given },
            )
        })
        .and_then(|_| PluginCredentials::from_sources(name, specs, &found).map(drop));
    told.extend(checked.err().map(|error| SettingProblem::from_error(&error)));
    told
}

/// Finds the plugin of a provider that is set up under another name. `plugin` names it by its own
/// name, its provider's name or a server that it knows, also with `_` for `-`. Without `plugin`,
/// the provider's name itself must match a provider or server.
///
/// # Errors
/// `configuration` if there is none.
pub fn named_plugin<'a>(
    registry: &'a Registry,
    config: &Config,
    name: &str,
) -> Result<&'a PluginEntry, Error> {
    let settings = config.provider_settings.get(name);
    let given = settings.and_then(|settings| settings.values().get(PLUGIN));
    let wanted = match given {
        None => name,
        Some(Value::String(wanted)) => wanted.as_str(),
        Some(_) => "",
    };
    let dashed = wanted.replace('_', "-");
    let by = |wanted: &str| {
        let of_preset = || registry.preset(wanted).map(|(entry, _)| entry);
        registry.plugin(wanted).or_else(|| registry.provider(wanted)).or_else(of_preset)
    };
    let is_provider = |entry: &&PluginEntry| {
        entry.candidate.manifest.kinds.contains(&jaato_types::PluginKind::Provider)
    };
    by(wanted).or_else(|| by(&dashed)).filter(is_provider).ok_or_else(|| {
        let place = settings.map(first_origin_text).unwrap_or_default();
        let text = match given {
            None => format!("`[providers.{name}]` does not name its plugin ({place})"),
            Some(_) => format!("`[providers.{name}]` does not name a provider plugin ({place})"),
        };
        let known: Vec<&str> = registry.providers().chain(registry.presets()).collect();
        let hint = format!("`plugin` is one of: {}", known.join(", "));
        Error::new(ErrorKind::Configuration, text).with_hint(hint)
    })
}

/// Lists names in `[plugins] isolated` and `disabled` that match no plugin, probably by mistake.
/// The setting then has no effect.
fn unknown_plugin_names(registry: &Registry, config: &Config) -> Vec<String> {
    let lists = [("isolated", &config.plugins_isolated), ("disabled", &config.plugins_disabled)];
    let all = lists.iter().flat_map(|(list, names)| names.iter().map(move |name| (list, name)));
    let slips = all.filter(|(_, name)| *name != "*" && registry.plugin(name).is_none());
    slips
        .filter_map(|(list, name)| {
            // An unusual name may belong to a plugin that is elsewhere or was removed.
            let is_short = |known: &&str| known.split_once('-').is_some_and(|it| it.1 == name);
            let near = plugin_names(registry)
                .find(is_short)
                .or_else(|| nearest_name(name, plugin_names(registry)))?;
            Some(format!(
                "unknown plugin `{name}` in `[plugins] {list}`\nhint: did you mean `{near}`?"
            ))
        })
        .collect()
}

fn plugin_names(registry: &Registry) -> impl Iterator<Item = &str> {
    registry.plugins().iter().map(|entry| entry.candidate.manifest.name.as_str())
}

fn first_origin_text(settings: &PluginSettings) -> String {
    let first = settings.values().keys().next();
    let origin = first.and_then(|key| settings.origin(&format!("/{key}")));
    origin.map_or_else(|| "the configuration".to_owned(), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use jaato_config::{ConfigSources, Overrides, UserFolders, load_config};
    use jaato_registry::RegistryRules;
    use jaato_types::Manifest;
    use serde_json::json;

    use super::*;

    fn list_problem_texts(config: &str, schema: Option<Value>) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let folders = UserFolders::under_root(folder.path());
        std::fs::create_dir_all(folders.config_folder().unwrap()).unwrap();
        std::fs::write(folders.config_file().unwrap(), config).unwrap();
        let config = load_config(ConfigSources {
            folders: &folders,
            config_file: None,
            env_file: None,
            workspace: None,
            variables: &EnvironmentVariables::default(),
            working_directory: folder.path(),
            overrides: Overrides::default(),
        })
        .unwrap();
        let manifest =
            br#"{"v":1,"name":"tool-moon","version":"1","api":"1.0.0","kinds":["tool"]}"#;
        let description = Description { config_schema: schema, ..Description::default() };
        let candidate = PluginCandidate {
            path: "/moon.so".into(),
            place: "user",
            trust: PluginFileTrust::Shipped,
            manifest: Manifest::parse(manifest).unwrap(),
            description: Some(Ok(description)),
        };
        let root = folder.path().display().to_string();
        let registry = Registry::build([candidate], &RegistryRules::default());
        let variables = EnvironmentVariables::default();
        list_setting_problems(&registry, &config, &variables)
            .iter()
            .map(|problem| problem.text.replace(&root, ""))
            .collect()
    }

    fn test_schema() -> Option<Value> {
        Some(serde_json::json!({
            "type": "object",
            "properties": { "phase": { "type": "integer" } },
            "additionalProperties": false
        }))
    }

    #[test]
    fn invalid_plugin_setting_is_reported_with_its_origin() {
        let problems = list_problem_texts("[plugins.tool-moon]\nphase = \"full\"\n", test_schema());
        let [problem] = problems.as_slice() else { panic!("{problems:?}") };
        assert!(problem.ends_with("/config/config.toml:2)"), "{problem}");
        assert!(problem.contains("`[plugins.tool-moon]` is wrong at `/phase`"), "{problem}");
        assert!(list_problem_texts("[plugins.tool-moon]\nphase = 3\n", test_schema()).is_empty());
    }

    #[test]
    fn misspelled_plugin_in_a_list_is_reported() {
        for list in ["isolated", "disabled"] {
            for slip in ["tool-mon", "moon"] {
                let problems =
                    list_problem_texts(&format!("[plugins]\n{list} = [\"{slip}\"]\n"), None);
                let told = format!(
                    "unknown plugin `{slip}` in `[plugins] {list}`\nhint: did you mean `tool-moon`?"
                );
                assert_eq!(problems, [told]);
            }
            let fine = format!("[plugins]\n{list} = [\"tool-moon\", \"gc-elsewhere\"]\n");
            assert!(list_problem_texts(&fine, None).is_empty());
        }
        assert!(list_problem_texts("[plugins]\nisolated = [\"*\"]\n", None).is_empty());
    }

    #[test]
    fn setting_of_the_wrong_type_is_reported_in_plain_words() {
        let integer = Some(json!({ "properties": { "phase": { "type": ["null", "integer"] } } }));
        let problems = list_problem_texts("[plugins.tool-moon]\nphase = \"8\"\n", integer);
        let told = "is wrong at `/phase`: `\"8\"` is a text, and it must be a whole number";
        assert!(problems[0].contains(told), "{problems:?}");
        assert!(problems[0].ends_with("hint: leave out the quotes"), "{problems:?}");
    }

    #[test]
    fn settings_of_unknown_plugins_or_without_a_schema_are_reported() {
        let problems = list_problem_texts("[plugins.tool-mon]\nphase = 3\n", test_schema());
        assert!(problems[0].contains("unknown plugin `tool-mon`"), "{problems:?}");
        assert!(problems[0].ends_with("did you mean `[plugins.tool-moon]`?"), "{problems:?}");
        let problems = list_problem_texts("[plugins.tool-moon]\nphase = 3\n", None);
        assert!(problems[0].contains("the plugin takes no configuration"), "{problems:?}");
    }
}
