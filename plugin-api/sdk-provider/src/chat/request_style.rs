//! Differences between servers of one protocol that only a refusal reveals. Pure.

use jaato_plugin_sdk::types::{CompletionRequest, Message, Part, Role};

use super::refusal::ChatRequestChange;
use super::schema::has_type_lists;

/// Where to put the content that follows tool results: outcomes of tasks, user messages sent in the
/// meantime, and attachments of tools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OutcomePlacement {
    /// In a user message, which models read as such.
    #[default]
    AsUser,
    /// After the last result, as text only, for servers that reject a user message there.
    InLastResult,
}

/// Which of the model's messages include the reasoning field.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ReasoningReplay {
    /// The messages that came with it.
    #[default]
    AsItCame,
    /// All messages, with an empty field if necessary, for servers that reject a conversation
    /// without the field.
    Everywhere,
    /// All messages if the request has tools, otherwise the messages that came with it.
    EverywhereBesideTools,
    /// No messages, for servers that reject the field.
    Nowhere,
}

/// How to write the argument schemas of tools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ChatSchemaStyle {
    /// Unchanged.
    #[default]
    AsTheyAre,
    /// With a single type for each value, for servers that reject lists of types.
    SingleTyped,
}

/// How a server wants its requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ChatRequestStyle {
    /// Where to put the content that follows tool results.
    pub outcomes: OutcomePlacement,
    /// Which messages include the reasoning field.
    pub reasoning: ReasoningReplay,
    /// How to write the argument schemas of tools.
    pub schemas: ChatSchemaStyle,
}

impl ChatRequestStyle {
    /// The habits of nearly all servers.
    pub const COMMON: Self = Self {
        outcomes: OutcomePlacement::AsUser,
        reasoning: ReasoningReplay::AsItCame,
        schemas: ChatSchemaStyle::AsTheyAre,
    };

    /// Adapts to a refusal. Returns `None` if that would not change the request.
    pub fn adapt_to_refusal(
        self,
        wish: ChatRequestChange,
        request: &CompletionRequest,
    ) -> Option<Self> {
        let other = match wish {
            ChatRequestChange::ResultsLast => {
                Self { outcomes: OutcomePlacement::InLastResult, ..self }
            }
            ChatRequestChange::Reasoning => Self { reasoning: ReasoningReplay::Everywhere, ..self },
            ChatRequestChange::NoReasoning => Self { reasoning: ReasoningReplay::Nowhere, ..self },
            ChatRequestChange::SingleTypes => {
                Self { schemas: ChatSchemaStyle::SingleTyped, ..self }
            }
        };
        let has_answer = || request.messages.iter().any(|it| it.role == Role::Model);
        let may_help = match wish {
            ChatRequestChange::ResultsLast => has_content_after_any_results(request),
            ChatRequestChange::Reasoning | ChatRequestChange::NoReasoning => has_answer(),
            ChatRequestChange::SingleTypes => {
                request.tools.iter().any(|it| has_type_lists(&it.parameters))
            }
        };
        (may_help && other != self).then_some(other)
    }
}

/// Returns true if any content follows tool results in a request.
pub fn has_content_after_any_results(request: &CompletionRequest) -> bool {
    request
        .messages
        .iter()
        .any(|message| message.role == Role::Tool && has_content_after_results(message))
}

/// Returns true if a message of tool results contains other content.
pub fn has_content_after_results(message: &Message) -> bool {
    message.parts.iter().any(|part| match part {
        Part::Text { .. } | Part::Data(_) => true,
        Part::ToolResult(result) => !result.attachments.is_empty(),
        _ => false,
    })
}
