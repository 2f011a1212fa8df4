//! Reads the server's stream: turns events into deltas, and finally into the completion.
//!
//! Pure. Lenient where gateways differ from the vendor, but strict where leniency would lose
//! content: an answer without a stop reason was cut off. A complete answer is read as the
//! equivalent events.

use std::collections::BTreeMap;

use jaato_plugin_sdk::serde_json::{self, Map, Value, json};
use jaato_plugin_sdk::types::{Completion, Delta, FinishReason};
use jaato_plugin_sdk::{Error, ErrorKind, Result};
use jaato_plugin_sdk_provider::exchange::wrong_form_error;
use jaato_plugin_sdk_provider::{
    ARGUMENTS_BYTES_MAX, AnswerReader, CallFragment, CallFragments, EVENTS_MAX, ModelProtocol,
    PARTS_MAX, ServerEvent, StreamingAnswer, failure,
};

use crate::reason;
use crate::refusal::{self, CHECK_URL};
use crate::usage::AnthropicUsageCounts;

/// The event name with which servers report an error.
const ERROR_EVENT: &str = "error";

/// An answer in progress.
#[derive(Debug)]
pub struct AnthropicReply {
    url: String,
    answer: StreamingAnswer,
    calls: CallFragments,
    /// The open blocks by number.
    open: BTreeMap<u64, AnthropicReplyBlock>,
    /// The number of the block that began last.
    newest: u64,
    /// Total bytes of the blocks that only the vendor understands.
    other_bytes: usize,
    counted: AnthropicUsageCounts,
    /// The vendor's stop reason.
    stop: Option<String>,
    /// The vendor's explanation of a refusal.
    explanation: Option<String>,
    has_dropped_thoughts: bool,
    events: usize,
    is_done: bool,
    has_begun: bool,
}

/// A block in progress.
#[derive(Debug)]
enum AnthropicReplyBlock {
    Text,
    Thought,
    Call,
    /// A block that goes back to the vendor unchanged. Its input arrives in pieces.
    Other {
        item: Map<String, Value>,
        input: String,
    },
}

impl AnthropicReply {
    /// Creates the reply for a request to this URL, which errors name.
    pub fn new(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            answer: StreamingAnswer::new(),
            calls: CallFragments::new(),
            open: BTreeMap::new(),
            newest: 0,
            other_bytes: 0,
            counted: AnthropicUsageCounts::default(),
            stop: None,
            explanation: None,
            has_dropped_thoughts: false,
            events: 0,
            is_done: false,
            has_begun: false,
        }
    }

    /// Reads one event.
    ///
    /// # Errors
    /// The error that the server reports inside its answer, or `limit_reached` beyond
    /// [`EVENTS_MAX`] and [`PARTS_MAX`].
    pub fn read_event(&mut self, event: &Value) -> Result<Vec<Delta>> {
        self.has_begun = true;
        self.events += 1;
        if self.events > EVENTS_MAX {
            return Err(failure::answer_limit_error(&format!("{EVENTS_MAX} pieces")));
        }
        let index = event["index"].as_u64().unwrap_or(0);
        match event["type"].as_str() {
            Some("message_start") => self.read_answer_facts(&event["message"]),
            Some("content_block_start") => self.begin_block(index, &event["content_block"]),
            Some("content_block_delta") => self.continue_block(index, &event["delta"]),
            Some("content_block_stop") => {
                self.end_block(index);
                Ok(Vec::new())
            }
            Some("message_delta") => {
                self.read_stop_reason(&event["delta"]);
                self.read_answer_facts(event)
            }
            Some("message_stop") => {
                self.is_done = true;
                Ok(Vec::new())
            }
            Some(ERROR_EVENT) => Err(refusal::reported_error(&self.url, event)),
            None if !event["error"].is_null() => Err(refusal::reported_error(&self.url, event)),
            // Keep-alives and unknown events.
            Some(_) | None => Ok(Vec::new()),
        }
    }

    /// Reads the facts about the whole answer. Gateways send them twice.
    fn read_answer_facts(&mut self, told: &Value) -> Result<Vec<Delta>> {
        self.counted.add_counts(&told["usage"]);
        let changes = told["input_transformations"].as_array().map(Vec::as_slice);
        let is_drop = |change: &Value| change["reason"] == "prefix_binding_mismatch";
        if self.has_dropped_thoughts || !changes.unwrap_or_default().iter().any(is_drop) {
            return Ok(Vec::new());
        }
        self.has_dropped_thoughts = true;
        let text = "the server dropped earlier thoughts because the history before them changed";
        Ok(vec![Delta::notice(text)])
    }

    fn begin_block(&mut self, index: u64, block: &Value) -> Result<Vec<Delta>> {
        let text = |key: &str| block[key].as_str().unwrap_or_default();
        self.end_block(index);
        let mut deltas = Vec::new();
        let kind = match block["type"].as_str() {
            Some("text") => {
                self.answer.begin_text();
                deltas.extend(self.answer.add_text(text("text")));
                AnthropicReplyBlock::Text
            }
            Some("thinking") => {
                self.answer.begin_thought();
                deltas.extend(self.answer.add_thought(text("thinking"), None));
                let signature = text("signature");
                if !signature.is_empty() {
                    self.answer.sign_last_part(signature);
                }
                AnthropicReplyBlock::Thought
            }
            Some("tool_use") => {
                let (id, name) = (text("id"), text("name"));
                if name.is_empty() {
                    let text =
                        format!("`{}` sent a call without a name", url_for_errors(&self.url));
                    return Err(Error::new(ErrorKind::Provider, text).temporary());
                }
                // The input is empty at the start of a streamed block, but not in a complete
                // answer.
                let input = block["input"].as_object().filter(|input| !input.is_empty());
                let arguments = input.map(|_| block["input"].to_string()).unwrap_or_default();
                self.add_fragment(CallFragment {
                    index: Some(index),
                    id,
                    name,
                    arguments: &arguments,
                    ..CallFragment::default()
                })?;
                deltas.push(Delta::text(""));
                AnthropicReplyBlock::Call
            }
            _ => {
                let item = block.as_object().cloned().unwrap_or_default();
                self.count_bytes(block.to_string().len())?;
                AnthropicReplyBlock::Other { item, input: String::new() }
            }
        };
        self.open.insert(index, kind);
        self.newest = index;
        if self.answer.part_count() > PARTS_MAX || self.open.len() > PARTS_MAX {
            return Err(failure::answer_limit_error(&format!("{PARTS_MAX} blocks")));
        }
        Ok(deltas)
    }

    fn continue_block(&mut self, index: u64, delta: &Value) -> Result<Vec<Delta>> {
        let text = |key: &str| delta[key].as_str().unwrap_or_default();
        if let Some(AnthropicReplyBlock::Other { item, input }) = self.open.get_mut(&index) {
            let bytes = extend_opaque_block(item, input, delta);
            return self.count_bytes(bytes).map(|()| Vec::new());
        }
        let is_thought = matches!(self.open.get(&index), Some(AnthropicReplyBlock::Thought));
        let is_newest = self.newest == index;
        let said = match delta["type"].as_str() {
            Some("text_delta") => self.answer.add_text(text("text")),
            Some("thinking_delta") => self.answer.add_thought(text("thinking"), None),
            // A signature belongs only to the thought that is open.
            Some("signature_delta") if is_thought && is_newest => {
                self.answer.sign_last_part(text("signature"));
                None
            }
            Some("input_json_delta") => {
                let arguments = text("partial_json");
                self.add_fragment(CallFragment {
                    index: Some(index),
                    arguments,
                    ..CallFragment::default()
                })?;
                // Without this delta, the session would treat long arguments as silence.
                (!arguments.is_empty()).then(|| Delta::text(""))
            }
            Some(_) | None => None,
        };
        Ok(said.into_iter().collect())
    }

    fn add_fragment(&mut self, fragment: CallFragment<'_>) -> Result<()> {
        if self.calls.add_fragment(&fragment)? {
            self.answer.begin_call();
        }
        Ok(())
    }

    fn end_block(&mut self, index: u64) {
        match self.open.remove(&index) {
            Some(AnthropicReplyBlock::Other { mut item, input }) => {
                if !input.is_empty() {
                    let input = serde_json::from_str(&input).unwrap_or(Value::String(input));
                    item.insert("input".to_owned(), input);
                }
                self.answer.add_opaque(Value::Object(item));
            }
            Some(
                AnthropicReplyBlock::Text
                | AnthropicReplyBlock::Thought
                | AnthropicReplyBlock::Call,
            ) => self.answer.end_part(),
            None => {}
        }
    }

    fn count_bytes(&mut self, bytes: usize) -> Result<()> {
        self.other_bytes += bytes;
        if self.other_bytes > ARGUMENTS_BYTES_MAX {
            return Err(failure::answer_limit_error(&format!(
                "{ARGUMENTS_BYTES_MAX} bytes of blocks"
            )));
        }
        Ok(())
    }

    fn read_stop_reason(&mut self, told: &Value) {
        if let Some(word) = told["stop_reason"].as_str().filter(|word| !word.is_empty()) {
            self.stop = Some(word.to_owned());
        }
        if let Some(text) = told["stop_details"]["explanation"].as_str() {
            self.explanation = Some(failure::text_beginning(text));
        }
    }

    /// Reads a complete message as the equivalent events.
    fn read_whole_message(&mut self, message: &Value) -> Result<Vec<Delta>> {
        let mut deltas =
            self.read_event(&json!({ "type": "message_start", "message": message }))?;
        let blocks = message["content"].as_array().map(Vec::as_slice).unwrap_or_default();
        for (index, block) in blocks.iter().enumerate() {
            let begin =
                json!({ "type": "content_block_start", "index": index, "content_block": block });
            deltas.extend(self.read_event(&begin)?);
            deltas
                .extend(self.read_event(&json!({ "type": "content_block_stop", "index": index }))?);
        }
        self.read_stop_reason(message);
        Ok(deltas)
    }
}

/// Adds a piece to a block that only the vendor understands. Returns the piece's bytes.
fn extend_opaque_block(item: &mut Map<String, Value>, input: &mut String, delta: &Value) -> usize {
    let mut bytes = 0;
    for (key, piece) in delta.as_object().into_iter().flatten() {
        let Some(piece) = piece.as_str().filter(|_| key != "type") else { continue };
        bytes += key.len() + piece.len();
        if key == "partial_json" {
            input.push_str(piece);
            continue;
        }
        match item.get_mut(key) {
            Some(Value::String(known)) => known.push_str(piece),
            Some(_) | None => {
                item.insert(key.clone(), Value::String(piece.to_owned()));
            }
        }
    }
    bytes
}

fn url_for_errors(url: &str) -> String {
    failure::url_for_errors(url)
}

impl AnswerReader for AnthropicReply {
    const CHECK_URL: &'static str = CHECK_URL;
    const PROTOCOL: Option<ModelProtocol> = Some(ModelProtocol::Messages);

    fn handle_event(&mut self, event: &ServerEvent) -> Result<Vec<Delta>> {
        let data = event.data.trim();
        if data.is_empty() || self.is_done {
            return Ok(Vec::new());
        }
        match serde_json::from_str::<Value>(data) {
            Ok(read) if event.name == ERROR_EVENT => Err(refusal::reported_error(&self.url, &read)),
            Ok(read) => self.read_event(&read),
            Err(_) if event.name == ERROR_EVENT => Err(failure::event_error(&self.url, data)),
            Err(error) => Err(failure::invalid_event_error(&self.url, data, &error)),
        }
    }

    fn handle_last_event(&mut self, event: &ServerEvent) -> Result<Vec<Delta>> {
        let is_whole = serde_json::from_str::<Value>(event.data.trim()).is_ok();
        if is_whole || event.name == ERROR_EVENT {
            return self.handle_event(event);
        }
        self.has_begun = true;
        Ok(Vec::new())
    }

    fn handle_whole_body(&mut self, url: &str, body: &[u8]) -> Result<Vec<Delta>> {
        let message: Value = serde_json::from_slice(body)
            .map_err(|error| failure::invalid_json_error(url, &error))?;
        if message["type"] == ERROR_EVENT || !message["error"].is_null() {
            return Err(refusal::reported_error(url, &message));
        }
        if !message["content"].is_array() {
            return Err(wrong_form_error::<Self>(url, Some("application/json")));
        }
        self.read_whole_message(&message)
    }

    fn is_done(&self) -> bool {
        self.is_done
    }

    fn is_complete(&self) -> bool {
        self.is_done || self.stop.is_some()
    }

    fn has_begun(&self) -> bool {
        self.has_begun
    }

    fn finish(mut self) -> Result<(Vec<Delta>, Completion)> {
        let word = match self.stop.take() {
            Some(word) => word,
            // Some gateways give no reason, but do mark the end of the answer.
            None if self.is_done => "end_turn".to_owned(),
            None => return Err(failure::truncated_answer_error(&self.url, self.has_begun)),
        };
        let open: Vec<u64> = self.open.keys().copied().collect();
        open.into_iter().for_each(|index| self.end_block(index));
        self.answer.set_usage(self.counted.to_usage());
        let reason = reason::finish_reason(&word);
        let calls = match reason {
            // A refused answer may be incomplete.
            FinishReason::Refused => Vec::new(),
            FinishReason::MaxTokens | FinishReason::ContextExceeded => {
                self.calls.finish_truncated()
            }
            FinishReason::Stop
            | FinishReason::ToolUse
            | FinishReason::Safety
            | FinishReason::Error
            | FinishReason::Cancelled
            | FinishReason::Paused
            | FinishReason::Unknown => self.calls.finish(),
        };
        let mut deltas = self.answer.end_calls(calls);
        if let Some(text) = self.explanation.filter(|_| reason == FinishReason::Refused) {
            deltas.push(Delta::notice(format!("the model declined: {text}")));
        }
        let completion = match reason {
            FinishReason::Unknown => self.answer.finish_with_word(&failure::text_beginning(&word)),
            reason => self.answer.finish(reason),
        };
        Ok((deltas, completion))
    }
}
