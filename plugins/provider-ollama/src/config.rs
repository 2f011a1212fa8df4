//! The plugin's settings.

use jaato_plugin_sdk::schemars::{self, JsonSchema};
use jaato_plugin_sdk::serde::{self, Deserialize};

/// `[plugins.provider-ollama]`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(crate = "serde", default, deny_unknown_fields)]
#[schemars(crate = "schemars")]
pub struct Config {
    /// URL of the server, such as `http://gpu-box:11434`. If it is empty, `host` applies.
    #[schemars(extend("x-jaato-workspace" = true))]
    pub base_url: String,
    /// Address of the server in Ollama's own form; scheme and port are optional. The default is
    /// this machine. `OLLAMA_HOST` overrides it.
    #[schemars(extend("x-jaato-workspace" = true, "x-jaato-variables" = ["OLLAMA_HOST"]))]
    pub host: String,
    /// Size of the context in tokens, for all models. The server reserves memory for all tokens.
    /// If not set, each model gets its own window, at most 32,768 tokens.
    #[schemars(extend("x-jaato-workspace" = true), range(min = 1))]
    pub context_tokens: Option<u32>,
    /// How long the server keeps a model loaded after a request: `10m`, seconds, or `-1` for no
    /// limit. If it is empty, the server decides.
    #[schemars(extend("x-jaato-workspace" = true))]
    pub keep_alive: String,
}
