//! What the models of each publisher want differently, as data.

use jaato_plugin_sdk_provider::chat::{CallIds, Habits, Quirks, ReasoningSent, is_of_family};

/// What this provider honours of a request's options, by their names there.
pub(crate) const OPTIONS: [&str; 10] = [
    "max_output_tokens",
    "temperature",
    "stream",
    "effort",
    "tool_choice",
    "output_schema",
    "stop",
    "seed",
    "extra_body",
    "extra_headers",
];

/// OpenAI's models that reason refuse `max_tokens`.
const REASONING: [&str; 5] =
    ["openai/o1", "openai/o3", "openai/o4", "openai/gpt-5", "openai/gpt-6"];

const OPENAI: Quirks = Quirks {
    max_tokens_field: "max_completion_tokens",
    call_ids: CallIds::Plain(40),
    ..Quirks::COMMON
};

const MISTRAL: Quirks = Quirks {
    call_ids: CallIds::Short(9),
    habits: Habits { reasoning: ReasoningSent::Nowhere, ..Habits::COMMON },
    ..Quirks::COMMON
};

/// Tells what a model wants; its name is `publisher/name`.
pub(crate) fn quirks(model: &str) -> &'static Quirks {
    if REASONING.iter().any(|beginning| is_of_family(model, beginning)) {
        &OPENAI
    } else if model.starts_with("mistral-ai/") {
        &MISTRAL
    } else {
        &Quirks::COMMON
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_publisher_tells_what_its_models_want() {
        for (model, expected) in [
            ("openai/o4-mini", &OPENAI),
            ("openai/gpt-5-mini", &OPENAI),
            ("openai/gpt-4.1", &Quirks::COMMON),
            ("mistral-ai/mistral-medium-2505", &MISTRAL),
            ("deepseek/deepseek-v3-0324", &Quirks::COMMON),
        ] {
            assert_eq!(quirks(model), expected, "{model}");
        }
    }
}
