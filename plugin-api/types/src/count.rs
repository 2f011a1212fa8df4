//! The service `count` and the operation `count_tokens`: how many tokens a text or a request has
//! for a model.
//!
//! A plugin asks the host; the host asks the model's provider, and where that does not count, it
//! estimates: four bytes are a token.

use serde::{Deserialize, Serialize};

use crate::{Message, Request, ToolSpec};

crate::operations::service_operations! { $ count_operations, None, answered;
    /// Counts the tokens of a text or of a whole request, for the session's model or another. The
    /// error is `configuration` for a model that no provider offers, and `limit_reached` if too
    /// many counts wait.
    [reads] count COUNT "count": (Option<Count>) => Counted, sdk [(&Count)];
}

/// Asks a provider to count the tokens of a [`Request`]: [`TokenCount`]. Answered by
/// `unknown_operation` where the provider cannot, and by `unavailable` where it cannot yet.
pub const COUNT_TOKENS: &str = "count_tokens";

/// Counts that are asked of providers at once; further ones wait.
pub const COUNTS_AT_ONCE: usize = 4;
/// Counts that may wait. One more is refused.
pub const COUNTS_WAITING_MAX: usize = 64;
/// Longest wait for a provider's count, in milliseconds; then it is estimated.
pub const COUNT_WAIT_MS: u64 = 10_000;

/// What is to be counted: a text, or what a model would be sent. One of both.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Count {
    /// A text. A provider counts it as a message of the user's, with the few tokens around it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// What a model would be sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<ModelInput>,
    /// The model, by any name that a person may give; the session's where this is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// What a model would be sent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ModelInput {
    /// The system text.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub system: String,
    /// The tools.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolSpec>,
    /// The messages.
    pub messages: Vec<Message>,
}

/// How many tokens there are.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Counted {
    /// Tokens.
    pub tokens: u64,
    /// Whether it is an estimate.
    pub is_estimate: bool,
    /// The model that it is counted for, as `provider/model`; absent where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Why it is an estimate although there is a model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// What a provider answers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TokenCount {
    /// Tokens.
    pub tokens: u64,
}

impl Count {
    /// Estimates it: a quarter of the bytes, rounded up. What is no text counts by its name alone.
    pub fn estimate(&self) -> u64 {
        let text = self.text.as_ref().map_or(0, String::len);
        let request = self.request.as_ref().map_or(0, ModelInput::bytes);
        u64::try_from(text.saturating_add(request).div_ceil(4)).unwrap_or(u64::MAX)
    }

    /// Makes the request of which a provider counts the tokens; `None` where both, or neither, of
    /// text and request are given.
    pub fn request_to(&self, model: impl Into<String>) -> Option<Request> {
        match (&self.text, &self.request) {
            (Some(text), None) => Some(Request::new(model, vec![Message::user(text.as_str())])),
            (None, Some(input)) => {
                let mut request = Request::new(model, input.messages.clone());
                request.system.clone_from(&input.system);
                request.tools.clone_from(&input.tools);
                Some(request)
            }
            (Some(_), Some(_)) | (None, None) => None,
        }
    }
}

impl ModelInput {
    fn bytes(&self) -> usize {
        let json = |value: serde_json::Result<String>| value.map_or(0, |json| json.len());
        let tools = self.tools.iter().map(|tool| json(serde_json::to_string(tool)));
        let messages = self.messages.iter().map(|it| json(serde_json::to_string(&it.parts)));
        self.system.len() + tools.sum::<usize>() + messages.sum::<usize>()
    }
}

impl Counted {
    /// Makes an answer that a provider counted; the host does.
    pub fn exact(tokens: u64, model: impl Into<String>) -> Self {
        Self { tokens, is_estimate: false, model: Some(model.into()), why: None }
    }

    /// Makes an estimate; the host does.
    pub fn estimate(tokens: u64, model: Option<String>, why: Option<String>) -> Self {
        Self { tokens, is_estimate: true, model, why }
    }
}
