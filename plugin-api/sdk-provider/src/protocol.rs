//! Detects the protocol of an event, to recognize a base URL that leads to another server.

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::serde_json;

use crate::{AnswerReader, failure};

/// A protocol of model servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModelProtocol {
    /// OpenAI's chat completions.
    ChatCompletions,
    /// OpenAI's Responses.
    Responses,
    /// Anthropic's Messages.
    Messages,
    /// Google's generateContent.
    GenerateContent,
    /// Ollama's own protocol.
    Ollama,
}

impl ModelProtocol {
    /// Returns the protocol of an event, or `None` if several protocols may send it.
    pub fn from_event(event: &Value) -> Option<Self> {
        let kind = event["type"].as_str().unwrap_or_default();
        let is_of_ollama = event["done"].is_boolean() && event["message"].is_object();
        Some(match () {
            () if event["choices"].is_array() => Self::ChatCompletions,
            () if kind.starts_with("response.") => Self::Responses,
            () if kind == "message_start" || kind.starts_with("content_block_") => Self::Messages,
            () if event["candidates"].is_array() => Self::GenerateContent,
            () if is_of_ollama => Self::Ollama,
            () => return None,
        })
    }

    /// Returns the name to show to users.
    pub fn display_name(self) -> &'static str {
        match self {
            Self::ChatCompletions => "OpenAI's chat completions",
            Self::Responses => "OpenAI's Responses",
            Self::Messages => "Anthropic's Messages",
            Self::GenerateContent => "Google's generateContent",
            Self::Ollama => "Ollama's own protocol",
        }
    }
}

/// Returns an error if the first event of a stream belongs to another protocol than the reader's.
pub(crate) fn check_protocol<R: AnswerReader>(url: &str, data: &str) -> Result<()> {
    let event: Option<Value> = serde_json::from_str(data).ok();
    let (Some(own), Some(other)) =
        (R::PROTOCOL, event.as_ref().and_then(ModelProtocol::from_event))
    else {
        return Ok(());
    };
    if own == other {
        return Ok(());
    }
    let (url, own, other_name) =
        (failure::url_for_errors(url), own.display_name(), other.display_name());
    let text = format!("`{url}` answered with {other_name}, but the request used {own}");
    Err(Error::new(ErrorKind::Provider, text).with_hint(R::hint_for(other)))
}
