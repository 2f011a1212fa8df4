//! Reads the session's conversation, sends notifications to it, and asks models outside of it.

use jaato_types::history::{HistoryAnswer, HistoryMessage, HistoryRead, SESSION_HISTORY};
use jaato_types::model::{MODEL_COMPLETE, ModelAnswer, ModelComplete, ModelPiece};
use jaato_types::notify::{NOTIFY, NotifyAnswer, NotifyRequest};
use jaato_types::service::StreamAnswer;
use jaato_types::{Delta, Error, ErrorKind, Message, Result};

use crate::context::Reporter;
use crate::context::stream::ServiceStream;

/// The messages of a conversation, oldest first. Made by [`Reporter::history`].
pub struct Conversation {
    /// The number of messages in the record, including those that were not requested.
    pub messages: u64,
    stream: ServiceStream,
}

/// A model's answer that arrives in pieces. Made by [`Reporter::stream_model`].
pub struct ModelStream {
    stream: ServiceStream,
    answer: Option<ModelAnswer>,
}

impl Reporter {
    /// Reads the conversation of the session. It contains all messages before the current step,
    /// including those that a gc left out of requests.
    ///
    /// # Errors
    /// `permission_denied` without a grant for `session.history`; `unavailable` without a session.
    pub async fn history(&self, read: HistoryRead) -> Result<Conversation> {
        let answer: HistoryAnswer = self.service(SESSION_HISTORY, &read).await?;
        let stream = ServiceStream::new(self.clone(), answer.handle);
        Ok(Conversation { messages: answer.messages, stream })
    }

    /// Sends a notification to the session's model with its next request, and starts a turn if none
    /// runs. The model and the user see which plugin sent it.
    ///
    /// # Errors
    /// `permission_denied` without a grant for `notify`; `limit_reached` for more than 6 a minute;
    /// `invalid_arguments` for an empty text or more than 16 KiB.
    pub async fn notify(&self, text: impl Into<String>) -> Result<()> {
        let request = NotifyRequest { text: text.into(), ..NotifyRequest::default() };
        self.service::<NotifyAnswer>(NOTIFY, &request).await?;
        Ok(())
    }

    /// Asks a model, without tools, and waits for its answer. The request and the answer do not
    /// join the conversation, but they count against the session's caps.
    ///
    /// ```
    /// # use jaato_plugin_sdk::prelude::*;
    /// use jaato_plugin_sdk::model::{ModelComplete, ask};
    ///
    /// # async fn summary(cx: &Cx, text: &str) -> Result<Output> {
    /// let request = ModelComplete { system: "Sum up in one line.".into(), ..ask(text) };
    /// Ok(Output::text(cx.model(&request).await?.text()))
    /// # }
    /// ```
    ///
    /// # Errors
    /// `permission_denied` without a grant for `model.complete`; `limit_reached` at a cap of the
    /// session, after 8 requests in a turn if the session has no cap, and if 16 requests are
    /// already waiting; `unavailable` if the session's model supports only one conversation and the
    /// request names no other model; the provider's error.
    pub async fn model(&self, request: &ModelComplete) -> Result<ModelAnswer> {
        let request = ModelComplete { stream: false, ..request.clone() };
        self.service(MODEL_COMPLETE, &request).await
    }

    /// Asks a model and streams the answer piece by piece, otherwise as [`Reporter::model`].
    /// Dropping the stream ends the request.
    ///
    /// # Errors
    /// `permission_denied` and `invalid_arguments` at once, all other errors with the next piece.
    pub async fn stream_model(&self, request: &ModelComplete) -> Result<ModelStream> {
        let request = ModelComplete { stream: true, ..request.clone() };
        let answer: StreamAnswer = self.service(MODEL_COMPLETE, &request).await?;
        let stream = ServiceStream::new(self.clone(), answer.handle);
        Ok(ModelStream { stream, answer: None })
    }
}

/// Creates a request with one user message.
pub fn ask(text: impl Into<String>) -> ModelComplete {
    let messages = vec![Message::user(text)];
    ModelComplete { messages, ..ModelComplete::default() }
}

impl Conversation {
    /// Waits for the next message. Returns `None` after the last one.
    ///
    /// # Errors
    /// `cancelled` if the call ended.
    pub async fn next(&mut self) -> Result<Option<HistoryMessage>> {
        Ok(self.stream.next_event().await?.map(|(message, _)| message))
    }

    /// Reads all remaining messages.
    ///
    /// # Errors
    /// As [`Conversation::next`].
    pub async fn rest(&mut self) -> Result<Vec<HistoryMessage>> {
        let mut messages = Vec::new();
        while let Some(message) = self.next().await? {
            messages.push(message);
        }
        Ok(messages)
    }
}

impl ModelStream {
    /// Waits for the next piece. Returns `None` after the last one.
    ///
    /// # Errors
    /// As [`Reporter::model`].
    pub async fn next(&mut self) -> Result<Option<Delta>> {
        while let Some((piece, _)) = self.stream.next_event::<ModelPiece>().await? {
            if let Some(answer) = piece.answer {
                self.answer = Some(answer);
            } else if piece.delta.is_some() {
                return Ok(piece.delta);
            }
        }
        Ok(None)
    }

    /// Waits for the whole answer.
    ///
    /// # Errors
    /// As [`Reporter::model`].
    pub async fn answer(mut self) -> Result<ModelAnswer> {
        while self.next().await?.is_some() {}
        let cut = || Error::new(ErrorKind::Provider, "the answer ended before it was complete");
        self.answer.ok_or_else(cut)
    }
}
