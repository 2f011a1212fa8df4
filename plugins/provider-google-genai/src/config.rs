//! The plugin's settings.

use jaato_plugin_sdk::schemars::{self, JsonSchema};
use jaato_plugin_sdk::serde::{self, Deserialize};

/// `[plugins.provider-google-genai]`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(crate = "serde", default, deny_unknown_fields)]
#[schemars(crate = "schemars")]
pub struct Config {
    /// Where the server is, without version and path; Google's own where it is empty.
    /// `GOOGLE_GEMINI_BASE_URL` wins.
    #[schemars(extend("x-jaato-workspace" = true))]
    pub base_url: String,
    /// The Google Cloud project for whose account models are asked for at Vertex AI.
    #[schemars(extend(
        "x-jaato-workspace" = true,
        "x-jaato-variables" = ["JAATO_GOOGLE_PROJECT", "PROJECT_ID"]
    ))]
    pub project: String,
    /// The project where Vertex AI is asked and `project` names none: a variable that many people
    /// have for other programs is no wish to ask it.
    #[schemars(extend("x-jaato-workspace" = true, "x-jaato-variables" = ["GOOGLE_CLOUD_PROJECT"]))]
    pub default_project: String,
    /// The location of Vertex AI; `global` where it is empty.
    #[schemars(extend(
        "x-jaato-workspace" = true,
        "x-jaato-variables" = ["JAATO_GOOGLE_LOCATION", "GOOGLE_CLOUD_LOCATION", "LOCATION"]
    ))]
    pub location: String,
    /// Whether Vertex AI is asked and not AI Studio; where nothing is said, `project` decides.
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
