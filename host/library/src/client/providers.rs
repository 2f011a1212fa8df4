//! A provider under the names of the original: it keeps a conversation, streams, and is cancelled
//! by a token.

use std::sync::Arc;

use jaato_runtime::session_loop::AnsweringModel;

use crate::blocking::BlockingJaato;
use crate::events::EventCallback;
use crate::ports::{Cancel, DeltaSink};
use crate::types::{
    Completion, CompletionRequest, Error, ErrorKind, Event, EventEnvelope, FinishReason, Message,
    Result, ToolResult, ToolSpec,
};

/// An operation was cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CancelledException;

impl std::fmt::Display for CancelledException {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the operation was cancelled")
    }
}

impl std::error::Error for CancelledException {}

impl From<CancelledException> for Error {
    fn from(_: CancelledException) -> Self {
        Self::cancelled()
    }
}

/// Checks a token.
///
/// # Errors
/// If it is cancelled.
pub fn raise_if_cancelled(token: &Cancel) -> std::result::Result<(), CancelledException> {
    if token.is_cancelled() { Err(CancelledException) } else { Ok(()) }
}

/// A model with a separate conversation. Runs no tools: the caller sends their results.
pub struct ModelProviderPlugin {
    jaato: BlockingJaato,
    answering: AnsweringModel,
    system: String,
    tools: Vec<ToolSpec>,
    history: Vec<Message>,
}

impl ModelProviderPlugin {
    /// Uses a model of a host.
    ///
    /// # Errors
    /// If no provider offers the model.
    pub fn connect(jaato: &BlockingJaato, model: &str) -> Result<Self> {
        let answering = jaato.inner().runtime().answering_model(model)?;
        let (system, tools, history) = (String::new(), Vec::new(), Vec::new());
        Ok(Self { jaato: jaato.clone(), answering, system, tools, history })
    }

    /// Begins a conversation.
    pub fn create_session(&mut self, system: &str, tools: Vec<ToolSpec>, history: Vec<Message>) {
        (self.system, self.tools, self.history) = (system.to_owned(), tools, history);
    }

    /// Returns true: every provider of jaato streams, or gives its whole answer as one piece.
    pub fn supports_streaming(&self) -> bool {
        true
    }

    /// Returns the conversation.
    pub fn get_history(&self) -> Vec<Message> {
        self.history.clone()
    }

    /// Sends a message and returns the response. `on_chunk` gets the text while it comes.
    ///
    /// # Errors
    /// The provider's error. After a cancellation the response has the text so far and
    /// [`FinishReason::CANCELLED`], and does not join the conversation.
    pub fn send_message_streaming(
        &mut self,
        message: &str,
        on_chunk: impl Fn(&str) + Send + Sync + 'static,
        cancel_token: &Cancel,
    ) -> Result<Completion> {
        self.send_request(Message::user(message), on_chunk, cancel_token)
    }

    /// Sends the results of the last response's calls, as
    /// [`ModelProviderPlugin::send_message_streaming`].
    ///
    /// # Errors
    /// The provider's.
    pub fn send_tool_results_streaming(
        &mut self,
        results: Vec<ToolResult>,
        on_chunk: impl Fn(&str) + Send + Sync + 'static,
        cancel_token: &Cancel,
    ) -> Result<Completion> {
        self.send_request(Message::tool(results), on_chunk, cancel_token)
    }

    /// Sends a message and returns the response in full.
    ///
    /// # Errors
    /// The provider's.
    pub fn send_message(&mut self, message: &str) -> Result<Completion> {
        self.send_message_streaming(message, |_| {}, &Cancel::new())
    }

    fn send_request(
        &mut self,
        message: Message,
        on_chunk: impl Fn(&str) + Send + Sync + 'static,
        cancel: &Cancel,
    ) -> Result<Completion> {
        let (_, name) = self.answering.model.id.split().unwrap_or_default();
        let mut request = CompletionRequest::new(name, self.history.clone());
        request.messages.push(message.clone());
        request.system.clone_from(&self.system);
        request.tools.clone_from(&self.tools);
        request.options.clone_from(&self.answering.model.options);
        let said = Arc::new(parking_lot::Mutex::new(String::new()));
        let kept = Arc::clone(&said);
        let receive = move |envelope: EventEnvelope| {
            if let Event::TextDelta { text, .. } = envelope.event {
                on_chunk(&text);
                kept.lock().push_str(&text);
            }
        };
        let sink = DeltaSink::without_session(Arc::new(EventCallback(receive)));
        let provider = &self.answering.provider;
        let completion = self.jaato.wait(async {
            tokio::select! {
                biased;
                () = cancel.cancelled() => Err(Error::cancelled()),
                completion = provider.complete(&request, sink, cancel.clone()) => completion,
            }
        });
        match completion {
            Err(error) if error.kind == ErrorKind::Cancelled => {
                let text = crate::types::Part::text(said.lock().clone());
                Ok(Completion::new(vec![text], FinishReason::CANCELLED, Default::default()))
            }
            Err(error) => Err(error),
            Ok(completion) => {
                self.history.push(message);
                self.history.push(Message::model(completion.parts.clone()));
                Ok(completion)
            }
        }
    }
}
