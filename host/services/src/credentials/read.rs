//! Reads one plugin's credentials: keys, base URLs, and who configured each.

use std::path::{Path, PathBuf};

use jaato_config::{Config, ConfigLayer, EnvironmentVariables, PluginSettings, ValueOrigin};
use jaato_google_auth::{CredentialsFile, GoogleCredentialSources, TokenMinter};
use jaato_http::header::{HeaderName, HeaderValue};
use jaato_http::{MaskedUrl, Url};
use jaato_types::{CredentialSpec, Error, ErrorKind, PluginName, ProviderPreset};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::OnceCell;

use super::{
    API_KEY, API_KEY_COMMAND, API_KEY_ENV, BASE_URL, BEARER, ConfiguredKey, HEADERS, HOST_HEADERS,
    KEY_HEADER, KeyConfigurer, KeySecret, KeySource, MissingKeyVariable, PLAIN_HTTP,
    ProviderBaseUrl, SecretScheme,
};
use crate::section::{PLUGIN, SettingsSection};
use crate::stored_keys::{FoundKey, KeyStore};

/// The sources of one plugin's values.
#[derive(Clone, Copy)]
pub struct CredentialSources<'a> {
    /// The section of its settings.
    pub section: &'a SettingsSection,
    /// The settings in that section.
    pub settings: Option<&'a PluginSettings>,
    /// The server that the plugin knows by the section's name.
    pub preset: Option<&'a ProviderPreset>,
    /// The configuration, for variables of files.
    pub config: &'a Config,
    /// The variables of the process.
    pub variables: &'a EnvironmentVariables,
    /// The keys that the user gave to `login`, and the provider's name there.
    pub stored: Option<(&'a KeyStore, &'a str)>,
}

impl CredentialSources<'_> {
    /// Returns the user's own base URL, and the workspace's if that is effective.
    pub(super) fn base_urls(
        &self,
        variable: &str,
    ) -> Result<(Option<ProviderBaseUrl>, Option<ProviderBaseUrl>), Error> {
        let given = match self.section {
            SettingsSection::Plugin(_) => self.variable_values(variable),
            // The variable belongs to the plugin and does not apply to providers under other names.
            SettingsSection::Provider(_) => Vec::new(),
        };
        let first = |whose| given.iter().find(|one| one.2 == whose);
        let base = |text: &str, place: &str| self.parse_base_url(text, place).map(Some);
        let own = match (first(KeyConfigurer::Persons), self.user_setting(BASE_URL)) {
            (Some((text, place, _)), _) => base(text, place)?,
            (None, Some((Value::String(text), origin))) => base(text, &origin.to_string())?,
            (None, _) => None,
        };
        // By precedence: the process's variables, the variables file, the workspace's file, the
        // user's file.
        let workspaces = match (given.first(), self.workspace_setting(BASE_URL)) {
            (Some((_, _, KeyConfigurer::Persons)), _) => None,
            (Some((text, place, KeyConfigurer::Workspaces)), _) => base(text, place)?,
            (None, Some((Value::String(text), origin))) => base(text, &origin.to_string())?,
            (None, _) => None,
        };
        Ok((own, workspaces))
    }

    /// Returns the base URL of the server that the plugin knows by name.
    pub(super) fn preset_base(&self) -> Result<Option<ProviderBaseUrl>, Error> {
        let base = |preset: &ProviderPreset| {
            self.parse_base_url(&preset.base_url, &format!("the preset `{}`", preset.name))
        };
        self.preset.map(base).transpose()
    }

    /// Returns a variable's values by precedence: text, place, owner.
    fn variable_values(&self, name: &str) -> Vec<(String, String, KeyConfigurer)> {
        if name.is_empty() {
            return Vec::new();
        }
        let of_process = self.variables.get(name).and_then(|value| value.to_str());
        let place = ValueOrigin::Variable { name: name.to_owned() }.to_string();
        let of_process =
            of_process.map(|text| (text.trim().to_owned(), place, KeyConfigurer::Persons));
        let of_file = self.config.env_file_variable(name).map(|found| {
            let whose =
                if found.is_own { KeyConfigurer::Persons } else { KeyConfigurer::Workspaces };
            (found.value.trim().to_owned(), found.origin.to_string(), whose)
        });
        of_process.into_iter().chain(of_file).filter(|(text, ..)| !text.is_empty()).collect()
    }

    /// Returns how secrets are added: as the plugin declares, or in the header that the
    /// configuration names. A workspace decides that only for its own keys.
    pub(super) fn schemes(&self, declared: SecretScheme) -> Result<SecretSchemes, Error> {
        let header = |found: Option<(&Value, &ValueOrigin)>| match found {
            None => Ok(None),
            Some((Value::String(name), _)) if is_header(name) => {
                Ok(Some(SecretScheme::Header(name.clone())))
            }
            Some((_, origin)) => Err(self.invalid_setting_error(
                KEY_HEADER,
                "the name of a header, such as `api-key`",
                origin,
            )),
        };
        let persons = header(self.user_setting(KEY_HEADER))?.unwrap_or(declared);
        let workspaces =
            header(self.workspace_setting(KEY_HEADER))?.unwrap_or_else(|| persons.clone());
        Ok(SecretSchemes { persons, workspaces })
    }

    /// Returns the keys in the vendor's variable. A provider under its own name uses that key only
    /// at the vendor's server.
    pub(super) fn keys_in_variables(
        &self,
        name: &str,
        schemes: &SecretSchemes,
    ) -> Vec<ConfiguredKey> {
        if self.has_own_server() { Vec::new() } else { self.keys_in(name, schemes) }
    }

    /// Returns true if it is a provider with its own name and server, which gets none of the
    /// vendor's keys.
    fn has_own_server(&self) -> bool {
        let has_base = self.settings.is_some_and(|it| it.values().contains_key(BASE_URL));
        has_base && matches!(self.section, SettingsSection::Provider(_))
    }

    /// Returns true if a workspace sets the plugin of this name. The user's stored keys for the
    /// name are then not meant for it.
    pub(super) fn is_workspaces_plugin(&self) -> bool {
        matches!(self.section, SettingsSection::Provider(_))
            && self.workspace_setting(PLUGIN).is_some()
    }

    fn keys_in(&self, name: &str, schemes: &SecretSchemes) -> Vec<ConfiguredKey> {
        let key = |(text, place, whose)| ConfiguredKey {
            secret: KeySource::Here(KeySecret(text)),
            scheme: schemes.for_owner(whose),
            place,
            whose,
        };
        self.variable_values(name).into_iter().map(key).collect()
    }

    /// Returns the token minted from the file that a variable names, or from other credentials. It
    /// counts as the user's, regardless of who names the file, so it never goes to a workspace's
    /// server.
    pub(super) fn minted_key(&self, variable: &str, scope: &str) -> Option<ConfiguredKey> {
        if self.has_own_server() {
            return None;
        }
        let named =
            self.variable_values(variable).into_iter().next().map(|(text, place, _)| {
                CredentialsFile { path: self.path_of(variable, &text), place }
            });
        let of_process = |name: &str| Some(self.variables.get(name)?.to_str()?.to_owned());
        let minter =
            TokenMinter::new(GoogleCredentialSources::from_variables(named, scope, of_process));
        let place = minter.used_file().unwrap_or_else(|| "Google's credentials".to_owned());
        let secret = KeySource::Minted { minter: Box::new(minter), last: Mutex::default() };
        Some(ConfiguredKey {
            secret,
            scheme: SecretScheme::Bearer,
            place,
            whose: KeyConfigurer::Persons,
        })
    }

    /// Returns the path in a variable. A path from a variables file is relative to that file, and
    /// `~/` is the user's home.
    fn path_of(&self, variable: &str, text: &str) -> PathBuf {
        let home = self.variables.get("HOME").map(Path::new);
        if let (Some(rest), Some(home)) = (text.strip_prefix("~/"), home) {
            return home.join(rest);
        }
        let is_of_process = self.variables.get(variable).is_some_and(|value| !value.is_empty());
        let file = self.config.env_file_variable(variable).filter(|_| !is_of_process);
        match file.map(|found| found.origin) {
            Some(ValueOrigin::EnvFile { path, .. }) => path.with_file_name(text),
            _ => PathBuf::from(text),
        }
    }

    /// Returns the keys that the configuration refers to: in a variable, or printed by a command.
    /// Also returns a named variable that holds no key.
    pub(super) fn named_keys(
        &self,
        schemes: &SecretSchemes,
    ) -> Result<(Vec<ConfiguredKey>, Option<MissingKeyVariable>), Error> {
        let (mut keys, mut missing) = (Vec::new(), None);
        if let Some((name, origin)) = self.user_setting_text(API_KEY_ENV)? {
            keys = self.keys_in(&name, schemes);
            missing =
                keys.is_empty().then(|| MissingKeyVariable { name, place: origin.to_string() });
        }
        if let Some((line, origin)) = self.user_setting_text(API_KEY_COMMAND)? {
            let secret = KeySource::Printed { line, secret: OnceCell::new() };
            let place = format!("`{API_KEY_COMMAND}` ({origin})");
            let scheme = schemes.for_owner(KeyConfigurer::Persons);
            keys.push(ConfiguredKey { secret, scheme, place, whose: KeyConfigurer::Persons });
        }
        Ok((keys, missing))
    }

    /// Returns the headers to send with a credential.
    pub(super) fn headers(&self) -> Result<Vec<(HeaderName, HeaderValue)>, Error> {
        self.refuse_workspace_setting(HEADERS)?;
        let Some((value, origin)) = self.user_setting(HEADERS) else { return Ok(Vec::new()) };
        let wrong = || {
            let wants = "names of headers with their texts, none of the connection's own";
            self.invalid_setting_error(HEADERS, wants, origin)
        };
        let header = |(name, value): (&String, &Value)| {
            let value = value.as_str().and_then(|text| HeaderValue::from_str(text).ok());
            let name = Some(name).filter(|name| is_header(name));
            let name = name.and_then(|name| HeaderName::from_bytes(name.as_bytes()).ok());
            let (name, mut value) = name.zip(value).ok_or_else(wrong)?;
            value.set_sensitive(true);
            Ok((name, value))
        };
        value.as_object().ok_or_else(wrong)?.iter().map(header).collect()
    }

    /// Returns a text that only the user's own file may set.
    fn user_setting_text(&self, key: &str) -> Result<Option<(String, &ValueOrigin)>, Error> {
        self.refuse_workspace_setting(key)?;
        match self.user_setting(key) {
            None => Ok(None),
            Some((Value::String(text), origin)) if !text.trim().is_empty() => {
                Ok(Some((text.trim().to_owned(), origin)))
            }
            Some((_, origin)) => Err(self.invalid_setting_error(key, "a text", origin)),
        }
    }

    fn refuse_workspace_setting(&self, key: &str) -> Result<(), Error> {
        let Some((_, origin)) = self.workspace_setting(key) else { return Ok(()) };
        let text = format!("`{key}` of `{}` cannot be set by a workspace ({origin})", self.section);
        Err(Error::new(ErrorKind::Configuration, text).with_hint("set it in your own config.toml"))
    }

    pub(super) fn keys_in_files(
        &self,
        schemes: &SecretSchemes,
    ) -> Result<Vec<ConfiguredKey>, Error> {
        let workspaces =
            self.workspace_setting(API_KEY).map(|found| (found, KeyConfigurer::Workspaces));
        let own = self.user_setting(API_KEY).map(|found| (found, KeyConfigurer::Persons));
        let mut keys = Vec::new();
        for ((value, origin), whose) in workspaces.into_iter().chain(own) {
            let Value::String(text) = value else {
                return Err(self.invalid_setting_error(API_KEY, "a text", origin));
            };
            if !text.trim().is_empty() {
                let secret = KeySource::Here(KeySecret(text.trim().to_owned()));
                let (scheme, place) = (schemes.for_owner(whose), origin.to_string());
                keys.push(ConfiguredKey { secret, scheme, place, whose });
            }
        }
        Ok(keys)
    }

    /// Returns the key that the user gave to `login`.
    pub(super) fn stored_key(
        &self,
        schemes: &SecretSchemes,
    ) -> Result<Option<ConfiguredKey>, Error> {
        let Some((keys, provider)) = self.stored else { return Ok(None) };
        let place = format!("`jaato provider login {provider}`");
        let secret = match keys.find(provider)? {
            None => return Ok(None),
            Some(FoundKey::Here(text)) => KeySource::Here(KeySecret(text)),
            Some(FoundKey::Printed(line)) => KeySource::Printed { line, secret: OnceCell::new() },
        };
        let (scheme, whose) = (schemes.for_owner(KeyConfigurer::Persons), KeyConfigurer::Persons);
        Ok(Some(ConfiguredKey { secret, scheme, place, whose }))
    }

    pub(super) fn is_plain_http_allowed(&self) -> Result<bool, Error> {
        self.refuse_workspace_setting(PLAIN_HTTP)?;
        match self.user_setting(PLAIN_HTTP) {
            None => Ok(false),
            Some((Value::Bool(flag), _)) => Ok(*flag),
            Some((_, origin)) => {
                Err(self.invalid_setting_error(PLAIN_HTTP, "true or false", origin))
            }
        }
    }

    fn user_setting(&self, key: &str) -> Option<(&Value, &ValueOrigin)> {
        self.settings?.user_value(key)
    }

    /// Returns a value that the workspace's file sets.
    fn workspace_setting(&self, key: &str) -> Option<(&Value, &ValueOrigin)> {
        let settings = self.settings?;
        let origin = settings.origin(&format!("/{key}"))?;
        let value = settings.values().get(key)?;
        (origin.layer() == ConfigLayer::Workspace).then_some((value, origin))
    }

    fn invalid_setting_error(&self, key: &str, wants: &str, origin: &ValueOrigin) -> Error {
        let text = format!("`{key}` of `{}` wants {wants} ({origin})", self.section);
        Error::new(ErrorKind::Configuration, text)
    }

    fn parse_base_url(&self, text: &str, place: &str) -> Result<ProviderBaseUrl, Error> {
        let is_http = |url: &Url| matches!(url.scheme(), "http" | "https");
        match Url::parse(text).ok().filter(is_http) {
            Some(url) => {
                Ok(ProviderBaseUrl { text: text.to_owned(), url, place: place.to_owned() })
            }
            None => {
                let shown = MaskedUrl::from_unreadable(text);
                let text = format!("`{shown}` is not a base url ({place})");
                Err(Error::new(ErrorKind::Configuration, text)
                    .with_hint("a base url looks like `http://localhost:11434/v1`"))
            }
        }
    }
}

/// How secrets are added, by owner.
pub(super) struct SecretSchemes {
    persons: SecretScheme,
    workspaces: SecretScheme,
}

impl SecretSchemes {
    /// Uses the same scheme for both.
    pub(super) fn same_for_all(scheme: SecretScheme) -> Self {
        Self { persons: scheme.clone(), workspaces: scheme }
    }

    fn for_owner(&self, whose: KeyConfigurer) -> SecretScheme {
        match whose {
            KeyConfigurer::Persons => self.persons.clone(),
            KeyConfigurer::Workspaces => self.workspaces.clone(),
        }
    }
}

/// Returns true if a secret may be sent in a header with this name.
fn is_header(name: &str) -> bool {
    HeaderName::from_bytes(name.as_bytes()).is_ok_and(|name| !HOST_HEADERS.contains(&name.as_str()))
}

/// Parses a declaration: scheme, vendor, and the header for the project to bill.
pub(super) fn parse_credential_spec(
    plugin: &PluginName,
    spec: &CredentialSpec,
) -> Result<(SecretScheme, Option<Url>, Option<HeaderName>), Error> {
    let wrong = |what: &str| {
        let text = format!("plugin `{plugin}` declares a credential with the {what}");
        Error::new(ErrorKind::PluginMisbehaved, text)
    };
    let scheme = match spec.scheme.split_once(':') {
        None if spec.scheme == BEARER => SecretScheme::Bearer,
        Some(("header", name)) if !name.is_empty() => SecretScheme::Header(name.to_owned()),
        Some(("query", name)) if !name.is_empty() => SecretScheme::Query(name.to_owned()),
        None | Some(_) => return Err(wrong(&format!("unknown scheme `{}`", spec.scheme))),
    };
    let header = spec.mint.as_ref().map(|recipe| recipe.project_header.as_str());
    let header = header.filter(|name| !name.is_empty());
    let project_header = match header {
        Some(name) if is_header(name) => HeaderName::from_bytes(name.as_bytes()).ok(),
        Some(name) => return Err(wrong(&format!("header `{name}`, which is not a valid header"))),
        None => None,
    };
    if spec.origin.is_empty() {
        return Ok((scheme, None, project_header));
    }
    match Url::parse(&spec.origin) {
        Ok(url) => Ok((scheme, Some(url), project_header)),
        Err(_) => Err(wrong(&format!("origin `{}`, which is not a url", spec.origin))),
    }
}
