//! Reads the server's stream: one JSON object per line, with the usage in the last one. Pure.

use std::collections::BTreeSet;

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::serde_json;
use jaato_plugin_sdk_provider::{StreamingAnswer, failure};

use crate::request::IMAGES;

/// An answer that is being received.
pub struct ReplyReader {
    url: String,
    answer: StreamingAnswer,
    /// The ids of earlier calls. A new call needs a unique id, and the server sends none.
    ids: BTreeSet<String>,
    finish_reason: Option<FinishReason>,
}

impl ReplyReader {
    /// Starts the answer to a request.
    pub fn new(url: &str, request: &CompletionRequest) -> Self {
        let calls = request.messages.iter().flat_map(Message::tool_calls);
        let ids = calls.map(|call| call.id.to_string()).collect();
        Self { url: url.to_owned(), answer: StreamingAnswer::new(), ids, finish_reason: None }
    }

    /// Takes a line and returns the deltas to emit.
    ///
    /// # Errors
    /// Fails if the server reports an error, or if the line does not belong to the protocol.
    pub fn parse_line(&mut self, line: &[u8]) -> Result<Vec<Delta>> {
        let line: Value =
            serde_json::from_slice(line).map_err(|_| unknown_protocol_error(&self.url))?;
        if !line["error"].is_null() {
            return Err(failure::reported_error(&self.url, &line));
        }
        let message = &line["message"];
        let piece = |key: &str| message[key].as_str().unwrap_or_default();
        let mut deltas = Vec::new();
        deltas.extend(self.answer.add_thought(piece("thinking"), None));
        deltas.extend(self.answer.add_text(piece("content")));
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            let call = self.read_tool_call(&call["function"])?;
            deltas.push(self.answer.add_call(call));
        }
        if line["done"] == true {
            self.read_end(&line);
        }
        Ok(deltas)
    }

    /// Takes the rest of the body: either a complete line, or a part of one, which is ignored.
    ///
    /// # Errors
    /// As [`ReplyReader::parse_line`].
    pub fn parse_last_line(&mut self, line: &[u8]) -> Result<Vec<Delta>> {
        let is_whole = serde_json::from_slice::<Value>(line).is_ok();
        if is_whole { self.parse_line(line) } else { Ok(Vec::new()) }
    }

    fn read_tool_call(&mut self, function: &Value) -> Result<ToolCall> {
        let name = function["name"].as_str().ok_or_else(|| unknown_protocol_error(&self.url))?;
        let mut number = self.ids.len() + 1;
        while self.ids.contains(&format!("call-{number}")) {
            number += 1;
        }
        let id = format!("call-{number}");
        self.ids.insert(id.clone());
        let arguments = function["arguments"].clone();
        Ok(ToolCall::new(id.as_str(), name, arguments))
    }

    fn read_end(&mut self, line: &Value) {
        self.finish_reason = Some(match line["done_reason"].as_str() {
            Some("stop") | None => FinishReason::Stop,
            Some("length") => FinishReason::MaxTokens,
            Some(_) => FinishReason::Unknown,
        });
        let count = |key: &str| line[key].as_u64().unwrap_or_default();
        self.answer.set_usage(Usage {
            prompt_tokens: count("prompt_eval_count"),
            output_tokens: count("eval_count"),
            ..Usage::default()
        });
    }

    /// Ends the answer.
    ///
    /// # Errors
    /// Fails if the stream ended before the answer.
    pub fn finish(self) -> Result<Completion> {
        match self.finish_reason {
            Some(reason) => Ok(self.answer.finish(reason)),
            None => {
                let text =
                    format!("the answer of `{}` is truncated", failure::url_for_errors(&self.url));
                Err(Error::new(ErrorKind::Provider, text).temporary())
            }
        }
    }
}

/// Returns the image types that a listed model accepts, or `None` if an older server does not say.
pub fn accepted_images(model: &Value) -> Option<Vec<String>> {
    let sees = model["capabilities"].as_array()?.iter().any(|one| one == "vision");
    let images = IMAGES.iter().filter(|_| sees);
    Some(images.map(|image| (*image).to_owned()).collect())
}

/// Returns the error of a server with another protocol.
pub fn unknown_protocol_error(url: &str) -> Error {
    let text = format!("`{}` does not answer in this protocol", failure::url_for_errors(url));
    Error::new(ErrorKind::Provider, text)
        .with_hint("`base_url` of `[plugins.provider-lines]` names the server, without `/v1`")
}
