//! Reads an answer of chat completions in any form.

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::serde_json;

use super::refusal::CHECK_URL;
use super::reply::ChatReply;
use crate::exchange::wrong_form_error;
use crate::{AnswerReader, ModelProtocol, ServerEvent, failure};

impl AnswerReader for ChatReply {
    const CHECK_URL: &'static str = CHECK_URL;
    const PROTOCOL: Option<ModelProtocol> = Some(ModelProtocol::ChatCompletions);

    fn hint_for(other: ModelProtocol) -> &'static str {
        match other {
            ModelProtocol::Responses => "set `api = \"responses\"` in the provider's section",
            _ => CHECK_URL,
        }
    }

    fn handle_event(&mut self, event: &ServerEvent) -> Result<Vec<Delta>> {
        ChatReply::read_event(self, event)
    }

    fn handle_last_event(&mut self, event: &ServerEvent) -> Result<Vec<Delta>> {
        ChatReply::read_last_event(self, event)
    }

    fn handle_whole_body(&mut self, url: &str, body: &[u8]) -> Result<Vec<Delta>> {
        let values = parse_values(url, body)?;
        let deltas = ChatReply::read_complete_answer(self, &values)?;
        let has_choice =
            |value: &Value| value["choices"].as_array().is_some_and(|it| !it.is_empty());
        if values.iter().any(has_choice) {
            Ok(deltas)
        } else {
            Err(wrong_form_error::<Self>(url, Some("application/json")))
        }
    }

    fn is_done(&self) -> bool {
        ChatReply::is_done(self)
    }

    fn is_complete(&self) -> bool {
        ChatReply::is_complete(self)
    }

    fn has_begun(&self) -> bool {
        ChatReply::has_begun(self)
    }

    fn finish(self) -> Result<(Vec<Delta>, Completion)> {
        ChatReply::finish(self)
    }
}

/// Parses the JSON of a server that does not stream: one value, or a line for each piece.
fn parse_values(url: &str, body: &[u8]) -> Result<Vec<Value>> {
    let values = serde_json::Deserializer::from_slice(body).into_iter::<Value>();
    // Google's servers report an error in a list with one element.
    let unlisted = |value| match value {
        Value::Array(mut list) if list.len() == 1 => list.remove(0),
        value => value,
    };
    let values = values.map(|value| value.map(unlisted)).collect::<Result<Vec<_>, _>>();
    let values = values.map_err(|error| failure::invalid_json_error(url, &error))?;
    if values.iter().any(is_native_ollama_reply) {
        let shown = failure::url_for_errors(url);
        let text = format!("`{shown}` answered in the format of Ollama's own API");
        return Err(Error::new(ErrorKind::Provider, text)
            .with_hint("the base URL of Ollama ends in `/v1`: `http://localhost:11434/v1`"));
    }
    Ok(values)
}

/// Returns true if a value is from `/api/chat` or `/api/generate`, which send a line of JSON for
/// each piece.
fn is_native_ollama_reply(value: &Value) -> bool {
    value["done"].is_boolean() && (value["message"].is_object() || value["response"].is_string())
}
