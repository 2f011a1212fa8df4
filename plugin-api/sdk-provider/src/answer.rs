//! Collects an answer's pieces: what is shown goes out as it comes, the whole is the completion.
//!
//! Pieces of one kind make one part until the part is ended, another begun, or another kind comes.

use jaato_plugin_sdk::serde_json::Value;
use jaato_plugin_sdk::types::{Completion, Delta, FinishReason, Part, ToolCall, Usage};

/// Most events of one answer: twice the tokens that any model answers with today. More is a server
/// that goes on for ever in pieces of nothing.
pub const EVENTS_MAX: usize = 256 * 1024;

/// Most parts of one answer. Models begin one at each call, or switch between thoughts and text, at
/// most.
pub const PARTS_MAX: usize = 4096;

/// An answer that is being received. Pure: whoever drives it emits what the methods return.
///
/// ```
/// # use jaato_plugin_sdk_provider::Answer;
/// # use jaato_plugin_sdk::types::{FinishReason, Part};
/// let mut answer = Answer::new();
/// answer.thought("hm", None);
/// answer.sign("as the server signed it"); // comes after the thought, without text
/// answer.text("Yes.");
/// answer.end_part();
/// answer.text("And no."); // a block of its own, as the server sent it
/// let completion = answer.finish(FinishReason::Stop);
/// let thought = Part::thought("hm").signed("as the server signed it");
/// assert_eq!(completion.parts, [thought, Part::text("Yes."), Part::text("And no.")]);
/// ```
#[derive(Debug, Default)]
pub struct Answer {
    parts: Vec<Part>,
    /// Whether a piece of the last part's kind belongs to it.
    is_open: bool,
    usage: Usage,
}

impl Answer {
    /// Begins an answer.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds text; nothing to emit for an empty piece.
    pub fn text(&mut self, piece: &str) -> Option<Delta> {
        if piece.is_empty() {
            return None;
        }
        match self.parts.last_mut() {
            Some(Part::Text { text, .. }) if self.is_open => text.push_str(piece),
            Some(_) | None => self.begin(Part::text(piece)),
        }
        Some(Delta::text(piece))
    }

    /// Adds reasoning; nothing to emit for an empty piece. The signature is what the server wants
    /// back with it, and stays with the part for later requests. One that comes without text signs
    /// the thought that is open; where none is, it makes an empty one.
    pub fn thought(&mut self, piece: &str, signature: Option<&str>) -> Option<Delta> {
        if piece.is_empty() {
            let signature = signature?;
            match self.parts.last_mut() {
                Some(Part::Thought { signature: known, .. }) if self.is_open => {
                    *known = Some(signature.to_owned());
                }
                Some(_) | None => self.begin(Part::thought("").signed(signature)),
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
                self.begin(match signature {
                    Some(signature) => thought.signed(signature),
                    None => thought,
                });
            }
        }
        Some(Delta::thought(piece))
    }

    /// Begins a text of its own, whatever stands before it. One to which nothing is added, and
    /// which is not signed, is no part of the answer.
    pub fn begin_text(&mut self) {
        self.begin(Part::text(""));
    }

    /// Begins a thought of its own, as [`begin_text`](Self::begin_text) does a text.
    pub fn begin_thought(&mut self) {
        self.begin(Part::thought(""));
    }

    /// Ends the last part: the next piece begins another, of whatever kind it is.
    pub fn end_part(&mut self) {
        self.is_open = false;
    }

    /// Signs the last part, which is a text, a thought or a call, open or not. A signature that
    /// comes in pieces is put together. Returns false where there is nothing to sign.
    pub fn sign(&mut self, piece: &str) -> bool {
        let place = self.parts.last_mut().and_then(Part::signature_mut);
        place.map(|place| place.get_or_insert_default().push_str(piece)).is_some()
    }

    /// Adds what only this provider understands, and wants back at this place.
    pub fn opaque(&mut self, item: Value) {
        self.begin(Part::opaque(item));
    }

    /// Adds a call that is complete.
    pub fn call(&mut self, call: ToolCall) -> Delta {
        self.begin(Part::ToolCall(call.clone()));
        Delta::ToolCall(call)
    }

    /// Keeps the place of a call that comes in pieces, so that what follows stands behind it.
    pub fn begin_call(&mut self) {
        self.begin(Part::ToolCall(ToolCall::default()));
    }

    /// Puts calls into the places that [`begin_call`](Self::begin_call) kept, in order, and gives
    /// what is to be emitted. Calls beyond the places stand last; a place without a call is no part
    /// of the answer, as where the model was stopped and none of its calls may run.
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

    /// Sets what the server counted.
    pub fn set_usage(&mut self, usage: Usage) {
        self.usage = usage;
    }

    /// Tells whether nothing has come.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Counts the parts so far: runs of text, runs of reasoning, calls, opaque parts.
    pub fn parts(&self) -> usize {
        self.parts.len()
    }

    /// Ends the answer. Calls and the reason `tool_use` go together, whatever the server said: many
    /// servers say `stop` after a call. Only `max_tokens` and `context_exceeded` stay beside calls,
    /// because they may have cut the last one.
    pub fn finish(mut self, reason: FinishReason) -> Completion {
        self.parts.retain(|part| !is_nothing(part));
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

    /// Ends an answer that stopped for a reason that has no name here, with the server's word for
    /// it.
    pub fn finish_with_word(self, word: &str) -> Completion {
        let mut completion = self.finish(FinishReason::Unknown);
        if completion.finish_reason == FinishReason::Unknown {
            completion.finish_word = Some(word.to_owned());
        }
        completion
    }

    fn begin(&mut self, part: Part) {
        self.parts.push(part);
        self.is_open = true;
    }
}

/// A text or a thought that was begun, and neither said anything nor was signed.
fn is_nothing(part: &Part) -> bool {
    match part {
        Part::Text { text, signature, .. } | Part::Thought { text, signature, .. } => {
            text.is_empty() && signature.is_none()
        }
        _ => false,
    }
}
