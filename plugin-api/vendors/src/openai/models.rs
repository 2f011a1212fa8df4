//! What each model takes, as the vendor's pages say: not the plugin's table, which this one checks.

use serde_json::{Value, json};

/// A model.
#[derive(Debug)]
pub(super) struct Model {
    pub(super) name: &'static str,
    pub(super) window: u64,
    pub(super) reasons: bool,
    /// How much it can be told to think.
    pub(super) efforts: &'static [&'static str],
    /// Whether chat completions have it.
    pub(super) chats: bool,
}

const OLD: Model = Model { name: "", window: 128_000, reasons: false, efforts: &[], chats: true };

const NEW: Model = Model {
    window: 272_000,
    reasons: true,
    efforts: &["none", "low", "medium", "high", "xhigh"],
    ..OLD
};

const MODELS: [Model; 6] = [
    Model { name: "gpt-5.2", ..NEW },
    Model {
        name: "gpt-5.3-codex",
        efforts: &["low", "medium", "high", "xhigh"],
        chats: false,
        ..NEW
    },
    Model { name: "gpt-5", efforts: &["minimal", "low", "medium", "high"], ..NEW },
    Model { name: "o4-mini", efforts: &["low", "medium", "high"], ..NEW },
    Model { name: "gpt-5-chat-latest", ..OLD },
    Model { name: "gpt-4o", ..OLD },
];

/// Finds a model.
pub(super) fn find(name: &str) -> Option<&'static Model> {
    MODELS.iter().find(|model| model.name == name)
}

/// Writes the list of models, which has names alone.
pub(super) fn list() -> Value {
    let entry = |model: &Model| json!({ "id": model.name, "object": "model", "created": 1_767_225_600, "owned_by": "openai" });
    json!({ "object": "list", "data": MODELS.iter().map(entry).collect::<Vec<_>>() })
}
