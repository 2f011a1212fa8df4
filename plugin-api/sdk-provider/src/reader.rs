//! The [`AnswerReader`] trait, with which a provider reads answers in any form.

use jaato_plugin_sdk::prelude::*;

use crate::{ModelProtocol, ServerEvent};

/// Reads one answer of a provider's server.
pub trait AnswerReader: Sized {
    /// The hint if the URL belongs to another kind of server.
    const CHECK_URL: &'static str;

    /// The protocol of the reader. A stream that starts with an event of another known protocol
    /// fails immediately, with a hint.
    const PROTOCOL: Option<ModelProtocol> = None;

    /// Returns the hint if the server answers with another protocol.
    fn hint_for(_other: ModelProtocol) -> &'static str {
        Self::CHECK_URL
    }

    /// Takes one event and returns the deltas to emit.
    ///
    /// # Errors
    /// An error that the server reports in its answer, an unreadable event, or a limit.
    fn handle_event(&mut self, event: &ServerEvent) -> Result<Vec<Delta>>;

    /// Takes the event that was open when the stream ended. It may be truncated, and counts only if
    /// it is complete.
    ///
    /// # Errors
    /// As [`AnswerReader::handle_event`].
    fn handle_last_event(&mut self, event: &ServerEvent) -> Result<Vec<Delta>>;

    /// Takes an answer that is not streamed, as JSON. `url` is the URL of the request.
    ///
    /// # Errors
    /// As [`AnswerReader::handle_event`].
    fn handle_whole_body(&mut self, url: &str, body: &[u8]) -> Result<Vec<Delta>>;

    /// Returns true if the server has announced the end of the stream.
    fn is_done(&self) -> bool;

    /// Returns true if the model has finished, though the usage may still follow.
    fn is_complete(&self) -> bool;

    /// Returns true if any event has arrived.
    fn has_begun(&self) -> bool;

    /// Ends the answer. Returns the last deltas and the completion.
    ///
    /// # Errors
    /// Fails if the answer is truncated. The error is temporary, because a retry may get the whole
    /// answer.
    fn finish(self) -> Result<(Vec<Delta>, Completion)>;
}
