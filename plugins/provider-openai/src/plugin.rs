//! The plugin itself: between the host's services and the pure mapping.

use std::collections::HashSet;
use std::time::Duration;

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::schemars::{self, JsonSchema};
use jaato_plugin_sdk::serde::{self, Deserialize};
use jaato_plugin_sdk::types::CredentialSpec;
use jaato_plugin_sdk::{HttpResponse, serde_json};
use jaato_plugin_sdk_provider::failure;
use parking_lot::{Mutex, MutexGuard};

use crate::content::{self, Blobs};
use crate::endpoint::{self, VENDOR};
use crate::reply::Reply;
use crate::request::{self, Outcomes};
use crate::stream::{self, Ended, within};
use crate::window;
use crate::{models, options, refusal, sight};

/// The variable that holds the key.
const KEY: &str = "OPENAI_API_KEY";

/// The variable that names another server.
const BASE_URL: &str = "OPENAI_BASE_URL";

/// Wait for an answer to begin or go on: more than a session's own patience, which is what decides.
const WAIT: Duration = Duration::from_secs(60 * 60);

/// Wait for a list of models, for which a person sits and waits.
const LIST_WAIT: Duration = Duration::from_secs(10);

/// Wait for what a server says about a refusal, whose status is known.
const REFUSAL_WAIT: Duration = Duration::from_secs(2);

/// Most models of which it is remembered how they take outcomes. Nobody speaks with more at once.
const REMEMBERED_MAX: usize = 64;

/// Most blank bytes before an answer that are kept: enough to know a byte order mark.
const BLANKS_MAX: usize = 1024;

/// What is accepted of a server that is to stream, and of one that is not. What comes may be either.
const ACCEPT_STREAM: &str = "text/event-stream, application/json";
const ACCEPT_WHOLE: &str = "application/json, text/event-stream";

/// What to check where something answers that is no such server.
pub(crate) const CHECK_URL: &str = "check the base url: most end in `/v1`";

/// Largest list of models and largest answer that does not come as a stream.
const WHOLE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// `[plugins.provider-openai]`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(crate = "serde", default, deny_unknown_fields)]
#[schemars(crate = "schemars")]
pub struct Config {
    /// Where the server is, up to and with `/v1`. `OPENAI_BASE_URL` wins.
    #[schemars(extend("x-jaato-workspace" = true))]
    pub base_url: String,
}

impl Default for Config {
    fn default() -> Self {
        Self { base_url: VENDOR.to_owned() }
    }
}

/// The plugin's state: what servers refused once, so that they need not refuse it again. Nothing of
/// a conversation, because providers are stateless.
#[derive(Default)]
pub struct OpenAi {
    /// URL and model of servers that take outcomes only in tool results.
    wants_results_last: Mutex<HashSet<(String, String)>>,
}

impl OpenAi {
    fn outcomes_for(&self, url: &str, model: &str) -> Outcomes {
        let known = self.known();
        let is_known = known.contains(&(url.to_owned(), model.to_owned()));
        if is_known { Outcomes::InLastResult } else { Outcomes::AsUser }
    }

    fn remember(&self, url: &str, model: &str) {
        let mut known = self.known();
        if known.len() < REMEMBERED_MAX {
            known.insert((url.to_owned(), model.to_owned()));
        }
    }

    fn known(&self) -> MutexGuard<'_, HashSet<(String, String)>> {
        self.wants_results_last.lock()
    }
}

impl State for OpenAi {
    async fn create(_home: &Home, _saved: Option<Value>) -> Result<Self> {
        Ok(Self::default())
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
            options: options::NAMES.map(str::to_owned).to_vec(),
            accepts: content::IMAGES.map(str::to_owned).to_vec(),
            ..ProviderSpec::default()
        }
    }

    async fn complete(cx: &Cx<OpenAi>, request: Request) -> Result<Completion> {
        let base = config(cx).await?.base_url;
        let url = endpoint::below(&base, "chat/completions");
        let dialect = endpoint::dialect(&base);
        let blobs = Blobs::new();
        let is_whole = request.options.stream == Some(false);
        let accept = if is_whole { ACCEPT_WHOLE } else { ACCEPT_STREAM };
        let mut outcomes = cx.state().outcomes_for(&url, &request.model);
        loop {
            let body = request::body(&request, dialect, outcomes, &blobs)?;
            let response = send(cx, &url, accept, body).await?;
            if is_success(&response) {
                return receive(cx, &url, response).await;
            }
            let refused = refused(cx, &url, response).await;
            let may_help = outcomes == Outcomes::AsUser && request::tells_outcomes(&request);
            if !(refused.wants_results_last && may_help) {
                return Err(refused.error);
            }
            // The same words in another place: no second attempt, as nothing was attempted yet.
            cx.state().remember(&url, &request.model);
            outcomes = Outcomes::InLastResult;
        }
    }

    async fn models(cx: &Cx<OpenAi>) -> Result<Vec<ModelInfo>> {
        let base = config(cx).await?.base_url;
        let url = endpoint::below(&base, "models");
        let sent = cx.http("GET", url.as_str()).credential(KEY).timeout(LIST_WAIT);
        let response = match sent.send().await {
            // Nobody has set it up, which the host tells only those who want to use it.
            Err(error) if error.kind == ErrorKind::NotFound => return Err(error),
            sent => sent.map_err(failure::of_exchange)?,
        };
        if !is_success(&response) {
            return Err(refused(cx, &url, response).await.error);
        }
        let body = response.bytes(WHOLE_BYTES_MAX).await.map_err(failure::of_exchange)?;
        let mut infos = models::read(&url, &body)?;
        window::add_known(&mut infos, endpoint::is_vendors(&base));
        sight::add_known(&mut infos, endpoint::is_vendors(&base));
        add_window_in_use(cx, &base, &mut infos).await;
        Ok(infos)
    }
}

/// Asks a server of one's own for the window of the session's model where its list does not tell
/// it. What it does not answer is not known: nothing fails for it.
async fn add_window_in_use(cx: &Cx<OpenAi>, base: &str, infos: &mut [ModelInfo]) {
    let facts = cx.session().await.ok().and_then(|session| session.context);
    let Some(model) = facts.map(|facts| facts.model) else { return };
    let Some((_, model)) = model.split_once('/') else { return };
    let is_it = |info: &&mut ModelInfo| window::is_same_model(&info.name, model);
    let Some(info) = infos.iter_mut().find(is_it).filter(|info| info.context_limit.is_none())
    else {
        return;
    };
    for question in window::QUESTIONS {
        let Some(url) = endpoint::at_root(base, question.path) else { return };
        let method = if question.names_model { "POST" } else { "GET" };
        let mut sent = cx.http(method, url.as_str()).credential(KEY).timeout(LIST_WAIT);
        if question.names_model {
            let body = json!({ "model": model }).to_string();
            sent = sent.header("content-type", "application/json").body(body.into_bytes());
        }
        let Ok(response) = sent.send().await else { return };
        if !is_success(&response) {
            continue;
        }
        let Ok(body) = response.bytes(WHOLE_BYTES_MAX).await else { return };
        let answer = serde_json::from_slice(&body).unwrap_or(Value::Null);
        if let Some(tokens) = (question.read)(&answer, model) {
            info.context_limit = Some(tokens);
            return;
        }
    }
}

async fn send(cx: &Cx<OpenAi>, url: &str, accept: &str, body: Vec<u8>) -> Result<HttpResponse> {
    let request = cx
        .http("POST", url)
        .header("content-type", "application/json")
        .header("accept", accept)
        .credential(KEY)
        .timeout(WAIT)
        .body(body);
    request.send().await.map_err(failure::of_exchange)
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
            Some(piece) => {
                if first.len() > BLANKS_MAX {
                    first.clear();
                }
                first.extend(piece);
                // Blanks before an answer are how some servers show that they work on it.
                if Form::of(&first).is_none() {
                    cx.emit(&Delta::Alive);
                }
            }
            None => return Reply::new(url).finish().map(|(_, completion)| completion),
        }
    };
    match form {
        Form::Stream => match stream::follow(cx, url, first, response).await? {
            Ended::With(reply) => end(cx, reply),
            Ended::NoStream(response) => Err(wrong_form(url, response.header("content-type"))),
        },
        Form::Json => {
            let rest = response.bytes(WHOLE_BYTES_MAX).await.map_err(failure::of_exchange)?;
            whole(cx, url, &[first, rest].concat())
        }
        Form::Compressed => Err(compressed(url)),
        Form::Page => Err(wrong_form(url, response.header("content-type"))),
    }
}

/// Leaves out a byte order mark, which some servers put in front.
pub(crate) fn unmarked(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes)
}

/// What an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Stream,
    Json,
    Page,
    Compressed,
}

impl Form {
    /// Tells it by the first byte that is no blank; none as long as there is none.
    fn of(bytes: &[u8]) -> Option<Self> {
        if failure::is_compressed(bytes) {
            return Some(Self::Compressed);
        }
        Some(match unmarked(bytes).iter().find(|byte| !byte.is_ascii_whitespace())? {
            b'{' | b'[' => Self::Json,
            b'<' => Self::Page,
            // Its second byte tells.
            0x1f if bytes.len() == 1 => return None,
            _ => Self::Stream,
        })
    }
}

/// Reads an answer of a server that does not stream.
fn whole(cx: &Cx<OpenAi>, url: &str, body: &[u8]) -> Result<Completion> {
    let shown = failure::shown_url(url);
    let values = serde_json::Deserializer::from_slice(unmarked(body)).into_iter::<Value>();
    // Google's servers report an error in a list of one.
    let unlisted = |value| match value {
        Value::Array(mut list) if list.len() == 1 => list.remove(0),
        value => value,
    };
    let values = values.map(|value| value.map(unlisted)).collect::<Result<Vec<_>, _>>();
    let values = values.map_err(|error| {
        let text = format!("the answer of `{shown}` is no JSON: {error}");
        Error::new(ErrorKind::Provider, text).temporary()
    })?;
    if values.iter().any(is_of_ollamas_own) {
        let text = format!("`{shown}` answered in the form of Ollama's own api");
        return Err(Error::new(ErrorKind::Provider, text)
            .with_hint("the base url of an Ollama ends in `/v1`: `http://localhost:11434/v1`"));
    }
    let mut reply = Reply::new(url);
    for delta in reply.whole(&values)? {
        cx.emit(&delta);
    }
    if !values.iter().any(|value| value["choices"].as_array().is_some_and(|it| !it.is_empty())) {
        return Err(wrong_form(url, Some("application/json")));
    }
    end(cx, reply)
}

/// Tells whether a value is of `/api/chat` or `/api/generate`, which answer a line of JSON for each
/// piece.
fn is_of_ollamas_own(value: &Value) -> bool {
    value["done"].is_boolean() && (value["message"].is_object() || value["response"].is_string())
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
    Error::new(ErrorKind::Provider, text).with_hint(CHECK_URL)
}

fn compressed(url: &str) -> Error {
    let url = failure::shown_url(url);
    let text = format!("`{url}` answered compressed (gzip), which it was not asked to");
    Error::new(ErrorKind::Provider, text)
        .with_hint("a proxy or gateway in between compresses: switch that off for this server")
}

/// An answer that is no success.
struct Refused {
    error: Error,
    wants_results_last: bool,
}

/// Reads what a server says about an answer that is no success. What does not come soon is left
/// out: the status says enough.
async fn refused(cx: &Cx<OpenAi>, url: &str, mut response: HttpResponse) -> Refused {
    let mut limit = Some(Box::pin(cx.sleep(REFUSAL_WAIT)));
    let mut body = Vec::new();
    while let Some(Ok(Some(piece))) = within(limit.as_mut(), response.next()).await {
        body.extend(piece);
        if body.len() >= failure::BODY_BYTES_MAX {
            break;
        }
    }
    let status = response.status();
    let error = failure::of_answer(url, status, |name| response.header(name), &body);
    let error = match refusal::hint(status, &body, response.with_credential(), KEY) {
        Some(hint) => error.with_hint(hint),
        None => error,
    };
    Refused { error, wants_results_last: refusal::wants_results_last(status, &body) }
}
