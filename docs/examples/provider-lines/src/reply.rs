//! Reads what the server streams: one JSON object a line, the last with the sums. Pure.

use std::collections::BTreeSet;

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::serde_json;
use jaato_plugin_sdk_provider::{Answer, failure};

use crate::request::IMAGES;

/// An answer that is being received.
pub struct Reply {
    url: String,
    answer: Answer,
    /// The calls of the conversation: a new one needs an id of its own, and the server gives none.
    ids: BTreeSet<String>,
    finish_reason: Option<FinishReason>,
}

impl Reply {
    /// Begins the answer to a request.
    pub fn new(url: &str, request: &Request) -> Self {
        let calls = request.messages.iter().flat_map(Message::tool_calls);
        let ids = calls.map(|call| call.id.to_string()).collect();
        Self { url: url.to_owned(), answer: Answer::new(), ids, finish_reason: None }
    }

    /// Takes a line and gives what is to be shown of it.
    ///
    /// # Errors
    /// When the server reports one, or the line is none of its own.
    pub fn line(&mut self, line: &[u8]) -> Result<Vec<Delta>> {
        let line: Value = serde_json::from_slice(line).map_err(|_| foreign(&self.url))?;
        if !line["error"].is_null() {
            return Err(failure::of_report(&self.url, &line));
        }
        let message = &line["message"];
        let piece = |key: &str| message[key].as_str().unwrap_or_default();
        let mut deltas = Vec::new();
        deltas.extend(self.answer.thought(piece("thinking"), None));
        deltas.extend(self.answer.text(piece("content")));
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            let call = self.call(&call["function"])?;
            deltas.push(self.answer.call(call));
        }
        if line["done"] == true {
            self.end(&line);
        }
        Ok(deltas)
    }

    /// Takes what the end of the body left: a line of which the server sent all, or a piece of one,
    /// which is then no part of the answer.
    ///
    /// # Errors
    /// As [`Reply::line`].
    pub fn last_line(&mut self, line: &[u8]) -> Result<Vec<Delta>> {
        let is_whole = serde_json::from_slice::<Value>(line).is_ok();
        if is_whole { self.line(line) } else { Ok(Vec::new()) }
    }

    fn call(&mut self, function: &Value) -> Result<ToolCall> {
        let name = function["name"].as_str().ok_or_else(|| foreign(&self.url))?;
        let mut number = self.ids.len() + 1;
        while self.ids.contains(&format!("call-{number}")) {
            number += 1;
        }
        let id = format!("call-{number}");
        self.ids.insert(id.clone());
        let arguments = function["arguments"].clone();
        Ok(ToolCall::new(id.as_str(), name, arguments))
    }

    fn end(&mut self, line: &Value) {
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
    /// When the stream ended before the answer did.
    pub fn finish(self) -> Result<Completion> {
        match self.finish_reason {
            Some(reason) => Ok(self.answer.finish(reason)),
            None => {
                let text = format!("the answer of `{}` was cut", failure::shown_url(&self.url));
                Err(Error::new(ErrorKind::Provider, text).temporary())
            }
        }
    }
}

/// Reads whether a model of the list sees images; older servers do not say.
pub fn accepts(model: &Value) -> Option<Vec<String>> {
    let sees = model["capabilities"].as_array()?.iter().any(|one| one == "vision");
    let images = IMAGES.iter().filter(|_| sees);
    Some(images.map(|image| (*image).to_owned()).collect())
}

/// What answers is no such server.
pub fn foreign(url: &str) -> Error {
    let text = format!("`{}` answers in no lines of this protocol", failure::shown_url(url));
    Error::new(ErrorKind::Provider, text)
        .with_hint("`base_url` of `[plugins.provider-lines]` names the server, without `/v1`")
}
