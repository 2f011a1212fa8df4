//! What servers of one protocol want differently, and only say by a refusal. Pure.

use jaato_plugin_sdk::types::{Message, Part, Request, Role};

use super::refusal::Wish;
use super::schema::has_type_lists;

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
pub enum ReasoningSent {
    /// Those that came with it.
    #[default]
    AsItCame,
    /// All of them, if need be an empty one, for servers that refuse a conversation from which it
    /// was left out.
    Everywhere,
    /// All of them where there are tools; those that came with it where there are none.
    EverywhereBesideTools,
    /// None, for servers that refuse the field.
    Nowhere,
}

/// How tools say what their arguments are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Schemas {
    /// As the tools have it.
    #[default]
    AsTheyAre,
    /// With one type for each value, for servers that refuse lists of types.
    SingleTyped,
}

/// How a server wants to be asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Habits {
    /// Where what is said behind tool results goes.
    pub outcomes: Outcomes,
    /// Which messages have reasoning.
    pub reasoning: ReasoningSent,
    /// How tools say what their arguments are.
    pub schemas: Schemas,
}

impl Habits {
    /// Those of nearly every server.
    pub const COMMON: Self = Self {
        outcomes: Outcomes::AsUser,
        reasoning: ReasoningSent::AsItCame,
        schemas: Schemas::AsTheyAre,
    };

    /// Follows a refusal; `None` where that would change nothing of the request.
    pub fn follow(self, wish: Wish, request: &Request) -> Option<Self> {
        let other = match wish {
            Wish::ResultsLast => Self { outcomes: Outcomes::InLastResult, ..self },
            Wish::Reasoning => Self { reasoning: ReasoningSent::Everywhere, ..self },
            Wish::NoReasoning => Self { reasoning: ReasoningSent::Nowhere, ..self },
            Wish::SingleTypes => Self { schemas: Schemas::SingleTyped, ..self },
        };
        let has_answer = || request.messages.iter().any(|it| it.role == Role::Model);
        let may_help = match wish {
            Wish::ResultsLast => tells_outcomes(request),
            Wish::Reasoning | Wish::NoReasoning => has_answer(),
            Wish::SingleTypes => request.tools.iter().any(|it| has_type_lists(&it.parameters)),
        };
        (may_help && other != self).then_some(other)
    }
}

/// Tells whether a request says anything behind tool results.
pub fn tells_outcomes(request: &Request) -> bool {
    request.messages.iter().any(|message| message.role == Role::Tool && says_behind(message))
}

/// Tells whether a message of results says or shows anything beside them.
pub fn says_behind(message: &Message) -> bool {
    message.parts.iter().any(|part| match part {
        Part::Text { .. } | Part::Data(_) => true,
        Part::ToolResult(result) => !result.attachments.is_empty(),
        _ => false,
    })
}
