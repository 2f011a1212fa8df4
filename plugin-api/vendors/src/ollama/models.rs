//! The installed models and their features.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// A model.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FakeOllamaModel {
    pub(super) name: String,
    pub(super) capabilities: &'static [&'static str],
    pub(super) window: u64,
    family: &'static str,
    parameters: &'static str,
    is_remote: bool,
}

impl FakeOllamaModel {
    pub(super) fn has_capability(&self, capability: &str) -> bool {
        self.capabilities.contains(&capability)
    }

    /// Returns true if its thinking can only be set by levels.
    pub(super) fn has_thinking_levels(&self) -> bool {
        self.family == "gptoss"
    }
}

type OllamaModelRow = (&'static str, &'static str, u64, &'static [&'static str], &'static str);

const INSTALLED: [OllamaModelRow; 8] = [
    ("qwen3:8b", "qwen3", 40_960, &["completion", "tools", "thinking"], ""),
    ("qwen3-vl:8b", "qwen3vl", 262_144, &["completion", "vision", "tools", "thinking"], ""),
    ("gemma3:4b", "gemma3", 131_072, &["completion", "vision"], "stop    \"<end_of_turn>\""),
    ("gpt-oss:20b", "gptoss", 131_072, &["completion", "tools", "thinking"], "temperature 1"),
    ("tiny:latest", "llama", 2_048, &["completion", "tools"], ""),
    ("tuned:1b", "llama", 32_768, &["completion", "tools"], "num_ctx    8192\nnum_predict    64"),
    ("nomic-embed-text:latest", "nomic-bert", 2_048, &["embedding"], ""),
    (CLOUD, "glm4", 202_752, &["completion", "tools", "thinking"], ""),
];

/// The model that runs on the vendor's machines.
const CLOUD: &str = "big:cloud";

fn model_from_row(
    (name, family, window, capabilities, parameters): OllamaModelRow,
) -> FakeOllamaModel {
    let is_remote = name == CLOUD;
    FakeOllamaModel { name: name.to_owned(), capabilities, window, family, parameters, is_remote }
}

/// Finds an installed model by its name with the tag.
pub(super) fn find_model(name: &str) -> Option<FakeOllamaModel> {
    INSTALLED.into_iter().find(|row| row.0 == name).map(model_from_row)
}

/// Creates a model that was pulled.
pub(super) fn pulled_model(name: &str) -> FakeOllamaModel {
    let row = model_from_row(("", "llama", 32_768, &["completion", "tools"], ""));
    FakeOllamaModel { name: name.to_owned(), ..row }
}

/// Adds the default tag to a name without one.
pub(super) fn with_tag(name: &str) -> String {
    let last = name.rsplit('/').next().unwrap_or_default();
    if last.contains(':') { name.to_owned() } else { format!("{name}:latest") }
}

/// Returns the list of installed models.
pub(super) fn installed_models_json(more: &[String]) -> Value {
    let more = more.iter().filter(|name| find_model(name).is_none()).map(|name| pulled_model(name));
    let all = INSTALLED.into_iter().map(model_from_row).chain(more);
    let listed = all.map(|model| {
        let mut listed = json!({
            "name": model.name, "model": model.name, "modified_at": "2026-11-01T00:00:00Z",
            "size": 5_225_388_164_u64, "digest": "500a1f067a9f",
            "details": model_details_json(&model),
        });
        if model.is_remote {
            listed["remote_host"] = json!("https://ollama.com:443");
        }
        listed
    });
    json!({ "models": listed.collect::<Vec<_>>() })
}

/// Returns the list of loaded models.
pub(super) fn loaded_models_json(loaded: &BTreeMap<String, u64>) -> Value {
    let listed = loaded.iter().map(|(name, tokens)| {
        json!({ "name": name, "model": name, "size": 6_000_000_000_u64, "size_vram": 6_000_000_000_u64,
            "expires_at": "2026-11-23T14:00:00Z", "context_length": tokens })
    });
    json!({ "models": listed.collect::<Vec<_>>() })
}

/// Returns the details of a model.
pub(super) fn model_info_json(model: &FakeOllamaModel) -> Value {
    let architecture = model.family;
    let mut shown = json!({
        "modelfile": "FROM …", "parameters": model.parameters, "template": "{{ .Prompt }}",
        "details": model_details_json(model), "capabilities": model.capabilities,
        "model_info": {
            "general.architecture": architecture,
            format!("{architecture}.context_length"): model.window,
        },
    });
    if model.is_remote {
        shown["remote_host"] = json!("https://ollama.com:443");
        shown["remote_model"] = json!("big");
    }
    shown
}

fn model_details_json(model: &FakeOllamaModel) -> Value {
    json!({ "format": "gguf", "family": model.family, "families": [model.family],
        "parameter_size": "8.2B", "quantization_level": "Q4_K_M" })
}
