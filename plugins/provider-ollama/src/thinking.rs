//! Configures how much a model thinks, with the server's names. Pure.

use jaato_plugin_sdk::serde_json::{Value, json};
use jaato_plugin_sdk::types::{CompletionRequest, Effort};
use jaato_plugin_sdk::{Error, ErrorKind, Result};

use crate::facts::OllamaModelFacts;

/// Writes the field `think`. With `None` the server decides, and a model that can think does.
///
/// Levels are used only for models that accept nothing else. For other models the server knows only
/// on and off, and older servers refuse any other value.
///
/// # Errors
/// `configuration` if thinking is requested from a model that cannot think.
pub(crate) fn think_field(
    request: &CompletionRequest,
    facts: &OllamaModelFacts,
) -> Result<Option<Value>> {
    let Some(effort) = request.options.effort.filter(|effort| *effort != Effort::Unknown) else {
        return Ok(None);
    };
    if facts.has_capability("thinking") == Some(false) {
        if effort == Effort::None {
            return Ok(None);
        }
        let text = format!("the model `{}` does not accept the option `effort`", request.model);
        return Err(Error::new(ErrorKind::Configuration, text)
            .with_hint("leave it out, or use a model that can think"));
    }
    Ok(match (facts.thinks_by_levels, effort) {
        (true, Effort::None | Effort::Minimal | Effort::Low) => Some(json!("low")),
        (true, Effort::Medium) => Some(json!("medium")),
        (true, Effort::High | Effort::Max) => Some(json!("high")),
        (false, Effort::None) => Some(json!(false)),
        (false, _) => Some(json!(true)),
        (true, Effort::Unknown) => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn think_value(effort: &str, facts: &OllamaModelFacts) -> Result<Option<Value>> {
        let mut request = CompletionRequest::new("m", Vec::new());
        request.options.effort = jaato_plugin_sdk::serde_json::from_value(json!(effort)).ok();
        think_field(&request, facts)
    }

    fn model_facts(capabilities: &[&str], thinks_by_levels: bool) -> OllamaModelFacts {
        let capabilities = capabilities.iter().map(|name| (*name).to_owned()).collect();
        OllamaModelFacts {
            capabilities: Some(capabilities),
            thinks_by_levels,
            ..OllamaModelFacts::default()
        }
    }

    #[test]
    fn effort_becomes_on_or_off_or_a_level_by_model() {
        let (thinks, levels) =
            (model_facts(&["thinking"], false), model_facts(&["thinking"], true));
        for (effort, on, level) in [
            ("none", json!(false), json!("low")),
            ("minimal", json!(true), json!("low")),
            ("low", json!(true), json!("low")),
            ("medium", json!(true), json!("medium")),
            ("high", json!(true), json!("high")),
            ("max", json!(true), json!("high")),
        ] {
            assert_eq!(think_value(effort, &thinks), Ok(Some(on.clone())), "{effort}");
            assert_eq!(think_value(effort, &OllamaModelFacts::default()), Ok(Some(on)), "{effort}");
            assert_eq!(think_value(effort, &levels), Ok(Some(level)), "{effort}");
        }
        assert_eq!(think_value("telepathy", &thinks), Ok(None));
    }

    #[test]
    fn effort_is_refused_for_a_model_without_thinking() {
        let facts = model_facts(&["completion"], false);
        assert_eq!(think_value("none", &facts), Ok(None));
        let error = think_value("low", &facts).unwrap_err();
        assert_eq!(error.message, "the model `m` does not accept the option `effort`");
    }
}
