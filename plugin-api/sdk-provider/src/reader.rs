//! What a provider makes of an answer, whatever the form in which it comes.

use jaato_plugin_sdk::prelude::*;

use crate::{Protocol, ServerEvent};

/// Reads one answer: what a provider makes of what its server sends.
pub trait Reader: Sized {
    /// What to check where something answers that is no such server.
    const CHECK_URL: &'static str;

    /// The protocol that it reads. A stream that begins with an event of another known one is
    /// refused at once, with a hint.
    const PROTOCOL: Option<Protocol> = None;

    /// Says what to do if the server answers by another protocol.
    fn hint_for(_other: Protocol) -> &'static str {
        Self::CHECK_URL
    }

    /// Takes one event; gives what is to be emitted.
    ///
    /// # Errors
    /// What the server reports inside its answer; an event that cannot be read; a limit.
    fn event(&mut self, event: &ServerEvent) -> Result<Vec<Delta>>;

    /// Takes the event that the stream's end left open. It may be cut in the middle and counts only
    /// where it is whole.
    ///
    /// # Errors
    /// As [`Reader::event`].
    fn last_event(&mut self, event: &ServerEvent) -> Result<Vec<Delta>>;

    /// Takes an answer that comes at once, as JSON; `url` is what answered.
    ///
    /// # Errors
    /// As [`Reader::event`].
    fn whole(&mut self, url: &str, body: &[u8]) -> Result<Vec<Delta>>;

    /// Tells whether the server said that nothing more comes.
    fn is_done(&self) -> bool;

    /// Tells whether the model has said all, though the server may still tell what it cost.
    fn is_complete(&self) -> bool;

    /// Tells whether any event has come.
    fn has_begun(&self) -> bool;

    /// Ends the answer where what came ended: the last deltas and the completion.
    ///
    /// # Errors
    /// When it was cut short; temporary, because the next attempt may get it whole.
    fn finish(self) -> Result<(Vec<Delta>, Completion)>;
}
