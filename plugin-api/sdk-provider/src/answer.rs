//! Collects an answer's pieces: what is shown goes out as it comes, the whole is the completion.

use jaato_plugin_sdk::types::{Completion, Delta, FinishReason, Part, ToolCall, Usage};

/// An answer that is being received. Pure: whoever drives it emits what the methods return.
#[derive(Debug, Default)]
pub struct Answer {
    parts: Vec<Part>,
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
        if let Some(Part::Text { text }) = self.parts.last_mut() {
            text.push_str(piece);
        } else {
            self.parts.push(Part::text(piece));
        }
        Some(Delta::Text { text: piece.to_owned() })
    }

    /// Adds reasoning; nothing to emit for an empty piece. The signature is what the server wants
    /// back with it, and stays with the part for later requests.
    pub fn thought(&mut self, piece: &str, signature: Option<&str>) -> Option<Delta> {
        if piece.is_empty() {
            return None;
        }
        match self.parts.last_mut() {
            Some(Part::Thought { text, signature: known }) if known.as_deref() == signature => {
                text.push_str(piece);
            }
            Some(_) | None => {
                let signature = signature.map(str::to_owned);
                self.parts.push(Part::Thought { text: piece.to_owned(), signature });
            }
        }
        Some(Delta::Thought { text: piece.to_owned() })
    }

    /// Adds a call that is complete.
    pub fn call(&mut self, call: ToolCall) -> Delta {
        self.parts.push(Part::ToolCall(call.clone()));
        Delta::ToolCall(call)
    }

    /// Sets what the server counted.
    pub fn set_usage(&mut self, usage: Usage) {
        self.usage = usage;
    }

    /// Tells whether nothing has come.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Counts the parts so far: runs of text, runs of reasoning, calls.
    pub fn parts(&self) -> usize {
        self.parts.len()
    }

    /// Ends the answer. Calls and the reason `tool_use` go together, whatever the server said: many
    /// servers say `stop` after a call. Only `max_tokens` stays beside calls, because it may have
    /// cut the last one.
    pub fn finish(self, reason: FinishReason) -> Completion {
        let has_calls = self.parts.iter().any(|part| part.as_tool_call().is_some());
        let finish_reason = match reason {
            FinishReason::MaxTokens => reason,
            _ if has_calls => FinishReason::ToolUse,
            FinishReason::ToolUse => FinishReason::Stop,
            FinishReason::Stop
            | FinishReason::Safety
            | FinishReason::Error
            | FinishReason::Cancelled
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
}
