//! A strict fake of an Ollama server.
//!
//! It implements the native protocol of Ollama 0.33: the fields, the features of each model, how
//! the context is allocated, and what happens when it is full. It is stricter than the server: the
//! server ignores unknown fields and accepts tool results anywhere. It does not implement token
//! counts (four bytes count as one token), the eviction of models, or embeddings.

mod answer_format;
mod chat;
mod models;
mod turn;

use std::collections::{BTreeMap, VecDeque};

use jaato_types::http::HttpRequest;
use jaato_types::{Error, Result};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use super::{VendorAnswer, VendorRequest};
use jaato_plugin_testkit::{FakeHttpAnswer, FakeHttpRequest};
use models::FakeOllamaModel;
pub use turn::{OllamaAnswerPiece, OllamaTurn};

/// The model that can be pulled.
pub const IN_LIBRARY: &str = "moon:1b";

/// The default context size, as on most machines.
const CONTEXT_BY_DEFAULT: u64 = 4_096;

/// The fault of a request.
#[derive(Debug)]
struct OllamaRequestFault {
    status: u16,
    message: String,
}

/// Returns the error of a request that breaks a rule.
fn invalid_request(message: impl Into<String>) -> OllamaRequestFault {
    OllamaRequestFault { status: 400, message: message.into() }
}

type OllamaCheckResult<T = ()> = std::result::Result<T, OllamaRequestFault>;

/// The fake server.
#[derive(Default)]
pub struct FakeOllama {
    script: Mutex<VecDeque<OllamaTurn>>,
    accepted: Mutex<Vec<Value>>,
    /// The context size of each loaded model.
    loaded: Mutex<BTreeMap<String, u64>>,
    reloads: Mutex<usize>,
    pulled: Mutex<Vec<String>>,
    context_max: Option<u64>,
    cuts_silently: bool,
    key: Option<String>,
}

impl FakeOllama {
    /// Creates the server with these answers, one for each accepted chat.
    pub fn new(script: impl IntoIterator<Item = OllamaTurn>) -> Self {
        Self { script: Mutex::new(script.into_iter().collect()), ..Self::default() }
    }

    /// Limits the context of all models, even if a request asks for more.
    #[must_use]
    pub fn with_context_max(self, tokens: u64) -> Self {
        Self { context_max: Some(tokens), ..self }
    }

    /// Does not support `truncate`, like older servers: long conversations silently lose their
    /// beginning.
    #[must_use]
    pub fn with_silent_truncation(self) -> Self {
        Self { cuts_silently: true, ..self }
    }

    /// Loads a model from the start.
    #[must_use]
    pub fn with_loaded_model(self, model: &str, context_tokens: u64) -> Self {
        self.loaded.lock().insert(model.to_owned(), context_tokens);
        self
    }

    /// Requires this key as a bearer token.
    #[must_use]
    pub fn with_api_key(self, key: &str) -> Self {
        Self { key: Some(key.to_owned()), ..self }
    }

    /// Returns the bodies of the accepted chats, in order.
    pub fn accepted_requests(&self) -> Vec<Value> {
        self.accepted.lock().clone()
    }

    /// Returns how often a model was loaded again because its context size changed.
    pub fn reload_count(&self) -> usize {
        *self.reloads.lock()
    }

    /// Answers a request.
    pub fn answer(&self, asked: &VendorRequest) -> VendorAnswer {
        let path = asked.path.split('?').next().unwrap_or_default();
        let answered =
            self.check_api_key(asked).and_then(|()| match (asked.method.as_str(), path) {
                ("POST", "/api/chat") => self.answer_chat(asked),
                ("POST", "/api/show") => self.answer_show(asked),
                ("POST", "/api/pull") => self.answer_pull(asked),
                ("GET", "/api/tags") => Ok(answer_format::json_answer(
                    &models::installed_models_json(&self.pulled.lock()),
                )),
                ("GET", "/api/ps") => {
                    Ok(answer_format::json_answer(&models::loaded_models_json(&self.loaded.lock())))
                }
                ("GET", "/api/version") => {
                    Ok(answer_format::json_answer(&json!({ "version": "0.33.0" })))
                }
                _ => Ok(answer_format::unknown_page_answer()),
            });
        answered.unwrap_or_else(|refused| answer_format::refusal_answer(&refused))
    }

    /// Answers a plugin's request instead of a fake host. Adds the credential that the request
    /// names if the user has it.
    ///
    /// # Errors
    /// None, because the host withholds no such request.
    pub fn answer_plugin(&self, request: &FakeHttpRequest) -> Result<FakeHttpAnswer, Error> {
        let HttpRequest { method, url, headers, credential, .. } = &request.head;
        let mut headers = headers.clone();
        let key = credential.as_ref().and(self.key.as_ref());
        if let Some(key) = key {
            headers.push(("authorization".to_owned(), format!("Bearer {key}")));
        }
        let path = url.find("/api/").map_or(url.as_str(), |at| &url[at..]).to_owned();
        let asked =
            VendorRequest { method: method.clone(), path, headers, body: request.body.clone() };
        Ok(self.answer(&asked).into_plugin_answer(key.is_some()))
    }

    fn check_api_key(&self, asked: &VendorRequest) -> OllamaCheckResult {
        let given = asked.header("authorization").and_then(|it| it.strip_prefix("Bearer "));
        match &self.key {
            Some(key) if given != Some(key) => {
                Err(OllamaRequestFault { status: 401, message: "unauthorized".to_owned() })
            }
            _ => Ok(()),
        }
    }

    fn answer_chat(&self, asked: &VendorRequest) -> OllamaCheckResult<VendorAnswer> {
        let body = read_body(asked)?;
        let model = self.requested_model(&body)?;
        chat::check_chat(&body, &model)?;
        let read = self.load_model(&body, &model)?;
        self.accepted.lock().push(Value::Object(body.clone()));
        let Some(turn) = self.script.lock().pop_front() else {
            return Err(invalid_request("the script has no more answers"));
        };
        let thinks = chat::can_think(&body, &model);
        let said = turn
            .said
            .iter()
            .filter(|said| thinks || !matches!(said, OllamaAnswerPiece::Thought(_)));
        let message = answer_format::OllamaAnswerMessage {
            model: &model,
            said: said.collect(),
            prompt: read,
        };
        Ok(match body.get("stream") == Some(&json!(false)) {
            true => answer_format::complete_answer(&turn, &message),
            false => answer_format::stream_answer(&turn, &message),
        })
    }

    /// Loads the model with the requested context size. Returns the number of tokens that it reads.
    fn load_model(
        &self,
        body: &Map<String, Value>,
        model: &FakeOllamaModel,
    ) -> OllamaCheckResult<u64> {
        let asked = body.get("options").and_then(|options| options["num_ctx"].as_u64());
        let size = asked.unwrap_or(CONTEXT_BY_DEFAULT).min(model.window);
        let size = self.context_max.map_or(size, |most| size.min(most));
        let before = self.loaded.lock().insert(model.name.clone(), size);
        *self.reloads.lock() += usize::from(before.is_some_and(|before| before != size));
        let tokens = chat::count_prompt_tokens(body);
        if tokens <= size {
            return Ok(tokens);
        }
        if body.get("truncate") == Some(&json!(false)) && !self.cuts_silently {
            return Err(invalid_request("the input length exceeds the context length"));
        }
        Ok(size)
    }

    fn answer_show(&self, asked: &VendorRequest) -> OllamaCheckResult<VendorAnswer> {
        let body = read_body(asked)?;
        check_fields("show", &body, &["model", "verbose"])?;
        Ok(answer_format::json_answer(&models::model_info_json(&self.requested_model(&body)?)))
    }

    fn answer_pull(&self, asked: &VendorRequest) -> OllamaCheckResult<VendorAnswer> {
        let body = read_body(asked)?;
        check_fields("pull", &body, &["insecure", "model", "stream"])?;
        let name = models::with_tag(body["model"].as_str().unwrap_or_default());
        if name.contains([' ', '\\']) || name.starts_with(':') {
            return Err(invalid_request("invalid model name"));
        }
        let is_there = name == IN_LIBRARY || models::find_model(&name).is_some();
        if is_there {
            self.pulled.lock().push(name);
        }
        Ok(answer_format::pull_answer(is_there))
    }

    fn requested_model(&self, body: &Map<String, Value>) -> OllamaCheckResult<FakeOllamaModel> {
        let asked = body.get("model").and_then(Value::as_str).unwrap_or_default();
        if asked.is_empty() {
            return Err(invalid_request("model is required"));
        }
        let name = models::with_tag(asked);
        let pulled = || self.pulled.lock().contains(&name).then(|| models::pulled_model(&name));
        models::find_model(&name).or_else(pulled).ok_or_else(|| OllamaRequestFault {
            status: 404,
            message: format!("model '{asked}' not found"),
        })
    }
}

fn read_body(asked: &VendorRequest) -> OllamaCheckResult<Map<String, Value>> {
    if asked.header("content-type") != Some("application/json") {
        return Err(invalid_request("unsupported content type"));
    }
    let body: Value = serde_json::from_slice(&asked.body)
        .map_err(|error| invalid_request(format!("invalid JSON: {error}")))?;
    match body {
        Value::Object(body) => Ok(body),
        _ => Err(invalid_request("json: cannot unmarshal into Go value of type api.ChatRequest")),
    }
}

/// Refuses an unknown field.
fn check_fields(place: &str, object: &Map<String, Value>, known: &[&str]) -> OllamaCheckResult {
    match object.keys().find(|key| !known.contains(&key.as_str())) {
        Some(key) => Err(invalid_request(format!("{place}: unknown field \"{key}\""))),
        None => Ok(()),
    }
}
