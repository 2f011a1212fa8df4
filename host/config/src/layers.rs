//! Reads the layers and merges them, key by key.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};

use crate::env_file::EnvFile;
use crate::error::{ConfigError, ConfigWarning};
use crate::file::{ConfigFile, PLUGINS, PROVIDERS, decode_config_text, read_config_text};
use crate::folders::UserFolders;
use crate::gc_file::{self, GC_FILE};
use crate::keys::{Config, KEYS, KeyInfo, KeyOwner, KeyPrecedence, LayerMerge, Overrides};
use crate::model_settings::{self, ModelSettings};
use crate::origin::{ConfigLayer, ValueOrigin};
use crate::plugin_settings::PluginSettings;
use crate::setting::{PathBases, Setting};
use crate::toml_tree::{TomlNode, TomlValue};
use crate::trust::{CONFIG_FILE, ENV_FILE, TrustedWorkspace};
use crate::variables::EnvironmentVariables;
use jaato_types::dotenv::{self, DotEnv};

/// How many letters a variable's name may differ from a known one and still count as a typo.
const TYPO_LETTERS_MAX: usize = 2;

/// The sources of a configuration.
#[derive(Debug)]
pub struct ConfigSources<'a> {
    /// The user's folders, which contain the user's `config.toml`.
    pub folders: &'a UserFolders,
    /// `--config FILE`: replaces the user's file, and must exist.
    pub config_file: Option<&'a Path>,
    /// `--env-file FILE`: replaces the workspace's `.env`, and must exist. The user named it, so it
    /// needs no trust.
    pub env_file: Option<&'a Path>,
    /// The workspace, if the user trusts it. Otherwise none of its files are read.
    pub workspace: Option<&'a TrustedWorkspace>,
    /// The variables of the process.
    pub variables: &'a EnvironmentVariables,
    /// The base of relative paths in variables.
    pub working_directory: &'a Path,
    /// The command line.
    pub overrides: Overrides,
}

/// Reads and merges all layers. Returns the first problem as an error.
pub fn load_config(sources: ConfigSources<'_>) -> Result<Config, ConfigError> {
    let layers = ConfigLayers::read_layers(&sources)?;
    Ok(Config::from_layers(&layers, sources.overrides)?.resolve_model_alias())
}

/// The layers between the built-in values and the command line, each in order of precedence.
#[derive(Debug)]
pub(crate) struct ConfigLayers<'a> {
    files: Vec<ConfigFile>,
    variables: Vec<VariableLayer>,
    working_directory: &'a Path,
    home: Option<PathBuf>,
    warnings: Vec<ConfigWarning>,
    env_file: EnvFile,
}

/// The documented variables of the process or of a file.
#[derive(Debug, Default)]
struct VariableLayer {
    values: BTreeMap<&'static str, (OsString, ValueOrigin)>,
}

impl<'a> ConfigLayers<'a> {
    fn read_layers(sources: &ConfigSources<'a>) -> Result<Self, ConfigError> {
        let mut layers = Self {
            files: Vec::new(),
            variables: Vec::new(),
            working_directory: sources.working_directory,
            home: sources.variables.get("HOME").map(PathBuf::from),
            warnings: Vec::new(),
            env_file: EnvFile::default(),
        };
        layers.read_files(sources)?;
        layers.read_env_file(sources)?;
        layers.add_process_variables(sources.variables);
        Ok(layers)
    }

    fn read_files(&mut self, sources: &ConfigSources<'_>) -> Result<(), ConfigError> {
        let user = match (sources.config_file, sources.folders.config_file()) {
            (Some(path), _) => {
                let path = sources.working_directory.join(path);
                let text = read_config_text(&path)?.ok_or_else(|| missing_file_error(&path))?;
                Some((path, text))
            }
            (None, Ok(path)) => read_config_text(&path)?.map(|text| (path, text)),
            (None, Err(_)) => None,
        };
        if let Some((path, text)) = user {
            let base = path.parent().unwrap_or(&path).to_owned();
            self.files.push(ConfigFile::parse_config_file(ConfigLayer::User, &path, &base, &text)?);
        }
        if let Some(workspace) = sources.workspace
            && let Some(bytes) = workspace.read_file(GC_FILE)?
        {
            let (path, root) = (workspace.root().join(GC_FILE), workspace.root());
            let text = decode_config_text(&path, bytes)?;
            self.files.push(gc_file::parse_gc_file(ConfigLayer::Workspace, &path, root, &text)?);
        }
        if let Some(workspace) = sources.workspace
            && let Some(bytes) = workspace.read_file(CONFIG_FILE)?
        {
            let path = workspace.root().join(CONFIG_FILE);
            let text = decode_config_text(&path, bytes)?;
            self.files.push(ConfigFile::parse_config_file(
                ConfigLayer::Workspace,
                &path,
                workspace.root(),
                &text,
            )?);
        }
        for file in &mut self.files {
            self.warnings.append(&mut file.warnings);
        }
        let root = sources.workspace.map_or(Path::new("/"), TrustedWorkspace::root);
        let (others, workspaces): (Vec<_>, Vec<_>) =
            self.files.iter_mut().partition(|file| file.layer != ConfigLayer::Workspace);
        for file in workspaces {
            let user = others.iter().find(|file| file.layer == ConfigLayer::User);
            self.warnings.extend(drop_refused_values(file, root, user.map(|file| &**file)));
        }
        Ok(())
    }

    fn read_env_file(&mut self, sources: &ConfigSources<'_>) -> Result<(), ConfigError> {
        let (path, text) = match (sources.env_file, sources.workspace) {
            (Some(path), _) => {
                let path = sources.working_directory.join(path);
                let text = read_config_text(&path)?.ok_or_else(|| missing_file_error(&path))?;
                (path, text)
            }
            (None, Some(workspace)) => match workspace.read_file(ENV_FILE)? {
                Some(bytes) => {
                    let path = workspace.root().join(ENV_FILE);
                    let text = decode_config_text(&path, bytes)?;
                    (path, text)
                }
                None => return Ok(()),
            },
            (None, None) => return Ok(()),
        };
        self.env_file.is_own = sources.env_file.is_some();
        let mut found = dotenv::parse(&text);
        if sources.env_file.is_none() {
            let workspace = sources.workspace.map_or(Path::new("/"), TrustedWorkspace::root);
            self.drop_refused_variables(workspace, &path, &mut found);
        }
        self.add_env_file(&path, found);
        Ok(())
    }

    /// Removes variables that a workspace may not set.
    fn drop_refused_variables(&mut self, workspace: &Path, path: &Path, found: &mut DotEnv) {
        let user = self.files.iter().find(|file| file.layer == ConfigLayer::User);
        let mut warnings = Vec::new();
        found.assignments.retain(|one| {
            let Some(key) = KEYS.iter().find(|key| key.variables.contains(&one.name.as_str()))
            else {
                return true;
            };
            if one.value.is_empty() {
                return true;
            }
            let place = format!("{}:{}", path.display(), one.line);
            let flag = bool::from_text(OsStr::new(&one.value), self.path_bases(workspace));
            let said = flag.map_or_else(|| one.value.clone(), |flag| flag.to_string());
            let refused = refusal_reason(key, &said, workspace, user);
            let refused = refused.map(|why| unused_value_warning(&one.name, &place, why));
            let is_kept = refused.is_none();
            warnings.extend(refused);
            is_kept
        });
        self.warnings.extend(warnings);
    }

    fn add_env_file(&mut self, path: &Path, found: DotEnv) {
        let mut layer = VariableLayer::default();
        for line in found.odd_lines {
            let text = format!("skipped `{}:{line}`: not `NAME=value`", path.display());
            self.warnings.push(ConfigWarning { text });
        }
        for one in found.assignments {
            let Some(name) = documented_variable(&one.name) else {
                let place = format!("{}:{}", path.display(), one.line);
                self.warn_of_typo(&one.name, &place);
                self.env_file.store_assignment(path, one);
                continue;
            };
            if one.looks_expanded {
                let text = format!(
                    "`{name}` in `{}:{}` is taken as written: `${{…}}` is not replaced",
                    path.display(),
                    one.line
                );
                self.warnings.push(ConfigWarning { text });
            }
            if !one.value.is_empty() {
                let origin =
                    ValueOrigin::EnvFile { path: path.to_owned(), line: one.line, name: one.name };
                layer.values.insert(name, (one.value.into(), origin));
            }
        }
        self.variables.push(layer);
    }

    fn add_process_variables(&mut self, variables: &EnvironmentVariables) {
        let mut layer = VariableLayer::default();
        for name in variables.names() {
            match (documented_variable(name), variables.get(name)) {
                (Some(known), Some(value)) => {
                    let origin = ValueOrigin::Variable { name: name.to_owned() };
                    layer.values.insert(known, (value.clone(), origin));
                }
                _ => self.warn_of_typo(name, "the process"),
            }
        }
        self.variables.push(layer);
    }

    fn warn_of_typo(&mut self, name: &str, place: &str) {
        if !name.starts_with("JAATO_") {
            return;
        }
        let near = documented_variables()
            .find(|known| strsim::damerau_levenshtein(name, known) <= TYPO_LETTERS_MAX);
        if let Some(known) = near {
            let text = format!("variable `{name}` ({place}) is unknown; did you mean `{known}`?");
            self.warnings.push(ConfigWarning { text });
        }
    }

    /// Returns the value of a key, and records its origin in `origins` if it is not built in.
    pub(crate) fn resolve_value<T: Setting>(
        &self,
        key: &KeyInfo,
        default: T,
        given: Option<T>,
        origins: &mut BTreeMap<&'static str, Vec<ValueOrigin>>,
    ) -> Result<T, ConfigError> {
        let mut found = match key.precedence {
            KeyPrecedence::VariablesWin => self.values_in_files(key)?,
            KeyPrecedence::FilesWin => self.values_in_variables(key)?,
        };
        found.extend(match key.precedence {
            KeyPrecedence::VariablesWin => self.values_in_variables(key)?,
            KeyPrecedence::FilesWin => self.values_in_files(key)?,
        });
        if let Some(value) = given {
            let option = key.option.unwrap_or("(no option)");
            found.push((value, ValueOrigin::CommandLine { option }));
        }
        for (value, origin) in &found {
            if !key.limits.is_none_or(|limits| value.is_within(limits)) {
                return Err(wrong_value_error(
                    key,
                    origin.clone(),
                    format!("`{}`", value.to_text()),
                ));
            }
        }
        let Some((mut value, origin)) = found.pop() else { return Ok(default) };
        let mut places = vec![origin];
        if key.merge == LayerMerge::Add {
            while let Some((lower, origin)) = found.pop() {
                value = value.join_lower_layer(lower);
                places.push(origin);
            }
            value = value.join_lower_layer(default);
        }
        origins.insert(key.path, places);
        Ok(value)
    }

    pub(crate) fn plugin_settings(&self) -> Result<BTreeMap<String, PluginSettings>, ConfigError> {
        self.settings_in_section(PLUGINS, |file| &file.plugins)
    }

    pub(crate) fn provider_settings(
        &self,
    ) -> Result<BTreeMap<String, PluginSettings>, ConfigError> {
        self.settings_in_section(PROVIDERS, |file| &file.providers)
    }

    fn settings_in_section(
        &self,
        section: &str,
        of: impl Fn(&ConfigFile) -> &BTreeMap<String, Vec<(String, TomlNode)>>,
    ) -> Result<BTreeMap<String, PluginSettings>, ConfigError> {
        let mut settings: BTreeMap<String, PluginSettings> = BTreeMap::new();
        for file in &self.files {
            for (name, entries) in of(file) {
                let place = format!("{section}.{name}");
                settings
                    .entry(name.clone())
                    .or_default()
                    .merge_later_settings(&place, entries, file)?;
            }
        }
        Ok(settings)
    }

    pub(crate) fn env_file(&self) -> EnvFile {
        self.env_file.clone()
    }

    /// Returns the settings of models, and warnings about those that a workspace may not set.
    pub(crate) fn model_settings(
        &self,
    ) -> Result<(BTreeMap<String, ModelSettings>, Vec<ConfigWarning>), ConfigError> {
        let (mut models, mut warnings) = (BTreeMap::new(), Vec::new());
        for file in &self.files {
            model_settings::merge_model_settings(&mut models, file, &mut warnings)?;
        }
        Ok((models, warnings))
    }

    pub(crate) fn warnings(&self) -> Vec<ConfigWarning> {
        self.warnings.clone()
    }

    fn values_in_files<T: Setting>(
        &self,
        key: &KeyInfo,
    ) -> Result<Vec<(T, ValueOrigin)>, ConfigError> {
        let mut found = Vec::new();
        for file in &self.files {
            let Some(node) = file.values.get(key.path) else { continue };
            let origin = file.value_origin(node.line);
            match T::from_toml(&node.value, self.path_bases(&file.base)) {
                Some(value) => found.push((value, origin)),
                None => return Err(wrong_value_error(key, origin, node.value.describe())),
            }
        }
        Ok(found)
    }

    fn values_in_variables<T: Setting>(
        &self,
        key: &KeyInfo,
    ) -> Result<Vec<(T, ValueOrigin)>, ConfigError> {
        let mut found = Vec::new();
        for name in key.variables {
            for layer in &self.variables {
                let Some((text, origin)) = layer.values.get(name) else { continue };
                let given = key
                    .in_seconds
                    .filter(|seconds| seconds == name)
                    .map(|_| seconds_to_milliseconds(text));
                // A value that is not a number of seconds is reported as written.
                let read = given.as_deref().unwrap_or(text);
                match T::from_text(read, self.path_bases(self.working_directory)) {
                    Some(value) => found.push((value, origin.clone())),
                    None => {
                        let has = match given {
                            Some(_) => format!("`{}` seconds", text.to_string_lossy()),
                            None => format!("`{}`", text.to_string_lossy()),
                        };
                        return Err(wrong_value_error(key, origin.clone(), has));
                    }
                }
            }
        }
        Ok(found)
    }

    fn path_bases<'b>(&'b self, folder: &'b Path) -> PathBases<'b> {
        PathBases { folder, home: self.home.as_deref() }
    }
}

/// Removes keys from a workspace's file that it may not set.
fn drop_refused_values(
    file: &mut ConfigFile,
    workspace: &Path,
    user: Option<&ConfigFile>,
) -> Vec<ConfigWarning> {
    let mut warnings = Vec::new();
    for key in KEYS {
        let Some(node) = file.values.get(key.path) else { continue };
        let said = match &node.value {
            TomlValue::Text(text) => text.clone(),
            TomlValue::Boolean(flag) => flag.to_string(),
            TomlValue::Integer(_)
            | TomlValue::Float(_)
            | TomlValue::Datetime(_)
            | TomlValue::Array(_)
            | TomlValue::Table(_) => String::new(),
        };
        if let Some(why) = refusal_reason(key, &said, workspace, user) {
            let place = format!("{}:{}", file.path.display(), node.line);
            warnings.push(unused_value_warning(key.path, &place, why));
            file.values.remove(key.path);
        }
    }
    warnings
}

/// Returns why a workspace's value does not count.
fn refusal_reason(
    key: &KeyInfo,
    said: &str,
    workspace: &Path,
    user: Option<&ConfigFile>,
) -> Option<&'static str> {
    let is_refused = match key.owner {
        KeyOwner::Anyone => false,
        KeyOwner::User => true,
        KeyOwner::UserFirst => {
            let is_given = user.is_some_and(|file| file.values.contains_key(key.path));
            return is_given.then_some("your own configuration sets it");
        }
        KeyOwner::Only(value) => said != value,
        KeyOwner::Inside => {
            let why = "a workspace may name only files inside it";
            return (!is_inside(Path::new(said), workspace)).then_some(why);
        }
    };
    is_refused.then_some("only your own configuration or a variable can set it")
}

/// Returns true if a path, absolute or relative to the folder, does not lead out of it. Ignores
/// links.
fn is_inside(path: &Path, folder: &Path) -> bool {
    let leads_up = path.components().any(|part| part == Component::ParentDir);
    let below = if path.is_absolute() { path.starts_with(folder) } else { !path.starts_with("~") };
    below && !leads_up
}

fn unused_value_warning(name: &str, place: &str, why: &str) -> ConfigWarning {
    ConfigWarning { text: format!("`{name}` in `{place}` is not used: {why}") }
}

fn wrong_value_error(key: &KeyInfo, origin: ValueOrigin, has: String) -> ConfigError {
    ConfigError::WrongValue {
        origin: Box::new(origin),
        key: key.path.to_owned(),
        wants: key.value_description(),
        has,
    }
}

fn missing_file_error(path: &Path) -> ConfigError {
    ConfigError::Read { path: path.to_owned(), cause: "no such file".to_owned() }
}

/// Converts seconds, with a fraction, to whole milliseconds. Other texts stay as they are.
fn seconds_to_milliseconds(text: &OsStr) -> OsString {
    let seconds = text.to_str().and_then(|text| text.trim().parse::<f64>().ok());
    let seconds = seconds.filter(|it| (0.0..1e12).contains(it));
    seconds.map_or_else(|| text.to_owned(), |it| format!("{:.0}", it * 1_000.0).into())
}

fn documented_variables() -> impl Iterator<Item = &'static str> {
    KEYS.iter().flat_map(|key| key.variables.iter().copied())
}

fn documented_variable(name: &str) -> Option<&'static str> {
    documented_variables().find(|known| *known == name)
}
