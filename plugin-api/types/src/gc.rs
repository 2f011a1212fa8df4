//! The request to a gc, and the plan that it proposes. The session validates a plan and applies it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Message;

/// Why the session asks a gc for a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GcReason {
    /// The context exceeds `threshold_percent`.
    Threshold,
    /// The user requested it.
    Manual,
    /// The number of turns exceeds `max_turns`.
    TurnLimit,
    /// The provider refused the request as too large.
    ContextLimit,
    /// A reason from a newer version.
    #[serde(other)]
    Other,
}

/// The request to a gc. The host creates it; a test begins with [`GcRequest::new`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct GcRequest {
    /// Version of this format.
    pub v: u32,
    /// The reason.
    pub reason: GcReason,
    /// All messages that the model gets, in order.
    pub messages: Vec<Message>,
    /// The context window in tokens.
    pub context_limit: u64,
    /// Tokens in use.
    pub total_tokens: u64,
    /// The settings of `[gc]`. `pinned_turn_indices` counts the turns in `messages`.
    #[serde(default)]
    pub settings: Value,
    /// Whether the user only wants to see what would go. Then do nothing that costs something: do
    /// not ask a model for a summary, for example, and leave it out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_preview: bool,
}

impl GcRequest {
    /// The version that this crate writes.
    pub const VERSION: u32 = 1;

    /// Creates a request for a session of unknown size.
    pub fn new(reason: GcReason, messages: Vec<Message>) -> Self {
        Self {
            v: Self::VERSION,
            reason,
            messages,
            context_limit: 0,
            total_tokens: 0,
            settings: Value::Null,
            is_preview: false,
        }
    }
}

/// The plan that a gc proposes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct GcPlan {
    /// Version of this format.
    pub v: u32,
    /// Indices of messages to remove, ascending.
    pub drop: Vec<usize>,
    /// A message to insert before the remaining messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<Message>,
    /// A note for the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl GcPlan {
    /// The version that this crate writes.
    pub const VERSION: u32 = 1;
}
