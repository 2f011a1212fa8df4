//! The models and their features.

use serde_json::{Map, Value, json};

/// A model.
#[derive(Debug, PartialEq)]
pub(super) struct FakeGoogleModel {
    pub(super) name: &'static str,
    pub(super) generation: (u32, u32),
    pub(super) thinking: FakeGoogleThinking,
    pub(super) window: u64,
}

/// How its thinking can be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FakeGoogleThinking {
    Never,
    Budget { min: i64, max: i64, can_be_off: bool, by_default: bool },
    Levels(&'static [&'static str]),
}

const WINDOW: u64 = 1_048_576;

const fn new_model(
    name: &'static str,
    generation: (u32, u32),
    thinking: FakeGoogleThinking,
) -> FakeGoogleModel {
    FakeGoogleModel { name, generation, thinking, window: WINDOW }
}

const MODELS: [FakeGoogleModel; 11] = [
    new_model("gemini-4-argon", (4, 0), FakeGoogleThinking::Levels(&["LOW", "MEDIUM", "HIGH"])),
    new_model("gemini-3.8-flash", (3, 8), FakeGoogleThinking::Levels(&["LOW", "MEDIUM", "HIGH"])),
    new_model(
        "gemini-3.5-flash",
        (3, 5),
        FakeGoogleThinking::Levels(&["MINIMAL", "LOW", "MEDIUM", "HIGH"]),
    ),
    new_model(
        "gemini-3.1-pro-preview",
        (3, 1),
        FakeGoogleThinking::Levels(&["LOW", "MEDIUM", "HIGH"]),
    ),
    new_model("gemini-3-pro-preview", (3, 0), FakeGoogleThinking::Levels(&["LOW", "HIGH"])),
    new_model(
        "gemini-2.5-pro",
        (2, 5),
        FakeGoogleThinking::Budget { min: 128, max: 32_768, can_be_off: false, by_default: true },
    ),
    new_model(
        "gemini-2.5-flash",
        (2, 5),
        FakeGoogleThinking::Budget { min: 1, max: 24_576, can_be_off: true, by_default: true },
    ),
    new_model(
        "gemini-2.5-flash-lite",
        (2, 5),
        FakeGoogleThinking::Budget { min: 512, max: 24_576, can_be_off: true, by_default: false },
    ),
    new_model("gemini-2.0-flash", (2, 0), FakeGoogleThinking::Never),
    FakeGoogleModel {
        window: 131_072,
        ..new_model("gemma-3-27b-it", (0, 0), FakeGoogleThinking::Never)
    },
    FakeGoogleModel {
        window: 2_048,
        ..new_model("gemini-embedding-001", (0, 0), FakeGoogleThinking::Never)
    },
];

/// The model that only embeds.
const EMBEDS: &str = "gemini-embedding-001";

pub(super) fn find_model(name: &str) -> Option<&'static FakeGoogleModel> {
    MODELS.iter().find(|model| model.name == name && name != EMBEDS)
}

impl FakeGoogleModel {
    /// Returns true if the model refuses unsigned calls.
    pub(super) fn should_check_signatures(&self) -> bool {
        self.generation.0 >= 3
    }

    pub(super) fn has_call_ids(&self) -> bool {
        self.generation.0 >= 3
    }

    pub(super) fn can_take_system_text(&self) -> bool {
        self.generation.0 > 0
    }

    pub(super) fn can_take_tools(&self) -> bool {
        self.generation.0 > 0
    }

    /// Returns true if the model thinks about this request, and therefore signs.
    pub(super) fn should_sign_thoughts(&self, body: &Map<String, Value>) -> bool {
        let budget = body.get("generationConfig").map(|it| &it["thinkingConfig"]["thinkingBudget"]);
        match (self.thinking, budget.and_then(Value::as_i64)) {
            (FakeGoogleThinking::Never, _) => false,
            (FakeGoogleThinking::Levels(_), _) => true,
            (FakeGoogleThinking::Budget { by_default, .. }, None) => by_default,
            (FakeGoogleThinking::Budget { .. }, Some(budget)) => budget != 0,
        }
    }
}

/// Returns AI Studio's list.
pub(super) fn models_json() -> Value {
    let listed = MODELS.iter().map(|model| {
        let method = if model.name == EMBEDS { "embedContent" } else { "generateContent" };
        json!({ "name": format!("models/{}", model.name), "displayName": model.name,
            "inputTokenLimit": model.window, "outputTokenLimit": 65_536,
            "supportedGenerationMethods": [method, "countTokens"],
            "thinking": model.thinking != FakeGoogleThinking::Never })
    });
    json!({ "models": listed.collect::<Vec<_>>() })
}

/// Returns Vertex AI's list.
pub(super) fn publisher_models_json() -> Value {
    let listed = MODELS.iter().map(|model| {
        json!({ "name": format!("publishers/google/models/{}", model.name), "versionId": "default" })
    });
    json!({ "publisherModels": listed.collect::<Vec<_>>() })
}
