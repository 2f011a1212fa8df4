//! The service `count` and the operation `count_tokens`: the number of tokens of a text or request
//! for a model.
//!
//! A plugin asks the host, and the host asks the model's provider. If the provider cannot count,
//! the host estimates one token per four bytes.

use serde::{Deserialize, Serialize};

use crate::{CompletionRequest, Message, ToolSpec};

crate::operations::service_operations! { $ count_operations, None, answered;
    /// Counts the tokens of a text or of a request, for the session's model or another one. Fails
    /// with `configuration` if no provider offers the model, and with `limit_reached` if too many
    /// counts are waiting.
    [reads] count COUNT "count": (Option<TokenCountInput>) => TokenCountAnswer, sdk [(&TokenCountInput)];
}

/// Asks a provider to count the tokens of a [`CompletionRequest`]. Returns a [`TokenCount`],
/// `unknown_operation` if the provider cannot count, or `unavailable` if it cannot count yet.
pub const COUNT_TOKENS: &str = "count_tokens";

/// The maximum number of simultaneous counts by providers. Further ones wait.
pub const COUNTS_AT_ONCE: usize = 4;
/// The maximum number of waiting counts. Further ones are refused.
pub const COUNTS_WAITING_MAX: usize = 64;
/// The maximum wait for a provider's count, in milliseconds. After that, the host estimates.
pub const COUNT_WAIT_MS: u64 = 10_000;

/// The input to count: either a text or a request.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TokenCountInput {
    /// A text. A provider counts it as a user message, including the few tokens around it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The input of a model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<ModelInput>,
    /// The model, by any name that a user may give. If absent, the session's model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// The input of a model: system prompt, tools and messages.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ModelInput {
    /// The system prompt.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub system: String,
    /// The tools.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolSpec>,
    /// The messages.
    pub messages: Vec<Message>,
}

/// The number of tokens.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct TokenCountAnswer {
    /// The number of tokens.
    pub tokens: u64,
    /// Whether it is an estimate.
    pub is_estimate: bool,
    /// The model whose tokens were counted, as `provider/model`. Absent without a model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Why the count is an estimate although there is a model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// A provider's count.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TokenCount {
    /// The number of tokens.
    pub tokens: u64,
}

impl TokenCountInput {
    /// Estimates the count: a quarter of the bytes, rounded up. Data other than text counts only as
    /// much as its reference in the JSON.
    pub fn estimate(&self) -> u64 {
        let text = self.text.as_ref().map_or(0, String::len);
        let request = self.request.as_ref().map_or(0, ModelInput::size_bytes);
        u64::try_from(text.saturating_add(request).div_ceil(4)).unwrap_or(u64::MAX)
    }

    /// Creates the request whose tokens a provider counts. Returns `None` unless exactly one of
    /// text and request is set.
    pub fn to_completion_request(&self, model: impl Into<String>) -> Option<CompletionRequest> {
        match (&self.text, &self.request) {
            (Some(text), None) => {
                Some(CompletionRequest::new(model, vec![Message::user(text.as_str())]))
            }
            (None, Some(input)) => {
                let mut request = CompletionRequest::new(model, input.messages.clone());
                request.system.clone_from(&input.system);
                request.tools.clone_from(&input.tools);
                Some(request)
            }
            (Some(_), Some(_)) | (None, None) => None,
        }
    }
}

impl ModelInput {
    fn size_bytes(&self) -> usize {
        let json = |value: serde_json::Result<String>| value.map_or(0, |json| json.len());
        let tools = self.tools.iter().map(|tool| json(serde_json::to_string(tool)));
        let messages = self.messages.iter().map(|it| json(serde_json::to_string(&it.parts)));
        self.system.len() + tools.sum::<usize>() + messages.sum::<usize>()
    }
}

impl TokenCountAnswer {
    /// Creates the answer with a provider's count. Only the host needs this.
    pub fn exact(tokens: u64, model: impl Into<String>) -> Self {
        Self { tokens, is_estimate: false, model: Some(model.into()), why: None }
    }

    /// Creates the answer with an estimate. Only the host needs this.
    pub fn estimate(tokens: u64, model: Option<String>, why: Option<String>) -> Self {
        Self { tokens, is_estimate: true, model, why }
    }
}
