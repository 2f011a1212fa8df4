//! Named servers: their URLs, the variables of their API keys, and their dialects.

use jaato_plugin_sdk::serde_json;
use jaato_plugin_sdk::types::ProviderPreset;

/// The table, in a file that is also documentation for users.
const TABLE: &str = include_str!("../presets.json");

/// Lists the named servers.
pub fn list_presets() -> Vec<ProviderPreset> {
    // A test parses the file, which is part of this library.
    serde_json::from_str(TABLE).unwrap_or_default()
}

/// Returns the variable of a server's API key: from the server's preset, or else `by_default`.
pub(crate) fn api_key_variable(base: &str, by_default: &str) -> String {
    let is_its = |preset: &ProviderPreset| preset.base_url == base && !preset.variable.is_empty();
    let preset = list_presets().into_iter().find(is_its);
    preset.map_or_else(|| by_default.to_owned(), |preset| preset.variable)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use jaato_plugin_sdk::serde_json::Value;

    use super::*;
    use crate::config::{Config, OpenAiApi};
    use crate::dialect::OpenAiDialect;
    use crate::endpoint;

    #[test]
    fn known_server_has_its_own_key_variable() {
        assert_eq!(api_key_variable("https://api.groq.com/openai/v1", "KEY"), "GROQ_API_KEY");
        for other in ["http://127.0.0.1:8080/v1", "https://api.openai.com/v1", "x"] {
            assert_eq!(api_key_variable(other, "KEY"), "KEY");
        }
    }

    #[test]
    fn every_preset_matches_its_server_settings() {
        let presets = list_presets();
        assert_eq!(presets.len(), 10);
        let names: BTreeSet<&str> = presets.iter().map(|preset| preset.name.as_str()).collect();
        assert_eq!(names.len(), presets.len());
        for preset in &presets {
            let config: Config =
                serde_json::from_value(Value::Object(preset.settings.clone())).unwrap();
            let is_here = preset.base_url.starts_with("http://127.0.0.1:");
            assert_eq!(is_here, preset.variable.is_empty(), "{}", preset.name);
            assert!(is_here || preset.base_url.starts_with("https://"), "{}", preset.name);
            assert!(is_here || preset.variable.ends_with("_API_KEY"), "{}", preset.name);
            // The preset's dialect and the host's dialect are the same.
            let by_host = endpoint::dialect_of_server(&preset.base_url, OpenAiDialect::Auto);
            assert_eq!(by_host, config.dialect, "{}", preset.name);
            assert_eq!(config.api == OpenAiApi::Responses, preset.name == "xai");
        }
    }
}
