//! What servers of one protocol want differently, and only say by a refusal. Pure.

use jaato_plugin_sdk::types::{Message, Part, Request, Role};

use crate::refusal::Wish;

/// Where what is said behind tool results goes: outcomes of tasks, what the person says meanwhile,
/// and what tools attached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Outcomes {
    /// Into a message of the user's, which models read as such.
    #[default]
    AsUser,
    /// Behind the last result, in words alone, for servers that refuse a user's message there.
    InLastResult,
}

/// Which of the model's messages have the field of reasoning that goes back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Reasoning {
    /// Those that came with it.
    #[default]
    AsItCame,
    /// All of them, if need be an empty one, for servers that refuse a conversation from which it
    /// was left out.
    Everywhere,
}

/// How a server wants to be asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Habits {
    /// Where what is said behind tool results goes.
    pub outcomes: Outcomes,
    /// Which messages have reasoning.
    pub reasoning: Reasoning,
}

impl Habits {
    /// Follows a refusal; none where that would change nothing of the request.
    pub(crate) fn follow(self, wish: Wish, request: &Request) -> Option<Self> {
        let other = match wish {
            Wish::ResultsLast => Self { outcomes: Outcomes::InLastResult, ..self },
            Wish::Reasoning => Self { reasoning: Reasoning::Everywhere, ..self },
        };
        let may_help = match wish {
            Wish::ResultsLast => tells_outcomes(request),
            Wish::Reasoning => request.messages.iter().any(|it| it.role == Role::Model),
        };
        (may_help && other != self).then_some(other)
    }
}

/// Tells whether a request says anything behind tool results.
pub fn tells_outcomes(request: &Request) -> bool {
    request.messages.iter().any(|message| message.role == Role::Tool && says_behind(message))
}

/// Tells whether a message of results says or shows anything beside them.
pub(crate) fn says_behind(message: &Message) -> bool {
    message.parts.iter().any(|part| match part {
        Part::Text { .. } | Part::Data(_) => true,
        Part::ToolResult(result) => !result.attachments.is_empty(),
        _ => false,
    })
}
