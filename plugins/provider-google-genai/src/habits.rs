//! What a server wants differently, and only says by a refusal. Pure.

use jaato_plugin_sdk::types::Request;

use crate::refusal::Wish;

/// In which form schemas are sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Schemas {
    /// As JSON Schema.
    #[default]
    Json,
    /// As the subset of OpenAPI's, for models and gateways that know no other.
    Reduced,
}

/// Whether a request says anything of thinking by itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Thoughts {
    /// It asks to be shown them.
    #[default]
    Shown,
    /// It says nothing of them, for models that do not think.
    Unsaid,
}

/// How a server wants to be asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Habits {
    /// In which form schemas are sent.
    pub schemas: Schemas,
    /// Whether a request says anything of thinking by itself.
    pub thoughts: Thoughts,
}

impl Habits {
    /// Follows a refusal; none where that would change nothing of the request.
    pub(crate) fn follow(self, wish: Wish, request: &Request) -> Option<Self> {
        let other = match wish {
            Wish::ReducedSchemas => Self { schemas: Schemas::Reduced, ..self },
            Wish::NoThoughts => Self { thoughts: Thoughts::Unsaid, ..self },
        };
        let may_help = match wish {
            Wish::ReducedSchemas => {
                !request.tools.is_empty() || request.options.output_schema.is_some()
            }
            // What was asked for is refused aloud.
            Wish::NoThoughts => request.options.effort.is_none(),
        };
        (may_help && other != self).then_some(other)
    }
}
