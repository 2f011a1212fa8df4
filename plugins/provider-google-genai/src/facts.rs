//! Describes the allowed content of a request, by the model's name. Pure.
//!
//! Older families are known by name. An unlisted model is treated as the newest, because the vendor
//! adds models more often than it changes the rules.

/// How a model's thinking is configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GoogleThinking {
    /// The request does not mention thinking. The model does not think, or decides itself.
    Unsaid,
    /// The model thinks within a token budget.
    Budget {
        /// The smallest budget.
        min: u32,
        /// The largest budget.
        max: u32,
        /// Whether thinking can be switched off.
        can_be_off: bool,
        /// Whether the model thinks by default.
        by_default: bool,
    },
    /// The model thinks at a named level.
    Level {
        /// Whether the model supports `MINIMAL`.
        has_minimal: bool,
        /// Whether the model supports `MEDIUM`.
        has_medium: bool,
    },
}

/// The media that a model accepts in addition to text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GoogleMediaSupport {
    Nothing,
    Images,
    ImagesAndFiles,
}

/// The allowed content of a request to a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GoogleModelFacts {
    pub(crate) thinking: GoogleThinking,
    /// Whether the model refuses a history with unsigned calls.
    pub(crate) checks_signatures: bool,
    /// Whether the model gives its calls ids and wants them back with the results.
    pub(crate) gives_ids: bool,
    /// Whether the model accepts a separate system text.
    pub(crate) takes_system: bool,
    /// Whether a tool result may contain images.
    pub(crate) sees_in_results: bool,
    /// When an answer can be constrained to a schema.
    pub(crate) schemas: SchemaConstraintSupport,
    pub(crate) context_limit: Option<u64>,
    pub(crate) sees: GoogleMediaSupport,
}

/// When an answer can be constrained to a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SchemaConstraintSupport {
    Never,
    /// Only if the request has no tools.
    WithoutTools,
    Always,
}

/// The context window of most models since 1.5.
const WINDOW: u64 = 1_048_576;

const NEWEST: GoogleModelFacts = GoogleModelFacts {
    thinking: GoogleThinking::Level { has_minimal: false, has_medium: true },
    checks_signatures: true,
    gives_ids: true,
    takes_system: true,
    sees_in_results: true,
    schemas: SchemaConstraintSupport::Always,
    context_limit: Some(WINDOW),
    sees: GoogleMediaSupport::ImagesAndFiles,
};

/// The models before the third generation.
const OLDER: GoogleModelFacts = GoogleModelFacts {
    thinking: GoogleThinking::Unsaid,
    checks_signatures: false,
    gives_ids: false,
    sees_in_results: false,
    schemas: SchemaConstraintSupport::WithoutTools,
    ..NEWEST
};

/// Returns the facts about a model.
pub(crate) fn facts_of_model(model: &str) -> GoogleModelFacts {
    let name = model.rsplit('/').next().unwrap_or(model);
    if let Some(rest) = name.strip_prefix("gemma-") {
        return gemma_facts(rest);
    }
    let Some(rest) = name.strip_prefix("gemini-") else { return NEWEST };
    let is = |word: &str| rest.split('-').any(|one| one == word);
    let version = match rest {
        "pro" | "pro-vision" | "ultra" => Some((1, 0)),
        rest => model_version(rest),
    };
    let is_flash = is("flash");
    let facts = match version {
        None => NEWEST,
        Some((1, 0)) => GoogleModelFacts {
            context_limit: Some(32_760),
            sees: GoogleMediaSupport::Images,
            ..OLDER
        },
        Some((1, _)) if is("pro") => GoogleModelFacts { context_limit: Some(2 * WINDOW), ..OLDER },
        Some((2, 5..)) => {
            GoogleModelFacts { thinking: thinking_budget(is_flash, is("lite")), ..OLDER }
        }
        Some((..3, _)) => OLDER,
        Some((3, minor)) => {
            // Flash has no `MINIMAL` since 3.7, and the first Pro had no `MEDIUM`.
            let (has_minimal, has_medium) = (is_flash && minor < 7, is_flash || minor > 0);
            GoogleModelFacts {
                thinking: GoogleThinking::Level { has_minimal, has_medium },
                ..NEWEST
            }
        }
        Some(_) => NEWEST,
    };
    // The thinking of image and audio models cannot be configured.
    let speaks = ["image", "tts", "live", "audio"].into_iter().any(is);
    if speaks { GoogleModelFacts { thinking: GoogleThinking::Unsaid, ..facts } } else { facts }
}

fn thinking_budget(is_flash: bool, is_lite: bool) -> GoogleThinking {
    match (is_flash, is_lite) {
        (true, true) => {
            GoogleThinking::Budget { min: 512, max: 24_576, can_be_off: true, by_default: false }
        }
        (true, false) => {
            GoogleThinking::Budget { min: 1, max: 24_576, can_be_off: true, by_default: true }
        }
        (false, _) => {
            GoogleThinking::Budget { min: 128, max: 32_768, can_be_off: false, by_default: true }
        }
    }
}

/// The open models. The first two generations and the smallest model of the third accept only text.
fn gemma_facts(rest: &str) -> GoogleModelFacts {
    let open = GoogleModelFacts { context_limit: None, sees: GoogleMediaSupport::Images, ..OLDER };
    match model_version(rest) {
        Some((..3, _)) => GoogleModelFacts {
            takes_system: false,
            schemas: SchemaConstraintSupport::Never,
            sees: GoogleMediaSupport::Nothing,
            ..open
        },
        Some((3, _)) => {
            let sees = if rest.starts_with("3-1b") {
                GoogleMediaSupport::Nothing
            } else {
                GoogleMediaSupport::Images
            };
            GoogleModelFacts {
                takes_system: false,
                schemas: SchemaConstraintSupport::Never,
                sees,
                ..open
            }
        }
        Some(_) | None => open,
    }
}

/// Reads the version at the start of a name: `2.5-flash`, `3-pro`, `3n-e4b`.
fn model_version(rest: &str) -> Option<(u32, u32)> {
    let (major, rest) = split_leading_number(rest)?;
    let minor = rest.strip_prefix('.').and_then(split_leading_number).map_or(0, |(minor, _)| minor);
    Some((major, minor))
}

/// Splits the number at the start of a text from the rest.
fn split_leading_number(text: &str) -> Option<(u32, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    Some((text[..end].parse().ok()?, &text[end..]))
}

/// Returns true if a model's name is that of a conversation model, for lists that do not say so.
pub(crate) fn is_conversation_model(name: &str) -> bool {
    let is = |word: &str| name.split('-').any(|one| one == word);
    (name.starts_with("gemini-") || name.starts_with("gemma-"))
        && !["embedding", "live", "tts", "audio"].into_iter().any(is)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinking_settings_follow_from_the_model_name() {
        let level = |has_minimal, has_medium| GoogleThinking::Level { has_minimal, has_medium };
        for (name, expected) in [
            ("gemini-2.5-pro", thinking_budget(false, false)),
            ("gemini-2.5-flash", thinking_budget(true, false)),
            ("models/gemini-2.5-flash-lite-preview-09-2025", thinking_budget(true, true)),
            ("gemini-2.5-flash-image", GoogleThinking::Unsaid),
            ("gemini-2.0-flash", GoogleThinking::Unsaid),
            ("gemini-1.5-pro-002", GoogleThinking::Unsaid),
            ("gemini-pro", GoogleThinking::Unsaid),
            ("gemini-3-pro-preview", level(false, false)),
            ("gemini-3.1-pro-preview", level(false, true)),
            ("gemini-3-flash-preview", level(true, true)),
            ("gemini-3.5-flash", level(true, true)),
            ("gemini-3.1-flash-lite", level(true, true)),
            ("gemini-3.7-flash", level(false, true)),
            ("gemini-3.10-flash", level(false, true)),
            ("gemini-4-argon", level(false, true)),
            ("gemini-flash-latest", level(false, true)),
            ("gemini-3-pro-image", GoogleThinking::Unsaid),
            ("gemma-3-27b-it", GoogleThinking::Unsaid),
            ("moon", level(false, true)),
        ] {
            assert_eq!(facts_of_model(name).thinking, expected, "{name}");
        }
    }

    #[test]
    fn other_model_facts_follow_from_the_model_name() {
        let of = |name: &str| {
            let facts = facts_of_model(name);
            (facts.checks_signatures, facts.takes_system, facts.schemas, facts.context_limit)
        };
        let million = Some(1_048_576);
        assert_eq!(of("gemini-4-argon"), (true, true, SchemaConstraintSupport::Always, million));
        assert_eq!(
            of("gemini-2.5-flash"),
            (false, true, SchemaConstraintSupport::WithoutTools, million)
        );
        assert_eq!(
            of("gemini-1.5-pro"),
            (false, true, SchemaConstraintSupport::WithoutTools, Some(2_097_152))
        );
        assert_eq!(
            of("gemini-1.5-flash"),
            (false, true, SchemaConstraintSupport::WithoutTools, million)
        );
        assert_eq!(
            of("gemini-1.0-pro"),
            (false, true, SchemaConstraintSupport::WithoutTools, Some(32_760))
        );
        assert_eq!(of("gemma-3n-e4b-it"), (false, false, SchemaConstraintSupport::Never, None));
        assert_eq!(
            of("gemma-4-31b-it"),
            (false, true, SchemaConstraintSupport::WithoutTools, None)
        );
        let sees = |name: &str| facts_of_model(name).sees;
        assert_eq!(
            (sees("gemma-3-1b-it"), sees("gemma-2-9b")),
            (GoogleMediaSupport::Nothing, GoogleMediaSupport::Nothing)
        );
        assert_eq!(
            (sees("gemma-3-27b-it"), sees("gemma-4-31b-it")),
            (GoogleMediaSupport::Images, GoogleMediaSupport::Images)
        );
    }

    #[test]
    fn models_that_are_not_for_chat_are_left_out() {
        for name in ["gemini-3.8-flash", "gemma-3-27b-it", "gemini-3-pro-image"] {
            assert!(is_conversation_model(name), "{name}");
        }
        for name in ["gemini-embedding-001", "imagen-4.0", "gemini-live-2.5-flash", "veo-3"] {
            assert!(!is_conversation_model(name), "{name}");
        }
    }
}
