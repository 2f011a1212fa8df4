//! The plugin's settings, and what it tells of itself.

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::schemars::{self, JsonSchema};
use jaato_plugin_sdk::serde::{self, Deserialize};
use jaato_plugin_sdk::serde_json;
use jaato_plugin_sdk::types::CredentialSpec;

/// GitHub's own origin.
const ORIGIN: &str = "https://models.github.ai";

/// The endpoint where nobody names another.
pub(crate) const VENDOR: &str = "https://models.github.ai/inference";

/// The variable that holds the token.
pub(crate) const TOKEN: &str = "GITHUB_TOKEN";

/// The variable that names another server.
pub(crate) const ENDPOINT: &str = "JAATO_GITHUB_ENDPOINT";

/// `[plugins.provider-github-models]`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(crate = "serde", default, deny_unknown_fields)]
#[schemars(crate = "schemars")]
pub struct Config {
    /// Where the server is, up to and with `/inference`. `JAATO_GITHUB_ENDPOINT` wins.
    #[schemars(extend("x-jaato-workspace" = true))]
    pub base_url: String,
    /// The organization to which requests are attributed: it pays, and its policy counts.
    #[schemars(extend(
        "x-jaato-workspace" = true,
        "x-jaato-variables" = ["JAATO_GITHUB_ORGANIZATION"]
    ))]
    pub organization: String,
    /// The enterprise of the organization, which errors name: its policy counts as well.
    #[schemars(extend(
        "x-jaato-workspace" = true,
        "x-jaato-variables" = ["JAATO_GITHUB_ENTERPRISE"]
    ))]
    pub enterprise: String,
}

impl Default for Config {
    fn default() -> Self {
        Self { base_url: VENDOR.to_owned(), organization: String::new(), enterprise: String::new() }
    }
}

/// The plugin's state: nothing.
#[derive(Debug, Default)]
pub struct GitHub;

impl State for GitHub {
    async fn create(_home: &Home, _saved: Option<Value>) -> Result<Self> {
        Ok(Self)
    }

    fn describe(description: &mut Description) {
        description.config_schema = serde_json::to_value(schemars::schema_for!(Config)).ok();
        description.credentials = vec![CredentialSpec {
            variable: TOKEN.to_owned(),
            scheme: "bearer".to_owned(),
            origin: ORIGIN.to_owned(),
            base_url_variable: ENDPOINT.to_owned(),
            ..CredentialSpec::default()
        }];
    }
}
