//! Reads a streamed answer: takes events, returns deltas, and at the end the completion.
//!
//! Pure. Lenient where servers differ, but strict where content could be lost silently: an answer
//! without an end mark counts as truncated.

use crate::{
    CallFragment, CallFragments, EVENTS_MAX, PARTS_MAX, ServerEvent, StreamingAnswer, failure,
};
use jaato_plugin_sdk::Result;
use jaato_plugin_sdk::serde_json::{self, Value};
use jaato_plugin_sdk::types::{Completion, Delta, FinishReason};

use super::chunk::{ChunkTextFields, chunk_choice, is_error_report, is_error_reported};
use super::details::ReasoningDetails;
use super::think::{ThinkPiece, ThinkTags};
use super::wrapped_calls::unwrap_calls;
use super::{reason, usage};

/// The field in which some servers send reasoning and need it back. Also the signature of such a
/// thought. DeepSeek and Kimi reject a conversation with calls if it is missing. Groq and Mistral,
/// which do not use it, reject a conversation that contains it.
pub const REASONING: &str = "reasoning_content";

/// The data of the last event.
const DONE: &str = "[DONE]";

/// The name of error events.
const ERROR_EVENT: &str = "error";

/// An answer that is being received.
#[derive(Debug)]
pub struct ChatReply {
    url: String,
    answer: StreamingAnswer,
    calls: CallFragments,
    details: ReasoningDetails,
    tags: ThinkTags,
    /// The server's word for the stop reason.
    finish: Option<String>,
    chunks: usize,
    is_refused: bool,
    is_done: bool,
    has_begun: bool,
}

impl ChatReply {
    /// Starts an answer from this URL, which errors name.
    pub fn new(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            answer: StreamingAnswer::new(),
            calls: CallFragments::new(),
            details: ReasoningDetails::default(),
            tags: ThinkTags::default(),
            finish: None,
            chunks: 0,
            is_refused: false,
            is_done: false,
            has_begun: false,
        }
    }

    /// Returns true if the server has announced the end of the stream.
    pub fn is_done(&self) -> bool {
        self.is_done
    }

    /// Returns true if the model has finished, though the usage may still follow.
    pub fn is_complete(&self) -> bool {
        self.is_done || self.finish.is_some()
    }

    /// Returns true if any event has arrived.
    pub fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Takes one event and returns the deltas to emit.
    ///
    /// # Errors
    /// An error that the server reports in its answer, an unreadable event, or `limit_reached`
    /// beyond [`EVENTS_MAX`] and [`PARTS_MAX`].
    pub fn read_event(&mut self, event: &ServerEvent) -> Result<Vec<Delta>> {
        let data = event.data.trim();
        if data.is_empty() || self.is_done {
            return Ok(Vec::new());
        }
        if data == DONE {
            self.is_done = true;
            self.has_begun = true;
            return Ok(Vec::new());
        }
        if event.name == ERROR_EVENT {
            return Err(failure::event_error(&self.url, data));
        }
        let chunk: Value = serde_json::from_str(data)
            .map_err(|error| failure::invalid_event_error(&self.url, data, &error))?;
        self.read_chunk(&chunk)
    }

    /// Takes the event that was open when the stream ended. It counts only if it is complete,
    /// because some servers omit the blank line after the last event.
    ///
    /// # Errors
    /// As [`ChatReply::read_event`].
    pub fn read_last_event(&mut self, event: &ServerEvent) -> Result<Vec<Delta>> {
        let data = event.data.trim();
        let is_json = || serde_json::from_str::<Value>(data).is_ok();
        let is_whole = data == DONE || event.name == ERROR_EVENT || is_json();
        if is_whole {
            return self.read_event(event);
        }
        self.has_begun = true;
        Ok(Vec::new())
    }

    /// Takes the answer of a server that does not stream. A single completion ends with its JSON.
    /// Chunks, one per line, end like a stream.
    ///
    /// # Errors
    /// As [`ChatReply::read_chunk`].
    pub fn read_complete_answer(&mut self, values: &[Value]) -> Result<Vec<Delta>> {
        let mut deltas = Vec::new();
        for value in values {
            deltas.extend(self.read_chunk(value)?);
        }
        if let [only] = values {
            self.is_done |= chunk_choice(only).is_some_and(|choice| choice["message"].is_object());
        }
        Ok(deltas)
    }

    /// Takes one chunk.
    ///
    /// # Errors
    /// An error that the server reports in its answer, or `limit_reached` beyond [`EVENTS_MAX`] and
    /// [`PARTS_MAX`].
    pub fn read_chunk(&mut self, chunk: &Value) -> Result<Vec<Delta>> {
        if is_error_report(chunk) {
            return Err(failure::reported_error(&self.url, chunk));
        }
        self.has_begun = true;
        self.chunks += 1;
        if self.chunks > EVENTS_MAX {
            return Err(failure::answer_limit_error(&format!("{EVENTS_MAX} pieces")));
        }
        if let Some(usage) = usage::read_chunk_usage(chunk) {
            self.answer.set_usage(usage);
        }
        let Some(choice) = chunk_choice(chunk) else { return Ok(Vec::new()) };
        // OpenRouter reports errors of a choice inside the choice.
        if is_error_reported(choice.get("error")) {
            return Err(failure::reported_error(&self.url, choice));
        }
        let piece = choice.get("delta").or_else(|| choice.get("message")).unwrap_or(&Value::Null);
        let mut deltas = self.read_message_text(piece);
        if self.answer.part_count() > PARTS_MAX {
            return Err(failure::answer_limit_error(&format!(
                "{PARTS_MAX} switches between reasoning and text"
            )));
        }
        if self.details.len() > PARTS_MAX {
            return Err(failure::answer_limit_error(&format!("{PARTS_MAX} pieces of reasoning")));
        }
        self.read_calls(piece, &mut deltas)?;
        if let Some(word) =
            choice["finish_reason"].as_str().filter(|word| reason::is_reason_given(word))
        {
            self.finish = Some(word.trim().to_owned());
        }
        Ok(deltas)
    }

    /// Takes reasoning, text or a refusal.
    fn read_message_text(&mut self, piece: &Value) -> Vec<Delta> {
        let mut deltas = Vec::new();
        let text = |key: &str| piece[key].as_str().filter(|text| !text.is_empty());
        let detailed = self.details.add_entries(piece);
        match (text(REASONING), text("reasoning")) {
            (Some(text), _) => deltas.extend(self.answer.add_thought(text, Some(REASONING))),
            (None, Some(text)) => deltas.extend(self.answer.add_thought(text, None)),
            (None, None) => deltas.extend(self.answer.add_thought(&detailed, None)),
        }
        match &piece["content"] {
            Value::String(text) => self.add_text(text, &mut deltas),
            Value::Array(parts) => {
                for part in parts {
                    self.read_content_part(part, &mut deltas);
                }
            }
            _ => {}
        }
        if let Some(text) = text("refusal") {
            self.add_refusal(text, &mut deltas);
        }
        deltas
    }

    /// Takes text, which may start with reasoning in tags.
    fn add_text(&mut self, piece: &str, deltas: &mut Vec<Delta>) {
        for piece in self.tags.push_text(piece) {
            deltas.extend(self.think_piece_delta(piece));
        }
    }

    fn think_piece_delta(&mut self, piece: ThinkPiece) -> Option<Delta> {
        match piece {
            ThinkPiece::Text(text) => self.answer.add_text(&text),
            // The model's template removes it, so it does not go back.
            ThinkPiece::Thought(text) => self.answer.add_thought(&text, None),
        }
    }

    fn add_refusal(&mut self, text: &str, deltas: &mut Vec<Delta>) {
        self.is_refused = true;
        deltas.extend(self.answer.add_text(text));
    }

    /// Takes a typed piece of content: `{"type": "text", "text"}`, or `thinking` that contains such
    /// pieces.
    fn read_content_part(&mut self, part: &Value, deltas: &mut Vec<Delta>) {
        let text = part["text"].as_str().unwrap_or_default();
        match part["type"].as_str() {
            Some("thinking") => {
                let inner = part["thinking"].as_array().map(Vec::as_slice).unwrap_or_default();
                let text: String = inner.iter().filter_map(|one| one["text"].as_str()).collect();
                deltas.extend(self.answer.add_thought(&text, None));
            }
            Some("refusal") => {
                let text = part["refusal"].as_str().filter(|text| !text.is_empty());
                self.add_refusal(text.unwrap_or_default(), deltas);
            }
            Some(_) | None => self.add_text(text, deltas),
        }
    }

    /// Takes pieces of calls. Calls are emitted when they are complete. Until then, an empty text
    /// shows that the answer continues, so that the session does not mistake long arguments for
    /// silence. Empty pieces are ignored.
    fn read_calls(&mut self, piece: &Value, deltas: &mut Vec<Delta>) -> Result<()> {
        let calls = piece["tool_calls"].as_array().map(Vec::as_slice).unwrap_or_default();
        // The field for a single call, from before there could be several.
        let legacy = piece.get("function_call").filter(|call| call.is_object());
        let said: Vec<_> =
            calls.iter().map(|call| ChunkTextFields::from_call(call, &call["function"])).collect();
        let each = calls.iter().zip(&said);
        let mut fragments: Vec<_> =
            each.map(|(call, said)| said.call_fragment(call, &call["function"])).collect();
        let legacy_said = legacy.map(|call| ChunkTextFields::from_call(call, call));
        if let (Some(call), Some(said)) = (legacy, &legacy_said) {
            fragments
                .push(CallFragment { index: Some(0), ..said.call_fragment(&Value::Null, call) });
        }
        let says = |one: &CallFragment<'_>| !(one.name.is_empty() && one.arguments.is_empty());
        if deltas.is_empty() && fragments.iter().any(says) {
            deltas.push(Delta::text(String::new()));
        }
        self.calls.add_fragments(&fragments)
    }

    /// Ends the answer at the end of the stream. Returns the last deltas and the completion.
    ///
    /// # Errors
    /// Fails if the answer is truncated. The error is temporary, because a retry may get the whole
    /// answer.
    pub fn finish(mut self) -> Result<(Vec<Delta>, Completion)> {
        if !self.is_complete() {
            return Err(failure::truncated_answer_error(&self.url, self.has_begun));
        }
        let mut deltas: Vec<Delta> = Vec::new();
        if let Some(piece) = self.tags.finish() {
            deltas.extend(self.think_piece_delta(piece));
        }
        let reason = match self.finish.as_deref().map(reason::finish_reason) {
            Some(FinishReason::Stop) | None if self.is_refused => FinishReason::Refused,
            Some(reason) => reason,
            None => FinishReason::Stop,
        };
        let calls = std::mem::take(&mut self.calls);
        let calls = match reason {
            // If the answer was stopped from outside, its calls may be incomplete.
            FinishReason::Safety | FinishReason::Refused | FinishReason::Error => Vec::new(),
            FinishReason::MaxTokens | FinishReason::ContextExceeded => calls.finish_truncated(),
            FinishReason::Stop
            | FinishReason::ToolUse
            | FinishReason::Cancelled
            | FinishReason::Paused
            | FinishReason::Unknown => calls.finish(),
        };
        if let Some(details) = std::mem::take(&mut self.details).finish() {
            self.answer.add_opaque(details);
        }
        for call in calls {
            deltas.extend(unwrap_calls(call).into_iter().map(|call| self.answer.add_call(call)));
        }
        let completion = match (reason, self.finish) {
            (FinishReason::Unknown, Some(word)) => {
                self.answer.finish_with_word(&failure::text_beginning(&word))
            }
            (_, _) => self.answer.finish(reason),
        };
        Ok((deltas, completion))
    }
}
