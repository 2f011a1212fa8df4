//! The provider, which connects the host's services to the pure mapping.

use std::sync::Arc;
use std::time::Duration;

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::serde_json;
use jaato_plugin_sdk_provider::exchange::{
    ExpectedResponse, WHOLE_BYTES_MAX, is_success, receive_answer, start_completion_request,
};
use jaato_plugin_sdk_provider::shown::{BlobContents, IMAGES, fetch_blobs, media_limits};
use jaato_plugin_sdk_provider::{chat, failure};

use crate::config::Config;
use crate::endpoint::{self, OpenAiProtocol};
use crate::exchange::refusal_error;
use crate::questions::QUESTIONS;
use crate::state::{KEY, OpenAiState};
use crate::{accepted_media, models, presets, responses, window};

/// The time limit for a list of models, because a user waits for it.
const LIST_WAIT: Duration = Duration::from_secs(10);

/// The provider `openai`.
pub struct OpenAiProvider;

impl Provider for OpenAiProvider {
    type State = OpenAiState;

    fn spec() -> ProviderSpec {
        ProviderSpec {
            name: "openai".to_owned(),
            title: "OpenAI, Azure, llama.cpp, vLLM, LM Studio and servers that speak as they do"
                .to_owned(),
            options: chat::OPTIONS.map(str::to_owned).to_vec(),
            accepts: IMAGES.map(str::to_owned).to_vec(),
            media_limits: media_limits(chat::BLOB_BYTES_MAX),
            default_model: "gpt-5.5".to_owned(),
            presets: presets::list_presets(),
            ..ProviderSpec::default()
        }
    }

    async fn complete(cx: &Cx<OpenAiState>, request: CompletionRequest) -> Result<Completion> {
        let config = cx.config::<Config>().await?;
        let blobs = fetch_blobs(cx, chat::wanted_blobs(&request)).await?;
        let asked = Arc::new((request, blobs));
        match endpoint::choose_protocol(&config, &asked.0) {
            OpenAiProtocol::Chat => complete_chat(cx, &config, asked).await,
            OpenAiProtocol::Responses => complete_responses(cx, &config, asked).await,
        }
    }

    async fn models(cx: &Cx<OpenAiState>) -> Result<Vec<ModelInfo>> {
        let config = cx.config::<Config>().await?;
        let base = &config.base_url;
        let url = endpoint::join_api_path(base, "models");
        let sent = cx.http("GET", url.as_str()).credential(KEY).timeout(LIST_WAIT);
        let response = match sent.send().await {
            // The user has not set up this provider. The host reports that only to users who want
            // to use it.
            Err(error) if error.kind == ErrorKind::NotFound => return Err(error),
            sent => sent.map_err(failure::exchange_error)?,
        };
        if !is_success(&response) {
            return Err(refusal_error(cx, &config, &url, response).await.error);
        }
        let body = response.bytes(WHOLE_BYTES_MAX).await.map_err(failure::exchange_error)?;
        let mut infos = models::parse_model_list(&url, &body)?;
        window::add_known_windows(&mut infos, endpoint::is_vendor_url(base));
        accepted_media::add_known_media(&mut infos, endpoint::is_vendor_url(base));
        add_model_in_use(cx, base, &mut infos).await;
        Ok(infos)
    }
}

/// A request and the bytes of its media.
type PreparedRequest = Arc<(CompletionRequest, BlobContents)>;

async fn complete_chat(
    cx: &Cx<OpenAiState>,
    config: &Config,
    asked: PreparedRequest,
) -> Result<Completion> {
    let url = endpoint::join_api_path(&config.base_url, "chat/completions");
    let quirks =
        &endpoint::dialect_of_server(&config.base_url, config.dialect).server_facts().quirks;
    let request = &asked.0;
    let mut habits =
        cx.state().chat.find_requirement(&url, &request.model).unwrap_or(quirks.habits);
    loop {
        // Writing a long history would block the executor for too long.
        let written = Arc::clone(&asked);
        let write = move |_: &Reporter| chat::request_body(&written.0, quirks, habits, &written.1);
        let body = cx.blocking(write).await??;
        let sent = start_completion_request(cx, &url, &ExpectedResponse::from_request(request))
            .credential(KEY)
            .body(body);
        let response = sent.send().await.map_err(failure::exchange_error)?;
        if is_success(&response) {
            return receive_answer(cx, &url, response, chat::ChatReply::new(&url)).await;
        }
        let refused = refusal_error(cx, config, &url, response).await;
        let wish = chat::requested_change(refused.status, &refused.body);
        let other = wish.and_then(|wish| habits.adapt_to_refusal(wish, request));
        habits = other.ok_or(refused.error)?;
        // The server has not processed the request yet, so this is not a retry.
        cx.state().chat.remember_requirement(&url, &request.model, habits);
    }
}

async fn complete_responses(
    cx: &Cx<OpenAiState>,
    config: &Config,
    asked: PreparedRequest,
) -> Result<Completion> {
    let url = endpoint::join_api_path(&config.base_url, "responses");
    let server = endpoint::dialect_of_server(&config.base_url, config.dialect).server_facts();
    let request = &asked.0;
    let first =
        || responses::ResponsesRequestStyle::for_model(&request.model, server.has_summaries);
    let mut habits =
        cx.state().responses.find_requirement(&url, &request.model).unwrap_or_else(first);
    loop {
        let (written, asking_habits) = (Arc::clone(&asked), habits.clone());
        let write = move |_: &Reporter| {
            let asking = responses::ResponsesRequestSettings {
                system_role: server.quirks.system_role(&written.0.model),
                max_effort: server.quirks.max_effort,
                has_session_key: server.quirks.session_key_field.is_some(),
                habits: &asking_habits,
            };
            responses::write_request_body(&written.0, &asking, &written.1)
        };
        let body = cx.blocking(write).await??;
        let sent = start_completion_request(cx, &url, &ExpectedResponse::from_request(request))
            .credential(KEY)
            .body(body);
        let response = sent.send().await.map_err(failure::exchange_error)?;
        if is_success(&response) {
            return receive_answer(cx, &url, response, responses::ResponsesReply::new(&url)).await;
        }
        let refused = refusal_error(cx, config, &url, response).await;
        let wish = responses::requested_change(refused.status, &refused.body);
        let marks = || responses::reasoning_marks(request);
        let other = wish.and_then(|wish| habits.adapt_to_refusal(wish, marks()));
        habits = other.ok_or(refused.error)?;
        cx.state().responses.remember_requirement(&url, &request.model, habits.clone());
    }
}

/// Queries a user's own server about the session's model if the list does not contain its window:
/// for the window and the supported media. Unanswered questions leave them unknown and cause no
/// error.
async fn add_model_in_use(cx: &Cx<OpenAiState>, base: &str, infos: &mut [ModelInfo]) {
    let facts = cx.session().await.ok().and_then(|session| session.context);
    let Some(model) = facts.map(|facts| facts.model) else { return };
    let Some((_, model)) = model.split_once('/') else { return };
    let is_it = |info: &&mut ModelInfo| window::is_same_model(&info.name, model);
    let Some(info) = infos.iter_mut().find(is_it).filter(|info| info.context_limit.is_none())
    else {
        return;
    };
    for question in QUESTIONS {
        let Some(url) = endpoint::join_server_root(base, question.path) else { return };
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
        info.context_limit = info.context_limit.or_else(|| (question.read)(&answer, model));
        info.accepts = info.accepts.take().or_else(|| (question.sight)(&answer, model));
        if info.context_limit.is_some() && !(question.goes_on && info.accepts.is_none()) {
            return;
        }
    }
}
