//! A provider that follows a script and records its requests.

use std::collections::VecDeque;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt};
use jaato_types::{
    Completion, CompletionRequest, Delta, Error, FinishReason, ModelInfo, Part, Price, Result,
    ToolCall, Usage,
};
use parking_lot::Mutex;
use serde_json::Value;

use crate::{Cancel, DeltaSink, Provider};

/// The next action of a scripted provider.
#[derive(Debug, Clone, PartialEq)]
pub enum ScriptedProviderAction {
    /// Streams a piece of text that is also in the completion.
    Text(String),
    /// Streams a piece of reasoning that is also in the completion.
    Thought(String),
    /// Streams a call that is also in the completion.
    Call(ToolCall),
    /// Streams something that is not in the completion.
    Shown(Delta),
    /// Adds a part to the completion that was not streamed.
    Unseen(Part),
    /// Sends bytes without content.
    Alive,
    /// Waits this many milliseconds.
    Wait(u64),
    /// Fails.
    Fail(Error),
    /// Never sends anything again.
    Hang,
    /// Sets the completion's finish reason.
    Finish(FinishReason),
    /// Sets the server's own finish word of the completion.
    FinishWord(String),
    /// Sets the completion's usage.
    Usage(Usage),
    /// Sets when the server has capacity again, in milliseconds.
    RoomAfter(u64),
}

impl ScriptedProviderAction {
    /// Creates a text beat.
    pub fn text(text: &str) -> Self {
        Self::Text(text.to_owned())
    }

    /// Creates a call beat.
    pub fn call(id: &str, name: &str, arguments: Value) -> Self {
        Self::Call(ToolCall::new(id, name, arguments))
    }
}

/// A provider that answers each request with the next list of beats.
#[derive(Debug, Default)]
pub struct ScriptedProvider {
    script: Mutex<VecDeque<Vec<ScriptedProviderAction>>>,
    requests: Mutex<Vec<CompletionRequest>>,
    window: Mutex<ScriptedContextWindow>,
    accepts: Mutex<Option<Vec<String>>>,
    price: Mutex<Option<Price>>,
}

/// The context window that is reported, and how often it was asked for.
#[derive(Debug, Clone, Copy, Default)]
struct ScriptedContextWindow {
    tokens: Option<u64>,
    after_ms: u64,
    asked: usize,
}

impl ScriptedProvider {
    /// Adds the answer to one more request.
    pub fn add_answer(&self, beats: impl IntoIterator<Item = ScriptedProviderAction>) -> &Self {
        let beats = beats.into_iter().collect();
        self.script.lock().push_back(beats);
        self
    }

    /// Reports the context window, this many milliseconds after it was asked for.
    pub fn set_window(&self, tokens: u64, after_ms: u64) {
        let mut window = self.window.lock();
        (window.tokens, window.after_ms) = (Some(tokens), after_ms);
    }

    /// Reports the accepted media types when it is asked.
    pub fn set_accepted_media(&self, media_types: &[&str]) {
        let told = media_types.iter().map(|it| (*it).to_owned()).collect();
        *self.accepts.lock() = Some(told);
    }

    /// Reports the model's price when it is asked.
    pub fn set_price(&self, price: Price) {
        *self.price.lock() = Some(price);
    }

    /// Counts how often the context window was asked for.
    pub fn window_query_count(&self) -> usize {
        self.window.lock().asked
    }

    /// Drops the answers that were not used.
    pub fn drop_unused_answers(&self) {
        self.script.lock().clear();
    }

    /// Returns the requests so far, including retries.
    pub fn requests(&self) -> Vec<CompletionRequest> {
        self.requests.lock().clone()
    }
}

impl Provider for ScriptedProvider {
    fn source(&self) -> &str {
        "scripted"
    }

    fn complete<'a>(
        &'a self,
        request: &'a CompletionRequest,
        sink: DeltaSink,
        _cancel: Cancel,
    ) -> BoxFuture<'a, Result<Completion>> {
        self.requests.lock().push(request.clone());
        let beats = self.script.lock().pop_front();
        async move {
            match beats {
                Some(beats) => play_actions(beats, &sink).await,
                None => Err(Error::failed("the script has no answer to this request")),
            }
        }
        .boxed()
    }

    fn query_model_info(&self) -> BoxFuture<'static, Option<ModelInfo>> {
        let (window, accepts, price) = {
            let mut window = self.window.lock();
            window.asked += 1;
            (*window, self.accepts.lock().clone(), self.price.lock().clone())
        };
        async move {
            if window.after_ms > 0 {
                tokio::time::sleep(Duration::from_millis(window.after_ms)).await;
            }
            let info = ModelInfo { accepts, price, ..ModelInfo::new("model") };
            Some(ModelInfo { context_limit: window.tokens, ..info })
        }
        .boxed()
    }
}

async fn play_actions(beats: Vec<ScriptedProviderAction>, sink: &DeltaSink) -> Result<Completion> {
    let mut parts: Vec<Part> = Vec::new();
    let (mut finish_reason, mut finish_word, mut usage) = (None, None, Usage::default());
    let mut next_after_ms = None;
    for beat in beats {
        match beat {
            ScriptedProviderAction::Text(text) => {
                sink.emit_delta(Delta::text(text.clone()));
                match parts.last_mut() {
                    Some(Part::Text { text: said, .. }) => said.push_str(&text),
                    _ => parts.push(Part::text(text)),
                }
            }
            ScriptedProviderAction::Thought(text) => {
                sink.emit_delta(Delta::thought(text.clone()));
                parts.push(Part::thought(text));
            }
            ScriptedProviderAction::Call(call) => {
                sink.emit_delta(Delta::ToolCall(call.clone()));
                parts.push(Part::ToolCall(call));
            }
            ScriptedProviderAction::Shown(delta) => {
                sink.emit_delta(delta);
            }
            ScriptedProviderAction::Unseen(part) => parts.push(part),
            ScriptedProviderAction::Alive => sink.record_activity(),
            ScriptedProviderAction::Wait(ms) => tokio::time::sleep(Duration::from_millis(ms)).await,
            ScriptedProviderAction::Fail(error) => return Err(error),
            ScriptedProviderAction::Hang => std::future::pending().await,
            ScriptedProviderAction::Finish(reason) => finish_reason = Some(reason),
            ScriptedProviderAction::FinishWord(word) => finish_word = Some(word),
            ScriptedProviderAction::Usage(tokens) => usage = tokens,
            ScriptedProviderAction::RoomAfter(ms) => next_after_ms = Some(ms),
        }
    }
    let called = parts.iter().any(|part| part.as_tool_call().is_some());
    let natural = if called { FinishReason::ToolUse } else { FinishReason::Stop };
    let finish_reason = finish_reason.unwrap_or(natural);
    Ok(Completion { finish_word, next_after_ms, ..Completion::new(parts, finish_reason, usage) })
}
