//! Which media models accept in addition to text: from their server, or from a table of OpenAI's
//! models.

use jaato_plugin_sdk::serde_json::Value;
use jaato_plugin_sdk::types::ModelInfo;
use jaato_plugin_sdk_provider::chat::is_in_model_family;
use jaato_plugin_sdk_provider::shown::{IMAGES, PDF};

/// OpenAI's models by the start of their names, with the media that they accept. The first match
/// counts, and other models are unknown. If a row is wrong, an image becomes a line of text, or the
/// server refuses the request with a reason.
const OPENAI: [(&str, OpenAiMediaSupport); 16] = [
    ("gpt-5.3-codex-spark", OpenAiMediaSupport::Nothing),
    ("gpt-5", OpenAiMediaSupport::Files),
    ("gpt-6", OpenAiMediaSupport::Files),
    ("gpt-4.1", OpenAiMediaSupport::Files),
    ("gpt-4.5", OpenAiMediaSupport::Files),
    ("gpt-4o-audio", OpenAiMediaSupport::Nothing),
    ("gpt-4o", OpenAiMediaSupport::Files),
    ("chatgpt-4o", OpenAiMediaSupport::Images),
    ("gpt-4-turbo", OpenAiMediaSupport::Images),
    ("gpt-4", OpenAiMediaSupport::Nothing),
    ("gpt-3.5-turbo", OpenAiMediaSupport::Nothing),
    ("o1-mini", OpenAiMediaSupport::Nothing),
    ("o1", OpenAiMediaSupport::Files),
    ("o3-mini", OpenAiMediaSupport::Nothing),
    ("o3", OpenAiMediaSupport::Files),
    ("o4-mini", OpenAiMediaSupport::Files),
];

/// The media that a model accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OpenAiMediaSupport {
    Nothing,
    Images,
    /// Images, and files with text and images.
    Files,
}

impl OpenAiMediaSupport {
    fn media_types(self) -> Vec<String> {
        let images = IMAGES.iter().filter(|_| self != Self::Nothing);
        let files = [PDF].into_iter().filter(|_| self == Self::Files);
        images.copied().chain(files).map(str::to_owned).collect()
    }
}

/// Reads the media from a list entry of OpenRouter or Mistral.
pub(crate) fn media_from_list_entry(model: &Value) -> Option<Vec<String>> {
    let sight = match model["architecture"]["input_modalities"].as_array() {
        Some(kinds) => {
            let has = |kind: &str| kinds.iter().any(|one| one == kind);
            let images =
                if has("image") { OpenAiMediaSupport::Images } else { OpenAiMediaSupport::Nothing };
            // Vision models read files themselves, and a separate service reads them for the
            // others.
            if has("file") && has("image") { OpenAiMediaSupport::Files } else { images }
        }
        None if model["capabilities"]["vision"].as_bool()? => OpenAiMediaSupport::Images,
        None => OpenAiMediaSupport::Nothing,
    };
    Some(sight.media_types())
}

/// Reads llama.cpp's `GET /props`.
pub(crate) fn media_from_props(answer: &Value, _model: &str) -> Option<Vec<String>> {
    let sees = answer["modalities"]["vision"].as_bool()?;
    Some(if sees { OpenAiMediaSupport::Images } else { OpenAiMediaSupport::Nothing }.media_types())
}

/// Reads Ollama's `POST /api/show`.
pub(crate) fn media_from_show(answer: &Value, _model: &str) -> Option<Vec<String>> {
    let abilities = answer["capabilities"].as_array()?;
    let sees = abilities.iter().any(|one| one == "vision");
    Some(if sees { OpenAiMediaSupport::Images } else { OpenAiMediaSupport::Nothing }.media_types())
}

/// Reads LM Studio's `GET /api/v0/models`.
pub(crate) fn media_from_lm_studio(answer: &Value, model: &str) -> Option<Vec<String>> {
    let is_it = |listed: &&Value| listed["id"].as_str() == Some(model);
    let kind = answer["data"].as_array()?.iter().find(is_it)?["type"].as_str()?;
    Some(
        if kind == "vlm" { OpenAiMediaSupport::Images } else { OpenAiMediaSupport::Nothing }
            .media_types(),
    )
}

/// Adds what is known about the vendor's own models.
pub(crate) fn add_known_media(infos: &mut [ModelInfo], is_vendors: bool) {
    for info in infos.iter_mut().filter(|info| is_vendors && info.accepts.is_none()) {
        let known = OPENAI.iter().find(|(beginning, _)| is_in_model_family(&info.name, beginning));
        info.accepts = known.map(|(_, sight)| sight.media_types());
    }
}

#[cfg(test)]
mod tests {
    use jaato_plugin_sdk::serde_json::json;

    use super::*;

    #[test]
    fn model_lists_report_accepted_media() {
        let count = |model: Value| media_from_list_entry(&model).map(|types| types.len());
        let of = |kinds: Value| json!({ "architecture": { "input_modalities": kinds } });
        assert_eq!(count(of(json!(["text", "image", "file"]))), Some(5));
        assert_eq!(count(of(json!(["text", "image"]))), Some(4));
        assert_eq!(count(of(json!(["text", "file"]))), Some(0));
        assert_eq!(count(json!({ "capabilities": { "vision": true } })), Some(4));
        assert_eq!(count(json!({ "capabilities": { "vision": false } })), Some(0));
        for none in [json!({}), json!(null), json!({ "capabilities": ["vision"] })] {
            assert_eq!(count(none), None);
        }
    }

    #[test]
    fn self_hosted_servers_report_vision_of_the_model_in_use() {
        let count = |types: Option<Vec<String>>| types.map(|types| types.len());
        for (sees, expected) in [(true, Some(4)), (false, Some(0))] {
            let props = json!({ "modalities": { "vision": sees, "audio": false } });
            assert_eq!(count(media_from_props(&props, "m")), expected);
        }
        let show =
            |abilities: Value| count(media_from_show(&json!({ "capabilities": abilities }), "m"));
        assert_eq!(show(json!(["completion", "vision"])), Some(4));
        assert_eq!((show(json!(["completion"])), show(Value::Null)), (Some(0), None));
        let list = json!({ "data": [{ "id": "m", "type": "vlm" }, { "id": "n", "type": "llm" }] });
        let listed = |model| count(media_from_lm_studio(&list, model));
        assert_eq!((listed("m"), listed("n"), listed("o")), (Some(4), Some(0), None));
        assert_eq!((count(media_from_props(&json!({}), "m")), show(json!("vision"))), (None, None));
    }

    #[test]
    fn files_are_accepted_only_by_the_vendors_own_models() {
        let accepts = |name: &str, is_vendors| {
            let mut infos = [ModelInfo::new(name)];
            add_known_media(&mut infos, is_vendors);
            infos[0].accepts.as_ref().map(Vec::len)
        };
        for (name, expected) in [
            ("gpt-5.2", Some(5)),
            ("gpt-4o-mini", Some(5)),
            ("gpt-4-turbo", Some(4)),
            ("gpt-4-0613", Some(0)),
            ("o3-mini", Some(0)),
            ("moon", None),
        ] {
            assert_eq!((accepts(name, true), accepts(name, false)), (expected, None), "{name}");
        }
    }
}
