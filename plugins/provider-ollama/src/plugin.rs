//! The provider, which connects the host's services to the pure mapping.

use std::sync::Arc;

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::serde_json;
use jaato_plugin_sdk::types::Retry;
use jaato_plugin_sdk_provider::exchange::{is_success, read_refusal};
use jaato_plugin_sdk_provider::failure;
use jaato_plugin_sdk_provider::shown::{fetch_blobs, media_limits};

use crate::config::Config;
use crate::endpoint::{OllamaServer, ServerNameSource};
use crate::exchange::{
    OllamaQueryResult, RequestPurpose, pull_model, query_server, receive_completion, send_request,
    unanswered_request_error,
};
use crate::facts::{IMAGES, OllamaModelFacts};
use crate::refusal::{is_foreign_answer, refusal_error};
use crate::reply::OllamaReply;
use crate::request::RequestBodyInputs;
use crate::state::{KnownOllamaModel, OllamaState};
use crate::{models, request, window};

/// The provider name in `ollama/MODEL`.
pub const PROVIDER: &str = "ollama";

/// The maximum number of models to query individually. The rest of a longer list is described by
/// the list alone.
const SHOWN_MAX: usize = 200;

/// The smallest request whose token count is checked, in bytes.
const CHECKED_BYTES_MIN: usize = 16 * 1024;

/// The maximum number of text bytes per token. If the server counts fewer tokens, it has not read
/// everything. English has four bytes per token, source code three.
const TOKEN_BYTES_MAX: usize = 8;

/// The provider `ollama`.
pub struct OllamaProvider;

impl Provider for OllamaProvider {
    type State = OllamaState;

    fn spec() -> ProviderSpec {
        ProviderSpec {
            name: PROVIDER.to_owned(),
            title: "Models of an Ollama server".to_owned(),
            options: request::NAMES.map(str::to_owned).to_vec(),
            accepts: IMAGES.map(str::to_owned).to_vec(),
            media_limits: media_limits(request::IMAGE_BYTES_MAX),
            ..ProviderSpec::default()
        }
    }

    async fn complete(cx: &Cx<OllamaState>, request: CompletionRequest) -> Result<Completion> {
        let config = cx.config::<Config>().await?;
        let server = OllamaServer::from_config(&config)?;
        let known = query_model(cx, &server, &config, &request.model).await?;
        let size = window::choose_context_size(config.context_tokens, &known.facts, known.loaded);
        let (url, model) = (server.api_url("chat"), request.model.clone());
        let OllamaModelFacts { own_output, is_remote, .. } = known.facts;
        let reply = OllamaReply::new(&url, &request, own_output, is_remote);
        let blobs = fetch_blobs(cx, request::wanted_blobs(&request, &known.facts)).await?;
        let facts = Arc::new(known.facts);
        let write = move |_: &Reporter| {
            let (facts, keep_alive) = (&*facts, config.keep_alive.as_str());
            let with = RequestBodyInputs { facts, context_tokens: size, keep_alive, blobs: &blobs };
            request::write_request(&request, &with)
        };
        // Writing a long history would block the executor for too long.
        let request::OllamaRequest { body, word_bytes } = cx.blocking(write).await??;
        let sent = send_request(cx, &server, "chat", RequestPurpose::Work, Some(body)).await;
        let response = sent.map_err(|error| unanswered_request_error(cx, &server, error))?;
        if !is_success(&response) {
            let error = refusal_error(read_refusal(cx, &url, response).await, &model);
            if error.retry == Retry::Permanent {
                cx.state().forget_model(&server, &model);
            }
            return Err(error);
        }
        let completion = receive_completion(cx, response, reply).await?;
        cx.state().set_model_used(&server, &model);
        let read = completion.usage.prompt_tokens;
        if is_token_count_too_low(read, word_bytes) && !is_remote {
            notify_of_truncation(cx, &server, &model, size, read).await;
        }
        Ok(completion)
    }

    async fn models(cx: &Cx<OllamaState>) -> Result<Vec<ModelInfo>> {
        let config = cx.config::<Config>().await?;
        let server = OllamaServer::from_config(&config)?;
        let url = server.api_url("tags");
        let listed = match query_server(cx, &server, "tags", None).await {
            Ok(OllamaQueryResult::Body(body)) => models::parse_installed(&url, &body)?,
            Ok(OllamaQueryResult::Refused(refusal)) => return Err(refusal_error(refusal, "")),
            // Most users have no Ollama, and want to see its errors only when they use it.
            Err(error) if server.named_by == ServerNameSource::Nothing => {
                let error = unanswered_request_error(cx, &server, error);
                let is_away = error.kind == ErrorKind::Provider;
                let kind = if is_away { ErrorKind::NotFound } else { error.kind };
                return Err(Error { kind, ..error });
            }
            Err(error) => return Err(unanswered_request_error(cx, &server, error)),
        };
        let loaded = query_loaded_models(cx, &server).await;
        let (mut infos, mut shown) = (Vec::new(), 0);
        for one in &listed {
            let mut known = OllamaModelFacts::from_model_name(&one.name);
            if shown < SHOWN_MAX {
                shown += 1;
                match query_facts(cx, &server, &one.name).await {
                    Ok(facts) => known = facts,
                    // The model was removed in the meantime.
                    Err(error) if error.retry == Retry::Permanent => {}
                    // If the server does not answer in time, do not query it for the other models.
                    Err(_) => shown = SHOWN_MAX,
                }
            }
            let context_tokens =
                context_size_of_model(cx, &server, &config, &one.name, &known, &loaded);
            infos.extend(models::model_info(one, &known, context_tokens));
        }
        Ok(infos)
    }

    async fn pull_model(cx: &Cx<OllamaState>, model: String) -> Result<()> {
        crate::pull::check_model_name(&model)?;
        let server = OllamaServer::from_config(&cx.config::<Config>().await?)?;
        let body = json!({ "model": model, "stream": true }).to_string().into_bytes();
        cx.state().forget_model(&server, &model);
        pull_model(cx, &server, &model, body).await
    }
}

/// Returns the facts about a model. Queries the server the first time.
async fn query_model(
    cx: &Cx<OllamaState>,
    server: &OllamaServer,
    config: &Config,
    model: &str,
) -> Result<KnownOllamaModel> {
    if let Some(known) = cx.state().known_model(server, model) {
        return Ok(known);
    }
    let facts = query_facts(cx, server, model).await?;
    let is_chosen = config.context_tokens.is_some() || facts.is_remote;
    let loaded = if is_chosen { Vec::new() } else { query_loaded_models(cx, server).await };
    let known = KnownOllamaModel { loaded: loaded_context_size(&loaded, model), facts };
    cx.state().remember_model(server, model, known.clone());
    Ok(known)
}

/// Queries the server for the facts about a model.
///
/// # Errors
/// An error if no answer arrives or the model does not exist. Other refusals are not errors,
/// because the real request will report them.
async fn query_facts(
    cx: &Cx<OllamaState>,
    server: &OllamaServer,
    model: &str,
) -> Result<OllamaModelFacts> {
    if let Some(known) = cx.state().known_model(server, model) {
        return Ok(known.facts);
    }
    let body = json!({ "model": model }).to_string().into_bytes();
    let looked = query_server(cx, server, "show", Some(body)).await;
    match looked.map_err(|error| unanswered_request_error(cx, server, error))? {
        OllamaQueryResult::Body(body) => {
            let shown: Value = serde_json::from_slice(&body).unwrap_or_default();
            Ok(OllamaModelFacts::from_show_answer(model, &shown))
        }
        OllamaQueryResult::Refused(it)
            if it.status == 404 && !is_foreign_answer(it.status, &it.body) =>
        {
            Err(refusal_error(it, model))
        }
        OllamaQueryResult::Refused(_) => Ok(OllamaModelFacts::from_model_name(model)),
    }
}

/// Queries the server for the loaded models. Returns an empty list if it does not report them.
async fn query_loaded_models(cx: &Cx<OllamaState>, server: &OllamaServer) -> Vec<(String, u64)> {
    match query_server(cx, server, "ps", None).await {
        Ok(OllamaQueryResult::Body(body)) => {
            models::parse_loaded(&server.api_url("ps"), &body).unwrap_or_default()
        }
        Ok(OllamaQueryResult::Refused(_)) | Err(_) => Vec::new(),
    }
}

fn loaded_context_size(loaded: &[(String, u64)], model: &str) -> Option<u64> {
    let name = models::name_with_tag(model);
    loaded.iter().find(|(known, _)| models::name_with_tag(known) == name).map(|(_, size)| *size)
}

/// Returns a model's context size: the actual size if the model was loaded by one of our requests,
/// or else the size that a request will ask for.
fn context_size_of_model(
    cx: &Cx<OllamaState>,
    server: &OllamaServer,
    config: &Config,
    model: &str,
    facts: &OllamaModelFacts,
    loaded: &[(String, u64)],
) -> u64 {
    let now = loaded_context_size(loaded, model);
    let before = match cx.state().known_model(server, model) {
        Some(known) => known.loaded,
        None => now,
    };
    let asked = window::choose_context_size(config.context_tokens, facts, before);
    now.filter(|_| cx.state().is_model_used(server, model)).map_or(asked, |given| given.min(asked))
}

/// Returns true if the server counts so few tokens that it cannot have read the whole request.
fn is_token_count_too_low(tokens: u64, bytes: usize) -> bool {
    let tokens = usize::try_from(tokens).unwrap_or(usize::MAX);
    tokens > 0 && bytes >= CHECKED_BYTES_MIN && tokens.saturating_mul(TOKEN_BYTES_MAX) < bytes
}

/// Notifies the user, once per model, that the server may not have read the whole conversation.
/// Some servers count only the part of the prompt that was not cached. The actual context size
/// distinguishes the two cases.
async fn notify_of_truncation(
    cx: &Cx<OllamaState>,
    server: &OllamaServer,
    model: &str,
    asked: u64,
    read: u64,
) {
    let given = loaded_context_size(&query_loaded_models(cx, server).await, model);
    if given.is_some_and(|given| given >= asked) || !cx.state().is_first_notice(server, model) {
        return;
    }
    let given = given.map_or_else(String::new, |given| {
        format!(": it gave the model {given} tokens of context, not {asked}")
    });
    let shown = failure::url_for_errors(&server.root);
    cx.emit(&Delta::notice(format!(
        "`{shown}` read only {read} tokens of a longer request, and may have dropped the oldest \
         messages{given}; update Ollama to get an error instead"
    )));
}
