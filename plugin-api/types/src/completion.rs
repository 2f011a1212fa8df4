//! What a provider is asked and what it answers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::file_change::FileChange;
use crate::work_plan::WorkPlan;
use crate::{Message, Part, Price, ToolCall, ToolName, ToolSpec};

/// One request to a model. Providers are stateless: it holds everything. The host makes it; a test
/// begins with [`Request::new`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
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
    /// The history; its last message is the user's or a tool's, or the model's where an answer that
    /// ended as [`FinishReason::Paused`] is to go on.
    pub messages: Vec<Message>,
    /// Settings that most requests leave alone.
    #[serde(default)]
    pub options: RequestOptions,
}

impl Request {
    /// The version that this crate writes.
    pub const VERSION: u32 = 1;

    /// Makes a request without system text, tools and options.
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

/// Settings of a request; what is absent is the provider's choice. A provider is asked only for
/// what it lists in [`ProviderSpec::options`](crate::ProviderSpec::options), by the names of these
/// fields.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct RequestOptions {
    /// Most tokens that the model may produce.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u32>,
    /// Sampling temperature; 0 is greedy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f32>,
    /// `false` asks for the whole answer at once, for servers that stream badly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<bool>,
    /// How much the model thinks before it answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
    /// Whether the model calls a tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice>,
    /// JSON Schema of the answer: its text is one JSON value that matches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// Texts before which the answer stops; they are no part of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
    /// Makes sampling repeatable where the server can.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// The same for all requests of a session: a server that caches prompts finds its cache by it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_key: Option<String>,
    /// The vendor's word for how soon and how dear a request is answered: `flex`, `priority`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_tier: Option<String>,
    /// What is laid over the body of the request, key by key, in the vendor's own words: for what
    /// no other option says.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub extra_body: Map<String, Value>,
    /// Headers that the request has besides the plugin's.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub extra_headers: BTreeMap<String, String>,
}

/// The name, in [`ProviderSpec::options`](crate::ProviderSpec::options), by which a provider says
/// that it takes [`Part::ToolsChanged`]: the request's list of tools then stays as it was first
/// sent.
pub const TOOLS_CHANGED: &str = "tools_changed";

/// How much a model thinks before it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effort {
    /// Not at all, where the model can be told so.
    None,
    /// As little as it can.
    Minimal,
    /// Little.
    Low,
    /// As much as most tasks need.
    Medium,
    /// Much.
    High,
    /// As much as it can.
    Max,
    /// An amount that this side does not know: to be taken for the provider's own choice.
    #[serde(other)]
    Unknown,
}

/// Whether a model calls a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    /// As it likes.
    Auto,
    /// It must.
    Required,
    /// It must not, though tools are listed.
    None,
    /// Something that this side does not know: to be taken for `auto`.
    #[serde(other)]
    Unknown,
}

/// What a provider or a tool emits while it works, in order. There will be more: a `match` over
/// deltas ends with `_`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "delta", rename_all = "snake_case")]
pub enum Delta {
    /// More of the answer's text.
    #[non_exhaustive]
    Text {
        /// The piece.
        text: String,
    },
    /// More of the model's reasoning.
    #[non_exhaustive]
    Thought {
        /// The piece.
        text: String,
    },
    /// A tool call is complete.
    ToolCall(ToolCall),
    /// A running tool shows a person something; not part of its result.
    #[non_exhaustive]
    Output {
        /// The piece.
        text: String,
    },
    /// What is going on while nothing else is to be seen ("loading the model"); not part of the
    /// answer.
    #[non_exhaustive]
    Notice {
        /// The text, one line.
        text: String,
    },
    /// How far a long step has come; not part of the answer.
    #[non_exhaustive]
    Progress {
        /// What is going on.
        label: String,
        /// How much of it is done.
        done: u64,
        /// How much there is, in the same unit; 0 where that is not known.
        total: u64,
    },
    /// A running tool has changed a file; not part of its result.
    FileChanged(FileChange),
    /// A running tool has changed what the model works through; not part of its result.
    PlanChanged(WorkPlan),
    /// The server shows that it is there and says nothing: a comment, an empty piece. A session
    /// waits longer for a server that does this than for a silent one, and not for ever.
    Alive,
    /// Something that this side does not know; it is passed over.
    #[serde(other)]
    Unknown,
}

/// What a provider answers in the end: the whole, so that nothing hangs on the deltas having
/// arrived.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
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
    /// How long the next request should wait, in milliseconds, because the server says that it has
    /// no room for it before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_after_ms: Option<u64>,
}

impl Completion {
    /// The version that this crate writes.
    pub const VERSION: u32 = 1;

    /// Makes a completion that stopped for a reason that has a name here.
    pub fn new(parts: Vec<Part>, finish_reason: FinishReason, usage: Usage) -> Self {
        Self { v: Self::VERSION, parts, finish_reason, usage, ..Self::default() }
    }
}

/// Why a model stopped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
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
    /// The server broke off a long answer: the same request with the answer so far as its last
    /// message goes on with it.
    Paused,
    /// The context window was full before the answer was whole.
    ContextExceeded,
    /// The model declined to answer.
    Refused,
    /// The provider did not say, or said what this side does not know.
    #[default]
    #[serde(other)]
    Unknown,
}

/// Tokens of one completion. What the server does not tell stays 0 or absent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Tokens of the request: all of them, those that a cache gave or took included.
    pub prompt_tokens: u64,
    /// Tokens of the answer, its reasoning included.
    pub output_tokens: u64,
    /// Tokens of the request that a cache gave.
    pub cached_tokens: u64,
    /// Tokens of the request that were written to a cache.
    #[serde(skip_serializing_if = "is_zero")]
    pub cache_write_tokens: u64,
    /// Tokens of the answer that went into reasoning.
    #[serde(skip_serializing_if = "is_zero")]
    pub reasoning_tokens: u64,
    /// What the server says that the request cost, in millionths of a US dollar.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_micro_usd: Option<u64>,
    /// Whether the server did not say that, and the host worked it out from the model's price.
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
    /// Returns the sum of prompt and output.
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
    /// Its context window in tokens, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_limit: Option<u64>,
    /// The asset that holds its weights, where it runs on this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asset: Option<String>,
    /// Media types of what it can look at, beside text: `image/png`, or `image/*` for all of a
    /// kind. What is not listed the host tells it in words. Absent where nobody knows: then what
    /// the provider says for all its models counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepts: Option<Vec<String>>,
    /// What it costs, where the provider knows. A model on one's own machine costs nothing, which
    /// is [`Price::nothing`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// Tokens that the tools which are always offered may cost it, with their instructions, where
    /// that is less than a host allows a model of which this is not known. What does not fit is
    /// found when it is needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core_tokens_max: Option<u64>,
    /// The tools that it is offered from the start, if the user names none and one of them is
    /// there: for a model that does better with few. Others are found when they are needed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub core_tools: Vec<ToolName>,
}

impl ModelInfo {
    /// Makes a model of that name of which nothing else is known.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }
}

impl Delta {
    /// Makes a piece of the answer's text.
    pub fn text(piece: impl Into<String>) -> Self {
        Self::Text { text: piece.into() }
    }

    /// Makes a piece of the model's reasoning.
    pub fn thought(piece: impl Into<String>) -> Self {
        Self::Thought { text: piece.into() }
    }

    /// Makes a piece of a running tool's output.
    pub fn output(piece: impl Into<String>) -> Self {
        Self::Output { text: piece.into() }
    }

    /// Makes a line about what is going on.
    pub fn notice(text: impl Into<String>) -> Self {
        Self::Notice { text: text.into() }
    }

    /// Makes a report of how far a long step has come. A total of 0 is one that is not known.
    pub fn progress(label: impl Into<String>, done: u64, total: u64) -> Self {
        Self::Progress { label: label.into(), done, total }
    }

    /// Makes a report of how much of a long step is done, where nobody knows how much there is.
    pub fn progress_so_far(label: impl Into<String>, done: u64) -> Self {
        Self::progress(label, done, 0)
    }
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
