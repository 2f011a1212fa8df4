//! Reads what a server streams: events in, deltas out, in the end the completion.
//!
//! Pure. Lenient where servers differ, strict where silence would lose something: an answer that ends
//! without a word of its end was cut.

use jaato_plugin_sdk::serde_json::{self, Value};
use jaato_plugin_sdk::types::{Completion, Delta, FinishReason, Usage};
use jaato_plugin_sdk::{Error, ErrorKind, Result};
use jaato_plugin_sdk_provider::{Answer, Fragment, Fragments, failure};

/// The field in which some servers give reasoning, and want it back; the signature of such a thought.
/// DeepSeek and Kimi refuse a conversation with calls from which it was left out; Groq and Mistral, which do
/// not use it, refuse one that holds it.
pub const REASONING: &str = "reasoning_content";

/// The data of the last event.
const DONE: &str = "[DONE]";

/// Longest piece of an event that cannot be read which an error repeats, in characters.
const SHOWN_CHARS_MAX: usize = 120;

/// An answer on its way.
#[derive(Debug)]
pub struct Reply {
    url: String,
    answer: Answer,
    calls: Fragments,
    finish: Option<FinishReason>,
    is_refused: bool,
    is_done: bool,
    has_begun: bool,
}

impl Reply {
    /// Begins an answer of this URL, which errors name.
    pub fn new(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            answer: Answer::new(),
            calls: Fragments::new(),
            finish: None,
            is_refused: false,
            is_done: false,
            has_begun: false,
        }
    }

    /// Tells whether the server said that nothing more comes.
    pub fn is_done(&self) -> bool {
        self.is_done
    }

    /// Tells whether the model has said all, though the server may still tell what it cost.
    pub fn is_complete(&self) -> bool {
        self.is_done || self.finish.is_some()
    }

    /// Tells whether any event has come.
    pub fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Takes the data of one event; gives what is to be emitted.
    ///
    /// # Errors
    /// What the server reports inside its answer; an event that cannot be read.
    pub fn event(&mut self, data: &str) -> Result<Vec<Delta>> {
        let data = data.trim();
        if data.is_empty() || self.is_done {
            return Ok(Vec::new());
        }
        if data == DONE {
            self.is_done = true;
            self.has_begun = true;
            return Ok(Vec::new());
        }
        let event = serde_json::from_str(data).map_err(|error| self.unreadable(data, &error))?;
        self.chunk(&event)
    }

    /// Takes one chunk, or a whole completion of a server that does not stream.
    ///
    /// # Errors
    /// What the server reports inside its answer.
    pub fn chunk(&mut self, chunk: &Value) -> Result<Vec<Delta>> {
        let is_report = chunk.get("error").is_some_and(|error| !error.is_null())
            || chunk["object"].as_str() == Some("error");
        if is_report {
            return Err(failure::of_report(&self.url, chunk));
        }
        self.has_begun = true;
        if let Some(usage) = usage(&chunk["usage"]) {
            self.answer.set_usage(usage);
        }
        let first = |choice: &&Value| choice["index"].as_u64().unwrap_or(0) == 0;
        let choices = chunk["choices"].as_array().map(Vec::as_slice).unwrap_or_default();
        let Some(choice) = choices.iter().find(first) else { return Ok(Vec::new()) };
        let piece = choice.get("delta").or_else(|| choice.get("message")).unwrap_or(&Value::Null);
        let mut deltas = self.said(piece);
        self.called(piece, &mut deltas)?;
        if let Some(reason) = choice["finish_reason"].as_str() {
            self.finish = Some(finish_reason(reason));
        }
        Ok(deltas)
    }

    /// Takes reasoning, text and a refusal.
    fn said(&mut self, piece: &Value) -> Vec<Delta> {
        let mut deltas = Vec::new();
        let text = |key: &str| piece[key].as_str().filter(|text| !text.is_empty());
        deltas.extend(match (text(REASONING), text("reasoning")) {
            (Some(text), _) => self.answer.thought(text, Some(REASONING)),
            (None, Some(text)) => self.answer.thought(text, None),
            (None, None) => None,
        });
        match &piece["content"] {
            Value::String(text) => deltas.extend(self.answer.text(text)),
            Value::Array(parts) => {
                for part in parts {
                    deltas.extend(self.part(part));
                }
            }
            _ => {}
        }
        if let Some(text) = piece["refusal"].as_str().filter(|text| !text.is_empty()) {
            self.is_refused = true;
            deltas.extend(self.answer.text(text));
        }
        deltas
    }

    /// Takes a typed piece of content: `{"type": "text", "text"}`, or `thinking` with such pieces inside.
    fn part(&mut self, part: &Value) -> Option<Delta> {
        match part["type"].as_str() {
            Some("thinking") => {
                let inner = part["thinking"].as_array().map(Vec::as_slice).unwrap_or_default();
                let text: String = inner.iter().filter_map(|one| one["text"].as_str()).collect();
                self.answer.thought(&text, None)
            }
            Some("refusal") => {
                self.is_refused = true;
                self.answer.text(part["refusal"].as_str()?)
            }
            Some(_) | None => self.answer.text(part["text"].as_str()?),
        }
    }

    /// Takes pieces of calls. They are emitted when they are whole; until then an empty text says that the
    /// answer goes on, or the session would take long arguments for silence.
    fn called(&mut self, piece: &Value, deltas: &mut Vec<Delta>) -> Result<()> {
        let calls = piece["tool_calls"].as_array().map(Vec::as_slice).unwrap_or_default();
        for call in calls {
            self.fragment(call["index"].as_u64(), call["id"].as_str(), &call["function"])?;
        }
        // What calls were before there could be several.
        let legacy = piece.get("function_call").filter(|call| call.is_object());
        if let Some(call) = legacy {
            self.fragment(Some(0), None, call)?;
        }
        if deltas.is_empty() && (!calls.is_empty() || legacy.is_some()) {
            deltas.push(Delta::Text { text: String::new() });
        }
        Ok(())
    }

    fn fragment(&mut self, index: Option<u64>, id: Option<&str>, function: &Value) -> Result<()> {
        let arguments = match &function["arguments"] {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            // Some servers give the object itself.
            whole => whole.to_string(),
        };
        let (id, name) = (id.unwrap_or_default(), function["name"].as_str().unwrap_or_default());
        self.calls.push(&Fragment { index, id, name, arguments: &arguments })?;
        Ok(())
    }

    /// Ends the answer where the stream ended: the last deltas and the completion.
    ///
    /// # Errors
    /// When it was cut short; temporary, because the next attempt may get it whole.
    pub fn finish(mut self) -> Result<(Vec<Delta>, Completion)> {
        if !self.is_complete() {
            return Err(self.cut());
        }
        let reason = match self.finish {
            Some(FinishReason::Stop) | None if self.is_refused => FinishReason::Safety,
            Some(reason) => reason,
            None => FinishReason::Stop,
        };
        // Calls of an answer that was stopped from outside may be half of what was meant.
        let may_call = !matches!(reason, FinishReason::Safety | FinishReason::Error);
        let calls = std::mem::take(&mut self.calls).finish();
        let calls = calls.into_iter().filter(|_| may_call);
        let deltas = calls.map(|call| self.answer.call(call)).collect();
        Ok((deltas, self.answer.finish(reason)))
    }

    fn cut(&self) -> Error {
        let url = failure::shown_url(&self.url);
        let text = if self.has_begun {
            format!("the answer of `{url}` ended in the middle")
        } else {
            format!("`{url}` answered with nothing")
        };
        Error::new(ErrorKind::Provider, text).temporary()
    }

    fn unreadable(&self, data: &str, error: &serde_json::Error) -> Error {
        let url = failure::shown_url(&self.url);
        let shown: String = data.chars().take(SHOWN_CHARS_MAX).collect();
        let text = format!("`{url}` sent an event that is no JSON ({error}): `{shown}`");
        Error::new(ErrorKind::Provider, text).temporary()
    }
}

fn finish_reason(reason: &str) -> FinishReason {
    match reason {
        "stop" | "eos" | "end_turn" => FinishReason::Stop,
        "length" | "max_tokens" => FinishReason::MaxTokens,
        "tool_calls" | "function_call" | "tool_use" => FinishReason::ToolUse,
        "content_filter" => FinishReason::Safety,
        "error" => FinishReason::Error,
        _ => FinishReason::Unknown,
    }
}

fn usage(usage: &Value) -> Option<Usage> {
    usage.is_object().then(|| Usage {
        prompt_tokens: usage["prompt_tokens"].as_u64().unwrap_or(0),
        output_tokens: usage["completion_tokens"].as_u64().unwrap_or(0),
        cached_tokens: usage["prompt_tokens_details"]["cached_tokens"].as_u64().unwrap_or(0),
    })
}
