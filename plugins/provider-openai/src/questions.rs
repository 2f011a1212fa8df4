//! Queries to a user's own server about the model in use, in addition to its list of models.

use jaato_plugin_sdk::serde_json::Value;

use crate::{accepted_media, window};

/// A query about the model in use.
pub struct ModelQuery {
    /// The path below the server's root.
    pub path: &'static str,
    /// Whether the query's body names the model.
    pub names_model: bool,
    /// Reads the window of the named model from the answer.
    pub read: fn(&Value, &str) -> Option<u64>,
    /// Reads the media that the model accepts.
    pub sight: fn(&Value, &str) -> Option<Vec<String>>,
    /// Whether the next query goes to the same kind of server and adds to this one.
    pub goes_on: bool,
}

/// The queries in order: llama.cpp, Ollama's loaded models, Ollama's models on disk, LM Studio. Any
/// other server answers 404.
pub const QUESTIONS: [ModelQuery; 4] = [
    ModelQuery {
        path: "props",
        names_model: false,
        read: window::window_from_props,
        sight: accepted_media::media_from_props,
        goes_on: false,
    },
    ModelQuery {
        path: "api/ps",
        names_model: false,
        read: window::window_from_loaded_models,
        sight: |_, _| None,
        goes_on: true,
    },
    ModelQuery {
        path: "api/show",
        names_model: true,
        read: window::window_from_show,
        sight: accepted_media::media_from_show,
        goes_on: false,
    },
    ModelQuery {
        path: "api/v0/models",
        names_model: false,
        read: window::window_from_lm_studio,
        sight: accepted_media::media_from_lm_studio,
        goes_on: false,
    },
];

#[cfg(test)]
mod tests {
    use jaato_plugin_sdk::serde_json::json;

    use super::*;

    #[test]
    fn unexpected_model_answers_give_no_facts() {
        for ModelQuery { read, sight, .. } in QUESTIONS {
            for nonsense in [json!(null), json!([]), json!({ "models": {}, "data": 7 })] {
                assert_eq!((read(&nonsense, "m"), sight(&nonsense, "m")), (None, None));
            }
        }
    }
}
