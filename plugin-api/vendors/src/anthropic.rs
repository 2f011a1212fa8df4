//! A strict fake of Anthropic's Messages API.
//!
//! It implements the vendor's documentation of November 2026: the fields and blocks, their allowed
//! positions, and the features of each model. It signs thoughts over everything before them, checks
//! the thoughts that come back, and models the cache: entries at marks, the minimum size, and the
//! look-back of twenty blocks. It does not implement token counts (four bytes count as one token),
//! server tools, files by id, or rate limits.

mod answer_format;
mod bound_thoughts;
mod cache;
mod messages;
mod models;
mod settings;
mod tools;

use std::collections::VecDeque;

use jaato_types::http::HttpRequest;
use jaato_types::{Error, ErrorKind, Result};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use super::{VendorAnswer, VendorRequest};
use cache::FakePromptCache;
use jaato_plugin_testkit::{FakeHttpAnswer, FakeHttpRequest};
use models::FakeAnthropicModel;

/// The largest body.
const BODY_BYTES_MAX: usize = 32 * 1000 * 1000;

/// The versions of the API.
const VERSIONS: [&str; 2] = ["2023-06-01", NEW_VERSION];

/// The newer version, which no longer has sampling options. The vendor's libraries use it.
const NEW_VERSION: &str = "2026-10-21";

/// The known values of the beta header.
const BETAS: [&str; 4] = [
    "inline-tools-2026-09-15",
    "interleaved-thinking-2025-05-14",
    "oauth-2025-04-20",
    "thinking-binding-controls-2026-08-01",
];

/// The fields of a request for counting tokens.
const COUNTED_FIELDS: [&str; 6] =
    ["messages", "model", "system", "thinking", "tool_choice", "tools"];

/// A piece of the model's answer.
#[derive(Debug, Clone, PartialEq)]
pub enum AnthropicAnswerPiece {
    /// A thought, if the request allows thinking.
    Thought(String),
    /// A redacted thought, under the same condition.
    Hidden(String),
    /// Text.
    Text(String),
    /// A call, with tool and input.
    Call(String, Value),
    /// A block, used unchanged.
    Block(Value),
}

/// An answer of the model.
#[derive(Debug, Clone, PartialEq)]
pub struct AnthropicTurn {
    said: Vec<AnthropicAnswerPiece>,
    stop: Option<String>,
    explanation: Option<String>,
    events_max: Option<usize>,
    error: Option<(String, String)>,
}

impl AnthropicTurn {
    /// Creates an answer with these pieces, and the stop reason that follows from them.
    pub fn with_pieces(said: impl IntoIterator<Item = AnthropicAnswerPiece>) -> Self {
        let said = said.into_iter().collect();
        Self { said, stop: None, explanation: None, events_max: None, error: None }
    }

    /// Creates an answer with one text.
    pub fn text(text: &str) -> Self {
        Self::with_pieces([AnthropicAnswerPiece::Text(text.to_owned())])
    }

    /// Sets another stop reason.
    #[must_use]
    pub fn with_stop_reason(self, word: &str) -> Self {
        Self { stop: Some(word.to_owned()), ..self }
    }

    /// Sets the explanation of a refusal.
    #[must_use]
    pub fn with_explanation(self, text: &str) -> Self {
        Self { explanation: Some(text.to_owned()), ..self }
    }

    /// Ends the stream after this many events.
    #[must_use]
    pub fn cut_after(self, events: usize) -> Self {
        Self { events_max: Some(events), ..self }
    }

    /// Reports an error of this type at the point where the stream ends.
    #[must_use]
    pub fn with_stream_error(self, kind: &str, message: &str) -> Self {
        Self { error: Some((kind.to_owned(), message.to_owned())), ..self }
    }
}

/// The fault of a request.
#[derive(Debug)]
struct AnthropicRequestFault {
    status: u16,
    kind: &'static str,
    message: String,
}

/// Returns the error of a request that breaks a rule.
fn invalid_request(message: impl Into<String>) -> AnthropicRequestFault {
    AnthropicRequestFault { status: 400, kind: "invalid_request_error", message: message.into() }
}

type AnthropicCheckResult<T = ()> = std::result::Result<T, AnthropicRequestFault>;

/// The fake vendor.
pub struct FakeAnthropic {
    script: Mutex<VecDeque<AnthropicTurn>>,
    cache: Mutex<FakePromptCache>,
    window: Option<u64>,
    credentials: Vec<String>,
    asked: Mutex<Vec<Value>>,
    calls: Mutex<usize>,
}

impl FakeAnthropic {
    /// Creates the vendor with these answers, one for each accepted request.
    pub fn new(script: impl IntoIterator<Item = AnthropicTurn>) -> Self {
        Self {
            script: Mutex::new(script.into_iter().collect()),
            cache: Mutex::default(),
            window: None,
            credentials: vec!["ANTHROPIC_API_KEY".to_owned()],
            asked: Mutex::default(),
            calls: Mutex::default(),
        }
    }

    /// Reduces the context window of all models.
    #[must_use]
    pub fn with_window(self, tokens: u64) -> Self {
        Self { window: Some(tokens), ..self }
    }

    /// Sets the credentials that the user of a fake host has.
    #[must_use]
    pub fn with_credentials(self, variables: &[&str]) -> Self {
        let credentials = variables.iter().map(|name| (*name).to_owned()).collect();
        Self { credentials, ..self }
    }

    /// Returns the bodies of the accepted requests, in order.
    pub fn accepted_requests(&self) -> Vec<Value> {
        self.asked.lock().clone()
    }

    /// Answers a request.
    pub fn answer(&self, asked: &VendorRequest) -> VendorAnswer {
        let path = asked.path.split('?').next().unwrap_or_default();
        let answered = match (asked.method.as_str(), path) {
            ("POST", "/v1/messages") => self.answer_messages(asked),
            ("POST", "/v1/messages/count_tokens") => self.count_tokens(asked),
            ("GET", "/v1/models") => {
                check_headers(asked).map(|_| answer_format::json_answer(&models::models_json()))
            }
            _ => Err(AnthropicRequestFault {
                status: 404,
                kind: "not_found_error",
                message: "Not Found".into(),
            }),
        };
        answered.unwrap_or_else(|refused| answer_format::refusal_answer(&refused))
    }

    /// Answers a plugin's request instead of a fake host. Adds the credential that the request
    /// names if the user has it.
    ///
    /// # Errors
    /// `not_found` if the vendor's own server is called without it.
    pub fn answer_plugin(&self, request: &FakeHttpRequest) -> Result<FakeHttpAnswer, Error> {
        let HttpRequest { method, url, headers, credential, .. } = &request.head;
        let mut headers = headers.clone();
        let has = |name: &String| self.credentials.contains(name);
        let name = credential.as_ref().filter(|name| has(name));
        match name.map(String::as_str) {
            Some("ANTHROPIC_AUTH_TOKEN") => {
                headers.push(("authorization".to_owned(), "Bearer token".to_owned()));
            }
            Some(_) => headers.push(("x-api-key".to_owned(), "key".to_owned())),
            None if request.head.credential_required
                || url.starts_with("https://api.anthropic.com/") =>
            {
                let text = format!("there is no key: `{credential:?}` is not set");
                return Err(Error::new(ErrorKind::NotFound, text));
            }
            None => {}
        }
        let path = url.find("/v1/").map_or(url.as_str(), |at| &url[at..]).to_owned();
        let asked =
            VendorRequest { method: method.clone(), path, headers, body: request.body.clone() };
        Ok(self.answer(&asked).into_plugin_answer(name.is_some()))
    }

    fn answer_messages(&self, asked: &VendorRequest) -> AnthropicCheckResult<VendorAnswer> {
        let betas = check_headers(asked)?;
        let body = read_body(asked)?;
        let body = body.as_object().ok_or_else(|| invalid_request("Input should be an object"))?;
        let model = settings::requested_model(body)?;
        if asked.header("anthropic-version") == Some(NEW_VERSION) {
            settings::check_no_sampling_options(body)?;
        }
        settings::check_settings(body, model)?;
        let tools = tools::check_tools(body)?;
        let messages = messages::check_messages(body, model, &betas, &tools)?;
        messages::check_cache_marks(body)?;
        let dropped = bound_thoughts::check_returned_thoughts(body, model, &betas, &messages)?;
        let counted = self.cache.lock().count_tokens(body, model);
        let window = self.window.unwrap_or(model.window);
        if counted.total > window {
            let text = format!("prompt is too long: {} tokens > {window} maximum", counted.total);
            return Err(invalid_request(text));
        }
        self.asked.lock().push(Value::Object(body.clone()));
        let Some(turn) = self.script.lock().pop_front() else {
            return Err(invalid_request("the script has no more answers"));
        };
        let content = self.build_content(&turn, body, model, &messages);
        let message = answer_format::message_json(&turn, body, content, &counted, &dropped);
        Ok(match body.get("stream") == Some(&json!(true)) {
            true => answer_format::stream_answer(&turn, &message),
            false => answer_format::json_answer(&message),
        })
    }

    /// Counts the tokens of a message. Refuses fields that are not part of the prompt.
    fn count_tokens(&self, asked: &VendorRequest) -> AnthropicCheckResult<VendorAnswer> {
        let betas = check_headers(asked)?;
        let body = read_body(asked)?;
        let mut body = body
            .as_object()
            .cloned()
            .ok_or_else(|| invalid_request("Input should be an object"))?;
        check_fields("", &body, &COUNTED_FIELDS)?;
        let model = settings::requested_model(&body)?;
        body.insert("max_tokens".to_owned(), json!(model.output));
        settings::check_settings(&body, model)?;
        let tools = tools::check_tools(&body)?;
        let messages = messages::check_messages(&body, model, &betas, &tools)?;
        messages::check_cache_marks(&body)?;
        bound_thoughts::check_returned_thoughts(&body, model, &betas, &messages)?;
        let counted = FakePromptCache::default().count_tokens(&body, model);
        Ok(answer_format::json_answer(&json!({ "input_tokens": counted.total })))
    }

    /// Creates the blocks of an answer, and signs its thoughts.
    fn build_content(
        &self,
        turn: &AnthropicTurn,
        body: &Map<String, Value>,
        model: &FakeAnthropicModel,
        messages: &[messages::JoinedMessage],
    ) -> Vec<Value> {
        let thinks = settings::can_think(body, model);
        let shows = settings::has_visible_thoughts(body, model);
        let mut blocks = Vec::new();
        for said in &turn.said {
            let prefix = bound_thoughts::thought_prefix(body, messages, &blocks);
            blocks.push(match said {
                AnthropicAnswerPiece::Thought(_) | AnthropicAnswerPiece::Hidden(_) if !thinks => {
                    continue;
                }
                AnthropicAnswerPiece::Thought(text) => {
                    let text = if shows { text.as_str() } else { "" };
                    let signature = bound_thoughts::sign_thought(model, text, &prefix);
                    json!({ "type": "thinking", "thinking": text, "signature": signature })
                }
                AnthropicAnswerPiece::Hidden(text) => {
                    let data = bound_thoughts::sign_thought(model, text, &prefix);
                    json!({ "type": "redacted_thinking", "data": data })
                }
                AnthropicAnswerPiece::Text(text) => json!({ "type": "text", "text": text }),
                AnthropicAnswerPiece::Call(name, input) => {
                    let mut calls = self.calls.lock();
                    *calls += 1;
                    let id = format!("toolu_{calls:04}");
                    json!({ "type": "tool_use", "id": id, "name": name, "input": input })
                }
                AnthropicAnswerPiece::Block(block) => block.clone(),
            });
        }
        blocks
    }
}

fn read_body(asked: &VendorRequest) -> AnthropicCheckResult<Value> {
    if asked.body.len() > BODY_BYTES_MAX {
        let message = "Request exceeds the maximum size".to_owned();
        return Err(AnthropicRequestFault { status: 413, kind: "request_too_large", message });
    }
    serde_json::from_slice(&asked.body)
        .map_err(|error| invalid_request(format!("The request body is not valid JSON: {error}")))
}

/// Checks the headers. Returns the requested beta features.
fn check_headers(asked: &VendorRequest) -> AnthropicCheckResult<Vec<String>> {
    let header = |name: &str| {
        asked.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    };
    let unauthorized = |message: &str| AnthropicRequestFault {
        status: 401,
        kind: "authentication_error",
        message: message.to_owned(),
    };
    match (header("x-api-key"), header("authorization")) {
        (Some(key), None) if !key.is_empty() => {}
        (None, Some(token)) if token.starts_with("Bearer ") => {}
        (None, None) => return Err(unauthorized("x-api-key header is required")),
        _ => return Err(unauthorized("invalid credentials")),
    }
    match header("anthropic-version") {
        Some(version) if VERSIONS.contains(&version) => {}
        Some(other) => {
            return Err(invalid_request(format!("anthropic-version: `{other}` is not valid")));
        }
        None => return Err(invalid_request("anthropic-version: header is required")),
    }
    if asked.method == "POST" && header("content-type") != Some("application/json") {
        return Err(invalid_request("content-type must be application/json"));
    }
    let betas = header("anthropic-beta").into_iter().flat_map(|list| list.split(','));
    let betas: Vec<String> = betas.map(|beta| beta.trim().to_owned()).collect();
    match betas.iter().find(|beta| !BETAS.contains(&beta.as_str())) {
        Some(beta) => Err(invalid_request(format!(
            "Unexpected value(s) `{beta}` for the `anthropic-beta` header"
        ))),
        None => Ok(betas),
    }
}

/// Refuses an unknown field.
fn check_fields(place: &str, object: &Map<String, Value>, known: &[&str]) -> AnthropicCheckResult {
    match object.keys().find(|key| !known.contains(&key.as_str())) {
        Some(key) => {
            let dot = if place.is_empty() { "" } else { "." };
            Err(invalid_request(format!("{place}{dot}{key}: Extra inputs are not permitted")))
        }
        None => Ok(()),
    }
}

/// Returns true if a name or an id has only allowed characters.
fn is_plain_name(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    !text.is_empty() && text.chars().all(is_plain)
}
