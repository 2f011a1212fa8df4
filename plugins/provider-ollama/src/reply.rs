//! Reads the server's answer: one JSON object per line, and the counts in the last one. A complete
//! answer is one such line. Pure.

use std::collections::BTreeSet;

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::serde_json;
use jaato_plugin_sdk_provider::chat::{ThinkPiece, ThinkTags};
use jaato_plugin_sdk_provider::exchange::compressed_answer_error;
use jaato_plugin_sdk_provider::failure::{self, answer_limit_error};
use jaato_plugin_sdk_provider::{
    CALLS_MAX, EVENTS_MAX, PARTS_MAX, StreamingAnswer, SurrogateRepair, strip_byte_order_mark,
};

use crate::history::THOUGHT_MARK;
use crate::refusal;

/// An answer in progress.
#[derive(Debug)]
pub struct OllamaReply {
    url: String,
    answer: StreamingAnswer,
    tags: ThinkTags,
    characters: SurrogateRepair,
    /// The ids of the conversation's calls. A new call gets its own id, because older servers give
    /// no ids and newer ones may repeat ids.
    ids: BTreeSet<String>,
    calls: usize,
    lines: usize,
    /// The output limit in tokens, if the request or the model sets one.
    output_tokens_max: Option<u64>,
    /// Whether only a full context can end an answer before its limit.
    is_bound_by_context: bool,
    end: Option<OllamaEndReason>,
}

/// Why an answer ended.
#[derive(Debug)]
enum OllamaEndReason {
    For(FinishReason),
    InAWord(String),
}

impl OllamaReply {
    /// Creates the reply for a request. `own_output` is the model's own output limit. If
    /// `is_remote` is set, the vendor's machines may have another limit.
    pub fn new(
        url: &str,
        request: &CompletionRequest,
        own_output: Option<u64>,
        is_remote: bool,
    ) -> Self {
        let calls = request.messages.iter().flat_map(Message::tool_calls);
        Self {
            url: url.to_owned(),
            answer: StreamingAnswer::new(),
            tags: ThinkTags::default(),
            characters: SurrogateRepair::default(),
            ids: calls.map(|call| call.id.to_string()).collect(),
            calls: 0,
            lines: 0,
            output_tokens_max: request.options.max_output_tokens.map(u64::from).or(own_output),
            is_bound_by_context: !is_remote,
            end: None,
        }
    }

    /// Reads a line and returns the deltas to show.
    ///
    /// # Errors
    /// The error that the server reports, an error for a line that cannot be read, or one for too
    /// much output.
    pub fn read_line(&mut self, line: &[u8]) -> Result<Vec<Delta>> {
        // Some gateways send a byte order mark first, or two objects on one line.
        let line = if self.lines == 0 { strip_byte_order_mark(line) } else { line };
        if self.lines == 0 && failure::is_compressed(line) {
            return Err(compressed_answer_error(&self.url));
        }
        let text = String::from_utf8_lossy(line);
        let text = self.characters.repair_json(&text).into_owned();
        let mut deltas = Vec::new();
        for object in serde_json::Deserializer::from_str(&text).into_iter::<Value>() {
            if self.end.is_some() {
                break;
            }
            let object = match object {
                Ok(object) => object,
                Err(_) if self.lines == 0 => return Err(refusal::foreign_server_error(&self.url)),
                Err(error) => return Err(failure::invalid_event_error(&self.url, &text, &error)),
            };
            deltas.extend(self.read_object(&object)?);
        }
        Ok(deltas.into_iter().map(|delta| self.characters.join_delta(delta)).collect())
    }

    fn read_object(&mut self, line: &Value) -> Result<Vec<Delta>> {
        if !line["error"].is_null() {
            return Err(refusal::reported_error(&self.url, line));
        }
        if self.lines == 0 && !line["message"].is_object() && !line["done"].is_boolean() {
            return Err(refusal::foreign_server_error(&self.url));
        }
        self.lines += 1;
        if self.lines > EVENTS_MAX {
            return Err(answer_limit_error(&format!("{EVENTS_MAX} lines")));
        }
        let deltas = self.read_message(&line["message"])?;
        if self.answer.part_count() > PARTS_MAX {
            return Err(answer_limit_error(&format!("{PARTS_MAX} parts")));
        }
        if line["done"] == true {
            self.finish_reply(line);
        }
        Ok(deltas)
    }

    /// Reads the rest of the body after the last line end. It is either a complete line, or an
    /// incomplete one, which is ignored.
    ///
    /// # Errors
    /// The errors of [`OllamaReply::read_line`].
    pub fn read_last_line(&mut self, line: &[u8]) -> Result<Vec<Delta>> {
        let is_whole = serde_json::from_slice::<Value>(strip_byte_order_mark(line)).is_ok();
        let is_cut = strip_byte_order_mark(line).trim_ascii_start().starts_with(b"{");
        if !is_whole && (self.lines > 0 || is_cut) {
            return Ok(Vec::new());
        }
        self.read_line(line)
    }

    /// Returns true if the server has marked the end of the answer.
    pub fn is_done(&self) -> bool {
        self.end.is_some()
    }

    fn read_message(&mut self, message: &Value) -> Result<Vec<Delta>> {
        let piece = |key: &str| message[key].as_str().unwrap_or_default();
        let mut deltas = Vec::new();
        let thought = piece("thinking");
        if !thought.is_empty() {
            deltas.extend(self.answer.add_thought(thought, Some(THOUGHT_MARK)));
        }
        // Older servers, and models without a parser, leave reasoning in the text.
        for piece in self.tags.push_text(piece("content")) {
            deltas.extend(self.piece_to_delta(piece));
        }
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            self.calls += 1;
            if self.calls > CALLS_MAX {
                return Err(answer_limit_error(&format!("{CALLS_MAX} calls")));
            }
            let call = self.parse_call(&call["function"])?;
            deltas.push(self.answer.add_call(call));
        }
        Ok(deltas)
    }

    fn piece_to_delta(&mut self, piece: ThinkPiece) -> Option<Delta> {
        match piece {
            ThinkPiece::Text(text) => self.answer.add_text(&text),
            // The thought is unsigned, because the model's template removes it and the server does
            // not want it back.
            ThinkPiece::Thought(text) => self.answer.add_thought(&text, None),
        }
    }

    fn parse_call(&mut self, function: &Value) -> Result<ToolCall> {
        let name =
            function["name"].as_str().ok_or_else(|| refusal::foreign_server_error(&self.url))?;
        let mut number = self.ids.len() + 1;
        while self.ids.contains(&format!("call-{number}")) {
            number += 1;
        }
        let id = format!("call-{number}");
        self.ids.insert(id.clone());
        let arguments = match &function["arguments"] {
            Value::Null => json!({}),
            arguments => arguments.clone(),
        };
        Ok(ToolCall::new(id.as_str(), name, arguments))
    }

    fn finish_reply(&mut self, line: &Value) {
        let count = |key: &str| line[key].as_u64().unwrap_or_default();
        let (prompt_tokens, output_tokens) = (count("prompt_eval_count"), count("eval_count"));
        self.answer.set_usage(Usage { prompt_tokens, output_tokens, ..Usage::default() });
        let has_reached_limit = self.output_tokens_max.is_some_and(|most| output_tokens >= most);
        self.end = Some(match line["done_reason"].as_str() {
            // The server also sends `load` if it only loaded the model.
            None | Some("" | "stop" | "load") => OllamaEndReason::For(FinishReason::Stop),
            Some("length") if self.is_bound_by_context && !has_reached_limit => {
                OllamaEndReason::For(FinishReason::ContextExceeded)
            }
            Some("length") => OllamaEndReason::For(FinishReason::MaxTokens),
            Some(word) => OllamaEndReason::InAWord(failure::text_beginning(word)),
        });
    }

    /// Ends the answer.
    ///
    /// # Errors
    /// A temporary error if the answer was cut off, because the next attempt may be complete.
    pub fn finish(mut self) -> Result<Completion> {
        let Some(end) = self.end.take() else {
            return Err(failure::truncated_answer_error(&self.url, self.lines > 0));
        };
        // The host shows the held-back text from the completion.
        if let Some(piece) = self.tags.finish() {
            drop(self.piece_to_delta(piece));
        }
        let mut completion = match end {
            OllamaEndReason::For(reason) => self.answer.finish(reason),
            OllamaEndReason::InAWord(word) => self.answer.finish_with_word(&word),
        };
        self.characters.join_completion(&mut completion);
        Ok(completion)
    }
}
