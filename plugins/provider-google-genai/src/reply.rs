//! Reads the server's stream: turns chunks into deltas, and finally into the completion.
//!
//! Pure. A signature stays on its part, and signed and unsigned content are never joined. An answer
//! without a finish reason was cut off. A complete answer is one chunk.

use jaato_plugin_sdk::serde_json::{self, Value, json};
use jaato_plugin_sdk::types::{Completion, Delta, FinishReason, ToolCall, ToolSpec};
use jaato_plugin_sdk::{Error, ErrorKind, Result};
use jaato_plugin_sdk_provider::exchange::wrong_form_error;
use jaato_plugin_sdk_provider::{
    ARGUMENTS_BYTES_MAX, AnswerReader, CALLS_MAX, EVENTS_MAX, ModelProtocol, PARTS_MAX,
    ServerEvent, StreamingAnswer, failure,
};

use crate::names::GoogleToolNames;
use crate::reason::{self, FinishReasonMeaning};
use crate::refusal::{self, CHECK_URL};
use crate::usage::GoogleUsageCounts;

/// The event name with which a server reports an error.
const ERROR_EVENT: &str = "error";

/// The data of the last event of some gateways. The vendor does not send it.
const DONE: &str = "[DONE]";

/// The fields of a part that contains only a signature.
const MARKS: [&str; 2] = ["thought", "thoughtSignature"];

/// An answer in progress.
#[derive(Debug)]
pub struct GoogleReply {
    url: String,
    names: GoogleToolNames,
    answer: StreamingAnswer,
    /// The calls. They are returned at the end, because calls in a filtered answer must not run.
    calls: Vec<ToolCall>,
    /// Total bytes of calls and of parts that only the vendor understands.
    bytes: usize,
    counted: GoogleUsageCounts,
    /// The vendor's finish reason and explanation.
    finish: Option<String>,
    explanation: Option<String>,
    /// The vendor's reason for blocking the prompt.
    block: Option<String>,
    chunks: usize,
    is_done: bool,
    has_begun: bool,
}

impl GoogleReply {
    /// Creates the reply for a request to this URL, which errors name, with these tools.
    pub fn new(url: &str, tools: &[ToolSpec]) -> Self {
        Self {
            url: url.to_owned(),
            names: GoogleToolNames::from_tools(tools),
            answer: StreamingAnswer::new(),
            calls: Vec::new(),
            bytes: 0,
            counted: GoogleUsageCounts::default(),
            finish: None,
            explanation: None,
            block: None,
            chunks: 0,
            is_done: false,
            has_begun: false,
        }
    }

    /// Reads one chunk.
    ///
    /// # Errors
    /// The error that the server reports inside its answer, or `limit_reached` beyond
    /// [`EVENTS_MAX`], [`PARTS_MAX`], [`CALLS_MAX`] and [`ARGUMENTS_BYTES_MAX`].
    pub fn read_chunk(&mut self, chunk: &Value) -> Result<Vec<Delta>> {
        if refusal::is_error_report(chunk) {
            return Err(refusal::reported_error(&self.url, chunk));
        }
        self.has_begun = true;
        self.chunks += 1;
        if self.chunks > EVENTS_MAX {
            return Err(failure::answer_limit_error(&format!("{EVENTS_MAX} pieces")));
        }
        self.counted.add_counts(&chunk["usageMetadata"]);
        let feedback = &chunk["promptFeedback"];
        if let Some(word) = read_reason(&feedback["blockReason"]) {
            self.block = Some(word.to_owned());
            self.record_finish_message(&feedback["blockReasonMessage"]);
        }
        let mut deltas = Vec::new();
        if let Some(candidate) = first_candidate(chunk) {
            let parts = candidate["content"]["parts"].as_array();
            for part in parts.map(Vec::as_slice).unwrap_or_default() {
                self.read_part(part, &mut deltas)?;
            }
            if let Some(word) = read_reason(&candidate["finishReason"]) {
                self.finish = Some(word.to_owned());
                self.record_finish_message(&candidate["finishMessage"]);
            }
        }
        Ok(deltas)
    }

    fn read_part(&mut self, part: &Value, deltas: &mut Vec<Delta>) -> Result<()> {
        let Some(fields) = part.as_object().filter(|fields| !fields.is_empty()) else {
            return Ok(());
        };
        let signature = part["thoughtSignature"].as_str().filter(|text| !text.is_empty());
        if part["functionCall"].is_object() {
            self.add_call(&part["functionCall"], signature, deltas)?;
        } else if part["text"].is_string() || fields.keys().all(|key| MARKS.contains(&key.as_str()))
        {
            let text = part["text"].as_str().unwrap_or_default();
            deltas.extend(self.add_text(text, part["thought"] == true, signature));
        } else {
            self.count_bytes(part.to_string().len())?;
            self.answer.add_opaque(part.clone());
            if let Some(media_type) = part["inlineData"]["mimeType"].as_str() {
                let media_type = failure::text_beginning(media_type);
                deltas.push(Delta::notice(format!(
                    "the model produced `{media_type}`, which is kept but not shown"
                )));
            }
        }
        if self.answer.part_count() > PARTS_MAX {
            return Err(failure::answer_limit_error(&format!("{PARTS_MAX} parts")));
        }
        Ok(())
    }

    /// Adds a text or a thought. A signed one is a separate part, even if it is empty.
    fn add_text(&mut self, text: &str, is_thought: bool, signature: Option<&str>) -> Option<Delta> {
        if signature.is_some() {
            match is_thought {
                true => self.answer.begin_thought(),
                false => self.answer.begin_text(),
            }
        }
        let delta = match is_thought {
            true => self.answer.add_thought(text, None),
            false => self.answer.add_text(text),
        };
        if let Some(signature) = signature {
            self.answer.sign_last_part(signature);
            self.answer.end_part();
        }
        delta
    }

    /// Adds a call, which arrives complete. The empty text delta shows that the answer continues.
    fn add_call(
        &mut self,
        call: &Value,
        signature: Option<&str>,
        deltas: &mut Vec<Delta>,
    ) -> Result<()> {
        let Some(name) = call["name"].as_str().filter(|name| !name.is_empty()) else {
            let text =
                format!("`{}` sent a call without a name", failure::url_for_errors(&self.url));
            return Err(Error::new(ErrorKind::Provider, text).temporary());
        };
        if self.calls.len() == CALLS_MAX {
            return Err(failure::answer_limit_error(&format!("{CALLS_MAX} tool calls")));
        }
        self.count_bytes(call.to_string().len())?;
        let name = self.names.original_name(name);
        let arguments = match &call["args"] {
            Value::Null => json!({}),
            given => given.clone(),
        };
        let id = self.call_id_or_unique(call);
        let signature = signature.map(str::to_owned);
        self.calls.push(ToolCall { signature, ..ToolCall::new(id, name, arguments) });
        self.answer.begin_call();
        deltas.push(Delta::text(""));
        Ok(())
    }

    /// Returns the call's id, or one that is unique in this answer. Older models and Vertex AI give
    /// none.
    fn call_id_or_unique(&self, call: &Value) -> String {
        let is_taken = |id: &str| self.calls.iter().any(|call| call.id.as_str() == id);
        let given = call["id"].as_str().unwrap_or_default();
        if !given.is_empty() && !is_taken(given) {
            return given.to_owned();
        }
        let mut made = format!("call-{}", self.calls.len());
        while is_taken(&made) {
            made.push('x');
        }
        made
    }

    fn count_bytes(&mut self, bytes: usize) -> Result<()> {
        self.bytes += bytes;
        if self.bytes > ARGUMENTS_BYTES_MAX {
            let what = format!("{ARGUMENTS_BYTES_MAX} bytes of tool calls and of what it made");
            return Err(failure::answer_limit_error(&what));
        }
        Ok(())
    }

    fn record_finish_message(&mut self, text: &Value) {
        if let Some(text) = text.as_str().filter(|text| !text.trim().is_empty()) {
            self.explanation = Some(failure::text_beginning(text.trim()));
        }
    }

    /// Returns the error for an answer that the vendor marks as broken.
    fn broken_answer_error(&self, word: &str) -> Error {
        let url = failure::url_for_errors(&self.url);
        let said = self.explanation.as_ref().map(|text| format!(": {text}")).unwrap_or_default();
        let text =
            format!("`{url}` ended the answer with `{}`{said}", failure::text_beginning(word));
        Error::new(ErrorKind::Provider, text)
    }

    fn finish_with_reason(mut self, reason: FinishReason, word: &str) -> (Vec<Delta>, Completion) {
        self.answer.set_usage(self.counted.to_usage());
        let calls = match reason {
            // A blocked answer may be incomplete.
            FinishReason::Safety | FinishReason::Refused | FinishReason::Error => Vec::new(),
            FinishReason::Stop
            | FinishReason::MaxTokens
            | FinishReason::ToolUse
            | FinishReason::Cancelled
            | FinishReason::Paused
            | FinishReason::ContextExceeded
            | FinishReason::Unknown => std::mem::take(&mut self.calls),
        };
        let mut deltas = self.answer.end_calls(calls);
        if reason != FinishReason::Stop && reason != FinishReason::MaxTokens {
            deltas.extend(self.refusal_notice(word));
        }
        let completion = match reason {
            FinishReason::Unknown => self.answer.finish_with_word(&failure::text_beginning(word)),
            reason => self.answer.finish(reason),
        };
        (deltas, completion)
    }

    /// Shows the user the vendor's own reason, because a session has only a few reasons.
    fn refusal_notice(&self, word: &str) -> Option<Delta> {
        let word = failure::text_beginning(word);
        let text = match (&self.block, &self.explanation) {
            (Some(_), None) => format!("the server blocked the prompt: `{word}`"),
            (Some(_), Some(said)) => format!("the server blocked the prompt: `{word}`: {said}"),
            (None, Some(said)) => format!("the server stopped the answer: `{word}`: {said}"),
            (None, None) => return None,
        };
        Some(Delta::notice(text))
    }
}

/// Returns the first candidate. Requests never ask for more than one.
fn first_candidate(chunk: &Value) -> Option<&Value> {
    let candidates = chunk["candidates"].as_array()?;
    candidates.iter().find(|candidate| candidate["index"].as_u64().unwrap_or(0) == 0)
}

fn read_reason(word: &Value) -> Option<&str> {
    word.as_str().map(str::trim).filter(|word| reason::is_reason_given(word))
}

/// Returns true if a value is a chunk of an answer.
fn is_chunk(value: &Value) -> bool {
    ["candidates", "promptFeedback", "usageMetadata"].iter().any(|key| value.get(*key).is_some())
        || refusal::is_error_report(value)
}

impl AnswerReader for GoogleReply {
    const CHECK_URL: &'static str = CHECK_URL;
    const PROTOCOL: Option<ModelProtocol> = Some(ModelProtocol::GenerateContent);

    fn handle_event(&mut self, event: &ServerEvent) -> Result<Vec<Delta>> {
        let data = event.data.trim();
        if data.is_empty() || self.is_done {
            return Ok(Vec::new());
        }
        if data == DONE {
            self.is_done = self.finish.is_some();
            return Ok(Vec::new());
        }
        match serde_json::from_str::<Value>(data) {
            Ok(value) if event.name == ERROR_EVENT => {
                Err(refusal::reported_error(&self.url, &refusal::unwrap_single_entry(value)))
            }
            Ok(value) => self.read_chunk(&refusal::unwrap_single_entry(value)),
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
        let value: Value = serde_json::from_slice(body)
            .map_err(|error| failure::invalid_json_error(url, &error))?;
        // A stream that was not requested as an event stream is a list of chunks.
        let chunks = match value {
            Value::Array(chunks) => chunks,
            chunk => vec![chunk],
        };
        if chunks.is_empty() || !chunks.iter().all(is_chunk) {
            return Err(wrong_form_error::<Self>(url, Some("application/json")));
        }
        let mut deltas = Vec::new();
        for chunk in &chunks {
            deltas.extend(self.read_chunk(chunk)?);
        }
        self.is_done = !self.answer.is_empty();
        Ok(deltas)
    }

    fn is_done(&self) -> bool {
        self.is_done
    }

    fn is_complete(&self) -> bool {
        self.is_done || self.finish.is_some() || self.block.is_some()
    }

    fn has_begun(&self) -> bool {
        self.has_begun
    }

    fn finish(self) -> Result<(Vec<Delta>, Completion)> {
        if let Some(word) = self.block.clone().filter(|_| self.finish.is_none()) {
            return Ok(self.finish_with_reason(reason::block_finish_reason(&word), &word));
        }
        let word = match &self.finish {
            Some(word) => word.clone(),
            None if self.is_done => "STOP".to_owned(),
            None => return Err(failure::truncated_answer_error(&self.url, self.has_begun)),
        };
        match reason::finish_reason_meaning(&word) {
            FinishReasonMeaning::For(reason) => Ok(self.finish_with_reason(reason, &word)),
            FinishReasonMeaning::Broken => Err(self.broken_answer_error(&word).temporary()),
            FinishReasonMeaning::Refused => Err(self.broken_answer_error(&word)),
        }
    }
}
