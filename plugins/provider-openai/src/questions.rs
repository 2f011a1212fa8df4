//! Whom a server of one's own is asked about the model in use, beside its list of models.

use jaato_plugin_sdk::serde_json::Value;

use crate::{sight, window};

/// A question about the model in use.
pub struct Question {
    /// Below the server's root.
    pub path: &'static str,
    /// Whether the question names the model, in its body.
    pub names_model: bool,
    /// Finds the window of the model of that name in the answer.
    pub read: fn(&Value, &str) -> Option<u64>,
    /// Finds what it looks at.
    pub sight: fn(&Value, &str) -> Option<Vec<String>>,
    /// Whether the next question is to the same server, and tells what this one does not.
    pub goes_on: bool,
}

/// The questions, in order: llama.cpp; Ollama for what it has loaded, then for what it would load;
/// LM Studio. A server that is none of these answers 404.
pub const QUESTIONS: [Question; 4] = [
    Question {
        path: "props",
        names_model: false,
        read: window::of_props,
        sight: sight::of_props,
        goes_on: false,
    },
    Question {
        path: "api/ps",
        names_model: false,
        read: window::of_loaded,
        sight: |_, _| None,
        goes_on: true,
    },
    Question {
        path: "api/show",
        names_model: true,
        read: window::of_show,
        sight: sight::of_show,
        goes_on: false,
    },
    Question {
        path: "api/v0/models",
        names_model: false,
        read: window::of_lm_studio,
        sight: sight::of_lm_studio,
        goes_on: false,
    },
];

#[cfg(test)]
mod tests {
    use jaato_plugin_sdk::serde_json::json;

    use super::*;

    #[test]
    fn nonsense_tells_nothing() {
        for Question { read, sight, .. } in QUESTIONS {
            for nonsense in [json!(null), json!([]), json!({ "models": {}, "data": 7 })] {
                assert_eq!((read(&nonsense, "m"), sight(&nonsense, "m")), (None, None));
            }
        }
    }
}
