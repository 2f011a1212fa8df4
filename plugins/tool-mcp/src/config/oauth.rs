//! The login settings of an entry: `oauth` next to its `url`.

use std::fmt;

use jaato_plugin_sdk::serde::Deserialize;
use jaato_plugin_sdk::serde_json::{self, Value};

/// The login settings of a server.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct OAuthSettings {
    /// The ID of a preregistered client. Without it, jaato registers itself.
    pub client_id: Option<String>,
    /// The client's secret.
    pub client_secret: Option<String>,
    /// The client's private key as PEM, if it authenticates with a signature.
    pub private_key: Option<String>,
    /// The URL of a document that describes the client. The URL is then the client ID.
    pub client_metadata_url: Option<String>,
    /// The scopes to request instead of those that the server names.
    pub scopes: Vec<String>,
    /// The port to which the browser returns. `None` means any free port.
    pub callback_port: Option<u16>,
    /// The kind of login.
    pub grant: GrantKind,
}

/// The kind of login.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(crate = "jaato_plugin_sdk::serde", rename_all = "snake_case")]
pub enum GrantKind {
    /// A user logs in with a browser.
    #[default]
    AuthorizationCode,
    /// The client logs in with its own credentials.
    ClientCredentials,
}

/// The settings as written in a file. Unknown keys are ignored, because other programs may use
/// them.
#[derive(Default, Deserialize)]
#[serde(crate = "jaato_plugin_sdk::serde", default, rename_all = "camelCase")]
struct RawOAuthSettings {
    client_id: Option<String>,
    client_secret: Option<String>,
    private_key: Option<String>,
    client_metadata_url: Option<String>,
    scopes: Option<RawOAuthScopes>,
    callback_port: Option<u16>,
    grant: GrantKind,
}

#[derive(Deserialize)]
#[serde(crate = "jaato_plugin_sdk::serde", untagged)]
enum RawOAuthScopes {
    List(Vec<String>),
    Line(String),
}

/// Hides the secrets.
impl fmt::Debug for OAuthSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("OAuthSettings");
        shown.field("client_id", &self.client_id).field("scopes", &self.scopes);
        shown.field("callback_port", &self.callback_port).field("grant", &self.grant);
        shown.finish_non_exhaustive()
    }
}

impl OAuthSettings {
    /// Reads the settings. `text` expands variables.
    ///
    /// # Errors
    /// If the settings cannot be used. The error is text for the user.
    pub fn parse_settings(
        value: &Value,
        mut text: impl FnMut(&str) -> String,
    ) -> Result<Self, String> {
        let written: RawOAuthSettings = match value {
            Value::Null => RawOAuthSettings::default(),
            value => {
                serde_json::from_value(value.clone()).map_err(|it| format!("`oauth`: {it}"))?
            }
        };
        let mut given = |written: Option<String>| {
            written.map(|written| text(&written)).filter(|it| !it.trim().is_empty())
        };
        let scopes = match written.scopes {
            Some(RawOAuthScopes::List(list)) => list,
            Some(RawOAuthScopes::Line(line)) => {
                line.split_whitespace().map(str::to_owned).collect()
            }
            None => Vec::new(),
        };
        let settings = Self {
            client_id: given(written.client_id),
            client_secret: given(written.client_secret),
            private_key: given(written.private_key),
            client_metadata_url: given(written.client_metadata_url),
            scopes,
            callback_port: written.callback_port,
            grant: written.grant,
        };
        settings.check_consistency()?;
        Ok(settings)
    }

    fn check_consistency(&self) -> Result<(), String> {
        let has_secret = self.client_secret.is_some() || self.private_key.is_some();
        let by_itself = self.grant == GrantKind::ClientCredentials;
        let is_scope = |scope: &String| {
            !scope.is_empty()
                && scope.bytes().all(|it| it.is_ascii_graphic() && it != b'"' && it != b'\\')
        };
        let is_document = |url: &String| url.starts_with("https://");
        match () {
            () if has_secret && self.client_id.is_none() => {
                Err("`oauth` has a secret or a key but no `clientId`".to_owned())
            }
            () if by_itself && !has_secret => {
                Err("`oauth`: `client_credentials` needs a `clientSecret` or a `privateKey`"
                    .to_owned())
            }
            () if self.private_key.is_some() && !by_itself => {
                Err("`oauth`: `privateKey` requires the `grant` `client_credentials`".to_owned())
            }
            () if !self.scopes.iter().all(is_scope) => {
                Err("`oauth`: `scopes` contains an invalid scope".to_owned())
            }
            () if !self.client_metadata_url.iter().all(is_document) => {
                Err("`oauth`: `clientMetadataUrl` must begin with `https://`".to_owned())
            }
            () => Ok(()),
        }
    }

    /// Lists the texts that must not be shown.
    pub fn secrets(&self) -> Vec<String> {
        self.client_secret.iter().chain(&self.private_key).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use jaato_plugin_sdk::serde_json::json;

    use super::*;

    fn parse_test_settings(value: Value) -> Result<OAuthSettings, String> {
        OAuthSettings::parse_settings(&value, |text| text.replace("${KEY}", "moonlight"))
    }

    #[test]
    fn oauth_settings_are_read_and_secrets_are_not_shown() {
        let settings = parse_test_settings(json!({
            "clientId": "a", "clientSecret": "${KEY}", "scopes": "read write", "callbackPort": 3118,
            "somebodyElses": 1,
        }))
        .unwrap();
        assert_eq!(settings.client_secret.as_deref(), Some("moonlight"));
        assert_eq!(settings.scopes, ["read", "write"]);
        assert!(!format!("{settings:?}").contains("moonlight"));
        assert_eq!(parse_test_settings(Value::Null).unwrap(), OAuthSettings::default());
        assert_eq!(parse_test_settings(json!({ "scopes": ["a"] })).unwrap().scopes, ["a"]);
    }

    #[test]
    fn inconsistent_oauth_settings_are_refused_with_the_reason() {
        for (value, why) in [
            (json!({ "clientSecret": "x" }), "no `clientId`"),
            (json!({ "clientId": "a", "grant": "client_credentials" }), "needs a `clientSecret`"),
            (json!({ "clientId": "a", "privateKey": "x" }), "requires the `grant`"),
            (json!({ "scopes": ["a b"] }), "invalid scope"),
            (json!({ "clientMetadataUrl": "http://x" }), "must begin with `https://`"),
            (json!({ "grant": "password" }), "`oauth`: unknown variant"),
            (json!({ "callbackPort": 99999 }), "`oauth`: invalid value"),
        ] {
            let error = parse_test_settings(value).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }
}
