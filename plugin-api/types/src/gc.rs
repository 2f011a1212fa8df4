//! The request to a gc, and the plan that it proposes. The session validates a plan and applies it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{CallId, Message};

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

/// The plan that a gc proposes. All indices refer to the messages of the request.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct GcPlan {
    /// Version of this format.
    pub v: u32,
    /// Indices of messages to remove, ascending.
    pub drop: Vec<usize>,
    /// A message to insert in place of the first removed messages: before the next prompt that
    /// stays. Without removed messages, before the first prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<Message>,
    /// Changes to parts of messages that stay, at most one for each part or attachment. A host that
    /// does not know this field only removes messages.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub edits: Vec<GcEdit>,
    /// A note for the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A change to one part of a message that stays. The session's record keeps the original.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GcEdit {
    /// The index of the message.
    pub message: usize,
    /// The index of the part in the message.
    pub part: usize,
    /// The change.
    #[serde(flatten)]
    pub change: GcChange,
}

/// The kind of a [`GcEdit`]. New kinds will be added, so end each `match` with `_`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum GcChange {
    /// Sends only the head and the tail of a tool result, or of a JSON value from the host. The
    /// session writes the whole content into a file, and the model gets its path.
    Shorten {
        /// The maximum size of the part as JSON, in bytes. The session may use a larger one.
        bytes_max: u64,
    },
    /// Sends one line instead of a tool result, because a later call of the same tool returned the
    /// same thing in its newest state: for example, it read the same file.
    Repeated {
        /// The later call. Its result must stay.
        by: CallId,
    },
    /// Sends a text instead of an image or another file.
    Describe {
        /// The index of the attachment, if the part is a tool result.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        attachment: Option<usize>,
        /// The text.
        text: String,
    },
    /// No longer sends a text that an earlier plan inserted as a summary.
    Remove,
    /// A change from a newer version. The host ignores it.
    #[serde(other)]
    Unknown,
}

impl GcPlan {
    /// The version that this crate writes.
    pub const VERSION: u32 = 1;
}

impl GcEdit {
    /// Creates a change to a part.
    pub fn new(message: usize, part: usize, change: GcChange) -> Self {
        Self { message, part, change }
    }
}
