//! A table of the servers' dialects and quirks.

use jaato_plugin_sdk::schemars::{self, JsonSchema};
use jaato_plugin_sdk::serde::{self, Deserialize};
use jaato_plugin_sdk_provider::chat::{
    CallIdFormat, ChatRequestStyle, ChatServerQuirks, ReasoningReplay,
};

/// The dialect of a server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(crate = "serde", rename_all = "lowercase")]
#[schemars(crate = "schemars")]
pub enum OpenAiDialect {
    /// Derived from the host of the base URL.
    #[default]
    Auto,
    /// The subset that nearly every server accepts.
    Common,
    /// OpenAI's.
    OpenAi,
    /// OpenAI's on Azure.
    Azure,
    /// OpenRouter's.
    OpenRouter,
    /// Groq's.
    Groq,
    /// Mistral's.
    Mistral,
    /// DeepSeek's.
    DeepSeek,
    /// xAI's.
    Xai,
    /// Together's.
    Together,
    /// Cerebras'.
    Cerebras,
}

/// The facts about a dialect's server.
#[derive(Debug)]
pub(crate) struct DialectServer {
    pub(crate) dialect: OpenAiDialect,
    /// The server's hosts. An entry that begins with a dot is a suffix.
    pub(crate) hosts: &'static [&'static str],
    /// The server's quirks.
    pub(crate) quirks: ChatServerQuirks,
    /// Whether the Responses API returns summaries of reasoning on request.
    pub(crate) has_summaries: bool,
}

const COMMON: DialectServer = DialectServer {
    dialect: OpenAiDialect::Common,
    hosts: &[],
    quirks: ChatServerQuirks::COMMON,
    has_summaries: false,
};

/// OpenAI's reasoning models refuse `max_tokens` and call the system role `developer`. OpenAI's
/// call ids have at most 40 characters.
const VENDORS: ChatServerQuirks = ChatServerQuirks {
    max_tokens_field: "max_completion_tokens",
    session_key_field: Some("prompt_cache_key"),
    max_effort: "xhigh",
    developer_models: &["o1", "o3", "o4", "gpt-5", "gpt-6", "codex"],
    call_ids: CallIdFormat::Plain(40),
    ..ChatServerQuirks::COMMON
};

const NO_REASONING: ChatRequestStyle =
    ChatRequestStyle { reasoning: ReasoningReplay::Nowhere, ..ChatRequestStyle::COMMON };

/// The table. If a row is wrong, the server's refusal shows it, and `dialect = "common"` helps.
const SERVERS: [DialectServer; 9] = [
    DialectServer {
        dialect: OpenAiDialect::OpenAi,
        hosts: &["api.openai.com"],
        quirks: VENDORS,
        has_summaries: true,
    },
    // A deployment's name does not identify its model, so the system role is `system`, which all
    // models accept.
    DialectServer {
        dialect: OpenAiDialect::Azure,
        hosts: &[".openai.azure.com", ".services.ai.azure.com", ".cognitiveservices.azure.com"],
        quirks: ChatServerQuirks { developer_models: &[], ..VENDORS },
        has_summaries: true,
    },
    // Without `require_parameters`, tools and schemas may be dropped silently.
    DialectServer {
        dialect: OpenAiDialect::OpenRouter,
        hosts: &["openrouter.ai"],
        quirks: ChatServerQuirks {
            max_effort: "xhigh",
            fields_beside_tools: &[("provider", r#"{"require_parameters":true}"#)],
            ..ChatServerQuirks::COMMON
        },
        ..COMMON
    },
    DialectServer {
        dialect: OpenAiDialect::Groq,
        hosts: &["api.groq.com"],
        quirks: ChatServerQuirks { habits: NO_REASONING, ..ChatServerQuirks::COMMON },
        ..COMMON
    },
    // Mistral reports a stream's usage without being asked, and refuses unknown fields.
    DialectServer {
        dialect: OpenAiDialect::Mistral,
        hosts: &["api.mistral.ai"],
        quirks: ChatServerQuirks {
            any_tool: "any",
            seed_field: Some("random_seed"),
            call_ids: CallIdFormat::Short(9),
            asks_for_usage: false,
            habits: NO_REASONING,
            ..ChatServerQuirks::COMMON
        },
        ..COMMON
    },
    DialectServer {
        dialect: OpenAiDialect::DeepSeek,
        hosts: &["api.deepseek.com"],
        quirks: ChatServerQuirks {
            seed_field: None,
            habits: ChatRequestStyle {
                reasoning: ReasoningReplay::EverywhereBesideTools,
                ..ChatRequestStyle::COMMON
            },
            ..ChatServerQuirks::COMMON
        },
        ..COMMON
    },
    DialectServer {
        dialect: OpenAiDialect::Xai,
        hosts: &["api.x.ai"],
        quirks: ChatServerQuirks {
            max_tokens_field: "max_completion_tokens",
            session_key_field: Some("prompt_cache_key"),
            ..ChatServerQuirks::COMMON
        },
        ..COMMON
    },
    DialectServer {
        dialect: OpenAiDialect::Together,
        hosts: &["api.together.xyz", "api.together.ai"],
        ..COMMON
    },
    DialectServer {
        dialect: OpenAiDialect::Cerebras,
        hosts: &["api.cerebras.ai"],
        quirks: ChatServerQuirks {
            max_tokens_field: "max_completion_tokens",
            ..ChatServerQuirks::COMMON
        },
        ..COMMON
    },
];

impl OpenAiDialect {
    /// Finds the dialect of a host.
    pub(crate) fn from_host(host: &str) -> Self {
        let is_its = |known: &str| {
            if known.starts_with('.') { host.ends_with(known) } else { host == known }
        };
        let server = SERVERS.iter().find(|server| server.hosts.iter().any(|known| is_its(known)));
        server.map_or(Self::Common, |server| server.dialect)
    }

    /// Returns the facts about this dialect's server.
    pub(crate) fn server_facts(self) -> &'static DialectServer {
        SERVERS.iter().find(|server| server.dialect == self).unwrap_or(&COMMON)
    }
}

#[cfg(test)]
mod tests {
    use jaato_plugin_sdk::serde_json::{self, Value};

    use super::*;

    #[test]
    fn dialect_is_recognized_by_the_exact_host() {
        for (host, expected) in [
            ("api.openai.com", OpenAiDialect::OpenAi),
            ("moon.openai.azure.com", OpenAiDialect::Azure),
            ("openrouter.ai", OpenAiDialect::OpenRouter),
            ("api.groq.com", OpenAiDialect::Groq),
            ("api.openai.com.evil", OpenAiDialect::Common),
            ("openai.azure.com", OpenAiDialect::Common),
            ("evil-openrouter.ai", OpenAiDialect::Common),
            ("localhost", OpenAiDialect::Common),
        ] {
            assert_eq!(OpenAiDialect::from_host(host), expected, "{host}");
        }
    }

    #[test]
    fn every_known_server_is_found_with_valid_json_fields() {
        for server in &SERVERS {
            assert_eq!(server.dialect.server_facts().hosts, server.hosts);
            for (_, text) in server.quirks.fields_beside_tools {
                assert!(serde_json::from_str::<Value>(text).is_ok());
            }
        }
        assert_eq!(OpenAiDialect::Auto.server_facts().dialect, OpenAiDialect::Common);
    }
}
