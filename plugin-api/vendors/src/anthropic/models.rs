//! The features of each model, from the vendor's documentation. Independent of the plugin's table,
//! to check it.

use serde_json::{Value, json};

/// How a model can be set to think.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ThinkingSupport {
    /// `enabled` with a budget, or off.
    ByBudget,
    /// `adaptive`, or off.
    WhenAsked,
    /// `adaptive` unless `disabled`.
    UnlessDisabled,
    /// `adaptive` unless `between_tools`.
    UnlessBetweenTools,
    /// Always `adaptive`.
    Always,
}

/// A model.
#[derive(Debug)]
pub(super) struct FakeAnthropicModel {
    pub(super) name: &'static str,
    pub(super) window: u64,
    pub(super) output: u64,
    pub(super) thinks: ThinkingSupport,
    pub(super) samples: bool,
    pub(super) can_be_forced: bool,
    pub(super) binds: bool,
    /// Whether the messages may contain the role `system` and tool changes.
    pub(super) takes_system_messages: bool,
    pub(super) takes_prefill: bool,
    /// The minimum tokens of a cache entry.
    pub(super) cache_min: u64,
}

const OLD: FakeAnthropicModel = FakeAnthropicModel {
    name: "",
    window: 200_000,
    output: 64_000,
    thinks: ThinkingSupport::ByBudget,
    samples: true,
    can_be_forced: true,
    binds: false,
    takes_system_messages: false,
    takes_prefill: true,
    cache_min: 1_024,
};

const MIDDLE: FakeAnthropicModel = FakeAnthropicModel {
    window: 1_000_000,
    output: 128_000,
    thinks: ThinkingSupport::WhenAsked,
    samples: false,
    takes_prefill: false,
    ..OLD
};

const NEW: FakeAnthropicModel = FakeAnthropicModel {
    thinks: ThinkingSupport::Always,
    can_be_forced: false,
    binds: true,
    takes_system_messages: true,
    cache_min: 512,
    ..MIDDLE
};

/// The models, newest first.
const MODELS: [FakeAnthropicModel; 12] = [
    FakeAnthropicModel {
        name: "claude-haiku-5-5",
        thinks: ThinkingSupport::UnlessDisabled,
        can_be_forced: true,
        ..NEW
    },
    FakeAnthropicModel {
        name: "claude-sonnet-5-5",
        thinks: ThinkingSupport::UnlessBetweenTools,
        ..NEW
    },
    FakeAnthropicModel { name: "claude-opus-5-5", ..NEW },
    FakeAnthropicModel { name: "claude-fable-5-1", ..NEW },
    FakeAnthropicModel { name: "claude-fable-5", can_be_forced: true, binds: false, ..NEW },
    FakeAnthropicModel {
        name: "claude-opus-5",
        thinks: ThinkingSupport::UnlessDisabled,
        can_be_forced: true,
        binds: false,
        ..NEW
    },
    FakeAnthropicModel {
        name: "claude-sonnet-5",
        thinks: ThinkingSupport::UnlessDisabled,
        ..MIDDLE
    },
    FakeAnthropicModel { name: "claude-opus-4-8", takes_system_messages: true, ..MIDDLE },
    FakeAnthropicModel { name: "claude-opus-4-7", cache_min: 2_048, ..MIDDLE },
    FakeAnthropicModel { name: "claude-opus-4-6", samples: true, cache_min: 4_096, ..MIDDLE },
    FakeAnthropicModel { name: "claude-haiku-4-5", cache_min: 4_096, ..OLD },
    FakeAnthropicModel { name: "claude-sonnet-4-5", ..OLD },
];

/// Finds a model. Ignores a date at the end of the name.
pub(super) fn find_model(name: &str) -> Option<&'static FakeAnthropicModel> {
    let undated = match name.rsplit_once('-') {
        Some((name, date)) if date.len() == 8 => name,
        Some(_) | None => name,
    };
    MODELS.iter().find(|model| model.name == undated)
}

/// Returns the list of models.
pub(super) fn models_json() -> Value {
    let supported = json!({ "supported": true });
    let data: Vec<Value> = MODELS
        .iter()
        .map(|model| {
            json!({ "type": "model", "id": model.name, "display_name": model.name,
                "created_at": "2026-01-01T00:00:00Z", "max_input_tokens": model.window,
                "max_tokens": model.output,
                "capabilities": { "image_input": supported, "pdf_input": supported } })
        })
        .collect();
    let id = |model: Option<&FakeAnthropicModel>| model.map(|model| model.name);
    json!({ "data": data, "has_more": false, "first_id": id(MODELS.first()),
        "last_id": id(MODELS.last()) })
}
