//! The features of each model, from the vendor's documentation. Independent of the plugin's table,
//! to check it.

use serde_json::{Value, json};

/// A model.
#[derive(Debug)]
pub(super) struct FakeOpenAiModel {
    pub(super) name: &'static str,
    pub(super) window: u64,
    pub(super) reasons: bool,
    /// The supported reasoning efforts.
    pub(super) efforts: &'static [&'static str],
    /// Whether chat completions support the model.
    pub(super) chats: bool,
}

const OLD: FakeOpenAiModel =
    FakeOpenAiModel { name: "", window: 128_000, reasons: false, efforts: &[], chats: true };

const NEW: FakeOpenAiModel = FakeOpenAiModel {
    window: 272_000,
    reasons: true,
    efforts: &["none", "low", "medium", "high", "xhigh"],
    ..OLD
};

const MODELS: [FakeOpenAiModel; 6] = [
    FakeOpenAiModel { name: "gpt-5.2", ..NEW },
    FakeOpenAiModel {
        name: "gpt-5.3-codex",
        efforts: &["low", "medium", "high", "xhigh"],
        chats: false,
        ..NEW
    },
    FakeOpenAiModel { name: "gpt-5", efforts: &["minimal", "low", "medium", "high"], ..NEW },
    FakeOpenAiModel { name: "o4-mini", efforts: &["low", "medium", "high"], ..NEW },
    FakeOpenAiModel { name: "gpt-5-chat-latest", ..OLD },
    FakeOpenAiModel { name: "gpt-4o", ..OLD },
];

/// Finds a model.
pub(super) fn find_model(name: &str) -> Option<&'static FakeOpenAiModel> {
    MODELS.iter().find(|model| model.name == name)
}

/// Returns the list of models, which contains only names.
pub(super) fn models_json() -> Value {
    let entry = |model: &FakeOpenAiModel| json!({ "id": model.name, "object": "model", "created": 1_767_225_600, "owned_by": "openai" });
    json!({ "object": "list", "data": MODELS.iter().map(entry).collect::<Vec<_>>() })
}
