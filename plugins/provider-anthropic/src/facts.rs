//! Describes the allowed content of a request, by the model's name. Pure.
//!
//! An unlisted Claude model is treated as the newest, because the vendor adds models more often
//! than it changes the rules.

/// How a model's thinking is configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnthropicThinking {
    /// The model never thinks.
    Never,
    /// The model thinks within a token budget. Off by default.
    Budget,
    /// The model thinks as much as a question needs. Off by default.
    WhenAsked,
    /// The model thinks as much as a question needs. On by default.
    UnlessDisabled,
    /// The model thinks as much as a question needs, and always at least between tool calls.
    AtLeastBetweenTools,
    /// The model always thinks as much as a question needs.
    Always,
}

/// The allowed content of a request to a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AnthropicModelFacts {
    pub(crate) thinking: AnthropicThinking,
    /// Whether the model needs a header to think between tool calls.
    pub(crate) interleaves_by_header: bool,
    /// Whether the model accepts a temperature.
    pub(crate) samples: bool,
    /// Whether the model can be forced to call a tool.
    pub(crate) can_be_forced: bool,
    /// Whether the model's thoughts are valid only after an unchanged history.
    pub(crate) binds_thoughts: bool,
    /// Whether the tools may change during a conversation.
    pub(crate) changes_tools: bool,
    /// The maximum number of tokens in an answer.
    pub(crate) output_tokens_max: u32,
    /// The context window in tokens, if known.
    pub(crate) context_limit: Option<u64>,
    /// Whether the model accepts images and PDF files, if known.
    pub(crate) sees: Option<AnthropicMediaSupport>,
}

impl AnthropicModelFacts {
    /// Returns true if this is one of the vendor's own models.
    pub(crate) fn is_known(&self) -> bool {
        self.context_limit.is_some()
    }
}

/// The media that a model accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnthropicMediaSupport {
    Images,
    ImagesAndFiles,
}

/// The model families.
const FAMILIES: [&str; 6] = ["haiku", "sonnet", "opus", "fable", "mythos", "instant"];

/// Models up to a version, of one family or of all. The first matching row counts, and a model
/// without a match is one of the newest. From the vendor's pages on models, thinking, effort,
/// prefix checks and mid-conversation tool changes, as of November 2026. A version is `10 * major +
/// minor`.
const TABLE: [(Option<&str>, u32, AnthropicModelFacts); 14] = [
    (
        None,
        30,
        AnthropicModelFacts {
            output_tokens_max: 4_096,
            sees: Some(AnthropicMediaSupport::Images),
            ..FIRST
        },
    ),
    (None, 35, FIRST),
    (
        None,
        37,
        AnthropicModelFacts {
            thinking: AnthropicThinking::Budget,
            output_tokens_max: 64_000,
            ..FIRST
        },
    ),
    (Some("opus"), 41, AnthropicModelFacts { output_tokens_max: 32_000, ..BUDGET }),
    (None, 45, BUDGET),
    (Some("sonnet"), 46, AnthropicModelFacts { output_tokens_max: 64_000, ..WHEN_ASKED }),
    (None, 46, WHEN_ASKED),
    (None, 47, AnthropicModelFacts { samples: false, ..WHEN_ASKED }),
    (None, 49, AnthropicModelFacts { samples: false, changes_tools: true, ..WHEN_ASKED }),
    (
        Some("sonnet"),
        50,
        AnthropicModelFacts {
            thinking: AnthropicThinking::UnlessDisabled,
            changes_tools: false,
            ..FIFTH
        },
    ),
    (
        Some("opus"),
        50,
        AnthropicModelFacts { thinking: AnthropicThinking::UnlessDisabled, ..FIFTH },
    ),
    (None, 50, FIFTH),
    (
        Some("haiku"),
        55,
        AnthropicModelFacts {
            thinking: AnthropicThinking::UnlessDisabled,
            can_be_forced: true,
            ..NEWEST
        },
    ),
    (
        Some("sonnet"),
        55,
        AnthropicModelFacts { thinking: AnthropicThinking::AtLeastBetweenTools, ..NEWEST },
    ),
];

/// The 3.5 models.
const FIRST: AnthropicModelFacts = AnthropicModelFacts {
    thinking: AnthropicThinking::Never,
    interleaves_by_header: false,
    samples: true,
    can_be_forced: true,
    binds_thoughts: false,
    changes_tools: false,
    output_tokens_max: 8_192,
    context_limit: Some(200_000),
    sees: Some(AnthropicMediaSupport::ImagesAndFiles),
};

/// The models 4.0 to 4.5.
const BUDGET: AnthropicModelFacts = AnthropicModelFacts {
    thinking: AnthropicThinking::Budget,
    interleaves_by_header: true,
    output_tokens_max: 64_000,
    ..FIRST
};

/// The models 4.6 to 4.8.
const WHEN_ASKED: AnthropicModelFacts = AnthropicModelFacts {
    thinking: AnthropicThinking::WhenAsked,
    output_tokens_max: 128_000,
    context_limit: Some(1_000_000),
    ..FIRST
};

/// The 5.0 models.
const FIFTH: AnthropicModelFacts = AnthropicModelFacts {
    thinking: AnthropicThinking::Always,
    samples: false,
    changes_tools: true,
    ..WHEN_ASKED
};

/// The models 5.1 and later.
const NEWEST: AnthropicModelFacts =
    AnthropicModelFacts { can_be_forced: false, binds_thoughts: true, ..FIFTH };

/// Models of other vendors behind servers with Anthropic's API: the features that all of them
/// support.
const OTHERS: AnthropicModelFacts = AnthropicModelFacts {
    thinking: AnthropicThinking::Budget,
    context_limit: None,
    sees: None,
    ..FIRST
};

/// Returns what a request to the model with this name may contain.
pub(crate) fn facts_of_model(model: &str) -> AnthropicModelFacts {
    let model = model.to_lowercase();
    let Some((_, name)) = model.split_once("claude") else { return OTHERS };
    let (family, version) = parse_family_and_version(name);
    let fits = |(of_family, up_to, _): &&(Option<&str>, u32, AnthropicModelFacts)| {
        of_family.is_none_or(|it| Some(it) == family) && version.is_some_and(|it| it <= *up_to)
    };
    TABLE.iter().find(fits).map_or(NEWEST, |(_, _, facts)| *facts)
}

/// Reads family and version: `-opus-4-5-20251101`, `-3-5-sonnet-latest`, `-opus-4.5@2025`.
fn parse_family_and_version(name: &str) -> (Option<&'static str>, Option<u32>) {
    let words = || name.split(['-', '.', '@', ':', '_', '/']);
    let family = FAMILIES.into_iter().find(|family| words().any(|word| word == *family));
    let is_number =
        |word: &&str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    // A longer number is a date.
    let numbers = words().filter(is_number).take_while(|word| word.len() <= 2);
    let mut numbers = numbers.filter_map(|word| word.parse::<u32>().ok());
    let version = numbers.next().map(|major| 10 * major + numbers.next().unwrap_or(0).min(9));
    (family, version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn model_names_of_every_shape_are_parsed() {
        for (name, expected) in [
            ("-opus-5-5", (Some("opus"), Some(55))),
            ("-haiku-4-5-20251001", (Some("haiku"), Some(45))),
            ("-3-5-sonnet-20241022", (Some("sonnet"), Some(35))),
            ("-opus-4-20250514", (Some("opus"), Some(40))),
            ("-opus-4-5@20251101", (Some("opus"), Some(45))),
            ("-sonnet-4-5-20250929-v1:0", (Some("sonnet"), Some(45))),
            ("-opus-4.7", (Some("opus"), Some(47))),
            ("-2.1", (None, Some(21))),
            ("-next", (None, None)),
        ] {
            assert_eq!(parse_family_and_version(name), expected, "{name}");
        }
    }

    #[test]
    fn unknown_claude_model_gets_the_facts_of_the_newest() {
        for (model, expected) in [
            ("claude-3-haiku-20240307", AnthropicThinking::Never),
            ("claude-3-7-sonnet-latest", AnthropicThinking::Budget),
            ("claude-haiku-4-5", AnthropicThinking::Budget),
            ("claude-opus-4-6", AnthropicThinking::WhenAsked),
            ("claude-opus-4-8", AnthropicThinking::WhenAsked),
            ("claude-sonnet-5", AnthropicThinking::UnlessDisabled),
            ("claude-opus-5", AnthropicThinking::UnlessDisabled),
            ("claude-fable-5", AnthropicThinking::Always),
            ("claude-fable-5-1", AnthropicThinking::Always),
            ("claude-sonnet-5-5", AnthropicThinking::AtLeastBetweenTools),
            ("claude-haiku-5-5", AnthropicThinking::UnlessDisabled),
            ("claude-opus-5-5", AnthropicThinking::Always),
            ("us.anthropic.claude-opus-5-5-v1:0", AnthropicThinking::Always),
            ("claude-saga-7", AnthropicThinking::Always),
            ("kimi-k2", AnthropicThinking::Budget),
        ] {
            assert_eq!(facts_of_model(model).thinking, expected, "{model}");
        }
        assert_eq!(facts_of_model("claude-saga-7"), NEWEST);
        assert_eq!(facts_of_model("glm-5"), OTHERS);
    }

    #[test]
    fn model_facts_match_the_vendors_documentation() {
        let takes = |model: &str| {
            let facts = facts_of_model(model);
            (facts.samples, facts.can_be_forced, facts.binds_thoughts, facts.changes_tools)
        };
        assert_eq!(takes("claude-opus-4-6"), (true, true, false, false));
        assert_eq!(takes("claude-opus-4-7"), (false, true, false, false));
        assert_eq!(takes("claude-opus-4-8"), (false, true, false, true));
        assert_eq!(takes("claude-sonnet-5"), (false, true, false, false));
        assert_eq!(takes("claude-fable-5"), (false, true, false, true));
        assert_eq!(takes("claude-haiku-5-5"), (false, true, true, true));
        assert_eq!(takes("claude-mythos-5-1"), (false, false, true, true));
        let (sonnet, opus) =
            (facts_of_model("claude-sonnet-4-6"), facts_of_model("claude-opus-4-1"));
        assert_eq!((sonnet.output_tokens_max, opus.output_tokens_max), (64_000, 32_000));
    }
}
