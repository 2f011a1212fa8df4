//! `provider-lines`: models of a server that answers with lines of JSON.
//!
//! The protocol is a minimal part of Ollama's. `provider-ollama`, which comes with jaato,
//! implements all of it.
#![forbid(unsafe_code)]

mod reply;
mod request;

use std::time::Duration;

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::{HttpResponse, schemars, serde_json};
use jaato_plugin_sdk_provider::{StreamLineSplitter, failure};

pub use reply::ReplyReader;
pub use request::{Blobs, write_body};

/// The longest wait for an answer to start or continue. It is long, because a model may have to be
/// loaded and the session's own timeout decides.
const WAIT: Duration = Duration::from_secs(60 * 60);

/// The longest wait for a list of models, for which a user is waiting.
const LIST_WAIT: Duration = Duration::from_secs(10);

/// The largest image. As text it is a third longer, and a request may have at most 8 MiB.
const IMAGE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The longest line. A line is one or a few tokens, or a call with its arguments.
const LINE_BYTES_MAX: usize = 1024 * 1024;

/// The largest list of models.
const LIST_BYTES_MAX: usize = 1024 * 1024;

/// The maximum number of bytes of a refusal to read. Its message is one line.
const REFUSAL_BYTES_MAX: usize = 16 * 1024;

/// `[plugins.provider-lines]` of the user's configuration.
#[tool_type]
#[serde(default)]
struct Config {
    /// The server's base URL.
    base_url: String,
    /// How many tokens a conversation may have; the server takes memory for all of them.
    context_tokens: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self { base_url: "http://localhost:11434".to_owned(), context_tokens: 8192 }
    }
}

/// The server's address and context size. The server keeps no conversations, so each request
/// contains everything.
pub struct ServerState {
    base_url: String,
    context_tokens: u32,
}

impl State for ServerState {
    async fn create(home: &Home, _saved: Option<Value>) -> Result<Self> {
        let Config { base_url, context_tokens } = home.config().await?;
        Ok(Self { base_url: base_url.trim_end_matches('/').to_owned(), context_tokens })
    }

    fn describe(description: &mut Description) {
        description.config_schema = serde_json::to_value(schemars::schema_for!(Config)).ok();
    }
}

struct LinesProvider;

impl Provider for LinesProvider {
    type State = ServerState;

    fn spec() -> ProviderSpec {
        ProviderSpec {
            name: "lines".to_owned(),
            title: "Models of a server that answers in lines of JSON".to_owned(),
            options: request::OPTIONS.map(str::to_owned).to_vec(),
            accepts: request::IMAGES.map(str::to_owned).to_vec(),
            ..ProviderSpec::default()
        }
    }

    async fn complete(cx: &Cx<ServerState>, request: CompletionRequest) -> Result<Completion> {
        let ServerState { base_url, context_tokens } = cx.state();
        let url = format!("{base_url}/api/chat");
        let blobs = load_images(cx, &request).await?;
        let body = write_body(&request, *context_tokens, &blobs)?;
        let sent = cx.http("POST", url.as_str()).header("content-type", "application/json");
        let response =
            sent.timeout(WAIT).body(body).send().await.map_err(failure::exchange_error)?;
        let mut response = check_status(&url, response).await?;
        let (mut lines, mut reply) =
            (StreamLineSplitter::new(LINE_BYTES_MAX), ReplyReader::new(&url, &request));
        while let Some(escape_piece) = response.next().await.map_err(failure::exchange_error)? {
            for line in lines.push(&escape_piece)? {
                emit_deltas(cx, &reply.parse_line(&line)?)?;
            }
        }
        if let Some(line) = lines.finish() {
            emit_deltas(cx, &reply.parse_last_line(&line)?)?;
        }
        reply.finish()
    }

    async fn models(cx: &Cx<ServerState>) -> Result<Vec<ModelInfo>> {
        let ServerState { base_url, context_tokens } = cx.state();
        let url = format!("{base_url}/api/tags");
        let sent = cx.http("GET", url.as_str()).timeout(LIST_WAIT).send();
        let response = check_status(&url, sent.await.map_err(failure::exchange_error)?).await?;
        let list = response.bytes(LIST_BYTES_MAX).await.map_err(failure::exchange_error)?;
        let list: Value =
            serde_json::from_slice(&list).map_err(|_| reply::unknown_protocol_error(&url))?;
        let models =
            list["models"].as_array().ok_or_else(|| reply::unknown_protocol_error(&url))?;
        let info = |model: &Value| {
            let context_limit = Some(u64::from(*context_tokens));
            let accepts = reply::accepted_images(model);
            Some(ModelInfo { context_limit, accepts, ..ModelInfo::new(model["name"].as_str()?) })
        };
        Ok(models.iter().filter_map(info).collect())
    }
}

/// Downloads the images of a conversation. Skips images that the session no longer has.
async fn load_images(cx: &Cx<ServerState>, request: &CompletionRequest) -> Result<Blobs> {
    let mut blobs = Blobs::new();
    for id in request::wanted_image_ids(request) {
        if blobs.contains_key(id) {
            continue;
        }
        match cx.blobs().get(id, IMAGE_BYTES_MAX).await {
            Ok(bytes) => {
                blobs.insert(id.to_owned(), bytes);
            }
            Err(error) if error.kind == ErrorKind::Cancelled => return Err(error),
            Err(error) => cx.log(LogLevel::Warn, format!("an image is left out: {error}")),
        }
    }
    Ok(blobs)
}

fn emit_deltas(cx: &Cx<ServerState>, deltas: &[Delta]) -> Result<()> {
    let is_heard = deltas.iter().all(|delta| cx.emit(delta));
    if is_heard { Ok(()) } else { Err(Error::cancelled()) }
}

export_plugin! { state: ServerState, provider: LinesProvider }

/// Converts an unsuccessful answer to an error.
async fn check_status(url: &str, mut response: HttpResponse) -> Result<HttpResponse> {
    if response.status() == 200 {
        return Ok(response);
    }
    let mut said = Vec::new();
    // An unreadable body is ignored, because the status is enough.
    while let Ok(Some(piece)) = response.next().await {
        said.extend(piece);
        if said.len() >= REFUSAL_BYTES_MAX {
            break;
        }
    }
    Err(failure::answer_error(url, response.status(), |name| response.header(name), &said))
}
