//! Collects the pieces of an answer, emits them as they arrive, and returns the completion.
//!
//! Pieces of the same kind form one part until that part is ended, another one is started, or a
//! piece of another kind arrives.

use jaato_plugin_sdk::serde_json::Value;
use jaato_plugin_sdk::types::{Completion, Delta, FinishReason, Part, ToolCall, Usage};

/// The maximum number of events of one answer: twice the tokens of the longest answer of any model
/// today. A server that sends more never stops.
pub const EVENTS_MAX: usize = 256 * 1024;

/// The maximum number of parts of one answer. Models start a part for each call, or when they
/// switch between thoughts and text.
pub const PARTS_MAX: usize = 4096;

/// An answer that is being received. Pure: the caller emits the deltas that the methods return.
///
/// ```
/// # use jaato_plugin_sdk_provider::StreamingAnswer;
/// # use jaato_plugin_sdk::types::{FinishReason, Part};
/// let mut answer = StreamingAnswer::new();
/// answer.add_thought("hm", None);
/// answer.sign_last_part("as the server signed it"); // comes after the thought, without text
/// answer.add_text("Yes.");
/// answer.end_part();
/// answer.add_text("And no."); // a block of its own, as the server sent it
/// let completion = answer.finish(FinishReason::Stop);
/// let thought = Part::thought("hm").with_signature("as the server signed it");
/// assert_eq!(completion.parts, [thought, Part::text("Yes."), Part::text("And no.")]);
/// ```
#[derive(Debug, Default)]
pub struct StreamingAnswer {
    parts: Vec<Part>,
    /// Whether further pieces of the same kind belong to the last part.
    is_open: bool,
    usage: Usage,
}

impl StreamingAnswer {
    /// Creates an empty answer.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds text. Returns `None` for an empty piece.
    pub fn add_text(&mut self, piece: &str) -> Option<Delta> {
        if piece.is_empty() {
            return None;
        }
        match self.parts.last_mut() {
            Some(Part::Text { text, .. }) if self.is_open => text.push_str(piece),
            Some(_) | None => self.begin_part(Part::text(piece)),
        }
        Some(Delta::text(piece))
    }

    /// Adds reasoning. Returns `None` for an empty piece. The signature contains the data that the
    /// server needs back with the reasoning, and stays with the part for later requests. A
    /// signature without text signs the open thought, or an empty new one if no thought is open.
    pub fn add_thought(&mut self, piece: &str, signature: Option<&str>) -> Option<Delta> {
        if piece.is_empty() {
            let signature = signature?;
            match self.parts.last_mut() {
                Some(Part::Thought { signature: known, .. }) if self.is_open => {
                    *known = Some(signature.to_owned());
                }
                Some(_) | None => self.begin_part(Part::thought("").with_signature(signature)),
            }
            return None;
        }
        match self.parts.last_mut() {
            Some(Part::Thought { text, signature: known, .. })
                if self.is_open && known.as_deref() == signature =>
            {
                text.push_str(piece);
            }
            Some(_) | None => {
                let thought = Part::thought(piece);
                self.begin_part(match signature {
                    Some(signature) => thought.with_signature(signature),
                    None => thought,
                });
            }
        }
        Some(Delta::thought(piece))
    }

    /// Starts a new text part. If it stays empty and unsigned, the completion omits it.
    pub fn begin_text(&mut self) {
        self.begin_part(Part::text(""));
    }

    /// Starts a new thought, like [`begin_text`](Self::begin_text) for text.
    pub fn begin_thought(&mut self) {
        self.begin_part(Part::thought(""));
    }

    /// Ends the last part. The next piece starts a new one, regardless of its kind.
    pub fn end_part(&mut self) {
        self.is_open = false;
    }

    /// Signs the last part if it is a text, a thought or a call, open or not. The pieces of a
    /// signature are concatenated. Returns false if no part can be signed.
    pub fn sign_last_part(&mut self, piece: &str) -> bool {
        let place = self.parts.last_mut().and_then(Part::signature_mut);
        place.map(|place| place.get_or_insert_default().push_str(piece)).is_some()
    }

    /// Adds an item that only this provider understands and that must go back at this position.
    pub fn add_opaque(&mut self, item: Value) {
        self.begin_part(Part::opaque(item));
    }

    /// Adds a complete call.
    pub fn add_call(&mut self, call: ToolCall) -> Delta {
        self.begin_part(Part::ToolCall(call.clone()));
        Delta::ToolCall(call)
    }

    /// Reserves the position of a call that arrives in pieces, so that later parts follow it.
    pub fn begin_call(&mut self) {
        self.begin_part(Part::ToolCall(ToolCall::default()));
    }

    /// Fills the positions that [`begin_call`](Self::begin_call) reserved with calls, in order, and
    /// returns the deltas to emit. Further calls go to the end. A position without a call is
    /// omitted, for example if the model was stopped and none of its calls may run.
    pub fn end_calls(&mut self, calls: Vec<ToolCall>) -> Vec<Delta> {
        let deltas = calls.iter().cloned().map(Delta::ToolCall).collect();
        let mut calls = calls.into_iter();
        let is_place =
            |part: &Part| part.as_tool_call().is_some_and(|call| call.id.as_str().is_empty());
        for place in self.parts.iter_mut().filter(|part| is_place(part)) {
            let Some(call) = calls.next() else { break };
            *place = Part::ToolCall(call);
        }
        self.parts.retain(|part| !is_place(part));
        self.parts.extend(calls.map(Part::ToolCall));
        self.is_open = false;
        deltas
    }

    /// Sets the usage that the server reported.
    pub fn set_usage(&mut self, usage: Usage) {
        self.usage = usage;
    }

    /// Returns true if the answer has no parts yet.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Returns the number of parts so far: runs of text, runs of reasoning, calls, and opaque
    /// parts.
    pub fn part_count(&self) -> usize {
        self.parts.len()
    }

    /// Ends the answer. An answer with calls always gets the reason `tool_use`, because many
    /// servers report `stop` after a call. Only `max_tokens` and `context_exceeded` are kept,
    /// because the last call may be truncated.
    pub fn finish(mut self, reason: FinishReason) -> Completion {
        self.parts.retain(|part| !is_empty_part(part));
        let has_calls = self.parts.iter().any(|part| part.as_tool_call().is_some());
        let finish_reason = match reason {
            FinishReason::MaxTokens | FinishReason::ContextExceeded => reason,
            _ if has_calls => FinishReason::ToolUse,
            FinishReason::ToolUse => FinishReason::Stop,
            FinishReason::Stop
            | FinishReason::Safety
            | FinishReason::Error
            | FinishReason::Cancelled
            | FinishReason::Paused
            | FinishReason::Refused
            | FinishReason::Unknown => reason,
        };
        Completion::new(self.parts, finish_reason, self.usage)
    }

    /// Ends an answer whose stop reason is unknown here. `word` is the server's name for the
    /// reason.
    pub fn finish_with_word(self, word: &str) -> Completion {
        let mut completion = self.finish(FinishReason::Unknown);
        if completion.finish_reason == FinishReason::Unknown {
            completion.finish_word = Some(word.to_owned());
        }
        completion
    }

    fn begin_part(&mut self, part: Part) {
        self.parts.push(part);
        self.is_open = true;
    }
}

/// Returns true for a text or thought that is empty and unsigned.
fn is_empty_part(part: &Part) -> bool {
    match part {
        Part::Text { text, signature, .. } | Part::Thought { text, signature, .. } => {
            text.is_empty() && signature.is_none()
        }
        _ => false,
    }
}
