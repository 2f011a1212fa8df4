//! The features of each model, from the vendor's documentation. Independent of the plugin's table,
//! to check it.

use serde_json::{Value, json};

/// A model.
#[derive(Debug)]
pub(super) struct Model {
    pub(super) name: &'static str,
    pub(super) window: u64,
    pub(super) reasons: bool,
    /// The supported reasoning efforts.
    pub(super) efforts: &'static [&'static str],
    /// Whether chat completions support the model.
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

/// Returns the list of models, which contains only names.
pub(super) fn list() -> Value {
    let entry = |model: &Model| json!({ "id": model.name, "object": "model", "created": 1_767_225_600, "owned_by": "openai" });
    json!({ "object": "list", "data": MODELS.iter().map(entry).collect::<Vec<_>>() })
}
