//! Configures how much a model thinks, with the vendor's names. Pure.

use jaato_plugin_sdk::serde_json::{Value, json};
use jaato_plugin_sdk::types::Effort;

use crate::facts::{AnthropicModelFacts, AnthropicThinking};

/// The beta header that allows dropping thoughts if the history before them changed.
pub(crate) const BINDING_BETA: &str = "thinking-binding-controls-2026-08-01";

/// The beta header with which older models think between tool calls.
pub(crate) const INTERLEAVED_BETA: &str = "interleaved-thinking-2025-05-14";

/// The smallest token budget.
const BUDGET_MIN: u32 = 1_024;

/// The thinking settings of a request.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct AnthropicThinkingSettings {
    /// The field `thinking`.
    pub(crate) thinking: Option<Value>,
    /// The value of the effort field.
    pub(crate) effort: Option<&'static str>,
    /// Whether the model may think.
    pub(crate) is_on: bool,
    /// Beta headers that these settings need.
    pub(crate) betas: Vec<&'static str>,
}

/// Returns the thinking settings. `max_tokens` limits thoughts and answer together.
pub(crate) fn thinking_settings(
    facts: &AnthropicModelFacts,
    effort: Option<Effort>,
    max_tokens: u32,
) -> AnthropicThinkingSettings {
    let effort = effort.filter(|effort| *effort != Effort::Unknown);
    match (facts.thinking, effort) {
        (AnthropicThinking::Never, _) => AnthropicThinkingSettings::default(),
        (AnthropicThinking::Budget, effort) => thinking_by_budget(facts, effort, max_tokens),
        (AnthropicThinking::WhenAsked, None | Some(Effort::None)) => {
            AnthropicThinkingSettings::default()
        }
        (AnthropicThinking::UnlessDisabled, Some(Effort::None)) => {
            settings_without_thinking("disabled")
        }
        (AnthropicThinking::AtLeastBetweenTools, Some(Effort::None)) => {
            settings_without_thinking("between_tools")
        }
        (
            AnthropicThinking::WhenAsked
            | AnthropicThinking::UnlessDisabled
            | AnthropicThinking::AtLeastBetweenTools
            | AnthropicThinking::Always,
            effort,
        ) => adaptive_settings(facts, effort),
    }
}

/// Returns settings for a model that must not think. The vendor accepts no other field next to this
/// one, and no effort above `high`.
fn settings_without_thinking(word: &str) -> AnthropicThinkingSettings {
    AnthropicThinkingSettings {
        thinking: Some(json!({ "type": word })),
        ..AnthropicThinkingSettings::default()
    }
}

/// Returns settings for adaptive thinking. They request a summary of the thoughts, because
/// otherwise the user would see nothing for minutes.
fn adaptive_settings(
    facts: &AnthropicModelFacts,
    effort: Option<Effort>,
) -> AnthropicThinkingSettings {
    let mut thinking = json!({ "type": "adaptive", "display": "summarized" });
    let mut betas = Vec::new();
    if facts.binds_thoughts {
        thinking["block_binding"] = json!({ "prefix_mismatch_behavior": "drop_block" });
        betas.push(BINDING_BETA);
    }
    let effort = effort.and_then(effort_name);
    AnthropicThinkingSettings { thinking: Some(thinking), effort, is_on: true, betas }
}

fn effort_name(effort: Effort) -> Option<&'static str> {
    Some(match effort {
        // A model that always thinks gets the lowest effort.
        Effort::None | Effort::Minimal | Effort::Low => "low",
        Effort::Medium => "medium",
        Effort::High => "high",
        Effort::Max => "max",
        Effort::Unknown => return None,
    })
}

fn thinking_by_budget(
    facts: &AnthropicModelFacts,
    effort: Option<Effort>,
    max_tokens: u32,
) -> AnthropicThinkingSettings {
    let wanted = match effort {
        None | Some(Effort::None | Effort::Unknown) => return AnthropicThinkingSettings::default(),
        Some(Effort::Minimal) => BUDGET_MIN,
        Some(Effort::Low) => 4_096,
        Some(Effort::Medium) => 10_000,
        Some(Effort::High) => 20_000,
        Some(Effort::Max) => 32_000,
    };
    // The answer needs some of the tokens, and the vendor refuses a smaller budget.
    let budget = wanted.min(max_tokens - max_tokens / 4);
    if budget < BUDGET_MIN {
        return AnthropicThinkingSettings::default();
    }
    let thinking = json!({ "type": "enabled", "budget_tokens": budget });
    let betas = if facts.interleaves_by_header { vec![INTERLEAVED_BETA] } else { Vec::new() };
    AnthropicThinkingSettings {
        thinking: Some(thinking),
        is_on: true,
        betas,
        ..AnthropicThinkingSettings::default()
    }
}
