//! The plugin's settings, and which of a person's keys a server takes.

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::schemars::{self, JsonSchema};
use jaato_plugin_sdk::serde::{self, Deserialize};
use jaato_plugin_sdk::serde_json;
use jaato_plugin_sdk::types::CredentialSpec;
use parking_lot::Mutex;

use crate::endpoint::VENDOR;

/// The variable that holds a key.
pub(crate) const KEY: &str = "ANTHROPIC_API_KEY";

/// The variable that holds a token, of the vendor's or of a gateway's.
pub(crate) const TOKEN: &str = "ANTHROPIC_AUTH_TOKEN";

/// The variable that names another server.
const BASE_URL: &str = "ANTHROPIC_BASE_URL";

/// `[plugins.provider-anthropic]`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(crate = "serde", default, deny_unknown_fields)]
#[schemars(crate = "schemars")]
pub struct Config {
    /// Where the server is, without `/v1`. `ANTHROPIC_BASE_URL` wins.
    #[schemars(extend("x-jaato-workspace" = true))]
    pub base_url: String,
}

impl Default for Config {
    fn default() -> Self {
        Self { base_url: VENDOR.to_owned() }
    }
}

/// How a person shows a server who they are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Credential {
    /// By a key, in a header of its own.
    #[default]
    Key,
    /// By a token, as a bearer.
    Token,
}

impl Credential {
    /// The variable that holds it.
    pub(crate) fn variable(self) -> &'static str {
        match self {
            Self::Key => KEY,
            Self::Token => TOKEN,
        }
    }

    pub(crate) fn other(self) -> Self {
        match self {
            Self::Key => Self::Token,
            Self::Token => Self::Key,
        }
    }
}

/// The plugin's state. Nothing of a conversation, because providers are stateless.
#[derive(Default)]
pub struct Anthropic {
    /// What went with the last request that was not refused for want of it, and where.
    credential: Mutex<(String, Credential)>,
}

impl Anthropic {
    /// Tells what to show a server first.
    pub(crate) fn credential_for(&self, base: &str) -> Credential {
        let known = self.credential.lock();
        if known.0 == base { known.1 } else { Credential::default() }
    }

    pub(crate) fn remember(&self, base: &str, credential: Credential) {
        *self.credential.lock() = (base.to_owned(), credential);
    }
}

impl State for Anthropic {
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
