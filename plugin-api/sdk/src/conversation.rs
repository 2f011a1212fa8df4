//! The conversation: read, told something new, and models asked beside it.

use jaato_types::history::{HistoryAnswer, HistoryMessage, HistoryRead, SESSION_HISTORY};
use jaato_types::model::{MODEL_COMPLETE, ModelAnswer, ModelComplete, ModelPiece};
use jaato_types::notify::{NOTIFY, Notified, Notify};
use jaato_types::service::StreamAnswer;
use jaato_types::{Delta, Error, ErrorKind, Message, Result};

use crate::context::Reporter;
use crate::context::stream::Stream;

/// The messages of a conversation, oldest first; made by [`Reporter::history`].
pub struct Conversation {
    /// Messages of the record, those that were not asked for included.
    pub messages: u64,
    stream: Stream,
}

/// An answer of a model that comes in pieces; made by [`Reporter::stream_model`].
pub struct ModelStream {
    stream: Stream,
    answer: Option<ModelAnswer>,
}

impl Reporter {
    /// Reads the conversation of the session. What came before the call's own step is there, also
    /// what a gc left out of requests.
    ///
    /// # Errors
    /// `permission_denied` without a grant for `session.history`; `unavailable` where there is no
    /// session.
    pub async fn history(&self, read: HistoryRead) -> Result<Conversation> {
        let answer: HistoryAnswer = self.service(SESSION_HISTORY, &read).await?;
        let stream = Stream::new(self.clone(), answer.handle);
        Ok(Conversation { messages: answer.messages, stream })
    }

    /// Tells the session's model something with its next request, and begins a turn for it where
    /// none runs. The model and the person are told which plugin says so.
    ///
    /// # Errors
    /// `permission_denied` without a grant for `notify`; `limit_reached` for more than 6 a minute;
    /// `invalid_arguments` for nothing, or more than 16 KiB.
    pub async fn notify(&self, text: impl Into<String>) -> Result<()> {
        let request = Notify { text: text.into(), ..Notify::default() };
        self.service::<Notified>(NOTIFY, &request).await?;
        Ok(())
    }

    /// Asks a model, without tools, and waits for its answer; nothing of it joins the conversation.
    /// It counts against what the session may use up.
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
    /// session, where there is none after 8 requests in a turn, and beside 16 that wait;
    /// `unavailable` where the session's model holds one conversation alone and no other is named;
    /// what the provider answers.
    pub async fn model(&self, request: &ModelComplete) -> Result<ModelAnswer> {
        let request = ModelComplete { stream: false, ..request.clone() };
        self.service(MODEL_COMPLETE, &request).await
    }

    /// Asks a model and gives the answer piece by piece; as [`Reporter::model`]. Dropping the
    /// stream ends the request.
    ///
    /// # Errors
    /// `permission_denied` and `invalid_arguments` at once, all else with the next piece.
    pub async fn stream_model(&self, request: &ModelComplete) -> Result<ModelStream> {
        let request = ModelComplete { stream: true, ..request.clone() };
        let answer: StreamAnswer = self.service(MODEL_COMPLETE, &request).await?;
        let stream = Stream::new(self.clone(), answer.handle);
        Ok(ModelStream { stream, answer: None })
    }
}

/// Makes a request of one text.
pub fn ask(text: impl Into<String>) -> ModelComplete {
    let messages = vec![Message::user(text)];
    ModelComplete { messages, ..ModelComplete::default() }
}

impl Conversation {
    /// Waits for the next message; nothing after the last.
    ///
    /// # Errors
    /// `cancelled` when the call ended.
    pub async fn next(&mut self) -> Result<Option<HistoryMessage>> {
        Ok(self.stream.next_event().await?.map(|(message, _)| message))
    }

    /// Reads all messages that are left.
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
    /// Waits for the next piece; nothing after the last one.
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
        let cut = || Error::new(ErrorKind::Provider, "the answer ended before it was whole");
        self.answer.ok_or_else(cut)
    }
}
