//! The plugin's settings, and which credential a server accepts.

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::schemars::{self, JsonSchema};
use jaato_plugin_sdk::serde::{self, Deserialize};
use jaato_plugin_sdk::serde_json;
use jaato_plugin_sdk::types::CredentialSpec;
use parking_lot::Mutex;

use crate::endpoint::VENDOR;

/// The variable that holds an API key.
pub(crate) const KEY: &str = "ANTHROPIC_API_KEY";

/// The variable that holds a token of the vendor or a gateway.
pub(crate) const TOKEN: &str = "ANTHROPIC_AUTH_TOKEN";

/// The variable that names another server.
const BASE_URL: &str = "ANTHROPIC_BASE_URL";

/// `[plugins.provider-anthropic]`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(crate = "serde", default, deny_unknown_fields)]
#[schemars(crate = "schemars")]
pub struct Config {
    /// The server's base URL, without `/v1`. `ANTHROPIC_BASE_URL` overrides it.
    #[schemars(extend("x-jaato-workspace" = true))]
    pub base_url: String,
}

impl Default for Config {
    fn default() -> Self {
        Self { base_url: VENDOR.to_owned() }
    }
}

/// How a user authenticates with a server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum AnthropicCredential {
    /// An API key in its own header.
    #[default]
    Key,
    /// A bearer token.
    Token,
}

impl AnthropicCredential {
    /// Returns the variable that holds this credential.
    pub(crate) fn variable_name(self) -> &'static str {
        match self {
            Self::Key => KEY,
            Self::Token => TOKEN,
        }
    }

    pub(crate) fn other_credential(self) -> Self {
        match self {
            Self::Key => Self::Token,
            Self::Token => Self::Key,
        }
    }
}

/// The plugin's state. It contains nothing about conversations, because providers are stateless.
#[derive(Default)]
pub struct AnthropicState {
    /// The base URL of the last request whose credential existed, and that credential.
    credential: Mutex<(String, AnthropicCredential)>,
}

impl AnthropicState {
    /// Returns the credential to try first for a server.
    pub(crate) fn credential_for(&self, base: &str) -> AnthropicCredential {
        let known = self.credential.lock();
        if known.0 == base { known.1 } else { AnthropicCredential::default() }
    }

    pub(crate) fn remember_credential(&self, base: &str, credential: AnthropicCredential) {
        *self.credential.lock() = (base.to_owned(), credential);
    }
}

impl State for AnthropicState {
    async fn create(_home: &Home, _saved: Option<Value>) -> Result<Self> {
        Ok(Self::default())
    }

    fn describe(description: &mut Description) {
        let credential = |variable: &str, scheme: &str| CredentialSpec {
            variable: variable.to_owned(),
            scheme: scheme.to_owned(),
            origin: VENDOR.to_owned(),
            base_url_variable: BASE_URL.to_owned(),
            ..CredentialSpec::default()
        };
        description.config_schema = serde_json::to_value(schemars::schema_for!(Config)).ok();
        description.credentials =
            vec![credential(KEY, "header:x-api-key"), credential(TOKEN, "bearer")];
    }
}
