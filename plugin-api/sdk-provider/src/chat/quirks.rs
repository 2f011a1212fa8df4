//! What servers of chat completions want differently from most, as data.

use super::habits::Habits;
use super::ids::CallIds;

/// What a server wants differently from most. A plugin keeps a table of them:
/// `Quirks { any_tool: "any", ..Quirks::COMMON }`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quirks {
    /// The field for the most tokens of an answer.
    pub max_tokens_field: &'static str,
    /// The field for the seed; `None` where it is refused.
    pub seed_field: Option<&'static str>,
    /// The field for the key by which a cache of prompts is found, where there is one.
    pub session_key_field: Option<&'static str>,
    /// The word for as much thinking as the model can do.
    pub max_effort: &'static str,
    /// The word for a tool call that must be made.
    pub any_tool: &'static str,
    /// Whether a stream tells what it cost only where it is asked to.
    pub asks_for_usage: bool,
    /// The beginnings of the names of models that call the system's role `developer`.
    pub developer_models: &'static [&'static str],
    /// What ids of calls may look like.
    pub call_ids: CallIds,
    /// Fields that go with a request that has tools or an answer's schema: name and JSON.
    pub fields_beside_tools: &'static [(&'static str, &'static str)],
    /// What is known of the server before it refuses anything.
    pub habits: Habits,
}

impl Quirks {
    /// What nearly every server takes: nothing that one could refuse as unknown.
    pub const COMMON: Self = Self {
        max_tokens_field: "max_tokens",
        seed_field: Some("seed"),
        session_key_field: None,
        max_effort: "high",
        any_tool: "required",
        asks_for_usage: true,
        developer_models: &[],
        call_ids: CallIds::AsTheyAre,
        fields_beside_tools: &[],
        habits: Habits::COMMON,
    };

    /// Names the role of the system's text for a model.
    pub fn system_role(&self, model: &str) -> &'static str {
        let is_developers = self.developer_models.iter().any(|it| is_of_family(model, it));
        if is_developers { "developer" } else { "system" }
    }
}

/// Tells whether a model is of a family that is told by the beginning of its name.
pub fn is_of_family(name: &str, beginning: &str) -> bool {
    // A model that somebody fine-tuned is `ft:BASE:…`.
    let name = name.strip_prefix("ft:").unwrap_or(name);
    // `gpt-4` is not the beginning of `gpt-45`, nor `o1` of `o10`.
    let rest = name.strip_prefix(beginning);
    rest.is_some_and(|rest| !rest.starts_with(|first: char| first.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_is_told_by_the_beginning_of_a_name() {
        for (name, beginning, expected) in [
            ("gpt-5", "gpt-5", true),
            ("gpt-5.2-codex", "gpt-5", true),
            ("ft:gpt-4o:us", "gpt-4o", true),
            ("gpt-45", "gpt-4", false),
            ("o10", "o1", false),
            ("my-gpt-5", "gpt-5", false),
        ] {
            assert_eq!(is_of_family(name, beginning), expected, "{name}");
        }
    }

    #[test]
    fn the_systems_role_is_the_models() {
        let quirks = Quirks { developer_models: &["o1"], ..Quirks::COMMON };
        assert_eq!(
            (quirks.system_role("o1"), quirks.system_role("gpt-4o")),
            ("developer", "system")
        );
    }
}
