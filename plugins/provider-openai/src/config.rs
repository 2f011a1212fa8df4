//! The plugin's settings.

use jaato_plugin_sdk::schemars::{self, JsonSchema};
use jaato_plugin_sdk::serde::{self, Deserialize};

use crate::dialect::Dialect;

/// The default base URL.
pub const VENDOR: &str = "https://api.openai.com/v1";

/// `[plugins.provider-openai]`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(crate = "serde", default, deny_unknown_fields)]
#[schemars(crate = "schemars")]
pub struct Config {
    /// Where the server is, up to and with `/v1`. `OPENAI_BASE_URL` wins.
    #[schemars(extend("x-jaato-workspace" = true))]
    pub base_url: String,
    /// What the server is asked by: Responses, or chat completions. By itself: Responses at OpenAI
    /// and Azure, chat completions elsewhere.
    #[schemars(extend("x-jaato-workspace" = true))]
    pub api: Api,
    /// Whose words the server understands. By itself: told by the host of the base URL.
    #[schemars(extend("x-jaato-workspace" = true))]
    pub dialect: Dialect,
}

impl Default for Config {
    fn default() -> Self {
        Self { base_url: VENDOR.to_owned(), api: Api::Auto, dialect: Dialect::Auto }
    }
}

/// What a server is asked by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(crate = "serde", rename_all = "lowercase")]
#[schemars(crate = "schemars")]
pub enum Api {
    /// What fits the server.
    #[default]
    Auto,
    /// OpenAI's newer protocol.
    Responses,
    /// The one that most servers speak.
    Chat,
}
