//! `[plugins.tool-subagent]`.

use std::collections::BTreeMap;

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::serde_json::Map;
use jaato_plugin_sdk::tool_type;

use crate::profile::Profile;

/// Names that Claude Code gives to Anthropic's models. Other providers have no such models.
const CLAUDE_MODELS: [&str; 3] = ["haiku", "opus", "sonnet"];

/// The user's settings.
#[tool_type]
#[derive(Debug, Clone, Default)]
#[serde(default)]
pub struct Config {
    /// Profiles by name. They have the keys of a file in `.jaato/profiles`, and precedence over all
    /// files.
    pub profiles: BTreeMap<String, Map<String, Value>>,
    /// Models by the names that profiles use for them, for example `sonnet`.
    pub models: BTreeMap<String, String>,
    /// The folder with the user's `.jaato` and `.claude`. The default is the home folder.
    #[schemars(extend("x-jaato-path" = "file"))]
    pub home: String,
}

impl Config {
    /// Replaces the model of a profile by the user's setting. Returns a warning if the profile
    /// names a model of Claude Code that the user has not set.
    pub(crate) fn choose_model(&self, profile: &mut Profile) -> Option<String> {
        let name = profile.model.as_deref()?;
        if let Some(model) = self.models.get(name) {
            profile.model = Some(model.clone());
            return None;
        }
        if !CLAUDE_MODELS.contains(&name) {
            return None;
        }
        let text = format!(
            "`{name}` is not set in `models` of `[plugins.tool-subagent]`, so the subagent uses the \
             session's model"
        );
        profile.model = None;
        Some(text)
    }
}
