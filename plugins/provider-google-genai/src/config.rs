//! The plugin's settings.

use jaato_plugin_sdk::schemars::{self, JsonSchema};
use jaato_plugin_sdk::serde::{self, Deserialize};

/// `[plugins.provider-google-genai]`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(crate = "serde", default, deny_unknown_fields)]
#[schemars(crate = "schemars")]
pub struct Config {
    /// The server's base URL, without version and path. The default is Google's server.
    /// `GOOGLE_GEMINI_BASE_URL` overrides it.
    #[schemars(extend("x-jaato-workspace" = true))]
    pub base_url: String,
    /// The Google Cloud project that pays for requests to Vertex AI.
    #[schemars(extend(
        "x-jaato-workspace" = true,
        "x-jaato-variables" = ["JAATO_GOOGLE_PROJECT", "PROJECT_ID"]
    ))]
    pub project: String,
    /// The project for Vertex AI if `project` is not set. It does not select Vertex AI, because
    /// many users set its variable for other programs.
    #[schemars(extend("x-jaato-workspace" = true, "x-jaato-variables" = ["GOOGLE_CLOUD_PROJECT"]))]
    pub default_project: String,
    /// The location of Vertex AI. The default is `global`.
    #[schemars(extend(
        "x-jaato-workspace" = true,
        "x-jaato-variables" = ["JAATO_GOOGLE_LOCATION", "GOOGLE_CLOUD_LOCATION", "LOCATION"]
    ))]
    pub location: String,
    /// Whether to use Vertex AI instead of AI Studio. If not set, `project` decides.
    #[schemars(extend(
        "x-jaato-workspace" = true,
        "x-jaato-variables" = [
            "JAATO_GOOGLE_USE_VERTEX",
            "GOOGLE_GENAI_USE_ENTERPRISE",
            "GOOGLE_GENAI_USE_VERTEXAI"
        ]
    ))]
    pub vertex: Option<bool>,
}
