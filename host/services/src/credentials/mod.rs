//! Decides which of the user's secrets goes where.
//!
//! Pure: turns configuration and variables into a decision for each URL. A secret is bound to the
//! origin of the base URL in the user's *own* configuration (variables of the process, a named
//! variables file, the user's `config.toml`), or to the vendor's origin if no base URL is set. A
//! workspace may set another base URL and a key for it, but that URL gets no key except the
//! workspace's own.
//!
//! Invariant: a secret leaves this module only inside a [`CredentialGrant`], and no `Debug` output
//! or error shows it.

mod key;
mod origins;
mod read;
#[cfg(test)]
mod tests;

use std::future::Future;

use jaato_google_auth::TokenMinter;
use jaato_http::header::{HeaderName, HeaderValue};
use jaato_http::{Client, MaskedUrl, Url, is_loopback};
use jaato_types::{CredentialSpec, Error, ErrorKind, PluginName};

use crate::scrub::SecretScrubber;
use crate::section::SettingsSection;
use key::{ConfiguredKey, KeyConfigurer, KeySource};
pub use key::{KeySecret, SecretScheme};
use origins::OriginPattern;
pub use read::CredentialSources;
use read::{SecretSchemes, parse_credential_spec};

/// Headers that belong to the connection, which the host controls.
pub(crate) const HOST_HEADERS: [&str; 8] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "proxy-authorization",
    "te",
    "transfer-encoding",
    "upgrade",
];

/// The scheme for a secret after the word `Bearer`.
const BEARER: &str = "bearer";

/// Key of `[plugins.NAME]` that holds a secret.
const API_KEY: &str = "api_key";
/// Key of `[plugins.NAME]` that allows sending a secret over plain http.
const PLAIN_HTTP: &str = "plain_http";
/// Key of `[plugins.NAME]` that names the header for a secret, instead of the plugin's choice.
const KEY_HEADER: &str = "key_header";
/// Key of `[plugins.NAME]` that names the server. The plugin reads it too.
pub const BASE_URL: &str = "base_url";

/// Key of `[plugins.NAME]` that names the variable with the secret.
const API_KEY_ENV: &str = "api_key_env";
/// Key of `[plugins.NAME]` with a shell command that prints the secret.
const API_KEY_COMMAND: &str = "api_key_command";
/// Key of `[plugins.NAME]` with headers for requests that use a credential.
const HEADERS: &str = "headers";

/// Keys that belong to the host if the plugin declares credentials. The plugin does not see them.
pub const HOST_KEYS: [&str; 6] =
    [API_KEY, PLAIN_HTTP, KEY_HEADER, API_KEY_ENV, API_KEY_COMMAND, HEADERS];

/// The keys among these that a workspace may never set, because they access the user's secrets.
pub const OWN_KEYS: [&str; 3] = [API_KEY_ENV, API_KEY_COMMAND, HEADERS];

/// The credential for one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CredentialGrant {
    /// How to add it.
    pub scheme: SecretScheme,
    /// The secret.
    pub secret: KeySecret,
    /// The header that names the project to bill, if the credential names one.
    pub project: Option<(HeaderName, String)>,
    /// Whether it was minted, so that another one can be minted.
    pub is_minted: bool,
}

/// The location of a plugin's server, and the sources of its keys.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CredentialAccess {
    /// The effective base URL, else the vendor's origin, or `None` for a plugin without a server.
    pub server: Option<String>,
    /// Its keys.
    pub keys: Vec<KeyInfo>,
}

/// The source of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyInfo {
    /// Where the host looked for it.
    pub looked_for: String,
    /// Where the host found it.
    pub found: Option<String>,
}

/// The configured credentials of one plugin.
#[derive(Debug, Default)]
pub struct PluginCredentials {
    plugin: String,
    /// The provider's name for `login`, if it supports that.
    provider: Option<String>,
    /// The section that configures them, for errors.
    section: String,
    /// Whether the section is a name under `[providers]`, to which variables of the plugin do not
    /// apply.
    is_named: bool,
    all: Vec<ConfiguredCredential>,
    /// Headers to send with them, only to the user's own origin.
    headers: Vec<(HeaderName, HeaderValue)>,
    own_base: Option<ProviderBaseUrl>,
    /// The effective base URL, if it comes from a workspace.
    workspace_base: Option<ProviderBaseUrl>,
    is_plain_http_allowed: bool,
    /// Whether the configuration names a server other than the vendor's.
    is_elsewhere: bool,
    /// Whether the plugin gets no key, even if one is configured.
    is_withheld: bool,
}

#[derive(Debug)]
struct ConfiguredCredential {
    spec: CredentialSpec,
    /// The variable that holds it. A server with another name has its own variable. Empty if there
    /// is none.
    variable: String,
    vendor: Option<Url>,
    /// The header that tells the vendor which project to bill.
    project_header: Option<HeaderName>,
    /// The vendor's other servers.
    others: Vec<OriginPattern>,
    /// In order of precedence.
    keys: Vec<ConfiguredKey>,
    missing: Option<MissingKeyVariable>,
}

/// A configured variable that should hold a key but is not set.
#[derive(Debug)]
struct MissingKeyVariable {
    name: String,
    /// The place that names it.
    place: String,
}

impl ConfiguredCredential {
    /// Returns true if a URL belongs to the vendor's own servers, which require a credential.
    fn is_vendor_server(&self, url: &Url) -> bool {
        self.vendor.as_ref().is_some_and(|it| it.origin() == url.origin())
            || self.others.iter().any(|it| it.matches(url))
    }

    /// Returns the source of the first key. For a minted key, that is the source of its
    /// credentials.
    fn first_key_source(&self) -> Option<String> {
        match self.minter() {
            Some(minter) => minter.used_file(),
            None => self.keys.first().map(|key| key.place.clone()),
        }
    }

    fn minter(&self) -> Option<&TokenMinter> {
        match &self.keys.first()?.secret {
            KeySource::Minted { minter, .. } => Some(minter),
            KeySource::Here(_) | KeySource::Printed { .. } => None,
        }
    }

    /// Returns the credential's name for the user.
    fn name(&self) -> String {
        match self.variable.as_str() {
            "" => "key".to_owned(),
            variable => format!("credential `{variable}`"),
        }
    }
}

#[derive(Debug)]
struct ProviderBaseUrl {
    text: String,
    url: Url,
    place: String,
}

impl PluginCredentials {
    /// Reads a plugin's configured credentials.
    ///
    /// # Errors
    /// `configuration` with the place of the invalid value, or `plugin_misbehaved` for an invalid
    /// declaration.
    pub fn from_sources(
        plugin: &PluginName,
        specs: &[CredentialSpec],
        found: &CredentialSources<'_>,
    ) -> Result<Self, Error> {
        if specs.is_empty() {
            return Ok(Self::default());
        }
        let (own_base, workspace_base) = found.base_urls(&specs[0].base_url_variable)?;
        let preset_base = found.preset_base()?;
        let is_elsewhere = own_base.is_some() || workspace_base.is_some();
        let all = specs.iter().enumerate().map(|(index, spec)| {
            let (scheme, mut vendor, project_header) = parse_credential_spec(plugin, spec)?;
            let mut variable = spec.variable.clone();
            if let Some(preset) = found.preset.filter(|_| index == 0) {
                variable.clone_from(&preset.variable);
                // Without a variable, that server needs no key.
                vendor = preset_base.as_ref().map(|base| base.url.clone());
                vendor = vendor.filter(|_| !variable.is_empty());
            }
            // The configuration has one key per plugin, which is for the first declared credential.
            let schemes = if index == 0 {
                found.schemes(scheme)?
            } else {
                SecretSchemes::same_for_all(scheme)
            };
            let mut keys = match &spec.mint {
                Some(recipe) => found.minted_key(&variable, &recipe.scope).into_iter().collect(),
                None => found.keys_in_variables(&variable, &schemes),
            };
            let mut missing = None;
            if index == 0 && found.is_workspaces_plugin() {
                let own = found.keys_in_files(&schemes)?.into_iter();
                keys.extend(own.filter(|key| key.whose == KeyConfigurer::Workspaces));
            } else if index == 0 {
                let (named, none) = found.named_keys(&schemes)?;
                missing = none;
                keys.extend(named);
                keys.extend(found.keys_in_files(&schemes)?);
                keys.extend(found.stored_key(&schemes)?);
            }
            let others =
                spec.origins.iter().map(|text| OriginPattern::parse_declaration(plugin, text));
            let others = others.collect::<Result<_, Error>>()?;
            let spec = spec.clone();
            Ok(ConfiguredCredential {
                spec,
                variable,
                vendor,
                project_header,
                others,
                keys,
                missing,
            })
        });
        Ok(Self {
            plugin: plugin.to_string(),
            provider: found.stored.map(|(_, provider)| provider.to_owned()),
            section: found.section.to_string(),
            is_named: matches!(found.section, SettingsSection::Provider(_)),
            headers: found.headers()?,
            all: all.collect::<Result<_, Error>>()?,
            own_base: own_base.or(preset_base),
            workspace_base,
            is_plain_http_allowed: found.is_plain_http_allowed()?,
            is_elsewhere,
            is_withheld: false,
        })
    }

    /// Withholds all keys, because the plugin is not trusted.
    pub fn withhold_keys(&mut self) {
        self.is_withheld = true;
    }

    /// Returns true if the server is the vendor's own, or the one that the plugin knows by name.
    pub fn is_at_vendor(&self) -> bool {
        !self.is_elsewhere
    }

    /// Returns the effective base URL, if one is configured.
    pub fn base_url(&self) -> Option<&str> {
        self.workspace_base.as_ref().or(self.own_base.as_ref()).map(|base| base.text.as_str())
    }

    /// Returns the location of the server and the sources of keys.
    pub fn list_access(&self) -> CredentialAccess {
        // The vendor of the credential that is set, because each of its services may have its own.
        let first = self.all.iter().find(|it| it.first_key_source().is_some()).or(self.all.first());
        let vendor = first.and_then(|credential| credential.vendor.as_ref()).map(format_origin);
        let server = self.base_url().map(mask_key).or(vendor);
        let keys = self.all.iter().enumerate().map(|(at, credential)| {
            let variable = &credential.variable;
            let looked_for = match (at, &credential.missing) {
                (0, Some(missing)) => format!("`{}` ({})", missing.name, missing.place),
                (0, None) if variable.is_empty() => format!("`{API_KEY}` under `{}`", self.section),
                (0, None) => format!("`{variable}`, and `{API_KEY}` under `{}`", self.section),
                _ => format!("`{variable}`"),
            };
            let looked_at =
                credential.minter().map(TokenMinter::searched_places).unwrap_or_default();
            let also = if looked_at.is_empty() { looked_at } else { format!(", {looked_at}") };
            KeyInfo {
                looked_for: format!("{looked_for}{also}"),
                found: credential.first_key_source(),
            }
        });
        CredentialAccess { server, keys: keys.collect() }
    }

    /// Returns true if the user has set a credential and the plugin may use it.
    ///
    /// # Errors
    /// `invalid_arguments` if the plugin declares no such credential.
    pub fn is_set(&self, variable: &str) -> Result<bool, Error> {
        let credential = self.declared_credential(variable)?;
        Ok(!credential.keys.is_empty() && !self.is_withheld)
    }

    fn declared_credential(&self, variable: &str) -> Result<&ConfiguredCredential, Error> {
        self.all.iter().find(|one| one.spec.variable == variable).ok_or_else(|| {
            let text = format!("the plugin's description declares no credential `{variable}`");
            Error::new(ErrorKind::InvalidArguments, text)
        })
    }

    /// Decides which credential to add to a request for this URL. Returns `None` if the key is
    /// missing and not needed.
    ///
    /// # Errors
    /// `not_found` if a required key is missing, `configuration` if a key exists but is not for
    /// this URL, `invalid_arguments` if the plugin declares no such credential.
    pub fn grant_secret(
        &self,
        variable: &str,
        url: &Url,
    ) -> Result<Option<CredentialGrant>, Error> {
        let credential = self.declared_credential(variable)?;
        if let Some(MissingKeyVariable { name, place }) =
            credential.missing.as_ref().filter(|_| credential.keys.is_empty())
        {
            let text = format!("`{name}`, which `{API_KEY_ENV}` names ({place}), is not set");
            return Err(Error::new(ErrorKind::NotFound, text)
                .with_hint("set it in the shell that starts jaato, or in an `--env-file`"));
        }
        if credential.keys.is_empty() {
            return if credential.is_vendor_server(url) {
                Err(self.missing_key_error(credential, url))
            } else {
                Ok(None)
            };
        }
        if self.is_withheld {
            let text = format!("plugin `{}` is not trusted, so it is given no key", self.plugin);
            return Err(Error::new(ErrorKind::Configuration, text)
                .with_hint("`jaato plugin list` prints the command that trusts it"));
        }
        if let Some(Err(error)) = credential.keys[0].secret.minted_token() {
            return if credential.is_vendor_server(url) { Err(error) } else { Ok(None) };
        }
        let Some(key) =
            credential.keys.iter().find(|key| self.is_key_allowed_at(credential, key, url))
        else {
            return Err(self.key_bound_elsewhere_error(credential, &credential.keys[0], url));
        };
        if url.scheme() != "https" && !is_loopback(url) && !self.is_plain_http_allowed {
            return Err(self.unencrypted_error(credential, key, url));
        }
        let Some(secret) = key.secret.available_secret() else {
            let text = "a key was asked for before its command was run";
            return Err(Error::new(ErrorKind::HostBug, text));
        };
        let minted = key.secret.minted_token().and_then(Result::ok);
        let is_minted = minted.is_some();
        let project = minted.and_then(|token| token.quota_project);
        let project = credential.project_header.clone().zip(project);
        Ok(Some(CredentialGrant { scheme: key.scheme.clone(), secret, project, is_minted }))
    }

    /// Prepares the key for this URL: runs the command that prints it, if that has not run yet, or
    /// mints a token. `run` receives the command and the place of its definition. `refused` is a
    /// key that the server rejected. If it was minted, a new one replaces it.
    ///
    /// # Errors
    /// If a command prints no key, or a token cannot be minted. The next request tries again.
    pub async fn prepare_key<F>(
        &self,
        variable: &str,
        url: &Url,
        client: &Client,
        refused: Option<&KeySecret>,
        run: impl Fn(String, String) -> F,
    ) -> Result<(), Error>
    where
        F: Future<Output = Result<String, Error>>,
    {
        // A plugin that gets no key must not cause a command to run.
        if self.is_withheld {
            return Ok(());
        }
        let Some(credential) = self.all.iter().find(|one| one.spec.variable == variable) else {
            return Ok(());
        };
        // Keys of lower precedence are not needed, and may be unavailable.
        let key = credential.keys.iter().find(|key| self.is_key_allowed_at(credential, key, url));
        match key.map(|key| (&key.secret, &key.place)) {
            None | Some((KeySource::Here(_), _)) => {}
            Some((KeySource::Printed { line, secret }, place)) => {
                let print = || async { run(line.clone(), place.clone()).await.map(KeySecret) };
                secret.get_or_try_init(print).await?;
            }
            Some((KeySource::Minted { minter, last }, _)) => {
                let minted = minter.token(client, refused.map(KeySecret::reveal)).await;
                // At another server, missing credentials may be intended.
                let is_none = |error: &Error| error.kind == ErrorKind::NotFound;
                match minted {
                    Err(error) if !is_none(&error) => return Err(error),
                    minted => *last.lock() = Some(minted),
                }
            }
        }
        Ok(())
    }

    /// Returns the headers to send with a credential to this URL.
    pub fn headers(&self, url: &Url) -> &[(HeaderName, HeaderValue)] {
        let own = self.all.first().and_then(|credential| self.user_server_origin(credential));
        let is_own = own.is_some_and(|own| own.origin() == url.origin());
        if is_own && !self.is_withheld { &self.headers } else { &[] }
    }

    /// Removes every key from a text, in any spelling. A server may repeat a key, and only the
    /// plugin knows which parts of an answer are error texts or names.
    pub fn without_secrets(&self, text: String) -> String {
        self.scrubbers().fold(text, |text, scrubber| scrubber.mask_secrets(&text))
    }

    /// Returns scrubbers for every key that is known so far.
    pub fn scrubbers(&self) -> impl Iterator<Item = SecretScrubber> {
        let keys = self.all.iter().flat_map(|credential| &credential.keys);
        let known = keys.filter_map(|key| key.secret.available_secret());
        known.filter_map(|secret| SecretScrubber::for_secret(secret.reveal()))
    }

    fn is_key_allowed_at(
        &self,
        credential: &ConfiguredCredential,
        key: &ConfiguredKey,
        url: &Url,
    ) -> bool {
        let is_of = |base: Option<&Url>| base.is_some_and(|base| base.origin() == url.origin());
        let workspaces = self.workspace_base.as_ref().map(|base| &base.url);
        let is_vendors =
            self.own_base.is_none() && credential.others.iter().any(|it| it.matches(url));
        is_of(self.user_server_origin(credential))
            || is_vendors
            || (key.whose == KeyConfigurer::Workspaces && is_of(workspaces))
    }

    fn user_server_origin<'a>(&'a self, credential: &'a ConfiguredCredential) -> Option<&'a Url> {
        self.own_base.as_ref().map(|base| &base.url).or(credential.vendor.as_ref())
    }

    fn missing_key_error(&self, credential: &ConfiguredCredential, url: &Url) -> Error {
        let ConfiguredCredential {
            spec: CredentialSpec { base_url_variable, .. }, variable, ..
        } = credential;
        let text = format!("there is no key for `{}`: `{variable}` is not set", format_origin(url));
        let mut hint = format!("set `{variable}`, or `{API_KEY}` under `{}`", self.section);
        if let Some(provider) = &self.provider {
            hint.push_str(&format!(", or run `jaato provider login {provider}`"));
        }
        if !base_url_variable.is_empty() && !self.is_named {
            hint.push_str(&format!("; for another server set `{base_url_variable}`"));
        }
        Error::new(ErrorKind::NotFound, text).with_hint(hint)
    }

    fn key_bound_elsewhere_error(
        &self,
        credential: &ConfiguredCredential,
        key: &ConfiguredKey,
        url: &Url,
    ) -> Error {
        let bound = self
            .user_server_origin(credential)
            .map_or_else(|| "no server".to_owned(), format_origin);
        let (name, other) = (credential.name(), format_origin(url));
        let text =
            format!("the {name} ({}) is for `{bound}` and is not sent to `{other}`", key.place);
        let error = Error::new(ErrorKind::Configuration, text);
        let Some(base) = self.workspace_base.as_ref().filter(|it| it.url.origin() == url.origin())
        else {
            return error.with_hint("a key goes only to the base url that you configure yourself");
        };
        let own = format!("`{BASE_URL}` under `{}` in your own config.toml", self.section);
        error.with_hint(format!(
            "that url comes from {}; if you want your key to go there, set {own}",
            base.place
        ))
    }

    fn unencrypted_error(
        &self,
        credential: &ConfiguredCredential,
        key: &ConfiguredKey,
        url: &Url,
    ) -> Error {
        let name = credential.name();
        let text = format!(
            "the {name} ({}) is not sent to `{}`, which is not encrypted",
            key.place,
            format_origin(url)
        );
        Error::new(ErrorKind::Configuration, text).with_hint(format!(
            "use https; or unset the key if the server needs none; or set `{PLAIN_HTTP} = true` \
             under `{}` in your own config.toml",
            self.section
        ))
    }
}

/// Returns a URL for display, without parts that may be secret.
fn mask_key(text: &str) -> String {
    Url::parse(text).map_or_else(|_| text.to_owned(), |url| MaskedUrl::new(&url).to_string())
}

/// Returns an origin for display.
fn format_origin(url: &Url) -> String {
    url.origin().ascii_serialization()
}
