//! A strict fake of Google's generateContent, for AI Studio and Vertex AI.
//!
//! It implements the vendor's documentation of November 2026: the fields and parts, their allowed
//! positions, and the features of each model. It signs calls and last parts, checks what comes
//! back, and counts tokens that a request shares with an earlier one as cached. It does not
//! implement token counts (four bytes count as one token), server tools, files by URL, cached
//! contents, or rate limits.

mod answer_format;
mod contents;
mod models;
mod names;
mod request_target;
mod schemas;
mod settings;
mod signatures;
mod tools;
mod turn;

use std::collections::VecDeque;

use jaato_types::http::HttpRequest;
use jaato_types::{Error, ErrorKind, Result};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use super::{VendorAnswer, VendorRequest};
use answer_format::GoogleTokenCounts;
use jaato_plugin_testkit::{FakeHttpAnswer, FakeHttpRequest};
use models::FakeGoogleModel;
use request_target::GoogleRequestTarget;
use signatures::IssuedSignatures;
pub use turn::{GoogleAnswerPiece, GoogleTurn};

/// The minimum tokens that a request must share with an earlier one to count as cached.
const CACHED_TOKENS_MIN: u64 = 1_024;

/// The number of bytes that count as one token.
const TOKEN_BYTES: usize = 4;

/// A key that is always invalid.
pub const BAD_KEY: &str = "bad";

/// The fault of a request.
#[derive(Debug)]
struct GoogleRequestFault {
    code: u16,
    status: &'static str,
    message: String,
    details: Vec<Value>,
}

impl GoogleRequestFault {
    fn new(code: u16, status: &'static str, message: impl Into<String>) -> Self {
        Self { code, status, message: message.into(), details: Vec::new() }
    }

    /// Adds a machine-readable reason.
    fn with_reason(mut self, reason: &str) -> Self {
        let kind = "type.googleapis.com/google.rpc.ErrorInfo";
        self.details.push(json!({ "@type": kind, "reason": reason, "domain": "googleapis.com" }));
        self
    }
}

/// Returns the error of a request that breaks a rule.
fn invalid_request(message: impl Into<String>) -> GoogleRequestFault {
    GoogleRequestFault::new(400, "INVALID_ARGUMENT", message)
}

type GoogleCheckResult<T = ()> = std::result::Result<T, GoogleRequestFault>;

/// The fake vendor.
pub struct FakeGoogle {
    script: Mutex<VecDeque<GoogleTurn>>,
    signatures: IssuedSignatures,
    window: Option<u64>,
    credentials: Vec<String>,
    knows_json_schema: bool,
    accepted: Mutex<Vec<Vec<u8>>>,
    calls: Mutex<usize>,
}

impl FakeGoogle {
    /// Creates the vendor with these answers, one for each accepted request.
    pub fn new(script: impl IntoIterator<Item = GoogleTurn>) -> Self {
        Self {
            script: Mutex::new(script.into_iter().collect()),
            signatures: IssuedSignatures::default(),
            window: None,
            credentials: ["GOOGLE_API_KEY", "GOOGLE_OAUTH_ACCESS_TOKEN"].map(str::to_owned).into(),
            knows_json_schema: true,
            accepted: Mutex::default(),
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

    /// Accepts only schemas of the older form, like some gateways.
    #[must_use]
    pub fn without_json_schema(self) -> Self {
        Self { knows_json_schema: false, ..self }
    }

    /// Returns the bodies of the accepted requests, in order.
    pub fn accepted_requests(&self) -> Vec<Value> {
        let bodies = self.accepted.lock();
        let read =
            |body: &Vec<u8>| serde_json::from_slice(body).ok().map(names::to_camel_case_fields);
        bodies.iter().filter_map(read).collect()
    }

    /// Answers a request.
    pub fn answer(&self, asked: &VendorRequest) -> VendorAnswer {
        let path = asked.path.split('?').next().unwrap_or_default();
        if let Some(model) = path.strip_suffix(":countTokens").filter(|_| asked.method == "POST") {
            let counted = self.count_tokens(asked, &format!("{model}:generateContent"));
            return counted.unwrap_or_else(|refused| answer_format::refusal_answer(&refused));
        }
        let answered = match (asked.method.as_str(), GoogleRequestTarget::parse_path(path)) {
            ("POST", Some(place)) => self.answer_generate(asked, &place),
            ("GET", None) if ["/v1beta/models", "/v1/models"].contains(&path) => {
                request_target::check_api_key(asked)
                    .map(|()| answer_format::json_answer(&models::models_json()))
            }
            ("GET", None) if path == "/v1beta1/publishers/google/models" => {
                request_target::check_access_token(asked)
                    .map(|()| answer_format::json_answer(&models::publisher_models_json()))
            }
            _ => Err(GoogleRequestFault::new(404, "NOT_FOUND", "Requested entity was not found.")),
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
            Some("GOOGLE_OAUTH_ACCESS_TOKEN") => {
                headers.push(("authorization".to_owned(), "Bearer token".to_owned()));
            }
            Some(_) => headers.push(("x-goog-api-key".to_owned(), "key".to_owned())),
            None if request.head.credential_required || url.contains(".googleapis.com/") => {
                let text = format!("there is no key: `{credential:?}` is not set");
                return Err(Error::new(ErrorKind::NotFound, text));
            }
            None => {}
        }
        let path = url.find("/v1beta").map_or(url.as_str(), |at| &url[at..]).to_owned();
        let asked =
            VendorRequest { method: method.clone(), path, headers, body: request.body.clone() };
        Ok(self.answer(&asked).into_plugin_answer(name.is_some()))
    }

    fn answer_generate(
        &self,
        asked: &VendorRequest,
        place: &GoogleRequestTarget<'_>,
    ) -> GoogleCheckResult<VendorAnswer> {
        place.check_credential(asked)?;
        if asked.header("content-type") != Some("application/json") {
            return Err(invalid_request("Invalid content type"));
        }
        let model = place.requested_model()?;
        let body: Value = serde_json::from_slice(&asked.body)
            .map_err(|error| invalid_request(format!("Invalid JSON payload received. {error}")))?;
        let body = names::to_camel_case_fields(body);
        let body =
            body.as_object().ok_or_else(|| invalid_request("Invalid JSON payload received."))?;
        settings::check_body_fields(body, place)?;
        tools::check_tools(body, self.knows_json_schema)?;
        settings::check_settings(body, model, self.knows_json_schema)?;
        let contents = contents::check_contents(body, model, place)?;
        self.signatures.check_signatures(&contents, model)?;
        let counted = self.count_prompt_tokens(&asked.body, model)?;
        self.accepted.lock().push(asked.body.clone());
        let Some(turn) = self.script.lock().pop_front() else {
            return Err(invalid_request("the script has no more answers"));
        };
        let parts = self.build_parts(&turn, body, model, place);
        Ok(match place.streams {
            true => answer_format::stream_answer(&turn, &parts, counted, model),
            false => answer_format::complete_answer(&turn, &parts, counted, model),
        })
    }

    /// Counts the tokens of a request. AI Studio takes the whole request in a field, and Vertex AI
    /// its parts.
    fn count_tokens(
        &self,
        asked: &VendorRequest,
        generate: &str,
    ) -> GoogleCheckResult<VendorAnswer> {
        let not_found =
            || GoogleRequestFault::new(404, "NOT_FOUND", "Requested entity was not found.");
        let place = GoogleRequestTarget::parse_path(generate).ok_or_else(not_found)?;
        place.check_credential(asked)?;
        let body: Value = serde_json::from_slice(&asked.body)
            .map_err(|error| invalid_request(format!("Invalid JSON payload received. {error}")))?;
        let body = expect_object("", &body)?;
        let inner = if place.is_studio() {
            check_fields("", body, &["contents", "generateContentRequest"])?;
            let inner = body.get("generateContentRequest").unwrap_or(&Value::Null);
            let mut inner = expect_object("generate_content_request", inner)?.clone();
            inner.remove("model").ok_or_else(|| invalid_request("model is required"))?;
            inner
        } else {
            let fields = ["contents", "generationConfig", "systemInstruction", "tools"];
            check_fields("", body, &fields)?;
            body.clone()
        };
        let inner = names::to_camel_case_fields(Value::Object(inner));
        let inner = expect_object("", &inner)?;
        let model = place.requested_model()?;
        settings::check_body_fields(inner, &place)?;
        tools::check_tools(inner, self.knows_json_schema)?;
        contents::check_contents(inner, model, &place)?;
        let bytes = Value::Object(inner.clone()).to_string().len();
        Ok(answer_format::json_answer(&json!({ "totalTokens": bytes / TOKEN_BYTES })))
    }

    fn count_prompt_tokens(
        &self,
        body: &[u8],
        model: &FakeGoogleModel,
    ) -> GoogleCheckResult<GoogleTokenCounts> {
        let tokens = |bytes: usize| (bytes / TOKEN_BYTES) as u64;
        let (prompt, window) = (tokens(body.len()), self.window.unwrap_or(model.window));
        if prompt > window {
            return Err(invalid_request(format!(
                "The input token count ({prompt}) exceeds the maximum number of tokens allowed ({window})."
            )));
        }
        let shared =
            |earlier: &Vec<u8>| earlier.iter().zip(body).take_while(|(a, b)| a == b).count();
        let cached = self.accepted.lock().iter().map(shared).max().map_or(0, tokens);
        let cached = if cached < CACHED_TOKENS_MIN { 0 } else { cached };
        Ok(GoogleTokenCounts { prompt, cached })
    }

    /// Creates the parts of an answer, and signs them.
    fn build_parts(
        &self,
        turn: &GoogleTurn,
        body: &Map<String, Value>,
        model: &FakeGoogleModel,
        place: &GoogleRequestTarget<'_>,
    ) -> Vec<Value> {
        let mut parts = Vec::new();
        for said in &turn.said {
            parts.push(match said {
                GoogleAnswerPiece::Thought(_) if !settings::has_visible_thoughts(body, model) => {
                    continue;
                }
                GoogleAnswerPiece::Thought(text) => json!({ "text": text, "thought": true }),
                GoogleAnswerPiece::Text(text) => json!({ "text": text }),
                GoogleAnswerPiece::Call(name, arguments) => {
                    let mut call = json!({ "name": name, "args": arguments });
                    if place.has_call_ids() && model.has_call_ids() {
                        let mut calls = self.calls.lock();
                        *calls += 1;
                        call["id"] = json!(format!("fc-{calls:04}"));
                    }
                    json!({ "functionCall": call })
                }
                GoogleAnswerPiece::Part(part) => part.clone(),
            });
        }
        if model.should_sign_thoughts(body) {
            self.signatures.sign_parts(&mut parts, model, place.streams);
        }
        parts
    }
}

/// Refuses an unknown field.
fn check_fields(place: &str, object: &Map<String, Value>, known: &[&str]) -> GoogleCheckResult {
    match object.keys().find(|key| !known.contains(&key.as_str())) {
        Some(key) => {
            let at = if place.is_empty() { String::new() } else { format!(" at '{place}'") };
            let text = format!(
                "Invalid JSON payload received. Unknown name \"{key}\"{at}: Cannot find field."
            );
            Err(invalid_request(text))
        }
        None => Ok(()),
    }
}

/// Returns an object, or refuses another value.
fn expect_object<'a>(place: &str, value: &'a Value) -> GoogleCheckResult<&'a Map<String, Value>> {
    value.as_object().ok_or_else(|| {
        invalid_request(format!(
            "Invalid value at '{place}' (type.googleapis.com/google.protobuf.Message)"
        ))
    })
}

/// Returns a list, which is empty if the value is missing.
fn expect_list<'a>(place: &str, value: Option<&'a Value>) -> GoogleCheckResult<&'a [Value]> {
    match value {
        None => Ok(&[]),
        Some(Value::Array(list)) => Ok(list),
        Some(_) => {
            Err(invalid_request(format!("Invalid value at '{place}': Proto field is repeating")))
        }
    }
}
