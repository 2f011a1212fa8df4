//! The plugin itself: between the host's services and the pure mapping.

use std::time::Duration;

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::schemars::{self, JsonSchema};
use jaato_plugin_sdk::serde::{self, Deserialize};
use jaato_plugin_sdk::types::CredentialSpec;
use jaato_plugin_sdk::{HttpResponse, serde_json};
use jaato_plugin_sdk_provider::{Events, failure};

use crate::endpoint::{self, VENDOR};
use crate::models;
use crate::reply::Reply;
use crate::request::{self, Dialect};

/// The variable that holds the key.
const KEY: &str = "OPENAI_API_KEY";

/// The variable that names another server.
const BASE_URL: &str = "OPENAI_BASE_URL";

/// Wait for an answer to begin or go on: more than a session's own patience, which is what decides.
const WAIT: Duration = Duration::from_secs(60 * 60);

/// Wait for a list of models, for which a person sits and waits.
const LIST_WAIT: Duration = Duration::from_secs(10);

/// Largest list of models and largest answer that does not come as a stream.
const WHOLE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// `[plugins.provider-openai]`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(crate = "serde", default, deny_unknown_fields)]
#[schemars(crate = "schemars")]
pub struct Config {
    /// Where the server is, up to and with `/v1`. `OPENAI_BASE_URL` wins.
    pub base_url: String,
}

impl Default for Config {
    fn default() -> Self {
        Self { base_url: VENDOR.to_owned() }
    }
}

/// The plugin's state: none, because providers are stateless.
pub struct OpenAi;

impl State for OpenAi {
    async fn create(_home: &Home, _saved: Option<Value>) -> Result<Self> {
        Ok(Self)
    }

    fn describe(description: &mut Description) {
        description.config_schema = serde_json::to_value(schemars::schema_for!(Config)).ok();
        description.credentials = vec![CredentialSpec {
            variable: KEY.to_owned(),
            scheme: "bearer".to_owned(),
            origin: "https://api.openai.com".to_owned(),
            base_url_variable: BASE_URL.to_owned(),
        }];
    }
}

/// The provider `openai`.
pub struct OpenAiProvider;

impl Provider for OpenAiProvider {
    type State = OpenAi;

    fn spec() -> ProviderSpec {
        ProviderSpec {
            name: "openai".to_owned(),
            title: "OpenAI, Ollama, llama.cpp, vLLM, LM Studio and servers that speak as they do"
                .to_owned(),
            default_model: String::new(),
            models: Vec::new(),
        }
    }

    async fn complete(cx: &Cx<OpenAi>, request: Request) -> Result<Completion> {
        let base = config(cx).await?.base_url;
        let url = endpoint::below(&base, "chat/completions");
        let is_vendors = endpoint::is_vendors(&base);
        let dialect = if is_vendors { Dialect::Vendor } else { Dialect::Common };
        let sent = cx
            .http("POST", url.as_str())
            .header("content-type", "application/json")
            .header("accept", "text/event-stream, application/json")
            .credential(KEY)
            .timeout(WAIT)
            .body(request::body(&request, dialect)?);
        let response = sent.send().await.map_err(failure::of_exchange)?;
        if !is_success(&response) {
            return Err(refused(&url, response).await);
        }
        receive(cx, &url, response).await
    }

    async fn models(cx: &Cx<OpenAi>) -> Result<Vec<ModelInfo>> {
        let url = endpoint::below(&config(cx).await?.base_url, "models");
        let sent = cx.http("GET", url.as_str()).credential(KEY).timeout(LIST_WAIT);
        let response = match sent.send().await {
            // Nobody has set it up, which the host tells only those who want to use it.
            Err(error) if error.kind == ErrorKind::NotFound => return Err(error),
            sent => sent.map_err(failure::of_exchange)?,
        };
        if !is_success(&response) {
            return Err(refused(&url, response).await);
        }
        models::read(&url, &response.bytes(WHOLE_BYTES_MAX).await.map_err(failure::of_exchange)?)
    }
}

async fn config(cx: &Cx<OpenAi>) -> Result<Config> {
    match cx.config().await {
        // A host without the service has no settings for us either.
        Err(error) if error.kind == ErrorKind::UnknownOperation => Ok(Config::default()),
        config => config,
    }
}

fn is_success(response: &HttpResponse) -> bool {
    (200..300).contains(&response.status())
}

/// Reads an answer of the form that its first bytes tell: servers and gateways name it wrongly.
async fn receive(cx: &Cx<OpenAi>, url: &str, mut response: HttpResponse) -> Result<Completion> {
    let mut first = Vec::new();
    let form = loop {
        if let Some(form) = Form::of(&first) {
            break form;
        }
        match response.next().await.map_err(failure::of_exchange)? {
            Some(piece) => first.extend(piece),
            None => return Reply::new(url).finish().map(|(_, completion)| completion),
        }
    };
    match form {
        Form::Stream => stream(cx, url, first, response).await,
        Form::Json => {
            let rest = response.bytes(WHOLE_BYTES_MAX).await.map_err(failure::of_exchange)?;
            whole(cx, url, &[first, rest].concat())
        }
        Form::Page => Err(wrong_form(url, response.header("content-type"))),
    }
}

/// Leaves out a byte order mark, which some servers put in front.
fn unmarked(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes)
}

/// What an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Stream,
    Json,
    Page,
}

impl Form {
    /// Tells it by the first byte that is no blank; none as long as there is none.
    fn of(bytes: &[u8]) -> Option<Self> {
        Some(match unmarked(bytes).iter().find(|byte| !byte.is_ascii_whitespace())? {
            b'{' | b'[' => Self::Json,
            b'<' => Self::Page,
            _ => Self::Stream,
        })
    }
}

async fn stream(
    cx: &Cx<OpenAi>,
    url: &str,
    first: Vec<u8>,
    mut response: HttpResponse,
) -> Result<Completion> {
    let (mut events, mut reply) = (Events::new(), Reply::new(url));
    let mut piece = first;
    loop {
        for event in events.push(&piece).map_err(failure::of_exchange)? {
            for delta in reply.event(&event.data)? {
                cx.emit(&delta);
            }
        }
        if reply.is_done() {
            break;
        }
        piece = match response.next().await {
            Ok(Some(piece)) => piece,
            Ok(None) => break,
            // The model has said all; a connection that ends badly after that takes nothing away.
            Err(_) if reply.is_complete() => break,
            Err(error) => return Err(failure::of_exchange(error)),
        };
    }
    if !reply.has_begun() {
        return Err(wrong_form(url, response.header("content-type")));
    }
    end(cx, reply)
}

/// Reads an answer of a server that does not stream.
fn whole(cx: &Cx<OpenAi>, url: &str, body: &[u8]) -> Result<Completion> {
    let body: Value = serde_json::from_slice(unmarked(body)).map_err(|error| {
        let url = failure::shown_url(url);
        Error::new(ErrorKind::Provider, format!("the answer of `{url}` is no JSON: {error}"))
            .temporary()
    })?;
    let mut reply = Reply::new(url);
    for delta in reply.chunk(&body)? {
        cx.emit(&delta);
    }
    if body["choices"].as_array().is_none_or(Vec::is_empty) {
        return Err(wrong_form(url, Some("application/json")));
    }
    end(cx, reply)
}

fn end(cx: &Cx<OpenAi>, reply: Reply) -> Result<Completion> {
    let (deltas, completion) = reply.finish()?;
    for delta in deltas {
        cx.emit(&delta);
    }
    Ok(completion)
}

fn wrong_form(url: &str, content_type: Option<&str>) -> Error {
    let form = content_type.map_or_else(String::new, |it| format!(" (`{it}`)"));
    let url = failure::shown_url(url);
    let text = format!("`{url}` answered with what is no completion{form}");
    Error::new(ErrorKind::Provider, text).with_hint("check the base url: most end in `/v1`")
}

/// Turns an answer that is no success into an error with what to do.
async fn refused(url: &str, mut response: HttpResponse) -> Error {
    let mut body = Vec::new();
    // What cannot be read of it is left out: the status says enough.
    while let Ok(Some(piece)) = response.next().await {
        body.extend(piece);
        if body.len() >= failure::BODY_BYTES_MAX {
            break;
        }
    }
    let error = failure::of_answer(url, response.status(), |name| response.header(name), &body);
    let is_json = serde_json::from_slice::<Value>(&body).is_ok();
    match response.status() {
        401 if response.with_credential() => error.with_hint(format!("check the key in `{KEY}`")),
        401 => error.with_hint(format!("the server wants a key: set `{KEY}`")),
        404 if is_json => error.with_hint("`jaato model list` tells which models there are"),
        404 | 405 => error.with_hint("check the base url: most end in `/v1`"),
        _ => error,
    }
}
