//! A server's requirements that only its refusals reveal. Pure.

use jaato_plugin_sdk::types::CompletionRequest;

use crate::refusal::GoogleRequestChange;

/// The form in which schemas are sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum GoogleSchemaForm {
    /// JSON Schema.
    #[default]
    Json,
    /// The OpenAPI subset, for models and gateways that support nothing else.
    Reduced,
}

/// Whether a request mentions thinking without being asked to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum DefaultThinkingField {
    /// The request asks for the thoughts.
    #[default]
    Shown,
    /// The request does not mention thinking, because the model does not think.
    Unsaid,
}

/// A server's requirements.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GoogleRequestStyle {
    /// The form in which schemas are sent.
    pub schemas: GoogleSchemaForm,
    /// Whether a request mentions thinking without being asked to.
    pub thoughts: DefaultThinkingField,
}

impl GoogleRequestStyle {
    /// Applies a refusal. Returns `None` if that would not change the request.
    pub(crate) fn adapt_to_refusal(
        self,
        wish: GoogleRequestChange,
        request: &CompletionRequest,
    ) -> Option<Self> {
        let other = match wish {
            GoogleRequestChange::ReducedSchemas => {
                Self { schemas: GoogleSchemaForm::Reduced, ..self }
            }
            GoogleRequestChange::NoThoughts => {
                Self { thoughts: DefaultThinkingField::Unsaid, ..self }
            }
        };
        let may_help = match wish {
            GoogleRequestChange::ReducedSchemas => {
                !request.tools.is_empty() || request.options.output_schema.is_some()
            }
            // If the user set the effort, the refusal is reported as an error.
            GoogleRequestChange::NoThoughts => request.options.effort.is_none(),
        };
        (may_help && other != self).then_some(other)
    }
}
