//! What a provider is asked and what it answers.

use serde::{Deserialize, Serialize};

use crate::{Message, Part, ToolCall, ToolSpec};

/// One request to a model. Providers are stateless: it holds everything.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// Version of this shape.
    pub v: u32,
    /// The model, without its provider: `qwen2.5-coder-1.5b`.
    pub model: String,
    /// The system text.
    #[serde(default)]
    pub system: String,
    /// The tools, in a fixed order.
    #[serde(default)]
    pub tools: Vec<ToolSpec>,
    /// The history; its last message is the user's or a tool's.
    pub messages: Vec<Message>,
    /// Settings that most requests leave alone.
    #[serde(default)]
    pub options: RequestOptions,
}

impl Request {
    /// The version that this crate writes.
    pub const VERSION: u32 = 1;
}

/// Settings of a request; what is absent is the provider's choice.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RequestOptions {
    /// Most tokens that the model may produce.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u32>,
    /// Sampling temperature; 0 is greedy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f32>,
}

/// What a provider or a tool emits while it works, in order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "delta", rename_all = "snake_case")]
pub enum Delta {
    /// More of the answer's text.
    Text {
        /// The piece.
        text: String,
    },
    /// More of the model's reasoning.
    Thought {
        /// The piece.
        text: String,
    },
    /// A tool call is complete.
    ToolCall(ToolCall),
    /// A running tool shows a person something; not part of its result.
    Output {
        /// The piece.
        text: String,
    },
    /// What is going on while nothing else is to be seen ("loading the model"); not part of the
    /// answer.
    Notice {
        /// The text, one line.
        text: String,
    },
    /// How far a long step has come; not part of the answer.
    Progress {
        /// What is going on.
        label: String,
        /// How much of it is done.
        done: u64,
        /// How much there is, in the same unit.
        total: u64,
    },
    /// The server shows that it is there and says nothing: a comment, an empty piece. A session
    /// waits longer for a server that does this than for a silent one, and not for ever.
    Alive,
    /// Something that this side does not know; it is passed over.
    #[serde(other)]
    Unknown,
}

/// What a provider answers in the end: the whole, so that nothing hangs on the deltas having
/// arrived.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Completion {
    /// Version of this shape.
    pub v: u32,
    /// Everything that the model produced, in order.
    pub parts: Vec<Part>,
    /// Why it stopped.
    pub finish_reason: FinishReason,
    /// The server's own word for why it stopped, where `finish_reason` is `unknown`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish_word: Option<String>,
    /// What it cost.
    #[serde(default)]
    pub usage: Usage,
}

impl Completion {
    /// The version that this crate writes.
    pub const VERSION: u32 = 1;

    /// Makes a completion that stopped for a reason that has a name here.
    pub fn new(parts: Vec<Part>, finish_reason: FinishReason, usage: Usage) -> Self {
        Self { v: Self::VERSION, parts, finish_reason, finish_word: None, usage }
    }
}

/// Why a model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// It said all it had to say.
    Stop,
    /// It reached the most tokens allowed.
    MaxTokens,
    /// It waits for tool results.
    ToolUse,
    /// A filter of the provider stopped it.
    Safety,
    /// The provider failed after it had begun.
    Error,
    /// It was cancelled.
    Cancelled,
    /// The provider did not say, or said what this side does not know.
    #[serde(other)]
    Unknown,
}

/// Tokens of one completion.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Tokens of the request.
    pub prompt_tokens: u64,
    /// Tokens of the answer.
    pub output_tokens: u64,
    /// Tokens of the request that a cache gave.
    pub cached_tokens: u64,
}

impl Usage {
    /// Returns the sum of prompt and output.
    pub fn total_tokens(&self) -> u64 {
        self.prompt_tokens + self.output_tokens
    }
}

/// A model that a provider offers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelInfo {
    /// The model, without its provider.
    pub name: String,
    /// One line about it.
    #[serde(default)]
    pub title: String,
    /// Its context window in tokens, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_limit: Option<u64>,
    /// The asset that holds its weights, where it runs on this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asset: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delta_from_the_future_is_one_that_nobody_knows() {
        let delta: Delta = serde_json::from_str(r#"{"delta":"smell","of":"roses"}"#).unwrap();
        assert_eq!(delta, Delta::Unknown);
    }
}
