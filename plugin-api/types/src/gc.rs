//! What a gc is asked and the plan that it proposes. The session checks a plan and applies it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Message;

/// Why a gc is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GcReason {
    /// The context is fuller than `threshold_percent`.
    Threshold,
    /// The person asked.
    Manual,
    /// More turns than `max_turns`.
    TurnLimit,
    /// The provider refused the request as too large.
    ContextLimit,
    /// A reason that this side does not know.
    #[serde(other)]
    Other,
}

/// What a gc is asked. The host makes it; a test begins with [`GcRequest::new`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct GcRequest {
    /// Version of this shape.
    pub v: u32,
    /// Why.
    pub reason: GcReason,
    /// All that the model is sent, in order.
    pub messages: Vec<Message>,
    /// The context window in tokens.
    pub context_limit: u64,
    /// Tokens in use.
    pub total_tokens: u64,
    /// The settings of `[gc]`; `pinned_turn_indices` are places among the turns of `messages`.
    #[serde(default)]
    pub settings: Value,
}

impl GcRequest {
    /// The version that this crate writes.
    pub const VERSION: u32 = 1;

    /// Makes the request of a session of whose size nothing is known.
    pub fn new(reason: GcReason, messages: Vec<Message>) -> Self {
        Self {
            v: Self::VERSION,
            reason,
            messages,
            context_limit: 0,
            total_tokens: 0,
            settings: Value::Null,
        }
    }
}

/// What a gc proposes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct GcPlan {
    /// Version of this shape.
    pub v: u32,
    /// Indices of messages to drop, ascending.
    pub drop: Vec<usize>,
    /// A message to put in front of what stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<Message>,
    /// What to tell the person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl GcPlan {
    /// The version that this crate writes.
    pub const VERSION: u32 = 1;
}
