//! A strict fake of OpenAI's Responses and chat completions.
//!
//! It implements the vendor's documentation and refusals of November 2026: the fields, items and
//! messages, the pairs of calls and results, and the features of each model. Its reasoning is
//! encrypted for the model, and is checked when it comes back. Nothing is stored, so item ids are
//! never found. It counts the tokens that a prompt cache would save. It does not implement token
//! counts (four bytes count as one token), server tools, files by id, or rate limits.

mod answer_format;
mod chat;
mod items;
mod models;
mod responses;
mod settings;

use std::collections::VecDeque;

use jaato_types::http::HttpRequest;
use jaato_types::{Error, ErrorKind, Result};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use super::{VendorAnswer, VendorRequest};
use jaato_plugin_testkit::{FakeHttpAnswer, FakeHttpRequest};
use models::FakeOpenAiModel;

/// The minimum of cached tokens, and the steps in which they are counted.
const CACHED_TOKENS_MIN: u64 = 1_024;
const CACHED_TOKENS_STEP: u64 = 128;

/// A piece of the model's answer.
#[derive(Debug, Clone, PartialEq)]
pub enum OpenAiAnswerPiece {
    /// Reasoning with this summary, if the model reasons.
    Reasoning(String),
    /// Text.
    Text(String),
    /// Text with a phase: `commentary`, `final_answer`.
    Phase(String, String),
    /// A refusal with this text.
    Refusal(String),
    /// A call, with tool and arguments as the model writes them.
    Call(String, String),
    /// An item, used unchanged. Only for Responses.
    Item(Value),
}

/// An answer of the model.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OpenAiTurn {
    said: Vec<OpenAiAnswerPiece>,
    stop: Option<String>,
    events_max: Option<usize>,
    error: Option<(String, String, StreamErrorPlacement)>,
    has_other_ids: bool,
}

/// Where an error in a stream is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamErrorPlacement {
    /// In the event itself, as in the vendor's types.
    Flat,
    /// In a field `error`, as on the wire.
    Nested,
    /// In an event `response.failed`.
    Failed,
}

impl OpenAiTurn {
    /// Creates an answer with these pieces, and the stop reason that follows from them.
    pub fn with_pieces(said: impl IntoIterator<Item = OpenAiAnswerPiece>) -> Self {
        Self { said: said.into_iter().collect(), ..Self::default() }
    }

    /// Creates an answer with one text.
    pub fn text(text: &str) -> Self {
        Self::with_pieces([OpenAiAnswerPiece::Text(text.to_owned())])
    }

    /// Marks the answer as incomplete for this reason: `max_output_tokens`, `content_filter`.
    #[must_use]
    pub fn with_stop_reason(self, word: &str) -> Self {
        Self { stop: Some(word.to_owned()), ..self }
    }

    /// Ends the stream after this many events.
    #[must_use]
    pub fn cut_after(self, events: usize) -> Self {
        Self { events_max: Some(events), ..self }
    }

    /// Reports an error at the point where the stream ends.
    #[must_use]
    pub fn with_stream_error(
        self,
        code: &str,
        message: &str,
        nesting: StreamErrorPlacement,
    ) -> Self {
        Self { error: Some((code.to_owned(), message.to_owned(), nesting)), ..self }
    }

    /// Sends an item with another id in each event, like some gateways.
    #[must_use]
    pub fn with_other_ids(self) -> Self {
        Self { has_other_ids: true, ..self }
    }
}

/// The fault of a request.
#[derive(Debug)]
struct OpenAiRequestFault {
    status: u16,
    code: Option<&'static str>,
    param: Option<String>,
    message: String,
}

type OpenAiCheckResult<T = ()> = std::result::Result<T, OpenAiRequestFault>;

/// Returns the error of a request that breaks a rule in this field.
fn invalid_request(
    code: &'static str,
    param: &str,
    message: impl Into<String>,
) -> OpenAiRequestFault {
    let param = Some(param.to_owned()).filter(|param| !param.is_empty());
    OpenAiRequestFault { status: 400, code: Some(code), param, message: message.into() }
}

/// How the key is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KeyPlace {
    Bearer,
    ApiKey,
}

/// The fake vendor.
pub struct FakeOpenAi {
    script: Mutex<VecDeque<OpenAiTurn>>,
    window: Option<u64>,
    sealed: Mutex<items::EncryptedReasoning>,
    is_verified: bool,
    deployment: Option<(String, &'static str)>,
    asked: Mutex<Vec<(String, Value)>>,
    numbers: Mutex<usize>,
}

impl FakeOpenAi {
    /// Creates the vendor with these answers, one for each accepted request.
    pub fn new(script: impl IntoIterator<Item = OpenAiTurn>) -> Self {
        Self {
            script: Mutex::new(script.into_iter().collect()),
            window: None,
            sealed: Mutex::default(),
            is_verified: true,
            deployment: None,
            asked: Mutex::default(),
            numbers: Mutex::default(),
        }
    }

    /// Reduces the context window of all models.
    #[must_use]
    pub fn with_window(self, tokens: u64) -> Self {
        Self { window: Some(tokens), ..self }
    }

    /// Numbers calls and reasoning from `number`, like the server of another account that does not
    /// know the first one's items.
    #[must_use]
    pub fn with_first_item_number(self, number: usize) -> Self {
        Self { numbers: Mutex::new(number), ..self }
    }

    /// Acts as an account that may not see summaries of reasoning.
    #[must_use]
    pub fn without_verification(self) -> Self {
        Self { is_verified: false, ..self }
    }

    /// Acts as an Azure resource: below `/openai/v1`, with its own key header, and with one
    /// deployment of this name and model.
    #[must_use]
    pub fn with_azure_deployment(self, deployment: &str, model: &'static str) -> Self {
        Self { deployment: Some((deployment.to_owned(), model)), ..self }
    }

    /// Returns the bodies of the accepted requests, in order.
    pub fn accepted_requests(&self) -> Vec<Value> {
        self.asked.lock().iter().map(|(_, body)| body.clone()).collect()
    }

    /// Answers a request.
    pub fn answer(&self, asked: &VendorRequest) -> VendorAnswer {
        let (path, _query) = asked.path.split_once('?').unwrap_or((&asked.path, ""));
        let root = if self.deployment.is_some() { "/openai/v1/" } else { "/v1/" };
        let answered = match (asked.method.as_str(), path.strip_prefix(root)) {
            ("POST", Some("responses")) => self.answer_responses(asked),
            ("POST", Some("chat/completions")) => self.answer_chat(asked),
            ("GET", Some("models")) => self
                .check_headers(asked)
                .map(|()| answer_format::json_answer(&models::models_json())),
            _ => {
                let message =
                    format!("Invalid URL ({} {})", asked.method.to_uppercase(), asked.path);
                Err(OpenAiRequestFault { status: 404, code: None, param: None, message })
            }
        };
        answered.unwrap_or_else(|refused| answer_format::refusal_answer(&refused))
    }

    /// Answers a plugin's request instead of a fake host. Adds the key if the request names it.
    ///
    /// # Errors
    /// `not_found` if the vendor's own server is called without it.
    pub fn answer_plugin(&self, request: &FakeHttpRequest) -> Result<FakeHttpAnswer, Error> {
        let HttpRequest { method, url, headers, credential, .. } = &request.head;
        let mut headers = headers.clone();
        let has_key = credential.as_deref() == Some("OPENAI_API_KEY");
        match has_key {
            true => headers.push(("authorization".to_owned(), "Bearer key".to_owned())),
            false if url.starts_with("https://api.openai.com/") => {
                let text = format!("there is no key: `{credential:?}` is not set");
                return Err(Error::new(ErrorKind::NotFound, text));
            }
            false => {}
        }
        let rest = url.split_once("://").map_or(url.as_str(), |(_, rest)| rest);
        let path = rest.find('/').map_or("/", |at| &rest[at..]).to_owned();
        let asked =
            VendorRequest { method: method.clone(), path, headers, body: request.body.clone() };
        Ok(self.answer(&asked).into_plugin_answer(has_key))
    }

    fn answer_responses(&self, asked: &VendorRequest) -> OpenAiCheckResult<VendorAnswer> {
        let (body, model) = self.open_request(asked)?;
        responses::check_responses_body(&body, model, self.is_verified)?;
        items::check_items(&body, model.name, &self.sealed.lock())?;
        let cached = self.count_cached_tokens(&body, &["tools", "input"], model)?;
        let turn = self.next_turn()?;
        let output = self.output_items(&turn, model, &body);
        let response = answer_format::response_json(&turn, &body, output, cached);
        Ok(match body.get("stream") == Some(&json!(true)) {
            true => answer_format::stream_answer(&turn, &response),
            false => answer_format::complete_answer(&turn, &response),
        })
    }

    fn answer_chat(&self, asked: &VendorRequest) -> OpenAiCheckResult<VendorAnswer> {
        let (body, model) = self.open_request(asked)?;
        chat::check_chat(&body, model)?;
        let cached = self.count_cached_tokens(&body, &["tools", "messages"], model)?;
        let turn = self.next_turn()?;
        Ok(chat::format_answer(&turn, &body, cached, || self.next_number()))
    }

    /// Parses a request into its body and its model.
    fn open_request(
        &self,
        asked: &VendorRequest,
    ) -> OpenAiCheckResult<(Map<String, Value>, &'static FakeOpenAiModel)> {
        self.check_headers(asked)?;
        let body: Value = serde_json::from_slice(&asked.body).map_err(|error| {
            invalid_request(
                "invalid_json",
                "",
                format!("We could not parse the JSON body: {error}"),
            )
        })?;
        let Value::Object(body) = body else {
            return Err(invalid_request("invalid_type", "", "The body is not an object"));
        };
        let name = body.get("model").and_then(Value::as_str);
        let name = name.ok_or_else(|| {
            invalid_request(
                "missing_required_parameter",
                "model",
                "you must provide a model parameter",
            )
        })?;
        let model = match &self.deployment {
            Some((deployment, model)) if deployment == name => models::find_model(model),
            Some(_) => None,
            None => models::find_model(name),
        };
        let model = model.ok_or_else(|| OpenAiRequestFault {
            status: 404,
            code: Some("model_not_found"),
            param: None,
            message: format!("The model `{name}` does not exist or you do not have access to it."),
        })?;
        Ok((body, model))
    }

    /// Counts the cached tokens of a request, and stores the request.
    fn count_cached_tokens(
        &self,
        body: &Map<String, Value>,
        parts: &[&str],
        model: &FakeOpenAiModel,
    ) -> OpenAiCheckResult<u64> {
        let text: String =
            parts.iter().map(|part| body.get(*part).unwrap_or(&Value::Null).to_string()).collect();
        let tokens = text.len() as u64 / 4;
        let window = self.window.unwrap_or(model.window);
        if tokens > window {
            let message = "Your input exceeds the context window of this model. Please adjust your \
                           input and try again.";
            return Err(invalid_request("context_length_exceeded", "input", message));
        }
        let mut known = self.asked.lock();
        let shared = known.iter().map(|(before, _)| {
            before.bytes().zip(text.bytes()).take_while(|(a, b)| a == b).count() as u64
        });
        let cached = shared.max().unwrap_or(0) / 4 / CACHED_TOKENS_STEP * CACHED_TOKENS_STEP;
        known.push((text, Value::Object(body.clone())));
        Ok(if cached < CACHED_TOKENS_MIN { 0 } else { cached })
    }

    fn next_turn(&self) -> OpenAiCheckResult<OpenAiTurn> {
        let turn = self.script.lock().pop_front();
        turn.ok_or_else(|| invalid_request("no_script", "", "the script has no more answers"))
    }

    fn next_number(&self) -> usize {
        let mut numbers = self.numbers.lock();
        *numbers += 1;
        *numbers
    }

    /// Creates the items of an answer.
    fn output_items(
        &self,
        turn: &OpenAiTurn,
        model: &FakeOpenAiModel,
        body: &Map<String, Value>,
    ) -> Vec<Value> {
        let has_summary = body.get("reasoning").is_some_and(|it| it["summary"].is_string());
        let is_encrypted = body.contains_key("include");
        let mut output = Vec::new();
        for (number, said) in turn.said.iter().enumerate() {
            let message = |content: Value| {
                json!({ "type": "message", "id": format!("msg_{number}"), "status": "completed",
                    "role": "assistant", "content": [content] })
            };
            let text = |text: &str| {
                message(json!({ "type": "output_text", "text": text, "annotations": [],
                    "logprobs": [] }))
            };
            output.push(match said {
                OpenAiAnswerPiece::Reasoning(_) if !model.reasons => continue,
                OpenAiAnswerPiece::Reasoning(summary) => {
                    let shown = Some(summary).filter(|it| has_summary && !it.is_empty());
                    let shown = shown.map(|text| json!({ "type": "summary_text", "text": text }));
                    let summary_list: Vec<Value> = shown.into_iter().collect();
                    let mut item = json!({ "type": "reasoning", "id": format!("rs_{number}"),
                        "summary": summary_list });
                    if is_encrypted {
                        item["encrypted_content"] =
                            json!(self.sealed.lock().encrypt(model.name, self.next_number()));
                    }
                    item
                }
                OpenAiAnswerPiece::Text(said) => text(said),
                OpenAiAnswerPiece::Phase(phase, said) => {
                    let mut item = text(said);
                    item["phase"] = json!(phase);
                    item
                }
                OpenAiAnswerPiece::Refusal(said) => {
                    message(json!({ "type": "refusal", "refusal": said }))
                }
                OpenAiAnswerPiece::Call(name, arguments) => {
                    let call = self.next_number();
                    json!({ "type": "function_call", "id": format!("fc_{number}"),
                        "call_id": format!("call_{call:04}"), "name": name,
                        "arguments": arguments, "status": "completed" })
                }
                OpenAiAnswerPiece::Item(item) => item.clone(),
            });
        }
        output
    }

    fn check_headers(&self, asked: &VendorRequest) -> OpenAiCheckResult {
        let wanted = if self.deployment.is_some() { KeyPlace::ApiKey } else { KeyPlace::Bearer };
        let bearer = asked.header("authorization").and_then(|it| it.strip_prefix("Bearer "));
        let given = match wanted {
            KeyPlace::Bearer => bearer,
            // It accepts a bearer token too.
            KeyPlace::ApiKey => asked.header("api-key").or(bearer),
        };
        if given.is_none_or(str::is_empty) {
            let message = "You didn't provide an API key.".to_owned();
            return Err(OpenAiRequestFault { status: 401, code: None, param: None, message });
        }
        if asked.method == "POST" && asked.header("content-type") != Some("application/json") {
            let message = "Unsupported media type: it must be application/json".to_owned();
            return Err(OpenAiRequestFault { status: 415, code: None, param: None, message });
        }
        Ok(())
    }
}

/// Refuses an unknown field.
fn check_fields(place: &str, object: &Map<String, Value>, known: &[&str]) -> OpenAiCheckResult {
    match object.keys().find(|key| !known.contains(&key.as_str())) {
        Some(key) => {
            let dot = if place.is_empty() { "" } else { "." };
            let param = format!("{place}{dot}{key}");
            let message = format!("Unknown parameter: '{param}'.");
            Err(invalid_request("unknown_parameter", &param, message))
        }
        None => Ok(()),
    }
}

/// Refuses a value that is not a text, or is too long.
fn check_text<'a>(place: &str, value: &'a Value, chars_max: usize) -> OpenAiCheckResult<&'a str> {
    let text = value.as_str().ok_or_else(|| {
        let message = format!("Invalid type for '{place}': expected a string.");
        invalid_request("invalid_type", place, message)
    })?;
    if text.chars().count() > chars_max {
        let message = format!(
            "Invalid '{place}': string too long. Expected a string with maximum length {chars_max}."
        );
        return Err(invalid_request("string_above_max_length", place, message));
    }
    Ok(text)
}

/// Refuses a name with invalid characters.
fn check_name(place: &str, value: &Value) -> OpenAiCheckResult {
    let name = check_text(place, value, 64)?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() || !name.chars().all(is_plain) {
        let message = format!(
            "Invalid '{place}': string does not match pattern. Expected a string that matches the \
             pattern '^[a-zA-Z0-9_-]+$'."
        );
        return Err(invalid_request("invalid_value", place, message));
    }
    Ok(())
}
