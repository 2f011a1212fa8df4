//! `[plugins.tool-web-fetch]`.

use std::time::Duration;

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::{schemars, serde_json};

/// The settings.
#[tool_type]
#[serde(default)]
pub struct WebFetchSettings {
    /// Time for a whole page, in seconds.
    #[schemars(range(min = 1, max = 600), extend("x-jaato-workspace" = true))]
    pub timeout: u64,
    /// Maximum number of characters of a page to return at once. The model gets fewer if its limit
    /// on the output of tools is lower.
    #[schemars(range(min = 1_000, max = 10_000_000), extend("x-jaato-workspace" = true))]
    pub max_length: usize,
    /// How long a page may be used again without asking the server, in seconds.
    #[schemars(range(max = 86_400), extend("x-jaato-workspace" = true))]
    pub cache_ttl: u64,
    /// The user agent. Without one, jaato and its version.
    pub user_agent: Option<String>,
    /// Read only what a server's `robots.txt` allows.
    #[schemars(extend("x-jaato-workspace" = true))]
    pub respect_robots_txt: bool,
}

impl Default for WebFetchSettings {
    fn default() -> Self {
        Self {
            timeout: 30,
            max_length: 100_000,
            cache_ttl: 300,
            user_agent: None,
            respect_robots_txt: false,
        }
    }
}

impl WebFetchSettings {
    /// Returns the schema of the settings.
    pub fn settings_schema() -> Option<Value> {
        serde_json::to_value(schemars::schema_for!(Self)).ok()
    }

    /// Returns the time for a whole page.
    pub fn page_timeout(&self) -> Duration {
        Duration::from_secs(self.timeout)
    }
}
