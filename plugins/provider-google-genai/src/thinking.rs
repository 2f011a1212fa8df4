//! Configures how much a model thinks, with the vendor's names. Pure.

use jaato_plugin_sdk::serde_json::{Value, json};
use jaato_plugin_sdk::types::Effort;

use crate::facts::{GoogleModelFacts, GoogleThinking};
use crate::request_style::DefaultThinkingField;

/// Writes the field `thinkingConfig`: the amount of thinking, and the request for thoughts, without
/// which the user would see nothing for minutes.
pub(crate) fn thinking_config(
    facts: &GoogleModelFacts,
    effort: Option<Effort>,
    thoughts: DefaultThinkingField,
) -> Option<Value> {
    let effort = effort.filter(|effort| *effort != Effort::Unknown);
    if effort.is_none() && thoughts == DefaultThinkingField::Unsaid {
        return None;
    }
    match (facts.thinking, effort) {
        (GoogleThinking::Unsaid, _) | (GoogleThinking::Budget { by_default: false, .. }, None) => {
            None
        }
        (GoogleThinking::Budget { .. } | GoogleThinking::Level { .. }, None) => {
            Some(thoughts_field())
        }
        (GoogleThinking::Budget { min, max, can_be_off, .. }, Some(effort)) => {
            Some(encode_budget(effort_tokens(effort, max), min, can_be_off))
        }
        (GoogleThinking::Level { has_minimal, has_medium }, Some(effort)) => {
            let mut config = thoughts_field();
            config["thinkingLevel"] = json!(effort_level(effort, has_minimal, has_medium));
            Some(config)
        }
    }
}

fn thoughts_field() -> Value {
    json!({ "includeThoughts": true })
}

/// Writes a budget. A budget of 0 needs no other field, because a model that does not think has no
/// thoughts to show.
fn encode_budget(tokens: u32, min: u32, can_be_off: bool) -> Value {
    if tokens == 0 && can_be_off {
        return json!({ "thinkingBudget": 0 });
    }
    let mut config = thoughts_field();
    config["thinkingBudget"] = json!(tokens.max(min));
    config
}

/// Returns the vendor's own numbers for these efforts.
fn effort_tokens(effort: Effort, max: u32) -> u32 {
    match effort {
        Effort::None => 0,
        Effort::Minimal => 512,
        Effort::Low => 1_024,
        Effort::Medium | Effort::Unknown => 8_192,
        Effort::High => 24_576.min(max),
        Effort::Max => max,
    }
}

/// Returns the level for an effort. A model that always thinks gets its lowest level, and a missing
/// level is replaced by the next higher one.
fn effort_level(effort: Effort, has_minimal: bool, has_medium: bool) -> &'static str {
    match effort {
        Effort::None | Effort::Minimal if has_minimal => "MINIMAL",
        Effort::None | Effort::Minimal | Effort::Low => "LOW",
        Effort::Medium if has_medium => "MEDIUM",
        Effort::Medium | Effort::High | Effort::Max | Effort::Unknown => "HIGH",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts;

    #[track_caller]
    fn check_thinking_config(model: &str, effort: Option<Effort>, expected: &str) {
        let config =
            thinking_config(&facts::facts_of_model(model), effort, DefaultThinkingField::Shown);
        assert_eq!(config.map_or_else(String::new, |config| config.to_string()), expected);
    }

    #[test]
    fn gemini_3_and_later_get_a_thinking_level() {
        let shown = r#"{"includeThoughts":true}"#;
        let level = |word: &str| format!(r#"{{"includeThoughts":true,"thinkingLevel":"{word}"}}"#);
        check_thinking_config("gemini-4-argon", None, shown);
        check_thinking_config("gemini-4-argon", Some(Effort::Unknown), shown);
        check_thinking_config("gemini-4-argon", Some(Effort::None), &level("LOW"));
        check_thinking_config("gemini-3.5-flash", Some(Effort::None), &level("MINIMAL"));
        check_thinking_config("gemini-3.5-flash", Some(Effort::Low), &level("LOW"));
        check_thinking_config("gemini-3-pro-preview", Some(Effort::Medium), &level("HIGH"));
        check_thinking_config("gemini-3.1-pro-preview", Some(Effort::Medium), &level("MEDIUM"));
        check_thinking_config("gemini-3.8-flash", Some(Effort::Max), &level("HIGH"));
    }

    #[test]
    fn older_models_get_a_thinking_budget_or_no_thinking_config() {
        let shown = r#"{"includeThoughts":true}"#;
        let budget =
            |tokens: u32| format!(r#"{{"includeThoughts":true,"thinkingBudget":{tokens}}}"#);
        check_thinking_config("gemini-2.5-pro", None, shown);
        check_thinking_config("gemini-2.5-pro", Some(Effort::None), &budget(128));
        check_thinking_config("gemini-2.5-pro", Some(Effort::Max), &budget(32_768));
        check_thinking_config("gemini-2.5-flash", Some(Effort::None), r#"{"thinkingBudget":0}"#);
        check_thinking_config("gemini-2.5-flash", Some(Effort::High), &budget(24_576));
        check_thinking_config("gemini-2.5-flash-lite", None, "");
        check_thinking_config("gemini-2.5-flash-lite", Some(Effort::Minimal), &budget(512));
        check_thinking_config("gemini-2.0-flash", None, "");
        check_thinking_config("gemini-2.0-flash", Some(Effort::None), "");
    }

    #[test]
    fn thinking_config_is_left_out_by_default_after_a_refusal() {
        let facts = facts::facts_of_model("gemini-4-argon");
        assert_eq!(thinking_config(&facts, None, DefaultThinkingField::Unsaid), None);
        assert!(thinking_config(&facts, Some(Effort::Low), DefaultThinkingField::Unsaid).is_some());
    }
}
