//! Differences between servers of chat completions, as data.

use super::ids::CallIdFormat;
use super::request_style::ChatRequestStyle;

/// How a server differs from most others. A plugin keeps a table of them:
/// `ChatServerQuirks { any_tool: "any", ..ChatServerQuirks::COMMON }`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChatServerQuirks {
    /// The field for the most output tokens.
    pub max_tokens_field: &'static str,
    /// The field for the seed, or `None` if the server rejects it.
    pub seed_field: Option<&'static str>,
    /// The field for the key of the prompt cache, if the server has one.
    pub session_key_field: Option<&'static str>,
    /// The word for the highest reasoning effort.
    pub max_effort: &'static str,
    /// The word for a required tool call.
    pub any_tool: &'static str,
    /// Whether a stream reports its usage only on request.
    pub asks_for_usage: bool,
    /// The name prefixes of models whose system role is called `developer`.
    pub developer_models: &'static [&'static str],
    /// The accepted form of call ids.
    pub call_ids: CallIdFormat,
    /// Fields to add to a request with tools or an output schema: name and JSON.
    pub fields_beside_tools: &'static [(&'static str, &'static str)],
    /// The habits that are known before any refusal.
    pub habits: ChatRequestStyle,
}

impl ChatServerQuirks {
    /// The settings for nearly all servers, without any field that a server could reject as
    /// unknown.
    pub const COMMON: Self = Self {
        max_tokens_field: "max_tokens",
        seed_field: Some("seed"),
        session_key_field: None,
        max_effort: "high",
        any_tool: "required",
        asks_for_usage: true,
        developer_models: &[],
        call_ids: CallIdFormat::AsTheyAre,
        fields_beside_tools: &[],
        habits: ChatRequestStyle::COMMON,
    };

    /// Returns the role of the system prompt for a model.
    pub fn system_role(&self, model: &str) -> &'static str {
        let is_developers = self.developer_models.iter().any(|it| is_in_model_family(model, it));
        if is_developers { "developer" } else { "system" }
    }
}

/// Returns true if a model belongs to the family whose names have this prefix.
pub fn is_in_model_family(name: &str, beginning: &str) -> bool {
    // A fine-tuned model is named `ft:BASE:…`.
    let name = name.strip_prefix("ft:").unwrap_or(name);
    // `gpt-4` is not a prefix of `gpt-45`, and `o1` not of `o10`.
    let rest = name.strip_prefix(beginning);
    rest.is_some_and(|rest| !rest.starts_with(|first: char| first.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn model_family_is_recognized_by_its_name_prefix() {
        for (name, beginning, expected) in [
            ("gpt-5", "gpt-5", true),
            ("gpt-5.2-codex", "gpt-5", true),
            ("ft:gpt-4o:us", "gpt-4o", true),
            ("gpt-45", "gpt-4", false),
            ("o10", "o1", false),
            ("my-gpt-5", "gpt-5", false),
        ] {
            assert_eq!(is_in_model_family(name, beginning), expected, "{name}");
        }
    }

    #[test]
    fn system_role_depends_on_the_model() {
        let quirks = ChatServerQuirks { developer_models: &["o1"], ..ChatServerQuirks::COMMON };
        assert_eq!(
            (quirks.system_role("o1"), quirks.system_role("gpt-4o")),
            ("developer", "system")
        );
    }
}
