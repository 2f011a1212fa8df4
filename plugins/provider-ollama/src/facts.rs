//! The facts that a server reports about a model. Pure.

use jaato_plugin_sdk::serde_json::Value;

/// The image media types that every vision model accepts.
pub const IMAGES: [&str; 2] = ["image/png", "image/jpeg"];

/// The family of models that always think, and whose thinking is set only by levels.
const LEVELS_FAMILY: &str = "gptoss";

/// The facts about a model. Each may be unknown, because older servers report less.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OllamaModelFacts {
    /// The model's capabilities: `completion`, `tools`, `vision`, `thinking`, `embedding`.
    pub capabilities: Option<Vec<String>>,
    /// The largest possible context in tokens.
    pub window: Option<u64>,
    /// The context size that the model's Modelfile sets.
    pub own_context: Option<u64>,
    /// The maximum number of tokens in an answer, as set by the model's Modelfile.
    pub own_output: Option<u64>,
    /// Whether the model runs on the vendor's machines.
    pub is_remote: bool,
    /// Whether the model always thinks and its thinking is set by levels.
    pub thinks_by_levels: bool,
}

impl OllamaModelFacts {
    /// Returns the facts that follow from the model's name.
    pub fn from_model_name(model: &str) -> Self {
        Self { thinks_by_levels: model.contains("gpt-oss"), ..Self::default() }
    }

    /// Reads the answer of `POST /api/show`.
    pub fn from_show_answer(model: &str, shown: &Value) -> Self {
        let details = &shown["details"];
        let families = details["families"].as_array().into_iter().flatten();
        let is_of_levels =
            families.chain([&details["family"]]).any(|family| family == LEVELS_FAMILY);
        Self {
            capabilities: read_capabilities(shown),
            window: read_context_window(&shown["model_info"]),
            own_context: find_parameter(shown, "num_ctx"),
            own_output: find_parameter(shown, "num_predict"),
            is_remote: shown["remote_host"].as_str().is_some_and(|host| !host.is_empty()),
            thinks_by_levels: is_of_levels || Self::from_model_name(model).thinks_by_levels,
        }
    }

    /// Returns true if the model has the capability, or `None` if that is unknown.
    pub fn has_capability(&self, capability: &str) -> Option<bool> {
        Some(self.capabilities.as_ref()?.iter().any(|one| one == capability))
    }

    /// Lists the media types that the model accepts, or returns `None` if that is unknown.
    pub fn accepted_media_types(&self) -> Option<Vec<String>> {
        let images = if self.has_capability("vision")? { &IMAGES[..] } else { &[] };
        Some(images.iter().map(|image| (*image).to_owned()).collect())
    }
}

/// Reads a model's capabilities from a list or from `/api/show`.
pub fn read_capabilities(model: &Value) -> Option<Vec<String>> {
    let listed = model["capabilities"].as_array()?.iter();
    Some(listed.filter_map(Value::as_str).map(str::to_owned).collect())
}

fn read_context_window(info: &Value) -> Option<u64> {
    let architecture = info["general.architecture"].as_str().unwrap_or_default();
    let named = info[format!("{architecture}.context_length")].as_u64();
    let any = || {
        let mut known = info.as_object()?.iter();
        known.find(|(key, _)| key.ends_with(".context_length"))?.1.as_u64()
    };
    named.or_else(any).filter(|tokens| *tokens > 0)
}

/// Finds a number among the parameters of a Modelfile: `num_ctx    8192`.
fn find_parameter(shown: &Value, name: &str) -> Option<u64> {
    let lines = shown["parameters"].as_str()?.lines();
    let mut words = lines.map(|line| line.split_whitespace());
    let value =
        words.find_map(|mut words| (words.next() == Some(name)).then(|| words.next()))??;
    value.parse().ok().filter(|number| *number > 0)
}

#[cfg(test)]
mod tests {
    use jaato_plugin_sdk::serde_json::json;

    use super::*;

    #[test]
    fn model_facts_are_read_from_the_show_response() {
        let shown = json!({
            "capabilities": ["completion", "tools", "thinking"],
            "details": { "family": "qwen3", "families": ["qwen3"] },
            "model_info": { "general.architecture": "qwen3", "qwen3.context_length": 40_960 },
            "parameters": "stop                           \"<|im_end|>\"\nnum_ctx   8192\nnum_predict -1",
        });
        let facts = OllamaModelFacts::from_show_answer("qwen3:8b", &shown);
        assert_eq!(
            (facts.window, facts.own_context, facts.own_output),
            (Some(40_960), Some(8_192), None)
        );
        assert_eq!(
            (facts.has_capability("tools"), facts.has_capability("vision")),
            (Some(true), Some(false))
        );
        assert_eq!(
            (facts.accepted_media_types(), facts.thinks_by_levels),
            (Some(Vec::new()), false)
        );
    }

    #[test]
    fn model_facts_missing_on_older_servers_are_not_errors() {
        for shown in [json!({}), json!(null), json!({ "model_info": [], "parameters": 7 })] {
            assert_eq!(
                OllamaModelFacts::from_show_answer("m", &shown),
                OllamaModelFacts::default()
            );
        }
        let shown = json!({ "model_info": { "x.context_length": 7 } });
        assert_eq!(OllamaModelFacts::from_show_answer("m", &shown).window, Some(7));
    }

    #[test]
    fn models_that_think_by_levels_are_known_by_name_and_family() {
        let family = json!({ "details": { "family": "gptoss" } });
        assert!(OllamaModelFacts::from_show_answer("mine", &family).thinks_by_levels);
        assert!(OllamaModelFacts::from_model_name("gpt-oss:20b").thinks_by_levels);
    }
}
