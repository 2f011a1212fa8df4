//! The plugin's settings.

use jaato_plugin_sdk::schemars::{self, JsonSchema};
use jaato_plugin_sdk::serde::{self, Deserialize};

use crate::dialect::OpenAiDialect;

/// The default base URL.
pub const VENDOR: &str = "https://api.openai.com/v1";

/// `[plugins.provider-openai]`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(crate = "serde", default, deny_unknown_fields)]
#[schemars(crate = "schemars")]
pub struct Config {
    /// The server's base URL, including `/v1`. `OPENAI_BASE_URL` overrides it.
    #[schemars(extend("x-jaato-workspace" = true))]
    pub base_url: String,
    /// The protocol: Responses or chat completions. `auto` means Responses at OpenAI and Azure, and
    /// chat completions elsewhere.
    #[schemars(extend("x-jaato-workspace" = true))]
    pub api: OpenAiApi,
    /// The server's dialect. `auto` derives it from the host of the base URL.
    #[schemars(extend("x-jaato-workspace" = true))]
    pub dialect: OpenAiDialect,
}

impl Default for Config {
    fn default() -> Self {
        Self { base_url: VENDOR.to_owned(), api: OpenAiApi::Auto, dialect: OpenAiDialect::Auto }
    }
}

/// The API of a server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(crate = "serde", rename_all = "lowercase")]
#[schemars(crate = "schemars")]
pub enum OpenAiApi {
    /// The protocol that fits the server.
    #[default]
    Auto,
    /// OpenAI's newer protocol.
    Responses,
    /// The protocol that most servers support.
    Chat,
}
