//! Requests to a provider, and its answers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::file_change::FileChange;
use crate::work_plan::WorkPlan;
use crate::{Message, Part, Price, ToolCall, ToolName, ToolSpec};

/// One request to a model. It is complete, because providers are stateless. The host creates it; a
/// test begins with [`CompletionRequest::new`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CompletionRequest {
    /// Version of this format.
    pub v: u32,
    /// The model, without its provider: `qwen2.5-coder-1.5b`.
    pub model: String,
    /// The system prompt.
    #[serde(default)]
    pub system: String,
    /// The tools, in a fixed order.
    #[serde(default)]
    pub tools: Vec<ToolSpec>,
    /// The history. The last message is from the user or a tool, or from the model if the request
    /// continues an answer that ended as [`FinishReason::Paused`].
    pub messages: Vec<Message>,
    /// Settings that most requests leave at their defaults.
    #[serde(default)]
    pub options: RequestOptions,
}

impl CompletionRequest {
    /// The version that this crate writes.
    pub const VERSION: u32 = 1;

    /// Creates a request without a system prompt, tools and options.
    pub fn new(model: impl Into<String>, messages: Vec<Message>) -> Self {
        Self {
            v: Self::VERSION,
            model: model.into(),
            system: String::new(),
            tools: Vec::new(),
            messages,
            options: RequestOptions::default(),
        }
    }
}

/// Settings of a request. The provider chooses the values that are absent. The host sends only
/// options that the provider lists in [`ProviderSpec::options`](crate::ProviderSpec::options), by
/// the names of these fields.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct RequestOptions {
    /// The maximum number of tokens in the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u32>,
    /// Sampling temperature; 0 is greedy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f32>,
    /// `false` requests the whole answer at once, for servers that stream badly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<bool>,
    /// How much the model thinks before it answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
    /// Whether the model must call a tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice>,
    /// JSON Schema of the answer. The answer's text is then one JSON value that matches it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// Stop sequences. The answer ends before the first of them and does not contain it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
    /// Makes sampling repeatable, if the server supports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// A key that all requests of a session share. Servers that cache prompts use it to find their
    /// cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_key: Option<String>,
    /// The vendor's word for the speed and price of a request: `flex`, `priority`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_tier: Option<String>,
    /// Keys that override those of the request body, in the vendor's own terms. Use it for settings
    /// that have no option here.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub extra_body: Map<String, Value>,
    /// Headers that the request has in addition to the plugin's.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub extra_headers: BTreeMap<String, String>,
}

/// The name in [`ProviderSpec::options`](crate::ProviderSpec::options) of a provider that supports
/// [`Part::ToolsChanged`]. The host then leaves the request's list of tools as it first sent it.
pub const TOOLS_CHANGED: &str = "tools_changed";

/// How much a model thinks before it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effort {
    /// No thinking, if the model can turn it off.
    None,
    /// As little as possible.
    Minimal,
    /// Little.
    Low,
    /// As much as most tasks need.
    Medium,
    /// More than most tasks need.
    High,
    /// As much as possible.
    Max,
    /// An amount from a newer version. Treat it as the provider's default.
    #[serde(other)]
    Unknown,
}

/// Whether a model must call a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    /// The model decides.
    Auto,
    /// The model must call a tool.
    Required,
    /// The model must not call a tool, although the request lists some.
    None,
    /// A choice from a newer version. Treat it as `auto`.
    #[serde(other)]
    Unknown,
}

/// A piece that a provider or a tool emits while it works, in order. New variants will be added, so
/// end each `match` over deltas with `_`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "delta", rename_all = "snake_case")]
pub enum Delta {
    /// A piece of the answer's text.
    #[non_exhaustive]
    Text {
        /// The piece.
        text: String,
    },
    /// A piece of the model's reasoning.
    #[non_exhaustive]
    Thought {
        /// The piece.
        text: String,
    },
    /// A complete tool call.
    ToolCall(ToolCall),
    /// Output that a running tool shows the user. It is not part of the tool result.
    #[non_exhaustive]
    Output {
        /// The piece.
        text: String,
    },
    /// A status line for a step that shows nothing else, such as "loading the model". It is not
    /// part of the answer.
    #[non_exhaustive]
    Notice {
        /// The text, in one line.
        text: String,
    },
    /// The progress of a long step. It is not part of the answer.
    #[non_exhaustive]
    Progress {
        /// A label for the step.
        label: String,
        /// The amount done.
        done: u64,
        /// The total, in the same unit. 0 if it is unknown.
        total: u64,
    },
    /// A running tool changed a file. This is not part of its result.
    FileChanged(FileChange),
    /// A running tool changed the model's work plan. This is not part of its result.
    PlanChanged(WorkPlan),
    /// A sign of life without content, such as a comment or an empty piece. A session waits longer
    /// for a server that sends these than for a silent one, but not forever.
    Alive,
    /// A delta from a newer version. It is skipped.
    #[serde(other)]
    Unknown,
}

/// The complete answer of a provider. It repeats the content of the deltas, so that it is complete
/// even if some of them got lost.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Completion {
    /// Version of this shape.
    pub v: u32,
    /// Everything that the model produced, in order.
    pub parts: Vec<Part>,
    /// Why it stopped.
    pub finish_reason: FinishReason,
    /// The server's own word for why the model stopped, if `finish_reason` is `unknown`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish_word: Option<String>,
    /// The token usage.
    #[serde(default)]
    pub usage: Usage,
    /// How long the next request should wait, in milliseconds, because the server reports that it
    /// has no capacity before then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_after_ms: Option<u64>,
}

impl Completion {
    /// The version that this crate writes.
    pub const VERSION: u32 = 1;

    /// Creates a completion with a known finish reason.
    pub fn new(parts: Vec<Part>, finish_reason: FinishReason, usage: Usage) -> Self {
        Self { v: Self::VERSION, parts, finish_reason, usage, ..Self::default() }
    }
}

/// Why a model stopped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// The model finished its answer.
    Stop,
    /// The answer reached the maximum number of tokens.
    MaxTokens,
    /// The model waits for tool results.
    ToolUse,
    /// A content filter of the provider stopped the answer.
    Safety,
    /// The provider failed after the answer had begun.
    Error,
    /// It was cancelled.
    Cancelled,
    /// The server interrupted a long answer. Send the same request again, with the answer so far as
    /// its last message, to continue it.
    Paused,
    /// The context window was full before the answer was complete.
    ContextExceeded,
    /// The model declined to answer.
    Refused,
    /// The provider gave no reason, or one that this version does not know.
    #[default]
    #[serde(other)]
    Unknown,
}

impl FinishReason {
    /// [`FinishReason::Cancelled`], for programs that compare it as a constant.
    pub const CANCELLED: Self = Self::Cancelled;
}

/// The tokens of one completion. Values that the server does not report stay 0 or absent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// All tokens of the request, including those read from or written to a cache.
    pub prompt_tokens: u64,
    /// Tokens of the answer, including its reasoning.
    pub output_tokens: u64,
    /// Tokens of the request that were read from a cache.
    pub cached_tokens: u64,
    /// Tokens of the request that were written to a cache.
    #[serde(skip_serializing_if = "is_zero")]
    pub cache_write_tokens: u64,
    /// Tokens of the answer that were reasoning.
    #[serde(skip_serializing_if = "is_zero")]
    pub reasoning_tokens: u64,
    /// The cost of the request, in millionths of a US dollar.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_micro_usd: Option<u64>,
    /// Whether the host calculated the cost from the model's price because the server did not
    /// report it.
    #[serde(skip_serializing_if = "is_false")]
    pub cost_is_estimate: bool,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

fn is_false(flag: &bool) -> bool {
    !flag
}

impl Usage {
    /// Returns the sum of prompt and output tokens.
    pub fn total_tokens(&self) -> u64 {
        self.prompt_tokens.saturating_add(self.output_tokens)
    }
}

/// A model that a provider offers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelInfo {
    /// The model, without its provider.
    pub name: String,
    /// One line about it.
    #[serde(default)]
    pub title: String,
    /// The context window in tokens, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_limit: Option<u64>,
    /// The asset that holds the weights, if the model runs on this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asset: Option<String>,
    /// The media types, other than text, that the model accepts: `image/png`, or `image/*` for all
    /// images. The host describes other media to the model in text. If absent, the list in
    /// [`ProviderSpec::accepts`](crate::ProviderSpec::accepts) applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepts: Option<Vec<String>>,
    /// The price, if the provider knows it. A model on the user's own machine costs nothing: use
    /// [`Price::zero`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// The maximum number of tokens for core tools and their instructions, if the model should get
    /// fewer than the host's default. The model can discover the tools that do not fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core_tokens_max: Option<u64>,
    /// The tools to offer from the start, for a model that works better with few. The list applies
    /// only if the user names no tools and at least one of these exists. The model can discover the
    /// others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub core_tools: Vec<ToolName>,
}

impl ModelInfo {
    /// Creates a model with this name and no other properties.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }
}

impl Delta {
    /// Creates a piece of the answer's text.
    pub fn text(piece: impl Into<String>) -> Self {
        Self::Text { text: piece.into() }
    }

    /// Creates a piece of the model's reasoning.
    pub fn thought(piece: impl Into<String>) -> Self {
        Self::Thought { text: piece.into() }
    }

    /// Creates a piece of a running tool's output.
    pub fn output(piece: impl Into<String>) -> Self {
        Self::Output { text: piece.into() }
    }

    /// Creates a status line.
    pub fn notice(text: impl Into<String>) -> Self {
        Self::Notice { text: text.into() }
    }

    /// Creates a progress report. A total of 0 means that the total is unknown.
    pub fn progress(label: impl Into<String>, done: u64, total: u64) -> Self {
        Self::Progress { label: label.into(), done, total }
    }

    /// Creates a progress report for a step whose total is unknown.
    pub fn progress_so_far(label: impl Into<String>, done: u64) -> Self {
        Self::progress(label, done, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_delta_is_read_as_unknown() {
        let delta: Delta = serde_json::from_str(r#"{"delta":"smell","of":"roses"}"#).unwrap();
        assert_eq!(delta, Delta::Unknown);
    }
}
