//! Context windows: from servers' endpoints beyond the list of models, and from a table of OpenAI's
//! models.

use jaato_plugin_sdk::serde_json::Value;
use jaato_plugin_sdk::types::ModelInfo;
use jaato_plugin_sdk_provider::chat::is_in_model_family;

/// The input limits of OpenAI's models in tokens, by the start of their names. The first match
/// counts. OpenAI's list of models contains only names. From developers.openai.com/api/docs/models
/// and models.dev, as of November 2026. The smaller number counts if the window is larger than the
/// allowed input (400,000 for GPT-5, of which 128,000 are reserved for the answer), or if a larger
/// input costs double (from 272,000 since GPT-5.4).
const OPENAI: [(&str, u64); 19] = [
    ("gpt-5-chat", 128_000),
    ("gpt-5.1-chat", 128_000),
    ("gpt-5.2-chat", 128_000),
    ("gpt-5.3-chat", 128_000),
    ("gpt-5.3-codex-spark", 100_000),
    ("gpt-5", 272_000),
    ("gpt-6", 272_000),
    ("gpt-4.1", 1_047_576),
    ("gpt-4.5", 128_000),
    ("gpt-4o", 128_000),
    ("chatgpt-4o", 128_000),
    ("gpt-4-turbo", 128_000),
    ("gpt-4-32k", 32_768),
    ("gpt-4", 8_192),
    ("gpt-3.5-turbo", 16_385),
    ("o1-mini", 128_000),
    ("o1", 200_000),
    ("o3", 200_000),
    ("o4-mini", 200_000),
];

/// Adds what is known about the vendor's own models.
pub fn add_known_windows(infos: &mut [ModelInfo], is_vendors: bool) {
    for info in infos.iter_mut().filter(|info| is_vendors && info.context_limit.is_none()) {
        info.context_limit = openai_context_window(&info.name);
    }
}

/// Returns true if both names mean the same model. Ollama adds `:latest`.
pub fn is_same_model(listed: &str, name: &str) -> bool {
    listed == name || listed.strip_suffix(":latest") == Some(name)
}

fn openai_context_window(name: &str) -> Option<u64> {
    let known = OPENAI.iter().find(|(beginning, _)| is_in_model_family(name, beginning));
    known.map(|(_, tokens)| *tokens)
}

/// Reads llama.cpp's `GET /props`: the window of one slot.
pub(crate) fn window_from_props(answer: &Value, _model: &str) -> Option<u64> {
    parse_token_count(&answer["default_generation_settings"]["n_ctx"])
}

/// Reads Ollama's `GET /api/ps`: the window of a loaded model, which our requests cannot change.
pub(crate) fn window_from_loaded_models(answer: &Value, model: &str) -> Option<u64> {
    let is_it = |loaded: &&Value| {
        ["model", "name"]
            .iter()
            .any(|key| loaded[*key].as_str().is_some_and(|listed| is_same_model(listed, model)))
    };
    parse_token_count(&answer["models"].as_array()?.iter().find(is_it)?["context_length"])
}

/// Reads Ollama's `POST /api/show`: the window in the Modelfile, or else the model's maximum.
pub(crate) fn window_from_show(answer: &Value, _model: &str) -> Option<u64> {
    let set = answer["parameters"].as_str().unwrap_or_default().lines().find_map(|line| {
        let mut words = line.split_whitespace();
        words.next().filter(|name| *name == "num_ctx")?;
        words.next()?.parse().ok().filter(|tokens| *tokens > 0)
    });
    let most = || {
        let facts = answer["model_info"].as_object()?;
        facts.iter().find_map(|(name, value)| {
            name.ends_with(".context_length").then(|| parse_token_count(value)).flatten()
        })
    };
    set.or_else(most)
}

/// Reads LM Studio's `GET /api/v0/models`.
pub(crate) fn window_from_lm_studio(answer: &Value, model: &str) -> Option<u64> {
    let is_it = |listed: &&Value| listed["id"].as_str() == Some(model);
    let found = answer["data"].as_array()?.iter().find(is_it)?;
    parse_token_count(&found["loaded_context_length"])
        .or_else(|| parse_token_count(&found["max_context_length"]))
}

fn parse_token_count(value: &Value) -> Option<u64> {
    value.as_u64().filter(|tokens| *tokens > 0)
}

#[cfg(test)]
mod tests {
    use jaato_plugin_sdk::serde_json::json;

    use super::*;

    #[test]
    fn context_window_is_known_from_the_model_name_prefix() {
        for (name, expected) in [
            ("gpt-5", Some(272_000)),
            ("gpt-5.2-2025-12-11", Some(272_000)),
            ("gpt-5-chat-latest", Some(128_000)),
            ("gpt-5.3-codex-spark", Some(100_000)),
            ("gpt-4.1-nano", Some(1_047_576)),
            ("gpt-4o-mini", Some(128_000)),
            ("gpt-4-turbo-2024-04-09", Some(128_000)),
            ("gpt-4-0613", Some(8_192)),
            ("ft:gpt-4o-mini:us::x", Some(128_000)),
            ("o1-mini", Some(128_000)),
            ("o1-2024-12-17", Some(200_000)),
            ("o10", None),
            ("gpt-45", None),
            ("qwen3:8b", None),
        ] {
            assert_eq!(openai_context_window(name), expected, "{name}");
        }
    }

    #[test]
    fn known_window_fills_gaps_only_in_the_vendors_own_list() {
        let info = |context_limit| ModelInfo {
            name: "gpt-4o".to_owned(),
            title: String::new(),
            context_limit,
            asset: None,
            ..ModelInfo::default()
        };
        let added = |context_limit, is_vendors| {
            let mut infos = [info(context_limit)];
            add_known_windows(&mut infos, is_vendors);
            infos[0].context_limit
        };
        assert_eq!((added(None, true), added(None, false)), (Some(128_000), None));
        assert_eq!(added(Some(7), true), Some(7));
    }

    #[test]
    fn context_window_is_read_from_each_servers_own_field() {
        assert_eq!(
            window_from_props(&json!({ "default_generation_settings": { "n_ctx": 4096 } }), "m"),
            Some(4096)
        );
        let loaded = json!({ "models": [
            { "name": "other:1b", "model": "other:1b", "context_length": 1 },
            { "name": "m:latest", "model": "m:latest", "context_length": 8192 },
        ] });
        assert_eq!(
            (window_from_loaded_models(&loaded, "m"), window_from_loaded_models(&loaded, "n")),
            (Some(8192), None)
        );
        let facts = json!({ "general.x": 1, "llama.context_length": 131_072 });
        let show = |parameters: &str| {
            window_from_show(&json!({ "parameters": parameters, "model_info": facts }), "m")
        };
        assert_eq!(show("stop \"x\"\nnum_ctx      16384\n"), Some(16_384));
        assert_eq!(show("stop \"num_ctx\"\n"), Some(131_072));
        let studio = json!({ "data": [
            { "id": "m", "loaded_context_length": 4096, "max_context_length": 32_768 },
            { "id": "n", "max_context_length": 32_768 },
        ] });
        assert_eq!(
            (window_from_lm_studio(&studio, "m"), window_from_lm_studio(&studio, "n")),
            (Some(4096), Some(32_768))
        );
    }
}
